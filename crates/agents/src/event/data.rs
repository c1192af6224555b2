//! The data of an event, built when it is read.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::ops::Deref;
use std::sync::{Arc, LazyLock, OnceLock};
use upp::{AssistantMessage, ToolResultMessage};

/// The fields of an event (UAP §11.2), read as a map. Clones of a message's event share its data.
///
/// The fields are copied from the message only when they are read, because many events are only
/// counted, passed on or dropped.
#[derive(Clone)]
pub struct EventData(Kept);

#[derive(Clone)]
enum Kept {
    Nothing,
    Fields(Arc<Map<String, Value>>),
    Told(Source, OnceLock<Arc<Map<String, Value>>>),
}

/// The fields of an event without data.
static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// The source of the data of a tools round's event.
#[derive(Clone)]
enum Source {
    /// `{toolCalls}`: those of this response.
    Action(Arc<AssistantMessage>),
    /// `{observations}`: the results of this message.
    Observation(Arc<ToolResultMessage>),
}

impl Source {
    fn fields(&self) -> Arc<Map<String, Value>> {
        Arc::new(match self {
            Self::Action(response) => one("toolCalls", &response.tool_calls),
            Self::Observation(message) => one("observations", &message.results),
        })
    }
}

fn one<T: Serialize>(key: &str, value: &T) -> Map<String, Value> {
    let value = serde_json::to_value(value).unwrap_or_default();
    Map::from_iter([(key.to_owned(), value)])
}

impl EventData {
    /// The data of `action`.
    pub(crate) fn action(response: Arc<AssistantMessage>) -> Self {
        Self::from_source(Source::Action(response))
    }

    /// The data of `observation`.
    pub(crate) fn observation(results: Arc<ToolResultMessage>) -> Self {
        Self::from_source(Source::Observation(results))
    }

    fn from_source(source: Source) -> Self {
        Self(Kept::Told(source, OnceLock::new()))
    }
}

impl Deref for EventData {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Self::Target {
        match &self.0 {
            Kept::Nothing => &EMPTY,
            Kept::Fields(fields) => fields,
            Kept::Told(source, fields) => fields.get_or_init(|| source.fields()),
        }
    }
}

impl From<Map<String, Value>> for EventData {
    fn from(fields: Map<String, Value>) -> Self {
        if fields.is_empty() {
            return Self::default();
        }
        Self(Kept::Fields(Arc::new(fields)))
    }
}

impl From<EventData> for Map<String, Value> {
    fn from(data: EventData) -> Self {
        match data.0 {
            Kept::Fields(fields) => Arc::unwrap_or_clone(fields),
            Kept::Nothing | Kept::Told(..) => data.deref().clone(),
        }
    }
}

impl Default for EventData {
    fn default() -> Self {
        Self(Kept::Nothing)
    }
}

impl PartialEq for EventData {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl std::fmt::Debug for EventData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.deref().fmt(f)
    }
}

impl Serialize for EventData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.deref().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for EventData {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use upp::{Arguments, MessageOptions, ToolCall, ToolResult};

    #[test]
    fn what_a_message_tells_reads_as_a_map_of_its_own() {
        let call = ToolCall {
            tool_call_id: "c".into(),
            tool_name: "add".into(),
            arguments: Arguments::from_text(r#"{ "a": 1 }"#),
            after: Vec::new(),
        };
        let said = AssistantMessage::new(Vec::new(), vec![call], MessageOptions::default());
        let action = EventData::action(Arc::new(said));
        let calls = json!([{"toolCallId": "c", "toolName": "add", "arguments": {"a": 1}}]);
        assert_eq!(action.get("toolCalls"), Some(&calls));
        let result = ToolResult {
            tool_call_id: "c".into(),
            result: json!({"sum": 1}).into(),
            is_error: true,
        };
        let results = ToolResultMessage::new(vec![result], MessageOptions::default());
        let observation = EventData::observation(Arc::new(results));
        let expected =
            json!({"observations": [{"toolCallId": "c", "result": {"sum": 1}, "isError": true}]});
        assert_eq!(serde_json::to_value(&observation).unwrap(), expected);
        let read: EventData = serde_json::from_value(expected).unwrap();
        assert_eq!(read, observation);
        assert_eq!(
            Map::from(action),
            Map::from_iter([("toolCalls".into(), calls)])
        );
    }
}

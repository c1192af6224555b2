//! Threads that are to be made, found or changed.

use super::{checkpoint, uuid};
use crate::langgraph::error::RequestError;
use crate::langgraph::fields::Fields;
use crate::langgraph::input::Input;
use crate::langgraph::select::Select;
use crate::langgraph::thread::ThreadStatus;
use crate::metadata::{EXPECTED, is_aitp, is_own};
use serde_json::{Map, Value};

/// The most objects of a page.
const MAX_LIMIT: u64 = 1_000;
/// Objects on a page if the request has no limit.
const LIMIT: u64 = 10;
/// Maximum offset of a page. The server walks over all earlier entries.
pub(super) const MAX_OFFSET: u64 = 10_000;

/// Reads the client's `metadata`. Members that belong to the server or to AITP are refused.
fn metadata(fields: &Fields<'_>) -> Result<Map<String, Value>, RequestError> {
    let noted = fields.noted("metadata")?.unwrap_or_default();
    let Some(key) = noted.keys().find(|key| is_own(key) || is_aitp(key)) else {
        return Ok(noted);
    };
    let at = format!("{}/{}", fields.at("metadata"), crate::request::token(key));
    let what = if is_aitp(key) {
        "who takes part is not noted here: actors join and leave by AITP's own ways".to_owned()
    } else {
        format!("expected {EXPECTED}")
    };
    Err(RequestError::at(at, what))
}

/// A thread that is to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadCreate {
    /// The id that the client chose.
    pub thread_id: Option<String>,
    /// The client's metadata.
    pub metadata: Map<String, Value>,
    /// Whether an existing thread is returned instead of an error.
    pub takes_existing: bool,
}

impl ThreadCreate {
    /// The fields that a body may have.
    pub const KNOWN: &'static [&'static str] =
        &["thread_id", "metadata", "if_exists", "ttl", "supersteps"];

    /// Reads a body.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let fields = Fields::closed(body, "", Self::KNOWN)?;
        fields.refuse("ttl", "threads do not end by themselves here")?;
        fields.refuse(
            "supersteps",
            "expected nothing: say it in a run, or update the state",
        )?;
        let words = [("raise", false), ("do_nothing", true)];
        Ok(Self {
            thread_id: uuid(&fields, "thread_id")?,
            metadata: metadata(&fields)?,
            takes_existing: fields.word("if_exists", &words)?.unwrap_or_default(),
        })
    }
}

/// A change of a thread's metadata, with messages to post.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadPatch {
    /// Members of the metadata to set.
    pub metadata: Map<String, Value>,
    /// Messages to post without starting a run.
    pub input: Input,
}

impl ThreadPatch {
    /// The fields that a body may have.
    pub const KNOWN: &'static [&'static str] =
        &["metadata", "values", "messages", "checkpoint", "ttl"];

    /// Reads a body.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let fields = Fields::closed(body, "", Self::KNOWN)?;
        fields.refuse("ttl", "threads do not end by themselves here")?;
        fields.refuse("checkpoint", "the past can't be changed: copy the thread")?;
        let mut input = match fields.get("values") {
            Some(values) => Input::read(values, &fields.at("values"))?,
            None => Input::default(),
        };
        if let Some(messages) = fields.get("messages") {
            input.messages(messages, &fields.at("messages"))?;
        }
        Ok(Self {
            metadata: metadata(&fields)?,
            input,
        })
    }
}

/// Messages that are to be appended to a state.
#[derive(Clone, Debug, PartialEq)]
pub struct StateUpdate {
    /// The messages.
    pub input: Input,
    /// The state to continue from. It must be the last one.
    pub checkpoint: Option<String>,
}

impl StateUpdate {
    /// The fields that a body may have.
    pub const KNOWN: &'static [&'static str] =
        &["values", "as_node", "checkpoint", "checkpoint_id"];

    /// Reads a body.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let fields = Fields::closed(body, "", Self::KNOWN)?;
        fields.refuse("as_node", "an agent has no nodes here")?;
        let mut input = Input::default();
        match fields.get("values") {
            None => {}
            Some(Value::Array(list)) => {
                for (place, values) in list.iter().enumerate() {
                    let at = format!("{}/{place}", fields.at("values"));
                    let read = Input::read(values, &at)?;
                    input.messages.extend(read.messages);
                    input.results.extend(read.results);
                }
            }
            Some(values) => input = Input::read(values, &fields.at("values"))?,
        }
        Ok(Self {
            input,
            checkpoint: checkpoint(&fields)?,
        })
    }
}

/// Threads that are looked for.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadSearch {
    /// Members that the threads' metadata must contain.
    pub metadata: Map<String, Value>,
    /// Only threads in this state.
    pub status: Option<ThreadStatus>,
    /// Only these.
    pub ids: Option<Vec<String>>,
    /// Maximum number of threads.
    pub limit: usize,
    /// Number of threads to skip.
    pub offset: usize,
    /// Which members are shown.
    pub select: Select,
}

impl ThreadSearch {
    /// The fields that a body may have.
    pub const KNOWN: &'static [&'static str] = &[
        "metadata",
        "values",
        "ids",
        "status",
        "limit",
        "offset",
        "sort_by",
        "sort_order",
        "select",
        "extract",
    ];

    /// Reads a body.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let fields = Fields::closed(body, "", Self::KNOWN)?;
        let by_values = fields.get("values").and_then(Value::as_object);
        if by_values.is_none_or(|values| !values.is_empty()) {
            fields.refuse("values", "threads are not found by their values here")?;
        }
        let by_path = fields.get("extract").and_then(Value::as_object);
        if by_path.is_none_or(|paths| !paths.is_empty()) {
            fields.refuse("extract", "nothing is extracted here: expected select")?;
        }
        fields.word("sort_by", &[("updated_at", ()), ("state_updated_at", ())])?;
        fields.word("sort_order", &[("desc", ())])?;
        let ids = fields.texts("ids", 1_000)?;
        for (place, id) in ids.iter().enumerate() {
            if super::uuid_of(id).is_none() {
                let at = format!("{}/{place}", fields.at("ids"));
                return Err(RequestError::at(at, "expected a UUID"));
            }
        }
        let (limit, offset) = Self::bounds(&fields)?;
        Ok(Self {
            metadata: fields.noted("metadata")?.unwrap_or_default(),
            status: fields.word("status", &ThreadStatus::NAMES)?,
            ids: fields.get("ids").map(|_| ids),
            limit,
            offset,
            select: Select::read(&fields)?,
        })
    }

    /// Reads `limit` and `offset`.
    pub(in crate::langgraph) fn bounds(
        fields: &Fields<'_>,
    ) -> Result<(usize, usize), RequestError> {
        let whole = |number: Option<u64>, default: u64| {
            usize::try_from(number.unwrap_or(default)).unwrap_or(usize::MAX)
        };
        let limit = whole(fields.whole("limit", 1, MAX_LIMIT)?, LIMIT);
        let offset = whole(fields.whole("offset", 0, MAX_OFFSET)?, 0);
        Ok((limit, offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_thread_is_made_with_a_uuid_or_without_an_id() {
        let made =
            ThreadCreate::read(&json!({"thread_id": "0190A3C45B6D7E8F9A0B1C2D3E4F5061"})).unwrap();
        assert_eq!(
            made.thread_id.as_deref(),
            Some("0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5061")
        );
        assert!(ThreadCreate::read(&json!({})).is_ok());
        for (body, place) in [
            (json!({"thread_id": "talk"}), "/thread_id"),
            (json!({"metadata": {"uap": {}}}), "/metadata/uap"),
            (json!({"metadata": {"actors": []}}), "/metadata/actors"),
            (
                json!({"metadata": {"parent_id": null}}),
                "/metadata/parent_id",
            ),
            (json!({"ttl": {"ttl": 5}}), "/ttl"),
            (json!({"if_exists": "overwrite"}), "/if_exists"),
            (json!([]), ""),
        ] {
            let error = ThreadCreate::read(&body).unwrap_err();
            assert_eq!(error.pointer.as_deref(), Some(place), "{body}");
        }
    }

    #[test]
    fn a_search_says_what_it_can_not_look_for() {
        let found = ThreadSearch::read(&json!({"values": {}, "select": ["thread_id"]})).unwrap();
        assert_eq!((found.limit, found.offset), (10, 0));
        assert!(found.select.shows("thread_id") && !found.select.shows("values"));
        for (key, value) in [
            ("values", json!({"a": 1})),
            ("status", json!("asleep")),
            ("limit", json!(0)),
            ("limit", json!(1001)),
            ("offset", json!(-1)),
            ("sort_by", json!("created_at")),
            ("sort_order", json!("asc")),
            ("ids", json!(["talk"])),
            ("extract", json!({"a": "values.messages"})),
        ] {
            let mut body = json!({});
            body[key] = value.clone();
            let error = ThreadSearch::read(&body).unwrap_err();
            assert!(
                error.pointer.unwrap().starts_with(&format!("/{key}")),
                "{key}"
            );
        }
    }

    #[test]
    fn a_state_takes_messages_and_nothing_else() {
        let update =
            StateUpdate::read(&json!({"values": {"messages": ["a", "b"]}, "checkpoint_id": "c"}));
        let update = update.unwrap();
        assert_eq!(
            (update.input.messages.len(), update.checkpoint.as_deref()),
            (2, Some("c"))
        );
        assert!(
            StateUpdate::read(&json!({"values": null}))
                .unwrap()
                .input
                .is_empty()
        );
        for body in [
            json!({"values": {"todos": []}}),
            json!({"values": {"messages": "a"}, "as_node": "tools"}),
        ] {
            assert!(StateUpdate::read(&body).is_err(), "{body}");
        }
        let result = json!({"type": "tool", "content": "x", "tool_call_id": "c"});
        let update = StateUpdate::read(&json!({"values": {"messages": [result]}}));
        assert!(update.unwrap().input.messages_only().is_err());
        for key in ["actors", "parent_id"] {
            let patch = ThreadPatch::read(&json!({"metadata": {key: "x"}}));
            let at = format!("/metadata/{key}");
            assert_eq!(patch.unwrap_err().pointer, Some(at));
        }
        let patch = ThreadPatch::read(
            &json!({"metadata": {"a": null}, "messages": [{"role": "user", "content": "x"}]}),
        );
        assert_eq!(patch.unwrap().input.messages.len(), 1);
    }
}

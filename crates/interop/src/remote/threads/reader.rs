//! Reads the output of a remote agent behind the Threads API for one run.

use crate::remote::delta::News;
use crate::remote::position::{AskKind, RemoteQuestion};
use crate::remote::text_pieces::TextPieces;
use serde_json::Value;
use upp::{Arguments, ToolCall};

/// How a run ended, or why it waits.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEnd {
    /// The run is complete.
    Completed,
    /// The run was cut off, for example by a token limit. The text is the reason.
    Incomplete(String),
    /// The run waits for the results of these calls. Each becomes a pending call in the local thread.
    Asks(Vec<ToolCall>, Vec<RemoteQuestion>),
    /// The run failed or was cancelled. The text is the reason.
    Failed(String),
    /// The run refused its input (error code `invalid_prompt`). The text is the reason.
    Rejected(String),
    /// The run expired. The text is the reason.
    Expired(String),
    /// The run reached a rate limit (error code `rate_limit_exceeded`). The text is the reason.
    Limited(String),
}

/// Reads a run's output. The id of its message and the number of its part identify a text.
#[derive(Debug, Default)]
pub struct RunReader {
    said: TextPieces,
    /// The names of the run's texts in earlier answers.
    earlier: Vec<String>,
    /// The id of the message that was cut off. Its text is dropped if another message follows.
    cut_off: Option<String>,
    /// The id of the run, once it is known.
    pub run: Option<String>,
    /// How the run ended or why it waits; `None` while it is active.
    pub end: Option<RunEnd>,
    /// The run's tokens, once they are known: of the prompt and of the completion.
    pub usage: Option<(u64, u64)>,
}

/// Why an event or an object can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunEventError {
    /// The event is an error of the remote server. The text is its message, cut to 500 characters.
    #[error("it failed: {0}")]
    Failed(String),
    /// The object does not conform to the Threads API.
    #[error("{0}")]
    Malformed(&'static str),
}

impl RunReader {
    /// A reader for the next answer. If `news` answers a run's questions, the run continues, and the
    /// reader recognizes its earlier texts.
    pub fn of(news: &News<'_>) -> Self {
        Self {
            earlier: news.names().to_vec(),
            ..Self::default()
        }
    }

    /// The names of the run's texts, in this answer and in earlier ones.
    pub fn names(&self) -> Vec<String> {
        let own = self.said.names().map(str::to_owned);
        self.earlier.iter().cloned().chain(own).collect()
    }

    /// The output of this answer so far.
    pub fn text(&mut self) -> &mut TextPieces {
        &mut self.said
    }

    /// Reads the data of one event, or a fetched object: a run, a message or a list of messages. Objects
    /// of other kinds are ignored.
    ///
    /// # Errors
    ///
    /// [`RunEventError::Failed`] if the object is an error, [`RunEventError::Malformed`] if it does not
    /// conform to the Threads API.
    pub fn take(&mut self, object: &Value) -> Result<(), RunEventError> {
        let text = |value: &Value, field: &str| Some(value.get(field)?.as_str()?.to_owned());
        if let Some(error) = object.get("error").filter(|it| !it.is_null()) {
            let said = error.get("message").unwrap_or(error);
            let said = said.as_str().unwrap_or_default();
            return Err(RunEventError::Failed(said.chars().take(500).collect()));
        }
        match text(object, "object").as_deref() {
            Some("thread.run") => self.run(object),
            Some("thread.message.delta") => {
                let id = text(object, "id").unwrap_or_default();
                self.follows(&id);
                let parts = object.get("delta").and_then(|delta| delta.get("content"));
                for part in parts.and_then(Value::as_array).into_iter().flatten() {
                    let index = part.get("index").and_then(Value::as_u64);
                    let value = part.get("text").and_then(|text| text.get("value"));
                    let name = name(&id, index.unwrap_or_default());
                    self.said
                        .push(&name, value.and_then(Value::as_str).unwrap_or_default());
                }
                Ok(())
            }
            Some("thread.message") => {
                self.message(object);
                Ok(())
            }
            Some("list") => {
                self.list(object);
                Ok(())
            }
            // Steps tell of the assistant's own tools; a message may also just tell an error.
            Some(_) => Ok(()),
            None => match text(object, "message") {
                Some(said) => Err(RunEventError::Failed(said.chars().take(500).collect())),
                None => Err(RunEventError::Malformed(
                    "an event is no object of the Threads API",
                )),
            },
        }
    }

    /// Reads the list of the run's messages. If the list has no further page, the texts of messages that
    /// are not in it are removed.
    fn list(&mut self, list: &Value) {
        let messages = list.get("data").and_then(Value::as_array);
        for message in messages.into_iter().flatten() {
            self.message(message);
        }
        if list.get("has_more").and_then(Value::as_bool) == Some(true) {
            return;
        }
        let ids = messages.into_iter().flatten();
        let ids: Vec<String> = ids
            .filter_map(|message| Some(name(message.get("id")?.as_str()?, "")))
            .collect();
        self.said
            .retain(|name| ids.iter().any(|id| name.starts_with(id)));
    }

    fn message(&mut self, message: &Value) {
        if message.get("role").and_then(Value::as_str) == Some("user") {
            return;
        }
        let text = |field: &str| message.get(field).and_then(Value::as_str);
        let id = text("id").unwrap_or_default();
        self.follows(id);
        if text("status") == Some("incomplete") {
            self.cut_off = Some(id.to_owned());
        }
        let parts = message.get("content").and_then(Value::as_array);
        for (index, part) in parts.into_iter().flatten().enumerate() {
            let text = part.get("text").and_then(|text| text.get("value"));
            let text = text.or_else(|| part.get("refusal"));
            let name = name(id, index);
            if !self.earlier.contains(&name) {
                self.said
                    .whole(&name, text.and_then(Value::as_str).unwrap_or_default());
            }
        }
    }

    /// Removes the text of a message that was cut off if the message `id` is another one. The remote
    /// agent then writes the text again.
    fn follows(&mut self, id: &str) {
        if let Some(cut_off) = self.cut_off.take_if(|cut_off| cut_off != id) {
            let cut_off = name(&cut_off, "");
            self.said.retain(|name| !name.starts_with(&cut_off));
        }
    }

    fn run(&mut self, run: &Value) -> Result<(), RunEventError> {
        let text = |field: &str| Some(run.get(field)?.as_str()?.to_owned());
        let id = text("id").ok_or(RunEventError::Malformed("a run has no id"))?;
        self.run = Some(id);
        if let Some(usage) = run.get("usage") {
            let count = |field: &str| usage.get(field).and_then(Value::as_u64);
            self.usage = count("prompt_tokens").zip(count("completion_tokens"));
        }
        let status = text("status").ok_or(RunEventError::Malformed("a run has no status"))?;
        let said = |field: &str| run.get("last_error")?.get(field)?.as_str();
        let why = said("message").unwrap_or("it does not say why");
        self.end = match status.as_str() {
            "queued" | "in_progress" | "cancelling" => None,
            "completed" => Some(RunEnd::Completed),
            "requires_action" => Some(asked(run)?),
            "incomplete" => {
                let details = run.get("incomplete_details");
                let reason = details.and_then(|details| details.get("reason")?.as_str());
                Some(RunEnd::Incomplete(
                    reason.unwrap_or("incomplete").to_owned(),
                ))
            }
            "failed" if said("code") == Some("rate_limit_exceeded") => {
                Some(RunEnd::Limited(format!("the run failed: {why}")))
            }
            "failed" if said("code") == Some("invalid_prompt") => {
                Some(RunEnd::Rejected(format!("the run failed: {why}")))
            }
            "failed" => Some(RunEnd::Failed(format!("the run failed: {why}"))),
            "cancelled" => Some(RunEnd::Failed("the run was stopped there".to_owned())),
            "expired" => Some(RunEnd::Expired("the run has expired there".to_owned())),
            _ => {
                return Err(RunEventError::Malformed(
                    "a run is in a state that there is not",
                ));
            }
        };
        Ok(())
    }
}

/// The name of the text of a message's part.
fn name(id: &str, part: impl std::fmt::Display) -> String {
    format!("{id} {part}")
}

fn asked(run: &Value) -> Result<RunEnd, RunEventError> {
    let calls = run.get("required_action");
    let calls = calls.and_then(|action| action.get("submit_tool_outputs")?.get("tool_calls"));
    let calls = calls.and_then(Value::as_array).into_iter().flatten();
    let (mut made, mut asks): (Vec<ToolCall>, Vec<RemoteQuestion>) = (Vec::new(), Vec::new());
    for call in calls {
        let function = call.get("function");
        let id = call.get("id").and_then(Value::as_str);
        let name = function.and_then(|function| function.get("name")?.as_str());
        let arguments = function.and_then(|function| function.get("arguments")?.as_str());
        let (Some(id), Some(name)) = (id, name) else {
            return Err(RunEventError::Malformed("a call has no id or no name"));
        };
        made.push(ToolCall {
            tool_call_id: id.into(),
            tool_name: name.into(),
            arguments: Arguments::from_text(arguments.unwrap_or("{}")),
            after: Vec::new(),
        });
        asks.push(RemoteQuestion {
            call: id.to_owned(),
            id: Some(id.to_owned()),
            thread_key: None,
            kind: AskKind::Result,
        });
    }
    if made.is_empty() {
        return Err(RunEventError::Malformed(
            "a run requires an action and names no call",
        ));
    }
    Ok(RunEnd::Asks(made, asks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use upp::AssistantContent;

    #[test]
    fn a_stream_and_the_messages_after_it_say_the_same_once() {
        let mut reader = RunReader::default();
        let delta = |value: &str| {
            let content = json!([{"index": 0, "type": "text", "text": { "value": value }}]);
            json!({"object": "thread.message.delta", "id": "m", "delta": { "content": content }})
        };
        let message = |id: &str, role: &str, text: &str| json!({"object": "thread.message", "id": id, "role": role, "content": [{"type": "text", "text": { "value": text }}]});
        for object in [
            json!({"object": "thread.run", "id": "r", "status": "queued"}),
            delta("Hel"),
            delta("lo"),
            message("m", "assistant", "Hello"),
            json!({"object": "thread.run.step", "id": "s"}),
            json!({"object": "list", "data": [message("u", "user", "Hi"), message("m", "assistant", "Hello")]}),
            json!({"object": "thread.run", "id": "r", "status": "completed",
                "usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
        ] {
            reader.take(&object).unwrap();
        }
        let text = "Hello".to_owned();
        assert_eq!(reader.text().content(), [AssistantContent::Text { text }]);
        assert_eq!(reader.end, Some(RunEnd::Completed));
        assert_eq!(reader.usage, Some((3, 2)));
    }

    fn said(id: &str, status: &str, text: &str) -> Value {
        json!({"object": "thread.message", "id": id, "role": "assistant", "status": status,
            "content": [{"type": "text", "text": { "value": text }}]})
    }

    fn texts(reader: &mut RunReader) -> Vec<String> {
        let mut texts = Vec::new();
        for block in reader.text().content() {
            if let AssistantContent::Text { text } = block {
                texts.push(text);
            }
        }
        texts
    }

    #[test]
    fn a_message_that_was_cut_off_counts_only_where_none_follows() {
        let mut reader = RunReader::default();
        reader.take(&said("1", "incomplete", "word1 wo")).unwrap();
        assert_eq!(texts(&mut reader), ["word1 wo"]);
        reader.take(&said("2", "completed", "word1 word2")).unwrap();
        assert_eq!(texts(&mut reader), ["word1 word2"]);
    }

    #[test]
    fn what_is_not_among_the_messages_of_a_run_was_taken_back_and_what_is_known_is_known_by_its_id()
    {
        let mut reader = RunReader {
            earlier: vec!["0 0".into()],
            ..RunReader::default()
        };
        reader.take(&said("1", "in_progress", "wo")).unwrap();
        let list = [("0", "yes"), ("2", "yes"), ("3", "yes")]
            .map(|(id, text)| said(id, "completed", text));
        reader
            .take(&json!({"object": "list", "data": list}))
            .unwrap();
        assert_eq!(texts(&mut reader), ["yes", "yes"]);
        assert_eq!(reader.names(), ["0 0", "2 0", "3 0"]);
    }

    #[test]
    fn a_run_that_requires_an_action_asks_for_its_calls() {
        let mut reader = RunReader::default();
        let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}});
        let action = json!({"submit_tool_outputs": { "tool_calls": [call] }});
        let run = json!({"object": "thread.run", "id": "r", "status": "requires_action", "required_action": action});
        reader.take(&run).unwrap();
        let Some(RunEnd::Asks(calls, asks)) = reader.end else {
            panic!("{:?}", reader.end)
        };
        assert_eq!(
            (&*calls[0].tool_name, calls[0].arguments.text()),
            ("f", "{\"a\": 1}")
        );
        assert_eq!(asks[0].id.as_deref(), Some("c"));
    }

    #[test]
    fn a_run_that_failed_says_whether_it_was_asked_too_often() {
        let mut reader = RunReader::default();
        let mut failed = json!({"object": "thread.run", "id": "r", "status": "failed",
            "last_error": {"code": "server_error", "message": "no"}});
        reader.take(&failed).unwrap();
        assert_eq!(
            reader.end,
            Some(RunEnd::Failed("the run failed: no".into()))
        );
        failed["last_error"]["code"] = "rate_limit_exceeded".into();
        reader.take(&failed).unwrap();
        assert_eq!(
            reader.end,
            Some(RunEnd::Limited("the run failed: no".into()))
        );
    }

    #[test]
    fn what_is_no_object_of_the_protocol_is_refused() {
        for wrong in [
            json!([1]),
            json!({}),
            json!({"object": "thread.run", "id": "r"}),
            json!({"object": "thread.run", "id": "r", "status": "odd"}),
            json!({"object": "thread.run", "id": "r", "status": "requires_action"}),
        ] {
            let read = RunReader::default().take(&wrong);
            assert!(matches!(read, Err(RunEventError::Malformed(_))), "{wrong}");
        }
        let error = json!({"error": {"message": "busy"}});
        assert_eq!(
            RunReader::default().take(&error),
            Err(RunEventError::Failed("busy".into()))
        );
    }
}

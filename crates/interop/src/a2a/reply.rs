//! Pending calls of a task, and their answers.

use super::error::{ErrorKind, RequestError};
use super::message::Incoming;
use super::part;
use crate::parts::ToolPart;
use serde_json::{Map, Value, json};
use timeline::{ANSWER, Answer, ContentError, OpenCall, OpenKind};

/// The member of an answer that stores the client's original text.
pub(super) const ANSWER_TEXT: &str = "loomline.text";

/// A call that waits for a person or a client.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingCallView {
    /// The thread that has the call: the task's, or a sub-agent's.
    pub thread_key: String,
    /// The call.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// Whether the answer is the tool's result. Otherwise it is an approval or a denial.
    pub is_external: bool,
    /// The arguments.
    pub input: Option<Value>,
}

impl PendingCallView {
    /// The call, if it waits for a person or a client. `None` if it waits for another call or for a
    /// sub-agent.
    pub fn of(thread_key: &str, call: &OpenCall) -> Option<Self> {
        let is_external = match call.kind {
            OpenKind::Approval => false,
            OpenKind::External => true,
            OpenKind::Others | OpenKind::Child => return None,
        };
        let tool = ToolPart::read(&call.part);
        let name = tool.as_ref().map(|tool| tool.tool_name().to_owned());
        Some(Self {
            thread_key: thread_key.to_owned(),
            tool_call_id: call.tool_call_id.clone(),
            tool_name: name.unwrap_or_default(),
            is_external,
            input: tool.and_then(|tool| Some(tool.input?.value())),
        })
    }

    fn data(&self) -> Value {
        let kind = if self.is_external {
            "result"
        } else {
            "approval"
        };
        let mut data = json!({
            "toolCallId": self.tool_call_id, "toolName": self.tool_name, "asks": kind,
            "threadKey": self.thread_key,
        });
        if let Some(input) = &self.input {
            data["input"] = input.clone();
        }
        data
    }
}

/// The parts of the status message that lists the pending calls: one text and one data part.
pub(super) fn question_parts(asked: &[PendingCallView]) -> Vec<Value> {
    if asked.is_empty() {
        let text = "A sub-agent waits for an answer. Get the task to see what it asks.";
        return vec![json!({ "text": text })];
    }
    let lines = asked.iter().map(|call| {
        let (id, name) = (&call.tool_call_id, &call.tool_name);
        if call.is_external {
            format!(
                "The result of the tool {name:?} is wanted: answer with the data {{\"toolCallId\": {id:?}, \"output\": …}} or \"errorText\"."
            )
        } else {
            format!(
                "May the tool {name:?} run? Answer with the data {{\"toolCallId\": {id:?}, \"approved\": true}} or false."
            )
        }
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let calls: Vec<Value> = asked.iter().map(PendingCallView::data).collect();
    vec![
        json!({ "text": text }),
        json!({"data": {"calls": calls}, "mediaType": "application/json"}),
    ]
}

/// A message that answers.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskAnswer {
    /// The answers; one at least.
    pub answers: Vec<ReplyAnswer>,
    /// The message's other parts, in the log's form.
    pub messages: Vec<Value>,
}

/// One answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplyAnswer {
    /// JSON pointer to the answer in the request.
    pub pointer: String,
    /// The thread that has the call, if the client names it.
    pub thread_key: Option<String>,
    /// The call.
    pub tool_call_id: String,
    /// The answer, as a part of the log's.
    pub part: Value,
}

impl TaskAnswer {
    /// Reads a message to a task with pending calls. An answer is a data part with a `toolCallId`, or
    /// a text that is such an object. Other parts accompany the answers. If the only pending call
    /// needs a result, a message without such a part is that result. An approval is never inferred
    /// from words.
    ///
    /// # Errors
    ///
    /// The message has no answer, or a part is malformed. The error names the place and the expected
    /// form.
    pub fn read(message: &Incoming, asked: &[PendingCallView]) -> Result<Self, RequestError> {
        let (mut answers, mut beside) = (Vec::new(), Vec::new());
        for (pointer, said) in message.placed() {
            match object(said).filter(|fields| fields.contains_key("toolCallId")) {
                Some(fields) => {
                    let text = said.get("text").and_then(Value::as_str);
                    answers.push(answer(fields, pointer, text)?);
                }
                None => beside.push(part::read(said, &pointer)?),
            }
        }
        if !answers.is_empty() {
            return Ok(Self {
                answers,
                messages: beside,
            });
        }
        if let [only] = asked
            && only.is_external
        {
            let output = whole(message)?;
            let text = output
                .as_str()
                .filter(|_| is_text(message))
                .map(str::to_owned);
            let fields = Map::from_iter([
                ("toolCallId".to_owned(), only.tool_call_id.as_str().into()),
                ("threadKey".to_owned(), only.thread_key.as_str().into()),
                ("output".to_owned(), output),
            ]);
            let pointer = format!("{}/parts", message.pointer);
            let answer = answer(fields, pointer, text.as_deref())?;
            return Ok(Self {
                answers: vec![answer],
                messages: Vec::new(),
            });
        }
        Err(message.wrong_parts(
            "the task waits for answers: expected a data part {\"toolCallId\": …} with \"approved\", \"output\" or \"errorText\"",
        ))
    }
}

/// The object that a part is, as data or as a text.
pub(super) fn object(part: &Value) -> Option<Map<String, Value>> {
    let data = match (part.get("data"), part.get("text").and_then(Value::as_str)) {
        (Some(data), _) => data.clone(),
        (None, Some(text)) if text.trim_start().starts_with('{') => {
            serde_json::from_str(text).ok()?
        }
        (None, _) => return None,
    };
    match data {
        Value::Object(fields) => Some(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            None
        }
    }
}

/// Reads an answer, and stores the client's text with it.
fn answer(
    mut fields: Map<String, Value>,
    pointer: String,
    text: Option<&str>,
) -> Result<ReplyAnswer, RequestError> {
    let thread_key = match fields.remove("threadKey") {
        None | Some(Value::Null) => None,
        Some(Value::String(key)) => Some(key),
        Some(_) => {
            let what = "expected a string as threadKey";
            return Err(RequestError::param(pointer, what));
        }
    };
    fields.insert("type".to_owned(), ANSWER.into());
    fields.remove(ANSWER_TEXT);
    if let Some(text) = text {
        fields.insert(ANSWER_TEXT.to_owned(), text.into());
    }
    let part = Value::Object(fields);
    let read = Answer::read(Some(&json!([part]).into()));
    let read = read.map_err(|error| unfit(&pointer, &error))?;
    let Some(read) = read.into_iter().next() else {
        return Err(RequestError::new(ErrorKind::Internal, "an answer was lost"));
    };
    Ok(ReplyAnswer {
        pointer,
        thread_key,
        tool_call_id: read.tool_call_id,
        part,
    })
}

/// Turns an error about an answer's form into a request error. It avoids the log's own names.
fn unfit(pointer: &str, error: &ContentError) -> RequestError {
    match error {
        ContentError::Reinterpreted {
            field, expected, ..
        } => RequestError::param(
            pointer,
            format_args!("expected {expected} as the answer's {field:?}"),
        ),
        ContentError::NotAPart { .. }
        | ContentError::NotAList
        | ContentError::NotContent { .. }
        | ContentError::NotNamespaced { .. } => RequestError::param(pointer, error),
    }
}

/// Whether all parts of a message are texts.
fn is_text(message: &Incoming) -> bool {
    message.parts.iter().all(|part| part.get("text").is_some())
}

/// All of a message as one result: a text as it is, data as it is.
fn whole(message: &Incoming) -> Result<Value, RequestError> {
    let texts: Option<Vec<&str>> = message
        .parts
        .iter()
        .map(|part| part.get("text").and_then(Value::as_str))
        .collect();
    match (texts, message.parts.as_slice()) {
        (Some(texts), _) => Ok(texts.join("\n").into()),
        (None, [only]) if only.get("data").is_some() => Ok(only["data"].clone()),
        (None, _) => {
            Err(message.wrong_parts("expected texts, or one data part, as the tool's result"))
        }
    }
}

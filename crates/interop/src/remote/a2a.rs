//! What is said to an agent that speaks A2A 1.0, and what it says.

use super::news::News;
use super::place::{Ask, AskKind};
use super::said::Said;
use serde_json::{Map, Value, json};
use upp::{Arguments, Media, MediaSource, Message, ToolCall, ToolResult, UserContent};

/// The call that stands for a question without a form of its own.
pub const INPUT_REQUIRED: &str = "input_required";
/// The call that stands for a sign-in which the agent waits for.
pub const AUTH_REQUIRED: &str = "auth_required";
/// The refusal of what can't be done with this task, or by this agent.
pub const UNSUPPORTED: i64 = -32_004;

/// A JSON-RPC call.
pub fn call(method: &str, id: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// The parameters that send a message. `context` is that of the conversation; `task` the task that it answers.
pub fn message(id: &str, context: Option<&str>, task: Option<&str>, parts: &[Value]) -> Value {
    let mut message = json!({"messageId": id, "role": "ROLE_USER", "parts": parts});
    for (key, value) in [("contextId", context), ("taskId", task)] {
        if let Some(value) = value {
            message[key] = value.into();
        }
    }
    json!({ "message": message })
}

/// What the agent has not heard, as parts: answers to what it asks first.
pub fn parts(news: &News<'_>) -> Vec<Value> {
    let mut parts = Vec::new();
    if !news.superseded {
        for result in &news.results {
            parts.extend(answer(news, result));
        }
    }
    if news.cut {
        parts.push(json!({"text": "(Earlier messages are left out.)"}));
    }
    // A conversation of others is told with its speakers.
    let told = news
        .messages
        .iter()
        .any(|it| matches!(it, Message::Assistant(_)));
    for message in &news.messages {
        match message {
            Message::User(user) => {
                if told {
                    parts.push(json!({"text": "User:"}));
                }
                parts.extend(user.content.iter().filter_map(part));
            }
            Message::Assistant(answer) => {
                let text = answer.joined_text();
                if !text.is_empty() {
                    parts.push(json!({"text": format!("Agent:\n{text}")}));
                }
            }
            Message::ToolResult(_) => {}
        }
    }
    parts
}

/// The answer to one thing that the agent asks.
fn answer(news: &News<'_>, result: &ToolResult) -> Vec<Value> {
    let ask = news.place.as_ref();
    let ask = ask.and_then(|place| place.ask(result.tool_call_id.as_str()));
    let value = result.result.value().clone();
    let Some(Ask {
        id: Some(id),
        kind: kind @ (AskKind::Result | AskKind::Approval),
        thread_key,
        ..
    }) = ask
    else {
        if let Value::String(text) = value {
            return vec![json!({ "text": text })];
        }
        if let Value::Array(list) = &value
            && !list.is_empty()
            && list.iter().all(Value::is_object)
        {
            return list.iter().map(|data| json!({ "data": data })).collect();
        }
        return vec![json!({ "data": value })];
    };
    let mut data = Map::new();
    data.insert("toolCallId".to_owned(), id.as_str().into());
    if let Some(key) = thread_key {
        data.insert("threadKey".to_owned(), key.as_str().into());
    }
    match (kind, value) {
        (AskKind::Approval, Value::Object(said))
            if said.get("approved").is_some_and(Value::is_boolean) =>
        {
            let wanted = ["approved", "arguments", "message"];
            data.extend(
                said.into_iter()
                    .filter(|(key, _)| wanted.contains(&key.as_str())),
            );
        }
        // Words are no leave.
        (AskKind::Approval, value) => {
            data.insert("approved".to_owned(), false.into());
            data.insert("message".to_owned(), text_of(&value).into());
        }
        (_, value) if result.is_error => {
            data.insert("errorText".to_owned(), text_of(&value).into());
        }
        (_, value) => {
            data.insert("output".to_owned(), value);
        }
    }
    vec![json!({ "data": data })]
}

fn text_of(value: &Value) -> String {
    let text = value.as_str().map(str::to_owned);
    text.unwrap_or_else(|| value.to_string())
}

fn part(content: &UserContent) -> Option<Value> {
    let media = match content {
        UserContent::Text { text } => return Some(json!({ "text": text })),
        UserContent::Image(media)
        | UserContent::Document(media)
        | UserContent::Audio(media)
        | UserContent::Video(media)
        | UserContent::Binary(media) => media,
    };
    if let Some(text) = media.text() {
        return Some(json!({ "text": text }));
    }
    let mut part = match (media.url(), media.base64()) {
        (Some(url), _) => json!({ "url": url }),
        (None, Some(data)) => json!({ "raw": data }),
        (None, None) => return None,
    };
    part["mediaType"] = media.mime_type.as_str().into();
    if let Some(title) = &media.title {
        part["filename"] = title.as_str().into();
    }
    Some(part)
}

/// Why what an agent says can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// It refuses the call.
    #[error("it refuses: {message} ({code})")]
    Refused {
        /// The code of JSON-RPC, or A2A's.
        code: i64,
        /// What it says.
        message: String,
    },
    /// It is not what the protocol says.
    #[error("{0}")]
    Malformed(&'static str),
}

/// What a JSON-RPC answer has.
///
/// # Errors
///
/// See [`Unread`].
pub fn result(answer: &Value) -> Result<&Value, Unread> {
    if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
        let message = error.get("message").and_then(Value::as_str);
        return Err(Unread::Refused {
            code: error
                .get("code")
                .and_then(Value::as_i64)
                .unwrap_or_default(),
            message: message.unwrap_or_default().chars().take(500).collect(),
        });
    }
    let what = "the answer is no JSON-RPC response";
    answer.get("result").ok_or(Unread::Malformed(what))
}

/// How a task ended, or why it waits.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// It is done.
    Completed,
    /// It asks something: these are calls here.
    Asks(Vec<ToolCall>, Vec<Ask>),
    /// It failed, was rejected, or was stopped there; in words.
    Failed(String),
}

/// Reads what an agent says of one task.
#[derive(Debug)]
pub struct Reader {
    said: Said,
    /// The task.
    pub task: Option<String>,
    /// Its context.
    pub context: Option<String>,
    /// How it ended, once it has.
    pub end: Option<End>,
}

impl Reader {
    /// For an answer; `known` is what was said before it in the same conversation.
    pub fn after<'a>(known: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            said: Said::after(known),
            task: None,
            context: None,
            end: None,
        }
    }

    /// What was said so far.
    pub fn said(&mut self) -> &mut Said {
        &mut self.said
    }

    /// Takes one event of a stream, or the answer to a message.
    ///
    /// # Errors
    ///
    /// [`Unread::Malformed`].
    pub fn take(&mut self, response: &Value) -> Result<(), Unread> {
        if let Some(task) = response.get("task") {
            return self.task(task);
        }
        if let Some(message) = response.get("message") {
            self.learn(message.get("taskId"), message.get("contextId"));
            self.spoken(message);
            self.end = Some(End::Completed);
            return Ok(());
        }
        if let Some(update) = response.get("statusUpdate") {
            self.learn(update.get("taskId"), update.get("contextId"));
            return self.status(update.get("status"));
        }
        if let Some(update) = response.get("artifactUpdate") {
            self.learn(update.get("taskId"), update.get("contextId"));
            self.artifact(update);
            return Ok(());
        }
        Err(Unread::Malformed(
            "an event is neither task, message, statusUpdate nor artifactUpdate",
        ))
    }

    /// Takes a task as it stands.
    ///
    /// # Errors
    ///
    /// [`Unread::Malformed`].
    pub fn task(&mut self, task: &Value) -> Result<(), Unread> {
        if !task.get("id").is_some_and(Value::is_string) {
            return Err(Unread::Malformed("a task has no id"));
        }
        self.learn(task.get("id"), task.get("contextId"));
        let artifacts = task.get("artifacts").and_then(Value::as_array);
        for artifact in artifacts.into_iter().flatten() {
            self.whole(artifact);
        }
        self.status(task.get("status"))
    }

    fn learn(&mut self, task: Option<&Value>, context: Option<&Value>) {
        let text = |value: Option<&Value>| Some(value?.as_str()?.to_owned());
        self.task = text(task).or_else(|| self.task.take());
        self.context = text(context).or_else(|| self.context.take());
    }

    fn status(&mut self, status: Option<&Value>) -> Result<(), Unread> {
        let state = status.and_then(|status| status.get("state")?.as_str());
        let state = state.ok_or(Unread::Malformed("a task has no state"))?;
        let message = status.and_then(|status| status.get("message"));
        let words = || message.map(words).unwrap_or_default();
        match state.strip_prefix("TASK_STATE_").unwrap_or(state) {
            "SUBMITTED" => self.end = None,
            "WORKING" => {
                self.end = None;
                if let Some(message) = message {
                    self.spoken(message);
                }
            }
            "COMPLETED" => {
                if let Some(message) = message {
                    self.spoken(message);
                }
                self.end = Some(End::Completed);
            }
            "INPUT_REQUIRED" => self.asks(message, INPUT_REQUIRED),
            "AUTH_REQUIRED" => self.asks(message, AUTH_REQUIRED),
            "FAILED" => self.end = Some(End::Failed(format!("the task failed: {}", words()))),
            "REJECTED" => self.end = Some(End::Failed(format!("it won't do that: {}", words()))),
            "CANCELED" => self.end = Some(End::Failed("the task was stopped there".into())),
            _ => {
                return Err(Unread::Malformed(
                    "a task is in a state that A2A 1.0 has not",
                ));
            }
        }
        Ok(())
    }

    /// What a task asks: each call that it names, or what it says in words.
    fn asks(&mut self, message: Option<&Value>, name: &str) {
        let parts = message.and_then(|message| message.get("parts")?.as_array());
        let named = parts.into_iter().flatten();
        let named = named.filter_map(|part| part.get("data")?.get("calls")?.as_array());
        let mut calls: Vec<ToolCall> = Vec::new();
        let mut asks = Vec::new();
        for named in named.flatten() {
            let text = |field: &str| named.get(field).and_then(Value::as_str);
            let (Some(id), Some(tool)) = (text("toolCallId"), text("toolName")) else {
                continue;
            };
            let kind = match text("asks") {
                Some("approval") => AskKind::Approval,
                Some(_) | None => AskKind::Result,
            };
            let n = calls.len();
            let is_taken = calls.iter().any(|call| call.tool_call_id.as_str() == id);
            let call = if is_taken {
                format!("{id}-{n}")
            } else {
                id.to_owned()
            };
            let input = named.get("input").filter(|input| input.is_object());
            let input = input.map_or_else(|| "{}".to_owned(), Value::to_string);
            calls.push(call_of(&call, tool, &input));
            asks.push(Ask {
                call,
                id: Some(id.to_owned()),
                thread_key: text("threadKey").map(str::to_owned),
                kind,
            });
        }
        if calls.is_empty() {
            let question = message.map(words).unwrap_or_default();
            if let Some(message) = message {
                self.spoken(message);
            }
            let id = format!("{name}-{}", self.task.as_deref().unwrap_or_default());
            let input = json!({ "message": question }).to_string();
            calls.push(call_of(&id, name, &input));
            asks.push(Ask {
                call: id,
                id: None,
                thread_key: None,
                kind: AskKind::Words,
            });
        }
        self.end = Some(End::Asks(calls, asks));
    }

    /// A message as something said by itself.
    fn spoken(&mut self, message: &Value) {
        let id = message.get("messageId").and_then(Value::as_str);
        let name = format!("message {}", id.unwrap_or_default());
        self.said.whole(&name, &words(message));
        let parts = message.get("parts").and_then(Value::as_array);
        self.files(parts.into_iter().flatten());
    }

    fn artifact(&mut self, update: &Value) {
        let artifact = update.get("artifact").unwrap_or(&Value::Null);
        let goes_on = update.get("append").and_then(Value::as_bool) == Some(true);
        if !goes_on {
            return self.whole(artifact);
        }
        self.said.push(&named(artifact), &words(artifact));
        let parts = artifact.get("parts").and_then(Value::as_array);
        self.files(parts.into_iter().flatten());
    }

    fn whole(&mut self, artifact: &Value) {
        self.said.whole(&named(artifact), &words(artifact));
        let parts = artifact.get("parts").and_then(Value::as_array);
        self.files(parts.into_iter().flatten());
    }

    fn files<'a>(&mut self, parts: impl Iterator<Item = &'a Value>) {
        for part in parts {
            let text = |field: &str| part.get(field).and_then(Value::as_str);
            let source = match (text("raw"), text("url")) {
                (Some(data), _) => MediaSource::Base64 {
                    data: data.to_owned(),
                },
                (None, Some(url)) => MediaSource::Url {
                    url: url.to_owned(),
                },
                (None, None) => continue,
            };
            let kind = text("mediaType").unwrap_or("application/octet-stream");
            let media = Media::new(source, kind);
            self.said
                .file(media.with_title(text("filename").map(str::to_owned)));
        }
    }
}

fn named(artifact: &Value) -> String {
    let id = artifact.get("artifactId").and_then(Value::as_str);
    format!("artifact {}", id.unwrap_or_default())
}

/// The texts of something with parts; data as its JSON.
fn words(of: &Value) -> String {
    let parts = of.get("parts").and_then(Value::as_array);
    let texts = parts.into_iter().flatten().filter_map(|part| {
        let text = part.get("text").and_then(Value::as_str).map(str::to_owned);
        text.or_else(|| part.get("data").map(Value::to_string))
    });
    texts.collect()
}

fn call_of(id: &str, name: &str, input: &str) -> ToolCall {
    ToolCall {
        tool_call_id: id.into(),
        tool_name: name.into(),
        arguments: Arguments::from_text(input),
        after: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Place;
    use super::*;
    use upp::{AssistantContent, AssistantMessage, MessageOptions, Messages, ToolResultMessage};

    fn texts(reader: &mut Reader) -> Vec<String> {
        let content = reader.said().content().into_iter();
        content
            .filter_map(|block| match block {
                AssistantContent::Text { text } => Some(text),
                AssistantContent::Reasoning { .. }
                | AssistantContent::Image(_)
                | AssistantContent::Audio(_)
                | AssistantContent::Video(_) => None,
            })
            .collect()
    }

    fn status(state: &str, parts: &Value) -> Value {
        let message = json!({"messageId": "m", "parts": parts});
        let status = json!({"state": format!("TASK_STATE_{state}"), "message": message});
        json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": status}})
    }

    fn artifact(text: &str, append: bool) -> Value {
        let artifact = json!({"artifactId": "answer", "parts": [{ "text": text }]});
        json!({"artifactUpdate": {"taskId": "t", "artifact": artifact, "append": append}})
    }

    #[test]
    fn a_stream_is_read_and_read_again_without_saying_anything_twice() {
        let mut reader = Reader::after(["earlier"]);
        let task = json!({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"},
            "artifacts": [{"artifactId": "answer", "parts": [{"text": "earlier"}]}]}});
        for event in [
            task.clone(),
            artifact("First ", false),
            artifact("thing.", true),
            status("WORKING", &json!([{"text": "First thing."}])),
            // As it is sent again to who comes back.
            task,
            artifact("First thing.", false),
            artifact("Then this.", false),
            status("COMPLETED", &json!([])),
        ] {
            reader.take(&event).unwrap();
        }
        assert_eq!(texts(&mut reader), ["First thing.", "Then this."]);
        assert_eq!(reader.end, Some(End::Completed));
        assert_eq!(
            (reader.task.as_deref(), reader.context.as_deref()),
            (Some("t"), Some("c"))
        );
    }

    #[test]
    fn a_question_in_words_is_one_call_and_named_calls_are_theirs() {
        let mut reader = Reader::after([]);
        reader
            .take(&status("INPUT_REQUIRED", &json!([{"text": "Which one?"}])))
            .unwrap();
        let Some(End::Asks(calls, asks)) = &reader.end else {
            panic!("{:?}", reader.end)
        };
        assert_eq!(&*calls[0].tool_name, INPUT_REQUIRED);
        assert_eq!(calls[0].arguments.text(), r#"{"message":"Which one?"}"#);
        assert_eq!(asks[0].kind, AskKind::Words);
        assert_eq!(texts(&mut reader), ["Which one?"]);
        let named = json!([{"text": "May it?"}, {"data": {"calls": [
            {"toolCallId": "1", "toolName": "pay", "asks": "approval", "input": {"n": 1}},
            {"toolCallId": "1", "toolName": "look", "asks": "result", "threadKey": "k"},
        ]}}]);
        let mut reader = Reader::after([]);
        reader.take(&status("INPUT_REQUIRED", &named)).unwrap();
        let Some(End::Asks(calls, asks)) = &reader.end else {
            panic!("{:?}", reader.end)
        };
        let ids: Vec<&str> = calls
            .iter()
            .map(|call| call.tool_call_id.as_str())
            .collect();
        assert_eq!(ids, ["1", "1-1"]);
        assert_eq!(
            (asks[0].kind, asks[1].kind),
            (AskKind::Approval, AskKind::Result)
        );
        assert_eq!(asks[1].thread_key.as_deref(), Some("k"));
    }

    #[test]
    fn answers_go_to_what_asked_and_words_are_no_leave() {
        let ask = |call: &str, kind| Ask {
            call: call.into(),
            id: Some(format!("far-{call}")),
            thread_key: None,
            kind,
        };
        let place = Place {
            agent: "a".into(),
            at: "u".into(),
            conversation: "t".into(),
            context: Some("c".into()),
            run: Some("r".into()),
            asks: vec![
                ask("1", AskKind::Approval),
                ask("2", AskKind::Approval),
                ask("3", AskKind::Result),
                ask("4", AskKind::Result),
            ],
        };
        let result = |id: &str, value: Value, is_error| ToolResult {
            tool_call_id: id.into(),
            result: value.into(),
            is_error,
        };
        let results = vec![
            result("1", json!({"approved": true, "more": 1}), false),
            result("2", json!("yes"), false),
            result("3", json!([1]), false),
            result("4", json!("no net"), true),
        ];
        let options = MessageOptions {
            metadata: Some(place.metadata()),
            ..MessageOptions::default()
        };
        let messages: Messages = [
            Message::from(AssistantMessage::new(Vec::new(), Vec::new(), options)),
            ToolResultMessage::new(results, MessageOptions::default()).into(),
            "and hurry".into(),
        ]
        .into_iter()
        .collect();
        let news = News::of(&messages, "a", "u", "t");
        let data: Vec<Value> = parts(&news).into_iter().collect();
        assert_eq!(
            data,
            [
                json!({"data": {"toolCallId": "far-1", "approved": true}}),
                json!({"data": {"toolCallId": "far-2", "approved": false, "message": "yes"}}),
                json!({"data": {"toolCallId": "far-3", "output": [1]}}),
                json!({"data": {"toolCallId": "far-4", "errorText": "no net"}}),
                json!({"text": "and hurry"}),
            ]
        );
    }

    #[test]
    fn what_is_no_answer_is_refused_with_its_words() {
        let refused = json!({"jsonrpc": "2.0", "error": {"code": -32001, "message": "gone"}});
        let error = Unread::Refused {
            code: -32_001,
            message: "gone".into(),
        };
        assert_eq!(result(&refused), Err(error));
        for wrong in [json!([]), json!({"jsonrpc": "2.0"})] {
            assert!(
                matches!(result(&wrong), Err(Unread::Malformed(_))),
                "{wrong}"
            );
        }
        for wrong in [
            json!({}),
            json!({"task": {}}),
            json!({"statusUpdate": {"status": {"state": "TASK_STATE_NEW"}}}),
        ] {
            let read = Reader::after([]).take(&wrong);
            assert!(matches!(read, Err(Unread::Malformed(_))), "{wrong}");
        }
    }
}

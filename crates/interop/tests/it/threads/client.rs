//! What the official clients' stream helpers do with events, and what they assert on the way.

use super::schema;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The frames of a stream: each has an event's name and one line of data.
pub(crate) fn frames(text: &str) -> Vec<(String, Value)> {
    let frames = text.split_terminator("\n\n").map(|frame| {
        let (name, data) = frame.split_once('\n').unwrap();
        let name = name.strip_prefix("event: ").unwrap();
        let data = data.strip_prefix("data: ").unwrap();
        assert!(!data.contains('\n'), "{frame}");
        let data = match data {
            "[DONE]" => Value::Null,
            data => serde_json::from_str(data).unwrap(),
        };
        (name.to_owned(), data)
    });
    frames.collect()
}

/// A client that follows a run through any number of streams.
#[derive(Default)]
pub(crate) struct Client {
    pub(crate) messages: BTreeMap<String, Value>,
    pub(crate) steps: BTreeMap<String, Value>,
    pub(crate) run: Option<Value>,
    pub(crate) names: Vec<String>,
    open_message: Option<String>,
    /// Which part of a message was shown last; Python's helper never forgets it.
    shown: Option<usize>,
}

/// The legal moves of a run.
const MOVES: [(&str, &[&str]); 5] = [
    ("queued", &["in_progress", "cancelled", "expired"]),
    (
        "in_progress",
        &[
            "completed",
            "incomplete",
            "failed",
            "requires_action",
            "cancelling",
            "expired",
        ],
    ),
    (
        "requires_action",
        &["queued", "cancelling", "cancelled", "expired"],
    ),
    ("cancelling", &["cancelled", "completed"]),
    ("created", &["queued"]),
];

impl Client {
    /// Reads a stream to its end.
    pub(crate) fn read(&mut self, text: &str) {
        let frames = frames(text);
        assert_eq!(
            frames.last().map(|(name, _)| name.as_str()),
            Some("done"),
            "{text}"
        );
        for (name, data) in frames {
            assert_ne!(
                self.names.last().map(String::as_str),
                Some("done"),
                "{name}"
            );
            schema::check_event(&name, &data);
            self.take(&name, &data);
            self.names.push(name);
        }
        self.names.pop();
    }

    fn take(&mut self, name: &str, data: &Value) {
        match name {
            "thread.created" => assert!(self.run.is_none()),
            "done" => assert_eq!(self.open_message, None),
            "error" => panic!("{data}"),
            _ if name.starts_with("thread.message.") => self.message(name, data),
            _ if name.starts_with("thread.run.step.") => self.step(name, data),
            _ => self.run(name, data),
        }
    }

    fn run(&mut self, name: &str, data: &Value) {
        let moved = name.strip_prefix("thread.run.").unwrap();
        let before = match &self.run {
            None => {
                assert_eq!(moved, "created");
                "new"
            }
            Some(_) if self.names.last().map(String::as_str) == Some("thread.run.created") => {
                "created"
            }
            Some(run) => run["status"].as_str().unwrap(),
        };
        if before != "new" {
            let (_, legal) = MOVES
                .iter()
                .find(|(from, _)| *from == before)
                .unwrap_or_else(|| panic!("{before} is the end, and {moved} came"));
            assert!(legal.contains(&moved), "{before} -> {moved}");
            assert_eq!(data["status"], moved);
        }
        let is_over = !matches!(
            moved,
            "created" | "queued" | "in_progress" | "requires_action" | "cancelling"
        );
        assert!(is_over || data["usage"].is_null(), "{data}");
        assert_eq!(
            data["required_action"].is_null(),
            moved != "requires_action"
        );
        if is_over {
            assert!(data["expires_at"].is_null());
            let open = |all: &BTreeMap<String, Value>| {
                all.values().any(|it| it["status"] == "in_progress")
            };
            assert!(
                !open(&self.messages) && !open(&self.steps),
                "{:#?}",
                self.steps
            );
        }
        self.run = Some(data.clone());
    }

    fn message(&mut self, name: &str, data: &Value) {
        let id = data["id"].as_str().unwrap().to_owned();
        match name {
            "thread.message.created" => {
                assert_eq!(data["content"], json!([]));
                assert_eq!(self.open_message.as_ref().filter(|open| **open != id), None);
                self.open_message = Some(id.clone());
                self.messages.insert(id, data.clone());
            }
            "thread.message.in_progress" => assert_eq!(self.open_message.as_ref(), Some(&id)),
            "thread.message.delta" => {
                // "Received a delta with no existing snapshot".
                assert_eq!(
                    self.open_message.as_ref(),
                    Some(&id),
                    "a delta before its message"
                );
                let content = &mut self.messages.get_mut(&id).unwrap()["content"];
                let content = content.as_array_mut().unwrap();
                for delta in data["delta"]["content"].as_array().unwrap() {
                    grow(content, delta);
                    let index = usize::try_from(delta["index"].as_u64().unwrap());
                    self.shown = Some(index.unwrap());
                }
            }
            _ => {
                assert_eq!(self.open_message.take().as_ref(), Some(&id));
                let seen = texts(&self.messages[&id]);
                let told = texts(data);
                // Python's helper takes the part that it was shown last from here.
                assert!(self.shown.is_none_or(|shown| shown < told.len()), "{data}");
                let is_void = told.iter().all(|text| *text == "");
                if !is_void {
                    // One that came to nothing may have parts that dead attempts had shown.
                    let (known, more) = told.split_at(seen.len().min(told.len()));
                    assert_eq!(seen, known, "the deltas are not the message");
                    let is_cut_off = data["status"] == "incomplete";
                    assert!(more.is_empty() || is_cut_off, "{data}");
                    assert!(more.iter().all(|text| *text == ""), "{data}");
                }
                self.messages.insert(id, data.clone());
            }
        }
    }

    fn step(&mut self, name: &str, data: &Value) {
        let id = data["id"].as_str().unwrap().to_owned();
        match name {
            "thread.run.step.created" => {
                self.steps.insert(id, data.clone());
            }
            "thread.run.step.in_progress" => assert!(self.steps.contains_key(&id)),
            "thread.run.step.delta" => {
                let step = self.steps.get_mut(&id).expect("a delta before its step");
                let calls = step["step_details"]["tool_calls"].as_array_mut().unwrap();
                let deltas = &data["delta"]["step_details"]["tool_calls"];
                for delta in deltas.as_array().unwrap() {
                    call(calls, delta);
                }
            }
            _ => {
                let seen = self.steps.insert(id, data.clone());
                let seen = seen.expect("the end of a step that nobody was told of");
                let list = |step: &Value| step["step_details"]["tool_calls"].as_array().cloned();
                let (Some(seen), Some(told)) = (list(&seen), list(data)) else {
                    return;
                };
                let shown = |calls: &[Value]| -> Vec<Value> {
                    calls
                        .iter()
                        .map(|it| {
                            json!([
                                it["id"],
                                it["function"]["name"],
                                it["function"]["arguments"]
                            ])
                        })
                        .collect()
                };
                if !told.is_empty() {
                    assert_eq!(shown(&seen), shown(&told), "the deltas are not the calls");
                }
            }
        }
    }
}

/// Puts a delta where its index says, as the helpers do.
fn grow(content: &mut Vec<Value>, delta: &Value) {
    let index = usize::try_from(delta["index"].as_u64().unwrap()).unwrap();
    if index == content.len() {
        if delta["type"] == "text" {
            assert_eq!(
                delta["text"]["annotations"],
                json!([]),
                "the first delta of a text"
            );
        }
        content.push(delta.clone());
        return;
    }
    let text = &mut content[index]["text"];
    assert!(delta["text"].get("annotations").is_none());
    let value = format!(
        "{}{}",
        text["value"].as_str().unwrap(),
        delta["text"]["value"].as_str().unwrap()
    );
    text["value"] = value.into();
}

fn call(calls: &mut Vec<Value>, delta: &Value) {
    let index = usize::try_from(delta["index"].as_u64().unwrap()).unwrap();
    if index == calls.len() {
        assert!(delta["id"].is_string() && delta["function"]["name"].is_string());
        assert_eq!(delta["function"].get("output"), Some(&Value::Null));
        calls.push(delta.clone());
        return;
    }
    assert!(delta.get("id").is_none() && delta["function"].get("name").is_none());
    let arguments = &mut calls[index]["function"]["arguments"];
    let more = delta["function"]["arguments"].as_str().unwrap();
    *arguments = format!("{}{more}", arguments.as_str().unwrap()).into();
}

fn texts(message: &Value) -> Vec<Value> {
    let content = message["content"].as_array().unwrap();
    content
        .iter()
        .map(|part| part["text"]["value"].clone())
        .collect()
}

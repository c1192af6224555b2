//! A message from the chunks of its stream, as the client of `ai` 7 builds it.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Why a client would give up on a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReduceError {
    /// A chunk has a type that clients don't know.
    #[error("chunk {place} has the unknown type {kind:?}")]
    UnknownType {
        /// Its place in the stream.
        place: usize,
        /// The type.
        kind: String,
    },
    /// A chunk goes on with what never began.
    #[error("chunk {place} of type {kind:?} goes on with {id:?}, which never began")]
    NotBegun {
        /// Its place in the stream.
        place: usize,
        /// The type.
        kind: String,
        /// The block or call.
        id: String,
    },
}

/// Builds the message. While the arguments of a call are still coming, `input` is there only where
/// what came is whole JSON; the client also shows repaired pieces.
pub fn reduce<'a>(chunks: impl IntoIterator<Item = &'a Value>) -> Result<Value, ReduceError> {
    let mut message = Message::default();
    for (place, chunk) in chunks.into_iter().enumerate() {
        message
            .take(chunk)
            .map_err(|fault| fault.at(place, chunk))?;
    }
    Ok(message.into_value())
}

/// What is wrong with one chunk.
enum Fault {
    Unknown,
    NotBegun(String),
}

impl Fault {
    fn at(self, place: usize, chunk: &Value) -> ReduceError {
        let kind = text(chunk, "type").to_owned();
        match self {
            Self::Unknown => ReduceError::UnknownType { place, kind },
            Self::NotBegun(id) => ReduceError::NotBegun { place, kind, id },
        }
    }
}

#[derive(Default)]
struct Message {
    id: Option<Value>,
    metadata: Option<Value>,
    parts: Vec<Value>,
    /// The parts of the blocks that are open, by type and id.
    blocks: BTreeMap<(&'static str, String), usize>,
    /// The arguments of calls as they come.
    inputs: BTreeMap<String, String>,
}

fn text<'a>(chunk: &'a Value, key: &str) -> &'a str {
    chunk.get(key).and_then(Value::as_str).unwrap_or_default()
}

impl Message {
    fn take(&mut self, chunk: &Value) -> Result<(), Fault> {
        match text(chunk, "type") {
            "start" | "finish" | "message-metadata" => self.tell(chunk),
            "start-step" => self.parts.push(json!({"type": "step-start"})),
            "finish-step" | "error" | "abort" => {}
            "reset-step" => self.reset(),
            "text-start" => self.begin("text", chunk),
            "reasoning-start" => self.begin("reasoning", chunk),
            "text-delta" => return self.grow("text", chunk),
            "reasoning-delta" => return self.grow("reasoning", chunk),
            "text-end" => return self.end("text", chunk),
            "reasoning-end" => return self.end("reasoning", chunk),
            "file" | "reasoning-file" => self.push(chunk, &["mediaType", "url"]),
            "source-url" => self.push(chunk, &["sourceId", "url", "title"]),
            "source-document" => {
                self.push(chunk, &["sourceId", "mediaType", "title", "filename"]);
            }
            "tool-input-start" => {
                let id = text(chunk, "toolCallId").to_owned();
                self.inputs.insert(id, String::new());
                self.call(chunk, "input-streaming", &[]);
            }
            "tool-input-delta" => return self.grow_input(chunk),
            "tool-input-available" => self.call(chunk, "input-available", &["input"]),
            "tool-input-error" => self.call(chunk, "output-error", &["input", "errorText"]),
            "tool-output-available" => {
                return self.answer(chunk, "output-available", &["output", "preliminary"]);
            }
            "tool-output-error" => return self.answer(chunk, "output-error", &["errorText"]),
            "tool-output-denied" => {
                let part = self.called(chunk)?;
                part.insert("state".to_owned(), "output-denied".into());
            }
            kind if kind.starts_with("data-") => self.data(chunk),
            _ => return Err(Fault::Unknown),
        }
        Ok(())
    }

    fn tell(&mut self, chunk: &Value) {
        if let Some(id) = chunk.get("messageId") {
            self.id = Some(id.clone());
        }
        if let Some(more) = chunk.get("messageMetadata").filter(|more| !more.is_null()) {
            let known = self.metadata.take().unwrap_or_default();
            self.metadata = Some(merged(known, more.clone()));
        }
    }

    fn step_start(&self) -> usize {
        let start = self
            .parts
            .iter()
            .rposition(|part| text(part, "type") == "step-start");
        start.map_or(0, |start| start + 1)
    }

    fn reset(&mut self) {
        self.parts.truncate(self.step_start());
        self.blocks.clear();
        self.inputs.clear();
    }

    fn push(&mut self, chunk: &Value, fields: &[&str]) {
        let mut part = Map::new();
        part.insert("type".to_owned(), text(chunk, "type").into());
        copy(&mut part, chunk, fields);
        copy(&mut part, chunk, &["providerMetadata"]);
        self.parts.push(Value::Object(part));
    }

    fn begin(&mut self, kind: &'static str, chunk: &Value) {
        let id = text(chunk, "id").to_owned();
        let mut part = json!({"type": kind, "text": "", "state": "streaming"});
        if let Value::Object(part) = &mut part {
            if kind == "reasoning" {
                part.insert("id".to_owned(), id.as_str().into());
            }
            copy(part, chunk, &["providerMetadata"]);
        }
        self.blocks.insert((kind, id), self.parts.len());
        self.parts.push(part);
    }

    fn block(
        &mut self,
        kind: &'static str,
        chunk: &Value,
    ) -> Result<&mut Map<String, Value>, Fault> {
        let id = text(chunk, "id").to_owned();
        let place = self.blocks.get(&(kind, id.clone())).copied();
        let part = place.and_then(|place| self.parts.get_mut(place)?.as_object_mut());
        part.ok_or(Fault::NotBegun(id))
    }

    fn grow(&mut self, kind: &'static str, chunk: &Value) -> Result<(), Fault> {
        let part = self.block(kind, chunk)?;
        if let Some(Value::String(whole)) = part.get_mut("text") {
            whole.push_str(text(chunk, "delta"));
        }
        copy(part, chunk, &["providerMetadata"]);
        Ok(())
    }

    fn end(&mut self, kind: &'static str, chunk: &Value) -> Result<(), Fault> {
        let part = self.block(kind, chunk)?;
        part.insert("state".to_owned(), "done".into());
        copy(part, chunk, &["providerMetadata", "citations"]);
        self.blocks.remove(&(kind, text(chunk, "id").to_owned()));
        Ok(())
    }

    fn grow_input(&mut self, chunk: &Value) -> Result<(), Fault> {
        let id = text(chunk, "toolCallId");
        let not_begun = || Fault::NotBegun(id.to_owned());
        let input = self.inputs.get_mut(id).ok_or_else(not_begun)?;
        input.push_str(text(chunk, "inputTextDelta"));
        let raw = input.clone();
        let start = self.step_start();
        let part = self.find(start, id).ok_or_else(not_begun)?;
        match serde_json::from_str::<Value>(&raw) {
            Ok(whole) => part.insert("input".to_owned(), whole),
            Err(_) => part.shift_remove("input"),
        };
        part.insert("rawInput".to_owned(), raw.into());
        Ok(())
    }

    fn find(&mut self, from: usize, id: &str) -> Option<&mut Map<String, Value>> {
        let parts = self.parts.get_mut(from..)?;
        parts
            .iter_mut()
            .find(|part| text(part, "toolCallId") == id)?
            .as_object_mut()
    }

    /// Begins a call, or goes on with one of this step.
    fn call(&mut self, chunk: &Value, state: &str, fields: &[&str]) {
        let id = text(chunk, "toolCallId");
        let start = self.step_start();
        if self.find(start, id).is_none() {
            let name = text(chunk, "toolName");
            let mut part = if chunk.get("dynamic") == Some(&Value::Bool(true)) {
                json!({"type": "dynamic-tool", "toolName": name})
            } else {
                json!({"type": format!("tool-{name}")})
            };
            if let Value::Object(part) = &mut part {
                part.insert("toolCallId".to_owned(), id.into());
            }
            self.parts.push(part);
        }
        if let Some(part) = self.find(start, id) {
            part.shift_remove("rawInput");
            part.shift_remove("input");
            part.insert("state".to_owned(), state.into());
            copy(part, chunk, fields);
            copy(part, chunk, &["providerExecuted", "title", "toolMetadata"]);
            if let Some(metadata) = chunk.get("providerMetadata") {
                let own = if state == "output-error" {
                    "resultProviderMetadata"
                } else {
                    "callProviderMetadata"
                };
                part.insert(own.to_owned(), metadata.clone());
            }
        }
    }

    /// The call a result is for: in this step, else the last one before it.
    fn called(&mut self, chunk: &Value) -> Result<&mut Map<String, Value>, Fault> {
        let id = text(chunk, "toolCallId");
        let is_it = |part: &Value| text(part, "toolCallId") == id;
        let start = self.step_start();
        let here = self
            .parts
            .iter()
            .skip(start)
            .position(is_it)
            .map(|place| place + start);
        let place = here.or_else(|| self.parts.iter().rposition(is_it));
        let part = place.and_then(|place| self.parts.get_mut(place)?.as_object_mut());
        part.ok_or_else(|| Fault::NotBegun(id.to_owned()))
    }

    fn answer(&mut self, chunk: &Value, state: &str, fields: &[&str]) -> Result<(), Fault> {
        let part = self.called(chunk)?;
        if state == "output-available" {
            part.shift_remove("rawInput");
        }
        for gone in ["output", "errorText", "preliminary"] {
            part.shift_remove(gone);
        }
        part.insert("state".to_owned(), state.into());
        copy(part, chunk, fields);
        copy(part, chunk, &["providerExecuted", "toolMetadata"]);
        if let Some(metadata) = chunk.get("providerMetadata") {
            part.insert("resultProviderMetadata".to_owned(), metadata.clone());
        }
        Ok(())
    }

    fn data(&mut self, chunk: &Value) {
        if chunk.get("transient") == Some(&Value::Bool(true)) {
            return;
        }
        let same = |part: &&mut Value| {
            chunk.get("id").is_some()
                && part.get("id") == chunk.get("id")
                && part.get("type") == chunk.get("type")
        };
        if let Some(known) = self
            .parts
            .iter_mut()
            .find(same)
            .and_then(Value::as_object_mut)
        {
            copy(known, chunk, &["data"]);
        } else {
            self.push(chunk, &["id", "data"]);
        }
    }

    fn into_value(self) -> Value {
        let mut message = Map::new();
        message.insert("id".to_owned(), self.id.unwrap_or_default());
        if let Some(metadata) = self.metadata {
            message.insert("metadata".to_owned(), metadata);
        }
        message.insert("role".to_owned(), "assistant".into());
        message.insert("parts".to_owned(), Value::Array(self.parts));
        Value::Object(message)
    }
}

fn copy(part: &mut Map<String, Value>, chunk: &Value, fields: &[&str]) {
    for field in fields {
        if let Some(value) = chunk.get(field) {
            part.insert((*field).to_owned(), value.clone());
        }
    }
}

/// Objects are merged member by member, anything else is replaced.
fn merged(known: Value, more: Value) -> Value {
    let (Value::Object(mut known), Value::Object(more)) = (known, more.clone()) else {
        return more;
    };
    // Two levels of a client's own metadata; deeper ones are replaced whole.
    for (key, value) in more {
        match (known.get_mut(&key), value) {
            (Some(Value::Object(inner)), Value::Object(value)) => inner.extend(value),
            (_, value) => {
                known.insert(key, value);
            }
        }
    }
    Value::Object(known)
}

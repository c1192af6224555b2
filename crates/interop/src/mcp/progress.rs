//! What a client is told while a run is at work.

use crate::ai_sdk::{ChunkJson, StreamView};
use crate::run::RunSelector;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use timeline::{ItemId, Record};

/// The major version of `ai` whose chunks are told: the one that can say most.
const MAJOR: u8 = 7;

/// Tells of a run what it says and which tools it calls, in words.
///
/// It is made of the AI SDK's view, which knows what of a log is shown. Each event costs what it says.
#[derive(Clone, Debug)]
pub struct Progress {
    view: StreamView,
    /// The names of the tools that are called, by their calls.
    calls: BTreeMap<String, String>,
}

impl Progress {
    /// Of the execution that answers this item; without one, of whatever runs: what goes on where
    /// something beneath it was answered.
    pub fn new(trigger: Option<ItemId>) -> Self {
        let run = match trigger {
            Some(trigger) => RunSelector::answering(trigger),
            None => RunSelector::running(None),
        };
        Self {
            view: StreamView::new(MAJOR, run),
            calls: BTreeMap::new(),
        }
    }

    /// What one record tells: pieces of the answer as they are said, and what tools are called and have answered.
    pub fn messages(&mut self, record: &Record) -> Vec<String> {
        let mut messages = Vec::new();
        for chunk in self.view.chunks(record) {
            if let ChunkJson::Chunk(Value::Object(chunk)) = chunk {
                messages.extend(self.message(&chunk));
            }
        }
        messages
    }

    fn message(&mut self, chunk: &Map<String, Value>) -> Option<String> {
        let text = |key: &str| chunk.get(key).and_then(Value::as_str).unwrap_or_default();
        let message = match text("type") {
            "text-delta" => text("delta").to_owned(),
            "tool-input-available" => {
                let name = text("toolName").to_owned();
                let message = format!("{name} is called");
                self.calls.insert(text("toolCallId").to_owned(), name);
                message
            }
            "tool-approval-request" => {
                format!("{} waits for approval", self.name(text("toolCallId")))
            }
            "tool-output-available" => format!("{} has answered", self.name(text("toolCallId"))),
            "tool-output-error" => format!("{} has failed", self.name(text("toolCallId"))),
            "tool-output-denied" => format!("{} was not allowed", self.name(text("toolCallId"))),
            _ => return None,
        };
        Some(message).filter(|message| !message.is_empty())
    }

    fn name(&self, call: &str) -> &str {
        self.calls.get(call).map_or("a tool", String::as_str)
    }
}

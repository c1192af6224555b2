//! The end of a request: the last user message and the calls and results since.

use crate::content::UserContent;
use crate::message::{Message, Messages};
use crate::tool::{ToolCall, ToolResult};

/// Longest text a summary quotes, in characters.
const QUOTED: usize = 400;

/// The last user message, and the rounds since.
#[derive(Debug, Default)]
pub(super) struct Situation {
    /// The text blocks of the last user message.
    pub(super) text: String,
    /// The number of its blocks that are not text.
    pub(super) media: usize,
    /// Model calls since.
    pub(super) rounds: usize,
    /// Results since, each with its tool's name, in order.
    pub(super) results: Vec<(String, ToolResult)>,
}

impl Situation {
    /// Reads from the end back to the last user message, and no further.
    pub(super) fn of(messages: &Messages) -> Self {
        let mut situation = Self::default();
        let mut start = messages.len();
        while let Some(message) = start.checked_sub(1).and_then(|at| messages.get(at)) {
            start -= 1;
            if let Message::User(user) = message {
                let texts: Vec<&str> = user.content.iter().filter_map(text_of).collect();
                situation.media = user.content.len() - texts.len();
                situation.text = texts.join("\n\n");
                break;
            }
        }
        let mut calls: Vec<&ToolCall> = Vec::new();
        for message in (start..messages.len()).filter_map(|at| messages.get(at)) {
            match message {
                Message::User(_) => {}
                Message::Assistant(assistant) => {
                    situation.rounds += 1;
                    // Results answer the calls of the message before them.
                    calls = assistant.tool_calls.iter().collect();
                }
                Message::ToolResult(answered) => {
                    for result in &answered.results {
                        let name = calls
                            .iter()
                            .find(|call| call.tool_call_id == result.tool_call_id)
                            .map_or("the tool", |call| &*call.tool_name);
                        situation.results.push((name.to_owned(), result.clone()));
                    }
                }
            }
        }
        situation
    }

    /// Words of the last user message and of the results since.
    pub(super) fn words(&self) -> usize {
        let results = self
            .results
            .iter()
            .map(|(_, result)| match result.result.as_str() {
                Some(text) => words(text),
                None => words(&result.result.to_string()),
            });
        words(&self.text) + results.sum::<usize>()
    }

    /// The tools' results, one sentence each; without results, the user's text repeated.
    pub(super) fn answer(&self) -> String {
        if !self.results.is_empty() {
            let said: Vec<String> = self.results.iter().map(sentence).collect();
            return said.join(" ");
        }
        let media = match self.media {
            0 => String::new(),
            1 => "1 attachment".to_owned(),
            n => format!("{n} attachments"),
        };
        match (self.text.trim(), media.is_empty()) {
            ("", true) => "You said nothing.".to_owned(),
            ("", false) => format!("You sent {media}."),
            (text, true) => format!("You said: {}", short(text)),
            (text, false) => format!("You said: {} (with {media})", short(text)),
        }
    }
}

fn sentence((name, result): &(String, ToolResult)) -> String {
    let given = match result.result.as_str() {
        Some(text) => short(text),
        None => short(&result.result.to_string()),
    };
    let verb = if result.is_error { "failed:" } else { "gave" };
    let stop = if given.ends_with(['.', '!', '?']) {
        ""
    } else {
        "."
    };
    format!("{name} {verb} {given}{stop}")
}

fn short(text: &str) -> String {
    match text.char_indices().nth(QUOTED) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The words of a text, the scripted model's tokens.
pub(super) fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn text_of(block: &UserContent) -> Option<&str> {
    match block {
        UserContent::Text { text } => Some(text),
        UserContent::Image(_)
        | UserContent::Document(_)
        | UserContent::Audio(_)
        | UserContent::Video(_)
        | UserContent::Binary(_) => None,
    }
}

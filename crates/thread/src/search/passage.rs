//! The strings of a thread that people can search.

use crate::document::{Message, Part, PartKind, Thread, Turn};
use crate::json::{Json, ObjectIter};
use crate::path::{Step, pointer};
use std::borrow::Cow;

/// A string of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage<'a> {
    /// The JSON Pointer of the string.
    pub pointer: String,
    /// The source of the string.
    pub source: Source,
    /// The string.
    pub text: Cow<'a, str>,
}

/// The source of a string in a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The thread's title.
    Title,
    /// A user's message, or a prompt to an agent.
    UserPrompt,
    /// A model's text.
    Text,
    /// A model's reasoning.
    Thinking,
    /// A string in a tool's result.
    ToolReturn,
    /// A string in a request to correct the output.
    RetryPrompt,
}

/// Every string that people may look for, in document order. Keys, ids, arguments of calls, events
/// and metadata are not among them.
///
/// ```
/// use loomline_thread::{Thread, search::searchable_text};
///
/// let thread = Thread::decode(r#"{"title":"Looms","turns":[{"turn_type":"user",
///     "parts":[{"part_kind":"user-prompt","content":["one",{"kind":"text-content","content":"two"}]}]}]}"#)?;
/// let texts: Vec<_> = searchable_text(&thread).into_iter().map(|passage| passage.text).collect();
/// assert_eq!(texts, ["Looms", "one", "two"]);
/// # Ok::<(), loomline_thread::DecodeError>(())
/// ```
#[must_use]
pub fn searchable_text(thread: &Thread) -> Vec<Passage<'_>> {
    let mut collector = Collector::default();
    collector.path.push(Step::Key("title"));
    if let Some(title) = thread.title() {
        collector.take(Source::Title, title);
    }
    collector.path.clear();
    collector.path.push(Step::Key("turns"));
    for (place, turn) in thread.turns().enumerate() {
        collector.within(Step::Index(place), |collector| match turn {
            Turn::User(user) => collector.parts(user.parts()),
            Turn::Agent(agent) => collector.within(Step::Key("messages"), |collector| {
                for (place, message) in agent.messages().enumerate() {
                    collector.within(Step::Index(place), |collector| match message {
                        Message::Request(request) => collector.parts(request.parts()),
                        Message::Response(response) => collector.parts(response.parts()),
                        Message::System(_) | Message::Unknown(_) => {}
                    });
                }
            }),
            Turn::Unknown(_) => {}
        });
    }
    collector.passages
}

#[derive(Default)]
struct Collector<'a> {
    path: Vec<Step<'a>>,
    passages: Vec<Passage<'a>>,
}

/// A container being walked.
enum Open<'a> {
    Array(std::iter::Enumerate<std::slice::Iter<'a, Json>>),
    Object(ObjectIter<'a>),
}

impl<'a> Collector<'a> {
    fn within(&mut self, step: Step<'a>, walk: impl FnOnce(&mut Self)) {
        self.path.push(step);
        walk(self);
        self.path.pop();
    }

    fn take(&mut self, source: Source, text: &'a str) {
        let pointer = pointer(self.path.iter().copied());
        let text = Cow::Borrowed(text);
        self.passages.push(Passage {
            pointer,
            source,
            text,
        });
    }

    fn parts(&mut self, parts: impl Iterator<Item = Part<'a>>) {
        self.within(Step::Key("parts"), |collector| {
            for (place, part) in parts.enumerate() {
                collector.within(Step::Index(place), |collector| collector.part(part));
            }
        });
    }

    fn part(&mut self, part: Part<'a>) {
        let Some(content) = part.content() else {
            return;
        };
        self.within(Step::Key("content"), |collector| match part.kind() {
            PartKind::UserPrompt => collector.prompt(content),
            PartKind::Text => collector.string(Source::Text, content),
            PartKind::Thinking => collector.string(Source::Thinking, content),
            PartKind::ToolReturn => collector.strings(Source::ToolReturn, content),
            PartKind::RetryPrompt => collector.strings(Source::RetryPrompt, content),
            PartKind::ToolCall
            | PartKind::File
            | PartKind::SystemPrompt
            | PartKind::Other(_)
            | PartKind::Missing => {}
        });
    }

    fn string(&mut self, source: Source, json: &'a Json) {
        if let Some(text) = json.as_str() {
            self.take(source, text);
        }
    }

    /// A prompt's string, or the strings and texts in its list; not the data of its files.
    fn prompt(&mut self, content: &'a Json) {
        self.string(Source::UserPrompt, content);
        for (place, item) in content.as_array().unwrap_or_default().iter().enumerate() {
            self.within(Step::Index(place), |collector| {
                collector.string(Source::UserPrompt, item);
                if let Some(text) = item.get("content") {
                    collector.within(Step::Key("content"), |collector| {
                        collector.string(Source::UserPrompt, text);
                    });
                }
            });
        }
    }

    /// Every string in a value, however deep, without recursion.
    fn strings(&mut self, source: Source, json: &'a Json) {
        let depth = self.path.len();
        let mut open = Vec::new();
        let mut next = Some(json);
        loop {
            match next.take() {
                Some(Json::String(text)) => self.take(source, text),
                Some(Json::Array(items)) => open.push(Open::Array(items.iter().enumerate())),
                Some(Json::Object(object)) => open.push(Open::Object(object.iter())),
                Some(Json::Null | Json::Bool(_) | Json::Number(_)) | None => {}
            }
            self.path.truncate(depth + open.len().saturating_sub(1));
            let step = match open.last_mut() {
                None => break,
                Some(Open::Array(items)) => items.next().map(|(at, item)| (Step::Index(at), item)),
                Some(Open::Object(members)) => {
                    members.next().map(|(key, item)| (Step::Key(key), item))
                }
            };
            if let Some((step, item)) = step {
                self.path.push(step);
                next = Some(item);
            } else {
                open.pop();
            }
        }
        self.path.truncate(depth);
    }
}

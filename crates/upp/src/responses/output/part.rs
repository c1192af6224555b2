//! The parts of a message or of reasoning.

use super::super::item::Kind;
use super::about::About;
use crate::codec::AnswerBuilder;
use crate::content::AssistantContent;
use serde_json::{Map, Value, json};

/// The place of a part in its item. A summary comes before the text that it summarizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Slot {
    Summary(u64),
    Content(u64),
}

impl Slot {
    pub(super) fn new(section: &str, index: u64) -> Self {
        if section == "summary" {
            Self::Summary(index)
        } else {
            Self::Content(index)
        }
    }

    /// The place that an event names.
    pub(super) fn of(about: &About<'_>, section: &str) -> Self {
        let index = if section == "summary" {
            about.summary_index
        } else {
            about.content_index
        };
        Self::new(section, index.0.unwrap_or(0))
    }

    pub(super) fn section(self) -> &'static str {
        match self {
            Self::Summary(_) => "summary",
            Self::Content(_) => "content",
        }
    }
}

/// A part, and the block that has its text.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// The part as it was last sent. Of a part that is not whole, the block knows more.
    pub(super) raw: Value,
    pub(super) block: Option<u32>,
    of: Option<(Kind, &'static str)>,
    open: bool,
}

impl Part {
    /// Sets the part's type if no event has set it yet.
    pub(super) fn imply(&mut self, item: Kind, kind: &'static str) {
        if self.raw.is_null() {
            let raw = match kind {
                "refusal" => json!({"type": kind, "refusal": ""}),
                "output_text" => json!({"type": kind, "text": "", "annotations": []}),
                _ => json!({"type": kind, "text": ""}),
            };
            self.take(item, raw);
        }
    }

    /// Replaces the part by its current form.
    pub(super) fn take(&mut self, item: Kind, raw: Value) {
        self.of = item.text_key(&raw).map(|key| (item, key));
        self.raw = raw;
    }

    pub(super) fn append(&mut self, more: &str, builder: &mut AnswerBuilder) {
        if let Some(block) = self.opened(builder) {
            builder.append(block, more);
        }
    }

    /// Emits the missing rest of the text.
    pub(super) fn catch_up(&mut self, whole: &str, builder: &mut AnswerBuilder) {
        let Some(block) = self.opened(builder) else {
            return;
        };
        let Some(AssistantContent::Text { text } | AssistantContent::Reasoning { text, .. }) =
            builder.block(block)
        else {
            return;
        };
        match whole.strip_prefix(text.as_str()).map(str::to_owned) {
            Some(rest) if self.open => builder.append(block, &rest),
            // The provider's last word counts, though it comes too late to be shown.
            Some(_) | None if !whole.is_empty() => whole.clone_into(text),
            Some(_) | None => {}
        }
    }

    /// Emits the part's remaining text, and closes the block if the part is complete.
    pub(super) fn finish(&mut self, whole: bool, builder: &mut AnswerBuilder) {
        let Some((_, key)) = self.of else { return };
        let text = self.raw.get(key).and_then(Value::as_str);
        let text = text.unwrap_or_default().to_owned();
        self.catch_up(&text, builder);
        if let Some(block) = self.block.filter(|_| whole && self.open) {
            self.open = false;
            builder.close(block);
        }
    }

    fn opened(&mut self, builder: &mut AnswerBuilder) -> Option<u32> {
        let (item, _) = self.of?;
        if self.block.is_none() {
            let text = String::new();
            let block = builder.open(match item {
                Kind::Reasoning => AssistantContent::Reasoning {
                    text,
                    signature: None,
                },
                Kind::Message | Kind::Function | Kind::Custom | Kind::Image | Kind::Other => {
                    AssistantContent::Text { text }
                }
            });
            self.block = Some(block);
            self.open = true;
        }
        self.block
    }

    pub(super) fn annotate(&mut self, annotation: &Value) {
        if let Some(Value::Array(known)) = self.raw.get_mut("annotations") {
            known.push(annotation.clone());
        } else if let Some(raw) = self.raw.as_object_mut() {
            raw.insert("annotations".into(), json!([annotation]));
        }
    }

    pub(super) fn refuses(&self) -> bool {
        self.of.is_some_and(|(_, key)| key == "refusal")
            && text_of(&self.raw, &["refusal"]).is_some()
    }

    /// Removes the text, which the block holds.
    pub(super) fn give_up_text(&mut self, item: Kind) {
        if self.block.is_some()
            && let Some(key) = item.text_key(&self.raw)
            && let Some(raw) = self.raw.as_object_mut()
        {
            raw.insert(key.to_owned(), Value::Null);
        }
    }
}

/// The list that parts of this type are in.
pub(super) fn section(kind: &str) -> &'static str {
    if kind == "summary_text" {
        "summary"
    } else {
        "content"
    }
}

/// The type of the item that a part of this type is of.
pub(super) fn item_type(section: &str, kind: Option<&str>) -> &'static str {
    if section == "summary" || matches!(kind, Some("reasoning_text" | "summary_text")) {
        "reasoning"
    } else {
        "message"
    }
}

/// Corrects known deviations of hosts from the format.
pub(super) fn normalise(item: &mut Map<String, Value>) {
    let kind = Kind::of(item);
    if kind == Kind::Message
        && let Some(Value::String(text)) = item.get("content")
    {
        let part = json!({"type": "output_text", "text": text, "annotations": []});
        item.insert("content".into(), json!([part]));
    }
}

/// The first of these fields that is a text and not empty.
pub(super) fn text_of<'a>(event: &'a Value, keys: &[&str]) -> Option<&'a str> {
    keys.iter()
        .find_map(|key| event.get(*key)?.as_str())
        .filter(|text| !text.is_empty())
}

/// The text under this key, if it is not empty.
pub(super) fn text_at<'a>(item: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    item.get(key)?.as_str().filter(|text| !text.is_empty())
}

/// A piece of text, escaped for the inside of a JSON string.
pub(super) fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    let inner = quoted.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    inner.unwrap_or_default().to_owned()
}

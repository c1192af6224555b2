//! Output items, and where each of their values is stored.
//!
//! An item of text or reasoning is stored unchanged, except that texts that its blocks hold are replaced
//! by `null`. A call is stored without name, id and arguments, an image without its bytes. In the list
//! of a message's items, the first block of an item has it under `item`; the others of the same item
//! have `more`.

use crate::codec::made;
use crate::content::AssistantContent;
use crate::tool::{Arguments, ToolCall};
use serde_json::{Map, Value, json};

/// The type of an item, as far as this codec distinguishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    Reasoning,
    Function,
    Custom,
    Image,
    Other,
}

impl Kind {
    pub(super) fn of(item: &Map<String, Value>) -> Self {
        match item.get("type").and_then(Value::as_str) {
            Some("message") => Self::Message,
            Some("reasoning") => Self::Reasoning,
            Some("function_call") => Self::Function,
            Some("custom_tool_call") => Self::Custom,
            Some("image_generation_call") => Self::Image,
            Some(_) | None => Self::Other,
        }
    }

    /// The lists of parts, in the order of their blocks.
    pub(super) fn sections(self) -> &'static [&'static str] {
        match self {
            Self::Message => &["content"],
            Self::Reasoning => &["summary", "content"],
            Self::Function | Self::Custom | Self::Image | Self::Other => &[],
        }
    }

    /// The field with the text of a part, if the part has text.
    pub(super) fn text_key(self, part: &Value) -> Option<&'static str> {
        match (self, part.get("type")?.as_str()?) {
            (Self::Message, "output_text" | "text")
            | (Self::Reasoning, "summary_text" | "reasoning_text" | "text") => Some("text"),
            (Self::Message, "refusal") => Some("refusal"),
            _ => None,
        }
    }
}

/// The places of an item's texts, in the order of their blocks.
fn slots(item: &mut Map<String, Value>) -> Vec<&mut Value> {
    let kind = Kind::of(item);
    let order = kind.sections();
    let mut slots = Vec::new();
    for (key, value) in item.iter_mut() {
        let section = order.iter().position(|name| name == key);
        let parts = value.as_array_mut().into_iter().flatten();
        if let Some(section) = section {
            let texts = parts.filter_map(|part| {
                let key = kind.text_key(part)?;
                part.get_mut(key)
            });
            slots.extend(texts.map(|slot| (section, slot)));
        }
    }
    slots.sort_by_key(|(section, _)| *section);
    slots.into_iter().map(|(_, slot)| slot).collect()
}

/// Puts the texts of blocks back into their item; `None` if they don't fit because the message was
/// edited.
pub(super) fn with_texts(
    mut item: Map<String, Value>,
    blocks: &[&AssistantContent],
) -> Option<Map<String, Value>> {
    let reasoning = Kind::of(&item) == Kind::Reasoning;
    let slots = slots(&mut item);
    // Reasoning that is only encrypted has a block without a text.
    if slots.len() != blocks.len() && !(slots.is_empty() && reasoning) {
        return None;
    }
    for (slot, block) in slots.into_iter().zip(blocks) {
        match block {
            AssistantContent::Text { text } if !reasoning => *slot = Value::from(text.as_str()),
            AssistantContent::Reasoning { text, .. } if reasoning => {
                *slot = Value::from(text.as_str());
            }
            AssistantContent::Text { .. }
            | AssistantContent::Reasoning { .. }
            | AssistantContent::Image(_)
            | AssistantContent::Audio(_)
            | AssistantContent::Video(_) => return None,
        }
    }
    if let Some(AssistantContent::Reasoning {
        signature: Some(signature),
        ..
    }) = blocks.first()
    {
        item.insert("encrypted_content".into(), Value::from(signature.as_str()));
    }
    Some(item)
}

/// Whether the item has encrypted reasoning.
pub(super) fn is_encrypted(item: &Map<String, Value>) -> bool {
    let encrypted = item.get("encrypted_content").and_then(Value::as_str);
    encrypted.is_some_and(|text| !text.is_empty())
}

/// Whether the item's reasoning can be read.
pub(super) fn is_readable(item: &Map<String, Value>) -> bool {
    let kind = Kind::of(item);
    kind.sections().iter().any(|section| {
        let parts = item.get(*section).and_then(Value::as_array);
        parts.is_some_and(|parts| !parts.is_empty())
    })
}

/// The item of a call without what the call has.
pub(super) fn without_call(
    mut item: Map<String, Value>,
    id: &str,
    arguments: &str,
) -> Map<String, Value> {
    let key = arguments_key(Kind::of(&item));
    // White space around arguments and line breaks between their tokens do not survive a store of
    // lines.
    let trimmed = arguments.trim().len() < arguments.len();
    let breaks = (trimmed || arguments.contains(['\n', '\r'])) && key == "arguments";
    // What the provider itself wrote like our mark of a call that was cut off.
    let own = item.get(key).and_then(Value::as_str);
    let like_cut = own.is_some_and(|own| Arguments::from_text(own).is_marked());
    if !breaks && !like_cut {
        item.shift_remove(key);
    }
    item.shift_remove("name");
    if item.get("call_id").and_then(Value::as_str) == Some(id) {
        item.shift_remove("call_id");
    }
    item
}

/// The item of a call. `id` is the id as it is sent.
pub(super) fn with_call(
    mut item: Map<String, Value>,
    call: &ToolCall,
    id: String,
) -> Map<String, Value> {
    let kind = Kind::of(&item);
    let text = call.arguments.sent();
    let key = arguments_key(kind);
    let line = |text: &str| text.trim().replace(['\n', '\r'], " ");
    let is_same = |kept: &str| {
        [&*text, call.arguments.text()]
            .map(line)
            .contains(&line(kept))
    };
    let arguments = match item.get(key).and_then(Value::as_str) {
        Some(kept) if is_same(kept) => kept.to_owned(),
        Some(_) | None if kind == Kind::Custom => custom_input(call),
        Some(_) | None => text.into_owned(),
    };
    item.insert("call_id".into(), Value::from(id));
    item.insert("name".into(), Value::from(&*call.tool_name));
    item.insert(key.into(), Value::from(arguments));
    item
}

fn arguments_key(kind: Kind) -> &'static str {
    if kind == Kind::Custom {
        "input"
    } else {
        "arguments"
    }
}

/// The free text that a custom tool was called with.
fn custom_input(call: &ToolCall) -> String {
    let text = call.arguments.text();
    // The object around an input that was cut off stands open.
    let closed = || Arguments::from_text(&format!("{text}\"}}")).parse();
    let arguments = call.arguments.parse().or_else(|_| closed());
    let arguments = arguments.unwrap_or_default();
    match arguments.get("input").and_then(Value::as_str) {
        Some(input) => input.to_owned(),
        None => text.to_owned(),
    }
}

/// Takes the image of an item, if it has one, and leaves `null` in its place. A value that is not base64
/// stays in the item.
pub(super) fn take_image(item: &mut Map<String, Value>) -> Option<AssistantContent> {
    let data = item
        .get("result")?
        .as_str()
        .filter(|data| !data.is_empty())?;
    let mime_type = match item.get("output_format").and_then(Value::as_str) {
        Some("jpeg" | "jpg") => "image/jpeg",
        Some("webp") => "image/webp",
        Some(_) | None => "image/png",
    };
    let media = made(data, mime_type)?;
    item.insert("result".to_owned(), Value::Null);
    Some(AssistantContent::Image(media))
}

/// Puts an image back into its item; `None` if the message does not have its bytes.
pub(super) fn with_image(
    mut item: Map<String, Value>,
    block: &AssistantContent,
) -> Option<Map<String, Value>> {
    let AssistantContent::Image(media) = block else {
        return None;
    };
    item.insert("result".into(), Value::from(media.base64()?));
    Some(item)
}

/// Removes the ids of an item whose reasoning is left out, because the provider ties the ids to it.
pub(super) fn without_ids(item: &mut Map<String, Value>) {
    item.shift_remove("id");
    item.shift_remove("status");
}

/// Adds the values of `from` that `into` lacks. The last event of an answer may have more of an item
/// than the item's own last event, or less.
pub(super) fn fill(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                match into.get_mut(&key) {
                    Some(slot) => fill(slot, value),
                    None => drop(into.insert(key, value)),
                }
            }
        }
        (Value::Array(into), Value::Array(from)) if into.len() == from.len() => {
            for (slot, value) in into.iter_mut().zip(from) {
                fill(slot, value);
            }
        }
        (_, Value::Null) => {}
        (into, from) if *into == Value::Null || *into == json!("") || *into == json!([]) => {
            *into = from;
        }
        (_, _) => {}
    }
}

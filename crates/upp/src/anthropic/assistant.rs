//! The model's own turns in a later request.

use super::Anthropic;
use crate::codec::items::{self, Item};
use crate::codec::{CallIds, Conversation, is_native};
use crate::content::AssistantContent;
use crate::message::AssistantMessage;
use crate::tool::ToolCall;
use serde_json::{Map, Value, json};

/// One block of a message. The input of a call stays the model's own text.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) fields: Map<String, Value>,
    input: Option<String>,
}

impl Block {
    pub(super) fn new(value: Value) -> Self {
        let fields = match value {
            Value::Object(fields) => fields,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Map::new(),
        };
        let input = None;
        Self { fields, input }
    }

    pub(super) fn kind(&self) -> &str {
        let kind = self.fields.get("type").and_then(Value::as_str);
        kind.unwrap_or_default()
    }

    fn is_thinking(&self) -> bool {
        matches!(self.kind(), "thinking" | "redacted_thinking")
    }

    /// The text of a text block.
    fn text(&self) -> Option<&str> {
        let is_text = self.kind() == "text";
        self.fields.get("text")?.as_str().filter(|_| is_text)
    }

    fn write(self, to: &mut String) {
        to.push_str(&Value::Object(self.fields).to_string());
        if let Some(input) = self.input {
            to.pop();
            to.push_str(",\"input\":");
            to.push_str(&input);
            to.push('}');
        }
    }
}

/// A message of these blocks.
pub(super) fn message(role: &str, blocks: Vec<Block>) -> String {
    let mut text = format!("{{\"role\":\"{role}\",\"content\":[");
    for (at, block) in blocks.into_iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        block.write(&mut text);
    }
    text.push_str("]}");
    text
}

/// Removes text that the vendor refuses: empty text, and white space if there is no other text. Returns
/// whether it removed only white space.
pub(super) fn leave_out_blank(blocks: &mut Vec<Block>) -> bool {
    let blank = |text: &str| text.trim().is_empty();
    let speaks = blocks
        .iter()
        .any(|block| block.text().is_some_and(|text| !blank(text)));
    let mut white_space = false;
    blocks.retain(|block| match block.text() {
        Some("") => false,
        Some(text) if !speaks && blank(text) => {
            white_space = true;
            false
        }
        Some(_) | None => true,
    });
    white_space
}

/// Why text of white space is not sent.
pub(super) const WHITE_SPACE: &str = "the provider refuses a message of white space only";

impl Anthropic {
    /// The blocks of a message of the model. Parts that are not sent are listed.
    pub(super) fn assistant(
        &self,
        assistant: &AssistantMessage,
        ids: &mut CallIds,
        conversation: &mut Conversation,
    ) -> Vec<Block> {
        let native = self.is_own(assistant);
        let items = if native {
            items::read(assistant, &self.provider)
        } else {
            items::omit_foreign(assistant, conversation);
            items::plain(assistant)
        };
        let mut blocks = Vec::with_capacity(items.len());
        for item in items {
            match item {
                Item::Content(at, with) => {
                    let content = assistant.content.get(at);
                    match content.map(|content| self.content(content, with, native)) {
                        Some(Ok(block)) => blocks.push(block),
                        Some(Err((what, why))) => conversation.omit(assistant, what, why),
                        None => {}
                    }
                }
                Item::Call(at, with) => {
                    if let Some(call) = assistant.tool_calls.get(at) {
                        let id = ids.call(&call.tool_call_id, native);
                        let (block, whole) = tool_use(call, with, &id);
                        blocks.push(block);
                        if !whole {
                            let why = "the arguments of the call are not a JSON object";
                            conversation.omit(assistant, "arguments", why);
                        }
                    }
                }
                Item::Native(value) => blocks.push(Block::new(value)),
            }
        }
        if leave_out_blank(&mut blocks) {
            conversation.omit(assistant, "text", WHITE_SPACE);
        }
        while blocks.last().is_some_and(Block::is_thinking) {
            blocks.pop();
            let why = "the provider refuses a message that ends with reasoning";
            conversation.omit(assistant, "reasoning", why);
        }
        blocks
    }

    /// Whether the message is this model's own, in this format. Messages of the provider's other formats
    /// have their metadata under the same name, with a `status` or a `finish_reason` instead of a
    /// `stop_reason`.
    pub(super) fn is_own(&self, message: &AssistantMessage) -> bool {
        let fields = message.metadata.get(&self.provider);
        let has = |key: &str| fields.is_some_and(|fields| fields.get(key).is_some());
        is_native(message, &self.provider, &self.model_id)
            && (has("stop_reason") || !(has("status") || has("finish_reason")))
    }

    /// A block, or the content that is omitted and the reason.
    fn content(
        &self,
        content: &AssistantContent,
        with: Map<String, Value>,
        native: bool,
    ) -> Result<Block, (&'static str, &'static str)> {
        let block = match content {
            AssistantContent::Text { text } => json!({"type": "text", "text": text}),
            AssistantContent::Reasoning { .. } if !native => {
                return Err(("reasoning", "it is of another model or provider"));
            }
            AssistantContent::Reasoning { text, signature } => {
                let signed = signature.as_deref().is_some_and(|it| !it.is_empty());
                if !signed && !self.resend_unsigned {
                    return Err(("reasoning", "the provider refuses reasoning unsigned"));
                }
                let mut block = Map::new();
                block.insert("type".into(), json!("thinking"));
                block.insert("thinking".into(), json!(text));
                if let Some(signature) = signature {
                    block.insert("signature".into(), json!(signature));
                }
                Value::Object(block)
            }
            AssistantContent::Image(_) => return Err(("image", NO_MEDIA)),
            AssistantContent::Audio(_) => return Err(("audio", NO_MEDIA)),
            AssistantContent::Video(_) => return Err(("video", NO_MEDIA)),
        };
        let mut block = Block::new(block);
        add(&mut block.fields, with);
        Ok(block)
    }
}

const NO_MEDIA: &str = "the provider takes no media in the model's own messages";

/// A call, and whether its arguments could be sent.
fn tool_use(call: &ToolCall, with: Map<String, Value>, id: &str) -> (Block, bool) {
    let mut block = Block::new(json!({
        "type": "tool_use", "id": id, "name": call.tool_name,
    }));
    add(&mut block.fields, with);
    let whole = call.arguments.parse().is_ok();
    // JSON has line breaks between tokens only, and the store does not keep them.
    let text = call.arguments.text().trim().replace(['\n', '\r'], " ");
    let sendable = whole && !text.is_empty();
    block.input = Some(if sendable { text } else { "{}".to_owned() });
    (block, whole)
}

/// Adds fields; existing ones are not replaced.
fn add(fields: &mut Map<String, Value>, with: Map<String, Value>) {
    for (key, value) in with {
        fields.entry(key).or_insert(value);
    }
}

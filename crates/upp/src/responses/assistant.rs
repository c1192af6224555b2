//! Assistant messages as input items.

use super::{Dialect, Responses, item};
use crate::codec::items::{self, Item};
use crate::codec::{CallIds, Conversation, is_native};
use crate::content::AssistantContent;
use crate::message::AssistantMessage;
use crate::tool::{ToolCall, ToolCallId};
use item::Kind;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const FOREIGN: &str = "it belongs to another provider or model";
const NOT_ENCRYPTED: &str = "it is not encrypted, and the provider does not store it";
const ALONE: &str = "nothing follows it, and the provider takes it only with what follows";
const ORPHAN: &str = "the reasoning it belongs to is left out";

/// A conversation that is being written.
pub(super) struct Sending<'a> {
    pub(super) codec: &'a Responses,
    /// Whether the provider stores the answer, so that it finds what it stored.
    pub(super) stored: bool,
    pub(super) ids: CallIds,
    /// The calls of custom tools.
    pub(super) custom: BTreeSet<ToolCallId>,
}

/// One item to send.
struct Out {
    item: Value,
    reasoning: bool,
}

/// The items of one message.
struct Answer<'a> {
    message: &'a AssistantMessage,
    /// Whether the message is this model's own.
    native: bool,
    out: Vec<Out>,
    /// Whether the reasoning before this item was left out.
    orphaned: bool,
}

impl Sending<'_> {
    pub(super) fn assistant(
        &mut self,
        message: &AssistantMessage,
        conversation: &mut Conversation,
    ) {
        let provider = self.codec.provider.as_str();
        let native = is_native(message, provider, &self.codec.model_id)
            // Other formats of the same provider have no status.
            && fields(message, provider).is_some_and(|fields| fields.contains_key("status"));
        let items = if native {
            items::read(message, provider)
        } else {
            omit_foreign(message, conversation);
            items::plain(message)
        };
        let mut answer = Answer {
            message,
            native,
            out: Vec::new(),
            orphaned: false,
        };
        let mut items = items.into_iter().peekable();
        while let Some(entry) = items.next() {
            match entry {
                Item::Content(at, mut with) => {
                    let mut blocks: Vec<&AssistantContent> = Vec::new();
                    blocks.extend(message.content.get(at));
                    while let Some(Item::Content(at, _)) = items.next_if(is_more) {
                        blocks.extend(message.content.get(at));
                    }
                    match with.remove("item") {
                        Some(Value::Object(kept)) => {
                            self.blocks(kept, &blocks, &mut answer, conversation);
                        }
                        Some(_) | None => self.plain(&blocks, &mut answer, conversation),
                    }
                }
                Item::Call(at, with) => {
                    if let Some(call) = message.tool_calls.get(at) {
                        self.call(call, with, &mut answer);
                    }
                }
                Item::Native(item) => self.native(item, &mut answer, conversation),
            }
        }
        while answer.out.pop_if(|last| last.reasoning).is_some() {
            conversation.omit(message, "reasoning", ALONE);
        }
        for out in answer.out {
            conversation.push(&out.item);
        }
    }

    /// The item that these blocks are from.
    fn blocks(
        &self,
        kept: Map<String, Value>,
        blocks: &[&AssistantContent],
        answer: &mut Answer<'_>,
        conversation: &mut Conversation,
    ) {
        let whole = match Kind::of(&kept) {
            Kind::Message | Kind::Reasoning => item::with_texts(kept, blocks),
            Kind::Image => blocks
                .first()
                .and_then(|block| item::with_image(kept, block)),
            Kind::Function | Kind::Custom | Kind::Other => None,
        };
        match whole {
            Some(whole) => self.own(whole, answer, conversation),
            None => self.plain(blocks, answer, conversation),
        }
    }

    /// An item of the provider's own, if it may be sent.
    fn own(
        &self,
        mut own: Map<String, Value>,
        answer: &mut Answer<'_>,
        conversation: &mut Conversation,
    ) {
        let message = answer.message;
        let reasoning = match Kind::of(&own) {
            Kind::Reasoning => {
                let goes = self.keeps(message, &own);
                answer.orphaned = !goes;
                if !goes {
                    conversation.omit(message, "reasoning", NOT_ENCRYPTED);
                    return;
                }
                true
            }
            Kind::Message if answer.orphaned => {
                item::without_ids(&mut own);
                false
            }
            Kind::Image if answer.orphaned => {
                conversation.omit(message, "image", ORPHAN);
                return;
            }
            Kind::Other if answer.orphaned => {
                conversation.omit(message, "provider_item", ORPHAN);
                return;
            }
            Kind::Message | Kind::Image | Kind::Other | Kind::Function | Kind::Custom => false,
        };
        let item = Value::Object(own);
        answer.out.push(Out { item, reasoning });
    }

    /// Whether the provider accepts this reasoning of its own.
    fn keeps(&self, message: &AssistantMessage, reasoning: &Map<String, Value>) -> bool {
        let fields = fields(message, &self.codec.provider);
        let was_stored = fields.and_then(|fields| fields.get("store")) == Some(&Value::Bool(true));
        item::is_encrypted(reasoning)
            || (self.stored && was_stored)
            || (self.codec.plain_reasoning && item::is_readable(reasoning))
    }

    fn native(&self, native: Value, answer: &mut Answer<'_>, conversation: &mut Conversation) {
        if let Value::Object(native) = native {
            self.own(native, answer, conversation);
        }
    }

    /// Blocks without an item: each text becomes a message.
    fn plain(
        &self,
        blocks: &[&AssistantContent],
        answer: &mut Answer<'_>,
        conversation: &mut Conversation,
    ) {
        for block in blocks {
            let omitted = match block {
                AssistantContent::Text { text } if text.is_empty() => continue,
                AssistantContent::Text { text } => {
                    let item = self.message(text, answer);
                    let reasoning = false;
                    answer.out.push(Out { item, reasoning });
                    continue;
                }
                AssistantContent::Reasoning { .. } => "reasoning",
                AssistantContent::Image(_) => "image",
                AssistantContent::Audio(_) => "audio",
                AssistantContent::Video(_) => "video",
            };
            conversation.omit(answer.message, omitted, FOREIGN);
        }
    }

    fn message(&self, text: &str, answer: &Answer<'_>) -> Value {
        if self.codec.dialect != Dialect::OpenRouter {
            return json!({"type": "message", "role": "assistant", "content": text});
        }
        // There an id and a status are required.
        let mut id = String::from("msg_");
        let nth = answer.out.len();
        let digest = Sha256::digest(format!("{} {nth}", answer.message.id.as_str()));
        for byte in digest.iter().take(12) {
            let _ = write!(id, "{byte:02x}");
        }
        let part = json!({"type": "output_text", "text": text, "annotations": []});
        json!({
            "type": "message", "id": id, "role": "assistant", "status": "completed",
            "content": [part],
        })
    }

    fn call(&mut self, call: &ToolCall, mut with: Map<String, Value>, answer: &mut Answer<'_>) {
        let id = self.ids.call(&call.tool_call_id, answer.native);
        let kept = match with.remove("item") {
            Some(Value::Object(mut kept)) => {
                if answer.orphaned {
                    item::without_ids(&mut kept);
                }
                Some(kept)
            }
            Some(_) | None => None,
        };
        let whole = match kept.map(|kept| (Kind::of(&kept), kept)) {
            Some((Kind::Custom, kept)) => {
                self.custom.insert(call.tool_call_id.clone());
                item::with_call(kept, call, id)
            }
            Some((Kind::Function, kept)) => {
                self.custom.remove(&call.tool_call_id);
                item::with_call(kept, call, id)
            }
            Some((Kind::Message | Kind::Reasoning | Kind::Image | Kind::Other, _)) | None => {
                self.custom.remove(&call.tool_call_id);
                self.function(call, &id)
            }
        };
        let item = Value::Object(whole);
        let reasoning = false;
        answer.out.push(Out { item, reasoning });
    }

    /// A call without an item.
    fn function(&self, call: &ToolCall, id: &str) -> Map<String, Value> {
        let mut item = Map::new();
        item.insert("type".into(), json!("function_call"));
        if self.codec.dialect == Dialect::OpenRouter {
            item.insert("id".into(), Value::from(format!("fc_{id}")));
        }
        item.insert("call_id".into(), Value::from(id));
        item.insert("name".into(), Value::from(&*call.tool_name));
        let arguments = call.arguments.sent();
        let arguments = if arguments.is_empty() {
            "{}"
        } else {
            &*arguments
        };
        item.insert("arguments".into(), Value::from(arguments));
        item
    }
}

fn is_more(entry: &Item) -> bool {
    matches!(entry, Item::Content(_, with) if with.contains_key("more"))
}

fn fields<'a>(message: &'a AssistantMessage, provider: &str) -> Option<&'a Map<String, Value>> {
    message.metadata.get(provider)?.as_object()
}

/// Lists the items of whichever provider that have no place in blocks and calls.
fn omit_foreign(message: &AssistantMessage, conversation: &mut Conversation) {
    for provider in message.metadata.keys() {
        for entry in items::read(message, provider) {
            match entry {
                Item::Native(_) => conversation.omit(message, "provider_item", FOREIGN),
                Item::Content(_, with) if has_citations(&with) => {
                    conversation.omit(message, "citation", FOREIGN);
                }
                Item::Content(..) | Item::Call(..) => {}
            }
        }
    }
}

/// Whether an item of this format cites something.
fn has_citations(with: &Map<String, Value>) -> bool {
    let parts = with
        .get("item")
        .and_then(|item| item.get("content")?.as_array());
    parts.into_iter().flatten().any(|part| {
        let cited = part.get("annotations").and_then(Value::as_array);
        cited.is_some_and(|cited| !cited.is_empty())
    })
}

//! Requests in the Messages format.

use super::assistant::{Block, WHITE_SPACE, leave_out_blank, message};
use super::content::{tool_result_content, user_block};
use super::{Anthropic, head};
use crate::codec::items::{self, Item};
use crate::codec::{CallIdForm, CallIds, Conversation, Encoded};
use crate::error::{Code, Error};
use crate::message::{AssistantMessage, Message, Metadata, ToolResultMessage, UserMessage};
use crate::model::Request;
use crate::tool::ToolResult;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The body of a streaming request.
pub(super) fn encode(codec: &Anthropic, request: &Request) -> Result<Encoded, Error> {
    let head = head::head(codec, request)?;
    let tail = codec.tail(request);
    let conversation = codec.conversation(request)?;
    Ok(conversation.encode_then(&head, "messages", &tail))
}

impl Anthropic {
    pub(super) fn refused(&self, text: impl Into<String>) -> Error {
        Error::new(Code::InvalidRequest, self.provider.as_str(), text)
    }

    fn conversation(&self, request: &Request) -> Result<Conversation, Error> {
        let mut conversation = Conversation::default();
        let mut ids = CallIds::new(CallIdForm::UpTo64);
        // The vendor wants all results of a turn in one message.
        let mut results = Vec::new();
        for said in &request.messages {
            if let Message::ToolResult(answered) = said {
                results.extend(self.results(answered, &ids));
                continue;
            }
            push(&mut conversation, "user", std::mem::take(&mut results));
            match said {
                Message::User(user) => {
                    let blocks = self.user(user, &mut conversation)?;
                    push(&mut conversation, "user", blocks);
                }
                Message::Assistant(assistant) => {
                    let mut blocks = self.assistant(assistant, &mut ids, &mut conversation);
                    self.mark(&mut blocks, &assistant.metadata);
                    push(&mut conversation, "assistant", blocks);
                }
                Message::ToolResult(_) => {}
            }
        }
        push(&mut conversation, "user", results);
        Ok(conversation)
    }

    fn user(
        &self,
        user: &UserMessage,
        conversation: &mut Conversation,
    ) -> Result<Vec<Block>, Error> {
        let citations = self.metadata(&user.metadata, "citations");
        let mut blocks = Vec::with_capacity(user.content.len());
        for content in &user.content {
            let block = user_block(content)
                .map_err(|what| self.refused(format!("the Messages format can't take {what}")))?;
            let mut block = Block::new(block);
            if let Some(citations) = citations.filter(|_| block.kind() == "document") {
                block.fields.insert("citations".into(), citations.clone());
            }
            blocks.push(block);
        }
        if leave_out_blank(&mut blocks) {
            conversation.omit_of(&user.id, "text", WHITE_SPACE);
        }
        self.mark(&mut blocks, &user.metadata);
        Ok(blocks)
    }

    fn results(&self, answered: &ToolResultMessage, ids: &CallIds) -> Vec<Block> {
        let results = answered.results.iter();
        let mut blocks: Vec<Block> = results.map(|result| tool_result(result, ids)).collect();
        self.mark(&mut blocks, &answered.metadata);
        blocks
    }

    /// The metadata's value for this provider, or else for the format's vendor.
    pub(super) fn metadata<'a>(&self, metadata: &'a Metadata, key: &str) -> Option<&'a Value> {
        [self.provider.as_str(), "anthropic"]
            .iter()
            .find_map(|namespace| metadata.get(*namespace)?.get(key))
    }

    /// Cuts the cache after the message: at its last block that can be one.
    fn mark(&self, blocks: &mut [Block], metadata: &Metadata) {
        let last = blocks
            .iter_mut()
            .rfind(|block| !matches!(block.kind(), "thinking" | "redacted_thinking"));
        let cache_control = self.metadata(metadata, "cache_control");
        if let (Some(block), Some(cache_control)) = (last, cache_control) {
            let fields = &mut block.fields;
            fields.insert("cache_control".into(), cache_control.clone());
        }
    }

    /// The fields that are sent but change between requests: the container whose code waits for the
    /// results.
    fn tail(&self, request: &Request) -> Map<String, Value> {
        let mut tail = Map::new();
        if !request.params.contains_key("container")
            && let Some(answered) = answered(request)
            && self.is_own(answered)
            && items::read(answered, &self.provider).iter().any(waits)
            && let Some(container) = self.metadata(&answered.metadata, "container")
            && let Some(id) = container.get("id")
        {
            tail.insert("container".into(), id.clone());
        }
        tail
    }
}

/// The message whose calls the end of the conversation answers.
fn answered(request: &Request) -> Option<&Arc<AssistantMessage>> {
    let mut last = None;
    for said in request.messages.iter().rev() {
        match said {
            Message::ToolResult(_) => last = Some(()),
            Message::Assistant(assistant) => return last.map(|()| assistant),
            Message::User(_) => return None,
        }
    }
    None
}

/// Whether code in a container made this call.
fn waits(item: &Item) -> bool {
    match item {
        Item::Call(_, with) => with
            .get("caller")
            .and_then(|caller| caller.get("type")?.as_str())
            .is_some_and(|kind| kind != "direct"),
        Item::Content(..) | Item::Native(_) => false,
    }
}

/// Adds a message unless it is empty; the vendor refuses empty messages.
fn push(conversation: &mut Conversation, role: &str, blocks: Vec<Block>) {
    if !blocks.is_empty() {
        conversation.push_text(message(role, blocks));
    }
}

fn tool_result(result: &ToolResult, ids: &CallIds) -> Block {
    let id = ids.result(&result.tool_call_id);
    let mut block = Block::new(json!({"type": "tool_result", "tool_use_id": id}));
    if let Some(content) = tool_result_content(result) {
        block.fields.insert("content".into(), content);
    }
    if result.is_error {
        block.fields.insert("is_error".into(), json!(true));
    }
    block
}

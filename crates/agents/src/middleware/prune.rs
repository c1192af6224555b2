//! Clears old tool outputs (UAP §6.2, pattern 1).

use super::estimate::n_bytes;
use super::{Estimate, Middleware, MiddlewareContext};
use crate::error::AgentError;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::Value;
use std::sync::Arc;
use upp::{Message, Messages, ToolResultMessage};

/// Replaces old tool outputs by a placeholder if a conversation grows too long (UAP §6.2).
///
/// It acts if the state's messages have more than `usable` tokens. Then it replaces every result
/// that is outside of the latest `protect_recent` tokens, is longer than the placeholder, and has a
/// later response of the model. Calls and messages keep their ids and order. A second pass changes
/// nothing more. The run's resulting state has the placeholders, too.
#[derive(Clone, Debug)]
pub struct PruneToolOutputs {
    /// Maximum number of tokens of the conversation. Default: 184,000.
    pub usable: u64,
    /// Number of the latest tokens that are not changed. Default: 40,000.
    pub protect_recent: u64,
    /// The replacement for a removed output.
    pub placeholder: String,
    /// The token estimate.
    pub estimate: Estimate,
}

impl Default for PruneToolOutputs {
    fn default() -> Self {
        Self {
            usable: 184_000,
            protect_recent: 40_000,
            placeholder: "[Output removed to save context]".to_owned(),
            estimate: Estimate::default(),
        }
    }
}

impl PruneToolOutputs {
    /// The messages with old outputs replaced; none when nothing changes.
    fn pruned(&self, messages: &Messages) -> Option<Messages> {
        let (tokens, total) = self.estimate.of_all(messages);
        if total <= self.usable {
            return None;
        }
        let mut pruned = messages.clone();
        // What the model has not read yet it needs, however long it is.
        let is_response = |at: &usize| matches!(messages.get(*at), Some(Message::Assistant(_)));
        let n_read = (0..messages.len()).rev().find(is_response).unwrap_or(0);
        let mut n_recent = 0_u64;
        let mut has_changed = false;
        for (at, n_tokens) in tokens.iter().enumerate().rev() {
            n_recent = n_recent.saturating_add(*n_tokens);
            if n_recent > self.protect_recent
                && at < n_read
                && let Some(Message::ToolResult(message)) = messages.get(at)
                && let Some(message) = self.cleared(message)
            {
                has_changed = true;
                pruned.set_mut(at, message.into());
            }
        }
        has_changed.then_some(pruned)
    }

    /// The message without its outputs; none when they are all short.
    fn cleared(&self, message: &Arc<ToolResultMessage>) -> Option<ToolResultMessage> {
        let placeholder = Value::from(self.placeholder.as_str());
        let limit = n_bytes(&placeholder);
        let is_long = |value: &Value| n_bytes(value) > limit;
        if !message.results.iter().any(|result| is_long(&result.result)) {
            return None;
        }
        let mut cleared = ToolResultMessage::clone(message);
        for result in &mut cleared.results {
            if is_long(&result.result) {
                result.result = placeholder.clone().into();
            }
        }
        Some(cleared)
    }
}

impl Middleware for PruneToolOutputs {
    fn name(&self) -> &'static str {
        "prune-tool-outputs"
    }

    fn before<'a>(
        &'a self,
        context: &'a mut MiddlewareContext,
    ) -> BoxFuture<'a, Result<(), AgentError>> {
        if let Some(messages) = self.pruned(context.state.messages()) {
            context.state = context.state.with_shared_context(messages);
        }
        ready(Ok(())).boxed()
    }
}

//! The prompts that strategies add to the conversation, and how they are recognised.
//!
//! They are real messages in the user's role. All requests to the model stay in the history, so the
//! history only grows, and a provider's prompt cache continues to hit.

use crate::state::AgentState;
use serde_json::{Value, json};
use std::sync::Arc;
use upp::{Message, MessageOptions, Messages, UserContent, UserMessage};

/// Requests reasoning (UAP §5.3).
pub(crate) const REASON: &str = "reason";
/// Requests an action (UAP §5.3).
pub(crate) const ACT: &str = "act";
/// Requests a plan (UAP §5.4).
pub(crate) const PLAN: &str = "plan";
/// Requests one step of the plan (UAP §5.4).
pub(crate) const PLAN_STEP: &str = "plan_step";
/// Requests another plan after a failed step (UAP §5.4).
pub(crate) const REPLAN: &str = "replan";

/// The metadata's key for the protocol's own data of a message.
pub(crate) const NAMESPACE: &str = "uap";

/// The mark of a message that a strategy added in the user's role. Its metadata is
/// `{"uap": {"prompt": kind, "step": n, "firstStep": n}}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptMark<'a> {
    /// The kind of prompt: `reason`, `act`, `plan`, `plan_step`, `replan`, or a custom strategy's
    /// own word.
    pub kind: &'a str,
    /// The number of the step it belongs to.
    pub step: u64,
    /// The number of the step in which the run's first prompt was added.
    pub first_step: u64,
}

impl<'a> PromptMark<'a> {
    /// The mark of this message; none if the user wrote it.
    pub fn of(message: &'a UserMessage) -> Option<Self> {
        let mark = message.metadata.get(NAMESPACE)?;
        let number = |key: &str| mark.get(key).and_then(Value::as_u64);
        Some(Self {
            kind: mark.get("prompt")?.as_str()?,
            step: number("step").unwrap_or_default(),
            first_step: number("firstStep").unwrap_or_default(),
        })
    }

    /// Whether it is of this kind and of the step that `state` is in.
    pub(crate) fn is_now(&self, kind: &str, state: &AgentState) -> bool {
        self.kind == kind && self.step == state.step()
    }
}

/// If the message is a summary: the ids of the first and the last message that it replaces.
pub(crate) fn summary(message: &UserMessage) -> Option<(&str, &str)> {
    let of = message.metadata.get(NAMESPACE)?.get("summary")?.get("of")?;
    match of.as_array()?.as_slice() {
        [Value::String(first), Value::String(last)] => Some((first, last)),
        _ => None,
    }
}

/// The message if it is in the user's role and no summary. A summary replaces other messages, so it
/// never starts a run.
pub(crate) fn user_text(message: &Message) -> Option<&Arc<UserMessage>> {
    match message {
        Message::User(message) => Some(message).filter(|message| summary(message).is_none()),
        Message::Assistant(_) | Message::ToolResult(_) => None,
    }
}

/// Whether the user wrote this message: it is neither a strategy's prompt nor a summary.
pub(crate) fn is_input(message: &Message) -> bool {
    user_text(message).is_some_and(|message| PromptMark::of(message).is_none())
}

/// A message of this kind, for the step that `state` is in.
pub(crate) fn marked(state: &AgentState, kind: &str, text: String) -> UserMessage {
    let first_step = last_mark(state).map_or(state.step(), |mark| mark.first_step);
    let mark = json!({"prompt": kind, "step": state.step(), "firstStep": first_step});
    let options = MessageOptions {
        metadata: Some([(NAMESPACE.to_owned(), mark)].into_iter().collect()),
        ..MessageOptions::default()
    };
    UserMessage::new(vec![UserContent::Text { text }], options)
}

/// The messages, the latest first.
pub(crate) fn backwards(messages: &Messages) -> impl Iterator<Item = &Message> {
    (0..messages.len()).rev().map_while(|at| messages.get(at))
}

/// The marks of the prompts of this run, the latest first.
pub(crate) fn marks(state: &AgentState) -> impl Iterator<Item = PromptMark<'_>> {
    backwards(state.messages())
        .filter_map(user_text)
        .map_while(|message| PromptMark::of(message))
}

/// The mark of the last message in the user's role, ignoring summaries.
pub(crate) fn last_mark(state: &AgentState) -> Option<PromptMark<'_>> {
    marks(state).next()
}

/// Whether the step of `state` already has a prompt of this kind.
pub(crate) fn has_prompt_of(state: &AgentState, kind: &str) -> bool {
    last_mark(state).is_some_and(|mark| mark.is_now(kind, state))
}

/// Whether the model's next answer is its first one to the user's input. Answers to prompts for
/// reasoning and plans do not count.
pub(crate) fn is_first_answer(messages: &Messages) -> bool {
    if matches!(messages.last(), Some(Message::ToolResult(_))) {
        return false;
    }
    let mut answers = false;
    for message in backwards(messages) {
        match message {
            Message::ToolResult(_) => {}
            Message::Assistant(_) => answers = true,
            Message::User(message) if summary(message).is_some() => {}
            Message::User(message) => match PromptMark::of(message).map(|mark| mark.kind) {
                Some(REASON | PLAN | REPLAN) => answers = false,
                Some(_) if answers => return false,
                Some(_) => {}
                None => return !answers,
            },
        }
    }
    !answers
}

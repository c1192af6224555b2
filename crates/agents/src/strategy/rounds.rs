//! How many rounds of tools there were, and of what kind.

use super::Limit;
use super::prompt::{PromptMark, backwards};
use crate::agent::Agent;
use crate::state::AgentState;
use std::num::NonZeroU32;
use upp::{Message, ToolCall};

/// After so many rounds in a row in which no call names a tool, the run ends.
///
/// A model is told twice that its tool does not exist; one that asks a third time never stops.
const N_GHOST_ROUNDS: usize = 3;

/// The messages since the last one of the user's side, the latest first.
pub(super) fn since_prompt(state: &AgentState) -> impl Iterator<Item = &Message> {
    backwards(state.messages()).take_while(|message| !matches!(message, Message::User(_)))
}

/// The messages since the last one that the user wrote, the latest first.
pub(super) fn since_input(state: &AgentState) -> impl Iterator<Item = &Message> {
    backwards(state.messages()).take_while(|message| match message {
        Message::User(message) => PromptMark::of(message).is_some(),
        Message::Assistant(_) | Message::ToolResult(_) => true,
    })
}

/// The lower of this limit and the tool strategy's.
pub(super) fn lower(own: Limit, agent: &Agent) -> Option<NonZeroU32> {
    let own = match own {
        Limit::Unbounded => None,
        Limit::AtMost(n) => Some(n),
    };
    let tools = agent.tool_rounds().and_then(NonZeroU32::new);
    match (own, tools) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

/// Whether so many rounds came before the one whose calls are open, since the last message of the
/// user's side. A round may have its results in several messages, so its response is what counts.
pub(super) fn has_rounds(state: &AgentState, limit: NonZeroU32) -> bool {
    let limit = usize::try_from(limit.get()).unwrap_or(usize::MAX);
    let responses = since_prompt(state).filter(|message| match message {
        Message::Assistant(message) => !message.tool_calls.is_empty(),
        Message::User(_) | Message::ToolResult(_) => false,
    });
    responses.skip(1).take(limit).count() == limit
}

/// Whether the model calls nothing that exists, and there is no reason to hope that it will: the
/// agent has no tools, or these messages, the latest first, begin with three such rounds.
pub(super) fn only_ghosts<'a>(messages: impl Iterator<Item = &'a Message>, agent: &Agent) -> bool {
    let is_ghost = |call: &ToolCall| agent.tool(&call.tool_name).is_none();
    let n_rounds = messages
        .filter_map(|message| match message {
            Message::Assistant(message) => Some(&message.tool_calls),
            Message::User(_) | Message::ToolResult(_) => None,
        })
        .filter(|calls| !calls.is_empty())
        .take(N_GHOST_ROUNDS)
        .take_while(|calls| calls.iter().all(is_ghost))
        .count();
    n_rounds == N_GHOST_ROUNDS || agent.tools().is_empty()
}

//! How many rounds of tools there were, and of what kind.

use super::prompt::{self, NAMESPACE, backwards};
use super::{Limit, StepContext};
use crate::agent::Agent;
use crate::state::AgentState;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use upp::{Message, ToolCall, UserMessage};

/// After so many rounds in a row in which no call can be one, the run ends.
///
/// A model is told twice that its tool does not exist, or that its arguments are no JSON object, as
/// where each of its answers is cut off within a call; one that calls so a third time never stops.
const N_GHOST_ROUNDS: usize = 3;

/// The messages since the last one of the user's side, the latest first, summaries seen through.
pub(super) fn since_prompt(state: &AgentState) -> impl Iterator<Item = &Message> {
    backwards(state.messages()).take_while(|message| prompt::said(message).is_none())
}

/// The messages since the last one that the user wrote, the latest first.
pub(super) fn since_input(state: &AgentState) -> impl Iterator<Item = &Message> {
    backwards(state.messages()).take_while(|message| !prompt::is_input(message))
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
/// Rounds that a middleware cut away count as well.
pub(super) fn has_rounds(state: &AgentState, limit: NonZeroU32) -> bool {
    let limit = usize::try_from(limit.get()).unwrap_or(usize::MAX);
    let responses = since_prompt(state).filter(|message| match message {
        Message::Assistant(message) => !message.tool_calls.is_empty(),
        Message::User(_) | Message::ToolResult(_) => false,
    });
    let n_left = limit.saturating_sub(responses.skip(1).take(limit).count());
    n_left <= Past::of(state).n_rounds
}

/// What is known of rounds that a middleware cut away, noted on the message of the user's side that
/// they followed: `{"uap": {"past": {"rounds": n, "succeeded": [tool, …]}}}`.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Past {
    #[serde(rename = "rounds")]
    n_rounds: usize,
    /// The tools that gave a result which is no error.
    pub(super) succeeded: BTreeSet<String>,
}

impl Past {
    /// The note on the last message of the user's side.
    pub(super) fn of(state: &AgentState) -> Self {
        let last = backwards(state.messages()).find_map(prompt::said);
        last.map(|message| Self::on(message)).unwrap_or_default()
    }

    fn on(message: &UserMessage) -> Self {
        let note = message.metadata.get(NAMESPACE);
        let past = note.and_then(|note| Self::deserialize(note.get("past")?).ok());
        past.unwrap_or_default()
    }
}

/// The message with a note of the rounds among these messages, which came after it and are to be cut
/// away; none where there are none.
pub(crate) fn noted<'a>(
    said: &UserMessage,
    dropped: impl Iterator<Item = &'a Message>,
) -> Option<UserMessage> {
    let mut past = Past::on(said);
    let n_before = past.n_rounds;
    let mut names = BTreeMap::new();
    for message in dropped {
        match message {
            Message::Assistant(message) if message.tool_calls.is_empty() => {}
            Message::Assistant(message) => {
                let calls = message.tool_calls.iter();
                names = calls
                    .map(|call| (&call.tool_call_id, &call.tool_name))
                    .collect();
                past.n_rounds = past.n_rounds.saturating_add(1);
            }
            Message::ToolResult(message) => {
                let good = message.results.iter().filter(|result| !result.is_error);
                let good = good.filter_map(|result| names.get(&result.tool_call_id));
                past.succeeded
                    .extend(good.map(|name| String::from(&***name)));
            }
            Message::User(_) => {}
        }
    }
    if past.n_rounds == n_before {
        return None;
    }
    let mut noted = said.clone();
    let note = noted.metadata.entry(NAMESPACE.to_owned());
    let note = note.or_insert_with(|| json!({})).as_object_mut()?;
    note.insert("past".to_owned(), json!(past));
    Some(noted)
}

/// Whether the model calls nothing that can be called, and there is no reason to hope that it will:
/// the agent has no tools, or these messages, the latest first, begin with three such rounds. Where the
/// step was brought results, the tools exist elsewhere, and the model is to hear what they gave.
pub(super) fn only_ghosts<'a>(
    messages: impl Iterator<Item = &'a Message>,
    context: &StepContext<'_>,
) -> bool {
    let agent = context.agent;
    let was_brought = context.answers.is_some_and(|it| !it.results.is_empty());
    if was_brought || agent.options().foreign_calls {
        return false;
    }
    let mut messages = messages.peekable();
    // Mostly the last calls came to something, and nothing need be read to know it.
    let is_good = |message: &&Message| match message {
        Message::ToolResult(last) => last.results.iter().any(|result| !result.is_error),
        Message::User(_) | Message::Assistant(_) => false,
    };
    if !agent.tools().is_empty() && messages.peek().is_some_and(is_good) {
        return false;
    }
    let is_ghost =
        |call: &ToolCall| agent.tool(&call.tool_name).is_none() || call.arguments.parse().is_err();
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

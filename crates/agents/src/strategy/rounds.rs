//! Counts rounds of tools.

use super::StepContext;
use super::prompt::{self, NAMESPACE, backwards};
use crate::agent::Agent;
use crate::error::AgentError;
use crate::state::AgentState;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use upp::{Message, UserMessage};

/// The messages since the last one in the user's role, the latest first, ignoring summaries.
pub(super) fn since_prompt(state: &AgentState) -> impl Iterator<Item = &Message> {
    backwards(state.messages()).take_while(|message| prompt::user_text(message).is_none())
}

/// Fails if the tool strategy's limit forbids another round of tools (UPP §3). A limit of 0 is not
/// checked here, because then no tool runs at all.
pub(super) fn check_tool_strategy(state: &AgentState, agent: &Agent) -> Result<(), AgentError> {
    match agent.tool_rounds().and_then(NonZeroU32::new) {
        Some(limit) if has_rounds(state, limit) => {
            agent.on_max_iterations(limit);
            Err(AgentError::MaxIterations { limit })
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether at least `limit` tool rounds precede the round whose calls are open, since the last
/// message in the user's role. A round may have several messages of results, so its response is
/// counted. Rounds that a middleware removed count as well.
pub(super) fn has_rounds(state: &AgentState, limit: NonZeroU32) -> bool {
    let limit = usize::try_from(limit.get()).unwrap_or(usize::MAX);
    let responses = since_prompt(state).filter(|message| match message {
        Message::Assistant(message) => !message.tool_calls.is_empty(),
        Message::User(_) | Message::ToolResult(_) => false,
    });
    let n_left = limit.saturating_sub(responses.skip(1).take(limit).count());
    n_left <= Past::of(state).n_rounds
}

/// A note of the rounds that a middleware removed. It is on the preceding message in the user's
/// role: `{"uap": {"past": {"rounds": n, "succeeded": [tool, …]}}}`.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Past {
    #[serde(rename = "rounds")]
    n_rounds: usize,
    /// The tools that returned a result without an error.
    pub(super) succeeded: BTreeSet<String>,
}

impl Past {
    /// The note on the last message in the user's role.
    pub(super) fn of(state: &AgentState) -> Self {
        let last = backwards(state.messages()).find_map(prompt::user_text);
        last.map(|message| Self::on(message)).unwrap_or_default()
    }

    fn on(message: &UserMessage) -> Self {
        let note = message.metadata.get(NAMESPACE);
        let past = note.and_then(|note| Self::deserialize(note.get("past")?).ok());
        past.unwrap_or_default()
    }
}

/// The message with a note of the tool rounds among `dropped`, which follow it and are removed;
/// none if there are none.
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

/// Whether calls can't run at all: the agent has no tools, and no client runs them. Then the turn
/// ends with its calls (UPP §3). If the step received results, a client has the tools, and the
/// model must read the results.
pub(super) fn has_no_tools(context: &StepContext<'_>) -> bool {
    let options = context.agent.options();
    let was_brought = context.answers.is_some_and(|it| !it.results.is_empty());
    context.agent.tools().is_empty() && !was_brought && !options.foreign_calls
}

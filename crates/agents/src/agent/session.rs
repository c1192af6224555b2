//! The session of a run, and its checkpoints (UAP §3.4, §12.4.5).

use super::Agent;
use crate::state::AgentState;
use serde_json::Value;

const SESSION_ID: &str = "sessionId";
const AGENT_ID: &str = "agentId";

/// Stores the session in the state's metadata (UAP §3.4), and the agent's id if there are
/// checkpoints.
///
/// The session is the agent's configured one. Without it, but with checkpoints, the state's own
/// session continues. So a state restored from a checkpoint keeps its session (UAP §12.4.7, 3). A
/// state without one gets the agent's generated session.
pub(super) fn note(agent: &Agent, state: &mut AgentState) {
    let Some(session) = in_effect(agent, state) else {
        return;
    };
    let own = state.metadata().get(SESSION_ID).and_then(Value::as_str);
    if own != Some(session) {
        let session = session.to_owned();
        *state = state.with_metadata(SESSION_ID, session);
    }
    let is_noted = state.metadata().get(AGENT_ID).and_then(Value::as_str) == Some(agent.id());
    if agent.checkpoints.is_some() && !is_noted {
        *state = state.with_metadata(AGENT_ID, agent.id());
    }
}

/// The session of a run that starts at this state; none if no session is configured and there are
/// no checkpoints.
pub(super) fn in_effect<'a>(agent: &'a Agent, state: &'a AgentState) -> Option<&'a str> {
    match (&agent.options().session_id, &agent.inner.session_id) {
        (Some(given), _) => Some(given),
        (None, Some(made)) if agent.checkpoints.is_some() => {
            let own = state.metadata().get(SESSION_ID).and_then(Value::as_str);
            Some(own.unwrap_or(made))
        }
        (None, _) => None,
    }
}

/// Queues the state to be saved at the end of a step (UAP §12.4.5), without a wait.
pub(super) fn checkpoint(agent: &Agent, state: &mut AgentState) {
    let Some(checkpoints) = &agent.checkpoints else {
        return;
    };
    note(agent, state);
    if let Some(session) = state.metadata().get(SESSION_ID).and_then(Value::as_str) {
        checkpoints.save(session, state.clone());
    }
}

//! Handoffs: an agent ends its execution, and another agent continues on the same thread.
//!
//! A handoff is a call of a tool named `transfer_to_<agent>` ([`tool`]). Its result is written like
//! any other. Then one transaction completes the step, records the handoff as the turn's
//! `data-tp-agent_handoff`, ends the execution, and starts an execution of the other agent. Its
//! trigger is an `item_reference` to the item that the first execution answered.

mod journal;
mod transfer;

pub(crate) use transfer::Transfer;

pub(crate) use journal::{HandoffJournal, decided};

use agents::Agent;
use futures_util::FutureExt;
use futures_util::future::ready;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use upp::{Effect, Tool, ToolContext, ToolOutput};

/// The key of this system's entries in a tool's metadata, which are not sent to providers.
const NAMESPACE: &str = "loomline";
/// The metadata entry with the agent that a tool hands over to.
const ENTRY: &str = "handoff";
/// Maximum length of a tool's name that all providers accept.
const MAX_NAME: usize = 64;

/// An agent's decision that another agent continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handoff {
    /// The name of the agent that continues.
    pub to: String,
    /// The reason, in the words of the agent that hands over.
    pub reason: Option<String>,
    /// The call that decided it.
    pub tool_call_id: String,
}

/// Why agents can't hand over as their tools declare.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandoffError {
    /// There is no agent of this name.
    #[error("the agent {agent:?} can hand over to {target:?}, and there is no such agent")]
    Unknown {
        /// The agent that has the tool.
        agent: String,
        /// The target agent's name.
        target: String,
    },
    /// An agent would hand over to itself.
    #[error("the agent {agent:?} can't hand over to itself")]
    Itself {
        /// The agent.
        agent: String,
    },
}

/// Makes the tool that hands over to the agent `target`. The model sees `description`, which must
/// explain when to use it. A call may have a `reason`.
///
/// Characters that are not allowed in tool names become `_` in the tool's name; the target is
/// stored unchanged. Outside the runtime the tool only returns a text that it has transferred.
pub fn tool(target: &str, description: &str) -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": {
            "reason": {"type": "string", "description": "Why the other agent goes on."}
        }
    });
    let said = format!("Transferred to {target}.");
    let run = move |_: Value, _: ToolContext| {
        let output: ToolOutput = Ok(Value::String(said.clone()));
        ready(output).boxed()
    };
    let mut tool = Tool::new(tool_name(target), description, parameters, run);
    tool.effect = Effect::Pure;
    let entry = Map::from_iter([(ENTRY.to_owned(), Value::from(target))]);
    tool.metadata
        .insert(NAMESPACE.to_owned(), Value::Object(entry));
    tool
}

/// The name of the tool that hands over to this agent.
pub fn tool_name(target: &str) -> String {
    let safe = target.chars().map(|c| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => c,
        _ => '_',
    });
    "transfer_to_".chars().chain(safe).take(MAX_NAME).collect()
}

/// The agent that a tool hands over to, if [`tool`] made it.
pub fn target_of(tool: &Tool) -> Option<&str> {
    tool.metadata.get(NAMESPACE)?.get(ENTRY)?.as_str()
}

/// Checks, before anything runs, that the targets of all handoffs are among these agents.
pub fn check<'a>(agents: impl IntoIterator<Item = &'a Agent>) -> Result<(), HandoffError> {
    let agents: Vec<&Agent> = agents.into_iter().collect();
    let names: BTreeSet<&str> = agents.iter().map(|agent| agent.name()).collect();
    for agent in agents {
        let own = || agent.name().to_owned();
        for target in agent.tools().iter().filter_map(target_of) {
            if target == agent.name() {
                return Err(HandoffError::Itself { agent: own() });
            }
            if !names.contains(target) {
                return Err(HandoffError::Unknown {
                    agent: own(),
                    target: target.to_owned(),
                });
            }
        }
    }
    Ok(())
}

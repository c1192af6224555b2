//! The memory of 10,000 idle agents, each with a state of its own over one prefix of 1,000 messages.
//! `cargo bench -p loomline-benches --bench idle_agents`
//!
//! The agents share their options; each has an id, and one message more than the others' prefix.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench")]

use agents::{Agent, AgentOptions, AgentState};
use loomline_benches as _;
use serde_json::json;
use std::sync::Arc;
use upp::{AssistantMessage, Message, Scripted, Tool};

const AGENTS: usize = 10_000;
const PREFIX: usize = 1_000;

/// The resident memory of this process, in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4_096
}

fn prefix() -> AgentState {
    AgentState::initial().with_messages((0..PREFIX).map(|at| {
        let text = format!("Message {at}: what was said here is about fifty bytes.");
        match at % 2 {
            0 => Message::from(text),
            _ => AssistantMessage::text(text).into(),
        }
    }))
}

fn options() -> AgentOptions {
    let parameters = json!({"type": "object", "properties": {"key": {"type": "string"}}});
    let tool = Tool::simple("lookup", "Looks a key up.", parameters, |it| async {
        Ok(it)
    });
    let mut options = AgentOptions::new("idle", Arc::new(Scripted::new()));
    options.system = Some("Look things up.".into());
    options.tools = vec![tool];
    options
}

/// Prints what so many of these take, and gives them back: freed memory would be found by the next.
fn measure<T>(what: &str, make: impl Fn(usize) -> T) -> Vec<T> {
    let before = resident();
    let kept: Vec<T> = (0..AGENTS).map(make).collect();
    let taken = resident().saturating_sub(before);
    let (kilobytes, each) = (taken / 1_000, taken / AGENTS);
    println!("{AGENTS} x {what}: {kilobytes} kB, {each} bytes each");
    kept
}

fn main() {
    let (options, prefix) = (options(), prefix());
    let agent = Agent::new(options.clone()).unwrap();
    let message = |at: usize| Message::from(format!("Message of agent {at}."));
    let kept = (
        measure("one message (baseline: what is said)", message),
        measure("an agent that shares all, the state of the prefix", |_| {
            (agent.clone(), prefix.clone())
        }),
        measure(
            "an agent of its own and a state with one message of its own",
            |at| {
                let agent = Agent::new(options.clone()).unwrap();
                (agent, prefix.with_message(message(at)))
            },
        ),
    );
    drop(kept);
}

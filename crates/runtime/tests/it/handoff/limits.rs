//! Handoffs that can't be, before anything runs and while it does.

use crate::children::rig::{
    KEY, agent, at_rest, call, document, endings, events, message, results, text,
};
use agents::Agent;
use loomline_runtime as runtime;
use runtime::handoff::{self, HandoffError};
use runtime::{AgentReactors, Reactor, Reactors, RegistryError, Runtime, RuntimeOptions};
use std::sync::Arc;
use store::MemoryStore;
use timeline::ExecutionStatus;
use upp::Effect;

fn to(name: &str, target: &str) -> Agent {
    let tools = vec![handoff::tool(target, "Goes on.")];
    agent(name, vec![call(&handoff::tool_name(target))], tools)
}

#[tokio::test]
async fn agents_that_hand_over_to_each_other_for_ever_are_stopped_at_the_limit() {
    let reactors = AgentReactors::new([to("a", "b"), to("b", "a")], "a").unwrap();
    let options = RuntimeOptions {
        max_handoffs: 3,
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::new(Arc::new(MemoryStore::new()), Arc::new(reactors), options);
    for n_messages in 1..=2 {
        runtime.react(message(&runtime, "go")).await.unwrap();
        let records = at_rest(&runtime, KEY).await;
        let done = (ExecutionStatus::Completed, None);
        let stopped = (ExecutionStatus::Failed, Some("max_handoffs".to_owned()));
        let once = [done.clone(), done.clone(), done, stopped];
        // A user who speaks again begins the count again.
        assert_eq!(endings(&records), vec![once; n_messages].concat());
        let document = document(&runtime, KEY).await;
        assert_eq!(events(&document).len(), 3 * n_messages);
        let last = results(&document).pop().unwrap();
        assert!(last.contains("too often"), "{last}");
        let last = document["turns"].as_array().unwrap().last().unwrap();
        let told = last["interruption"]["detail"].as_str().unwrap();
        assert!(told.contains("3 times"), "{told}");
    }
}

#[test]
fn ten_handoffs_are_allowed_unless_it_is_said_otherwise() {
    assert_eq!(RuntimeOptions::default().max_handoffs, 10);
}

#[test]
fn an_agent_that_would_hand_over_to_nobody_is_refused_before_anything_runs() {
    let refused = AgentReactors::new([to("a", "nobody")], "a").err().unwrap();
    let RegistryError::Handoff(error) = refused else {
        panic!("{refused}")
    };
    let (agent, target) = ("a".to_owned(), "nobody".to_owned());
    assert_eq!(error, HandoffError::Unknown { agent, target });
}

#[test]
fn an_agent_can_not_hand_over_to_itself() {
    let own = to("a", "a");
    let agent = "a".to_owned();
    assert_eq!(handoff::check([&own]), Err(HandoffError::Itself { agent }));
}

/// A registry from which an agent has vanished.
struct Without(AgentReactors, &'static str);

impl Reactors for Without {
    fn find(&self, agent: Option<&str>) -> Option<Arc<dyn Reactor>> {
        self.0.find(agent).filter(|_| agent != Some(self.1))
    }

    fn has(&self, agent: &str) -> bool {
        self.0.has(agent) && agent != self.1
    }

    fn name(&self, agent: Option<&str>) -> Option<String> {
        self.0.name(agent)
    }
}

#[tokio::test]
async fn a_handoff_to_an_agent_that_has_vanished_is_an_error_result_and_the_agent_goes_on() {
    let turns = vec![call("transfer_to_b"), text("Then I do it.")];
    let a = agent("a", turns, vec![handoff::tool("b", "Goes on.")]);
    let b = agent("b", vec![text("Unused.")], vec![]);
    let reactors = Without(AgentReactors::new([a, b], "a").unwrap(), "b");
    let runtime = Runtime::new(
        Arc::new(MemoryStore::new()),
        Arc::new(reactors),
        RuntimeOptions::default(),
    );
    runtime.react(message(&runtime, "go")).await.unwrap();
    let records = at_rest(&runtime, KEY).await;
    assert_eq!(endings(&records), [(ExecutionStatus::Completed, None)]);
    let document = document(&runtime, KEY).await;
    assert!(results(&document)[0].contains("no agent named"));
    assert_eq!(events(&document), Vec::<String>::new());
}

#[test]
fn the_tool_has_a_name_that_every_provider_takes_and_knows_the_agents_own() {
    let tool = handoff::tool("Bills & refunds", "Pays.");
    assert_eq!(tool.name, "transfer_to_Bills___refunds");
    assert_eq!(handoff::target_of(&tool), Some("Bills & refunds"));
    assert_eq!(tool.effect, Effect::Pure);
    assert!(handoff::tool_name(&"x".repeat(100)).len() <= 64);
}

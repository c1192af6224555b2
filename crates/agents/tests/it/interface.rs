//! Ids, inputs and defaults of an agent (UAP §2.4, §3.4, §4).

use crate::strategies::*;
use crate::support::*;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use loomline_agents::checkpoint::{Checkpoints, MemoryCheckpoints};
use loomline_agents::{AgentOptions, AgentState, Limit, Loop, Plan, React, ThreadTree};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use upp::{Message, MessageOptions, Model, Scripted, ToolOutput, UserContent, UserMessage};

fn version(id: &str) -> usize {
    uuid::Uuid::parse_str(id).unwrap().get_version_num()
}

#[tokio::test]
async fn every_id_is_a_random_uuid() {
    let checkpoints = Checkpoints::from(MemoryCheckpoints::new());
    let mut options = adding();
    options.checkpoints = Some(checkpoints.clone());
    let first = agent(options.clone());
    let second = agent(options);
    assert_ne!(first.id(), second.id());
    let start = AgentState::initial();
    let result = first.ask("go", start.clone()).await.unwrap();
    assert_ne!(start.id(), result.state.id());
    let session = first.session_id().unwrap();
    assert_ne!(Some(session), second.session_id());
    assert_eq!(result.state.metadata()["sessionId"], session);
    checkpoints.flush().await;
    let metadata = checkpoints.store().load_metadata(session).await.unwrap();
    let mut tree = ThreadTree::of(result.state.clone());
    let branch = tree.branch(tree.root().id().clone(), None).unwrap();
    for id in [
        first.id(),
        second.id(),
        start.id(),
        result.state.id(),
        session,
        &metadata.unwrap().checkpoint_id,
        tree.root().id(),
        &branch,
    ] {
        assert_eq!(version(id), 4, "{id}");
    }
}

#[test]
fn an_agent_shows_what_it_was_made_of() {
    let mut options = adding();
    options.system = Some("Be brief.".into());
    options.params = Arc::new(json!({"seed": 1}).as_object().cloned().unwrap());
    options.structure = Some(Arc::new(json!({"type": "object"})));
    let agent = agent(options);
    assert_eq!(agent.model().model_id(), Scripted::new().model_id());
    assert_eq!(agent.system(), Some("Be brief."));
    let names: Vec<&str> = agent.tools().iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["add"]);
    // What makes another agent has all of it: nothing is lost on the way (UAP §2.3).
    let again: AgentOptions = agent.options().clone();
    assert_eq!(json!(&*again.params), json!({"seed": 1}));
    assert!(again.structure.is_some());
}

#[tokio::test]
async fn an_input_is_a_text_or_a_message_which_is_taken_as_it_is() {
    let agent = agent(options(Arc::new(Scripted::new())));
    let block = UserContent::Text {
        text: "by hand".to_owned(),
    };
    let given = UserMessage::new(
        vec![block],
        MessageOptions {
            id: Some("mine".into()),
            timestamp: Some("2026-01-02T03:04:05Z".parse().unwrap()),
            metadata: json!({"app": {"x": 1}})
                .as_object()
                .cloned()
                .map(Into::into),
        },
    );
    let given = Message::from(given);
    for result in [
        agent
            .generate(given.clone(), AgentState::initial())
            .await
            .unwrap(),
        agent
            .stream(given.clone(), AgentState::initial())
            .result()
            .await
            .unwrap(),
        agent
            .ask(given.clone(), AgentState::initial())
            .await
            .unwrap(),
    ] {
        assert_eq!(result.turn.messages[0], given);
        assert_eq!(result.state.messages().first(), Some(&given));
    }
    let turn = agent.query(given.clone()).await.unwrap();
    assert_eq!(turn.messages[0], given);
    let turn = agent.query("in words").await.unwrap();
    assert!(matches!(&turn.messages[0], Message::User(_)));
    assert_eq!(turn.messages[0].joined_text(), "in words");
}

#[test]
fn nothing_is_limited_by_default() {
    let options = options(Arc::new(Scripted::new()));
    assert_eq!(options.tool_strategy.max_iterations, None);
    assert_eq!(options.execution.name(), "loop");
    assert_eq!(Loop::default().max_iterations, Limit::Unbounded);
    assert_eq!(React::default().max_steps, Limit::Unbounded);
    let plan = Plan::default();
    assert_eq!(plan.max_plan_steps, Limit::Unbounded);
    assert!(plan.allow_replan);
}

#[tokio::test]
async fn a_plan_may_have_any_number_of_steps() {
    let steps: Vec<Value> = (0..150)
        .map(|n| drafted(&format!("s{n}"), None, &[]))
        .collect();
    let mut turns = vec![plans(&steps)];
    turns.extend((0..150).map(|n| says(&format!("{n}"))));
    let (options, _) = on_script(Plan::default(), turns);
    let result = generate(options).await;
    assert_eq!(result.state.step(), 151);
    assert_eq!(result.turn.response.joined_text(), "149");
}

#[tokio::test(start_paused = true)]
async fn a_run_may_take_a_year() {
    const DAY: Duration = Duration::from_hours(24);
    let slow = tool("slow", |_: Value, _: upp::ToolContext| {
        async {
            tokio::time::sleep(365 * DAY).await;
            Ok(json!("ready"))
        }
        .boxed() as BoxFuture<'static, ToolOutput>
    });
    let mut options = options(Canned::calls(vec![call("1", "slow", &[])]));
    options.tools = vec![slow];
    let start = tokio::time::Instant::now();
    let result = generate(options).await;
    assert_eq!(results(&result.state)[0].result, "ready");
    assert!(start.elapsed() >= 365 * DAY);
}

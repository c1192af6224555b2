//! What is saved, whatever the strategy (UAP §8.8, §12.4.5, §12.4.7).

use super::*;
use crate::strategies::{on_script, two_plan_steps, two_react_steps};
use loomline_agents::{Plan, React, SubAgentTool, subagent_tool};
use serde_json::json;
use upp::Arguments;

#[tokio::test]
async fn react_and_plan_are_saved_at_every_step() {
    for (plans, steps) in [(false, vec![1, 2]), (true, vec![1, 2, 3])] {
        let (store, checkpoints) = slow(100, |_| {});
        let (options, _) = if plans {
            on_script(Plan::default(), two_plan_steps())
        } else {
            on_script(React::default(), two_react_steps())
        };
        let result = generate(kept(options, &checkpoints)).await;
        checkpoints.flush().await;
        assert_eq!(store.steps(), steps);
        let (session, saved) = store.last();
        assert_eq!(session, session_of(&result.state));
        assert_eq!(saved, result.state, "reasoning, plan and all");
        assert_eq!(saved.plan().is_some(), plans);
        assert_eq!(saved.reasoning().len(), if plans { 0 } else { 2 });
    }
}

#[tokio::test]
async fn a_checkpoint_has_the_traces_of_sub_agents_and_gives_them_back() {
    let mut inner = scripted(vec![
        ScriptTurn::call("add", json!({"a": 1, "b": 2})),
        ScriptTurn::text("added"),
    ]);
    inner.tools = vec![add()];
    let helper = SubAgentTool::new(
        "helper",
        "Adds.",
        json!({"type": "object"}),
        agent(inner),
        |_| Ok("add".into()),
    );
    let mut spawning = call("spawning", "helper", &[]);
    spawning.arguments = Arguments::from_text("{}");
    let mut options = options(Canned::calls(vec![spawning]));
    options.tools = vec![subagent_tool(helper)];
    let checkpoints = memory();
    let result = generate(kept(options, &checkpoints)).await;
    let saved = load(&checkpoints, session_of(&result.state)).await;
    let kept: Vec<_> = saved.subagent_traces().collect();
    assert_eq!(kept, result.state.subagent_traces().collect::<Vec<_>>());
    let [trace] = kept.as_slice() else {
        panic!("one trace: {kept:?}");
    };
    assert_eq!(trace.parent_tool_call_id.as_str(), "spawning");
    let tools = trace.tool_executions.as_ref().unwrap();
    assert_eq!((tools.len(), tools[0].result.as_str()), (1, "3.0"));
    assert!(trace.success && trace.usage.is_some());
    // It is still there after the session went on.
    let mut options = crate::support::options(Canned::new(|_| Some(said("yes"))));
    options.checkpoints = Some(checkpoints.clone());
    let resumed = agent(options).ask("go on", saved.clone()).await.unwrap();
    assert_eq!(resumed.state.subagent_traces().len(), 1);
}

#[tokio::test]
async fn a_save_that_fails_is_logged_with_its_session() {
    let (log, _guard) = traced();
    let (_, checkpoints) = slow(100, |store| store.fails = true);
    let mut options = kept(adding(), &checkpoints);
    options.session_id = Some("the-session".to_owned());
    generate(options).await;
    checkpoints.flush().await;
    let lines = log.lines();
    let told = lines.iter().find(|line| line.starts_with("ERROR")).unwrap();
    for word in [
        "a checkpoint was not saved",
        "the-session",
        "the disk is full",
    ] {
        assert!(told.contains(word), "{told}");
    }
}

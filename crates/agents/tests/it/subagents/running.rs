//! How a sub-agent runs: back-pressure, cancellation, hosts (UAP §8.7, §15.2).

use super::*;
use crate::crashing::cycle_by_cycle;
use loomline_agents::checkpoint::{Checkpoints, MemoryCheckpoints};
use std::future::pending;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

#[tokio::test]
async fn no_event_is_lost_and_each_sub_agents_order_is_kept() {
    let talker = |n: usize| {
        let words: Vec<String> = (0..n).map(|n| n.to_string()).collect();
        let agent = agent(scripted(vec![ScriptTurn::text(words.join(" "))]));
        subagent_tool(definition(&format!("talker{n}"), agent))
    };
    let (events, _) = watched(lead(vec![talker(300), talker(500)])).await;
    for n in [300, 500] {
        let mut heard = String::new();
        for event in &events {
            if let SubagentEvent::Forwarded(event) = event
                && event.subagent_type == format!("talker{n}")
                && let AgentStreamEvent::Upp {
                    upp: upp::StreamEvent::TextDelta { text, .. },
                } = &event.inner_event
            {
                heard.push_str(text);
            }
        }
        let expected: Vec<String> = (0..n).map(|n| n.to_string()).collect();
        assert_eq!(heard, expected.join(" "));
    }
    let ids: std::collections::BTreeSet<&str> = ends(&events)
        .iter()
        .map(|it| it.subagent_id.as_str())
        .collect();
    assert_eq!(ids.len(), 2);
}

#[tokio::test]
async fn a_reader_who_stops_holds_the_sub_agent_back() {
    let text = "word ".repeat(2000);
    let child = agent(scripted(vec![ScriptTurn::text(text.trim_end())]));
    let log = Log::default();
    let noting = log.clone();
    let after = quick("after", move |_| {
        noting.add("ran");
        Ok(json!(1))
    });
    let mut options = lead(vec![subagent_tool(definition("talker", child))]);
    options.tools.push(after);
    let mut talk = call("1", "talker", &[]);
    talk.arguments = upp::Arguments::from_value(&json!({"task": "go"}));
    options.model = Canned::calls(vec![talk, call("2", "after", &["1"])]);
    let mut stream = agent(options).stream("go", AgentState::initial());
    // Polled once more after each event; the child's 2000 words do not fit into what may wait.
    for _ in 0..20 {
        assert!(stream.next().await.is_some());
    }
    assert!(log.lines().is_empty(), "the sub-agent is not through");
    while stream.next().await.is_some() {}
    assert_eq!(log.lines(), ["ran"]);
}

#[tokio::test]
async fn aborting_the_parent_cancels_the_sub_agent() {
    let model = Canned::new(|_| None);
    let child = agent(options(model.clone()));
    let mut stream = agent(lead(vec![subagent_tool(definition("stuck", child))]))
        .stream("go", AgentState::initial());
    while stream.next().now_or_never().is_some() {}
    assert_eq!(model.seen.lock().unwrap().len(), 1, "it was asked");
    stream.abort();
    assert!(stream.result().await.is_err());
    assert!(model.seen.lock().unwrap()[0].signal.is_cancelled());
}

struct StopsAtOnce;

impl AgentStrategy for StopsAtOnce {
    fn stop_condition<'a>(&'a self, _: &'a AgentState) -> BoxFuture<'a, bool> {
        ready(true).boxed()
    }
}

#[tokio::test]
async fn a_parents_stop_condition_means_nothing_to_its_sub_agent() {
    let mut options = lead(vec![subagent_tool(definition("explore", adder()))]);
    options.strategy = Arc::new(StopsAtOnce);
    let result = generate(options).await;
    assert_eq!(result.turn.cycles, 1);
    assert_eq!(
        traces(&result.state)[0]
            .usage
            .as_ref()
            .unwrap()
            .cycles
            .len(),
        2
    );
}

#[tokio::test]
async fn a_sub_agent_cant_wait_for_answers() {
    let mut options = options(Canned::calls(vec![call("1", "pay", &[])]));
    options.tools = vec![quick("pay", |_| Ok(json!(1))).with_requires_approval()];
    let tool = subagent_tool(definition("buyer", agent(options)));
    let result = generate(lead(vec![tool])).await;
    let answer = &results(&result.state)[0];
    assert!(
        answer.is_error
            && answer
                .result
                .as_str()
                .unwrap()
                .contains("waits for answers")
    );
    assert!(result.pending.is_empty());
}

/// A host that shows nothing, and has a word of its own in the traces.
struct Elsewhere;

impl SubAgentHost for Elsewhere {
    fn run(&self, spawn: Spawn) -> BoxFuture<'static, SubAgentRun> {
        let context = upp::ToolContext::new(spawn.tool_call_id.clone(), spawn.signal.clone());
        async move {
            let mut run = spawn.run(&context).await;
            for trace in &mut run.traces {
                "elsewhere".clone_into(&mut trace.prompt);
            }
            run
        }
        .boxed()
    }
}

#[tokio::test]
async fn another_host_may_run_sub_agents_and_its_traces_are_kept() {
    let parent = agent(lead(vec![subagent_tool(definition("explore", adder()))]));
    let keeper = Keeper::default();
    let mut context = keeper.context(&parent, &[]);
    context.host = Some(Arc::new(Elsewhere));
    let state = AgentState::initial().with_message("go");
    let outcome = parent.run_step(state, &context).await.unwrap();
    assert_eq!(results(&outcome.state)[0].result, "added");
    assert_eq!(traces(&outcome.state)[0].prompt, "elsewhere");
    let lines = keeper.log.lines();
    assert!(lines.contains(&"traced call_explore".to_owned()));
    assert!(
        !lines.iter().any(|line| line.starts_with("subagent")),
        "the host shows, or not"
    );
}

#[tokio::test]
async fn a_sub_agent_may_be_interrupted_by_the_keeper() {
    let parent = agent(lead(vec![subagent_tool(definition("explore", adder()))]));
    let keeper = Keeper {
        refuses: Some("subagent_event"),
        ..Keeper::default()
    };
    let state = AgentState::initial().with_message("go");
    let run = parent.run_step(state, &keeper.context(&parent, &[])).await;
    assert!(matches!(run, Err(loomline_agents::AgentError::Cancelled)));
    assert_eq!(keeper.log.lines().last().unwrap(), "subagent_event");
}

#[tokio::test]
async fn a_sub_agent_leaves_the_checkpoint_of_its_own_session_alone() {
    let checkpoints = Checkpoints::from(MemoryCheckpoints::new());
    let mut options = scripted(vec![ScriptTurn::text("hi")]);
    options.checkpoints = Some(checkpoints.clone());
    options.session_id = Some("talk".to_owned());
    let helper = agent(options);
    let talk = helper.ask("hello", AgentState::initial()).await.unwrap();
    let tool = subagent_tool(definition("helper", helper));
    let result = generate(lead(vec![tool])).await;
    assert!(traces(&result.state)[0].success);
    checkpoints.flush().await;
    let saved = checkpoints.store().load("talk").await.unwrap().unwrap();
    assert_eq!(AgentState::from_json(&saved).unwrap(), talk.state);
}

#[tokio::test]
async fn a_keeper_that_adds_the_traces_it_kept_has_them_all_after_any_crash() {
    let tools = || ["one", "two"].map(|name| subagent_tool(definition(name, adder())));
    let parents = |state: &AgentState| -> Vec<String> {
        let traces = traces(state).into_iter();
        let mut ids: Vec<String> = traces
            .map(|it| it.parent_tool_call_id.to_string())
            .collect();
        ids.sort();
        ids
    };
    for crash in [None].into_iter().chain((0..7).map(Some)) {
        let agent = agent(lead(tools().to_vec()));
        let state = AgentState::initial().with_message("go");
        let state = cycle_by_cycle(&agent, state, crash).await.unwrap();
        assert_eq!(parents(&state), ["call_one", "call_two"], "{crash:?}");
    }
}

/// A host whose first run waits for somebody, and whose others end when they are told to.
#[derive(Default)]
struct Gate {
    n_begun: AtomicUsize,
    is_open: Arc<Notify>,
}

impl SubAgentHost for Gate {
    fn run(&self, spawn: Spawn) -> BoxFuture<'static, SubAgentRun> {
        let is_first = self.n_begun.fetch_add(1, Ordering::SeqCst) == 0;
        let is_open = Arc::clone(&self.is_open);
        async move {
            if is_first {
                spawn.waits.set(true);
                pending::<()>().await;
            }
            is_open.notified().await;
            let turn = Err(loomline_agents::AgentError::Cancelled);
            let traces = Vec::new();
            SubAgentRun { turn, traces }
        }
        .boxed()
    }
}

#[tokio::test]
async fn a_call_of_two_sub_agents_is_left_open_once_one_ended_and_the_other_waits() {
    let both = Tool::new(
        "both",
        "",
        schema(),
        |_: Value, context: upp::ToolContext| -> BoxFuture<'static, upp::ToolOutput> {
            async move {
                let run = || Spawn::new(adder(), "go", &context).run(&context);
                futures_util::future::join(run(), run()).await;
                Ok(json!("both have ended"))
            }
            .boxed()
        },
    );
    let parent = agent(lead(vec![both]));
    let (keeper, gate) = (Keeper::default(), Arc::new(Gate::default()));
    let mut context = keeper.context(&parent, &[]);
    context.host = Some(Arc::clone(&gate) as _);
    let state = AgentState::initial().with_message("go");
    let mut step = pin!(parent.run_step(state, &context));
    assert!(step.as_mut().now_or_never().is_none(), "one of them runs");
    gate.is_open.notify_one();
    let outcome = step.now_or_never().unwrap().unwrap();
    let suspended: Vec<&str> = outcome
        .state
        .suspended()
        .iter()
        .map(upp::ToolCallId::as_str)
        .collect();
    assert_eq!(suspended, ["call_both"]);
}

//! The agent and its methods (UAP §2, §4, §5.2).

use crate::strategies::assert_sums;
use crate::support::*;
use loomline_agents::{
    Agent, AgentError, AgentOptions, AgentState, AgentStrategy, ExecutionStrategy, GenerateResult,
    Limit, Loop, React,
};
use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::sync::Arc;
use upp::{
    Code, Message, MessageOptions, Script, ScriptTurn, Scripted, StopReason, ToolChoice,
    ToolResultMessage, ToolUseStrategy, UserMessage,
};

#[tokio::test]
async fn a_run_goes_on_until_the_model_calls_no_tool() {
    let result = generate(adding()).await;
    assert_eq!(result.turn.response.joined_text(), "done");
    let values: Vec<Value> = results(&result.state)
        .into_iter()
        .map(|it| it.result.into())
        .collect();
    assert_eq!(values, [json!(2.0), json!(3.0), json!(4.0)]);
    assert_eq!(result.state.messages().len(), 8);
}

#[tokio::test]
async fn the_turn_is_that_of_the_whole_run() {
    let start = AgentState::initial()
        .with_message("earlier")
        .with_message(said("yes"));
    let input = UserMessage::text("go");
    let result = agent(adding())
        .generate(input.clone(), start)
        .await
        .unwrap();
    assert_eq!(
        result.turn.messages.len(),
        8,
        "input, four answers, three rounds"
    );
    assert_eq!(result.turn.messages[0].id(), &input.id);
    assert_eq!(result.turn.tool_executions.len(), 3);
    assert_sums(&result, 4);
}

#[tokio::test]
async fn there_is_no_limit_unless_one_is_asked_for() {
    let mut turns = vec![ScriptTurn::call("add", json!({"a": 1, "b": 2})); 200];
    turns.push(ScriptTurn::text("done"));
    let mut options = scripted(turns);
    options.tools = vec![add()];
    let result = generate(options).await;
    assert_eq!((result.turn.cycles, result.state.step()), (201, 201));
}

#[tokio::test]
async fn at_most_n_rounds_of_tools_run() {
    for n in 1..=4 {
        let log = Log::default();
        let heard = log.clone();
        let mut options = adding();
        options.execution = Arc::new(Loop {
            max_iterations: Limit::AtMost(NonZeroU32::new(n).unwrap()),
        });
        options.tool_strategy =
            ToolUseStrategy::unlimited().with_on_tool_call(move |_, _| heard.add("call"));
        let run = agent(options).generate("go", AgentState::initial()).await;
        assert_eq!(log.lines().len(), usize::try_from(n.min(3)).unwrap());
        let turn = run.unwrap().turn;
        assert_eq!(turn.stop_reason == StopReason::EndTurn, n >= 3, "{n}");
    }
}

#[tokio::test]
async fn the_loops_limit_ends_a_run_with_its_final_response() {
    let (log, told) = (Log::default(), Log::default());
    let (_guard, logged) = {
        let (lines, guard) = traced();
        (guard, lines)
    };
    let (heard, completed) = (log.clone(), told.clone());
    let mut options = adding();
    options.execution = Arc::new(Loop {
        max_iterations: Limit::AtMost(NonZeroU32::new(2).unwrap()),
    });
    options.tool_strategy = ToolUseStrategy::unlimited()
        .with_max_iterations(Some(3))
        .with_on_max_iterations(move |n| heard.add(n.to_string()));
    options.strategy = Arc::new(Completed(completed));
    let agent = agent(options);
    let result = agent.generate("go", AgentState::initial()).await.unwrap();
    let done = result.turn.tool_executions.iter();
    assert_eq!(
        done.filter(|done| !done.is_error).count(),
        2,
        "the work is kept"
    );
    assert_eq!(result.turn.cycles, 3);
    assert_eq!(result.turn.stop_reason, StopReason::ToolUse);
    assert_eq!(result.turn.response.tool_calls.len(), 1);
    let last = results(&result.state).pop().unwrap();
    assert!(last.is_error && last.result.to_string().contains("is reached: 2"));
    assert_eq!(
        (log.lines(), told.lines()),
        (vec!["2".into()], vec!["complete".into()])
    );
    assert!(logged.lines().concat().contains("limit=2"));
    let next = agent.ask("go on", result.state).await;
    assert!(next.is_ok(), "the state goes on: {next:?}");
}

/// Writes down that the run is complete.
struct Completed(Log);

impl AgentStrategy for Completed {
    fn on_complete(&self, _: &GenerateResult) {
        self.0.add("complete");
    }
}

#[tokio::test]
async fn the_tool_strategys_limit_is_told_before_the_error() {
    let log = Log::default();
    let heard = log.clone();
    let mut options = adding();
    options.tool_strategy = ToolUseStrategy::unlimited()
        .with_max_iterations(Some(2))
        .with_on_max_iterations(move |n| heard.add(n.to_string()));
    let error = agent(options)
        .generate("go", AgentState::initial())
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some(Code::InvalidRequest));
    assert_eq!(log.lines(), ["2"]);
}

#[tokio::test]
async fn a_limit_counts_anew_for_each_input() {
    let mut options = adding();
    options.tool_strategy.max_iterations = Some(3);
    let agent = agent(options);
    let first = agent.ask("go", AgentState::initial()).await.unwrap();
    assert!(agent.ask("again", first.state).await.is_ok());
}

#[tokio::test]
async fn no_rounds_gives_the_turn_with_its_calls() {
    let mut options = adding();
    options.tool_strategy.max_iterations = Some(0);
    let agent = agent(options);
    let result = agent.generate("go", AgentState::initial()).await.unwrap();
    assert_eq!(result.state.open_calls().len(), 1);
    assert!(result.turn.tool_executions.is_empty());

    let refused = agent
        .generate("on", result.state.clone())
        .await
        .unwrap_err();
    assert!(matches!(refused, AgentError::OpenCalls { n_calls: 1 }));
    let id = result.state.open_calls()[0]
        .tool_call_id
        .as_str()
        .to_owned();
    let answer = ToolResultMessage::new(vec![result_of(&id)], MessageOptions::default());
    assert!(agent.generate(answer, result.state).await.is_ok());
}

fn result_of(id: &str) -> upp::ToolResult {
    crate::support::result(id, "by hand")
}

#[tokio::test]
async fn no_message_is_ever_doubled() {
    let agent = agent(options(Arc::new(Scripted::new())));
    let first = agent.ask("hello", AgentState::initial()).await.unwrap();
    let second = agent.ask("again", first.state.clone()).await.unwrap();
    assert_eq!(
        (first.state.messages().len(), second.state.messages().len()),
        (2, 4)
    );
    let mut ids: Vec<_> = second.state.messages().iter().map(Message::id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 4);
}

#[tokio::test]
async fn ask_remembers_and_query_does_not() {
    let model = Canned::new(|_| Some(said("yes")));
    let agent = agent(options(model.clone()));
    let first = agent
        .ask("my name is Alice", AgentState::initial())
        .await
        .unwrap();
    agent.ask("my name?", first.state).await.unwrap();
    agent.query("my name?").await.unwrap();
    let lengths: Vec<usize> = model
        .seen
        .lock()
        .unwrap()
        .iter()
        .map(|request| request.messages.len())
        .collect();
    assert_eq!(lengths, [1, 3, 1]);
}

#[tokio::test]
async fn states_branch() {
    let agent = agent(options(Arc::new(Scripted::new())));
    let start = agent
        .ask("start", AgentState::initial())
        .await
        .unwrap()
        .state;
    let before = start.to_json().unwrap();
    let left = agent.ask("left", start.clone()).await.unwrap().state;
    let right = agent.ask("right", start.clone()).await.unwrap().state;
    assert_eq!(start.to_json().unwrap(), before);
    assert_ne!(content(&left), content(&right));
    assert_ne!(left.id(), right.id());
}

#[tokio::test]
async fn steps_are_counted_over_calls() {
    let agent = agent(adding());
    let first = agent.ask("go", AgentState::initial()).await.unwrap();
    let second = agent.ask("go", first.state.clone()).await.unwrap();
    assert_eq!((first.state.step(), second.state.step()), (4, 8));
}

#[tokio::test]
async fn options_reach_the_model_untouched() {
    let model = Canned::calls(vec![call("1", "add", &[])]);
    let mut options = options(model.clone());
    options.system = Some("be brief".into());
    options.params = Arc::new(json!({"temperature": 0.5}).as_object().cloned().unwrap());
    options.structure = Some(Arc::new(json!({"type": "object"})));
    options.tools = vec![add()];
    options.tool_choice = ToolChoice::Required;
    options.session_id = Some("session".to_owned());
    let agent = agent(options);
    let result = agent.generate("go", AgentState::initial()).await.unwrap();
    assert_eq!(result.state.metadata()["sessionId"], "session");
    let seen = model.seen.lock().unwrap();
    assert_eq!(seen[0].system.as_deref(), agent.system());
    assert_eq!(seen[0].params["temperature"], 0.5);
    assert_eq!(seen[0].tools[0].name, "add");
    assert!(seen[0].structure.is_some());
    assert_eq!(seen[0].tool_choice, ToolChoice::Required);
    assert_eq!(
        seen[1].tool_choice,
        ToolChoice::Auto,
        "else the run could not end"
    );
}

#[tokio::test]
async fn an_agent_is_made_anew_from_anothers_options() {
    let first = agent(adding());
    let mut options = first.options().clone();
    options.name = "limited".to_owned();
    let second = agent(options);
    assert_eq!((second.tools().len(), second.name()), (1, "limited"));
    assert_ne!(first.id(), second.id());
}

#[tokio::test]
async fn structured_output_comes_with_the_turn() {
    let mut options = options(Arc::new(Scripted::new()));
    options.structure = Some(Arc::new(json!({
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
    })));
    let turn = agent(options).query("a number").await.unwrap();
    assert!(turn.data.unwrap()["n"].is_i64());
}

#[tokio::test]
async fn a_failure_of_the_model_is_the_runs() {
    let agent = agent(options(Arc::new(Scripted::new())));
    let error = agent.query("fail rate_limited").await.unwrap_err();
    assert_eq!(error.code(), Some(Code::RateLimited));
}

#[tokio::test]
async fn a_ghost_call_is_answered_and_a_model_that_stops_is_heard() {
    let mut options = scripted(vec![
        ScriptTurn::call("ghost", json!({})),
        ScriptTurn::call("ghost", json!({})),
        ScriptTurn::text("sorry"),
    ]);
    options.tools = vec![add()];
    let result = generate(options).await;
    assert_eq!(results(&result.state)[0].result, "Tool 'ghost' not found");
    assert!(results(&result.state)[0].is_error);
    assert_eq!(result.turn.response.joined_text(), "sorry");
}

#[tokio::test]
async fn a_model_that_is_cut_off_within_its_calls_may_always_try_again() {
    let cut = ScriptTurn {
        stop_reason: Some(StopReason::MaxTokens),
        ..ScriptTurn::call("add", json!("{\"a\": 1, "))
    };
    for (strategy, n_asked) in strategies() {
        let mut turns = vec![cut.clone(); 40];
        turns.push(ScriptTurn::text("shorter"));
        let result = generate(once(turns, strategy)).await;
        assert_eq!(result.turn.response.joined_text(), "shorter");
        assert_eq!(result.turn.cycles, n_asked);
        let told = results(&result.state);
        assert!(told.iter().all(|result| result.is_error), "{told:?}");
    }
}

/// An agent whose model goes through these turns once, whatever prompts come.
fn once(turns: Vec<ScriptTurn>, strategy: Arc<dyn ExecutionStrategy>) -> AgentOptions {
    let mut script = Script::new(turns);
    script.per_turn = false;
    script.repeat_last = true;
    let mut options = options(Arc::new(Scripted::with_script(script)));
    options.tools = vec![add()];
    options.execution = strategy;
    options
}

/// Strategies without a limit, with how often each asks before it has the answer after 40 calls.
fn strategies() -> [(Arc<dyn ExecutionStrategy>, u32); 2] {
    [
        (Arc::new(Loop::default()), 41),
        (Arc::new(React::default()), 42),
    ]
}

#[tokio::test]
async fn unknown_calls_never_end_a_run_without_a_limit() {
    for (strategy, n_asked) in strategies() {
        let mut turns = vec![ScriptTurn::call("ghost", json!({})); 40];
        turns.push(ScriptTurn::text("at last"));
        let result = generate(once(turns, strategy)).await;
        assert_eq!(result.turn.response.joined_text(), "at last");
        assert_eq!(result.turn.cycles, n_asked);
    }
}

#[tokio::test]
async fn without_tools_the_turn_with_its_calls_is_the_last() {
    let mut script = Script::new(vec![ScriptTurn::call("ghost", json!({}))]);
    script.repeat_last = true;
    let result = generate(options(Arc::new(Scripted::with_script(script)))).await;
    assert_eq!(result.turn.cycles, 1);
    assert_eq!(result.turn.stop_reason, StopReason::ToolUse);
    assert_eq!(result.turn.response.tool_calls.len(), 1);
    assert!(result.state.open_calls().is_empty());
}

#[test]
fn an_agents_futures_may_move_between_threads() {
    fn is_send<T: Send>(_: &T) {}
    let agent: Agent = agent(adding());
    is_send(&agent.generate("go", AgentState::initial()));
    is_send(&agent.stream("go", AgentState::initial()));
    is_send(&agent.query("go"));
}

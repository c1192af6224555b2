//! Calls that wait for approvals, and what answers may say.

mod answers;

use crate::strategies::{approve_all, queued};
use crate::support::*;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use loomline_agents::{
    AgentError, AgentOptions, AgentState, AnswerError, Answers, GenerateResult, PendingKind,
};
use serde_json::{Value, json};
use std::future::ready;
use std::sync::{Arc, Mutex};
use upp::{
    Arguments, BeforeCall, Code, Message, StopReason, Tool, ToolCall, ToolContext, ToolOutput,
    ToolUseStrategy,
};

use crate::support::result as answer;

fn pay(log: &Log) -> Tool {
    let log = log.clone();
    let schema = json!({
        "type": "object",
        "properties": {"sum": {"type": "integer"}},
        "required": ["sum"],
    });
    let pay = Tool::simple("pay", "Pays.", schema, move |arguments| {
        log.add(format!("pay {}", arguments["sum"]));
        std::future::ready(Ok(json!({ "paid": arguments["sum"] })))
    });
    pay.with_requires_approval()
}

fn paying(id: &str, sum: &Value) -> ToolCall {
    ToolCall {
        arguments: Arguments::from_value(&json!({ "sum": sum })),
        ..call(id, "pay", &[])
    }
}

/// Pays twice, looks once, and has something done elsewhere.
fn options_with(log: &Log) -> AgentOptions {
    let calls = vec![
        paying("a", &json!(1)),
        call("look", "look", &[]),
        paying("b", &json!(2)),
        call("x", "elsewhere", &[]),
    ];
    let noting = log.clone();
    let mut options = options(Canned::calls(calls));
    options.id = Some("same".into());
    options.tools = vec![
        pay(log),
        quick("look", move |_| {
            noting.add("look");
            Ok(json!("seen"))
        }),
        Tool::external("elsewhere", "", json!({"type": "object"})),
    ];
    options
}

fn ids(result: &GenerateResult) -> Vec<&str> {
    let calls = result.pending.iter();
    calls.map(|it| it.call.tool_call_id.as_str()).collect()
}

fn refusal(outcome: Result<GenerateResult, AgentError>) -> AnswerError {
    let AgentError::Answers(error) = outcome.unwrap_err() else {
        unreachable!("another error was given");
    };
    error
}

#[tokio::test]
async fn a_run_waits_with_what_could_run_done() {
    let log = Log::default();
    let result = generate(options_with(&log)).await;
    assert_eq!(log.lines(), ["look"]);
    assert_eq!(ids(&result), ["a", "b", "x"]);
    let kinds: Vec<PendingKind> = result.pending.iter().map(|it| it.kind).collect();
    assert_eq!(
        kinds,
        [
            PendingKind::Approval,
            PendingKind::Approval,
            PendingKind::External
        ]
    );
    assert_eq!(results(&result.state), [answer("look", "seen")]);
    let open: Vec<&str> = result
        .state
        .open_calls()
        .iter()
        .map(|it| it.tool_call_id.as_str())
        .collect();
    assert_eq!(open, ["a", "b", "x"]);
    assert_eq!(result.turn.response.tool_calls.len(), 4);
    assert_eq!(result.turn.messages.len(), 3, "input, calls, one result");
}

#[tokio::test]
async fn a_run_goes_on_when_all_answers_are_there() {
    let log = Log::default();
    let agent = agent(options_with(&log));
    let waiting = agent.generate("go", AgentState::initial()).await.unwrap();
    let answers = Answers::new()
        .approve("b")
        .result("x", json!([1]))
        .deny("a");
    let done = agent.resume(answers, waiting.state).await.unwrap();
    assert!(done.pending.is_empty());
    assert_eq!(log.lines(), ["look", "pay 2"]);
    let answers = results(&done.state);
    assert_eq!(answers[0], answer("look", "seen"));
    assert_eq!(
        (answers[1].is_error, &answers[1].result),
        (true, &"The tool call was denied.".into())
    );
    assert_eq!(answers[2], answer("b", json!({"paid": 2})));
    assert_eq!(answers[3], answer("x", json!([1])), "in call order");
    assert_eq!(done.turn.response.joined_text(), "done");
    assert_eq!(done.turn.messages.len(), 2, "what came after the wait");
    let approved: Vec<Option<bool>> = {
        let mut executions = done.turn.tool_executions.clone();
        executions.sort_by(|a, b| a.tool_call_id.cmp(&b.tool_call_id));
        executions.iter().map(|it| it.approved).collect()
    };
    assert_eq!(approved, [Some(false), Some(true), None]);
}

#[tokio::test]
async fn answers_may_come_one_by_one_in_any_order() {
    let log = Log::default();
    let agent = agent(options_with(&log));
    let mut result = agent.generate("go", AgentState::initial()).await.unwrap();
    let answers = [
        Answers::new().failure("x", "not today"),
        Answers::new().deny_because("b", "too much"),
        Answers::new().approve("a"),
    ];
    let expected: [&[&str]; 3] = [&["a", "b"], &["a"], &[]];
    for (answers, expected) in answers.into_iter().zip(expected) {
        result = agent.resume(answers, result.state).await.unwrap();
        assert_eq!(ids(&result), expected);
        if !expected.is_empty() {
            assert_eq!((result.turn.cycles, result.turn.messages.len()), (0, 1));
            assert_eq!(result.turn.stop_reason, StopReason::ToolUse);
        }
    }
    assert_eq!(log.lines(), ["look", "pay 1"]);
    let told: Vec<Value> = results(&result.state)
        .into_iter()
        .map(|it| it.result.into())
        .collect();
    assert_eq!(
        told,
        [
            json!("seen"),
            json!("not today"),
            json!("too much"),
            json!({"paid": 1})
        ]
    );
    assert_eq!(result.turn.response.joined_text(), "done");
}

#[tokio::test]
async fn a_resume_that_is_tried_again_runs_an_approved_call_under_its_key() {
    let log = Log::default();
    let keys = log.clone();
    let calls = vec![call("1", "keyed", &[])];
    let responses = [calls.clone(), calls.clone()];
    let mut options = options(queued(responses.map(asked).into()));
    options.tools = vec![
        Tool::new(
            "keyed",
            "",
            json!({"type": "object"}),
            move |_: Value, it: ToolContext| {
                keys.add(&*it.idempotency_key);
                ready(Ok(Value::Null)).boxed() as BoxFuture<'static, ToolOutput>
            },
        )
        .with_requires_approval(),
    ];
    let agent = agent(options);
    let waiting = agent.generate("go", AgentState::initial()).await.unwrap();
    let json = waiting.state.to_json().unwrap();
    let mut next = None;
    for _ in 0..2 {
        let state = AgentState::from_json(&json).unwrap();
        let went_on = agent.resume(approve_all(&waiting), state).await.unwrap();
        next.get_or_insert(went_on);
    }
    let lines = log.lines();
    assert_eq!((lines.len(), &lines[0]), (2, &lines[1]));

    let next = next.unwrap();
    assert_eq!(next.pending.len(), 1, "another response with the same id");
    agent.resume(approve_all(&next), next.state).await.unwrap();
    assert_ne!(log.lines()[2], lines[0]);
}

#[tokio::test]
async fn a_query_that_would_wait_is_an_error() {
    let log = Log::default();
    let waited = agent(options_with(&log)).query("go").await;
    assert!(
        matches!(waited, Err(AgentError::Waiting { n_calls: 3 })),
        "{waited:?}"
    );
}

#[tokio::test]
async fn no_answer_at_all_goes_on_waiting() {
    let log = Log::default();
    let agent = agent(options_with(&log));
    let waiting = agent.generate("go", AgentState::initial()).await.unwrap();
    let again = agent
        .resume(Answers::new(), waiting.state.clone())
        .await
        .unwrap();
    assert_eq!(again.pending, waiting.pending);
    assert_eq!(content(&again.state), content(&waiting.state));
    assert_eq!(log.lines(), ["look"]);
}

#[tokio::test]
async fn a_waiting_state_read_from_json_goes_on_like_the_state_itself() {
    let agent = agent(options_with(&Log::default()));
    let waiting = agent.generate("go", AgentState::initial()).await.unwrap();
    let half = Answers::new().approve("b");
    let half = agent.resume(half, waiting.state).await.unwrap();
    let json = half.state.to_json().unwrap();
    let restored = AgentState::from_json(&json).unwrap();
    assert_eq!(restored, half.state);
    assert_eq!(agent.pending(&restored), half.pending);
    // The answers may have been stored, too.
    let answers = Answers::new()
        .approve_with("a", json!({"sum": 3}))
        .failure("x", "no");
    let stored: Answers = serde_json::from_str(&serde_json::to_string(&answers).unwrap()).unwrap();
    assert_eq!(stored, answers);
    let [with, without] = [(stored, restored), (answers, half.state)]
        .map(|(answers, state)| agent.resume(answers, state));
    let (with, without) = (with.await.unwrap(), without.await.unwrap());
    assert_eq!(content(&with.state), content(&without.state));
    assert_eq!(content(&with.turn), content(&without.turn));
}

#[tokio::test]
async fn a_run_that_waited_ends_like_one_that_did_not() {
    let log = Log::default();
    let mut free = options_with(&log);
    let calls = vec![paying("a", &json!(1)), call("look", "look", &[])];
    free.model = Canned::calls(calls);
    let asks = agent(free.clone());
    free.tools[0].requires_approval = false;
    let whole = generate(free).await;
    let waiting = asks.generate("go", AgentState::initial()).await.unwrap();
    assert_eq!(waiting.state.step(), 0, "the step is not complete");
    let done = asks
        .resume(Answers::new().approve("a"), waiting.state)
        .await
        .unwrap();
    assert_eq!(done.state.step(), whole.state.step());
    let mut kept = results(&done.state);
    kept.sort_by(|a, b| a.tool_call_id.cmp(&b.tool_call_id));
    assert_eq!(kept, results(&whole.state));
}

#[tokio::test]
async fn an_approved_call_passes_the_hooks_and_the_handler() {
    let log = Log::default();
    let mut options = options_with(&log);
    options.model = Canned::calls(vec![paying("a", &json!(1)), paying("b", &json!(2))]);
    let hook = log.clone();
    options.tool_strategy =
        ToolUseStrategy::unlimited().with_on_before_call(move |_, arguments| {
            hook.add(format!("before {}", arguments["sum"]));
            Box::pin(async { Ok(BeforeCall::Proceed) })
        });
    options.tools[0] = pay(&log).with_approval(|arguments| {
        let allowed = arguments["sum"] == 1;
        Box::pin(async move { Ok(allowed) })
    });
    let agent = agent(options);
    let waiting = agent.generate("go", AgentState::initial()).await.unwrap();
    assert!(log.lines().is_empty(), "hooks run when the call does");
    let answers = Answers::new().approve("a").approve("b");
    let done = agent.resume(answers, waiting.state).await.unwrap();
    assert_eq!(log.lines(), ["before 1", "pay 1", "before 2"]);
    let approved: Vec<Option<bool>> = done
        .turn
        .tool_executions
        .iter()
        .map(|it| it.approved)
        .collect();
    assert_eq!(approved, [Some(true), Some(false)]);
}

#[tokio::test]
async fn where_no_tool_runs_nobody_is_asked() {
    let mut options = options_with(&Log::default());
    options.tool_strategy = ToolUseStrategy::unlimited().with_max_iterations(Some(0));
    let agent = agent(options);
    let result = agent.generate("go", AgentState::initial()).await.unwrap();
    assert!(result.pending.is_empty());
    assert_eq!(result.state.open_calls().len(), 4);
    let refused = refusal(
        agent
            .resume(Answers::new().approve("a"), result.state)
            .await,
    );
    assert!(matches!(
        refused,
        AnswerError::WrongKind { expected: None, .. }
    ));
}

#[tokio::test]
async fn a_model_reads_the_results_of_both_sides_of_a_wait() {
    let log = Log::default();
    let seen = Arc::new(Mutex::new(0));
    let n_results = seen.clone();
    let mut options = options_with(&log);
    let calls = vec![paying("a", &json!(1)), call("look", "look", &[])];
    options.model = Canned::new(move |request| {
        let results = request.messages.iter().filter_map(|message| match message {
            Message::ToolResult(message) => Some(message.results.len()),
            Message::User(_) | Message::Assistant(_) => None,
        });
        let n: usize = results.sum();
        *n_results.lock().unwrap() = n;
        Some(if n == 0 {
            asked(calls.clone())
        } else {
            said("done")
        })
    });
    let agent = agent(options);
    let waiting = agent.generate("go", AgentState::initial()).await.unwrap();
    assert_eq!(
        *seen.lock().unwrap(),
        0,
        "it is not asked while calls are open"
    );
    agent
        .resume(Answers::new().deny("a"), waiting.state)
        .await
        .unwrap();
    assert_eq!(*seen.lock().unwrap(), 2);
}

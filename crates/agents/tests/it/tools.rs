//! Tools: arguments, order, context (UAP §8.4–8.6).

use crate::support::*;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use loomline_agents::{Agent, AgentOptions, OptionsError};
use serde_json::{Value, json};
use std::sync::Arc;
use upp::{Arguments, Tool, ToolContext, ToolOutput, ToolResult};

fn refused(tools: Vec<Tool>) -> OptionsError {
    let mut options = options(Canned::new(|_| None));
    options.tools = tools;
    Agent::new(options).unwrap_err()
}

#[test]
fn unusable_tools_are_refused_when_the_agent_is_made() {
    assert!(
        matches!(refused(vec![add(), add()]), OptionsError::DuplicateTool { name } if name == "add")
    );
    let mut needy = add();
    needy.depends_on = vec!["nothing".to_owned()];
    assert!(matches!(
        refused(vec![needy]),
        OptionsError::UnknownDependency { name, .. } if name == "nothing"
    ));
    let [mut a, mut b] = ["a", "b"].map(|name| quick(name, |_| Ok(json!(1))));
    a.depends_on = vec!["b".to_owned()];
    b.depends_on = vec!["a".to_owned()];
    assert!(matches!(
        refused(vec![a, b]),
        OptionsError::DependencyCycle { tools } if tools == ["a", "b"]
    ));
}

#[test]
fn a_schema_must_compile_and_is_never_fetched() {
    for schema in [
        json!({"type": "no such type"}),
        json!({"$ref": "https://127.0.0.1:1/schema.json"}),
        json!({"properties": {"a": {"$ref": "file:///etc/hostname"}}}),
    ] {
        let mut tool = add();
        tool.parameters = Arc::new(schema);
        assert!(matches!(
            refused(vec![tool]),
            OptionsError::InvalidSchema { .. }
        ));
    }
}

/// Runs one call of `add` with this text as arguments.
async fn told(arguments: &str) -> ToolResult {
    let mut call = call("1", "add", &[]);
    call.arguments = Arguments::from_text(arguments);
    let mut options = options(Canned::calls(vec![call]));
    options.tools = vec![add()];
    results(&generate(options).await.state).remove(0)
}

#[tokio::test]
async fn a_breach_of_the_schema_is_told_with_its_place() {
    let answer = told(r#"{"a": "one"}"#).await;
    let text = answer.result.as_str().unwrap();
    assert!(answer.is_error);
    assert!(
        text.contains(r#"at "/a""#) && text.contains("number"),
        "{text}"
    );
    assert!(text.contains(r#""b" is a required property"#), "{text}");
}

#[tokio::test]
async fn malformed_arguments_are_told_and_empty_ones_are_an_object() {
    for arguments in [r#"{"a": 1"#, "[1]", "nonsense"] {
        let answer = told(arguments).await;
        assert!(answer.is_error, "{arguments}");
        assert!(
            answer.result.as_str().unwrap().contains("JSON"),
            "{}",
            answer.result
        );
    }
    assert!(told("").await.result.as_str().unwrap().contains("required"));
    assert_eq!(told(r#"{"a": 1, "b": 2}"#).await.result, 3.0);
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_neither_run_nor_asked_for() {
    let log = Log::default();
    let mut asking = noted("asking", 0, &log);
    asking.requires_approval = true;
    let outside = Tool::external("outside", "Runs elsewhere.", json!({"type": "object"}));
    // What a codec makes of a call whose arguments never began.
    let calls = ["plain", "asking", "outside"].map(|name| upp::ToolCall {
        arguments: Arguments::from_text("{"),
        ..call(name, name, &[])
    });
    let mut options = options(Canned::calls(calls.to_vec()));
    options.tools = vec![noted("plain", 0, &log), asking, outside];
    let result = generate(options).await;
    assert_eq!(log.lines(), Vec::<String>::new());
    let results = results(&result.state);
    assert_eq!(results.len(), 3);
    for answer in results {
        assert!(answer.is_error);
        let text = answer.result.as_str().unwrap();
        assert!(text.contains("cut off") && text.contains("again"), "{text}");
    }
}

fn noting(log: &Log) -> AgentOptions {
    let mut first = noted("first", 3, log);
    first.sequential = true;
    let mut last = noted("last", 0, log);
    last.depends_on = vec!["slow".to_owned()];
    let mut options = options(Canned::new(|_| None));
    options.tools = vec![first, last, noted("slow", 5, log), noted("fast", 0, log)];
    options
}

async fn run_calls(calls: Vec<upp::ToolCall>) -> Vec<String> {
    let log = Log::default();
    let mut options = noting(&log);
    options.model = Canned::calls(calls);
    generate(options).await;
    log.lines()
}

#[tokio::test]
async fn tools_run_side_by_side() {
    let calls = vec![call("1", "slow", &[]), call("2", "fast", &[])];
    assert_eq!(run_calls(calls).await, ["+1", "+2", "-2", "-1"]);
}

#[tokio::test]
async fn a_sequential_tool_ends_before_others_start() {
    let calls = vec![
        call("1", "fast", &[]),
        call("2", "first", &[]),
        call("3", "fast", &[]),
    ];
    let lines = run_calls(calls).await;
    assert_eq!(lines[..2], ["+2", "-2"]);
    assert_eq!(lines.len(), 6);
}

#[tokio::test]
async fn a_tool_waits_for_those_it_depends_on() {
    let calls = vec![call("1", "last", &[]), call("2", "slow", &[])];
    assert_eq!(run_calls(calls).await, ["+2", "-2", "+1", "-1"]);
}

#[tokio::test]
async fn the_models_order_holds() {
    let calls = vec![
        call("1", "fast", &["3"]),
        call("2", "fast", &["1"]),
        call("3", "slow", &[]),
    ];
    assert_eq!(run_calls(calls).await, ["+3", "-3", "+1", "-1", "+2", "-2"]);
}

#[tokio::test]
async fn the_scripted_models_order_holds() {
    let script = json!({"turns": [
        {"tool_calls": [
            {"id": "1", "name": "fast", "after": ["2"]},
            {"id": "2", "name": "slow"},
        ]},
        {"text": "done"},
    ]});
    let script = upp::Script::from_json(&script.to_string()).unwrap();
    let log = Log::default();
    let mut options = noting(&log);
    options.model = Arc::new(upp::Scripted::with_script(script));
    generate(options).await;
    assert_eq!(log.lines(), ["+2", "-2", "+1", "-1"]);
}

#[tokio::test]
async fn a_cycle_or_an_unknown_call_runs_nothing_and_answers_all() {
    for after in ["2", "nowhere"] {
        let calls = vec![
            call("1", "fast", &[after]),
            call("2", "fast", &["1"]),
            call("3", "slow", &[]),
        ];
        let log = Log::default();
        let mut options = noting(&log);
        options.model = Canned::calls(calls);
        let result = generate(options).await;
        assert!(log.lines().is_empty());
        let answers = results(&result.state);
        assert_eq!(answers.len(), 3);
        assert!(answers.iter().all(|answer| answer.is_error));
        assert_eq!(result.turn.response.joined_text(), "done");
    }
}

#[tokio::test]
async fn a_repeated_call_id_runs_once() {
    let calls = vec![call("1", "fast", &[]), call("1", "fast", &[])];
    assert_eq!(run_calls(calls).await, ["+1", "-1"]);
}

#[tokio::test]
async fn a_failed_call_holds_nobody_back() {
    let mut options = options(Canned::calls(vec![
        call("1", "fails", &[]),
        call("2", "works", &["1"]),
    ]));
    options.tools = vec![
        quick("fails", |_| Err(upp::ToolFailure::new("no luck"))),
        quick("works", |_| Ok(json!("fine"))),
    ];
    let answers = results(&generate(options).await.state);
    assert_eq!(
        (answers[0].is_error, &answers[0].result),
        (true, &"no luck".into())
    );
    assert_eq!(answers[1].result, "fine");
}

#[tokio::test]
async fn a_tool_that_panics_is_an_error_result() {
    let late = tool("late", |arguments: Value, _: ToolContext| {
        async move {
            tokio::task::yield_now().await;
            assert!(arguments.is_null(), "on purpose");
            Ok(arguments)
        }
        .boxed() as BoxFuture<'static, ToolOutput>
    });
    let mut options = options(Canned::calls(vec![
        call("1", "late", &[]),
        call("2", "early", &[]),
        call("3", "works", &[]),
    ]));
    options.tools = vec![
        late,
        quick("early", |_| panic!("on purpose")),
        quick("works", |_| Ok(json!("fine"))),
    ];
    let result = generate(options).await;
    let errors: Vec<bool> = results(&result.state)
        .iter()
        .map(|it| it.is_error)
        .collect();
    assert_eq!(errors, [true, true, false]);
    assert_eq!(result.turn.response.joined_text(), "done");
}

#[tokio::test]
async fn a_tool_knows_its_call() {
    let log = Log::default();
    let heard = log.clone();
    let spy = tool("spy", move |_: Value, context: ToolContext| {
        heard.add(context.tool_call_id.as_str());
        heard.add(&*context.agent_id);
        heard.add(&*context.idempotency_key);
        std::future::ready(Ok(Value::Null)).boxed() as BoxFuture<'static, ToolOutput>
    });
    let mut options = options(Canned::new(|_| None));
    options.tools = vec![spy];
    let agent = agent(options);
    let state = loomline_agents::AgentState::initial()
        .with_message("go")
        .with_message(asked(vec![call("real", "spy", &[])]));
    let keeper = Keeper::default();
    agent
        .run_step(state, &keeper.context(&agent, &[]))
        .await
        .unwrap();
    assert_eq!(log.lines(), ["real", agent.id(), "thread:real"]);
}

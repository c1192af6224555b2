use super::*;
use crate::tool::{Arguments, Effect, Reconciled, ToolOutput};
use futures_util::future::BoxFuture;
use serde_json::json;
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

fn tool(run: impl Fn(Value) -> ToolOutput + Send + Sync + 'static) -> Tool {
    let run = Arc::new(run);
    Tool::new(
        "t",
        "",
        json!({}),
        move |arguments: Value, _| -> BoxFuture<'static, ToolOutput> {
            let run = Arc::clone(&run);
            Box::pin(async move { run(arguments) })
        },
    )
}

fn call(text: &str) -> ToolCall {
    ToolCall {
        tool_call_id: "c1".into(),
        tool_name: "t".into(),
        arguments: Arguments::from_text(text),
        after: Vec::new(),
    }
}

fn context() -> ToolContext {
    ToolContext::new("c1".into(), CancellationToken::new())
}

async fn run(text: &str, tool: Option<&Tool>, strategy: &ToolUseStrategy) -> ToolExecution {
    let call = call(text);
    execute(&call, tool, arguments_of(&call), strategy, context())
        .await
        .unwrap()
}

#[tokio::test]
async fn hooks_run_in_order_and_may_change_both_ends() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let (first, second, third) = (log.clone(), log.clone(), log.clone());
    let strategy = ToolUseStrategy::default()
        .with_on_tool_call(move |_, arguments| {
            first.lock().unwrap().push(format!("call {arguments}"));
        })
        .with_on_before_call(move |_, _| {
            second.lock().unwrap().push("before".into());
            Box::pin(async { Ok(BeforeCall::Transform(json!({"n": 2}))) })
        })
        .with_on_after_call(move |_, arguments, result| {
            third
                .lock()
                .unwrap()
                .push(format!("after {arguments} {result}"));
            Box::pin(async { Ok(Some(json!("replaced"))) })
        });
    let tool = tool(|arguments| Ok(arguments["n"].clone()));
    let execution = run(r#"{"n":1}"#, Some(&tool), &strategy).await;
    assert_eq!(execution.result, json!("replaced"));
    assert_eq!(execution.arguments, json!({"n": 2}));
    assert_eq!(execution.approved, None);
    assert_eq!(
        *log.lock().unwrap(),
        [r#"call {"n":1}"#, "before", r#"after {"n":2} 2"#]
    );
}

#[tokio::test]
async fn what_goes_wrong_is_told_to_the_model() {
    let strategy = ToolUseStrategy::default();
    let unknown = run("{}", None, &strategy).await;
    assert_eq!(
        (unknown.result, unknown.is_error),
        ("Tool 't' not found".into(), true)
    );
    let fine = tool(|_| Ok(json!(1)));
    let malformed = run("{oops", Some(&fine), &strategy).await;
    assert!(malformed.is_error && malformed.result.as_str().unwrap().contains("not JSON"));
    let broken = tool(|_| Err(ToolFailure::new("no such city")));
    assert_eq!(
        run("{}", Some(&broken), &strategy).await.result,
        json!("no such city")
    );
    let panics = tool(|_| panic!("boom"));
    assert_eq!(
        run("{}", Some(&panics), &strategy).await.result,
        json!("Tool 't' panicked: boom")
    );
}

#[tokio::test]
async fn a_skipped_or_denied_call_does_not_run() {
    let never = || tool(|_| panic!("it ran"));
    let skip = ToolUseStrategy::default()
        .with_on_before_call(|_, _| Box::pin(async { Ok(BeforeCall::Skip) }));
    assert_eq!(
        run("{}", Some(&never()), &skip).await.result,
        json!("Tool execution skipped")
    );
    let strategy = ToolUseStrategy::default();
    let denied = never().with_approval(|_| Box::pin(async { Ok(false) }));
    let execution = run("{}", Some(&denied), &strategy).await;
    assert_eq!(execution.approved, Some(false));
    assert_eq!(
        execution.result,
        json!("Tool execution denied by approval handler")
    );
    let unsure = never().with_approval(|_| Box::pin(async { Err(ToolFailure::new("no answer")) }));
    let call = call("{}");
    let error = execute(
        &call,
        Some(&unsure),
        arguments_of(&call),
        &strategy,
        context(),
    )
    .await;
    assert!(matches!(error, Err(ExecuteError::Approval { .. })));
}

#[tokio::test(start_paused = true)]
async fn cancelling_drops_the_tool() {
    let slow = Tool::new(
        "t",
        "",
        json!({}),
        |_: Value, _| -> BoxFuture<'static, ToolOutput> {
            Box::pin(async {
                tokio::time::sleep(std::time::Duration::from_mins(1)).await;
                Ok(Value::Null)
            })
        },
    );
    let (context, call, strategy) = (context(), call("{}"), ToolUseStrategy::default());
    let signal = context.signal.clone();
    let running = execute(&call, Some(&slow), arguments_of(&call), &strategy, context);
    let (outcome, ()) = tokio::join!(running, async {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        signal.cancel();
    });
    assert!(matches!(outcome, Err(ExecuteError::Cancelled)));
}

#[tokio::test(start_paused = true)]
async fn the_duration_is_measured() {
    let slow = Tool::new(
        "t",
        "",
        json!({}),
        |_: Value, _| -> BoxFuture<'static, ToolOutput> {
            Box::pin(async {
                tokio::time::sleep(std::time::Duration::from_millis(30)).await;
                Ok(Value::Null)
            })
        },
    );
    assert_eq!(
        run("{}", Some(&slow), &ToolUseStrategy::default())
            .await
            .duration,
        30
    );
}

#[tokio::test]
async fn a_tool_that_requires_approval_runs_only_when_it_was_given() {
    let strategy = ToolUseStrategy::default();
    let never = tool(|_| panic!("it ran")).with_requires_approval();
    let refused = run("{}", Some(&never), &strategy).await;
    assert_eq!(refused.result, json!("Tool execution needs an approval"));
    assert!(refused.is_error && refused.approved.is_none());
    let fine = tool(|_| Ok(json!(1))).with_requires_approval();
    let call = call("{}");
    let approved = ToolContext {
        approved: true,
        ..context()
    };
    let ran = execute(&call, Some(&fine), arguments_of(&call), &strategy, approved).await;
    let ran = ran.unwrap();
    assert_eq!((ran.result, ran.approved), (json!(1).into(), Some(true)));
}

#[tokio::test]
async fn the_handler_has_the_last_word_after_an_approval() {
    let never = tool(|_| panic!("it ran")).with_requires_approval();
    let never = never.with_approval(|_| Box::pin(async { Ok(false) }));
    let call = call("{}");
    let approved = ToolContext {
        approved: true,
        ..context()
    };
    let strategy = ToolUseStrategy::default();
    let ran = execute(
        &call,
        Some(&never),
        arguments_of(&call),
        &strategy,
        approved,
    )
    .await;
    assert_eq!(ran.unwrap().approved, Some(false));
}

#[tokio::test]
async fn an_external_tool_has_no_code_to_run() {
    let external = Tool::external("t", "", json!({}));
    let ran = run("{}", Some(&external), &ToolUseStrategy::default()).await;
    assert!(ran.is_error);
    assert!(ran.result.as_str().unwrap().contains("executed elsewhere"));
}

#[tokio::test]
async fn a_simple_tool_takes_the_arguments_alone() {
    let double = Tool::simple("t", "", json!({}), |arguments| async move {
        let n = arguments["n"].as_u64().unwrap_or_default();
        Ok(json!(n * 2))
    });
    let ran = run(r#"{"n": 21}"#, Some(&double), &ToolUseStrategy::default()).await;
    assert_eq!(ran.result, json!(42));
}

#[tokio::test]
async fn a_tool_that_can_be_asked_is_reconcilable() {
    let plain = tool(|_| Ok(json!(1)));
    assert!(plain.reconcile.is_none());
    let asked = plain.with_reconcile(
        |arguments: Value, _: ToolContext| -> BoxFuture<'static, _> {
            Box::pin(async move { Ok(Reconciled::Happened(arguments)) })
        },
    );
    assert_eq!(asked.effect, Effect::Reconcilable);
    let said = asked
        .reconcile
        .unwrap()
        .reconcile(json!({"a": 1}), context());
    assert_eq!(said.await.unwrap(), Reconciled::Happened(json!({"a": 1})));
}

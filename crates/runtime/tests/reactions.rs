//! Reactions end to end over the memory store: order, policies, cancel, recovery, following.

#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a failed expectation is the test's failure"
)]

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use loomline_runtime as runtime;
use runtime::{
    AgentReactor, Policy, Preconditions, ReactRequest, Reacted, Reactor, ReactorError, Runtime,
    RuntimeError, RuntimeOptions, StepRun, Until,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use store::{MemoryStore, Store, StoreError, TenantId};
use timeline::{Event, ExecutionStatus, NewItem, Record, Seq, ThreadStatus, verify};
use upp::{Effect, Tool, ToolContext, ToolFailure};

fn tenant() -> TenantId {
    "acme".into()
}

fn compute() -> Tool {
    let parameters = json!({"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]});
    let run =
        |arguments: Value, _: ToolContext| -> BoxFuture<'static, Result<Value, ToolFailure>> {
            async move { Ok(json!({"computed": arguments["expression"]})) }.boxed()
        };
    Tool::new("compute", "Computes.", parameters, run).with_effect(Effect::Pure)
}

fn agent(tools: Vec<Tool>) -> Arc<AgentReactor> {
    Arc::new(AgentReactor::scripted(None, tools).unwrap())
}

fn over(store: &Arc<MemoryStore>, reactor: Arc<impl Reactor + 'static>) -> Runtime {
    let store: Arc<dyn Store> = store.clone();
    let options = RuntimeOptions {
        restart_pause: Duration::ZERO,
        ..RuntimeOptions::default()
    };
    Runtime::new(store, Arc::new(reactor), options)
}

fn say(runtime: &Runtime, text: &str, policy: Policy) -> ReactRequest {
    let content = json!([{"type": "input_text", "text": text}]).into();
    ReactRequest {
        policy,
        ..ReactRequest::new(tenant(), "k", NewItem::user(runtime.mint(), content))
    }
}

async fn at_rest(runtime: &Runtime) -> Vec<Record> {
    let follow = runtime
        .follow(&tenant(), "k", Seq::ZERO, Until::Rest)
        .await
        .unwrap();
    follow
        .map(|logged| logged.unwrap().record.clone())
        .collect()
        .await
}

fn ended(records: &[Record]) -> Vec<(ExecutionStatus, Option<String>)> {
    records
        .iter()
        .filter_map(|record| match &record.event {
            Event::ExecutionStatusChanged {
                to, interruption, ..
            } => Some((*to, interruption.as_ref().map(|why| why.reason.clone()))),
            _ => None,
        })
        .collect()
}

fn names(records: &[Record]) -> Vec<&'static str> {
    let shown = |record: &&Record| !matches!(record.event, Event::ChunkEmitted { .. });
    records
        .iter()
        .filter(shown)
        .map(|record| record.event.event_type().name())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_tool_turn_is_written_in_the_order_of_section_7() {
    let runtime = over(&Arc::new(MemoryStore::new()), agent(vec![compute()]));
    let accepted = runtime
        .react(say(&runtime, "compute 1+1", Policy::Queue))
        .await
        .unwrap();
    assert!(accepted.execution_id.is_some());
    let records = at_rest(&runtime).await;
    assert_eq!(verify(&records), Ok(()));
    let expected = [
        "thread.created",
        "context.created",
        "context.resolved",
        "thread.resolved",
        "item.created",
        "thread.status.changed",
        "context.status.changed",
        "execution.created",
        "item.created",
        "item.status.changed",
        "step.created",
        "part.created",
        "part.updated",
        "step.status.changed",
        "step.created",
        "part.created",
        "step.status.changed",
        "item.status.changed",
        "execution.status.changed",
        "context.status.changed",
        "thread.status.changed",
        "thread.finished",
    ];
    assert_eq!(names(&records), expected);
}

#[tokio::test(start_paused = true)]
async fn a_follower_from_any_event_sees_the_rest_once_and_in_order() {
    let runtime = over(&Arc::new(MemoryStore::new()), agent(vec![compute()]));
    runtime
        .react(say(&runtime, "compute 1+1", Policy::Queue))
        .await
        .unwrap();
    let all = at_rest(&runtime).await;
    for cut in 0..=all.len() {
        let after = Seq(cut as u64);
        let follow = runtime
            .follow(&tenant(), "k", after, Until::Rest)
            .await
            .unwrap();
        let rest: Vec<Record> = follow
            .map(|logged| logged.unwrap().record.clone())
            .collect()
            .await;
        assert_eq!(rest, all[cut..]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_trigger_waits_its_turn_under_queue() {
    let runtime = over(&Arc::new(MemoryStore::new()), agent(vec![]));
    for text in ["slow 5ms one two three", "second", "third"] {
        runtime
            .react(say(&runtime, text, Policy::Queue))
            .await
            .unwrap();
    }
    let records = at_rest(&runtime).await;
    assert_eq!(verify(&records), Ok(()));
    assert_eq!(ended(&records), vec![(ExecutionStatus::Completed, None); 3]);
}

#[tokio::test(start_paused = true)]
async fn a_thread_that_must_be_there_is_not_made() {
    fn gone<T>(refused: &Result<T, RuntimeError>) -> bool {
        matches!(refused, Err(RuntimeError::Store(StoreError::NotFound)))
    }
    let runtime = over(&Arc::new(MemoryStore::new()), agent(vec![]));
    let must_exist = |text| ReactRequest {
        must_exist: true,
        ..say(&runtime, text, Policy::Queue)
    };
    assert!(gone(&runtime.react(must_exist("first")).await));
    assert!(gone(&runtime.find(&tenant(), "k").await));
    runtime
        .react(say(&runtime, "hello", Policy::Queue))
        .await
        .unwrap();
    runtime.react(must_exist("second")).await.unwrap();
    assert_eq!(ended(&at_rest(&runtime).await).len(), 2);
    // Nor where it was there a moment ago.
    runtime.delete(&tenant(), "k").await.unwrap();
    assert!(gone(&runtime.react(must_exist("third")).await));
    assert!(gone(&runtime.find(&tenant(), "k").await));
}

#[tokio::test(start_paused = true)]
async fn a_second_trigger_is_refused_under_reject_and_nothing_is_written() {
    let runtime = over(&Arc::new(MemoryStore::new()), agent(vec![]));
    runtime
        .react(say(&runtime, "slow 20ms one two three four", Policy::Queue))
        .await
        .unwrap();
    let error = runtime
        .react(say(&runtime, "second", Policy::Reject))
        .await
        .unwrap_err();
    assert!(matches!(error, RuntimeError::Busy(_)));
    assert_eq!(
        ended(&at_rest(&runtime).await),
        [(ExecutionStatus::Completed, None)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_second_trigger_stops_the_first_under_interrupt() {
    let runtime = over(&Arc::new(MemoryStore::new()), agent(vec![]));
    runtime
        .react(say(
            &runtime,
            "slow 50ms one two three four five",
            Policy::Queue,
        ))
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(60)).await;
    runtime
        .react(say(&runtime, "second", Policy::Interrupt))
        .await
        .unwrap();
    let records = at_rest(&runtime).await;
    assert_eq!(verify(&records), Ok(()));
    let stopped = Some("user_cancelled".to_owned());
    assert_eq!(
        ended(&records),
        [
            (ExecutionStatus::Failed, stopped),
            (ExecutionStatus::Completed, None)
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn cancelling_is_a_recorded_fact_and_leaves_the_thread_open() {
    let runtime = over(&Arc::new(MemoryStore::new()), agent(vec![]));
    runtime
        .react(say(
            &runtime,
            "slow 50ms one two three four five",
            Policy::Queue,
        ))
        .await
        .unwrap();
    let cancelled = runtime
        .cancel(&tenant(), "k", None, "user_cancelled")
        .await
        .unwrap();
    assert!(cancelled.execution_id.is_some());
    let records = at_rest(&runtime).await;
    assert_eq!(
        ended(&records),
        [(ExecutionStatus::Failed, Some("user_cancelled".into()))]
    );
    assert_eq!(
        runtime.find(&tenant(), "k").await.unwrap().thread.status,
        ThreadStatus::Open
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_past_its_time_is_stopped_with_the_reason_timeout() {
    let runtime = over(&Arc::new(MemoryStore::new()), agent(vec![]));
    let mut request = say(
        &runtime,
        "slow 50ms one two three four five six",
        Policy::Queue,
    );
    request.run.timeout_ms = Some(60);
    runtime.react(request).await.unwrap();
    assert_eq!(
        ended(&at_rest(&runtime).await),
        [(ExecutionStatus::Failed, Some("timeout".into()))]
    );
}

#[tokio::test(start_paused = true)]
async fn a_failing_model_fails_the_execution_and_the_next_trigger_opens_the_thread_again() {
    let runtime = over(&Arc::new(MemoryStore::new()), agent(vec![]));
    runtime
        .react(say(&runtime, "fail", Policy::Queue))
        .await
        .unwrap();
    assert_eq!(
        ended(&at_rest(&runtime).await),
        [(ExecutionStatus::Failed, Some("error".into()))]
    );
    assert_eq!(
        runtime.find(&tenant(), "k").await.unwrap().thread.status,
        ThreadStatus::Failed
    );
    runtime
        .react(say(&runtime, "hello", Policy::Queue))
        .await
        .unwrap();
    let records = at_rest(&runtime).await;
    assert_eq!(verify(&records), Ok(()));
    assert_eq!(
        runtime.find(&tenant(), "k").await.unwrap().thread.status,
        ThreadStatus::Open
    );
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_steps_ends_the_run_with_what_was_complete() {
    let runtime = over(&Arc::new(MemoryStore::new()), agent(vec![compute()]));
    let mut request = say(
        &runtime,
        "compute 1 then compute 2 then compute 3",
        Policy::Queue,
    );
    request.run.max_steps = Some(2);
    runtime.react(request).await.unwrap();
    let records = at_rest(&runtime).await;
    assert_eq!(
        ended(&records),
        [(ExecutionStatus::Failed, Some("max_steps".into()))]
    );
    assert_eq!(
        names(&records)
            .iter()
            .filter(|name| **name == "step.created")
            .count(),
        2
    );
}

#[tokio::test(start_paused = true)]
async fn repeating_a_token_gives_the_first_answer_and_runs_once() {
    let runtime = over(&Arc::new(MemoryStore::new()), agent(vec![]));
    let mut first = say(&runtime, "hello", Policy::Queue);
    first.token = Some("t1".into());
    let mut second = say(&runtime, "hello", Policy::Queue);
    second.token = Some("t1".into());
    let one = runtime.react(first).await.unwrap();
    at_rest(&runtime).await;
    let two = runtime.react(second).await.unwrap();
    assert!(two.repeated);
    assert_eq!(one.execution_id, two.execution_id);
    assert_eq!(ended(&at_rest(&runtime).await).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_repeated_while_its_first_run_goes_on_gets_the_first_answer_under_any_policy() {
    let runtime = over(&Arc::new(MemoryStore::new()), agent(vec![]));
    let mut first = say(&runtime, "slow 20ms one two three", Policy::Reject);
    first.token = Some("t1".into());
    let one = runtime.react(first.clone()).await.unwrap();
    let two = runtime.react(first).await.unwrap();
    assert_eq!((two.repeated, two.execution_id), (true, one.execution_id));
}

#[tokio::test(start_paused = true)]
async fn a_panicking_reactor_fails_its_execution_and_nothing_else() {
    struct Panics;
    impl Reactor for Panics {
        fn react<'a>(&'a self, _: &'a mut StepRun) -> BoxFuture<'a, Result<Reacted, ReactorError>> {
            Box::pin(async { panic!("on purpose") })
        }
    }
    let runtime = over(&Arc::new(MemoryStore::new()), Arc::new(Panics));
    runtime
        .react(say(&runtime, "hello", Policy::Queue))
        .await
        .unwrap();
    assert_eq!(
        ended(&at_rest(&runtime).await),
        [(ExecutionStatus::Failed, Some("error".into()))]
    );
}

fn counting(effect: Effect, ran: &Arc<AtomicUsize>, stall: bool) -> Tool {
    let ran = Arc::clone(ran);
    let run = move |_: Value, _: ToolContext| -> BoxFuture<'static, Result<Value, ToolFailure>> {
        let ran = Arc::clone(&ran);
        async move {
            ran.fetch_add(1, Ordering::SeqCst);
            if stall {
                std::future::pending::<()>().await;
            }
            Ok(json!("done"))
        }
        .boxed()
    };
    Tool::new(
        "touch",
        "Touches.",
        json!({"type": "object", "properties": {}}),
        run,
    )
    .with_effect(effect)
}

async fn crash_in_a_tool(effect: Effect) -> (usize, Vec<Record>) {
    let store = Arc::new(MemoryStore::new());
    let ran = Arc::new(AtomicUsize::new(0));
    let first = over(&store, agent(vec![counting(effect, &ran, true)]));
    first
        .react(say(&first, "touch", Policy::Queue))
        .await
        .unwrap();
    while ran.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // The first process is gone without a word; the second claims the thread.
    let second = over(&store, agent(vec![counting(effect, &ran, false)]));
    assert_eq!(second.recover().await.unwrap(), 1);
    let records = at_rest(&second).await;
    (ran.load(Ordering::SeqCst), records)
}

#[tokio::test(start_paused = true)]
async fn a_pure_tool_runs_again_after_a_crash() {
    let (ran, records) = crash_in_a_tool(Effect::Pure).await;
    assert_eq!(verify(&records), Ok(()));
    assert_eq!(
        (ran, ended(&records)),
        (2, vec![(ExecutionStatus::Completed, None)])
    );
}

#[tokio::test(start_paused = true)]
async fn an_effect_that_had_started_never_runs_twice_and_its_outcome_is_unknown() {
    let (ran, records) = crash_in_a_tool(Effect::Effect).await;
    assert_eq!(
        (ran, ended(&records)),
        (1, vec![(ExecutionStatus::Completed, None)])
    );
    let interrupted = records.iter().any(|record| match &record.event {
        Event::PartUpdated { part, .. } => part.text().contains("\"outcome\":\"interrupted\""),
        _ => false,
    });
    assert!(interrupted);
}

#[tokio::test(start_paused = true)]
async fn a_crash_while_the_model_speaks_replays_the_step_under_the_same_id() {
    let store = Arc::new(MemoryStore::new());
    let first = over(&store, agent(vec![]));
    first
        .react(say(
            &first,
            "slow 20ms one two three four five",
            Policy::Queue,
        ))
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let second = over(&store, agent(vec![]));
    second.recover().await.unwrap();
    let records = at_rest(&second).await;
    assert_eq!(verify(&records), Ok(()));
    let of = |name: &str| {
        names(&records)
            .iter()
            .filter(|found| **found == name)
            .count()
    };
    assert_eq!(
        (
            of("step.created"),
            of("part.created"),
            of("thread.finished")
        ),
        (1, 1, 1)
    );
    let reset = records.iter().any(|record| {
        matches!(&record.event, Event::ChunkEmitted { chunk_type, .. } if chunk_type == "data-step-reset")
    });
    assert!(reset);
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_lost_its_thread_has_written_nothing_more() {
    let store = Arc::new(MemoryStore::new());
    let first = over(&store, agent(vec![]));
    first
        .react(say(
            &first,
            "slow 20ms one two three four five six seven",
            Policy::Queue,
        ))
        .await
        .unwrap();
    let second = over(&store, agent(vec![]));
    second.recover().await.unwrap();
    let records = at_rest(&second).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(at_rest(&second).await, records);
}

#[tokio::test(start_paused = true)]
async fn a_fork_shares_what_came_before_and_goes_its_own_way() {
    let runtime = over(&Arc::new(MemoryStore::new()), agent(vec![]));
    runtime
        .react(say(&runtime, "hello", Policy::Queue))
        .await
        .unwrap();
    at_rest(&runtime).await;
    runtime
        .fork(&tenant(), "k", Some("k2".into()), None)
        .await
        .unwrap();
    let mut other = say(&runtime, "elsewhere", Policy::Queue);
    other.key = "k2".into();
    runtime.react(other).await.unwrap();
    let follow = runtime
        .follow(&tenant(), "k2", Seq::ZERO, Until::Rest)
        .await
        .unwrap();
    follow.for_each(|_| async {}).await;
    let whole = runtime
        .transcript(&tenant(), "k2", store::Filter::Facts)
        .await
        .unwrap();
    let parent = runtime
        .transcript(&tenant(), "k", store::Filter::Facts)
        .await
        .unwrap();
    assert_eq!((parent.entries.len(), whole.entries.len()), (2, 4));
}

#[tokio::test(start_paused = true)]
async fn two_clients_never_run_two_executions_on_one_thread() {
    for policy in [Policy::Queue, Policy::Reject, Policy::Interrupt] {
        let runtime = over(&Arc::new(MemoryStore::new()), agent(vec![compute()]));
        let posts =
            (0..16).map(|_| runtime.react(say(&runtime, "compute 1+1 then compute 2+2", policy)));
        let answers = futures_util::future::join_all(posts).await;
        let records = at_rest(&runtime).await;
        // `verify` refuses a thread that streams twice, so one execution at a time is all it lets pass.
        assert_eq!(verify(&records), Ok(()));
        let accepted = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(ended(&records).len(), accepted);
        if policy == Policy::Queue {
            assert_eq!(accepted, 16);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_all_who_go_on_from_one_place_one_does() {
    let runtime = over(&Arc::new(MemoryStore::new()), agent(Vec::new()));
    let say = |text: &str| say(&runtime, text, Policy::Reject);
    runtime.react(say("one")).await.unwrap();
    let end = at_rest(&runtime).await.last().unwrap().seq;
    // What the thread is called is nothing that was said.
    let named = timeline::ThreadUpdate {
        title: Some(Some("a title".to_owned())),
        metadata: None,
    };
    runtime.update_thread(&tenant(), "k", named).await.unwrap();
    let all = futures_util::future::join_all(
        ["two", "three", "four"].map(|text| runtime.react_on(say(text), Preconditions::after(end))),
    );
    let all = all.await;
    let followed = |it: &Result<_, RuntimeError>, at| matches!(it, Err(RuntimeError::Followed(seq)) if *seq == at);
    assert_eq!(all.iter().filter(|it| it.is_ok()).count(), 1);
    assert_eq!(all.iter().filter(|it| followed(it, end)).count(), 2);
    let end = at_rest(&runtime).await.last().unwrap().seq;
    let aside = say("aside").item;
    runtime.record(&tenant(), "k", aside).await.unwrap();
    let after = runtime
        .react_on(say("five"), Preconditions::after(end))
        .await;
    assert!(followed(&after, end), "{after:?}");
    // A repetition is answered all the same.
    let tail = runtime.state(&tenant(), "k").await.unwrap().1;
    let mut last = say("six");
    last.token = Some("once".into());
    let first = runtime
        .react_on(last.clone(), Preconditions::after(tail))
        .await
        .unwrap();
    let again = runtime
        .react_on(last, Preconditions::after(tail))
        .await
        .unwrap();
    assert_eq!(
        (first.execution_id, true),
        (again.execution_id, again.repeated)
    );
}

//! Limits: tenants, agents, times, counts and sizes.

use super::{
    KEY, Lease, answer, at_rest, complete, external, in_memory, interrupted, lease_now, leased,
    post, says, short, tenant, text,
};
use loomline_runtime as runtime;
use runtime::{ExternalError, LeaseRef, LeaseRequest, StepDelta, WorkerPolicy};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

#[tokio::test]
async fn a_worker_sees_only_steps_of_its_tenant_its_agents_and_its_threads() {
    let runtime = in_memory(external(Vec::new(), WorkerPolicy::default()));
    let workers = runtime.external();
    post(&runtime, &tenant(), KEY, "hello").await;
    let step = leased(&runtime).await;
    post(&runtime, &"globex".into(), KEY, "hello").await;
    post(&runtime, &tenant(), "other", "hello").await;
    let foreign = async {
        loop {
            if let Some(found) = lease_now(workers, &"globex".into(), "desk").await {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    let foreign = tokio::time::timeout(super::PATIENCE, foreign)
        .await
        .unwrap();
    assert_ne!(foreign.thread, step.thread);
    assert!(
        lease_now(workers, &tenant(), "another agent")
            .await
            .is_none()
    );
    let request = LeaseRequest {
        agents: &BTreeSet::from(["desk".to_owned()]),
        covers: &|key| key != "other",
        worker: None,
        reserve: &|_| Ok(()),
    };
    assert!(workers.lease(&tenant(), request).await.unwrap().is_none());
    // The lease of one tenant is none of another, and a key for other threads can't use it.
    let (globex, lease) = ("globex".into(), Lease::of(&step));
    for at in [
        LeaseRef {
            tenant: &globex,
            ..lease.at()
        },
        LeaseRef {
            covers: &|key| key != KEY,
            ..lease.at()
        },
        LeaseRef {
            lease: "guessed",
            ..lease.at()
        },
    ] {
        let refused = workers.heartbeat(at).await;
        assert!(matches!(refused, Err(ExternalError::NotLeased)));
    }
    complete(&runtime, &step, &says("hi")).await;
    at_rest(&runtime).await;
    assert_eq!(text(&runtime).await, "hi");
}

#[tokio::test]
async fn a_step_that_no_worker_takes_fails_after_its_wait() {
    let policy = WorkerPolicy {
        wait: Duration::from_millis(50),
        ..WorkerPolicy::default()
    };
    let runtime = in_memory(external(Vec::new(), policy));
    post(&runtime, &tenant(), KEY, "hello").await;
    at_rest(&runtime).await;
    let (reason, detail) = interrupted(&runtime).await;
    assert_eq!(reason, "timeout");
    assert!(detail.contains("no worker"), "{detail}");
}

#[tokio::test]
async fn a_step_fails_when_too_many_leases_are_lost() {
    let policy = WorkerPolicy {
        max_lost_leases: 2,
        ..short(30)
    };
    let runtime = in_memory(external(Vec::new(), policy));
    post(&runtime, &tenant(), KEY, "hello").await;
    assert_eq!(leased(&runtime).await.attempt, 1);
    assert_eq!(leased(&runtime).await.attempt, 2);
    at_rest(&runtime).await;
    let (reason, detail) = interrupted(&runtime).await;
    assert_eq!(reason, "timeout");
    assert!(detail.contains("2 workers have lost the step"), "{detail}");
}

#[tokio::test]
async fn answers_outside_the_contract_are_refused_at_their_place() {
    let runtime = in_memory(external(Vec::new(), WorkerPolicy::default()));
    let workers = runtime.external();
    post(&runtime, &tenant(), KEY, "hello").await;
    let step = leased(&runtime).await;
    let lease = Lease::of(&step);
    let call = json!({"toolCallId": "c", "toolName": "t"});
    let message = |content: Value| json!({"type": "message", "content": content});
    let many: Vec<Value> = (0..129)
        .map(|n| json!({"toolCallId": n.to_string(), "toolName": "t"}))
        .collect();
    let cases = [
        (json!({"assistantEvent": {}}), "/assistantEvent/type"),
        (
            json!({"assistantEvent": {"type": "message", "role": "user", "content": []}}),
            "/assistantEvent/role",
        ),
        (
            json!({"assistantEvent": {"type": "message"}}),
            "/assistantEvent/content",
        ),
        (
            json!({"assistantEvent": message(json!([{"type": "tool-t"}]))}),
            "/assistantEvent/content/0/type",
        ),
        (
            json!({"assistantEvent": message(json!([{"type": "output_text"}]))}),
            "/assistantEvent/content",
        ),
        (
            json!({"assistantEvent": message(json!([])), "toolCalls": [call, call]}),
            "/toolCalls/1/toolCallId",
        ),
        (
            json!({"assistantEvent": message(json!([])), "toolCalls": [{"toolCallId": "", "toolName": "t"}]}),
            "/toolCalls/0/toolCallId",
        ),
        (
            json!({"assistantEvent": message(json!([])), "toolCalls": many}),
            "/toolCalls",
        ),
        (
            json!({"assistantEvent": message(json!([])), "usage": {"model": "m".repeat(257)}}),
            "/usage/model",
        ),
    ];
    for (wrong, pointer) in cases {
        let refused = workers.complete(lease.at(), &answer(wrong)).await;
        let Err(ExternalError::Refused(refused)) = refused else {
            panic!("{pointer}: {refused:?}");
        };
        assert_eq!(refused.pointer, pointer);
    }
    let delta = |n: usize| StepDelta::Reasoning {
        index: 0,
        delta: "x".repeat(n),
    };
    let too_long = workers.stream(lease.at(), 0, &[delta(65_537)]).await;
    let too_many = workers.stream(lease.at(), 0, &vec![delta(1); 257]).await;
    let too_late = workers.stream(lease.at(), 4096, &[delta(1)]).await;
    for (refused, pointer) in [
        (too_long, "/deltas"),
        (too_many, "/deltas"),
        (too_late, "/seq"),
        (workers.fail(lease.at(), "").await, "/message"),
    ] {
        let Err(ExternalError::Refused(refused)) = refused else {
            panic!("{pointer}: {refused:?}");
        };
        assert_eq!(refused.pointer, pointer);
    }
    // The lease outlives what was refused.
    complete(&runtime, &step, &says("right")).await;
    at_rest(&runtime).await;
    assert_eq!(text(&runtime).await, "right");
}

#[tokio::test]
async fn a_worker_that_streams_too_much_fails_the_run() {
    let runtime = in_memory(external(Vec::new(), WorkerPolicy::default()));
    post(&runtime, &tenant(), KEY, "hello").await;
    let step = leased(&runtime).await;
    let lease = Lease::of(&step);
    let delta = "x".repeat(64 << 10);
    let piece = [StepDelta::OutputText { index: 0, delta }];
    // 256 pieces of 64 KiB are the limit without what each piece counts.
    for seq in 0..256 {
        if let Err(error) = runtime.external().stream(lease.at(), seq, &piece).await {
            // The run has ended already.
            assert!(!matches!(error, ExternalError::Store(_)), "{error}");
            break;
        }
    }
    at_rest(&runtime).await;
    let (_, detail) = interrupted(&runtime).await;
    assert!(detail.contains("streamed more than"), "{detail}");
}

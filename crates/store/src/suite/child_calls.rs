//! Tests of forks of threads with calls that wait for a sub-agent.

use super::Subject;
use super::script::{Author, end, fork, item, respond, start};
use serde_json::json;
use timeline::{
    Command, NewThread, OpenCall, OpenChild, OpenKind, Payload, Seq, StepOutcome, Trigger,
};

/// A sub-agent has one thread, which belongs to the parent. So a fork inherits none of the open calls,
/// before and after reopening.
pub async fn a_fork_does_not_wait_for_a_sub_agent_of_its_parent(mut subject: impl Subject) {
    let store = subject.store();
    let mut parent = Author::new(&store, "acme", NewThread::new("parent", Some("p"))).await;
    let child = OpenChild {
        thread_id: "child".into(),
        key: "p/child".to_owned(),
        subagent_id: "s1".to_owned(),
        subagent_type: "agent".to_owned(),
        seq: Seq(1),
        is_over: false,
        is_hidden: false,
    };
    let part = json!({"type": "tool-weather", "toolCallId": "c1", "state": "input-available"});
    let call = OpenCall {
        tool_call_id: "c1".into(),
        kind: OpenKind::Child,
        part: part.into(),
        origin: None,
        children: vec![child],
    };
    let leave = Command::CompleteStep {
        outcome: StepOutcome {
            open_calls: Payload::write(&[call]).ok(),
            ..StepOutcome::default()
        },
        next: None,
    };
    let asked = start("one", Trigger::New(item("ask")));
    parent.commit_all([asked, respond(), leave, end()]).await;
    assert_eq!(parent.state.open().map(|open| open.calls.len()), Some(1));
    let thread = NewThread {
        fork: Some(fork("parent", parent.tail.0)),
        ..NewThread::new("fork", Some("f"))
    };
    let forked = Author::new(&store, "acme", thread).await;
    assert_eq!(forked.state.open(), None);
    drop(store);
    subject.reopen().await;
    let store = subject.store();
    let open = |state: timeline::State| state.open().map(|open| open.calls.len());
    let head = store.head(&forked.thread).await.unwrap();
    assert_eq!(open(head.state), None, "the fork's");
    let head = store.head(&parent.thread).await.unwrap();
    assert_eq!(open(head.state), Some(1), "the parent's own");
}

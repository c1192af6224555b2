//! Threads that name others as their sub-agents' which are not.

use crate::children::rig::{KEY, at_rest, children, fresh, message, say, tenant};
use crate::children::waits::{Ran, asked, pending, three};
use futures_util::StreamExt;
use loomline_runtime as runtime;
use runtime::{Below, Cursor, Import, Runtime, RuntimeError, Until};
use serde_json::json;
use store::{StoreError, TenantId};
use timeline::{
    Command, Ending, ExecutionId, ItemId, NewItem, OpenCall, OpenChild, OpenKind, Payload, Seq,
    StepId, StepOutcome, ThreadId, Trigger,
};

/// A finished conversation that says it has started this thread, and waits for it.
fn naming(thread: &ThreadId) -> Import {
    let spawned = json!({
        "type": "data-tp-thread_spawn", "id": thread, "data": {
            "spawned_thread_id": thread, "tool_call_id": "c", "subagent_id": "s",
            "subagent_type": "helper",
        },
    });
    let ended = json!({
        "type": "data-tp-thread_end", "id": thread,
        "data": {"thread_id": thread, "tool_call_id": "c", "reason": "completed", "seq": 5},
    });
    let call = json!({
        "type": "tool-helper", "toolCallId": "c", "state": "input-available", "input": {},
    });
    let waits = OpenCall {
        tool_call_id: "c".into(),
        kind: OpenKind::Child,
        part: call.clone().into(),
        origin: None,
        children: vec![OpenChild {
            thread_id: thread.clone(),
            key: "anything".into(),
            subagent_id: "s".into(),
            subagent_type: "helper".into(),
            seq: Seq::ZERO,
            is_over: false,
            is_hidden: false,
        }],
    };
    let outcome = StepOutcome {
        open_calls: Some(Payload::write(&[waits]).unwrap()),
        ..StepOutcome::default()
    };
    let content = json!([{"type": "input_text", "text": "go"}]).into();
    let commands = [
        Command::Start {
            trigger: Trigger::New(NewItem::user("i".to_owned(), content)),
            run: None,
            execution_id: ExecutionId::from("x"),
            reaction_item_id: ItemId::from("r"),
            step_id: StepId::from("s"),
            workflow_run_id: None,
        },
        Command::Respond {
            parts: vec![call.into(), spawned.into(), ended.into()],
            response: json!({}).into(),
        },
        Command::CompleteStep {
            outcome,
            next: None,
        },
        Command::End {
            ending: Ending::Completed,
        },
    ];
    let at = jiff::Timestamp::UNIX_EPOCH;
    Import {
        commands: commands.into_iter().map(|it| (at, it)).collect(),
        ..Import::default()
    }
}

/// All records of a thread and beneath it that can be read without waiting.
async fn beneath(runtime: &Runtime, key: &str, after: Cursor) -> Vec<Below> {
    let tree = runtime.tree(&tenant(), key, after, Until::Rest).await;
    let all: Vec<Below> = tree.unwrap().map(|it| it.unwrap()).collect().await;
    all.into_iter().filter(|it| !it.path.is_empty()).collect()
}

async fn shows_nothing_of(runtime: &Runtime, foreign: &ThreadId) {
    let (tenant, copy) = (tenant(), Some("copy".to_owned()));
    runtime
        .import(&tenant, copy, naming(foreign))
        .await
        .unwrap();
    for after in [
        Cursor::default(),
        Cursor {
            own: Seq::ZERO.into(),
            below: [(foreign.clone(), Seq::ZERO.into())].into(),
        },
    ] {
        assert_eq!(beneath(runtime, "copy", after).await.len(), 0);
    }
    let watched = runtime.watch(&tenant, "copy", Seq::ZERO, Until::Rest);
    let watched: Vec<_> = watched.await.unwrap().collect().await;
    let is_own = |it: &runtime::Watched| matches!(it, runtime::Watched::Record(_));
    assert!(watched.iter().all(|it| is_own(it.as_ref().unwrap())));
    let places = pending(runtime, "copy").await;
    assert!(
        places.iter().all(|it| it.address.key == "copy"),
        "{places:?}"
    );
}

#[tokio::test]
async fn a_document_that_names_another_tenants_thread_shows_nothing_of_it() {
    let ran = Ran::default();
    let runtime = fresh(three(&ran));
    let other = TenantId::from("other");
    let mut secret = message(&runtime, "the secret");
    secret.tenant = other.clone();
    let secret = runtime.react(secret).await.unwrap().thread_id;
    let follow = runtime.follow(&other, KEY, Seq::ZERO, Until::Rest).await;
    assert!(follow.unwrap().count().await > 0);
    assert!(!runtime.pending(&other, KEY).await.unwrap().0.is_empty());
    shows_nothing_of(&runtime, &secret).await;
}

#[tokio::test]
async fn a_document_that_names_a_thread_which_is_nobodys_child_shows_nothing_of_it() {
    let ran = Ran::default();
    let runtime = fresh(three(&ran));
    let own = say(&runtime, "go").await.thread_id;
    at_rest(&runtime, KEY).await;
    shows_nothing_of(&runtime, &own).await;
}

#[tokio::test]
async fn a_document_that_names_another_threads_child_shows_nothing_of_it() {
    let ran = Ran::default();
    let runtime = fresh(three(&ran));
    say(&runtime, "go").await;
    at_rest(&runtime, KEY).await;
    let child = children(&runtime).await.remove(0);
    let child = runtime.find(&tenant(), &child).await.unwrap();
    shows_nothing_of(&runtime, &child.thread.id).await;
    assert_eq!(asked(&runtime, KEY).await.len(), 1);
}

#[tokio::test]
async fn a_fork_shows_the_children_of_its_ancestors_and_does_not_delete_them() {
    let ran = Ran::default();
    let runtime = fresh(three(&ran));
    say(&runtime, "go").await;
    at_rest(&runtime, KEY).await;
    let key = children(&runtime).await.remove(0);
    let child = runtime.find(&tenant(), &key).await.unwrap().thread.id;
    let (tenant, fork) = (tenant(), Some("fork".to_owned()));
    runtime.fork(&tenant, KEY, fork, None).await.unwrap();
    let again = Some("again".to_owned());
    runtime.fork(&tenant, "fork", again, None).await.unwrap();
    let after = Cursor {
        own: Seq::ZERO.into(),
        below: [(child.clone(), Seq::ZERO.into())].into(),
    };
    // A reader with later events of a child than its log has is refused.
    let tail = runtime.find(&tenant, &key).await.unwrap().tail;
    let ahead = Cursor {
        below: [(child.clone(), tail.next().into())].into(),
        ..after.clone()
    };
    let refused = runtime.tree(&tenant, "fork", ahead, Until::Rest).await;
    let refused = refused.map(drop).unwrap_err();
    assert!(
        matches!(&refused, RuntimeError::Store(StoreError::AheadOfLog { at, tail: end }) if (*at, *end) == (tail.next(), tail)),
        "{refused}"
    );
    for key in ["fork", "again"] {
        let shown = beneath(&runtime, key, after.clone()).await;
        assert!(shown.iter().any(|it| it.thread_id == child), "{key}");
    }
    runtime.delete(&tenant, "again").await.unwrap();
    runtime.delete(&tenant, "fork").await.unwrap();
    assert_eq!(children(&runtime).await.len(), 2);
}

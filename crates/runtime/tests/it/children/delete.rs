//! Deleting a thread deletes those of its sub-agents.

use crate::children::rig::{
    KEY, agent, at_rest, call, children, fresh, running_child, say, stalls, sub, tenant, text,
    tool, transcript,
};
use crate::children::waits::{Ran, asked, three};
use agents::Agent;
use futures_util::FutureExt;
use loomline_runtime as runtime;
use runtime::{Import, NewThreadRequest, Runtime, RuntimeError};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::StoreError;

fn team() -> Vec<Agent> {
    let leaf = agent("leaf", vec![text("Leaf.")], vec![]);
    let middle = agent(
        "middle",
        vec![call("leaf"), text("Middle.")],
        vec![sub(leaf.clone())],
    );
    let top = agent(
        "lead",
        vec![call("middle"), text("Done.")],
        vec![sub(middle.clone())],
    );
    vec![top, middle, leaf]
}

async fn is_gone(runtime: &Runtime, key: &str) -> bool {
    let found = runtime.find(&tenant(), key).await;
    matches!(found, Err(RuntimeError::Store(StoreError::NotFound)))
}

#[tokio::test]
async fn a_deleted_thread_takes_its_children_with_it() {
    let runtime = fresh(team());
    say(&runtime, "go").await;
    at_rest(&runtime, KEY).await;
    let keys = children(&runtime).await;
    assert_eq!(keys.len(), 2);
    runtime.delete(&tenant(), KEY).await.unwrap();
    for key in keys.iter().map(String::as_str).chain([KEY]) {
        assert!(is_gone(&runtime, key).await, "{key}");
    }
}

#[tokio::test]
async fn children_that_wait_are_deleted_with_the_parent_that_waits_for_them() {
    let ran = Ran::default();
    let runtime = fresh(three(&ran));
    say(&runtime, "go").await;
    at_rest(&runtime, KEY).await;
    assert_eq!(asked(&runtime, KEY).await.len(), 1);
    runtime.delete(&tenant(), KEY).await.unwrap();
    assert!(children(&runtime).await.is_empty());
}

#[tokio::test]
async fn a_thread_with_forks_is_not_deleted_and_neither_are_its_children() {
    let runtime = fresh(team());
    say(&runtime, "go").await;
    at_rest(&runtime, KEY).await;
    let (tenant, fork) = (tenant(), Some("fork".to_owned()));
    runtime.fork(&tenant, KEY, fork, None).await.unwrap();
    let refused = runtime.delete(&tenant, KEY).await;
    assert!(
        matches!(
            refused,
            Err(RuntimeError::Store(StoreError::HasForks { .. }))
        ),
        "{refused:?}"
    );
    assert_eq!(children(&runtime).await.len(), 2);
}

#[tokio::test]
async fn a_child_with_a_fork_stays_when_its_parent_is_deleted() {
    let runtime = fresh(team());
    say(&runtime, "go").await;
    at_rest(&runtime, KEY).await;
    let keys = children(&runtime).await;
    let (tenant, fork) = (tenant(), Some("fork".to_owned()));
    let forked = runtime.fork(&tenant, &keys[1], fork, None);
    forked.await.unwrap();
    runtime.delete(&tenant, KEY).await.unwrap();
    assert!(is_gone(&runtime, &keys[0]).await);
    assert!(!is_gone(&runtime, &keys[1]).await);
    assert!(!is_gone(&runtime, "fork").await);
}

#[tokio::test]
async fn a_thread_that_only_names_another_ones_child_does_not_delete_it() {
    let runtime = fresh(team());
    say(&runtime, "go").await;
    at_rest(&runtime, KEY).await;
    let keys = children(&runtime).await;
    // The same conversation, imported: its events name the children of the first.
    let document = interop::document::to_document(&transcript(&runtime, KEY).await).value;
    let mut n = 0;
    let mut ids = || {
        n += 1;
        format!("imported-{n}")
    };
    let imported = interop::document::from_document(&document, &mut ids).unwrap();
    let import = Import {
        commands: imported.value.commands,
        ..Import::default()
    };
    let copy = runtime.import(&tenant(), Some("copy".into()), import).await;
    copy.unwrap();
    runtime.delete(&tenant(), "copy").await.unwrap();
    for key in &keys {
        assert!(!is_gone(&runtime, key).await, "{key}");
    }
}

/// A runtime whose agent never ends, and how often it has begun.
fn endless() -> (Runtime, Arc<AtomicUsize>) {
    let n_begun = Arc::new(AtomicUsize::new(0));
    let begun = Arc::clone(&n_begun);
    let tool = tool("wait", move |_| {
        begun.fetch_add(1, Ordering::SeqCst);
        std::future::pending().boxed()
    });
    let lead = agent("lead", vec![call("wait"), text("Done.")], vec![tool]);
    (fresh(vec![lead]), n_begun)
}

async fn once_begun(n_begun: &AtomicUsize) {
    while n_begun.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_runs_is_stopped_with_its_thread_and_what_waits_never_begins() {
    let (runtime, n_begun) = endless();
    for said in ["go", "then", "and then"] {
        say(&runtime, said).await;
    }
    once_begun(&n_begun).await;
    let refused = runtime.delete(&tenant(), KEY).await;
    assert!(matches!(refused, Err(RuntimeError::Busy(_))), "{refused:?}");
    runtime.delete_stopping(&tenant(), KEY).await.unwrap();
    assert!(is_gone(&runtime, KEY).await);
    runtime.shutdown().await.unwrap();
    assert_eq!(n_begun.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_runs_goes_on_where_its_thread_has_forks() {
    let (runtime, n_begun) = endless();
    let new = NewThreadRequest {
        key: Some(KEY.into()),
        ..NewThreadRequest::default()
    };
    let tenant = tenant();
    runtime.get_or_create(&tenant, new).await.unwrap();
    let fork = Some("fork".to_owned());
    runtime.fork(&tenant, KEY, fork, None).await.unwrap();
    say(&runtime, "go").await;
    say(&runtime, "then").await;
    once_begun(&n_begun).await;
    let (before, tail) = runtime.state(&tenant, KEY).await.unwrap();
    let refused = runtime.delete_stopping(&tenant, KEY).await;
    assert!(
        matches!(
            refused,
            Err(RuntimeError::Store(StoreError::HasForks { .. }))
        ),
        "{refused:?}"
    );
    let (after, same) = runtime.state(&tenant, KEY).await.unwrap();
    assert_eq!((after, same), (before, tail));
    runtime.delete(&tenant, "fork").await.unwrap();
    runtime.delete_stopping(&tenant, KEY).await.unwrap();
    assert!(is_gone(&runtime, KEY).await);
}

#[tokio::test]
async fn sub_agents_that_run_are_stopped_and_deleted_with_the_thread_they_run_for() {
    let leaf = agent("leaf", vec![call("wait")], vec![stalls("wait")]);
    let middle = agent("middle", vec![call("leaf")], vec![sub(leaf.clone())]);
    let top = agent("lead", vec![call("middle")], vec![sub(middle.clone())]);
    let runtime = fresh(vec![top, middle, leaf]);
    say(&runtime, "go").await;
    let deepest = running_child(&runtime, 2).await;
    runtime.delete_stopping(&tenant(), KEY).await.unwrap();
    assert!(children(&runtime).await.is_empty());
    assert!(is_gone(&runtime, &deepest).await);
}

#[tokio::test]
async fn who_waits_for_a_sub_agent_that_is_deleted_while_it_runs_goes_on() {
    let leaf = agent("leaf", vec![call("wait")], vec![stalls("wait")]);
    let top = agent(
        "lead",
        vec![call("leaf"), text("Done.")],
        vec![sub(leaf.clone())],
    );
    let runtime = fresh(vec![top, leaf]);
    say(&runtime, "go").await;
    let child = running_child(&runtime, 1).await;
    runtime.delete_stopping(&tenant(), &child).await.unwrap();
    at_rest(&runtime, KEY).await;
    assert!(is_gone(&runtime, &child).await);
}

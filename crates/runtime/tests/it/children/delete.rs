//! Deleting a thread deletes those of its sub-agents.

use crate::children::rig::{
    KEY, agent, at_rest, call, children, fresh, say, sub, tenant, text, transcript,
};
use crate::children::waits::{Ran, asked, three};
use agents::Agent;
use loomline_runtime as runtime;
use runtime::{Import, Runtime, RuntimeError, StoreError};

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

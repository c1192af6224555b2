//! Trees of conversations as threads and forks.

mod laws;
mod native;

use agents::{AgentState, ThreadNode, ThreadTree};
use interop::model::history;
use loomline_runtime as runtime;
use runtime::tree::StoredTreeError;
use runtime::{AgentReactor, Runtime, RuntimeError, RuntimeOptions};
use std::sync::Arc;
use store::{Filter, MemoryStore, StoreError, TenantId};
use timeline::{Fork, Seq};
use upp::{
    Arguments, AssistantMessage, Message, MessageOptions, ToolCall, ToolResult, ToolResultMessage,
    UserMessage,
};

fn tenant() -> TenantId {
    "acme".into()
}

fn options(id: &str) -> MessageOptions {
    MessageOptions {
        id: Some(id.into()),
        ..MessageOptions::default()
    }
}

fn user(id: &str, text: &str) -> Message {
    let text = upp::UserContent::Text { text: text.into() };
    UserMessage::new(vec![text], options(id)).into()
}

fn said(id: &str, text: &str) -> Message {
    let text = upp::AssistantContent::Text { text: text.into() };
    AssistantMessage::new(vec![text], Vec::new(), options(id)).into()
}

fn asks(id: &str, calls: &[&str]) -> Message {
    let calls = calls.iter().map(|call| ToolCall {
        tool_call_id: (*call).into(),
        tool_name: "add".into(),
        arguments: Arguments::from_text(r#"{"b": 1.0,  "a":2}"#),
        after: Vec::new(),
    });
    AssistantMessage::new(Vec::new(), calls.collect(), options(id)).into()
}

fn gives(id: &str, calls: &[&str]) -> Message {
    let results = calls.iter().map(|call| ToolResult {
        tool_call_id: (*call).into(),
        result: serde_json::json!({"of": call}).into(),
        is_error: false,
    });
    ToolResultMessage::new(results.collect(), options(id)).into()
}

fn ids(state: &AgentState) -> Vec<&str> {
    let ids = state.messages().iter().map(|message| message.id().as_str());
    ids.collect()
}

/// Runs an agent that says what it is told.
fn started(store: &Arc<MemoryStore>) -> Runtime {
    let model = Arc::new(upp::Scripted::new());
    let echo = agents::Agent::new(agents::AgentOptions::new("echo", model)).unwrap();
    let reactor = Arc::new(AgentReactor::new(echo));
    Runtime::new(store.clone(), Arc::new(reactor), RuntimeOptions::default())
}

fn fresh() -> (Arc<MemoryStore>, Runtime) {
    let store = Arc::new(MemoryStore::new());
    let runtime = started(&store);
    (store, runtime)
}

/// A branch of a node with more messages than that has, checked out.
fn grow(tree: &mut ThreadTree, from: &str, name: &str, messages: Vec<Message>) -> Arc<str> {
    let id = tree.branch(from, Some(name)).unwrap();
    tree.checkout(&id).unwrap();
    tree.set_state(tree.current().state().with_messages(messages));
    id
}

async fn logs(runtime: &Runtime, key: &str) -> Vec<String> {
    let mut logs = Vec::new();
    for branch in runtime.branches(&tenant(), key).await.unwrap() {
        let key = branch.row.thread.key.unwrap();
        let log = runtime.read(&tenant(), &key, Seq::ZERO, 10_000).await;
        logs.push(log.unwrap().iter().map(|logged| &*logged.text).collect());
    }
    logs
}

#[tokio::test]
async fn a_branch_is_a_fork_that_stores_only_what_it_adds() {
    let (_store, runtime) = fresh();
    let turn = |n: usize| {
        vec![
            user(&format!("u{n}"), &format!("text {n}")),
            said(&format!("a{n}"), &format!("answer {n}")),
        ]
    };
    let mut tree = ThreadTree::of(AgentState::initial().with_messages(turn(0)));
    let root = tree.root().id().clone();
    let a = grow(&mut tree, &root, "a", turn(1));
    let deep = grow(&mut tree, &a, "deep", turn(2));
    let b = grow(&mut tree, &root, "b", turn(3));
    runtime.store_tree(&tenant(), "k", &tree).await.unwrap();

    let branches = runtime.branches(&tenant(), "k").await.unwrap();
    let told: Vec<_> = branches
        .iter()
        .map(|it| (&it.node_id, it.parent_id.as_ref(), it.name(), it.is_current))
        .collect();
    assert_eq!(
        told,
        [
            (&root, None, None, false),
            (&a, Some(&root), Some("a"), false),
            (&b, Some(&root), Some("b"), true),
            (&deep, Some(&a), Some("deep"), false),
        ]
    );
    let forks: Vec<_> = branches
        .iter()
        .map(|it| it.row.thread.fork.clone())
        .collect();
    // The root has one event more: which node is checked out.
    let of = |n: usize, after: u64| {
        let row = &branches[n].row;
        Some(Fork {
            thread_id: row.thread.id.clone(),
            seq: Seq(row.tail.0 - after),
        })
    };
    assert_eq!(forks, [None, of(0, 1), of(0, 1), of(1, 0)]);
    let keys: Vec<_> = branches
        .iter()
        .map(|it| it.row.thread.key.clone().unwrap())
        .collect();
    assert_eq!(keys[0], "k");
    assert_eq!(keys[1], format!("k/{a}"));

    let logs = logs(&runtime, "k").await;
    for n in 0..4 {
        for text in [format!("text {n}"), format!("answer {n}")] {
            assert_eq!(logs.concat().matches(&text).count(), 1, "{text}");
        }
    }
    let transcript = runtime
        .transcript(&tenant(), &keys[3], Filter::Facts)
        .await
        .unwrap();
    let seen = history(&transcript, None);
    let seen: Vec<_> = seen.iter().map(|message| message.id().as_str()).collect();
    assert_eq!(seen, ["u0", "a0", "u1", "a1", "u2", "a2"]);
    assert_eq!(runtime.load_tree(&tenant(), "k").await.unwrap(), tree);
}

#[tokio::test]
async fn a_tree_twice_as_deep_takes_twice_the_room() {
    let mut sizes = Vec::new();
    for depth in [40, 80] {
        let (_store, runtime) = fresh();
        let mut tree = ThreadTree::new();
        for n in 0..depth {
            let from = tree.current().id().clone();
            let id = format!("m{n:03}");
            grow(&mut tree, &from, "x", vec![user(&id, "text")]);
            tree.set_state(
                tree.current()
                    .state()
                    .with_reasoning("because")
                    .with_step(n),
            );
        }
        runtime.store_tree(&tenant(), "k", &tree).await.unwrap();
        sizes.push(logs(&runtime, "k").await.concat().len());
    }
    assert!(sizes[1] < sizes[0] * 21 / 10, "{sizes:?}");
}

#[tokio::test]
async fn storing_a_tree_again_writes_only_what_is_new() {
    let (_store, runtime) = fresh();
    let mut tree = ThreadTree::of(AgentState::initial().with_message(user("1", "one")));
    let root = tree.root().id().clone();
    let a = grow(&mut tree, &root, "a", vec![said("2", "two")]);
    runtime.store_tree(&tenant(), "k", &tree).await.unwrap();
    let before = runtime.branches(&tenant(), "k").await.unwrap();
    runtime.store_tree(&tenant(), "k", &tree).await.unwrap();
    assert_eq!(runtime.branches(&tenant(), "k").await.unwrap(), before);

    tree.set_state(
        tree.current()
            .state()
            .with_message(user("3", "three"))
            .with_metadata("k", 1),
    );
    runtime.store_tree(&tenant(), "k", &tree).await.unwrap();
    let after = runtime.branches(&tenant(), "k").await.unwrap();
    assert_eq!(after[0], before[0]);
    assert_eq!((&*after[1].node_id, after.len()), (&*a, 2));
    assert!(after[1].row.tail > before[1].row.tail);
    assert_eq!(
        logs(&runtime, "k")
            .await
            .concat()
            .matches("\"two\"")
            .count(),
        1
    );
    assert_eq!(runtime.load_tree(&tenant(), "k").await.unwrap(), tree);
}

#[tokio::test]
async fn a_branch_from_before_its_parent_went_on_begins_there() {
    let (_store, runtime) = fresh();
    let mut tree = ThreadTree::of(AgentState::initial().with_message(user("1", "one")));
    let root = tree.root().id().clone();
    let other = grow(&mut tree, &root, "other", vec![said("2", "two")]);
    tree.checkout(&root).unwrap();
    tree.set_state(tree.current().state().with_message(said("3", "three")));
    runtime.store_tree(&tenant(), "k", &tree).await.unwrap();

    let key = format!("k/{other}");
    let transcript = runtime
        .transcript(&tenant(), &key, Filter::Facts)
        .await
        .unwrap();
    let seen = history(&transcript, None);
    let seen: Vec<_> = seen.iter().map(|message| message.id().as_str()).collect();
    assert_eq!(
        seen,
        ["1", "2"],
        "the fork does not see what its parent said later"
    );
    assert_eq!(runtime.load_tree(&tenant(), "k").await.unwrap(), tree);
}

#[tokio::test]
async fn a_snapshot_may_show_less_than_its_thread_has() {
    let (_store, runtime) = fresh();
    let first = ["1", "2", "3"].map(|id| user(id, &format!("text {id}")));
    let mut tree = ThreadTree::of(AgentState::initial().with_messages(first.clone()));
    let root = tree.root().id().clone();
    let window = tree.branch(&root, Some("window")).unwrap();
    tree.checkout(&window).unwrap();
    let [_, _, third] = first;
    tree.set_state(
        tree.current()
            .state()
            .with_context([third.clone(), user("4", "text 4")]),
    );
    let sum = tree.branch(&root, Some("summary")).unwrap();
    tree.checkout(&sum).unwrap();
    tree.set_state(tree.current().state().with_context([
        user("s", "in short"),
        third,
        user("5", "text 5"),
    ]));
    let own = tree.branch(&root, Some("own")).unwrap();
    tree.checkout(&own).unwrap();
    tree.set_state(tree.current().state().with_context([user("6", "text 6")]));
    runtime.store_tree(&tenant(), "k", &tree).await.unwrap();

    let loaded = runtime.load_tree(&tenant(), "k").await.unwrap();
    assert_eq!(loaded, tree);
    assert_eq!(ids(&loaded.history()), ["1", "2", "3", "6"]);
    let logs = logs(&runtime, "k").await.concat();
    for n in 1..=6 {
        assert_eq!(logs.matches(&format!("text {n}")).count(), 1, "text {n}");
    }
    for (node, expected) in [
        (&window, ["1", "2", "3", "4"]),
        (&sum, ["1", "2", "3", "5"]),
        (&own, ["1", "2", "3", "6"]),
    ] {
        let key = format!("k/{node}");
        let transcript = runtime
            .transcript(&tenant(), &key, Filter::Facts)
            .await
            .unwrap();
        let seen = history(&transcript, None);
        let seen: Vec<_> = seen.iter().map(|message| message.id().as_str()).collect();
        assert_eq!(
            seen, expected,
            "the thread goes on with the whole conversation"
        );
    }
}

#[tokio::test]
async fn a_call_that_waits_comes_back_and_may_be_answered_in_a_branch() {
    let (_store, runtime) = fresh();
    let open = [user("1", "add"), asks("2", &["c1", "c2"])];
    let mut tree = ThreadTree::of(AgentState::initial().with_messages(open));
    let root = tree.root().id().clone();
    grow(
        &mut tree,
        &root,
        "late",
        vec![gives("3", &["c2"]), gives("4", &["c1"]), said("5", "done")],
    );
    grow(&mut tree, &root, "past", vec![user("6", "never mind")]);
    runtime.store_tree(&tenant(), "k", &tree).await.unwrap();
    assert_eq!(runtime.load_tree(&tenant(), "k").await.unwrap(), tree);
}

#[tokio::test]
async fn what_can_not_be_stored_is_refused_by_name() {
    let (_store, runtime) = fresh();
    let mut tree = ThreadTree::of(AgentState::initial().with_message(user("1", "one")));
    let root = tree.root().id().clone();
    grow(&mut tree, &root, "a", vec![user("2", "two")]);
    let none = runtime.load_tree(&tenant(), "k").await.unwrap_err();
    assert!(matches!(
        none,
        StoredTreeError::Runtime(RuntimeError::Store(StoreError::NotFound))
    ));
    runtime.store_tree(&tenant(), "k", &tree).await.unwrap();

    let other = runtime.store_tree(&tenant(), "k", &ThreadTree::new()).await;
    assert!(matches!(other, Err(StoredTreeError::AnotherTree { found, .. }) if *found == *root));
    for refused in [
        runtime.branch(&tenant(), "k", "x", None).await.map(|_| ()),
        runtime.checkout(&tenant(), "k", "x").await,
    ] {
        assert!(matches!(refused, Err(StoredTreeError::UnknownNode { node, .. }) if node == "x"));
    }
    let theirs = runtime.load_tree(&"globex".into(), "k").await.unwrap_err();
    assert!(matches!(
        theirs,
        StoredTreeError::Runtime(RuntimeError::Store(StoreError::NotFound))
    ));
}

#[tokio::test]
async fn a_node_that_is_stored_with_another_parent_is_refused() {
    let (_store, runtime) = fresh();
    let mut tree = ThreadTree::new();
    let root = tree.root().id().clone();
    let a = tree.branch(&root, Some("a")).unwrap();
    runtime.store_tree(&tenant(), "k", &tree).await.unwrap();

    let b = ThreadNode::random_id();
    let made = |id: &Arc<str>, parent: Option<&Arc<str>>, children: Vec<Arc<str>>| {
        let state = AgentState::initial();
        ThreadNode::restored(id.clone(), parent.cloned(), None, state, children)
    };
    let nodes = [
        made(&root, None, vec![b.clone()]),
        made(&b, Some(&root), vec![a.clone()]),
        made(&a, Some(&b), vec![]),
    ];
    let moved = ThreadTree::from_nodes(nodes, &root).unwrap();
    let refused = runtime.store_tree(&tenant(), "k", &moved).await;
    assert!(matches!(refused, Err(StoredTreeError::AnotherParent { node }) if *node == *a));
}

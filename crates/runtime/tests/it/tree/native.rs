//! Threads that agents run on, as trees.

use super::*;
use futures_util::StreamExt;
use runtime::{ReactRequest, Until};
use serde_json::json;
use store::Store;
use store::suite::{Author, script};
use timeline::{NewItem, NewThread};

fn trigger(runtime: &Runtime, key: &str, text: &str) -> ReactRequest {
    let content = json!([{"type": "input_text", "text": text}]);
    ReactRequest::new(tenant(), key, NewItem::user(runtime.mint(), content.into()))
}

/// Says something on a thread and waits for the answer.
async fn ask(runtime: &Runtime, key: &str, text: &str) {
    let accepted = runtime.react(trigger(runtime, key, text)).await.unwrap();
    let tenant = tenant();
    let follow = runtime.follow(&tenant, key, accepted.after, Until::Rest);
    assert!(follow.await.unwrap().count().await > 0);
}

fn texts(state: &AgentState) -> Vec<String> {
    let messages = state.messages().iter();
    messages.map(Message::joined_text).collect()
}

#[tokio::test]
async fn a_thread_and_its_forks_are_a_tree() {
    let (_store, runtime) = fresh();
    ask(&runtime, "chat", "one").await;
    let early = runtime.find(&tenant(), "chat").await.unwrap().tail;
    ask(&runtime, "chat", "two").await;
    let fork = runtime
        .fork(&tenant(), "chat", Some("other".into()), Some(early))
        .await
        .unwrap();
    ask(&runtime, "other", "three").await;
    runtime
        .fork(&tenant(), "other", Some("last".into()), None)
        .await
        .unwrap();

    let mut tree = runtime.load_tree(&tenant(), "chat").await.unwrap();
    assert_eq!((tree.n_nodes(), tree.current()), (3, tree.root()));
    assert_eq!(
        texts(tree.root().state()),
        ["one", "You said: one", "two", "You said: two"]
    );
    assert_eq!(tree.root().state().step(), 2);
    let id = fork.thread.id.as_str();
    let other = tree.node(id).unwrap();
    assert_eq!(other.parent_id(), Some(&**tree.root().id()));
    assert_eq!(
        texts(other.state()),
        ["one", "You said: one", "three", "You said: three"]
    );
    let last = tree.leaves().last().unwrap();
    assert_eq!(
        (last.parent_id(), texts(last.state())),
        (Some(id), texts(other.state()))
    );

    // By the key of a branch the same tree, with that branch current.
    let from = runtime.load_tree(&tenant(), "other").await.unwrap();
    assert_eq!((&**from.current().id(), from.n_nodes()), (id, 3));

    // What is done to it in memory can be stored there.
    tree.checkout(id).unwrap();
    tree.set_state(tree.current().state().with_message("noted"));
    runtime.store_tree(&tenant(), "chat", &tree).await.unwrap();
    assert_eq!(runtime.load_tree(&tenant(), "chat").await.unwrap(), tree);
    ask(&runtime, "other", "four").await;
    let tree = runtime.load_tree(&tenant(), "chat").await.unwrap();
    let expected = [
        "one",
        "You said: one",
        "three",
        "You said: three",
        "noted",
        "four",
        "You said: four",
    ];
    assert_eq!(texts(tree.current().state()), expected);
}

#[tokio::test]
async fn an_agent_goes_on_from_any_node_of_a_stored_tree() {
    let (_store, runtime) = fresh();
    let turn = |n: usize| {
        vec![
            user(&format!("u{n}"), &format!("text {n}")),
            asks(&format!("c{n}"), &["x"]),
            gives(&format!("r{n}"), &["x"]),
            said(&format!("a{n}"), "done"),
        ]
    };
    let mut tree = ThreadTree::of(AgentState::initial().with_messages(turn(0)).with_step(2));
    let root = tree.root().id().clone();
    let a = grow(&mut tree, &root, "a", turn(1));
    let state = tree.current().state().with_step(4).with_metadata("k", "v");
    tree.set_state(state);
    runtime.store_tree(&tenant(), "k", &tree).await.unwrap();

    ask(&runtime, &format!("k/{a}"), "and now?").await;
    let loaded = runtime.load_tree(&tenant(), "k").await.unwrap();
    assert_eq!(loaded.root(), tree.root());
    let state = loaded.node(&a).unwrap().state();
    let before = tree.node(&a).unwrap().state().messages().len();
    assert_eq!(state.messages().len(), before + 2);
    assert_eq!(texts(state).last().unwrap(), "You said: and now?");
    let first: Vec<_> = state.messages().iter().take(before).collect();
    let expected: Vec<_> = tree.node(&a).unwrap().state().messages().iter().collect();
    assert_eq!(first, expected, "what was stored stays what it was");
    assert_eq!(state.metadata()["k"], "v");
}

#[tokio::test]
async fn a_durable_branch_is_a_fork_and_checkout_says_which_thread_is_current() {
    let (store, runtime) = fresh();
    ask(&runtime, "chat", "one").await;
    let root = runtime.find(&tenant(), "chat").await.unwrap();
    let branch = runtime
        .branch(&tenant(), "chat", root.thread.id.as_str(), Some("other"))
        .await
        .unwrap();
    assert_eq!(
        branch.row.thread.fork,
        Some(Fork {
            thread_id: root.thread.id.clone(),
            seq: root.tail
        })
    );
    let key = branch.row.thread.key.clone().unwrap();
    assert_eq!(key, format!("chat/{}", branch.node_id));
    ask(&runtime, &key, "two").await;
    let deeper = runtime
        .branch(&tenant(), "chat", &branch.node_id, None)
        .await
        .unwrap();
    runtime
        .checkout(&tenant(), "chat", &deeper.node_id)
        .await
        .unwrap();

    let runtime = started(&store);
    let current = |branches: Vec<runtime::tree::Branch>| {
        let current = branches.into_iter().filter(|it| it.is_current);
        current.map(|it| it.node_id).collect::<Vec<_>>()
    };
    let branches = runtime.branches(&tenant(), "chat").await.unwrap();
    assert_eq!(current(branches), std::slice::from_ref(&deeper.node_id));
    let tree = runtime.load_tree(&tenant(), "chat").await.unwrap();
    assert_eq!(tree.current().id(), &deeper.node_id);
    let names: Vec<_> = tree.nodes().map(|node| node.name()).collect();
    assert_eq!(names, [None, Some("other"), None]);
    assert_eq!(
        texts(&tree.history()),
        ["one", "You said: one", "two", "You said: two"]
    );

    // A branch that is deleted is not current any more.
    let gone = deeper.row.thread.key.unwrap();
    runtime.delete(&tenant(), &gone).await.unwrap();
    let branches = runtime.branches(&tenant(), "chat").await.unwrap();
    assert_eq!(current(branches), [Arc::from(root.thread.id.as_str())]);
}

#[tokio::test]
async fn who_stores_a_tree_that_others_have_written_to_is_told() {
    let (_store, runtime) = fresh();
    let tree = ThreadTree::of(AgentState::initial().with_message(user("1", "one")));
    runtime.store_tree(&tenant(), "k", &tree).await.unwrap();
    ask(&runtime, "k", "two").await;
    // Stored again as it was: the snapshot shows less, and the thread keeps what was said.
    runtime.store_tree(&tenant(), "k", &tree).await.unwrap();
    assert_eq!(runtime.load_tree(&tenant(), "k").await.unwrap(), tree);
    let transcript = runtime
        .transcript(&tenant(), "k", Filter::Facts)
        .await
        .unwrap();
    assert_eq!(history(&transcript, None).len(), 3);
}

#[tokio::test]
async fn a_thread_that_runs_takes_nothing_of_a_tree_and_shows_what_was_before() {
    let store = Arc::new(MemoryStore::new());
    let runtime = started(&store);
    let mut tree = ThreadTree::of(AgentState::initial().with_message(user("1", "one")));
    runtime.store_tree(&tenant(), "k", &tree).await.unwrap();
    let accepted = runtime
        .react(trigger(&runtime, "k", "slow 10s hello"))
        .await
        .unwrap();

    let loaded = runtime.load_tree(&tenant(), "k").await.unwrap();
    assert_eq!(texts(loaded.root().state()), ["one", "slow 10s hello"]);
    tree.set_state(tree.current().state().with_message(user("2", "two")));
    let refused = runtime.store_tree(&tenant(), "k", &tree).await;
    let running = accepted.execution_id.unwrap();
    assert!(
        matches!(&refused, Err(StoredTreeError::Runtime(RuntimeError::Busy(id))) if *id == running),
        "{refused:?}"
    );
    let refused = runtime.branch(&tenant(), "k", tree.root().id(), None).await;
    assert!(
        matches!(
            &refused,
            Err(StoredTreeError::Runtime(RuntimeError::NotAtRest(_)))
        ),
        "{refused:?}"
    );

    // Once it is stopped there is room again; what it was asked stays asked.
    runtime
        .cancel(&tenant(), "k", None, "user_cancelled")
        .await
        .unwrap();
    runtime.store_tree(&tenant(), "k", &tree).await.unwrap();
    assert_eq!(runtime.load_tree(&tenant(), "k").await.unwrap(), tree);
}

#[tokio::test]
async fn a_tree_has_of_any_log_the_messages_that_a_model_is_shown() {
    let store = Arc::new(MemoryStore::new());
    let threads: Arc<dyn Store> = store.clone();
    let mut author = Author::new(&threads, "acme", NewThread::new("t", Some("k"))).await;
    let runtime = started(&store);
    for command in script() {
        author.commit(command).await;
        let tree = runtime.load_tree(&tenant(), "k").await.unwrap();
        if author.state.active().is_none() {
            let transcript = runtime.transcript(&tenant(), "k", Filter::Facts).await;
            let seen = history(&transcript.unwrap(), None);
            let told =
                |message: &Message| (message.role(), message.joined_text(), message.timestamp());
            let expected: Vec<_> = seen.iter().map(told).collect();
            let found: Vec<_> = tree.root().state().messages().iter().map(told).collect();
            assert_eq!(found, expected);
        }
    }
    // These answers have no ids of their own, and are the same each time nevertheless.
    let tree = runtime.load_tree(&tenant(), "k").await.unwrap();
    let again = runtime.load_tree(&tenant(), "k").await.unwrap();
    assert_eq!(
        tree.root().state().messages(),
        again.root().state().messages()
    );
    runtime.store_tree(&tenant(), "k", &tree).await.unwrap();
    assert_eq!(runtime.load_tree(&tenant(), "k").await.unwrap(), tree);
    let transcript = runtime.transcript(&tenant(), "k", Filter::Facts).await;
    let n_messages = history(&transcript.unwrap(), None).len();
    assert_eq!(n_messages, tree.root().state().messages().len());
}

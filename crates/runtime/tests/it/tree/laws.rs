//! Laws that hold for any tree.

use super::*;
use proptest::prelude::*;

/// What is done to a tree, each with numbers that choose a node and messages.
#[derive(Clone, Debug)]
enum Op {
    Branch(usize),
    Checkout(usize),
    /// Appends to the current snapshot.
    Say(Vec<u8>),
    /// Keeps only these messages of a small pool.
    Own(Vec<u8>),
    /// Appends to the history of the path.
    GoOn(u8),
    /// Changes what a state has beside its messages.
    Note(u8),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => any::<usize>().prop_map(Op::Branch),
        2 => any::<usize>().prop_map(Op::Checkout),
        3 => prop::collection::vec(0_u8..40, 1..6).prop_map(Op::Say),
        1 => prop::collection::vec(0_u8..40, 0..6).prop_map(Op::Own),
        1 => any::<u8>().prop_map(Op::GoOn),
        1 => any::<u8>().prop_map(Op::Note),
    ]
}

/// Messages of every kind, some of which repeat ids, some of which fit nothing before them.
fn pool() -> Vec<Message> {
    let mark = |text: &str| {
        let mark = serde_json::json!({"uap": {"prompt": "reason", "step": 1, "firstStep": 0}});
        let options = MessageOptions {
            metadata: mark.as_object().cloned().map(Into::into),
            ..MessageOptions::default()
        };
        let text = upp::UserContent::Text { text: text.into() };
        Message::from(UserMessage::new(vec![text], options))
    };
    let dated = |n: i64| {
        let options = MessageOptions {
            id: Some(format!("dated {n}").as_str().into()),
            timestamp: jiff::Timestamp::from_second(n * 1_000_000_000).ok(),
            metadata: serde_json::json!({"openai": {"n": n}})
                .as_object()
                .cloned()
                .map(Into::into),
        };
        let content = upp::AssistantContent::Reasoning {
            text: "so".into(),
            signature: Some("s".into()),
        };
        Message::from(AssistantMessage::new(vec![content], Vec::new(), options))
    };
    let failed = |result: serde_json::Value| {
        let result = ToolResult {
            tool_call_id: "c1".into(),
            result: result.into(),
            is_error: true,
        };
        Message::from(ToolResultMessage::new(
            vec![result],
            MessageOptions::default(),
        ))
    };
    let image = upp::MediaSource::Base64 {
        data: "AAAA".into(),
    };
    let image = upp::UserContent::Image(upp::Media::new(image, "image/png"));
    let mut pool = vec![
        asks("call", &["c1"]),
        asks("calls", &["c1", "c2"]),
        asks("twins", &["c1", "c1"]),
        gives("r1", &["c1"]),
        gives("r2", &["c2"]),
        gives("r12", &["c1", "c2"]),
        gives("r21", &["c2", "c1"]),
        gives("r3", &["c3"]),
        failed("no".into()),
        failed(serde_json::json!({"why": [1, null]})),
        mark("think"),
        mark("act"),
        said("same", "one"),
        said("same", "two"),
        user("same", "three"),
        user("", ""),
        AssistantMessage::new(Vec::new(), Vec::new(), options("silent")).into(),
        UserMessage::new(vec![image], options("image")).into(),
        dated(-3),
        dated(1),
        dated(20),
    ];
    for n in 0..5 {
        pool.push(user(&format!("u{n}"), &format!("question {n}")));
        pool.push(said(&format!("a{n}"), &format!("answer {n}")));
    }
    pool
}

fn done(tree: &mut ThreadTree, ops: &[Op]) {
    let pool = pool();
    let some = |which: &[u8]| -> Vec<Message> {
        let places = which.iter().map(|n| usize::from(*n) % pool.len());
        places.map(|place| pool[place].clone()).collect()
    };
    for op in ops {
        let nth = |n: usize| {
            let node = tree.nodes().nth(n % tree.n_nodes());
            Arc::clone(node.unwrap().id())
        };
        match op {
            Op::Branch(n) => {
                let from = nth(*n);
                tree.branch(from, n.is_multiple_of(2).then_some("even"))
                    .unwrap();
            }
            Op::Checkout(n) => {
                let to = nth(*n);
                tree.checkout(to).unwrap();
            }
            Op::Say(which) => {
                tree.set_state(tree.current().state().with_messages(some(which)));
            }
            Op::Own(which) => tree.set_state(tree.current().state().with_context(some(which))),
            Op::GoOn(n) => {
                let state = tree.history().with_message(user(&format!("g{n}"), "go on"));
                tree.set_state(state);
            }
            Op::Note(n) => {
                let state = tree.current().state();
                let state = state.with_reasoning("so").with_metadata("n", *n);
                tree.set_state(state.with_step(u64::from(*n)));
            }
        }
    }
}

fn waited<T>(work: impl Future<Output = T>) -> T {
    let tokio = tokio::runtime::Builder::new_current_thread();
    let tokio = { tokio }.enable_all().build().unwrap();
    tokio.block_on(work)
}

/// Each node as its JSON: what a reader of UAP §12.2 sees.
fn written(tree: &ThreadTree) -> serde_json::Value {
    serde_json::from_str(&tree.to_json().unwrap()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_tree_comes_back_from_its_threads(
        first in prop::collection::vec(op(), 0..25),
        more in prop::collection::vec(op(), 0..12),
    ) {
        waited(async {
            let (store, runtime) = fresh();
            let mut tree = ThreadTree::new();
            for ops in [&first, &more] {
                done(&mut tree, ops);
                runtime.store_tree(&tenant(), "k", &tree).await.unwrap();
                // Another process reads it.
                let loaded = started(&store).load_tree(&tenant(), "k").await.unwrap();
                prop_assert_eq!(&loaded, &tree);
                prop_assert_eq!(written(&loaded), written(&tree));
                let (again, before) = (loaded.history(), tree.history());
                prop_assert_eq!(again.messages(), before.messages());
            }
            let before = runtime.branches(&tenant(), "k").await.unwrap();
            runtime.store_tree(&tenant(), "k", &tree).await.unwrap();
            prop_assert_eq!(runtime.branches(&tenant(), "k").await.unwrap(), before);
            Ok(())
        })?;
    }

    #[test]
    fn the_log_of_any_branch_is_sound(ops in prop::collection::vec(op(), 0..25)) {
        waited(async {
            let (_store, runtime) = fresh();
            let mut tree = ThreadTree::new();
            done(&mut tree, &ops);
            runtime.store_tree(&tenant(), "k", &tree).await.unwrap();
            for branch in runtime.branches(&tenant(), "k").await.unwrap() {
                let key = branch.row.thread.key.unwrap();
                let log = runtime.read(&tenant(), &key, Seq::ZERO, 10_000).await.unwrap();
                let records = log.iter().map(|logged| &logged.record);
                prop_assert_eq!(timeline::verify(records), Ok(()));
                let instants = log.iter().map(|logged| logged.record.at);
                prop_assert!(instants.is_sorted());
                let (state, _) = runtime.state(&tenant(), &key).await.unwrap();
                prop_assert!(state.active().is_none());
                let transcript = runtime.transcript(&tenant(), &key, Filter::Facts).await.unwrap();
                let document = interop::document::to_document(&transcript).value;
                prop_assert!(!document.encode().contains("loomline-tree"));
            }
            Ok(())
        })?;
    }
}

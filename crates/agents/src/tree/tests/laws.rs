//! Laws that hold for any tree.

use super::json::value;
use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// An operation on a tree, with numbers that choose a node and messages.
#[derive(Clone, Debug)]
enum Op {
    Branch(usize),
    Checkout(usize),
    /// Appends to the history.
    Say(u8),
    /// Sets only these messages of a small pool.
    Own(Vec<u8>),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        any::<usize>().prop_map(Op::Branch),
        any::<usize>().prop_map(Op::Checkout),
        any::<u8>().prop_map(Op::Say),
        prop::collection::vec(0_u8..12, 0..6).prop_map(Op::Own),
    ]
}

fn grown(ops: &[Op]) -> ThreadTree {
    let pool: Vec<Message> = (0..12).map(|n| message(&format!("p{n}"), "pool")).collect();
    let mut tree = ThreadTree::new();
    for (at, op) in ops.iter().enumerate() {
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
            Op::Say(n) => tree.set_state(
                tree.history()
                    .with_message(message(&format!("{at}"), &n.to_string())),
            ),
            Op::Own(which) => {
                let own = which
                    .iter()
                    .filter_map(|n| pool.get(usize::from(*n)).cloned());
                tree.set_state(tree.current().state().with_context(own));
            }
        }
    }
    tree
}

proptest! {
    #[test]
    fn history_has_every_message_of_the_path_exactly_as_often_as_one_node_does(ops in prop::collection::vec(op(), 0..30)) {
        let tree = grown(&ops);
        let history = tree.history();
        let count = |state: &AgentState, id: &str| ids(state).iter().filter(|other| **other == id).count();
        let all: BTreeSet<&str> = tree.path().iter().flat_map(|node| ids(node.state())).collect();
        for id in &all {
            let most = tree.path().iter().map(|node| count(node.state(), id)).max();
            prop_assert_eq!(Some(count(&history, id)), most, "{}", id);
        }
        prop_assert!(ids(&history).iter().all(|id| all.contains(id)));
    }

    #[test]
    fn history_keeps_the_order_of_nodes_that_have_their_own_messages(sizes in prop::collection::vec(0_usize..4, 1..12)) {
        let mut n = 0;
        let own: Vec<Vec<String>> = sizes.iter().map(|size| {
            (0..*size).map(|_| { n += 1; n.to_string() }).collect()
        }).collect();
        let own: Vec<Vec<&str>> = own.iter().map(|ids| ids.iter().map(String::as_str).collect()).collect();
        let nodes: Vec<&[&str]> = own.iter().map(Vec::as_slice).collect();
        let history = path(&nodes).history();
        prop_assert_eq!(ids(&history), own.concat());
    }

    #[test]
    fn any_tree_survives_both_forms_of_its_json(ops in prop::collection::vec(op(), 0..30)) {
        let tree = grown(&ops);
        for json in [tree.to_json().unwrap(), tree.to_compact_json().unwrap()] {
            let restored = ThreadTree::from_json(&json).unwrap();
            prop_assert_eq!(&restored, &tree);
            prop_assert_eq!(value(&restored), value(&tree));
            let (again, before) = (restored.history(), tree.history());
            prop_assert_eq!(again.messages(), before.messages());
        }
    }

    #[test]
    fn any_tree_is_made_again_of_its_nodes(ops in prop::collection::vec(op(), 0..30)) {
        let tree = grown(&ops);
        let nodes = tree.nodes().map(|node| {
            let children = node.children().map(Arc::from).collect();
            ThreadNode::restored(
                node.id().clone(),
                node.parent_id().map(Arc::from),
                node.name().map(Arc::from),
                node.state().clone(),
                children,
            )
        });
        let restored = ThreadTree::from_nodes(nodes, tree.current().id()).unwrap();
        prop_assert_eq!(&restored, &tree);
        let (again, before) = (restored.history(), tree.history());
        prop_assert_eq!(again.messages(), before.messages());
    }

    #[test]
    fn a_damaged_text_is_refused_or_a_sound_tree(at in any::<prop::sample::Index>(), byte in 32_u8..127) {
        let tree = path(&[&["r"], &["r", "a"], &["b"]]);
        let mut text = tree.to_json().unwrap().into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        if let Ok(read) = ThreadTree::from_json(&String::from_utf8(text).unwrap()) {
            prop_assert_eq!(read.nodes().count(), read.n_nodes());
            prop_assert!(read.node(read.current().id()).is_some());
            prop_assert!(ThreadTree::from_json(&read.to_json().unwrap()).is_ok());
        }
    }
}

mod json;
mod laws;

use super::*;
use serde_json::json;
use upp::{Message, MessageOptions, UserContent, UserMessage};

fn message(id: &str, text: &str) -> Message {
    let block = UserContent::Text {
        text: text.to_owned(),
    };
    let options = MessageOptions {
        id: Some(id.into()),
        ..MessageOptions::default()
    };
    UserMessage::new(vec![block], options).into()
}

fn messages(ids: &[&str]) -> Vec<Message> {
    ids.iter().map(|id| message(id, id)).collect()
}

fn ids(state: &AgentState) -> Vec<&str> {
    let ids = state.messages().iter().map(|message| message.id().as_str());
    ids.collect()
}

/// A tree of one path whose nodes have just these messages.
fn path(nodes: &[&[&str]]) -> ThreadTree {
    let mut tree = ThreadTree::new();
    for (at, own) in nodes.iter().enumerate() {
        if at > 0 {
            let id = tree.branch(tree.current().id().clone(), None).unwrap();
            tree.checkout(id).unwrap();
        }
        tree.set_state(AgentState::initial().with_messages(messages(own)));
    }
    tree
}

#[test]
fn a_history_follows_from_the_states_and_not_from_when_they_were_put_there() {
    let mut tree = path(&[&["a"], &["other"], &["b", "a"]]);
    let [_, parent, child] = tree.path()[..] else {
        panic!("{tree:?}");
    };
    let (parent, child) = (parent.id().clone(), child.id().clone());
    tree.checkout(parent).unwrap();
    tree.set_state(AgentState::initial().with_messages(messages(&["b"])));
    tree.checkout(child).unwrap();
    let in_order = path(&[&["a"], &["b"], &["b", "a"]]);
    assert_eq!(ids(&tree.history()), ids(&in_order.history()));
}

#[test]
fn a_new_tree_is_an_empty_root_that_is_current() {
    let tree = ThreadTree::new();
    assert_eq!((tree.n_nodes(), tree.root()), (1, tree.current()));
    assert_eq!((tree.root().parent_id(), tree.root().name()), (None, None));
    assert_eq!(tree.root().children().len(), 0);
    assert_eq!(tree.history(), *tree.root().state());
    let id = uuid::Uuid::parse_str(tree.root().id()).unwrap();
    assert_eq!(id.get_version_num(), 4);
}

#[test]
fn a_branch_starts_with_its_parents_state_and_is_not_checked_out() {
    let mut tree = ThreadTree::of(AgentState::initial().with_message("hello").with_step(3));
    let root = tree.root().id().clone();
    let id = tree.branch(&root, Some("other")).unwrap();
    assert_eq!(*tree.current().id(), root);
    let node = tree.node(&id).unwrap();
    assert_eq!(node.state(), tree.root().state());
    assert_eq!(
        (node.parent_id(), node.name()),
        (Some(&*root), Some("other"))
    );
    assert_eq!(tree.root().children().collect::<Vec<_>>(), [&*id]);
    assert_eq!(uuid::Uuid::parse_str(&id).unwrap().get_version_num(), 4);
}

#[test]
fn unknown_nodes_are_refused_and_change_nothing() {
    let mut tree = ThreadTree::new();
    let before = tree.clone();
    assert!(matches!(tree.branch("x", None), Err(TreeError::UnknownNode { id }) if id == "x"));
    assert!(matches!(
        tree.checkout("x"),
        Err(TreeError::UnknownNode { .. })
    ));
    assert_eq!(tree, before);
    assert!(tree.node("x").is_none());
}

#[test]
fn the_pattern_of_section_7_2_keeps_branches_apart() {
    let mut tree = ThreadTree::new();
    tree.set_state(tree.history().with_message(message("1", "First")));
    let other = tree
        .branch(tree.current().id().clone(), Some("alternative"))
        .unwrap();
    tree.checkout(&other).unwrap();
    tree.set_state(
        tree.history()
            .with_message(message("2", "Alternative path")),
    );
    assert_eq!(ids(&tree.history()), ["1", "2"]);
    tree.checkout(tree.root().id().clone()).unwrap();
    assert_eq!(ids(&tree.history()), ["1"]);
    tree.set_state(tree.history().with_message(message("3", "Main")));
    tree.checkout(&other).unwrap();
    assert_eq!(
        ids(&tree.history()),
        ["1", "3", "2"],
        "the root is on the path"
    );
}

#[test]
fn leaves_branches_and_path_are_told_in_order() {
    let mut tree = ThreadTree::new();
    let root = tree.root().id().clone();
    let a = tree.branch(&root, Some("a")).unwrap();
    let b = tree.branch(&root, None).unwrap();
    let c = tree.branch(&a, Some("a")).unwrap();
    let leaves: Vec<&str> = tree.leaves().map(|node| &**node.id()).collect();
    assert_eq!(leaves, [&*b, &*c]);
    let branches: Vec<_> = tree
        .branches()
        .map(|(name, node)| (name, &**node.id()))
        .collect();
    assert_eq!(branches, [("a", &*a), ("a", &*c)]);
    tree.checkout(&c).unwrap();
    let path: Vec<&str> = tree.path().into_iter().map(|node| &**node.id()).collect();
    assert_eq!(path, [&*root, &*a, &*c]);
}

#[test]
fn history_has_the_messages_of_root_a_and_b_in_order_however_they_are_kept() {
    let whole = path(&[&["r"], &["r", "a"], &["r", "a", "b"]]);
    let own = path(&[&["r"], &["a"], &["b"]]);
    let mixed = path(&[&["r"], &["a"], &["r", "a", "b"]]);
    for tree in [whole, own, mixed] {
        assert_eq!(ids(&tree.history()), ["r", "a", "b"]);
    }
}

#[test]
fn history_is_the_current_snapshot_where_that_is_whole() {
    let mut tree = ThreadTree::of(AgentState::initial().with_message("r"));
    for text in ["a", "b"] {
        let id = tree.branch(tree.current().id().clone(), None).unwrap();
        tree.checkout(id).unwrap();
        tree.set_state(tree.history().with_message(text));
    }
    assert_eq!(tree.history(), *tree.current().state());
}

#[test]
fn history_has_step_metadata_and_reasoning_of_the_current_node() {
    let mut tree = path(&[&["r"], &["a"]]);
    let state = tree
        .current()
        .state()
        .with_step(9)
        .with_metadata("k", 1)
        .with_reasoning("so");
    tree.set_state(state);
    let history = tree.history();
    assert_eq!(ids(&history), ["r", "a"]);
    assert_eq!((history.step(), &history.metadata()["k"]), (9, &json!(1)));
    assert_eq!(history.reasoning().collect::<Vec<_>>(), ["so"]);
    assert_ne!(
        history.id(),
        tree.current().state().id(),
        "other content, another id"
    );
}

#[test]
fn history_loses_nothing_that_a_middleware_dropped_and_doubles_nothing() {
    let cases: [(&[&[&str]], &[&str]); 6] = [
        (&[&["1", "2", "3"], &["3", "4"]], &["1", "2", "3", "4"]),
        (
            &[&["1", "2", "3"], &["sum", "3", "4"]],
            &["1", "2", "sum", "3", "4"],
        ),
        (&[&["1", "2"], &[]], &["1", "2"]),
        (&[&["1", "2"], &["2", "1"]], &["1", "2"]),
        (&[&["1", "1"], &["1", "1", "1"]], &["1", "1", "1"]),
        (
            &[&["1", "2"], &["1", "x", "2"], &["1", "x", "y", "2"]],
            &["1", "x", "y", "2"],
        ),
    ];
    for (nodes, expected) in cases {
        assert_eq!(ids(&path(nodes).history()), expected, "{nodes:?}");
    }
}

#[test]
fn of_a_message_in_two_forms_history_has_the_later() {
    let mut tree = ThreadTree::of(
        AgentState::initial().with_messages([message("1", "long"), message("2", "x")]),
    );
    let id = tree.branch(tree.root().id().clone(), None).unwrap();
    tree.checkout(id).unwrap();
    let pruned = message("1", "short");
    tree.set_state(AgentState::initial().with_message(pruned.clone()));
    let history = tree.history();
    assert_eq!(ids(&history), ["1", "2"]);
    assert_eq!(history.messages().first(), Some(&pruned));
}

#[test]
fn nodes_that_are_no_tree_are_refused_by_name() {
    let node = |id: &str, parent: Option<&str>, children: &[&str]| {
        let children = children.iter().map(|id| Arc::from(*id)).collect();
        let state = AgentState::initial();
        ThreadNode::restored(id.into(), parent.map(Arc::from), None, state, children)
    };
    let of = |nodes: Vec<ThreadNode>, current| ThreadTree::from_nodes(nodes, current).unwrap_err();
    assert!(matches!(of(vec![], ""), TreeError::MissingRoot { .. }));
    let alone = || vec![node("r", None, &[])];
    assert!(matches!(of(alone(), "x"), TreeError::MissingCurrent { .. }));
    let missing = vec![node("r", None, &["a"])];
    assert!(matches!(of(missing, "r"), TreeError::MissingChild { .. }));
    let apart = vec![node("r", None, &[]), node("a", Some("r"), &[])];
    assert!(matches!(of(apart, "r"), TreeError::Unreachable { node } if node == "a"));
    let mut cycle = vec![node("a", Some("b"), &["b"]), node("b", Some("a"), &["a"])];
    cycle.insert(0, node("r", None, &[]));
    assert!(matches!(of(cycle, "r"), TreeError::Unreachable { .. }));
}

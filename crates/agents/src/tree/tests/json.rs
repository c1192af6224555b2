//! The JSON form (UAP §12.2).

use super::*;
use serde_json::Value;

pub(super) fn value(tree: &ThreadTree) -> Value {
    serde_json::from_str(&tree.to_json().unwrap()).unwrap()
}

fn read(value: &Value) -> Result<ThreadTree, TreeError> {
    ThreadTree::from_json(&value.to_string())
}

#[test]
fn the_json_of_a_tree_is_that_of_section_12_2() {
    let mut tree = ThreadTree::of(AgentState::initial().with_message("hi"));
    let id = tree.branch(tree.root().id().clone(), Some("b")).unwrap();
    tree.checkout(&id).unwrap();
    let written = value(&tree);
    let state: Value = serde_json::from_str(&tree.root().state().to_json().unwrap()).unwrap();
    assert_eq!(
        written,
        json!({"rootId": tree.root().id(), "currentId": &*id, "nodes": [
            {"id": tree.root().id(), "parentId": null, "state": state, "children": [&*id]},
            {"id": &*id, "parentId": tree.root().id(), "state": state, "name": "b", "children": []},
        ]})
    );
    assert_eq!(read(&written).unwrap(), tree);
}

#[test]
fn compact_json_has_each_message_once_and_the_same_tree() {
    let mut tree = ThreadTree::new();
    for n in 0..20 {
        let id = tree.branch(tree.current().id().clone(), None).unwrap();
        tree.checkout(id).unwrap();
        tree.set_state(tree.history().with_message(format!("text {n}")));
    }
    let compact = tree.to_compact_json().unwrap();
    assert_eq!(compact.matches("text ").count(), 20);
    assert_eq!(tree.to_json().unwrap().matches("text ").count(), 210);
    let restored = ThreadTree::from_json(&compact).unwrap();
    assert_eq!(restored, tree);
    assert_eq!(restored.to_compact_json().unwrap(), compact);
}

#[test]
fn nodes_may_be_written_in_any_order() {
    let tree = path(&[&["r"], &["r", "a"], &["r", "a", "b"]]);
    let mut value: Value = serde_json::from_str(&tree.to_compact_json().unwrap()).unwrap();
    value["nodes"].as_array_mut().unwrap().reverse();
    let restored = read(&value).unwrap();
    assert_eq!(ids(&restored.history()), ["r", "a", "b"]);
    assert_eq!(restored.root(), tree.root());
}

type Change = Box<dyn Fn(&mut Value)>;

#[test]
fn what_is_no_tree_is_refused_by_name() {
    let tree = path(&[&["r"], &["a"], &["b"]]);
    let good = value(&tree);
    assert!(read(&good).is_ok());
    let broken = |change: &dyn Fn(&mut Value)| {
        let mut value = good.clone();
        change(&mut value);
        format!("{:?}", read(&value).unwrap_err())
    };
    let (root, a, b) = (
        good["rootId"].clone(),
        good["nodes"][1]["id"].clone(),
        good["nodes"][2]["id"].clone(),
    );
    let cases: Vec<(&str, Change)> = vec![
        ("Malformed", Box::new(|v| *v = json!([]))),
        ("Malformed", Box::new(|v| v["nodes"] = json!({}))),
        ("MissingRoot", Box::new(|v| v["rootId"] = json!("x"))),
        ("MissingCurrent", Box::new(|v| v["currentId"] = json!("x"))),
        ("EmptyId", Box::new(|v| v["nodes"][2]["id"] = json!(""))),
        (
            "DuplicateNode",
            Box::new(|v| v["nodes"][2]["id"] = v["nodes"][1]["id"].clone()),
        ),
        (
            "RootWithParent",
            Box::new(|v| v["nodes"][0]["parentId"] = json!("x")),
        ),
        (
            "MissingChild",
            Box::new(|v| v["nodes"][2]["children"] = json!(["x"])),
        ),
        (
            "ForeignChild",
            Box::new(|v| v["nodes"][2]["children"] = json!([v["nodes"][1]["id"]])),
        ),
        (
            "ForeignChild",
            Box::new(|v| v["nodes"][2]["children"] = json!([v["nodes"][0]["id"]])),
        ),
        (
            "ForeignChild",
            Box::new(|v| {
                v["nodes"][0]["children"] = json!([v["nodes"][1]["id"], v["nodes"][1]["id"]]);
            }),
        ),
        (
            "ForeignChild",
            Box::new(|v| v["nodes"][2]["parentId"] = v["rootId"].clone()),
        ),
        (
            "Unreachable",
            Box::new(|v| v["nodes"][1]["children"] = json!([])),
        ),
        (
            "Unreachable",
            Box::new(move |v| {
                v["nodes"][0]["children"] = json!([]);
                v["nodes"][1]["parentId"] = b.clone();
                v["nodes"][2]["children"] = json!([a]);
            }),
        ),
        ("State", Box::new(|v| v["nodes"][1]["state"] = json!({}))),
        (
            "State",
            Box::new(|v| v["nodes"][1]["state"]["version"] = json!("2.0.0")),
        ),
        (
            "Inherited",
            Box::new(|v| v["nodes"][1]["inheritedMessages"] = json!(2)),
        ),
        (
            "Inherited",
            Box::new(|v| v["nodes"][0]["inheritedMessages"] = json!(0)),
        ),
    ];
    for (expected, change) in cases {
        let error = broken(&*change);
        assert!(error.starts_with(expected), "{expected}: {error}");
    }
    assert_eq!(value(&tree)["rootId"], root);
}

#[test]
fn a_tree_beyond_the_limits_is_refused() {
    let json = path(&[&["r"], &["a"], &["b"]]).to_json().unwrap();
    let limits = TreeLimits {
        max_nodes: 2,
        ..TreeLimits::default()
    };
    assert!(matches!(
        ThreadTree::from_json_within(&json, limits),
        Err(TreeError::TooManyNodes { limit: 2 })
    ));
    let limits = TreeLimits {
        max_bytes: json.len() - 1,
        ..TreeLimits::default()
    };
    assert!(matches!(
        ThreadTree::from_json_within(&json, limits),
        Err(TreeError::TooLong { .. })
    ));
}

#[test]
fn a_path_of_many_nodes_is_no_deep_recursion() {
    let mut tree = ThreadTree::new();
    for _ in 0..20_000 {
        let id = tree.branch(tree.current().id().clone(), None).unwrap();
        tree.checkout(id).unwrap();
    }
    let restored = ThreadTree::from_json(&tree.to_json().unwrap()).unwrap();
    assert_eq!(restored.path().len(), 20_001);
}

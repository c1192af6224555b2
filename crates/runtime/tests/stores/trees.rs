//! Trees of conversations, through the runtime.

use crate::runtime_on;
use agents::{AgentState, ThreadTree};
use store::suite::Subject;
use store::suite::script::tenant;
use upp::{
    Arguments, AssistantMessage, Message, MessageOptions, ToolCall, ToolResult, ToolResultMessage,
};

/// A question, a call with its result, and an answer.
fn turn(n: usize) -> Vec<Message> {
    let id = format!("call-{n}");
    let call = ToolCall {
        tool_call_id: id.as_str().into(),
        tool_name: "add".into(),
        arguments: Arguments::from_text("{\"b\": 1.0,  \"a\":2}"),
        after: Vec::new(),
    };
    let asks = AssistantMessage::new(Vec::new(), vec![call], MessageOptions::default());
    let result = ToolResult {
        tool_call_id: id.as_str().into(),
        result: serde_json::json!({"sum": n}).into(),
        is_error: false,
    };
    vec![
        format!("question {n}").into(),
        asks.into(),
        ToolResultMessage::new(vec![result], MessageOptions::default()).into(),
        AssistantMessage::text(format!("answer {n}")).into(),
    ]
}

/// A tree is threads and forks: what was stored is there when the store is opened again, the
/// checked out node with it, and what is stored afterwards.
pub(crate) async fn a_stored_tree_is_the_same_after_reopening(mut subject: impl Subject) {
    let old = MessageOptions {
        timestamp: jiff::Timestamp::from_second(-30_000_000_000).ok(),
        ..MessageOptions::default()
    };
    let old = AssistantMessage::new(Vec::new(), Vec::new(), old);
    let state = AgentState::initial().with_message(old);
    let mut tree = ThreadTree::of(state.with_messages(turn(0)));
    for n in 1..6 {
        let from = tree.nodes().nth(n / 2).unwrap().id().clone();
        let id = tree.branch(from, Some(&format!("branch {n}"))).unwrap();
        tree.checkout(id).unwrap();
        let state = tree.current().state().with_messages(turn(n));
        tree.set_state(state.with_step(n as u64).with_metadata("n", n));
    }
    let before = runtime_on(&subject);
    before.store_tree(&tenant(), "k", &tree).await.unwrap();
    assert_eq!(before.load_tree(&tenant(), "k").await.unwrap(), tree);
    drop(before);

    subject.reopen().await;

    let after = runtime_on(&subject);
    assert_eq!(after.load_tree(&tenant(), "k").await.unwrap(), tree);
    tree.checkout(tree.root().id().clone()).unwrap();
    tree.set_state(tree.current().state().with_messages(turn(9)));
    after.store_tree(&tenant(), "k", &tree).await.unwrap();
    assert_eq!(after.load_tree(&tenant(), "k").await.unwrap(), tree);
}

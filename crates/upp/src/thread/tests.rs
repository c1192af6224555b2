use super::*;
use crate::message::{MessageOptions, ToolResultMessage};
use crate::model::StopReason;
use crate::usage::TokenUsage;
use serde_json::json;
use std::sync::Arc;

fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(Message::joined_text).collect()
}

fn numbered(count: usize) -> Thread {
    let mut thread = Thread::new();
    thread.push((0..count).map(|n| n.to_string()));
    thread
}

fn old() -> Thread {
    let json = json!({"id": "t", "createdAt": "2020-01-01T00:00:00.5Z", "updatedAt": "2020-01-02T00:00:00Z", "messages": [
        {"type": "user", "id": "u", "content": [{"type": "text", "text": "hi"}], "metadata": {"p": {"k": 1}}, "timestamp": "2020-01-01T00:00:00Z"},
        {"type": "tool_result", "id": "r", "content": [], "results": [], "timestamp": "2020-01-01T00:00:00.123456Z"},
    ]});
    Thread::from_json(&json.to_string()).unwrap()
}

#[test]
fn a_thread_keeps_ids_metadata_and_instants_through_its_json() {
    let thread = old();
    assert_eq!(thread.id(), "t");
    assert_eq!(thread.created_at().to_string(), "2020-01-01T00:00:00.5Z");
    assert_eq!(thread.updated_at().to_string(), "2020-01-02T00:00:00Z");
    assert_eq!(thread.messages().first().unwrap().id().as_str(), "u");
    let json = thread.to_json().unwrap();
    assert_eq!(Thread::from_json(&json).unwrap(), thread);
    let keys: serde_json::Value = serde_json::from_str(&json).unwrap();
    let keys: Vec<&String> = keys.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["id", "messages", "createdAt", "updatedAt"]);
}

#[test]
fn a_thread_with_a_message_of_unknown_type_is_refused() {
    let json = r#"{"id":"t","messages":[{"type":"system","id":"s","content":[],"timestamp":"2020-01-01T00:00:00Z"}],
        "createdAt":"2020-01-01T00:00:00Z","updatedAt":"2020-01-01T00:00:00Z"}"#;
    let error = Thread::from_json(json).unwrap_err().to_string();
    assert!(error.contains("system"), "{error}");
}

#[test]
fn changes_are_chained_and_touch_the_instant() {
    let mut thread = old();
    let before = thread.updated_at();
    thread.user("a").assistant("b").user("c");
    assert!(thread.updated_at() > before);
    assert_eq!(thread.created_at().to_string(), "2020-01-01T00:00:00.5Z");
    assert_eq!(texts(&thread.to_messages()), ["hi", "", "a", "b", "c"]);
    let mut thread = old();
    thread.clear();
    assert!(thread.is_empty() && thread.updated_at() > before);
    assert_eq!(thread.id(), "t");
}

#[test]
fn a_turn_is_appended_with_all_its_messages() {
    let answer = Arc::new(AssistantMessage::text("b"));
    let turn = Turn {
        messages: vec!["a".into(), Message::Assistant(Arc::clone(&answer))],
        response: answer,
        tool_executions: Vec::new(),
        usage: TokenUsage::default(),
        cycles: 1,
        data: None,
        stop_reason: StopReason::EndTurn,
        requests: Vec::new(),
    };
    let mut thread = numbered(1);
    thread.append(&turn);
    assert_eq!(texts(&thread.to_messages()), ["0", "a", "b"]);
}

#[test]
fn a_slice_is_a_new_thread_and_counts_from_the_end_when_negative() {
    let thread = numbered(5);
    let slice = |start: Option<i64>, end: Option<i64>| -> Vec<String> {
        texts(&thread.slice(start, end).to_messages())
    };
    assert_eq!(slice(Some(1), Some(3)), ["1", "2"]);
    assert_eq!(slice(Some(-2), None), ["3", "4"]);
    assert_eq!(slice(None, Some(-3)), ["0", "1"]);
    assert_eq!(slice(Some(1), Some(-1)), ["1", "2", "3"]);
    assert_eq!(slice(None, None).len(), 5);
    assert_eq!(slice(Some(-100), Some(100)).len(), 5);
    for (start, end) in [(-100, -90), (4, 2), (9, i64::MAX), (i64::MIN, i64::MIN)] {
        assert!(thread.slice(start, end).is_empty());
    }
    assert_ne!(thread.slice(0, None).id(), thread.id());
    assert_eq!(thread.len(), 5);
}

#[test]
fn filter_tail_and_iteration_give_the_messages_in_order() {
    let mut thread = Thread::default();
    let result = ToolResultMessage::new(Vec::new(), MessageOptions::default());
    thread.user("a").assistant("b").push([result]).user("c");
    assert_eq!(texts(&thread.filter(MessageRole::User)), ["a", "c"]);
    assert_eq!(thread.filter(MessageRole::ToolResult).len(), 1);
    assert_eq!(texts(&thread.tail(2)), ["", "c"]);
    assert_eq!(thread.tail(99).len(), 4);
    assert_eq!(looped(&thread), ["a", "b", "", "c"]);
    assert_eq!(thread.iter().next_back().unwrap().joined_text(), "c");
}

fn looped(thread: &Thread) -> Vec<String> {
    let mut texts = Vec::new();
    for message in thread {
        texts.push(message.joined_text());
    }
    texts
}

#[test]
fn a_history_is_a_thread_or_messages() {
    let thread = numbered(2);
    let of = |messages: Messages| {
        messages
            .iter()
            .map(Message::joined_text)
            .collect::<Vec<_>>()
    };
    let list = thread.to_messages();
    let [one, two] = <[Message; 2]>::try_from(list.clone()).unwrap();
    for history in [
        (&thread).into_messages(),
        thread.messages().into_messages(),
        thread.messages().clone().into_messages(),
        list.as_slice().into_messages(),
        list.into_messages(),
        [one, two].into_messages(),
        thread.into_messages(),
    ] {
        assert_eq!(of(history), ["0", "1"]);
    }
}

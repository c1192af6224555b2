use super::super::Place;
use super::*;
use upp::{AssistantContent, AssistantMessage, MessageOptions, Messages, ToolResultMessage};

fn texts(reader: &mut Reader) -> Vec<String> {
    let content = reader.said().content().into_iter();
    content
        .filter_map(|block| match block {
            AssistantContent::Text { text } => Some(text),
            AssistantContent::Reasoning { .. }
            | AssistantContent::Image(_)
            | AssistantContent::Audio(_)
            | AssistantContent::Video(_) => None,
        })
        .collect()
}

fn status(state: &str, parts: &Value) -> Value {
    let message = json!({"messageId": "m", "parts": parts});
    let status = json!({"state": format!("TASK_STATE_{state}"), "message": message});
    json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": status}})
}

fn artifact(text: &str, append: bool) -> Value {
    let artifact = json!({"artifactId": "answer", "parts": [{ "text": text }]});
    json!({"artifactUpdate": {"taskId": "t", "artifact": artifact, "append": append}})
}

#[test]
fn a_stream_is_read_and_read_again_without_saying_anything_twice() {
    let mut reader = Reader::after(["earlier"]);
    let task = json!({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"},
        "artifacts": [{"artifactId": "answer", "parts": [{"text": "earlier"}]}]}});
    for event in [
        task.clone(),
        artifact("First ", false),
        artifact("thing.", true),
        status("WORKING", &json!([{"text": "First thing."}])),
        // As it is sent again to who comes back.
        task,
        artifact("First thing.", false),
        artifact("Then this.", false),
        status("COMPLETED", &json!([])),
    ] {
        reader.take(&event).unwrap();
    }
    assert_eq!(texts(&mut reader), ["First thing.", "Then this."]);
    assert_eq!(reader.end, Some(End::Completed));
    assert_eq!(
        (reader.task.as_deref(), reader.context.as_deref()),
        (Some("t"), Some("c"))
    );
}

#[test]
fn a_question_in_words_is_one_call_and_named_calls_are_theirs() {
    let mut reader = Reader::after([]);
    reader
        .take(&status("INPUT_REQUIRED", &json!([{"text": "Which one?"}])))
        .unwrap();
    let Some(End::Asks(calls, asks)) = &reader.end else {
        panic!("{:?}", reader.end)
    };
    assert_eq!(&*calls[0].tool_name, INPUT_REQUIRED);
    assert_eq!(calls[0].arguments.text(), r#"{"message":"Which one?"}"#);
    assert_eq!(asks[0].kind, AskKind::Words);
    assert_eq!(texts(&mut reader), ["Which one?"]);
    let named = json!([{"text": "May it?"}, {"data": {"calls": [
        {"toolCallId": "1", "toolName": "pay", "asks": "approval", "input": {"n": 1}},
        {"toolCallId": "1", "toolName": "look", "asks": "result", "threadKey": "k"},
    ]}}]);
    let mut reader = Reader::after([]);
    reader.take(&status("INPUT_REQUIRED", &named)).unwrap();
    let Some(End::Asks(calls, asks)) = &reader.end else {
        panic!("{:?}", reader.end)
    };
    let ids: Vec<&str> = calls
        .iter()
        .map(|call| call.tool_call_id.as_str())
        .collect();
    assert_eq!(ids, ["1", "1-1"]);
    assert_eq!(
        (asks[0].kind, asks[1].kind),
        (AskKind::Approval, AskKind::Result)
    );
    assert_eq!(asks[1].thread_key.as_deref(), Some("k"));
}

#[test]
fn answers_go_to_what_asked_and_words_are_no_leave() {
    let ask = |call: &str, kind| Ask {
        call: call.into(),
        id: Some(format!("far-{call}")),
        thread_key: None,
        kind,
    };
    let place = Place {
        agent: "a".into(),
        at: "u".into(),
        conversation: "t".into(),
        context: Some("c".into()),
        run: Some("r".into()),
        asks: vec![
            ask("1", AskKind::Approval),
            ask("2", AskKind::Approval),
            ask("3", AskKind::Result),
            ask("4", AskKind::Result),
        ],
    };
    let result = |id: &str, value: Value, is_error| ToolResult {
        tool_call_id: id.into(),
        result: value.into(),
        is_error,
    };
    let results = vec![
        result("1", json!({"approved": true, "more": 1}), false),
        result("2", json!("yes"), false),
        result("3", json!([1]), false),
        result("4", json!("no net"), true),
    ];
    let options = MessageOptions {
        metadata: Some(place.metadata()),
        ..MessageOptions::default()
    };
    let messages: Messages = [
        Message::from(AssistantMessage::new(Vec::new(), Vec::new(), options)),
        ToolResultMessage::new(results, MessageOptions::default()).into(),
        "and hurry".into(),
    ]
    .into_iter()
    .collect();
    let news = News::of(&messages, "a", "u", "t");
    let data: Vec<Value> = parts(&news).into_iter().collect();
    assert_eq!(
        data,
        [
            json!({"data": {"toolCallId": "far-1", "approved": true}}),
            json!({"data": {"toolCallId": "far-2", "approved": false, "message": "yes"}}),
            json!({"data": {"toolCallId": "far-3", "output": [1]}}),
            json!({"data": {"toolCallId": "far-4", "errorText": "no net"}}),
            json!({"text": "and hurry"}),
        ]
    );
}

#[test]
fn what_is_no_answer_is_refused_with_its_words() {
    let refused = json!({"jsonrpc": "2.0", "error": {"code": -32001, "message": "gone"}});
    let error = Unread::Refused {
        code: -32_001,
        message: "gone".into(),
    };
    assert_eq!(result(&refused), Err(error));
    for wrong in [json!([]), json!({"jsonrpc": "2.0"})] {
        assert!(
            matches!(result(&wrong), Err(Unread::Malformed(_))),
            "{wrong}"
        );
    }
    for wrong in [
        json!({}),
        json!({"task": {}}),
        json!({"statusUpdate": {"status": {"state": "TASK_STATE_NEW"}}}),
    ] {
        let read = Reader::after([]).take(&wrong);
        assert!(matches!(read, Err(Unread::Malformed(_))), "{wrong}");
    }
}

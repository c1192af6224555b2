use super::super::{Address, RemotePosition};
use super::*;
use upp::{
    AssistantContent, AssistantMessage, MessageOptions, Messages, StreamEvent, ToolResultMessage,
};

fn texts(reader: &mut TaskReader) -> Vec<String> {
    let content = reader.text().content().into_iter();
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

/// What is read where the task goes on after an answer that said this.
fn going_on(said: &str) -> TaskReader {
    let ask = RemoteQuestion {
        call: "c".into(),
        id: None,
        thread_key: None,
        kind: AskKind::Words,
    };
    let place = RemotePosition {
        run: Some("t".into()),
        asks: vec![ask],
        texts: vec!["artifact answer".into()],
        ..RemotePosition::default()
    };
    let result = ToolResult {
        tool_call_id: "c".into(),
        result: "42".into(),
        is_error: false,
    };
    TaskReader::of(&News {
        position: Some(place),
        texts: vec![said],
        results: vec![&result],
        ..News::default()
    })
}

fn task(history: &[(&str, &str)], artifact: &str) -> Value {
    let history: Vec<Value> = history
        .iter()
        .map(|(id, text)| json!({"messageId": id, "role": "ROLE_AGENT", "parts": [{ "text": text }]}))
        .collect();
    let artifact = json!({"artifactId": "answer", "parts": [{ "text": artifact }]});
    json!({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"},
        "history": history, "artifacts": [artifact]}})
}

#[test]
fn a_stream_is_read_and_read_again_without_saying_anything_twice() {
    let mut reader = going_on("earlier");
    let done =
        json!({"statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_COMPLETED"}}});
    for event in [
        task(&[], "earlier"),
        artifact("First ", false),
        artifact("thing.", true),
        status("WORKING", &json!([{"text": "First thing."}])),
        // As it is told again to who comes back.
        task(&[("e", "earlier")], "First thing."),
        artifact("First thing.", false),
        status("WORKING", &json!([{"text": "First thing."}])),
        artifact("Then ", false),
        artifact("this.", true),
        done,
    ] {
        reader.take(&event).unwrap();
    }
    assert_eq!(texts(&mut reader), ["First thing.", "Then this."]);
    assert_eq!(reader.end, Some(TaskEnd::Completed));
    assert_eq!(
        (reader.task.as_deref(), reader.context.as_deref()),
        (Some("t"), Some("c"))
    );
    assert_eq!(
        reader.names(),
        ["artifact answer", "message m", "artifact answer"]
    );
}

#[test]
fn a_task_that_is_over_says_what_was_missed_of_it_and_the_same_words_are_said_again() {
    let mut reader = going_on("yes");
    let events = [
        task(&[], "yes"),
        task(&[("1", "yes"), ("2", "yes"), ("3", "no")], "yes"),
        status("COMPLETED", &json!([])),
    ];
    for event in events {
        reader.take(&event).unwrap();
    }
    assert_eq!(texts(&mut reader), ["yes", "no", "yes"]);
    let mut reader = TaskReader::default();
    reader.take(&task(&[], "yes")).unwrap();
    assert_eq!(texts(&mut reader), ["yes"]);
}

#[test]
fn who_tells_nothing_again_goes_on_from_how_the_task_stands() {
    let mut reader = TaskReader::default();
    let events = [
        task(&[("1", "Let me see.")], "One "),
        artifact("two", true),
        task(&[("1", "Let me see.")], "One two"),
        artifact(" three", true),
    ];
    for event in events {
        reader.take(&event).unwrap();
    }
    assert_eq!(shown(&mut reader), "Let me see.One two three");
    assert_eq!(texts(&mut reader), ["Let me see.", "One two three"]);
}

fn shown(reader: &mut TaskReader) -> String {
    let events = reader.text().take_events().into_iter();
    let mut shown = String::new();
    for event in events {
        if let StreamEvent::TextDelta { text, .. } = event {
            shown.push_str(&text);
        }
    }
    shown
}

/// A step of a task: what an attempt said that died, and what it says; and whether an agent hands over after it.
type Step = (String, String, bool);

/// What a task's stream says, each event with what who comes back is told just after it: the task, and from which
/// event on its stream is said again.
fn told(steps: &[Step]) -> Vec<(Value, (Value, usize))> {
    let mut all: Vec<(Value, (Value, usize))> = Vec::new();
    let mut history: Vec<(String, String)> = Vec::new();
    let mut current: Option<String> = None;
    let mut begun = 0;
    let working =
        json!({"statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_WORKING"}}});
    let standing = |history: &[(String, String)], current: Option<&String>| {
        let history: Vec<(&str, &str)> = history
            .iter()
            .map(|(id, text)| (id.as_str(), text.as_str()))
            .collect();
        match (current, history.split_last()) {
            (Some(current), _) => task(&history, current),
            (None, Some(((_, last), before))) => task(before, last),
            (None, None) => json!({"task": {"id": "t", "status": {"state": "TASK_STATE_WORKING"}}}),
        }
    };
    all.push((working.clone(), (standing(&history, None), 0)));
    for (n, (dead, says, hands_over)) in steps.iter().enumerate() {
        for text in [dead, says] {
            current = None;
            for piece in text.chars() {
                let more = artifact(&piece.to_string(), current.is_some());
                current.get_or_insert_default().push(piece);
                all.push((more, (standing(&history, current.as_ref()), begun)));
            }
        }
        if n + 1 < steps.len() {
            let id = n.to_string();
            let message = json!({"messageId": id, "parts": [{ "text": says }]});
            let status = json!({"state": "TASK_STATE_WORKING", "message": message});
            history.push((id, says.clone()));
            current = None;
            let closed = json!({"statusUpdate": {"taskId": "t", "status": status}});
            all.push((closed, (standing(&history, None), begun)));
            if *hands_over {
                begun = all.len();
                all.push((working.clone(), (standing(&history, None), begun)));
            }
        }
    }
    let done =
        json!({"statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_COMPLETED"}}});
    let mut over = standing(&history, current.as_ref());
    over["task"]["status"]["state"] = "TASK_STATE_COMPLETED".into();
    all.push((done, (over, begun)));
    all
}

proptest::proptest! {
    #[test]
    fn however_a_stream_is_cut_the_text_is_what_an_undisturbed_reader_has(
        steps in proptest::collection::vec(("[ab]{0,2}", "[ab]{1,3}", proptest::bool::ANY), 1..5),
        dies in proptest::bool::ANY,
        cuts in proptest::collection::vec((0_usize..30, 0_usize..8, proptest::bool::ANY), 0..4),
    ) {
        let mut steps: Vec<Step> = steps;
        if !dies {
            for step in &mut steps {
                step.0.clear();
            }
        }
        let all = told(&steps);
        let mut reader = TaskReader::default();
        let mut all_shown = String::new();
        let mut from = 0;
        for (length, missed, is_new) in cuts {
            let until = (from + length).min(all.len() - 1);
            for (event, _) in &all[from..until] {
                reader.take(event).unwrap();
                all_shown.push_str(&shown(&mut reader));
            }
            if is_new {
                // Another process goes on, which has nothing but the task's id.
                (reader, all_shown) = (TaskReader::default(), String::new());
            }
            // What happens while nobody listens.
            let (task, begun) = &all[(until + missed).saturating_sub(1).min(all.len() - 1)].1;
            for _ in 0..2 {
                reader.take(task).unwrap();
                all_shown.push_str(&shown(&mut reader));
            }
            from = *begun;
            if reader.end.is_some() {
                from = all.len();
                break;
            }
        }
        for (event, (task, _)) in &all[from..] {
            let event = if reader.wants_task(event) { task } else { event };
            reader.take(event).unwrap();
            all_shown.push_str(&shown(&mut reader));
        }
        let says: Vec<&str> = steps.iter().map(|(_, says, _)| says.as_str()).collect();
        proptest::prop_assert_eq!(texts(&mut reader), says.clone());
        // Of an agent that has handed over while nobody listened, nothing says so before the end.
        if !dies && steps.iter().all(|step| !step.2) {
            proptest::prop_assert_eq!(all_shown, says.concat());
        }
    }
}

#[test]
fn a_question_in_words_is_one_call_and_named_calls_are_theirs() {
    let mut reader = TaskReader::default();
    reader
        .take(&status("INPUT_REQUIRED", &json!([{"text": "Which one?"}])))
        .unwrap();
    let Some(TaskEnd::Asks(calls, asks)) = &reader.end else {
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
    let mut reader = TaskReader::default();
    reader.take(&status("INPUT_REQUIRED", &named)).unwrap();
    let Some(TaskEnd::Asks(calls, asks)) = &reader.end else {
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
fn requests_that_the_agent_has_said_are_no_call() {
    let request = json!({"$schema": "s", "request_decision": {"id": "seat"}});
    let asked = json!([{"text": "Seat?"}, {"data": {"requests": [
        {"requestId": "decision:seat", "request": request}]}}]);
    let mut reader = TaskReader::default();
    let said = artifact(&request.to_string(), false);
    reader.take(&said).unwrap();
    reader.take(&status("INPUT_REQUIRED", &asked)).unwrap();
    assert_eq!(reader.end, Some(TaskEnd::Completed));
    assert_eq!(texts(&mut reader), [request.to_string()]);
    // Who has not said it asks it so.
    let mut reader = TaskReader::default();
    reader.take(&status("INPUT_REQUIRED", &asked)).unwrap();
    assert!(matches!(reader.end, Some(TaskEnd::Asks(..))));
    let data = asked[1]["data"].to_string();
    assert_eq!(texts(&mut reader), [format!("Seat?\n{data}")]);
}

#[test]
fn a_question_without_its_data_is_looked_up() {
    let reader = TaskReader::default();
    let text = json!([{"text": "Get the task to see what it asks."}]);
    assert!(reader.wants_task(&status("INPUT_REQUIRED", &text)));
    let data = json!([{"data": {"calls": []}}]);
    assert!(!reader.wants_task(&status("INPUT_REQUIRED", &data)));
    assert!(!reader.wants_task(&status("COMPLETED", &json!([]))));
}

#[test]
fn answers_go_to_what_asked_and_words_are_no_leave() {
    let ask = |call: &str, kind| RemoteQuestion {
        call: call.into(),
        id: Some(format!("far-{call}")),
        thread_key: None,
        kind,
    };
    let place = RemotePosition {
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
            ask("5", AskKind::Approval),
        ],
        texts: Vec::new(),
    };
    let result = |id: &str, value: Value, is_error| ToolResult {
        tool_call_id: id.into(),
        result: value.into(),
        is_error,
    };
    let results = vec![
        result("1", json!({"approved": true, "more": 1}), false),
        result("2", json!("yes"), false),
        result("5", json!("{\"approved\": true}"), false),
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
    let news = News::of(&messages, "a", &Address::new("u", ""), "t");
    let data: Vec<Value> = parts(&news).into_iter().collect();
    assert_eq!(
        data,
        [
            json!({"data": {"toolCallId": "far-1", "approved": true}}),
            json!({"data": {"toolCallId": "far-2", "approved": false, "message": "yes"}}),
            json!({"data": {"toolCallId": "far-5", "approved": true}}),
            json!({"data": {"toolCallId": "far-3", "output": [1]}}),
            json!({"data": {"toolCallId": "far-4", "errorText": "no net"}}),
            json!({"text": "and hurry"}),
        ]
    );
}

#[test]
fn what_is_no_answer_is_refused_with_its_words() {
    let refused = json!({"jsonrpc": "2.0", "error": {"code": -32001, "message": "gone"}});
    let error = ObjectError::Refused {
        code: -32_001,
        message: "gone".into(),
    };
    assert_eq!(result(&refused), Err(error));
    for wrong in [json!([]), json!({"jsonrpc": "2.0"})] {
        assert!(
            matches!(result(&wrong), Err(ObjectError::Malformed(_))),
            "{wrong}"
        );
    }
    for wrong in [
        json!({}),
        json!({"task": {}}),
        json!({"statusUpdate": {"status": {"state": "TASK_STATE_NEW"}}}),
    ] {
        let read = TaskReader::default().take(&wrong);
        assert!(matches!(read, Err(ObjectError::Malformed(_))), "{wrong}");
    }
}

//! A2A: messages, answers, tasks, streams.

use crate::log::Log;
use crate::native::{conversation, thread};
use loomline_interop::a2a::{
    ErrorKind, ListTasks, PendingCallView, SendMessage, TaskAnswer, TaskId, TaskOptions, TaskRun,
    TaskState, TaskView, TaskWait, check_version,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use timeline::{
    Command, Ending, ItemId, NewChunk, NewItem, OpenCall, OpenKind, Payload, StepOutcome, Trigger,
};

const SHOWN: TaskOptions<'_> = TaskOptions {
    id: "task",
    context_id: "context",
    history_length: None,
    artifacts: true,
};

/// The stream of a task from its beginning.
fn stream(log: &Log, item: &ItemId) -> Vec<Value> {
    let mut view = TaskView::new("task", "context", item.clone());
    let mut said = Vec::new();
    for record in &log.records {
        if view.is_over() {
            assert_eq!(view.responses(record), Vec::<Value>::new());
        } else {
            said.extend(view.responses(record));
        }
    }
    said
}

/// The task that a client builds from a stream: messages and artifact as texts, and the last status.
fn built(responses: &[Value]) -> Value {
    let (mut history, mut status) = (Vec::new(), Value::Null);
    let mut artifact: Option<String> = None;
    for response in responses {
        if let Some(update) = response.get("artifactUpdate") {
            let text = text_of(&update["artifact"]["parts"]);
            let former = artifact.take().filter(|_| update["append"] == true);
            artifact = Some(former.unwrap_or_default() + &text);
        }
        if let Some(task) = response.get("task") {
            history.extend(texts_of(&task["history"]));
            status = task["status"].clone();
        }
        if let Some(update) = response.get("statusUpdate") {
            status = update["status"].clone();
            let message = update["status"].get("message");
            if let Some(message) = message.filter(|_| status["state"] == "TASK_STATE_WORKING") {
                history.extend(texts_of(&json!([message])));
            }
        }
    }
    json!({"history": history, "artifact": artifact.unwrap_or_default(), "status": status})
}

/// The messages of a list: the id and the text of each.
fn texts_of(messages: &Value) -> Vec<Value> {
    let messages = messages.as_array().map(Vec::as_slice).unwrap_or_default();
    let messages = messages.iter();
    messages
        .map(|it| json!([it["messageId"], text_of(&it["parts"])]))
        .collect()
}

/// The text of the artifact that a client builds from a stream, and the last state.
fn gathered(responses: &[Value]) -> (String, Option<String>) {
    let task = built(responses);
    let text = task["artifact"].as_str().unwrap_or_default().to_owned();
    (text, task["status"]["state"].as_str().map(str::to_owned))
}

fn text_of(parts: &Value) -> String {
    let parts = parts.as_array().map(Vec::as_slice).unwrap_or_default();
    parts
        .iter()
        .filter_map(|part| part["text"].as_str())
        .collect()
}

proptest! {
    #[test]
    fn a_stream_builds_the_task_that_a_request_gives(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let log = conversation(&bytes);
        let transcript = log.transcript();
        for run in TaskRun::all(&transcript) {
            let responses = stream(&log, run.item());
            let task = run.to_json(SHOWN, &waits(Some(vec![asked("c", true)])));
            let expected = json!({
                "history": texts_of(&task["history"]),
                "artifact": text_of(&task["artifacts"][0]["parts"]),
                "status": task["status"],
            });
            let mut streamed = built(&responses);
            let artifact = streamed["artifact"].clone();
            let history = streamed["history"].as_array_mut().unwrap();
            // If no step answers after it, the last message is the artifact, too.
            let is_longer = history.len() > expected["history"].as_array().unwrap().len();
            if is_longer && history.last().is_some_and(|last| last[1] == artifact) {
                history.pop();
            }
            prop_assert_eq!(streamed, expected, "{:#?}", responses);
        }
    }

    #[test]
    fn what_a_client_sends_is_read_or_refused_with_a_place(text in prop_oneof![
        "[a-z{}\\[\\]\":,0-9 ]{0,60}",
        Just(r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"}],"metadata":[]}}"#.to_owned()),
        Just(r#"{"message":{"messageId":"m","role":2,"parts":[{"text":"a"}]}}"#.to_owned()),
        Just(r#"{"message":{"messageId":"m","role":1,"parts":[{"text":"a"}],"referenceTaskIds":[1]}}"#.to_owned()),
        Just(r#"{"configuration":{"historyLength":-1},"message":{"messageId":"m","role":1,"parts":[{"text":"a"}]}}"#.to_owned()),
        Just(r#"{"id":7,"pageSize":"-","status":99,"statusTimestampAfter":"now","includeArtifacts":3}"#.to_owned()),
    ]) {
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let errors = [
            SendMessage::read(&value, "/params").map(drop),
            TaskId::read(&value, "/params").map(drop),
            ListTasks::read(&value, "/params").map(drop),
        ];
        for error in errors.into_iter().filter_map(Result::err) {
            prop_assert_eq!(error.kind, ErrorKind::InvalidParams);
            prop_assert!(error.pointer.as_deref().is_some_and(|it| it.starts_with("/params")), "{:?}", error);
        }
    }
}

fn waits(calls: Option<Vec<PendingCallView>>) -> TaskWait {
    TaskWait {
        calls,
        requests: Vec::new(),
    }
}

fn asked(call: &str, is_external: bool) -> PendingCallView {
    PendingCallView {
        thread_key: "context".into(),
        tool_call_id: call.into(),
        tool_name: "tool".into(),
        is_external,
        input: None,
    }
}

fn sent(parts: &Value) -> SendMessage {
    let message = json!({"messageId": "m", "role": "ROLE_USER", "taskId": "t", "parts": parts});
    SendMessage::read(&json!({ "message": message }), "").unwrap()
}

#[test]
fn a_message_is_read_by_either_name_of_its_members() {
    let camel = json!({
        "message": {"messageId": "m", "contextId": "c", "role": "ROLE_USER", "parts": [{"text": "a", "mediaType": "text/plain"}]},
        "configuration": {"historyLength": 2, "returnImmediately": true},
    });
    let snake = json!({
        "message": {"message_id": "m", "context_id": "c", "role": 1, "parts": [{"text": "a", "media_type": "text/plain"}]},
        "configuration": {"history_length": "2", "return_immediately": true},
    });
    let (camel, snake) = (SendMessage::read(&camel, ""), SendMessage::read(&snake, ""));
    let read = camel.unwrap();
    assert_eq!(read.message.context_id.as_deref(), Some("c"));
    assert_eq!(
        (read.history_length, read.return_immediately),
        (Some(2), true)
    );
    assert_eq!(read.message.content(), snake.unwrap().message.content());
}

#[test]
fn notifications_are_refused_before_anything_is_said() {
    let mut request = json!({"message": {"messageId": "m", "role": 1, "parts": [{"text": "a"}]}});
    request["configuration"] =
        json!({"taskPushNotificationConfig": {"url": "https://hooks.example"}});
    let error = SendMessage::read(&request, "").unwrap_err();
    assert_eq!(error.kind, ErrorKind::PushNotificationNotSupported);
}

#[test]
fn only_1_0_is_spoken_and_silence_is_0_3() {
    for spoken in ["1.0", " 1.0 ", "1.0.7"] {
        assert_eq!(check_version(Some(spoken)), Ok(()), "{spoken}");
    }
    for other in [
        None,
        Some(""),
        Some("0.3"),
        Some("1.1"),
        Some("1.0."),
        Some("1.0.x"),
        Some("10"),
    ] {
        let error = check_version(other).unwrap_err();
        assert_eq!(error.kind, ErrorKind::VersionNotSupported, "{other:?}");
    }
}

#[test]
fn words_are_a_result_where_one_is_wanted_and_never_an_approval() {
    let words = sent(&json!([{"text": "green"}, {"text": "or blue"}])).message;
    let reply = TaskAnswer::read(&words, &[asked("c", true)]).unwrap();
    assert_eq!(reply.answers[0].part["output"], "green\nor blue");
    let data = sent(&json!([{"data": [1, 2]}])).message;
    let reply = TaskAnswer::read(&data, &[asked("c", true)]).unwrap();
    assert_eq!(reply.answers[0].part["output"], json!([1, 2]));
    for calls in [
        &[asked("c", false)] as &[PendingCallView],
        &[asked("c", true), asked("d", true)],
        &[asked("c", true), asked("d", false)],
        &[],
    ] {
        let error = TaskAnswer::read(&words, calls).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidParams);
        assert_eq!(error.pointer.as_deref(), Some("/message/parts"));
    }
}

#[test]
fn each_structured_part_is_an_answer_and_the_others_are_said_beside_them() {
    let message = sent(&json!([
        {"data": {"toolCallId": "c", "approved": true, "threadKey": "below"}},
        {"text": "{\"toolCallId\": \"d\", \"output\": 1}"},
        {"text": "{not json"},
    ]));
    let reply = TaskAnswer::read(&message.message, &[]).unwrap();
    let calls: Vec<&str> = reply
        .answers
        .iter()
        .map(|it| it.tool_call_id.as_str())
        .collect();
    assert_eq!(calls, ["c", "d"]);
    assert_eq!(reply.answers[0].thread_key.as_deref(), Some("below"));
    assert_eq!(
        reply.messages,
        [json!({"type": "input_text", "text": "{not json"})]
    );
}

fn begun(run: &str, trigger: Trigger) -> Command {
    Command::Start {
        trigger,
        run: None,
        execution_id: format!("{run}-execution").as_str().into(),
        reaction_item_id: format!("{run}-reaction").as_str().into(),
        step_id: format!("{run}-step").as_str().into(),
        workflow_run_id: None,
    }
}

fn told(log: &mut Log, deltas: &[&str], parts: Vec<Payload>) {
    for delta in deltas {
        let data = Some(json!({"id": "0", "delta": delta}).into());
        let chunk_type = "text-delta".to_owned();
        log.run(Command::Emit {
            chunks: vec![NewChunk { chunk_type, data }],
        });
    }
    let response = json!({"stopReason": "end_turn"}).into();
    log.run(Command::Respond { parts, response });
}

fn output(text: &str) -> Payload {
    json!({"type": "output_text", "text": text}).into()
}

/// A log whose agent has said something and waits for a result.
fn asking() -> Log {
    let mut log = Log::new(thread(), "2026-01-05T08:00:00Z".parse().unwrap());
    let content = json!([{"type": "input_text", "text": "hi"}]).into();
    log.run(begun("one", Trigger::New(NewItem::user("u", content))));
    let call = json!({
        "type": "tool-ask", "toolCallId": "c", "state": "input-available", "input": {"q": 1},
    });
    told(
        &mut log,
        &["Let me", " ask"],
        vec![output("Let me ask"), call.clone().into()],
    );
    let open = OpenCall {
        tool_call_id: "c".into(),
        kind: OpenKind::External,
        part: call.into(),
        origin: None,
        children: Vec::new(),
    };
    let outcome = StepOutcome {
        open_calls: Some(Payload::write(&[open]).unwrap()),
        ..StepOutcome::default()
    };
    log.run(Command::ImportStep {
        outcome,
        next: None,
    });
    log.run(Command::End {
        ending: Ending::Completed,
    });
    log
}

#[test]
fn a_task_that_asks_says_what_and_goes_on_where_it_was_answered() {
    let mut log = asking();
    let u = ItemId::from("u");
    let said = stream(&log, &u);
    let last = &said.last().unwrap()["statusUpdate"]["status"];
    assert_eq!(last["state"], "TASK_STATE_INPUT_REQUIRED");
    let call = &last["message"]["parts"][1]["data"]["calls"][0];
    assert_eq!(
        (&call["toolCallId"], &call["asks"]),
        (&json!("c"), &json!("result"))
    );
    let lasts: Vec<&Value> = said
        .iter()
        .map(|it| &it["artifactUpdate"]["lastChunk"])
        .collect();
    assert_eq!(lasts.iter().filter(|it| **it == true).count(), 1);

    let after = log.records.len();
    let answer = NewItem {
        id: "v".into(),
        item_type: timeline::ItemType::ActionResult,
        role: None,
        channel: None,
        content: Some(json!([{"type": "loomline-answer", "toolCallId": "c", "output": 7}]).into()),
        metadata: None,
    };
    log.run(begun("two", Trigger::New(answer)));
    told(&mut log, &["It is 7."], vec![output("It is 7.")]);
    let outcome = StepOutcome::default();
    log.run(Command::ImportStep {
        outcome,
        next: None,
    });
    log.run(Command::End {
        ending: Ending::Completed,
    });
    let mut view = TaskView::new("task", "context", u.clone()).asking();
    let records = log.records.iter().skip(after);
    let mut said: Vec<Value> = records.flat_map(|it| view.responses(it)).collect();
    // What was said before this view may have asked something by AITP.
    assert!(view.wants_requests() && !view.is_over());
    said.extend(view.requests((&[], 0), jiff::Timestamp::UNIX_EPOCH));
    assert!(view.is_over());
    assert_eq!(
        gathered(&said),
        (
            "It is 7.".to_owned(),
            Some(TaskState::Completed.name().to_owned())
        )
    );
    let transcript = log.transcript();
    let run = TaskRun::find(&transcript, &u).unwrap();
    let task = run.to_json(SHOWN, &waits(None));
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED");
    let history: Vec<String> = task["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| text_of(&it["parts"]))
        .collect();
    assert_eq!(history, ["hi", "Let me ask", ""]);
    assert_eq!(
        task["history"][2]["parts"],
        json!([{"data": {"toolCallId": "c", "output": 7}}])
    );
    assert_eq!(task["artifacts"][0]["parts"], json!([{"text": "It is 7."}]));
}

#[test]
fn a_question_that_a_newer_message_leaves_behind_is_canceled() {
    let mut log = asking();
    let after = log.records.len();
    let content = json!([{"type": "input_text", "text": "never mind"}]).into();
    log.run(begun("two", Trigger::New(NewItem::user("w", content))));
    let u = ItemId::from("u");
    let mut view = TaskView::new("task", "context", u.clone()).asking();
    let records = log.records.iter().skip(after);
    let said: Vec<Value> = records.flat_map(|it| view.responses(it)).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(
        said[0]["statusUpdate"]["status"]["state"],
        "TASK_STATE_CANCELED"
    );
    let transcript = log.transcript();
    let run = TaskRun::find(&transcript, &u).unwrap();
    assert_eq!(run.state(&waits(None)), TaskState::Canceled);
    assert_eq!(run.state(&waits(Some(Vec::new()))), TaskState::Working);
    assert_eq!(TaskRun::all(&transcript).len(), 2);
}

#[test]
fn what_a_dead_attempt_said_is_replaced() {
    let mut log = Log::new(thread(), "2026-01-05T08:00:00Z".parse().unwrap());
    let content = json!([{"type": "input_text", "text": "hi"}]).into();
    log.run(begun("one", Trigger::New(NewItem::user("u", content))));
    for delta in ["Half", " an", " answer"] {
        let data = Some(json!({"id": "0", "delta": delta}).into());
        let chunk_type = "text-delta".to_owned();
        log.run(Command::Emit {
            chunks: vec![NewChunk { chunk_type, data }],
        });
    }
    log.run(Command::ResetStep);
    told(&mut log, &["All", " of it"], vec![output("All of it")]);
    let said = stream(&log, &"u".into());
    assert_eq!(gathered(&said).0, "All");
    log.run(Command::ImportStep {
        outcome: StepOutcome::default(),
        next: None,
    });
    log.run(Command::End {
        ending: Ending::Completed,
    });
    assert_eq!(gathered(&stream(&log, &"u".into())).0, "All of it");
}

#[test]
fn what_a_dead_attempt_said_goes_where_nothing_comes_in_its_place() {
    let mut log = Log::new(thread(), "2026-01-05T08:00:00Z".parse().unwrap());
    let content = json!([{"type": "input_text", "text": "hi"}]).into();
    log.run(begun("one", Trigger::New(NewItem::user("u", content))));
    told(&mut log, &["First"], vec![output("First")]);
    log.run(Command::ImportStep {
        outcome: StepOutcome::default(),
        next: Some("two-step".into()),
    });
    for delta in ["Half", " an", " answer"] {
        let data = Some(json!({"id": "0", "delta": delta}).into());
        let chunk_type = "text-delta".to_owned();
        log.run(Command::Emit {
            chunks: vec![NewChunk { chunk_type, data }],
        });
    }
    log.run(Command::ResetStep);
    told(&mut log, &[], Vec::new());
    log.run(Command::ImportStep {
        outcome: StepOutcome::default(),
        next: None,
    });
    log.run(Command::End {
        ending: Ending::Completed,
    });
    let u = ItemId::from("u");
    assert_eq!(gathered(&stream(&log, &u)).0, "First");
    let transcript = log.transcript();
    let task = TaskRun::find(&transcript, &u)
        .unwrap()
        .to_json(SHOWN, &waits(None));
    assert_eq!(text_of(&task["artifacts"][0]["parts"]), "First");
}

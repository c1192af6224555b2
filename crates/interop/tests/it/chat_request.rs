//! What the real client posts, and what nobody should.

use crate::log::Log;
use crate::reference::reference;
use jiff::Timestamp;
use loomline_interop::ai_sdk::{ChatRequestError, ChatTrigger, from_chat_request, to_ui_messages};
use proptest::prelude::*;
use serde_json::{Value, json};

fn with_parts(parts: &Value) -> Value {
    json!({"id": "chat-1", "trigger": "submit-message", "messages": [
        {"id": "a", "role": "assistant", "parts": [{"type": "unread"}]}, {"id": "u1", "role": "user", "parts": parts}]})
}

#[test]
fn what_a_user_says_is_taken_in_the_logs_shapes() {
    let parts = json!([{"type": "text", "text": "see"},
        {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA", "filename": "a.png"},
        {"type": "file", "mediaType": "application/pdf", "url": "https://a/b.pdf"}, {"type": "data-poll", "data": 1}]);
    let request = from_chat_request(with_parts(&parts)).unwrap();
    assert_eq!(
        (request.chat_id.as_str(), request.messages.len()),
        ("chat-1", 2)
    );
    let user = request.messages[1].user_message().unwrap();
    let expected = json!([{"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "media_type": "image/png", "filename": "a.png"},
        {"type": "input_file", "file_url": "https://a/b.pdf", "media_type": "application/pdf"},
        {"type": "data-poll", "data": 1}]);
    assert_eq!((user.id.as_str(), user.content.value()), ("u1", expected));
    assert_eq!(timeline::check_content(&user.content), Ok(()));
}

#[test]
fn what_a_client_notes_on_a_message_comes_back_and_passes_for_nothing_else() {
    let noted = json!({"actor": "someone-else", "threadprotocol": {"turn": {}}, "n": 1.0});
    let mut message = json!({"id": "m", "role": "user", "metadata": noted});
    message["parts"] = json!([{"type": "text", "text": "hi"}]);
    let body = json!({"id": "c", "messages": [message]});
    let user = from_chat_request(body).unwrap().messages[0]
        .user_message()
        .unwrap();
    let kept = user.metadata.clone().unwrap();
    assert_eq!(kept.value(), json!({"ai_sdk": noted}));

    let mut log = Log::new(timeline::NewThread::new("c", None), Timestamp::UNIX_EPOCH);
    let mut item = timeline::NewItem::user(user.id.as_str(), user.content);
    item.metadata = Some(kept);
    log.run(timeline::Command::Record { item });
    let messages = to_ui_messages(&log.transcript()).value;
    assert_eq!(json!(messages), json!([message]));
}

#[test]
fn a_client_answers_in_the_message_that_it_names_or_in_the_last_one() {
    let answering = |trigger: &str, named: Option<&str>, roles: &[&str]| {
        let messages: Vec<Value> = (0..)
            .zip(roles)
            .map(|(n, role): (u32, _)| json!({"id": format!("m{n}"), "role": role, "parts": []}))
            .collect();
        let body = json!({"id": "c", "trigger": trigger, "messageId": named, "messages": messages});
        let request = from_chat_request(body).unwrap();
        (
            request.answering().map(|it| it.id.clone()),
            request.is_edit(),
        )
    };
    let submit = "submit-message";
    let (user, both) = (["user"], ["user", "assistant"]);
    let m1 = Some("m1".to_owned());
    assert_eq!(answering(submit, None, &both), (m1.clone(), false));
    assert_eq!(
        answering(submit, Some("m1"), &["user", "assistant", "user"]),
        (m1, false)
    );
    assert_eq!(answering(submit, None, &user), (None, false));
    assert_eq!(answering(submit, Some("m0"), &user), (None, true));
    assert_eq!(
        answering("regenerate-message", Some("m0"), &user),
        (None, false)
    );
    assert_eq!(answering("regenerate-message", None, &both), (None, false));
    assert_eq!(answering(submit, None, &[]), (None, false));
}

#[test]
fn what_is_wrong_is_refused_where_it_stands() {
    let refused = |body: Value| from_chat_request(body).unwrap_err();
    let part = |part: Value| {
        let request = from_chat_request(with_parts(&json!([part]))).unwrap();
        request.messages[1].user_message().unwrap_err().to_string()
    };
    for id in [".", "..", "a/b"] {
        let error = refused(json!({"id": id, "messages": []}));
        assert_eq!(error, ChatRequestError::ChatId { id: id.into() });
    }
    assert_eq!(refused(json!([])).to_string(), ": expected an object");
    assert_eq!(
        refused(json!({"id": "", "messages": []})).to_string(),
        "/id: expected a string that is not empty"
    );
    assert_eq!(
        refused(json!({"id": "c"})).to_string(),
        "/messages: expected an array"
    );
    assert_eq!(
        part(json!({"type": "text"})),
        "/messages/1/parts/0/text: expected a string"
    );
    let said = "/messages/1/parts/0: a user's message can't have a part of type \"tool-add\"";
    assert_eq!(part(json!({"type": "tool-add", "toolCallId": "c"})), said);
    let url = "/messages/1/parts/0/url: a file is a data:, http: or https: URL";
    for wrong in ["file:///etc/passwd", "data:hello", "data:a/b;base64,!"] {
        assert_eq!(
            part(json!({"type": "file", "mediaType": "a/b", "url": wrong})),
            url
        );
    }
    let long = "x".repeat(2 << 20);
    assert_eq!(
        part(json!({"type": "text", "text": long})),
        "/messages/1/parts/0/text: at most 1048576 are allowed"
    );
}

#[test]
fn every_recorded_request_of_the_real_client_is_read() {
    let Some(shared) = reference("recorded requests") else {
        return;
    };
    let path = shared.join("vectors/ai-sdk/client_recordings.json");
    let recorded: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let recordings = recorded["recordings"].as_array().unwrap();
    let requests = recordings
        .iter()
        .flat_map(|recording| recording["requests"].as_array().unwrap());
    let mut n_read = 0;
    for request in
        requests.filter(|request| request["method"] == "POST" && request["body"].is_object())
    {
        let read = from_chat_request(request["body"].clone()).unwrap();
        let regenerate = request["body"]["trigger"] == "regenerate-message";
        assert_eq!(read.trigger == ChatTrigger::RegenerateMessage, regenerate);
        n_read += 1;
    }
    assert!(n_read > 10);
}

fn json_value() -> impl Strategy<Value = Value> {
    let words = [
        "id",
        "messages",
        "role",
        "user",
        "parts",
        "type",
        "text",
        "file",
        "url",
        "trigger",
        "submit-message",
        "data-x",
    ];
    let word = proptest::sample::select(words.to_vec());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        word.clone().prop_map(Value::from)
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((word.clone(), inner), 0..6).prop_map(|members| Value::Object(
                members
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_is_taken_is_content_the_log_takes(body in json_value()) {
        let messages = from_chat_request(body).map(|request| request.messages);
        for message in messages.unwrap_or_default() {
            message.answers();
            if let Ok(user) = message.user_message() {
                prop_assert_eq!(timeline::check_content(&user.content), Ok(()));
            }
        }
    }
}

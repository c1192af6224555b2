//! Answers of `useChat` that come twice, or together with something else.

use super::history::{ASKING, part_of, send, stored};
use crate::harness::{Answer, Server};
use axum::body::Body;
use http::header;
use serde_json::{Value, json};

/// A chat whose agent was told this, as its client has it, and the place of the call.
async fn asked(server: &Server, text: &str, kind: &str) -> (Vec<Value>, usize) {
    send(server, &json!([super::rewind::user("m1", text)])).await;
    let messages = stored(server).await;
    let call = part_of(&messages[1], kind);
    (messages, call)
}

/// The messages, with a client's answer to a call in the second one.
fn answered(messages: &[Value], call: usize, answer: &Value) -> Value {
    let mut messages = json!(messages);
    let part = &mut messages[1]["parts"][call];
    for (key, value) in answer.as_object().unwrap() {
        part[key] = value.clone();
    }
    messages
}

fn allowed(messages: &[Value], call: usize, approved: bool) -> Value {
    let mut approval = messages[1]["parts"][call]["approval"].clone();
    approval["approved"] = approved.into();
    let answer = json!({"state": "approval-responded", "approval": approval});
    answered(messages, call, &answer)
}

/// Sends messages under a token.
async fn send_as(server: &Server, token: &str, messages: &Value) -> Answer {
    let request = server
        .request("POST", "/api/chat")
        .header(header::CONTENT_TYPE, "application/json")
        .header("idempotency-key", token);
    let body = json!({"id": "c", "trigger": "submit-message", "messages": messages});
    let request = request.body(Body::from(body.to_string()));
    server.send(request.unwrap()).await
}

#[tokio::test]
async fn of_two_answers_to_one_call_at_once_one_is_taken_and_the_other_refused() {
    let server = Server::new(ASKING).await;
    let text = "use read_file {\"path\": \"a.txt\"}";
    let (messages, call) = asked(&server, text, "tool-read_file").await;
    let (yes, no) = (
        allowed(&messages, call, true),
        allowed(&messages, call, false),
    );
    let (yes, no) = tokio::join!(send(&server, &yes), send(&server, &no));
    let (taken, refused) = if yes.status == 200 {
        (yes, no)
    } else {
        (no, yes)
    };
    assert_eq!(taken.status, 200, "{}", taken.text);
    let (status, code, _) = refused.error();
    // The history that it brings is compared before or after the other answer is taken.
    let codes = ["answered_already", "history_differs"];
    assert_eq!(
        (status, codes.contains(&code.as_str())),
        (409, true),
        "{code}"
    );
}

#[tokio::test]
async fn the_same_answer_at_once_is_taken_once_and_streamed_twice() {
    let server = Server::new(ASKING).await;
    let text = "use read_file {\"path\": \"a.txt\"}";
    let (messages, call) = asked(&server, text, "tool-read_file").await;
    let yes = allowed(&messages, call, true);
    let (one, two) = tokio::join!(send(&server, &yes), send(&server, &yes));
    assert_eq!((one.status.as_u16(), two.status.as_u16()), (200, 200));
    assert_eq!(one.text, two.text);
}

#[tokio::test]
async fn the_result_of_a_clients_tool_that_is_sent_again_gets_the_same_stream() {
    let server = Server::new(ASKING).await;
    let (messages, call) = asked(&server, "use locate", "tool-locate").await;
    let answer = json!({"state": "output-available", "output": {"city": "Ghent"}});
    let messages = answered(&messages, call, &answer);
    let first = send_as(&server, "once", &messages).await;
    assert_eq!(first.status, 200, "{}", first.text);
    let seq = server.seq("c").await;
    for again in [
        send_as(&server, "once", &messages).await,
        send_as(&server, "once", &messages).await,
    ] {
        assert_eq!(again.status, 200, "{}", again.text);
        assert_eq!(again.text, first.text);
    }
    assert_eq!(server.seq("c").await, seq, "nothing was written");
    let other = send_as(&server, "twice", &messages).await;
    assert_eq!(other.status, 422, "{}", other.text);
}

#[tokio::test]
async fn the_result_of_a_clients_tool_is_known_again_without_a_token() {
    let server = Server::new(ASKING).await;
    let (messages, call) = asked(&server, "use locate", "tool-locate").await;
    let answer = json!({"state": "output-error", "errorText": "no permission"});
    let messages = answered(&messages, call, &answer);
    let first = send(&server, &messages).await;
    assert_eq!(first.status, 200, "{}", first.text);
    let again = send(&server, &messages).await;
    assert_eq!((again.status.as_u16(), again.text), (200, first.text));
}

#[tokio::test]
async fn a_result_beside_that_of_a_servers_tool_is_known_again_without_a_token() {
    let server = Server::new(ASKING).await;
    let text = "use compute {\"expression\": \"6 * 7\"} and locate {}";
    let (messages, call) = asked(&server, text, "tool-locate").await;
    let beside = part_of(&messages[1], "tool-compute");
    assert_eq!(messages[1]["parts"][beside]["state"], "output-available");
    let answer = json!({"state": "output-available", "output": {"city": "Ghent"}});
    let sent = answered(&messages, call, &answer);
    let first = send(&server, &sent).await;
    assert_eq!(first.status, 200, "{}", first.text);
    let seq = server.seq("c").await;
    let again = send(&server, &sent).await;
    assert_eq!((again.status.as_u16(), again.text), (200, first.text));
    assert_eq!(server.seq("c").await, seq, "nothing was written");
    // Another result is no repetition.
    let answer = json!({"state": "output-available", "output": {"city": "Bruges"}});
    let other = send(&server, &answered(&messages, call, &answer)).await;
    assert!(other.status.is_client_error(), "{}", other.text);
}

/// What a model was told of calls, and what was said, in order.
async fn told(server: &Server) -> String {
    server.get("/api/v1/threads/c/document").await.text
}

#[tokio::test]
async fn a_result_that_is_sent_together_with_the_next_message_is_taken_before_it() {
    let server = Server::new(ASKING).await;
    let (messages, call) = asked(&server, "use locate", "tool-locate").await;
    let answer = json!({"state": "output-available", "output": {"city": "Ghent"}});
    let mut messages = answered(&messages, call, &answer);
    let all = messages.as_array_mut().unwrap();
    all.push(super::rewind::user("m2", "and now?"));
    let said = send(&server, &messages).await;
    assert_eq!(said.status, 200, "{}", said.text);
    assert!(said.text.contains("You said: and now?"), "{}", said.text);
    let now = stored(&server).await;
    assert_eq!(now[1]["parts"][call]["output"], json!({"city": "Ghent"}));
    assert_eq!(now[2]["id"], "m2");
    assert!(told(&server).await.contains("Ghent"));
    // What the client has is the history.
    messages
        .as_array_mut()
        .unwrap()
        .push(super::rewind::user("m3", "well"));
    let next = send(&server, &messages).await;
    assert_eq!(next.status, 200, "{}", next.text);
}

#[tokio::test]
async fn an_approval_that_is_sent_together_with_the_next_message_is_taken_before_it() {
    let server = Server::new(ASKING).await;
    let text = "use read_file {\"path\": \"a.txt\"}";
    let (messages, call) = asked(&server, text, "tool-read_file").await;
    let mut messages = allowed(&messages, call, true);
    let all = messages.as_array_mut().unwrap();
    all.push(super::rewind::user("m2", "and now?"));
    let said = send(&server, &messages).await;
    assert_eq!(said.status, 200, "{}", said.text);
    let now = stored(&server).await;
    let state = now[1]["parts"][call]["state"].as_str().unwrap();
    assert!(state.starts_with("output-"), "it ran: {state}");
    assert_eq!(now[1]["parts"][call]["approval"]["approved"], true);
}

#[tokio::test]
async fn a_call_that_was_left_is_an_error_when_the_chat_is_loaded_again() {
    let text = "use read_file {\"path\": \"a.txt\"}";
    for (text, kind, is_stopped) in [
        (text, "tool-read_file", true),
        (text, "tool-read_file", false),
        ("use locate", "tool-locate", true),
        ("use locate", "tool-locate", false),
    ] {
        let server = Server::new(ASKING).await;
        let (mut older, call) = asked(&server, text, kind).await;
        let state = older[1]["parts"][call]["state"].clone();
        assert!(state != "output-error", "it waits: {state}");
        if is_stopped {
            server.post_text("/api/chat/c/stop", "").await;
        } else {
            let mut more = older.clone();
            more.push(super::rewind::user("m2", "never mind"));
            send(&server, &json!(more)).await;
        }
        let mut now = stored(&server).await;
        let part = &now[1]["parts"][call];
        assert_eq!(part["state"], "output-error", "{part}");
        assert_eq!(part["errorText"], "The call was left without a result.");
        assert_eq!(part.get("approval"), None, "{part}");
        assert_eq!(part["toolCallId"], older[1]["parts"][call]["toolCallId"]);
        // A page that has it as it was, and one that has loaded it since, go on.
        for (page, id) in [(&mut older, "m3"), (&mut now, "m4")] {
            page.push(super::rewind::user(id, "go on"));
            let said = send(&server, &json!(page)).await;
            assert_eq!(said.status, 200, "{}", said.text);
            now_is_left(&server, call).await;
        }
    }
}

async fn now_is_left(server: &Server, call: usize) {
    let part = stored(server).await[1]["parts"][call].clone();
    assert_eq!(part["state"], "output-error", "{part}");
}

#[tokio::test]
async fn the_stream_after_an_approval_does_not_ask_for_it_again() {
    let text = "use read_file {\"path\": \"a.txt\"}";
    for (major, approved) in [(6, true), (6, false), (7, true), (7, false)] {
        let server = Server::new(ASKING).await;
        let (messages, call) = asked(&server, text, "tool-read_file").await;
        let messages = allowed(&messages, call, approved);
        let body = json!({"id": "c", "trigger": "submit-message", "messages": messages});
        let path = format!("/api/chat?ai={major}");
        let answer = server.post(&path, body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let count = |kind: &str| answer.text.matches(&format!("\"type\":\"{kind}\"")).count();
        assert_eq!(count("tool-approval-request"), 0, "{}", answer.text);
        let n_told = usize::from(major == 7);
        assert_eq!(count("tool-approval-response"), n_told, "{}", answer.text);
    }
}

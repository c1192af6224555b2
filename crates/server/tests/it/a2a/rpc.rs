//! JSON-RPC.

use super::{CONFIG, says, state, told};
use crate::harness::Server;
use axum::body::Body;
use futures_util::StreamExt;
use serde_json::{Value, json};

async fn refused(server: &Server, method: &str, params: Value) -> i64 {
    let answer = server.rpc("/a2a", method, params).await;
    answer["error"]["code"].as_i64().unwrap()
}

#[tokio::test]
async fn a_message_comes_to_a_task_on_a_thread() {
    let server = Server::new(CONFIG).await;
    let message = json!({
        "contextId": "talk", "metadata": {"k": 1},
        "parts": [{"text": "Good morning"}, {"data": {"n": 1}}],
    });
    let task = server.task("/a2a", message).await;
    assert_eq!(
        (state(&task), &task["contextId"]),
        ("COMPLETED", &json!("talk"))
    );
    assert_eq!(task["artifacts"].as_array().unwrap().len(), 1);
    let said = &task["history"][0];
    assert_eq!(said["parts"][1], json!({"data": {"n": 1}}));
    assert_eq!(
        (&said["messageId"], &said["metadata"]),
        (&json!("m1"), &json!({"k": 1}))
    );
    // It is a thread like any other.
    let messages = server.get("/api/v1/threads/talk/messages").await.json();
    assert_eq!(
        messages["messages"][0]["content"][0]["text"],
        "Good morning"
    );
    assert_eq!(messages["messages"][0]["channel"], "a2a");
}

#[tokio::test]
async fn a_thread_of_the_servers_own_api_has_tasks_too() {
    let server = Server::new(CONFIG).await;
    server.say("t", "one").await;
    server.say("t", "two").await;
    let listed = server
        .rpc("/a2a", "ListTasks", json!({"includeArtifacts": true}))
        .await;
    let tasks = listed["result"]["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 2);
    assert_eq!(
        tasks[0]["artifacts"][0]["parts"][0]["text"],
        "You said: two"
    );
    let one = server
        .rpc("/a2a", "GetTask", json!({"id": tasks[1]["id"]}))
        .await;
    assert_eq!(one["result"], tasks[1]);
    assert_eq!(listed["result"]["nextPageToken"], "");
    assert_eq!(listed["result"]["totalSize"], 2);
}

#[tokio::test]
async fn turns_of_the_threads_api_are_tasks_too() {
    let server = Server::new(CONFIG).await;
    let messages = json!([{"role": "user", "content": "Good morning"}]);
    let made = server
        .post("/v1/threads", json!({"messages": messages}))
        .await
        .json();
    let thread = made["id"].as_str().unwrap();
    let runs = format!("/v1/threads/{thread}/runs");
    for text in ["Good morning", "and now?"] {
        let mut body = json!({"assistant_id": "demo", "stream": true});
        if text != "Good morning" {
            body["additional_messages"] = json!([{"role": "user", "content": text}]);
        }
        let ran = server.post(&runs, body).await;
        assert_eq!(ran.status, 200, "{}", ran.text);
    }
    let listed = server
        .rpc("/a2a", "ListTasks", json!({"includeArtifacts": true}))
        .await;
    let tasks = listed["result"]["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 2, "{listed}");
    for (task, text) in tasks.iter().zip(["and now?", "Good morning"]) {
        assert_eq!(state(task), "COMPLETED");
        assert_eq!(task["history"][0]["parts"], json!([{ "text": text }]));
        let answer = &task["artifacts"][0]["parts"][0]["text"];
        assert_eq!(answer, &format!("You said: {text}"));
        let read = server
            .rpc("/a2a", "GetTask", json!({"id": task["id"]}))
            .await;
        assert_eq!(read["result"], *task);
    }
}

#[tokio::test]
async fn a_run_that_says_nothing_leaves_a_waiting_task_behind() {
    let server = Server::new(CONFIG).await;
    let message = json!({"contextId": "talk", "parts": [{"text": "use compute 6 * 7"}]});
    let task = server.task("/a2a/clerk", message).await;
    assert_eq!(state(&task), "INPUT_REQUIRED");
    let id = task["id"].as_str().unwrap();
    let path = format!("/a2a/v1/tasks/{id}:subscribe");
    let request = server.request("GET", &path).header("a2a-version", "1.0");
    let (status, mut stream) = server.open(request.body(Body::empty()).unwrap()).await;
    assert_eq!(status, 200);
    let next = json!({
        "threadId": "talk", "runId": "r1", "state": {}, "messages": [], "tools": [], "context": [],
    });
    let next = server.post("/ag-ui", next).await;
    assert_eq!(next.status, 200, "{}", next.text);
    let mut followed = Vec::new();
    while let Some(piece) = stream.next().await {
        followed.extend_from_slice(&piece.unwrap());
    }
    let followed = String::from_utf8(followed).unwrap();
    assert!(followed.contains("TASK_STATE_CANCELED"), "{followed}");
    let read = server.rpc("/a2a", "GetTask", json!({ "id": id })).await;
    assert_eq!(state(&read["result"]), "CANCELED");
    let listed = server.rpc("/a2a", "ListTasks", json!({"contextId": "talk"}));
    let listed = listed.await["result"]["tasks"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
}

#[tokio::test]
async fn a_text_answer_stays_text_in_the_history() {
    let external = "[[agents.clerk.external]]\nname = \"locate\"\ndescription = \"Where the user is.\"\n\
                    parameters = { type = \"object\", properties = {} }\n";
    let server = Server::new(&format!("{CONFIG}{external}")).await;
    let task = server.task("/a2a/clerk", json!("use locate")).await;
    assert_eq!(state(&task), "INPUT_REQUIRED");
    let parts = json!([{"text": "In Ghent"}]);
    let answer = json!({"taskId": task["id"], "messageId": "m2", "parts": parts});
    let done = server.task("/a2a", answer).await;
    assert_eq!(state(&done), "COMPLETED");
    assert_eq!(done["history"][1]["parts"], parts);
    let answer = &done["artifacts"][0]["parts"][0]["text"];
    assert!(answer.as_str().unwrap().contains("Ghent"), "{answer}");
}

#[tokio::test]
async fn a_message_that_is_sent_again_is_the_same_task() {
    let server = Server::new(CONFIG).await;
    let message = json!({"contextId": "c", "messageId": "once", "parts": [{"text": "hi"}]});
    let first = server.task("/a2a", message.clone()).await;
    let again = server.task("/a2a", message).await;
    assert_eq!(first, again);
    let listed = server
        .rpc("/a2a", "ListTasks", json!({"contextId": "c"}))
        .await;
    assert_eq!(listed["result"]["tasks"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_message_that_waits_is_submitted_and_can_not_be_stopped_yet() {
    let server = Server::new(CONFIG).await;
    server.begin("c", "slow 50ms say 2000 words").await;
    let mut params = says(json!({"contextId": "c", "parts": [{"text": "later"}]}));
    params["configuration"] = json!({"returnImmediately": true});
    let sent = server.rpc("/a2a", "SendMessage", params).await;
    let task = &sent["result"]["task"];
    assert_eq!(state(task), "SUBMITTED");
    let id = json!({"id": task["id"]});
    assert_eq!(refused(&server, "CancelTask", id.clone()).await, -32002);
    // What runs before it is a task of its own, and gives way when it is stopped.
    let listed = server
        .rpc("/a2a", "ListTasks", json!({"contextId": "c"}))
        .await;
    let tasks = listed["result"]["tasks"].as_array().unwrap();
    let states: Vec<&str> = tasks.iter().map(state).collect();
    assert_eq!(states, ["SUBMITTED", "WORKING"]);
    let stopped = server
        .rpc("/a2a", "CancelTask", json!({"id": tasks[1]["id"]}))
        .await;
    assert_eq!(state(&stopped["result"]), "CANCELED");
    server.at_rest("c").await;
    let read = server.rpc("/a2a", "GetTask", id).await;
    assert_eq!(state(&read["result"]), "COMPLETED");
}

#[tokio::test]
async fn a_page_ends_where_the_next_one_begins_over_all_contexts() {
    let server = Server::new(CONFIG).await;
    for n in 0..7 {
        server
            .say(&format!("t{}", n % 3), &format!("number {n}"))
            .await;
    }
    for page_size in [1, 2, 3, 7, 50] {
        let (mut texts, mut token) = (Vec::new(), json!(""));
        loop {
            let params = json!({"pageSize": page_size, "pageToken": token});
            let page = server.rpc("/a2a", "ListTasks", params).await["result"].clone();
            let tasks = page["tasks"].as_array().unwrap().clone();
            assert!(tasks.len() <= page_size);
            texts.extend(tasks.iter().map(|task| {
                task["history"][0]["parts"][0]["text"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            }));
            token = page["nextPageToken"].clone();
            if token == "" {
                assert_eq!(page["totalSize"], 7);
                break;
            }
            assert!(page["totalSize"].as_u64().unwrap() > texts.len() as u64);
        }
        // The context that changed last is first, and in each the last task.
        let order = [6, 3, 0, 5, 2, 4, 1].map(|n| format!("number {n}"));
        assert_eq!(texts, order, "{page_size}");
    }
    assert_eq!(
        refused(&server, "ListTasks", json!({"pageToken": "x"})).await,
        -32602
    );
}

#[tokio::test]
async fn a_stream_repeats_the_id_of_its_call_and_ends_with_the_task() {
    let server = Server::new(CONFIG).await;
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "SendStreamingMessage", "params": says(json!("say 9 words"))});
    let said = told(&server.a2a("POST", "/a2a", Some(&call)).await);
    assert!(
        said.iter()
            .all(|said| said["id"] == 7 && said["jsonrpc"] == "2.0")
    );
    let first = &said[0]["result"]["task"];
    assert_eq!(state(first), "SUBMITTED");
    let last = &said.last().unwrap()["result"]["statusUpdate"];
    assert_eq!((state(last), &last["taskId"]), ("COMPLETED", &first["id"]));
}

#[tokio::test]
async fn whether_a_call_may_run_is_not_guessed_from_words() {
    let server = Server::new(CONFIG).await;
    let task = server.task("/a2a/clerk", json!("use compute 6 * 7")).await;
    assert_eq!(state(&task), "INPUT_REQUIRED");
    let calls = &task["status"]["message"]["parts"][1]["data"]["calls"];
    let call = calls[0]["toolCallId"].as_str().unwrap();
    let answers = |part: Value| {
        says(json!({"taskId": task["id"], "messageId": part.to_string(), "parts": [part]}))
    };
    for wrong in [
        json!({"text": "yes"}),
        json!({"data": true}),
        json!({"data": {"approved": true}}),
        json!({"data": {"toolCallId": call}}),
        json!({"data": {"toolCallId": call, "approved": "yes"}}),
        json!({"data": {"toolCallId": call, "approved": true, "threadKey": 1}}),
        json!({"data": {"toolCallId": "other", "approved": true}}),
        json!({"data": {"toolCallId": call, "output": 42}}),
    ] {
        let answer = server
            .rpc("/a2a", "SendMessage", answers(wrong.clone()))
            .await;
        assert_eq!(answer["error"]["code"], -32602, "{wrong}: {answer}");
        let read = server
            .rpc("/a2a", "GetTask", json!({"id": task["id"]}))
            .await;
        assert_eq!(read["result"], task, "{wrong}");
    }
    let elsewhere = json!({"taskId": task["id"], "contextId": "elsewhere", "parts": [{"data": {"toolCallId": call, "approved": true}}]});
    assert_eq!(
        refused(&server, "SendMessage", says(elsewhere)).await,
        -32602
    );
    // A text that is such an object will do, and a client may say why.
    let text = json!({"toolCallId": call, "approved": false, "message": "no sums"}).to_string();
    let done = server
        .rpc("/a2a", "SendMessage", answers(json!({ "text": text })))
        .await;
    let done = &done["result"]["task"];
    assert_eq!(state(done), "COMPLETED");
    assert_eq!(done["history"][1]["parts"], json!([{ "text": text }]));
}

#[tokio::test]
async fn what_is_said_beside_an_answer_is_heard() {
    let server = Server::new(CONFIG).await;
    let task = server.task("/a2a/clerk", json!("use compute 6 * 7")).await;
    let calls = &task["status"]["message"]["parts"][1]["data"]["calls"];
    let answer = json!({"toolCallId": calls[0]["toolCallId"], "approved": true});
    let message = json!({"taskId": task["id"], "messageId": "m2", "parts": [{"data": answer}, {"text": "Hurry"}]});
    let done = server.task("/a2a", message).await;
    assert_eq!(state(&done), "COMPLETED");
    let said = &done["history"][1];
    assert_eq!(said["parts"], json!([{"data": answer}, {"text": "Hurry"}]));
    assert!(
        done["artifacts"][0]["parts"][0]["text"]
            .as_str()
            .unwrap()
            .contains("Hurry")
    );
}

#[tokio::test]
async fn what_is_no_call_is_refused_with_its_code() {
    let server = Server::new(CONFIG).await;
    for (body, code) in [
        ("{", -32700),
        ("[]", -32600),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{}}"#,
            -32601,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{}}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"a"}]}}}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[]}}}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"raw":"*","mediaType":"image/png"}]}}}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"url":"file:///x"}]}}}"#,
            -32005,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"raw":"aGk=","mediaType":"application/x-unheard-of"}]}}}"#,
            -32005,
        ),
    ] {
        let request = server.request("POST", "/a2a").header("a2a-version", "1.0");
        let request = request.header("content-type", "application/json");
        let answer = server.send(request.body(body.into()).unwrap()).await;
        assert_eq!(answer.status, 200);
        assert_eq!(
            answer.json()["error"]["code"],
            code,
            "{body}: {}",
            answer.text
        );
    }
    let message = json!({"contextId": "a\nb", "parts": [{"text": "a"}]});
    let answer = server.rpc("/a2a", "SendMessage", says(message)).await;
    let field = &answer["error"]["data"][1]["fieldViolations"][0]["field"];
    assert_eq!(field, "/params/message/contextId", "{answer}");
    assert_eq!(
        server.get("/api/v1/threads").await.json()["threads"],
        json!([])
    );
}

#[tokio::test]
async fn a_client_of_another_version_is_told_so() {
    let server = Server::new(CONFIG).await;
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks"});
    for version in [None, Some(""), Some("0.3"), Some("2.0"), Some("1.0x")] {
        let request = server
            .request("POST", "/a2a")
            .header("content-type", "application/json");
        let request = match version {
            Some(version) => request.header("a2a-version", version),
            None => request,
        };
        let answer = server
            .send(request.body(call.to_string().into()).unwrap())
            .await;
        assert_eq!(answer.json()["error"]["code"], -32009, "{version:?}");
    }
    let answer = server.post("/a2a?A2A-Version=1.0", call).await;
    assert!(answer.json()["result"].is_object(), "{}", answer.text);
}

#[tokio::test]
async fn an_answer_that_is_sent_again_is_no_other_one_however_the_task_stands() {
    let server = Server::new(CONFIG).await;
    let task = server.task("/a2a/clerk", json!("compute 1 + 2")).await;
    assert_eq!(state(&task), "INPUT_REQUIRED", "{task}");
    let call = &task["status"]["message"]["parts"][1]["data"]["calls"][0];
    let answer = json!({"toolCallId": call["toolCallId"], "approved": true});
    let answers = |id: &str| json!({"taskId": task["id"], "messageId": id, "parts": [{"data": answer.clone()}]});
    let done = server.task("/a2a", answers("m2")).await;
    assert_eq!(state(&done), "COMPLETED", "{done}");
    assert_eq!(server.task("/a2a", answers("m2")).await, done);
    let other = server.rpc("/a2a", "SendMessage", says(answers("m3"))).await;
    assert!(other["error"]["code"].is_i64(), "{other}");
}

#[tokio::test]
async fn a_file_beside_an_answer_must_be_one() {
    let server = Server::new(CONFIG).await;
    let task = server.task("/a2a/clerk", json!("compute 1 + 2")).await;
    let call = &task["status"]["message"]["parts"][1]["data"]["calls"][0];
    let answer = json!({"toolCallId": call["toolCallId"], "approved": true});
    let says_with = |raw: &str| {
        let parts = json!([{"data": answer.clone()}, {"raw": raw, "mediaType": "image/png"}]);
        says(json!({"taskId": task["id"], "messageId": "m2", "parts": parts}))
    };
    let refused = server
        .rpc("/a2a", "SendMessage", says_with("no base64!"))
        .await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let taken = server.rpc("/a2a", "SendMessage", says_with("aGk=")).await;
    assert_eq!(state(&taken["result"]["task"]), "COMPLETED", "{taken}");
}

#[tokio::test]
async fn a_page_token_may_count_as_far_as_numbers_go() {
    let server = Server::new(CONFIG).await;
    let task = server.task("/a2a", json!("hello")).await;
    let thread = task["contextId"].as_str().unwrap();
    let token = format!("{}.9000000000000000000.0.{thread}.", usize::MAX);
    let listed = server
        .rpc("/a2a", "ListTasks", json!({ "pageToken": token }))
        .await;
    assert_eq!(listed["result"]["totalSize"], usize::MAX, "{listed}");
}

#[tokio::test]
async fn a_message_to_a_closed_context_is_told_what_to_do() {
    let server = Server::new(CONFIG).await;
    server.say("t", "hello").await;
    let closed = server.post("/api/v1/threads/t/close", json!({})).await;
    assert_eq!(closed.status, 200, "{}", closed.text);
    let message = says(json!({"contextId": "t", "parts": [{"text": "more"}]}));
    let refused = server.rpc("/a2a", "SendMessage", message.clone()).await;
    let error = &refused["error"];
    assert_eq!(error["code"], -32004, "{refused}");
    assert_eq!(error["data"][0]["reason"], "UNSUPPORTED_OPERATION");
    let what = error["message"].as_str().unwrap();
    assert!(what.starts_with("the context is closed"), "{what}");
    let refused = server
        .a2a("POST", "/a2a/v1/message:send", Some(&message))
        .await;
    assert_eq!(refused.status, 400, "{}", refused.text);
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_refused_in_the_words_of_the_client() {
    let server = Server::new(CONFIG).await;
    let task = server.task("/a2a/clerk", json!("compute 1 + 2")).await;
    let call = &task["status"]["message"]["parts"][1]["data"]["calls"][0]["toolCallId"];
    for (answer, expected) in [
        (
            json!({"toolCallId": call, "approved": "yes"}),
            "\"approved\"",
        ),
        (json!({"toolCallId": 7, "approved": true}), "\"toolCallId\""),
        (
            json!({"toolCallId": call}),
            "\"approved\", \"output\" and \"errorText\"",
        ),
    ] {
        let message = json!({"taskId": task["id"], "messageId": "m2", "parts": [{"data": answer}]});
        let refused = server.rpc("/a2a", "SendMessage", says(message)).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        let what = refused["error"]["message"].as_str().unwrap();
        assert!(what.contains(expected), "{what}");
        assert!(!what.contains("loomline"), "{what}");
    }
}

//! AG-UI's endpoint: what is taken of a client's messages, and what sub-agents ask.

use crate::harness::{Answer, Server, TEAM};
use serde_json::{Value, json};

fn user(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "content": text})
}

/// The body of a run of a client that has a tool of its own.
fn input(run: &str, messages: &[Value]) -> Value {
    json!({
        "threadId": "t", "runId": run, "state": {}, "context": [], "forwardedProps": {},
        "messages": messages,
        "tools": [{"name": "look_up", "description": "Looks it up.", "parameters": {"type": "object"}}],
    })
}

async fn run(server: &Server, run: &str, messages: &[Value]) -> Answer {
    server.post("/ag-ui", input(run, messages)).await
}

async fn resume(server: &Server, run: &str, entries: &Value) -> Answer {
    let mut body = input(run, &[]);
    body["resume"] = entries.clone();
    server.post("/ag-ui", body).await
}

/// The events of a run that was taken.
fn events(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text);
    let lines = answer.text.lines();
    let data = lines.filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

fn outcome(answer: &Answer) -> Value {
    let last = events(answer).pop().unwrap();
    assert_eq!(last["type"], "RUN_FINISHED", "{}", answer.text);
    last["outcome"].clone()
}

fn text_of(answer: &Answer) -> String {
    let events = events(answer);
    let told = events
        .iter()
        .filter(|it| it["type"] == "TEXT_MESSAGE_CONTENT");
    told.map(|it| it["delta"].as_str().unwrap()).collect()
}

async fn messages(server: &Server) -> Vec<Value> {
    let all = server.get("/ag-ui/threads/t/messages").await.json();
    all["messages"].as_array().unwrap().clone()
}

fn differs(answer: &Answer, pointer: &str) {
    let expected = (409, "history_differs".to_owned(), Some(pointer.to_owned()));
    assert_eq!(answer.error(), expected, "{}", answer.text);
}

/// A thread whose agent has called the client's tool so often: its messages, with results of the first calls.
async fn called(server: &Server, text: &str, n_results: usize) -> Vec<Value> {
    let first = run(server, "r1", &[user("u1", text)]).await;
    let pending = outcome(&first)["pendingToolCallIds"].take();
    let mut all = messages(server).await;
    for (n, call) in pending.as_array().unwrap()[..n_results].iter().enumerate() {
        let id = format!("result-{n}");
        all.push(json!({"id": id, "role": "tool", "toolCallId": call, "content": "found it"}));
    }
    all
}

#[tokio::test]
async fn what_a_sub_agent_asks_is_an_interrupt_and_the_run_goes_on_with_the_answer() {
    let server = Server::new(TEAM).await;
    let text = "use find {\"query\": \"use compute {\\\"expression\\\": \\\"6 * 7\\\"}\"}";
    let first = run(&server, "r1", &[user("u1", text)]).await;
    let asked = outcome(&first);
    assert_eq!(asked["type"], "interrupt", "{asked}");
    let interrupt = &asked["interrupts"][0];
    let pending = server.get("/api/v1/threads/t/pending").await.json();
    let calls = pending["calls"].as_array().unwrap();
    let call = calls.iter().find(|it| it["kind"] == "approval").unwrap();
    assert_eq!(interrupt["metadata"]["threadKey"], call["threadKey"]);
    assert_eq!(interrupt["metadata"]["toolName"], "compute");
    assert_eq!(interrupt["toolCallId"], call["path"][0]["toolCallId"]);
    let answers = json!([{
        "interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": true},
    }]);
    let seq = server.seq("t").await;
    let mut more = input("r2", &[user("u2", "and?")]);
    more["resume"] = answers.clone();
    let refused = server.post("/ag-ui", more).await.error();
    assert_eq!(
        (refused.0, refused.2.as_deref()),
        (422, Some("/resume/0/interruptId"))
    );
    assert_eq!(server.seq("t").await, seq, "nothing was written");
    let answered = resume(&server, "r2", &answers).await;
    assert_eq!(outcome(&answered), json!({"type": "success"}));
    assert!(text_of(&answered).contains("42"), "{}", answered.text);
    let again = resume(&server, "r2", &answers).await;
    assert_eq!(again.text, answered.text, "the same run is shown again");
    let late = resume(&server, "r3", &answers).await;
    assert_eq!(late.error().1, "answered_already");
}

/// An agent with a sub-agent whose tool runs elsewhere.
const SCOUTING: &str = r#"
default_agent = "lead"
[models.m]
provider = "scripted"
[agents.lead]
model = "m"
[[agents.lead.subagents]]
agent = "scout"
name = "find"
description = "Finds something."
parameters = { type = "object", properties = { query = { type = "string" } }, required = ["query"] }
prompt = "{query}"
[agents.scout]
model = "m"
[[agents.scout.external]]
name = "locate"
description = "Where the user is."
parameters = { type = "object", properties = {} }
"#;

#[tokio::test]
async fn a_result_that_a_sub_agent_waits_for_is_an_interrupt_and_the_run_goes_on_with_it() {
    for (payload, heard) in [
        (json!({"output": {"city": "Ghent"}}), "Ghent"),
        (json!({"errorText": "no permission"}), "no permission"),
        (Value::Null, "Nobody gave a result."),
    ] {
        let server = Server::new(SCOUTING).await;
        let first = run(
            &server,
            "r1",
            &[user("u1", "use find {\"query\": \"use locate\"}")],
        )
        .await;
        let asked = outcome(&first);
        assert_eq!(asked["type"], "interrupt", "{asked}");
        let interrupt = &asked["interrupts"][0];
        assert_eq!(interrupt["reason"], "input_required");
        assert_eq!(interrupt["metadata"]["toolName"], "locate");
        assert!(interrupt["responseSchema"]["properties"]["output"].is_object());
        let mut wrong = json!([{
            "interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": true},
        }]);
        let refused = resume(&server, "r2", &wrong).await.error();
        assert_eq!(
            (refused.0, refused.2.as_deref()),
            (422, Some("/resume/0/payload"))
        );
        wrong[0]["payload"] = payload.clone();
        let mut answers = wrong;
        if payload.is_null() {
            answers = json!([{"interruptId": interrupt["id"], "status": "cancelled"}]);
        }
        let answered = resume(&server, "r2", &answers).await;
        assert_eq!(outcome(&answered), json!({"type": "success"}));
        let thread = interrupt["metadata"]["threadKey"].as_str().unwrap();
        let path = format!("/api/v1/threads/{}/document", thread.replace('/', "%2F"));
        let document = server.get(&path).await.text;
        assert!(document.contains(heard), "{document}");
        if !payload.is_null() {
            let again = resume(&server, "r2", &answers).await;
            assert_eq!(again.text, answered.text, "the same run is shown again");
        }
    }
}

#[tokio::test]
async fn a_thread_that_is_no_sub_agents_is_not_answered_through_another_one() {
    let server = Server::new(TEAM).await;
    server.say("other", "hello").await;
    run(&server, "r1", &[user("u1", "hello")]).await;
    let answers = json!([{
        "interruptId": "subagent:other#call_1", "status": "resolved", "payload": {"approved": true},
    }]);
    let refused = resume(&server, "r2", &answers).await.error();
    assert_eq!(
        (refused.0, refused.2.as_deref()),
        (422, Some("/resume/0/interruptId"))
    );
}

#[tokio::test]
async fn a_result_that_comes_with_the_next_message_is_taken_and_the_message_said_beside_it() {
    let server = Server::new("").await;
    let mut all = called(&server, "use look_up {\"key\": \"a\"}", 1).await;
    all.push(user("u2", "and now?"));
    let said = run(&server, "r2", &all).await;
    assert_eq!(outcome(&said), json!({"type": "success"}));
    assert!(
        events(&said)
            .iter()
            .all(|it| it["type"] != "TOOL_CALL_START"),
        "{}",
        said.text
    );
    let now = messages(&server).await;
    let result = now.iter().find(|it| it["role"] == "tool").unwrap();
    assert_eq!(result["content"], "found it");
    assert!(now.iter().any(|it| it["content"] == "and now?"), "{now:#?}");
    let again = run(&server, "r2", &all).await;
    assert_eq!(again.text, said.text, "the same run is begun once");
    // A client that has seen nothing of it asks again by another name.
    run(&server, "r3", &all).await;
    let now = messages(&server).await;
    let n_said = now.iter().filter(|it| it["content"] == "and now?").count();
    assert_eq!(n_said, 1, "{now:#?}");
}

#[tokio::test]
async fn a_message_that_comes_twice_at_once_is_said_once() {
    let server = Server::new("").await;
    let twice = [user("u1", "one thing"), user("u1", "one thing")];
    let (one, other) = tokio::join!(run(&server, "r1", &twice), run(&server, "r2", &twice[1..]));
    for said in [one, other] {
        assert_eq!(outcome(&said), json!({"type": "success"}), "{}", said.text);
    }
    let now = messages(&server).await;
    let n_said = now.iter().filter(|it| it["role"] == "user").count();
    assert_eq!(n_said, 1, "{now:#?}");
}

#[tokio::test]
async fn the_messages_at_the_end_that_are_new_are_all_said() {
    let server = Server::new("").await;
    let both = [user("u1", "one thing"), user("u2", "another thing")];
    let said = run(&server, "r1", &both).await;
    assert_eq!(outcome(&said), json!({"type": "success"}));
    let now = messages(&server).await;
    assert_eq!(now[..2], both);
    let mut more = now.clone();
    more.push(user("u3", "a third"));
    run(&server, "r2", &more).await;
    assert_eq!(messages(&server).await[..=now.len()], more);
}

#[tokio::test]
async fn a_message_that_was_said_otherwise_or_elsewhere_is_refused() {
    let server = Server::new("").await;
    run(&server, "r1", &[user("u1", "one thing")]).await;
    let seq = server.seq("t").await;
    let changed = run(&server, "r2", &[user("u1", "another thing")]).await;
    differs(&changed, "/messages/0/content");
    let swapped = [user("u2", "before it"), user("u1", "one thing")];
    differs(&run(&server, "r2", &swapped).await, "/messages/0");
    assert_eq!(server.seq("t").await, seq, "nothing was written");
    let same = run(&server, "r2", &[user("u1", "one thing")]).await;
    assert_eq!(same.status, 200, "{}", same.text);
    assert_eq!(
        messages(&server)
            .await
            .iter()
            .filter(|it| it["role"] == "user")
            .count(),
        1
    );
}

#[tokio::test]
async fn a_result_of_a_call_that_nobody_made_is_refused() {
    let server = Server::new("").await;
    let result = json!({"id": "x", "role": "tool", "toolCallId": "call_99", "content": "forged"});
    let new = run(&server, "r1", &[user("u1", "hello"), result.clone()]).await;
    differs(&new, "/messages/1/toolCallId");
    run(&server, "r1", &[user("u1", "use compute 6 * 7")]).await;
    let mut all = messages(&server).await;
    all.push(result);
    let place = all.len() - 1;
    differs(
        &run(&server, "r2", &all).await,
        &format!("/messages/{place}/toolCallId"),
    );
    // Results of the server's own tools are nothing new.
    let known = messages(&server).await;
    let end = known.iter().position(|it| it["role"] == "tool").unwrap();
    let known = run(&server, "r3", &known[..=end]).await;
    assert_eq!(known.status, 200, "{}", known.text);
}

#[tokio::test]
async fn a_clients_own_results_are_its_messages_live_and_on_reload() {
    let server = Server::new("").await;
    let text = "use look_up {\"key\": \"a\"} and look_up {\"key\": \"b\"}";
    let mut all = called(&server, text, 2).await;
    let end = all.len();
    all.swap(end - 2, end - 1);
    let said = run(&server, "r2", &all).await;
    assert_eq!(outcome(&said), json!({"type": "success"}));
    let events = events(&said);
    let results = events.iter().filter(|it| it["type"] == "TOOL_CALL_RESULT");
    assert_eq!(results.count(), 0, "{}", said.text);
    // With what the run has said, this is what the client has.
    assert_eq!(messages(&server).await[..end], all, "{}", said.text);
    let again = run(&server, "r2", &all).await;
    assert_eq!(again.text, said.text, "the same run is shown again");
}

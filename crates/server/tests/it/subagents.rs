//! What clients see of sub-agents and handoffs, and how they answer what sub-agents ask.

use crate::harness::{Server, names};
use axum::body::Body;
use futures_util::StreamExt;
use http::header;
use serde_json::{Value, json};

const TEAM: &str = r#"
default_agent = "lead"
[models.m]
provider = "scripted"
[agents.lead]
model = "m"
handoffs = ["closer"]
[[agents.lead.subagents]]
agent = "middle"
name = "delegate"
description = "Does something."
parameters = { type = "object", properties = { task = { type = "string" } }, required = ["task"] }
prompt = "{task}"
[agents.middle]
model = "m"
[[agents.middle.subagents]]
agent = "finder"
name = "find"
description = "Finds something."
parameters = { type = "object", properties = { query = { type = "string" } }, required = ["query"] }
prompt = "{query}"
[agents.finder]
model = "m"
tools = ["compute"]
requires_approval = ["compute"]
[agents.closer]
model = "m"
"#;

/// A frame of a stream: the event, the id, the data.
type Frame = (String, String, Value);

fn frames(text: &str) -> Vec<Frame> {
    let frames = text.split_terminator("\n\n");
    let frames = frames.filter(|frame| !frame.starts_with(':'));
    let read = |frame: &str| {
        let line = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name));
        let data = serde_json::from_str(line("data: ").unwrap()).unwrap();
        let text = |name: &str| line(name).unwrap_or_default().to_owned();
        (text("event: "), text("id: "), data)
    };
    frames.map(read).collect()
}

fn chunks(text: &str) -> Vec<Value> {
    let frames = text.split_terminator("\n\n");
    let frames = frames.filter_map(|frame| frame.strip_prefix("data: "));
    frames
        .map(|data| serde_json::from_str(data).unwrap_or_else(|_| data.into()))
        .collect()
}

fn submit(id: &str, text: &str) -> Value {
    let message = json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]});
    json!({"id": "c", "trigger": "submit-message", "messages": [message]})
}

/// A prompt that has the lead delegate, and the sub-agent look for this.
fn finding(query: &str) -> String {
    let task = format!("find {}", json!({"query": query}));
    format!("delegate {}", json!({"task": task}))
}

async fn all_events(server: &Server, key: &str, after: Option<&str>) -> Vec<Frame> {
    let path = format!("/api/v1/threads/{key}/events?until=rest&subagents=true");
    let mut request = server.request("GET", &path);
    if let Some(after) = after {
        request = request.header("last-event-id", after);
    }
    let answer = server.send(request.body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    frames(&answer.text)
}

#[tokio::test]
async fn a_stream_of_events_shows_what_sub_agents_do_at_any_depth_with_the_calls_that_led_there() {
    let server = Server::new(TEAM).await;
    let path = "/api/v1/threads/t/messages?subagents=true";
    let body = json!({"content": finding("gold"), "stream": true});
    let answer = server.post(path, body).await;
    let live = frames(&answer.text);
    assert_eq!(live.last().unwrap().2["type"], "thread.finished");
    let nested: Vec<&Value> = live
        .iter()
        .filter(|(event, _, _)| event == "subagent")
        .map(|(_, _, data)| data)
        .collect();
    let depths = |depth: usize| {
        let of = |data: &&&Value| data["path"].as_array().unwrap().len() == depth;
        nested.iter().filter(of).count()
    };
    assert!(
        depths(1) > 10 && depths(2) > 10,
        "{} {}",
        depths(1),
        depths(2)
    );
    assert_eq!(nested[0]["path"][0]["threadKey"], "t");
    let last = nested.last().unwrap();
    assert_eq!(last["type"], "thread.finished");
    assert_ne!(last["threadKey"], "t");
    // Without the parameter nothing has changed.
    let plain = server.say("u", &finding("gold")).await;
    assert!(
        frames(&plain.text)
            .iter()
            .all(|(event, _, _)| event != "subagent")
    );
}

#[tokio::test]
async fn a_client_that_reconnects_anywhere_beneath_a_thread_sees_nothing_twice_and_misses_nothing()
{
    // One in which nobody waits, and one in which all do for an answer.
    for asks in [false, true] {
        let server = if asks {
            let (server, question) = asking().await;
            let answer = json!({"toolCallId": question["toolCallId"], "approved": true});
            let body = json!({"answers": [answer], "stream": true});
            server.post("/api/v1/threads/t/answers", body).await;
            server
        } else {
            let server = Server::new(TEAM).await;
            server.say("t", &finding("gold")).await;
            server
        };
        reconnects_everywhere(&server).await;
    }
}

async fn reconnects_everywhere(server: &Server) {
    let all = all_events(server, "t", None).await;
    let key = |(_, _, data): &Frame| (data["threadKey"].to_string(), data["seq"].as_u64().unwrap());
    let mut whole: Vec<_> = all.iter().map(key).collect();
    whole.sort();
    for cut in 0..all.len() {
        let rest = all_events(server, "t", Some(&all[cut].1)).await;
        let seen = all.iter().take(cut + 1).chain(&rest);
        let mut seen: Vec<_> = seen.map(key).collect();
        seen.sort();
        assert_eq!(seen, whole, "after {} ({})", all[cut].1, cut);
    }
}

#[tokio::test]
async fn a_chat_shows_what_a_sub_agent_says_so_far_and_its_own_chunks() {
    let server = Server::new(TEAM).await;
    let said = format!("delegate {}", json!({"task": "slow 5ms say 60 words"}));
    let answer = server.post("/api/chat", submit("m1", &said)).await;
    let all = chunks(&answer.text);
    let outputs: Vec<&Value> = all
        .iter()
        .filter(|chunk| chunk["type"] == "tool-output-available")
        .collect();
    assert!(outputs.len() > 2, "{outputs:#?}");
    let (last, before) = outputs.split_last().unwrap();
    assert!(before.iter().all(|chunk| chunk["preliminary"] == true));
    assert_eq!(last["preliminary"], Value::Null);
    let texts: Vec<&str> = before
        .iter()
        .map(|it| it["output"].as_str().unwrap())
        .collect();
    assert!(
        last["output"]
            .as_str()
            .unwrap()
            .starts_with(texts.last().unwrap())
    );
    let data: Vec<&Value> = all
        .iter()
        .filter(|it| it["type"] == "data-subagent")
        .collect();
    assert!(data.iter().all(|it| it["transient"] == true));
    let deltas = data
        .iter()
        .filter(|it| it["data"]["chunk"]["type"] == "text-delta");
    assert!(deltas.count() > 1);
    // All of it is linear in what is said: each text is only shown again when it has grown enough.
    let n_bytes: usize = texts.iter().map(|text| text.len()).sum();
    assert!(n_bytes < 12 * last["output"].as_str().unwrap().len() + 500);
    let without = server
        .post("/api/chat?subagents=none", submit("m2", &said))
        .await;
    let without = chunks(&without.text);
    let is_nested = |it: &Value| it["preliminary"] == true || it["type"] == "data-subagent";
    assert!(!without.iter().any(is_nested));
    let outputs = server
        .post("/api/chat?subagents=outputs", submit("m3", &said))
        .await;
    assert!(outputs.text.contains("preliminary") && !outputs.text.contains("data-subagent"));
}

#[tokio::test]
async fn a_chat_goes_on_over_a_handoff_as_one_message() {
    let server = Server::new(TEAM).await;
    let answer = server
        .post("/api/chat", submit("m1", "transfer_to_closer because"))
        .await;
    let all = chunks(&answer.text);
    let count = |kind: &str| all.iter().filter(|it| it["type"] == kind).count();
    assert_eq!((count("start"), count("finish")), (1, 1), "{all:#?}");
    assert_eq!(count("data-tp-agent_handoff"), 1);
    assert!(count("start-step") >= 2);
    assert_eq!(all.last().unwrap(), "[DONE]");
    let messages = server.get("/api/chat/c/messages").await.json();
    let messages = messages["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2, "{messages:#?}");
    let start = all.iter().find(|it| it["type"] == "start").unwrap();
    assert_eq!(messages[1]["id"], start["messageId"]);
    // The native stream of the run goes on as well.
    let answer = server.say("n", "transfer_to_closer because").await;
    let events = answer.events();
    let ends = names(&events)
        .into_iter()
        .filter(|it| *it == "thread.finished");
    assert_eq!(ends.count(), 2);
}

/// A thread whose sub-agent's sub-agent has asked whether it may compute.
async fn asking() -> (Server, Value) {
    let server = Server::new(TEAM).await;
    server.say("t", &finding("use compute 6 * 7")).await;
    let pending = server.get("/api/v1/threads/t/pending").await.json();
    let calls = pending["calls"].as_array().unwrap().clone();
    let kinds: Vec<&str> = calls
        .iter()
        .map(|it| it["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["child", "child", "approval"], "{calls:#?}");
    let question = calls[2].clone();
    assert_eq!(question["path"].as_array().unwrap().len(), 2);
    assert_eq!(question["path"][0]["threadKey"], "t");
    (server, question)
}

#[tokio::test]
async fn what_a_sub_agent_asks_is_answered_through_the_thread_that_was_asked_first() {
    for named in [false, true] {
        let (server, question) = asking().await;
        let mut answer = json!({"toolCallId": question["toolCallId"], "approved": true});
        if named {
            answer["threadKey"] = question["threadKey"].clone();
        }
        let path = "/api/v1/threads/t/answers?subagents=true";
        let body = json!({"answers": [answer], "stream": true});
        let answer = server.post(path, body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let events = frames(&answer.text);
        assert_eq!(events.last().unwrap().2["type"], "thread.finished");
        assert!(events.iter().any(|(event, _, _)| event == "subagent"));
        assert!(answer.text.contains("compute gave 42"), "{}", answer.text);
        let pending = server.get("/api/v1/threads/t/pending").await.json();
        assert_eq!(pending["calls"], json!([]));
        let document = server.get("/api/v1/threads/t/document").await.text;
        assert!(document.contains("42"), "{document}");
    }
}

#[tokio::test]
async fn an_answer_for_a_sub_agent_that_is_repeated_gets_the_same_stream_again() {
    let (server, question) = asking().await;
    let call = &question["toolCallId"];
    let answer = json!({"toolCallId": call, "approved": true, "threadKey": question["threadKey"]});
    let body = json!({"answers": [answer], "stream": true}).to_string();
    let send = || {
        let request = server
            .request("POST", "/api/v1/threads/t/answers")
            .header(header::CONTENT_TYPE, "application/json")
            .header("idempotency-key", "once");
        server.send(request.body(Body::from(body.clone())).unwrap())
    };
    let first = send().await;
    assert!(!first.headers.contains_key("idempotent-replayed"));
    assert_eq!(
        frames(&first.text).last().unwrap().2["type"],
        "thread.finished"
    );
    // Also when the thread has gone on since.
    for _ in 0..2 {
        let again = send().await;
        assert_eq!(again.status, 200);
        assert!(again.headers.contains_key("idempotent-replayed"));
        assert_eq!(frames(&again.text), frames(&first.text));
        server.say("t", "hello").await;
    }
}

#[tokio::test]
async fn the_ids_of_a_stream_name_no_sub_agents_that_have_stopped() {
    let server = Server::new(TEAM).await;
    server.say("t", "hello").await;
    let request = server.request("GET", "/api/v1/threads/t/events?subagents=true");
    let (_, mut stream) = server.open(request.body(Body::empty()).unwrap()).await;
    let mut text = String::new();
    let mut more = async |enough: &dyn Fn(&[Frame]) -> bool| {
        loop {
            let whole = text.rfind("\n\n").map_or("", |end| &text[..end]);
            let seen = frames(whole);
            if enough(&seen) {
                return seen;
            }
            let piece = stream.next().await.unwrap().unwrap();
            text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    };
    let ended = |seen: &[Frame], depth| {
        let is_end = |(_, _, data): &&Frame| {
            let path = data["path"].as_array();
            data["type"] == "thread.finished" && path.map_or(0, Vec::len) == depth
        };
        seen.iter().filter(is_end).count()
    };
    for n in 1..=3 {
        server.begin("t", &finding("slow 20ms say 500 words")).await;
        // Until the innermost one speaks.
        let speaks = |(_, _, data): &Frame| {
            data["path"].as_array().is_some_and(|path| path.len() == 2)
                && data["chunkType"] == "text-delta"
        };
        more(&|seen| {
            let last = seen
                .iter()
                .rposition(|it| it.2["type"] == "thread.finished");
            seen.iter().skip(last.unwrap_or(0)).any(speaks)
        })
        .await;
        server.post("/api/v1/threads/t/cancel", json!({})).await;
        more(&|seen| ended(seen, 1) == n).await;
    }
    server.say("t", "hello").await;
    let seen = more(&|seen| ended(seen, 0) == 5).await;
    let (_, last, _) = seen.last().unwrap();
    assert!(!last.contains('~'), "{last}");
    let named = seen.iter().map(|(_, id, _)| id.matches('~').count()).max();
    assert_eq!(named, Some(2));
}

#[tokio::test]
async fn what_a_sub_agent_asks_is_answered_through_its_own_thread() {
    let (server, question) = asking().await;
    let key = question["threadKey"].as_str().unwrap().replace('/', "%2F");
    let path = format!("/api/v1/threads/{key}/answers");
    let answer = json!({"toolCallId": question["toolCallId"], "approved": false, "message": "no"});
    let answer = server.post(&path, json!({"answers": [answer]})).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    server.at_rest("t").await;
    let pending = server.get("/api/v1/threads/t/pending").await.json();
    assert_eq!(pending["calls"], json!([]));
}

#[tokio::test]
async fn an_answer_to_a_thread_that_is_not_beneath_is_refused() {
    let (server, question) = asking().await;
    server.say("other", "hello").await;
    let id = &question["toolCallId"];
    let answer =
        |key: Value| json!({"answers": [{"toolCallId": id, "approved": true, "threadKey": key}]});
    for key in [json!("other"), json!("nothing"), json!(7)] {
        let refused = server
            .post("/api/v1/threads/t/answers", answer(key))
            .await
            .error();
        assert_eq!(refused.0, 422);
        assert_eq!(refused.2.as_deref(), Some("/answers/0/threadKey"));
    }
}

#[tokio::test]
async fn a_chat_that_waits_for_a_sub_agent_leaves_its_call_without_an_output() {
    let server = Server::new(TEAM).await;
    let said = finding("use compute 6 * 7");
    let answer = server.post("/api/chat", submit("m1", &said)).await;
    let all = chunks(&answer.text);
    let of_call = |it: &&Value| it["toolCallId"].is_string();
    let is_beneath = |it: &&Value| it["toolCallId"].as_str().unwrap().starts_with("subagent:");
    let (beneath, own): (Vec<&Value>, Vec<&Value>) =
        all.iter().filter(of_call).partition(is_beneath);
    assert_eq!(own.last().unwrap()["type"], "tool-input-available");
    // What it asks stands in a step of its own.
    let kinds: Vec<&Value> = beneath.iter().map(|it| &it["type"]).collect();
    assert_eq!(kinds, ["tool-input-available", "tool-approval-request"]);
    assert_eq!(all.last().unwrap(), "[DONE]");
    assert!(answer.text.contains("tool-approval-request"));
}

#[tokio::test]
async fn deleting_a_thread_deletes_the_threads_of_its_sub_agents() {
    let (server, question) = asking().await;
    let key = question["threadKey"].as_str().unwrap().replace('/', "%2F");
    let child = format!("/api/v1/threads/{key}");
    assert_eq!(server.get(&child).await.status, 200);
    assert_eq!(server.delete("/api/v1/threads/t").await.status, 204);
    assert_eq!(server.get(&child).await.status, 404);
}

#[tokio::test]
async fn a_chat_that_is_resumed_after_a_handoff_gets_the_whole_message() {
    let server = Server::new(TEAM).await;
    let said = "slow 100ms transfer_to_closer";
    let request = server
        .request("POST", "/api/chat")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(submit("m1", said).to_string()))
        .unwrap();
    let (status, stream) = server.open(request).await;
    assert_eq!(status, 200);
    drop(stream);
    loop {
        let path = "/api/v1/threads/c/events?limit=1000";
        let request = server
            .request("GET", path)
            .header("accept", "application/json");
        let page = server.send(request.body(Body::empty()).unwrap()).await;
        if page.text.contains("data-tp-agent_handoff") {
            break;
        }
        tokio::task::yield_now().await;
    }
    let resumed = server.get("/api/chat/c/stream").await;
    assert_eq!(resumed.status, 200);
    let all = chunks(&resumed.text);
    let count = |kind: &str| all.iter().filter(|it| it["type"] == kind).count();
    assert_eq!((count("start"), count("finish")), (1, 1), "{all:#?}");
    assert_eq!(count("data-tp-agent_handoff"), 1, "{all:#?}");
}

//! The server is killed in the middle of an answer. Each protocol's client then resumes with the last
//! id that it saw, behind chunks that no log has.

use crate::support::cli::Home;
use crate::support::server::{self, Server, position};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};

const PROMPT: &str = "slow 40ms say 30 words";

/// Number of deltas that a client sees before the server is killed.
const N_SEEN: usize = 5;

/// A frame of an event stream.
#[derive(Clone, Debug, Default)]
struct Frame {
    id: Option<String>,
    event: String,
    data: Value,
}

impl Frame {
    fn is(&self, kind: &str) -> bool {
        self.data["type"] == kind
    }
}

/// The frames of a response, as they arrive.
fn frames(reader: impl Read) -> impl Iterator<Item = Frame> {
    let mut lines = BufReader::new(reader).lines();
    std::iter::from_fn(move || {
        let mut frame = Frame::default();
        let mut has_data = false;
        loop {
            let line = lines.next()?.ok()?;
            if let Some(id) = line.strip_prefix("id: ") {
                frame.id = Some(id.to_owned());
            } else if let Some(event) = line.strip_prefix("event: ") {
                event.clone_into(&mut frame.event);
            } else if let Some(data) = line.strip_prefix("data: ") {
                frame.data = serde_json::from_str(data).unwrap_or_default();
                has_data = true;
            } else if line.is_empty() && has_data {
                return Some(frame);
            }
        }
    })
}

/// A request of a client.
#[derive(Clone)]
struct Ask {
    path: String,
    body: Option<Value>,
    headers: Vec<(&'static str, String)>,
}

fn get(path: impl Into<String>) -> Ask {
    Ask {
        path: path.into(),
        body: None,
        headers: vec![("accept", "text/event-stream".to_owned())],
    }
}

fn post(path: impl Into<String>, body: Value) -> Ask {
    Ask {
        body: Some(body),
        ..get(path)
    }
}

impl Ask {
    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn send(&self, server: &Server) -> impl Iterator<Item = Frame> + use<> {
        let (url, agent) = (server.url(&self.path), server::agent());
        let response = if let Some(body) = &self.body {
            let mut request = agent.post(url).header("content-type", "application/json");
            for (name, value) in &self.headers {
                request = request.header(*name, value);
            }
            request.send(body.to_string())
        } else {
            let mut request = agent.get(url);
            for (name, value) in &self.headers {
                request = request.header(*name, value);
            }
            request.call()
        };
        frames(response.unwrap().into_body().into_reader())
    }
}

/// A server over a store, which is killed and starts again.
struct Bed {
    home: Home,
    server: Server,
}

impl Bed {
    fn new() -> Self {
        let home = Home::new();
        let server = home.server();
        Self { home, server }
    }

    /// Sends a request, reads until `N_SEEN` frames with text have arrived, and kills the server.
    fn cut(&mut self, ask: &Ask, is_text: impl Fn(&Frame) -> bool) -> Vec<Frame> {
        let mut seen = Vec::new();
        let mut stream = ask.send(&self.server);
        let mut n_texts = 0;
        while n_texts < N_SEEN {
            let frame = stream.next().expect("the stream ended");
            n_texts += usize::from(is_text(&frame));
            seen.push(frame);
        }
        self.server.kill();
        drop(stream);
        self.server = self.home.server();
        seen
    }

    fn all(&self, ask: &Ask) -> Vec<Frame> {
        ask.send(&self.server).collect()
    }

    /// The answer in the log, which has each of its words once.
    fn answer(&self, key: &str) -> String {
        self.server.rest(key);
        let messages = self.server.get(&format!("/api/v1/threads/{key}/messages"));
        let messages = messages.unwrap()["messages"].take();
        let last = messages.as_array().unwrap().last().unwrap();
        assert_eq!(last["role"], "assistant", "{last}");
        let parts = last["content"].as_array().unwrap().iter();
        let text: String = parts.filter_map(|part| part["text"].as_str()).collect();
        assert_eq!(text.split_whitespace().count(), 30, "{text}");
        text
    }
}

fn last_id(frames: &[Frame]) -> String {
    let mut ids = frames.iter().rev().filter_map(|frame| frame.id.clone());
    ids.next().unwrap()
}

fn text<'f>(frames: impl IntoIterator<Item = &'f Frame>, kind: &str) -> String {
    let deltas = frames.into_iter().filter(|frame| frame.is(kind));
    let texts = deltas.filter_map(|frame| frame.data["delta"].as_str());
    texts.collect()
}

#[test]
fn a_native_client_behind_a_lost_delta_is_reset() {
    for options in ["", "?subagents=true", "?uap=true"] {
        let mut bed = Bed::new();
        let message = json!({"content": PROMPT});
        let posted = bed.server.post("/api/v1/threads/k/messages", &message);
        posted.unwrap();
        let events = get(format!("/api/v1/threads/k/events{options}"));
        let chunk = |frame: &Frame, kind: &str| frame.data["chunkType"] == kind;
        let seen = bed.cut(&events, |frame| chunk(frame, "text-delta"));
        let last = last_id(&seen);
        assert!(position(&last).1 >= N_SEEN as u64, "{last} is stored");
        let answer = bed.answer("k");
        let rest =
            bed.all(&get("/api/v1/threads/k/events?until=rest").with("last-event-id", &last));
        let kinds: Vec<&Value> = rest.iter().map(|it| &it.data["chunkType"]).collect();
        assert_eq!(kinds[..2], ["data-execution-resumed", "data-step-reset"]);
        let positions = seen.iter().chain(&rest);
        let positions: Vec<_> = positions
            .map(|it| position(it.id.as_ref().unwrap()))
            .collect();
        assert!(positions.is_sorted_by(|a, b| a < b), "{positions:?}");
        let deltas = rest.iter().filter(|it| chunk(it, "text-delta"));
        let deltas = deltas.map(|it| it.data["data"]["delta"].as_str().unwrap());
        assert_eq!(deltas.collect::<String>(), answer);
        // The page of the log begins at the same place.
        let page = bed
            .server
            .get(&format!("/api/v1/threads/k/events?after={last}"));
        let events = page.unwrap()["events"].take();
        let of_stream: Vec<&Value> = rest.iter().map(|it| &it.data).collect();
        assert_eq!(
            events.as_array().unwrap().iter().collect::<Vec<_>>(),
            of_stream
        );
    }
}

#[test]
fn an_ai_sdk_client_behind_a_lost_delta_is_reset() {
    for skips in [false, true] {
        let mut bed = Bed::new();
        let parts = json!([{"type": "text", "text": PROMPT}]);
        let message = json!({"id": "m1", "role": "user", "parts": parts});
        let body = json!({"id": "k", "trigger": "submit-message", "messages": [message]});
        let seen = bed.cut(&post("/api/chat", body), |it| it.is("text-delta"));
        let start = if skips { seen.len() } else { 0 };
        let rest = bed.all(&get(format!("/api/chat/k/stream?startIndex={start}")));
        let kinds: Vec<&str> = rest
            .iter()
            .filter_map(|it| it.data["type"].as_str())
            .collect();
        let at = kinds.iter().position(|it| *it == "reset-step");
        let at = at.unwrap_or_else(|| panic!("{kinds:?}"));
        assert_eq!(at == 0, skips, "{kinds:?}");
        assert_eq!(text(&rest[at..], "text-delta"), bed.answer("k"));
    }
}

#[test]
fn a_client_of_open_responses_behind_a_lost_delta_gets_the_new_attempt() {
    let mut bed = Bed::new();
    let ask = post(
        "/v1/responses",
        json!({"model": "demo", "input": PROMPT, "stream": true}),
    );
    let delta = "response.output_text.delta";
    let seen = bed.cut(&ask, |it| it.is(delta));
    let number = |frame: &Frame| frame.data["sequence_number"].as_u64();
    let last = seen.iter().filter_map(number).next_back().unwrap();
    let id = seen[0].data["response"]["id"].as_str().unwrap();
    let path = format!("/v1/responses/{id}?stream=true&starting_after={last}");
    let rest = bed.all(&get(path));
    let numbers: Vec<u64> = rest.iter().filter_map(number).collect();
    assert!(
        numbers.is_sorted_by(|a, b| a < b) && numbers[0] > last,
        "{numbers:?}"
    );
    assert!(rest[0].is("response.output_item.added"), "{rest:?}");
    let end = rest.iter().find(|it| it.is("response.completed")).unwrap();
    let answer = &end.data["response"]["output"][0]["content"][0]["text"];
    assert_eq!(text(&rest, delta), answer.as_str().unwrap());
    assert_eq!(answer.as_str().unwrap().split_whitespace().count(), 30);
}

const THREAD: &str = "6f1e9a52-0f57-4f2e-9d0e-1c52cc5f4a01";

#[test]
fn a_langgraph_client_behind_a_lost_delta_loses_the_message_and_gets_it_anew() {
    let mut bed = Bed::new();
    let body = json!({"assistant_id": "demo", "if_not_exists": "create", "stream_mode": "messages-tuple",
        "input": {"messages": PROMPT}});
    let ask = post(format!("/threads/{THREAD}/runs/stream"), body);
    let is_text = |frame: &Frame| {
        frame.data[0]["content"]
            .as_str()
            .is_some_and(|it| !it.is_empty())
    };
    let seen = bed.cut(&ask, is_text);
    let run = seen[0].data["run_id"].as_str().unwrap();
    let path = format!("/threads/{THREAD}/runs/{run}/stream?stream_mode=messages-tuple");
    let rest = bed.all(&get(path).with("last-event-id", last_id(&seen)));
    let messages: Vec<&Value> = rest
        .iter()
        .filter(|it| it.event == "messages")
        .map(|it| &it.data[0])
        .collect();
    assert_eq!(messages[0]["type"], "remove", "{messages:?}");
    assert_eq!(messages[0]["id"], seen.last().unwrap().data[0]["id"]);
    let texts = messages[1..].iter().filter_map(|it| it["content"].as_str());
    let answer: String = texts.collect();
    assert_eq!(answer.split_whitespace().count(), 30, "{answer}");
}

#[test]
fn a_langgraph_protocol_client_behind_a_lost_delta_loses_the_message_and_gets_it_anew() {
    let mut bed = Bed::new();
    let body =
        json!({"assistant_id": "demo", "if_not_exists": "create", "input": {"messages": PROMPT}});
    bed.server
        .post(&format!("/threads/{THREAD}/runs"), &body)
        .unwrap();
    let path = format!("/threads/{THREAD}/stream/events");
    let ask = |since: Option<u64>| {
        let mut body = json!({"channels": ["messages", "lifecycle"]});
        if let Some(since) = since {
            body["since"] = since.into();
        }
        post(path.clone(), body)
    };
    let delta = |frame: &Frame| {
        let data = &frame.data["params"]["data"];
        data["delta"]["text"].as_str().map(str::to_owned)
    };
    let seen = bed.cut(&ask(None), |it| delta(it).is_some());
    let number = |frame: &Frame| frame.data["seq"].as_u64();
    let last = seen.iter().filter_map(number).next_back();
    let mut rest = Vec::new();
    for frame in ask(last).send(&bed.server) {
        let event = frame.data["params"]["data"]["event"].clone();
        rest.push(frame);
        if event == "completed" {
            break;
        }
    }
    assert_eq!(rest[0].data["params"]["data"]["event"], "error", "{rest:?}");
    let numbers: Vec<u64> = rest.iter().filter_map(number).collect();
    assert!(
        numbers.is_sorted() && numbers[0] > last.unwrap(),
        "{numbers:?}"
    );
    let answer: String = rest.iter().filter_map(delta).collect();
    assert_eq!(answer.split_whitespace().count(), 30, "{answer}");
}

#[test]
fn an_ag_ui_client_repeats_its_run_and_gets_the_whole_answer() {
    let mut bed = Bed::new();
    let message = json!({"id": "m1", "role": "user", "content": PROMPT});
    let body = json!({"threadId": "k", "runId": "run-1", "state": {}, "tools": [], "context": [],
        "forwardedProps": {}, "messages": [message]});
    let ask = post("/ag-ui", body);
    bed.cut(&ask, |it| it.is("TEXT_MESSAGE_CONTENT"));
    let again = bed.all(&ask);
    assert!(again[0].is("RUN_STARTED") && again.last().unwrap().is("RUN_FINISHED"));
    assert_eq!(text(&again, "TEXT_MESSAGE_CONTENT"), bed.answer("k"));
}

#[test]
fn an_a2a_client_subscribes_and_gets_the_text_from_its_beginning() {
    let mut bed = Bed::new();
    let message = json!({"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": PROMPT}]});
    let ask =
        post("/a2a/v1/message:stream", json!({"message": message})).with("a2a-version", "1.0");
    let piece = |frame: &Frame| {
        let update = &frame.data["artifactUpdate"];
        let text = update["artifact"]["parts"][0]["text"].as_str()?;
        Some((text.to_owned(), update["append"] == true))
    };
    let seen = bed.cut(&ask, |it| piece(it).is_some());
    let task = seen[0].data["task"]["id"].as_str().unwrap();
    let ask = post(format!("/a2a/v1/tasks/{task}:subscribe"), json!({})).with("a2a-version", "1.0");
    let rest = bed.all(&ask);
    let mut answer = String::new();
    for (text, is_appended) in rest.iter().filter_map(piece) {
        if !is_appended {
            answer.clear();
        }
        answer += &text;
    }
    assert_eq!(answer.split_whitespace().count(), 30, "{answer} {rest:?}");
}

#[test]
fn a_client_of_the_threads_api_repeats_its_request_and_gets_the_whole_answer() {
    let mut bed = Bed::new();
    let thread = json!({"messages": [{"role": "user", "content": PROMPT}]});
    let body = json!({"assistant_id": "demo", "stream": true, "thread": thread});
    let ask = post("/v1/threads/runs", body).with("idempotency-key", "once");
    let delta = |frame: &Frame| {
        let text = &frame.data["delta"]["content"][0]["text"]["value"];
        text.as_str().map(str::to_owned)
    };
    bed.cut(&ask, |it| delta(it).is_some());
    let again = bed.all(&ask);
    assert_eq!(again[0].event, "thread.created");
    let done = again
        .iter()
        .find(|it| it.event == "thread.message.completed");
    let done = done.unwrap();
    let text = done.data["content"][0]["text"]["value"].as_str().unwrap();
    assert_eq!(text.split_whitespace().count(), 30, "{text}");
    let message = &done.data["id"];
    let deltas = again.iter().filter(|it| it.data["id"] == *message);
    assert_eq!(deltas.filter_map(delta).collect::<String>(), text);
}

#[test]
fn a_chat_completion_that_was_cut_off_is_read_from_its_thread() {
    let mut bed = Bed::new();
    let messages = json!([{"role": "user", "content": PROMPT}]);
    let body = json!({"model": "demo", "stream": true, "messages": messages});
    let ask = post("/v1/chat/completions", body).with("loomline-thread", "k");
    let delta = |frame: &Frame| frame.data["choices"][0]["delta"]["content"].is_string();
    bed.cut(&ask, delta);
    bed.answer("k");
}

#[test]
fn an_mcp_call_that_was_cut_off_is_read_from_its_thread() {
    let mut bed = Bed::new();
    let call = |key: &str| {
        let arguments = json!({"key": key, "content": PROMPT});
        let params = json!({"name": "run", "arguments": arguments, "_meta": {"progressToken": 1}});
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    };
    let ask = post("/mcp", call("k")).with("accept", "application/json, text/event-stream");
    bed.cut(&ask, |it| it.data["method"] == "notifications/progress");
    bed.answer("k");
}

//! The Threads API, as its clients see it.

mod assistants;
mod beside;
mod between;
mod expiry;
mod files;
mod limits;
mod messages;
mod outputs;
mod runs;
mod schema;
mod strangers;
mod streams;
mod threads;

use crate::harness::{Answer, Server};
use axum::body::Body;
use http::header;
use interop::ids::THREAD;
use serde_json::{Value, json};

/// An event of a stream: its name and its object.
type Event = (String, Value);

/// The answer's object, which must be what the published schema of this name says.
fn object(answer: &Answer, schema: &str) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.text);
    let object = answer.json();
    if object["data"] == json!([]) {
        // The schemas have no word for the ends of a list that has none.
        let expected = json!({"object": "list", "data": [], "first_id": null, "last_id": null, "has_more": false});
        assert_eq!(object, expected);
        return object;
    }
    schema::check(schema, &object);
    object
}

/// The status, the message and the place of a refusal, which has the four keys of the protocol.
fn refused(answer: &Answer) -> (u16, String, Option<String>) {
    let body = answer.json();
    let error = body["error"].as_object().unwrap();
    let mut keys: Vec<&str> = error.keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["code", "message", "param", "type"], "{body}");
    let text = |key: &str| error[key].as_str().map(str::to_owned);
    (
        answer.status.as_u16(),
        text("message").unwrap(),
        text("param"),
    )
}

/// The events of a stream, each of which must be what the schemas say; it must end as they do.
fn events(answer: &Answer) -> Vec<Event> {
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    let frames = answer.text.split_terminator("\n\n");
    let read = |frame: &str| {
        let (name, data) = frame.split_once('\n').unwrap();
        let name = name.strip_prefix("event: ").unwrap().to_owned();
        let data = data.strip_prefix("data: ").unwrap();
        if name == "done" {
            assert_eq!(data, "[DONE]");
            return (name, Value::Null);
        }
        let data = serde_json::from_str(data).unwrap();
        schema::check_event(&name, &data);
        (name, data)
    };
    let events: Vec<Event> = frames.map(read).collect();
    let done = events.iter().filter(|(name, _)| name == "done").count();
    assert_eq!(done, 1);
    assert_eq!(events.last().unwrap().0, "done");
    events
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|(name, _)| name.as_str()).collect()
}

/// A function that the client executes.
fn weather() -> Value {
    json!({"type": "function", "function": {"name": "get_weather", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
    }}})
}

/// A client of the API on a server of its own.
struct Client(Server);

impl Client {
    async fn new() -> Self {
        Self(Server::new("").await)
    }

    async fn get(&self, path: &str, schema: &str) -> Value {
        object(&self.0.get(&format!("/v1{path}")).await, schema)
    }

    async fn post(&self, path: &str, body: Value, schema: &str) -> Value {
        object(&self.ask(path, body).await, schema)
    }

    async fn ask(&self, path: &str, body: Value) -> Answer {
        self.0.post(&format!("/v1{path}"), body).await
    }

    async fn delete(&self, path: &str) -> Answer {
        self.0.delete(&format!("/v1{path}")).await
    }

    /// Posts a body with an idempotency key.
    async fn ask_once(&self, path: &str, body: Value, token: &str) -> Answer {
        let request = self.0.request("POST", &format!("/v1{path}"));
        let request = request
            .header(header::CONTENT_TYPE, "application/json")
            .header("idempotency-key", token);
        let body = Body::from(body.to_string());
        self.0.send(request.body(body).unwrap()).await
    }

    /// A thread with these messages of a user: its id.
    async fn thread(&self, said: &[&str]) -> String {
        let said = said.iter();
        let messages: Vec<Value> = said
            .map(|text| json!({"role": "user", "content": text}))
            .collect();
        let body = json!({"messages": messages});
        let thread = self.post("/threads", body, "ThreadObject").await;
        thread["id"].as_str().unwrap().to_owned()
    }

    /// Begins a run of the configured agent with these members beside, and does not wait.
    async fn begin(&self, thread: &str, more: Value) -> Value {
        let mut body = json!({"assistant_id": "demo"});
        let members = body.as_object_mut().unwrap();
        members.extend(more.as_object().unwrap().clone());
        let path = format!("/threads/{thread}/runs");
        self.post(&path, body, "RunObject").await
    }

    /// Waits until nothing runs on a thread.
    async fn rest(&self, thread: &str) {
        self.0.at_rest(&THREAD.read(thread)).await;
    }

    async fn run(&self, thread: &str, run: &Value) -> Value {
        let run = run["id"].as_str().unwrap();
        self.get(&format!("/threads/{thread}/runs/{run}"), "RunObject")
            .await
    }

    /// Begins a run and waits until it is over, or waits for its client.
    async fn ran(&self, thread: &str, more: Value) -> Value {
        let run = self.begin(thread, more).await;
        self.rest(thread).await;
        self.run(thread, &run).await
    }

    /// The texts of the messages, the oldest first, with their roles.
    async fn said(&self, thread: &str) -> Vec<(String, String)> {
        let path = format!("/threads/{thread}/messages?order=asc");
        let list = self.get(&path, "ListMessagesResponse").await;
        let messages = list["data"].as_array().unwrap().iter();
        let said = messages.map(|message| {
            let role = message["role"].as_str().unwrap().to_owned();
            let text = &message["content"][0]["text"]["value"];
            (role, text.as_str().unwrap().to_owned())
        });
        said.collect()
    }

    /// The ids of a page, and whether there is more.
    async fn ids(&self, path: &str, schema: &str) -> (Vec<String>, bool) {
        let list = self.get(path, schema).await;
        let data = list["data"].as_array().unwrap().iter();
        let ids: Vec<String> = data
            .map(|object| object["id"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(list["first_id"].as_str(), ids.first().map(String::as_str));
        assert_eq!(list["last_id"].as_str(), ids.last().map(String::as_str));
        (ids, list["has_more"].as_bool().unwrap())
    }
}

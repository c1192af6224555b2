//! Chat Completions, with what its clients send.

mod durable;
mod plain;

use crate::harness::{Answer, Server};
use axum::body::Body;
use http::header;
use serde_json::{Value, json};

const PATH: &str = "/v1/chat/completions";

/// A tool of the client's.
fn weather() -> Value {
    json!({"type": "function", "function": {
        "name": "get_weather", "description": "The weather of a place",
        "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
    }})
}

/// What makes the scripted model call it.
const ASKS: &str = "use get_weather {\"location\": \"Paris\"}";

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn body(messages: Value) -> Value {
    let mut body = json!({"model": "demo"});
    body["messages"] = messages;
    body
}

fn with(mut body: Value, more: Value) -> Value {
    if let Value::Object(more) = more {
        body.as_object_mut().unwrap().extend(more);
    }
    body
}

/// The body on the durable thread of this key.
fn on(thread: &str, messages: Value) -> Value {
    with(body(messages), json!({"metadata": {"thread": thread}}))
}

fn text_of(completion: &Value) -> &str {
    let content = &completion["choices"][0]["message"]["content"];
    content.as_str().unwrap()
}

/// The status, the code and the place of a refusal.
fn refusal(answer: &Answer) -> (u16, String, String) {
    let error = answer.json()["error"].clone();
    assert!(error["message"].is_string(), "{}", answer.text);
    let text = |member: &str| error[member].as_str().unwrap_or_default().to_owned();
    (answer.status.as_u16(), text("code"), text("param"))
}

impl Server {
    /// Asks for a completion that can't be refused.
    async fn complete(&self, body: Value) -> Value {
        let answer = self.post(PATH, body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let completion = answer.json();
        assert_eq!(completion["object"], "chat.completion");
        completion
    }

    /// The message that answers these on a durable thread, after them.
    async fn continued(&self, thread: &str, mut messages: Value, more: Value) -> Value {
        let body = with(on(thread, messages.clone()), more);
        let completion = self.complete(body).await;
        let message = completion["choices"][0]["message"].clone();
        messages.as_array_mut().unwrap().push(message);
        messages
    }

    /// The chunks of a completion; its stream ends as it must.
    async fn chunks(&self, body: Value) -> Vec<Value> {
        let answer = self.post(PATH, with(body, json!({"stream": true}))).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert_eq!(answer.headers[header::CONTENT_TYPE], "text/event-stream");
        let text = answer.text.strip_suffix("data: [DONE]\n\n").unwrap();
        let frames = text
            .split_terminator("\n\n")
            .filter(|frame| !frame.starts_with(':'));
        let data = frames.map(|frame| frame.strip_prefix("data: ").unwrap());
        data.map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }

    async fn post_on(&self, thread: &str, body: Value) -> Answer {
        let request = self
            .request("POST", PATH)
            .header(header::CONTENT_TYPE, "application/json")
            .header("loomline-thread", thread);
        self.send(request.body(Body::from(body.to_string())).unwrap())
            .await
    }

    async fn message_count(&self, thread: &str) -> usize {
        let path = format!("/v1/conversations/{thread}/items?limit=100");
        let items = self.get(&path).await.json();
        items["data"].as_array().unwrap().len()
    }
}

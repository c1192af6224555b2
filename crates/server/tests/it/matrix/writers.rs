//! A conversation, written through each protocol as its clients do it.

use super::can_write;
use crate::harness::{Served, Server};
use crate::mcp::{Client, call, connect, stateless, structured};
use axum::body::Body;
use http::header;
use rmcp::model::{CallToolRequest, ClientRequest};
use rmcp::service::{PeerRequestOptions, RequestHandle, RoleClient};
use serde_json::{Value, json};

/// A protocol through which a thread is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    Native,
    PydanticAi,
    AiSdk,
    Responses,
    ThreadsApi,
    AgUi,
    LangGraph,
    A2a,
    Mcp,
    ChatCompletions,
}

impl Writer {
    pub(super) const ALL: [Self; 10] = [
        Self::Native,
        Self::PydanticAi,
        Self::AiSdk,
        Self::Responses,
        Self::ThreadsApi,
        Self::AgUi,
        Self::LangGraph,
        Self::A2a,
        Self::Mcp,
        Self::ChatCompletions,
    ];
}

/// A server and its clients.
pub(super) struct Talk {
    pub(super) server: Server,
    pub(super) mcp: Client,
    _socket: Served,
}

/// A run that is at work, as its protocol names it.
enum Begun {
    Named(String),
    /// A stream that its client has left.
    Left,
    Call(Box<RequestHandle<RoleClient>>),
}

impl Talk {
    pub(super) async fn new(config: &str) -> Self {
        let server = Server::new(config).await;
        let socket = Served::new(server.app.clone()).await;
        let mcp = connect(&socket, None, stateless()).await;
        Self {
            server,
            mcp,
            _socket: socket,
        }
    }

    pub(super) async fn get(&self, path: &str) -> Value {
        let answer = self.server.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        answer.json()
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let answer = self.server.post(path, body).await;
        assert!(answer.status.is_success(), "{path}: {}", answer.text);
        serde_json::from_str(&answer.text).unwrap_or_else(|_| answer.text.into())
    }

    /// Opens a stream and leaves it.
    async fn open(&self, path: &str, body: &Value) -> Begun {
        let request = self.server.request("POST", path);
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let (status, _) = self
            .server
            .open(request.body(Body::from(body.to_string())).unwrap())
            .await;
        assert_eq!(status, 200, "{path}");
        Begun::Left
    }

    /// Writes the conversation to a new thread, and gives the key of the thread.
    pub(super) async fn write(&self, writer: Writer) -> String {
        if writer == Writer::PydanticAi {
            return self.import().await;
        }
        let made = self.post("/api/v1/threads", json!({})).await;
        let key = made["key"].as_str().unwrap().to_owned();
        self.say(writer, &key, "Good morning").await;
        let asked = self.say(writer, &key, "compute 2+3").await;
        self.approve(writer, &key, &asked).await;
        self.say(writer, &key, r#"find {"query":"gold"}"#).await;
        let seq = self.server.seq(&key).await;
        let begun = self.begin(writer, &key, "slow 20ms say 100000 words").await;
        let events = format!("/api/v1/threads/{key}/events?after={seq}");
        let request = self.server.request("GET", &events);
        let request = request.body(Body::empty()).unwrap();
        self.server
            .read_until(request, |text| text.matches("text-delta").count() > 8)
            .await;
        self.stop(writer, &key, begun).await;
        self.server.at_rest(&key).await;
        self.say(writer, &key, "Good night").await;
        self.server.at_rest(&key).await;
        key
    }

    /// The history of a thread, as a new thread.
    async fn import(&self) -> String {
        let first = Box::pin(self.write(Writer::Native)).await;
        let path = format!("/api/v1/threads/{first}/document?format=pydantic-ai");
        let history = self.get(&path).await;
        let made = self.post("/api/v1/import?from=pydantic-ai&agent=lead", history);
        let made = made.await;
        made["thread"]["key"].as_str().unwrap().to_owned()
    }

    /// Says something, and waits for the answer or until it waits for an approval.
    async fn say(&self, writer: Writer, key: &str, content: &str) -> Value {
        let conversation = format!("conv_{}", key.replace('-', ""));
        match writer {
            Writer::Native | Writer::PydanticAi => self.server.say(key, content).await.text.into(),
            Writer::AiSdk => self.post("/api/chat", self.chat(key, content).await).await,
            Writer::Responses => {
                let body = json!({"model": "lead", "input": content, "conversation": conversation});
                self.post("/v1/responses", body).await
            }
            Writer::ThreadsApi => {
                let run = self.begin(writer, key, content).await;
                self.server.at_rest(key).await;
                match run {
                    Begun::Named(run) => run.into(),
                    Begun::Left | Begun::Call(_) => Value::Null,
                }
            }
            Writer::AgUi => self.post("/ag-ui", self.ag_ui(key, content).await).await,
            Writer::LangGraph => {
                let input = json!({"messages": [{"role": "user", "content": content}]});
                let body = json!({"assistant_id": "lead", "input": input});
                self.server.lang_wait(key, body).await
            }
            Writer::A2a => self.server.task("/a2a", a2a(key, content)).await,
            Writer::Mcp => {
                structured(&self.mcp, "run", json!({"key": key, "content": content})).await
            }
            Writer::ChatCompletions => {
                self.post("/v1/chat/completions", completion(key, content))
                    .await
            }
        }
    }

    /// Begins an answer and does not wait for it.
    async fn begin(&self, writer: Writer, key: &str, content: &str) -> Begun {
        let conversation = key.replace('-', "");
        match writer {
            Writer::Native | Writer::PydanticAi => {
                let begun = self.server.begin(key, content).await;
                Begun::Named(begun["executionId"].as_str().unwrap().to_owned())
            }
            Writer::AiSdk => {
                let body = self.chat(key, content).await;
                self.open("/api/chat", &body).await
            }
            Writer::Responses => {
                let body = json!({"model": "lead", "input": content, "background": true,
                    "conversation": format!("conv_{conversation}")});
                named(&self.post("/v1/responses", body).await["id"])
            }
            Writer::ThreadsApi => {
                let thread = format!("/v1/threads/thread_{conversation}");
                let message = json!({"role": "user", "content": content});
                self.post(&format!("{thread}/messages"), message).await;
                let run = json!({"assistant_id": "lead"});
                named(&self.post(&format!("{thread}/runs"), run).await["id"])
            }
            Writer::AgUi => {
                let body = self.ag_ui(key, content).await;
                self.open("/ag-ui", &body).await
            }
            Writer::LangGraph => {
                let input = json!({"messages": [{"role": "user", "content": content}]});
                let body = json!({"assistant_id": "lead", "input": input});
                let path = format!("/threads/{key}/runs");
                named(&self.post(&path, body).await["run_id"])
            }
            Writer::A2a => {
                let mut params = crate::a2a::says(a2a(key, content));
                params["configuration"] = json!({"returnImmediately": true});
                let begun = self.server.rpc("/a2a", "SendMessage", params).await;
                named(&begun["result"]["task"]["id"])
            }
            Writer::Mcp => {
                let asked = call("run", json!({"key": key, "content": content}));
                let asked = ClientRequest::CallToolRequest(CallToolRequest::new(asked));
                let none = PeerRequestOptions::no_options();
                let begun = self.mcp.send_cancellable_request(asked, none).await;
                Begun::Call(Box::new(begun.unwrap()))
            }
            Writer::ChatCompletions => {
                let mut body = completion(key, content);
                body["stream"] = true.into();
                self.open("/v1/chat/completions", &body).await
            }
        }
    }

    /// Approves the call that the thread waits for.
    async fn approve(&self, writer: Writer, key: &str, asked: &Value) {
        let conversation = format!("conv_{}", key.replace('-', ""));
        let path = format!("/api/v1/threads/{key}/pending");
        let pending = self.get(&path).await;
        let call = &pending["calls"][0]["toolCallId"];
        let approved = json!({"toolCallId": call, "approved": true});
        let writer = if can_write(writer, "approved") {
            writer
        } else {
            Writer::Native
        };
        match writer {
            Writer::AiSdk => {
                let mut messages = self.get(&format!("/api/chat/{key}/messages")).await;
                let messages = messages["messages"].take();
                let mut messages = messages.as_array().unwrap().clone();
                let parts = messages.last_mut().unwrap()["parts"].as_array_mut();
                let part = parts
                    .unwrap()
                    .iter_mut()
                    .find(|it| it["toolCallId"] == *call);
                let part = part.unwrap();
                part["state"] = "approval-responded".into();
                part["approval"]["approved"] = true.into();
                let body = json!({"id": key, "trigger": "submit-message", "messages": messages});
                self.post("/api/chat", body).await;
            }
            Writer::Responses => {
                let answer =
                    json!({"type": "loomline:approval_response", "call_id": call, "approve": true});
                let body =
                    json!({"model": "lead", "input": [answer], "conversation": conversation});
                self.post("/v1/responses", body).await;
            }
            Writer::AgUi => {
                let answer = json!({"interruptId": call, "status": "resolved", "payload": {"approved": true}});
                let mut body = ag_ui(key, "approval", &json!([]));
                body["resume"] = json!([answer]);
                self.post("/ag-ui", body).await;
            }
            Writer::LangGraph => {
                let interrupt = asked["__interrupt__"][0]["id"].as_str().unwrap();
                let resume = json!({interrupt: {"type": "approve"}});
                let body = json!({"assistant_id": "lead", "command": {"resume": resume}});
                self.server.lang_wait(key, body).await;
            }
            Writer::A2a => {
                let answer = json!({"taskId": asked["id"], "messageId": format!("{key}-approval"),
                    "parts": [{"data": approved}]});
                self.server.task("/a2a", answer).await;
            }
            Writer::Mcp => {
                let answer = json!({"key": key, "answers": [approved]});
                structured(&self.mcp, "answer", answer).await;
            }
            Writer::Native | Writer::PydanticAi | Writer::ThreadsApi | Writer::ChatCompletions => {
                let path = format!("/api/v1/threads/{key}/answers");
                self.post(&path, json!({"answers": [approved], "stream": true}))
                    .await;
            }
        }
        self.server.at_rest(key).await;
    }

    /// Stops the answer that is at work.
    async fn stop(&self, writer: Writer, key: &str, begun: Begun) {
        let conversation = key.replace('-', "");
        let path = match (writer, &begun) {
            (Writer::AiSdk, _) => format!("/api/chat/{key}/stop"),
            (Writer::Responses, Begun::Named(id)) => format!("/v1/responses/{id}/cancel"),
            (Writer::ThreadsApi, Begun::Named(id)) => {
                format!("/v1/threads/thread_{conversation}/runs/{id}/cancel")
            }
            (Writer::LangGraph, Begun::Named(id)) => {
                format!("/threads/{key}/runs/{id}/cancel?wait=1")
            }
            _ => {
                assert!(
                    matches!(writer, Writer::Native | Writer::A2a | Writer::Mcp)
                        || !can_write(writer, "interrupted")
                );
                format!("/api/v1/threads/{key}/cancel")
            }
        };
        match (writer, begun) {
            (Writer::Mcp, Begun::Call(begun)) => begun.cancel(None).await.unwrap(),
            (Writer::A2a, Begun::Named(id)) => {
                self.server
                    .rpc("/a2a", "CancelTask", json!({ "id": id }))
                    .await;
            }
            _ => {
                self.post(&path, json!({})).await;
            }
        }
    }

    /// The body of `useChat` with one message more.
    async fn chat(&self, key: &str, content: &str) -> Value {
        let mut messages = self.get(&format!("/api/chat/{key}/messages")).await;
        let messages = messages["messages"].take();
        let mut messages = messages.as_array().unwrap().clone();
        let id = format!("{key}-{}", messages.len());
        messages
            .push(json!({"id": id, "role": "user", "parts": [{"type": "text", "text": content}]}));
        json!({"id": key, "trigger": "submit-message", "messages": messages})
    }

    /// The body of AG-UI's client with one message more.
    async fn ag_ui(&self, key: &str, content: &str) -> Value {
        let mut messages = self.get(&format!("/ag-ui/threads/{key}/messages")).await;
        let mut messages = messages["messages"].take().as_array().unwrap().clone();
        let id = format!("{key}-{}", messages.len());
        messages.push(json!({"id": id, "role": "user", "content": content}));
        ag_ui(key, &id, &messages.into())
    }
}

fn named(id: &Value) -> Begun {
    Begun::Named(id.as_str().unwrap().to_owned())
}

fn a2a(key: &str, content: &str) -> Value {
    json!({"contextId": key, "messageId": format!("{key}-{content}"), "parts": [{"text": content}]})
}

fn ag_ui(key: &str, run: &str, messages: &Value) -> Value {
    json!({"threadId": key, "runId": format!("{key}-{run}"), "state": {}, "context": [],
        "forwardedProps": {}, "messages": messages, "tools": []})
}

fn completion(key: &str, content: &str) -> Value {
    json!({"model": "lead", "messages": [{"role": "user", "content": content}], "metadata": {"thread": key}})
}

//! Messages piece by piece, and whole once their step is over.

use super::draft::{Draft, Kind};
use super::{RunStream, StreamMode};
use crate::langgraph::message::{base, put_response, result, step_messages};
use crate::parts::{StepResponse, ToolPart};
use serde_json::{Value, json};
use timeline::{Event, Payload};

impl RunStream {
    fn step_id(&self) -> String {
        self.step
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default()
    }

    /// Where a message comes from.
    fn origin(&self, node: &str) -> Value {
        let agent = self.agent.as_deref();
        json!({
            "run_id": self.run_id, "thread_id": self.thread_id, "assistant_id": agent, "graph_id": agent,
            "langgraph_node": node, "langgraph_step": self.iteration + 1,
        })
    }

    fn node(&self) -> &str {
        self.agent.as_deref().unwrap_or("agent")
    }

    /// A piece of the message that is being written.
    pub(super) fn piece(&mut self, content: Value, calls: &[Value]) {
        self.push(StreamMode::MessagesTuple, "messages", |this| {
            let mut piece = this.blank(content);
            piece["tool_call_chunks"] = calls.into();
            json!([piece, this.origin(this.node())])
        });
    }

    fn blank(&self, content: Value) -> Value {
        let mut piece = base("AIMessageChunk", &self.step_id(), content);
        piece["name"] = self.agent.as_deref().into();
        piece["tool_calls"] = json!([]);
        piece["invalid_tool_calls"] = json!([]);
        piece["usage_metadata"] = Value::Null;
        piece["tool_call_chunks"] = json!([]);
        piece
    }

    pub(super) fn grew(&mut self, kind: Kind, block: &str, delta: &str) {
        let is_first = !self.draft.is_told;
        let Some(content) = self.draft.grow(kind, block, delta) else {
            return;
        };
        self.piece(content, &[]);
        if is_first {
            self.push(
                StreamMode::Messages,
                "messages/metadata",
                |this| json!({ this.step_id(): {"metadata": this.origin(this.node())} }),
            );
        }
        self.grown();
    }

    /// Shows the message so far again, if it has grown enough.
    pub(super) fn grown(&mut self) {
        if let Some(content) = self.draft.shown_again() {
            self.push(StreamMode::Messages, "messages/partial", |this| {
                let mut message = base("ai", &this.step_id(), content);
                message["name"] = this.agent.as_deref().into();
                message["tool_calls"] = json!([]);
                message["invalid_tool_calls"] = json!([]);
                message["usage_metadata"] = Value::Null;
                json!([message])
            });
        }
    }

    pub(super) fn called(&mut self, call: Option<Value>) {
        if let Some(call) = call {
            self.piece("".into(), &[call]);
        }
    }

    /// The arguments of a call are complete: what was not streamed of them is said now. If others were streamed, the
    /// message is said anew when its step is over.
    pub(super) fn call_ended(&mut self, event: &Event) {
        let Some((tool, _)) = tool_of(event) else {
            return;
        };
        let call = tool.tool_call_id.as_str();
        let begun = self.draft.called(call, tool.tool_name());
        self.called(begun);
        let whole = match tool.arguments() {
            blank if blank.trim().is_empty() => "{}",
            arguments => arguments,
        };
        match self.draft.rest(call, whole) {
            Some(rest) => {
                let more = self.draft.arguments(call, rest);
                self.called(more);
            }
            None => self.draft.is_wrong = true,
        }
    }

    pub(super) fn returned(&mut self, event: &Event) {
        let Some((tool, idx)) = tool_of(event) else {
            return;
        };
        if let Some(message) = result(&tool, &self.step_id(), idx) {
            self.results.push(idx);
            self.push(StreamMode::MessagesTuple, "messages", |this| {
                json!([message, this.origin("tools")])
            });
            self.push(StreamMode::Messages, "messages/complete", |_| {
                json!([message])
            });
        }
    }

    /// The model has answered: what it says of that is the last piece.
    pub(super) fn responded(&mut self, data: Option<&Payload>) {
        let response: Option<StepResponse> = data.and_then(|data| data.read().ok());
        if let Some(response) = response.as_ref().filter(|said| !said.answers) {
            self.draft.is_told = true;
            self.push(StreamMode::MessagesTuple, "messages", |this| {
                let mut piece = this.blank("".into());
                put_response(&mut piece, response);
                json!([piece, this.origin(this.node())])
            });
        }
        self.response = response;
    }

    /// The step is over: what it has come to.
    pub(super) fn completed(&mut self) {
        let (id, parts) = (self.step_id(), std::mem::take(&mut self.parts));
        let agent = self.agent.as_deref();
        let messages = step_messages(&id, agent, self.response.as_ref(), parts.iter());
        let is_ai = |message: &Value| message["type"] == "ai";
        let (said, results): (Vec<Value>, Vec<Value>) = messages.into_iter().partition(is_ai);
        if let Some(message) = said.first() {
            if self.draft.is_wrong {
                self.took_back();
                self.push(StreamMode::MessagesTuple, "messages", |this| {
                    json!([message, this.origin(this.node())])
                });
            }
            self.push(StreamMode::Messages, "messages/complete", |_| {
                json!([message])
            });
        }
        let node = self.node().to_owned();
        for (node, messages) in [(node.as_str(), said), ("tools", results)] {
            if !messages.is_empty() {
                self.push(
                    StreamMode::Updates,
                    "updates",
                    |_| json!({ node: {"messages": messages} }),
                );
            }
        }
        self.step = None;
        self.draft = Draft::default();
        self.results.clear();
    }

    /// Nothing of a step counts any longer: its attempt died, or its run was stopped in it.
    pub(super) fn took_all_back(&mut self) {
        self.took_back();
        for idx in std::mem::take(&mut self.results) {
            self.gone(&format!("{}:{idx}", self.step_id()));
        }
    }

    /// What was said of the message counts no longer.
    fn took_back(&mut self) {
        if std::mem::take(&mut self.draft).is_told {
            self.gone(&self.step_id());
        }
    }

    fn gone(&mut self, id: &str) {
        let gone = || base("remove", id, "".into());
        self.push(StreamMode::MessagesTuple, "messages", |this| {
            json!([gone(), this.origin(this.node())])
        });
        self.push(StreamMode::Messages, "messages/complete", |_| {
            json!([gone()])
        });
    }
}

/// The call that a record is about, and the place of its part.
fn tool_of(event: &Event) -> Option<(ToolPart, u32)> {
    let (Event::PartCreated { idx, part, .. } | Event::PartUpdated { idx, part, .. }) = event
    else {
        return None;
    };
    Some((ToolPart::read(part)?, *idx))
}

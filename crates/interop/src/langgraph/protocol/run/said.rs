//! What a run says and does: its messages, and the calls of its tools.

use super::{Channel, ProtocolRun, Writing};
use crate::langgraph::message::arguments;
use crate::parts::{ToolPart, ToolState};
use serde_json::{Value, json};
use timeline::Payload;

impl ProtocolRun {
    /// A piece of a message, or a whole one.
    pub(super) fn message(&mut self, piece: &Value) {
        let id = piece["id"].as_str().unwrap_or_default();
        match piece["type"].as_str().unwrap_or_default() {
            "AIMessageChunk" => {
                let calls = piece["tool_call_chunks"].as_array();
                self.write(id, &piece["content"], calls.map_or(&[], Vec::as_slice));
                if !piece["usage_metadata"].is_null() {
                    self.usage = piece["usage_metadata"].clone();
                }
            }
            // It was said otherwise before.
            "ai" => {
                let mut calls = Vec::new();
                for key in ["tool_calls", "invalid_tool_calls"] {
                    for call in piece[key].as_array().into_iter().flatten() {
                        let args = &call["args"];
                        let args = args
                            .as_str()
                            .map_or_else(|| args.to_string(), str::to_owned);
                        let index = calls.len();
                        calls.push(json!({
                            "id": call["id"], "name": call["name"], "args": args, "index": index,
                        }));
                    }
                }
                self.write(id, &piece["content"], &calls);
                self.usage = piece["usage_metadata"].clone();
                self.finish_message();
            }
            "remove" => self.took_back(id),
            _ => {}
        }
    }

    /// A message counts no longer; it may have been whole. Results that count no longer have been told for good.
    fn took_back(&mut self, id: &str) {
        let why = "what was said does not count";
        if self.writing.as_ref().is_some_and(|it| it.id == id) {
            self.break_message(why);
        } else if self.finished.take_if(|it| it == id).is_some() {
            self.tell(id, vec![json!({"event": "error", "message": why})]);
        }
    }

    fn write(&mut self, id: &str, content: &Value, calls: &[Value]) {
        if self.writing.as_ref().is_none_or(|it| it.id != id) {
            self.finish_message();
            self.writing = Some(Writing::new(id));
            let metadata = json!({
                "run_id": self.run_id, "thread_id": self.thread_id, "langgraph_node": self.run.agent(),
            });
            let start =
                json!({"event": "message-start", "role": "ai", "id": id, "metadata": metadata});
            self.say(Channel::Messages, "messages", || start);
        }
        let mut told = Vec::new();
        if let Some(writing) = &mut self.writing {
            writing.piece(content, calls, &mut told);
        }
        self.tell(id, told);
    }

    /// What belongs to a message names it.
    fn tell(&mut self, id: &str, told: Vec<Value>) {
        for mut data in told {
            data["id"] = id.into();
            self.say(Channel::Messages, "messages", || data);
        }
    }

    pub(super) fn finish_message(&mut self) {
        let Some(writing) = self.writing.take() else {
            return;
        };
        let (id, mut told) = (writing.id.clone(), Vec::new());
        writing.finish(&mut told);
        let mut last = json!({"event": "message-finish"});
        if !self.usage.is_null() {
            last["usage"] = self.usage.take();
        }
        told.push(last);
        self.tell(&id, told);
        self.finished = Some(id);
    }

    /// What is being said counts no longer.
    pub(super) fn break_message(&mut self, why: &str) {
        if let Some(writing) = self.writing.take() {
            self.tell(&writing.id, vec![json!({"event": "error", "message": why})]);
        }
        self.usage = Value::Null;
    }

    /// Nothing comes of the tools that are at work.
    pub(super) fn break_tools(&mut self, why: &str) {
        for call in std::mem::take(&mut self.at_work) {
            let data = || json!({"event": "tool-error", "tool_call_id": call, "message": why});
            self.say(Channel::Tools, "tools", data);
        }
    }

    /// What a part says of a call. The log has a call before it is known whether it waits for somebody: its tool has started
    /// when that is marked, and else when there is a result.
    pub(super) fn tool(&mut self, tool: ToolPart) {
        let is_denied = tool
            .approval
            .as_ref()
            .is_some_and(|it| it.approved == Some(false));
        match tool.state {
            ToolState::InputAvailable
            | ToolState::ApprovalRequested
            | ToolState::ApprovalResponded => {
                self.calls.insert(tool.tool_call_id.clone(), tool);
            }
            ToolState::OutputAvailable | ToolState::OutputError if is_denied => {}
            ToolState::OutputAvailable | ToolState::OutputError => self.tool_ended(&tool),
        }
    }

    /// The tool of a call starts, as the log marks it where a crash would leave its outcome unknown.
    pub(super) fn tool_marked(&mut self, call: &str) {
        if let Some(tool) = self.calls.remove(call) {
            self.tool_started(&tool);
        }
    }

    fn tool_started(&mut self, tool: &ToolPart) {
        let call = tool.tool_call_id.as_str();
        if self.at_work.insert(call.to_owned()) {
            let input = arguments(tool).map(Value::Object);
            let input = input.unwrap_or_else(|| tool.arguments().into());
            let name = tool.tool_name();
            let data = || json!({"event": "tool-started", "tool_call_id": call, "tool_name": name, "input": input});
            self.say(Channel::Tools, "tools", data);
        }
    }

    fn tool_ended(&mut self, tool: &ToolPart) {
        self.tool_started(tool);
        let call = tool.tool_call_id.as_str();
        self.at_work.remove(call);
        let text = || tool.result_text().unwrap_or_default();
        let data = if tool.state == ToolState::OutputError {
            let mut data = json!({"event": "tool-error", "tool_call_id": call, "message": text()});
            if let Some(outcome) = &tool.outcome {
                data["code"] = outcome.as_str().into();
            }
            data
        } else {
            let output = tool.output.as_ref().map(Payload::value);
            json!({"event": "tool-finished", "tool_call_id": call, "output": output})
        };
        self.say(Channel::Tools, "tools", || data);
    }
}

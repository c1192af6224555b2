//! The lines of a conversation as each protocol shows them.

use super::writers::Talk;
use crate::mcp::structured;
use serde_json::{Value, json};

/// A protocol through which a thread is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    Native,
    PydanticAi,
    AiSdk,
    Responses,
    ThreadsApi,
    AgUi,
    LangGraph,
    A2a,
    Mcp,
}

impl Reader {
    /// All but Chat Completions, which has no request that reads a thread.
    pub(super) const ALL: [Self; 9] = [
        Self::Native,
        Self::PydanticAi,
        Self::AiSdk,
        Self::Responses,
        Self::ThreadsApi,
        Self::AgUi,
        Self::LangGraph,
        Self::A2a,
        Self::Mcp,
    ];
}

/// The lines of a thread.
pub(super) async fn read(talk: &Talk, reader: Reader, key: &str) -> Vec<String> {
    let conversation = key.replace('-', "");
    let mut lines = Lines::default();
    match reader {
        Reader::Native => {
            let path = format!("/api/v1/threads/{key}/messages");
            lines.native(&talk.get(&path).await["messages"]);
        }
        Reader::Mcp => {
            let all = json!({"key": key, "limit": 100});
            let read = structured(&talk.mcp, "read_thread", all).await;
            lines.native(&read["messages"]);
        }
        Reader::AiSdk => {
            let path = format!("/api/chat/{key}/messages");
            lines.ai_sdk(&talk.get(&path).await["messages"]);
        }
        Reader::PydanticAi => {
            let path = format!("/api/v1/threads/{key}/document?format=pydantic-ai");
            lines.pydantic_ai(&talk.get(&path).await);
        }
        Reader::Responses => {
            let path = format!(
                "/v1/conversations/conv_{conversation}/items?order=asc&limit=100&include=loomline:items"
            );
            lines.responses(&talk.get(&path).await["data"]);
        }
        Reader::ThreadsApi => {
            let thread = format!("/v1/threads/thread_{conversation}");
            let all = |list: &str| format!("{thread}/{list}?order=asc&limit=100");
            let messages = talk.get(&all("messages")).await;
            let runs = talk.get(&all("runs")).await;
            let mut calls = Vec::new();
            for run in list(&runs["data"]) {
                let path = format!("{thread}/runs/{}/steps?order=asc", text(&run["id"]));
                calls.push((text(&run["id"]).to_owned(), talk.get(&path).await));
            }
            lines.threads_api(&messages["data"], &runs["data"], &calls);
        }
        Reader::AgUi => {
            let path = format!("/ag-ui/threads/{key}/messages");
            lines.ag_ui(&talk.get(&path).await["messages"]);
        }
        Reader::LangGraph => {
            let state = talk.get(&format!("/threads/{key}/state")).await;
            lines.lang_graph(&state["values"]["messages"]);
        }
        Reader::A2a => {
            let all = json!({"contextId": key, "includeArtifacts": true, "historyLength": 100});
            let tasks = talk.server.rpc("/a2a", "ListTasks", all).await;
            lines.a2a(&tasks["result"]["tasks"]);
        }
    }
    lines.lines
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A value that a protocol has as JSON, or as a text of JSON if it is not a text itself.
fn json_of(value: &Value) -> Value {
    let text = value.as_str();
    let parsed = text.and_then(|text| serde_json::from_str(text).ok());
    parsed.unwrap_or_else(|| value.clone())
}

#[derive(Default)]
struct Lines {
    lines: Vec<String>,
    /// The names of the calls by their ids.
    names: Vec<(String, String)>,
}

impl Lines {
    fn push(&mut self, line: String) {
        self.lines.push(line);
    }

    fn said(&mut self, role: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        if role == "assistant" && text.starts_with("the loom weaves") {
            return self.push("cut: the loom weaves".into());
        }
        self.push(format!("{role}: {text}"));
    }

    /// A call, shown once.
    fn call(&mut self, id: &Value, name: &str, arguments: &Value) {
        if self.name(id).is_empty() {
            self.names.push((text(id).to_owned(), name.to_owned()));
            self.push(format!("call: {name} {}", json_of(arguments)));
        }
    }

    fn name(&self, id: &Value) -> String {
        let found = self.names.iter().find(|(of, _)| of == text(id));
        found.map(|(_, name)| name.clone()).unwrap_or_default()
    }

    fn approved(&mut self, id: &Value) {
        let name = self.name(id);
        self.push(format!("approved: {name}"));
    }

    fn result(&mut self, id: &Value, value: &Value) {
        let name = self.name(id);
        self.push(format!("result: {name} {}", json_of(value)));
    }

    fn native(&mut self, messages: &Value) {
        for item in list(messages) {
            for part in list(&item["content"]) {
                let kind = text(&part["type"]);
                match kind {
                    "input_text" | "output_text" => {
                        self.said(text(&item["role"]), text(&part["text"]));
                    }
                    "loomline-answer" => self.approved(&part["toolCallId"]),
                    "data-tp-thread_end" => {}
                    "data-tp-thread_spawn" => self.push("subagent: find".into()),
                    _ => {
                        let (id, name) = (&part["toolCallId"], kind.strip_prefix("tool-"));
                        self.call(id, name.expect(kind), &part["input"]);
                        self.later_result(part);
                    }
                }
            }
            if item["interruption"]["reason"] == "user_cancelled" {
                self.push("interrupted".into());
            }
            self.flush();
        }
    }

    /// The result of a part, after the event of its sub-agent, which follows it.
    fn later_result(&mut self, part: &Value) {
        if part.get("output").is_some() {
            self.result(&part["toolCallId"], &part["output"]);
        }
    }

    /// Puts the sub-agent before the result that it gave.
    fn flush(&mut self) {
        let subagent = self
            .lines
            .iter()
            .position(|line| line.starts_with("subagent"));
        if let Some(at) = subagent
            && let Some(before) = at.checked_sub(1)
            && self.lines[before].starts_with("result: find")
        {
            self.lines.swap(before, at);
        }
    }

    fn ai_sdk(&mut self, messages: &Value) {
        for message in list(messages) {
            let role = text(&message["role"]);
            for part in list(&message["parts"]) {
                let kind = text(&part["type"]);
                match kind {
                    "step-start" | "data-tp-thread_end" => {}
                    "data-tp-thread_spawn" => self.push("subagent: find".into()),
                    "text" => {
                        self.said(role, text(&part["text"]));
                        if part["state"] == "streaming" {
                            self.push("interrupted".into());
                        }
                    }
                    _ => {
                        let (id, name) = (&part["toolCallId"], kind.strip_prefix("tool-"));
                        self.call(id, name.expect(kind), &part["input"]);
                        if part["approval"]["approved"] == true {
                            self.approved(id);
                        }
                        self.later_result(part);
                    }
                }
            }
            self.flush();
        }
    }

    fn pydantic_ai(&mut self, messages: &Value) {
        for message in list(messages) {
            for part in list(&message["parts"]) {
                let id = &part["tool_call_id"];
                match text(&part["part_kind"]) {
                    "user-prompt" => self.said("user", text(&part["content"])),
                    "text" => self.said("assistant", text(&part["content"])),
                    "tool-call" => self.call(id, text(&part["tool_name"]), &part["args"]),
                    "tool-return" => self.result(id, &part["content"]),
                    other => self.push(other.to_owned()),
                }
            }
        }
    }

    fn responses(&mut self, items: &Value) {
        for item in list(items) {
            let id = &item["call_id"];
            match text(&item["type"]) {
                "message" => {
                    for part in list(&item["content"]) {
                        self.said(text(&item["role"]), text(&part["text"]));
                    }
                    if item["status"] == "incomplete" {
                        self.push("interrupted".into());
                    }
                }
                "function_call" => self.call(id, text(&item["name"]), &item["arguments"]),
                "function_call_output" => self.result(id, &item["output"]),
                "loomline:approval_response" => self.approved(id),
                "loomline:event" if item["name"] == "thread_spawn" => {
                    self.push("subagent: find".into());
                }
                "loomline:approval_request" | "loomline:event" => {}
                other => self.push(other.to_owned()),
            }
        }
    }

    fn threads_api(&mut self, messages: &Value, runs: &Value, steps: &[(String, Value)]) {
        for message in list(messages) {
            let run = steps.iter().find(|(run, _)| message["run_id"] == **run);
            let calls = run
                .map(|(_, steps)| list(&steps["data"]))
                .unwrap_or_default();
            let calls = calls
                .iter()
                .flat_map(|step| list(&step["step_details"]["tool_calls"]));
            for call in calls {
                let function = &call["function"];
                self.call(&call["id"], text(&function["name"]), &function["arguments"]);
                self.result(&call["id"], &function["output"]);
            }
            for part in list(&message["content"]) {
                self.said(text(&message["role"]), text(&part["text"]["value"]));
            }
            let run = list(runs).iter().find(|run| run["id"] == message["run_id"]);
            if run.is_some_and(|run| run["status"] == "cancelled") {
                self.push("interrupted".into());
            }
        }
    }

    fn ag_ui(&mut self, messages: &Value) {
        for message in list(messages) {
            match text(&message["role"]) {
                "tool" => self.result(&message["toolCallId"], &message["content"]),
                role => self.said(role, text(&message["content"])),
            }
            for call in list(&message["toolCalls"]) {
                let function = &call["function"];
                self.call(&call["id"], text(&function["name"]), &function["arguments"]);
            }
        }
    }

    fn lang_graph(&mut self, messages: &Value) {
        for message in list(messages) {
            match text(&message["type"]) {
                "human" => self.said("user", text(&message["content"])),
                "ai" => self.said("assistant", text(&message["content"])),
                "tool" => self.result(&message["tool_call_id"], &message["content"]),
                other => self.push(other.to_owned()),
            }
            for call in list(&message["tool_calls"]) {
                self.call(&call["id"], text(&call["name"]), &call["args"]);
            }
        }
    }

    fn a2a(&mut self, tasks: &Value) {
        for task in list(tasks).iter().rev() {
            for message in list(&task["history"]) {
                for part in list(&message["parts"]) {
                    let role = match text(&message["role"]) {
                        "ROLE_USER" => "user",
                        _ => "assistant",
                    };
                    if part["data"]["approved"] == true {
                        self.push("approved: compute".into());
                    }
                    self.said(role, text(&part["text"]));
                }
            }
            for artifact in list(&task["artifacts"]) {
                for part in list(&artifact["parts"]) {
                    self.said("assistant", text(&part["text"]));
                }
            }
            if task["status"]["state"] == "TASK_STATE_CANCELED" {
                self.push("interrupted".into());
            }
        }
    }
}

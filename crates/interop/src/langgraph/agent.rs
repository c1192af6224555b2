//! Agents, as assistants of `LangGraph`'s and as agents of the Agent Protocol.

use super::error::RequestError;
use super::fields::{Fields, MAX_ID};
use super::request::ThreadSearch;
use super::select::Select;
use super::thread::instant;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// A configured agent. Its name is also its id and the id of its graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// The model's name.
    pub model: String,
    /// The names of its tools.
    pub tools: Vec<String>,
    /// Whether it is the default agent.
    pub is_default: bool,
}

impl Agent {
    fn metadata(&self) -> Value {
        json!({
            "created_by": "system", "model": self.model, "tools": self.tools, "is_default": self.is_default,
        })
    }

    /// `LangGraph`'s object. A configuration has no instant.
    pub fn assistant(&self) -> Value {
        let at = instant(Timestamp::UNIX_EPOCH);
        json!({
            "assistant_id": self.name, "graph_id": self.name, "name": self.name, "description": null,
            "config": {}, "context": {}, "metadata": self.metadata(), "version": 1,
            "created_at": at, "updated_at": at,
        })
    }

    /// The Agent Protocol's object.
    pub fn agent(&self) -> Value {
        json!({
            "agent_id": self.name, "name": self.name, "description": format!("Answers with {}.", self.model),
            "metadata": self.metadata(), "capabilities": {"ap.io.messages": true, "ap.io.streaming": true},
        })
    }

    /// The agent's JSON Schemas for input, output and state. `key` is the protocol's name for the
    /// agent's id.
    pub fn schemas(&self, key: &str) -> Value {
        let messages = json!({"type": "array", "items": {"type": "object", "properties": {
            "type": {"type": "string", "enum": ["human", "ai", "system", "tool"]},
            "content": {"anyOf": [{"type": "string"}, {"type": "array"}]},
            "id": {"type": "string"},
        }, "required": ["content"]}});
        let state = json!({
            "type": "object", "properties": {"messages": messages}, "required": ["messages"],
        });
        let config = json!({"type": "object", "properties": {}});
        let mut schemas = json!({
            "input_schema": state, "output_schema": state, "state_schema": state,
            "config_schema": config, "context_schema": config,
        });
        schemas[key] = self.name.as_str().into();
        schemas
    }

    /// The graph: the agent's node, and one for its tools if it has any.
    pub fn graph(&self) -> Value {
        let node = |id: &str, name: &str| json!({"id": id, "type": "runnable", "data": {"id": [name], "name": name}});
        let mark = |id: &str| json!({"id": id, "type": "schema", "data": id});
        let edge = |from: &str, to: &str, conditional: bool| {
            let mut edge = json!({"source": from, "target": to});
            if conditional {
                edge["conditional"] = true.into();
            }
            edge
        };
        let mut nodes = vec![
            mark("__start__"),
            node(&self.name, &self.name),
            mark("__end__"),
        ];
        let has_tools = !self.tools.is_empty();
        let mut edges = vec![
            edge("__start__", &self.name, false),
            edge(&self.name, "__end__", has_tools),
        ];
        if has_tools {
            nodes.push(node("tools", "tools"));
            edges.push(edge(&self.name, "tools", true));
            edges.push(edge("tools", &self.name, false));
        }
        json!({"nodes": nodes, "edges": edges})
    }
}

/// Agents that are looked for.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentSearch {
    metadata: Map<String, Value>,
    graph: Option<String>,
    name: Option<String>,
    /// Maximum number of agents.
    pub limit: usize,
    /// Number of agents to skip.
    pub offset: usize,
    /// Which members are shown.
    pub select: Select,
}

impl AgentSearch {
    /// The fields that a body may have.
    pub const KNOWN: &'static [&'static str] = &[
        "metadata",
        "graph_id",
        "name",
        "limit",
        "offset",
        "sort_by",
        "sort_order",
        "select",
    ];

    /// Reads a body. All agents are as old as each other, so sorting them changes nothing.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let fields = Fields::closed(body, "", Self::KNOWN)?;
        let text = |key: &str| Ok::<_, RequestError>(fields.text(key, MAX_ID)?.map(str::to_owned));
        let sorts = [
            "assistant_id",
            "graph_id",
            "name",
            "created_at",
            "updated_at",
        ];
        fields.word("sort_by", &sorts.map(|name| (name, ())))?;
        fields.word("sort_order", &[("asc", ()), ("desc", ())])?;
        let (limit, offset) = ThreadSearch::bounds(&fields)?;
        Ok(Self {
            metadata: fields.noted("metadata")?.unwrap_or_default(),
            graph: text("graph_id")?,
            name: text("name")?,
            limit,
            offset,
            select: Select::read(&fields)?,
        })
    }

    /// Whether the search matches an agent.
    pub fn finds(&self, agent: &Agent) -> bool {
        let own = agent.metadata();
        let named = |wanted: &Option<String>| wanted.as_ref().is_none_or(|it| *it == agent.name);
        named(&self.graph)
            && self
                .name
                .as_ref()
                .is_none_or(|part| agent.name.contains(part.as_str()))
            && self
                .metadata
                .iter()
                .all(|(key, value)| own.get(key) == Some(value))
    }
}

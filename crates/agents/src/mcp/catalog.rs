//! The tools of a server, checked.

use super::answer::length;
use super::config::McpServer;
use super::error::McpError;
use super::text::clipped;
use crate::schema::Schema;
use rmcp::model::{JsonObject, Tool as Listed, ToolAnnotations};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use upp::Effect;

/// Maximum length of a tool's name in the protocol, in bytes.
const NAME_BYTES: usize = 128;

/// Maximum size of a tool's description and input schema, in bytes: each request to the model has
/// them.
const TOOL_BYTES: usize = 64 << 10;

/// A tool that a server lists and that can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedTool {
    /// The server's name of the tool or, without a name, its position in the list, such as `#3`.
    pub name: String,
    /// Why it can't be used.
    pub cause: String,
}

/// A tool in the server's list, or why it can't be used.
pub(super) type Entry = Result<Listed, RejectedTool>;

/// The tools of a server that an agent may use, in the server's order.
#[derive(Default)]
pub(super) struct Catalog {
    pub(super) tools: Vec<Offered>,
    pub(super) rejected: Vec<RejectedTool>,
    /// The accepted tools, as the server listed them.
    pub(super) listed: Vec<Listed>,
}

/// One of them.
pub(super) struct Offered {
    /// The server's name of it.
    pub(super) name: Arc<str>,
    /// The name the model sees.
    pub(super) shown: Arc<str>,
    pub(super) description: String,
    pub(super) parameters: Arc<Value>,
    pub(super) metadata: Map<String, Value>,
    pub(super) effect: Effect,
    pub(super) output: Option<Schema>,
}

impl Catalog {
    /// Accepts the tools that the server's allow and deny lists permit, and rejects unusable ones.
    pub(super) fn new(server: &McpServer, entries: Vec<Entry>) -> Result<Self, McpError> {
        let mut catalog = Self::default();
        let mut names = BTreeSet::new();
        for entry in entries {
            let name = match &entry {
                Ok(listed) => listed.name.as_ref(),
                Err(rejected) => rejected.name.as_str(),
            };
            if !server.takes(name) {
                continue;
            }
            if catalog.tools.len() + catalog.rejected.len() >= server.limits.max_tools {
                return Err(McpError::TooManyTools {
                    server: Arc::clone(&server.name),
                    limit: server.limits.max_tools,
                });
            }
            let checked = entry.and_then(|listed| {
                let offered = offered(server, &listed, &mut names)?;
                Ok((offered, listed))
            });
            match checked {
                Ok((offered, listed)) => {
                    catalog.tools.push(offered);
                    catalog.listed.push(listed);
                }
                Err(rejected) => catalog.reject(server, rejected),
            }
        }
        catalog.check_allowed(server)?;
        Ok(catalog)
    }

    fn reject(&mut self, server: &McpServer, rejected: RejectedTool) {
        tracing::warn!(
            server = %server.name,
            tool = rejected.name,
            cause = rejected.cause,
            "a tool of an MCP server can't be used"
        );
        self.rejected.push(rejected);
    }

    /// Fails if a tool on the allow list is missing or rejected.
    fn check_allowed(&self, server: &McpServer) -> Result<(), McpError> {
        let allowed = server.allow.iter().flatten();
        for name in allowed.filter(|name| !server.deny.contains(*name)) {
            if self.tools.iter().any(|tool| *tool.name == **name) {
                continue;
            }
            let rejected = self.rejected.iter().find(|tool| tool.name == *name);
            return Err(McpError::MissingTool {
                server: Arc::clone(&server.name),
                tool: name.clone(),
                cause: rejected.map_or_else(
                    || "it does not list it".to_owned(),
                    |tool| tool.cause.clone(),
                ),
            });
        }
        Ok(())
    }
}

/// Parses one tool of a list. One invalid tool does not invalidate the others.
pub(super) fn entry(index: usize, value: Value) -> Entry {
    let name = value.get("name").and_then(Value::as_str);
    let name = name.map_or_else(|| format!("#{index}"), |name| clipped(name, NAME_BYTES));
    serde_json::from_value(value).map_err(|error| RejectedTool {
        name,
        cause: format!("it is no tool of the protocol: {error}"),
    })
}

fn offered(
    server: &McpServer,
    listed: &Listed,
    names: &mut BTreeSet<String>,
) -> Result<Offered, RejectedTool> {
    let rejected = |cause: String| RejectedTool {
        name: clipped(&listed.name, NAME_BYTES),
        cause,
    };
    let shown = format!("{}{}", server.prefix, listed.name);
    if !is_name(&listed.name) || !is_name(&shown) {
        return Err(rejected(format!(
            "its name is not 1 to {NAME_BYTES} letters, digits, '_', '-', '.' and '/'"
        )));
    }
    if !names.insert(listed.name.to_string()) {
        return Err(rejected("the server lists two tools of this name".into()));
    }
    let n_bytes = length(&(&listed.description, &listed.input_schema));
    if n_bytes > TOOL_BYTES {
        return Err(rejected(format!(
            "its description and input schema are {n_bytes} bytes long; at most {TOOL_BYTES} are taken"
        )));
    }
    let parameters = Value::Object(listed.input_schema.as_ref().clone());
    compiled(&parameters)
        .map_err(|cause| rejected(format!("its input schema is unusable: {cause}")))?;
    if parameters.get("type").is_some_and(|kind| kind != "object") {
        return Err(rejected("its input schema asks for no object".into()));
    }
    let output = listed.output_schema.as_deref().map(output).transpose();
    let output =
        output.map_err(|cause| rejected(format!("its output schema is unusable: {cause}")))?;
    let description = listed.description.as_deref().or(listed.title.as_deref());
    Ok(Offered {
        name: listed.name.as_ref().into(),
        shown: shown.into(),
        description: description.unwrap_or_default().to_owned(),
        parameters: Arc::new(parameters),
        metadata: metadata(server, listed),
        effect: effect(server, &listed.name, listed.annotations.as_ref()),
        output,
    })
}

/// Whether the name is allowed by the protocol. Model providers refuse other names, which may also
/// be an attack.
fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    !name.is_empty() && name.len() <= NAME_BYTES && name.bytes().all(fits)
}

/// Checks and compiles a schema.
fn compiled(schema: &Value) -> Result<Schema, String> {
    Schema::compile(schema).map_err(|error| clipped(&error.to_string(), 256))
}

fn output(schema: &JsonObject) -> Result<Schema, String> {
    compiled(&Value::Object(schema.clone()))
}

fn effect(server: &McpServer, tool: &str, annotations: Option<&ToolAnnotations>) -> Effect {
    if let Some(effect) = server.effects.get(tool) {
        return *effect;
    }
    let hints = annotations.filter(|_| server.trust_annotations);
    if hints.is_some_and(|hints| hints.read_only_hint == Some(true)) {
        Effect::Pure
    } else if hints.is_some_and(|hints| hints.idempotent_hint == Some(true)) {
        Effect::Idempotent
    } else {
        server.default_effect
    }
}

/// `{"mcp": {"server", "tool", "title", "annotations"}}`: for user interfaces, not for models.
fn metadata(server: &McpServer, listed: &Listed) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("server".to_owned(), json!(&*server.name));
    fields.insert("tool".to_owned(), json!(listed.name));
    let annotated = listed
        .annotations
        .as_ref()
        .and_then(|hints| hints.title.as_ref());
    if let Some(title) = listed.title.as_ref().or(annotated) {
        fields.insert("title".to_owned(), json!(title));
    }
    if let Some(hints) = &listed.annotations {
        fields.insert("annotations".to_owned(), json!(hints));
    }
    Map::from_iter([("mcp".to_owned(), Value::Object(fields))])
}

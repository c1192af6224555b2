//! Requests in the Responses format.

use super::assistant::Sending;
use super::{Dialect, Responses, strict};
use crate::codec::{CallIdForm, CallIds, Conversation, Encoded, tool_result_text};
use crate::error::Error;
use crate::message::Message;
use crate::model::{Request, ToolChoice};
use crate::tool::{Tool, ToolCallId, ToolResult};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

const ENCRYPTED: &str = "reasoning.encrypted_content";

/// Prefixes of the names of `OpenAI` models that refuse requests for encrypted reasoning.
const NEVER_REASON: [&str; 5] = ["gpt-3", "gpt-4", "chatgpt", "davinci", "babbage"];

/// The body of a streaming request. Params come first; fields of the protocol overwrite them.
pub(super) fn encode(codec: &Responses, request: &Request) -> Result<Encoded, Error> {
    let mut head: Map<String, Value> = (*request.params).clone();
    head.remove("input");
    let mut set = |key: &str, value: Value| drop(head.insert(key.to_owned(), value));
    set("model", Value::from(codec.model_id.as_str()));
    set("stream", Value::Bool(true));
    if let Some(system) = system(codec, request) {
        set("instructions", Value::from(system));
    }
    if let Some(store) = default_store(&request.params) {
        set("store", Value::Bool(store));
    }
    if let Some(include) = codec.include(&request.params) {
        set("include", include);
    }
    if let Some(tools) = codec.tools(request) {
        set("tools", tools);
    }
    if let Some(schema) = &request.structure {
        // The caller's other fields, such as the verbosity, stay.
        let mut text = match request.params.get("text") {
            Some(Value::Object(text)) => text.clone(),
            _ => Map::new(),
        };
        text.insert("format".to_owned(), format(schema));
        set("text", Value::Object(text));
    }
    // It may differ from request to request although the conversation only grew.
    let mut tail = Map::new();
    let own = head.shift_remove("tool_choice");
    let native = request.params.contains_key("tools");
    let asked = codec.tool_choice(request);
    let asked = asked.filter(|_| native || !request.tools.is_empty());
    if let Some(choice) = asked.or(own) {
        tail.insert("tool_choice".to_owned(), choice);
    }
    let conversation = codec.conversation(request)?;
    Ok(conversation.encode_then(&head, "input", &tail))
}

/// Whether the provider stores the answers to requests with these params.
pub(super) fn stores(params: &Map<String, Value>) -> bool {
    default_store(params)
        .or_else(|| params.get("store").and_then(Value::as_bool))
        .unwrap_or(true)
}

/// The default of `store`; `None` if params set it. Background responses must be stored.
fn default_store(params: &Map<String, Value>) -> Option<bool> {
    let background = params.get("background") == Some(&Value::Bool(true));
    (!background && !params.contains_key("store")).then_some(false)
}

fn system<'a>(codec: &Responses, request: &'a Request) -> Option<&'a str> {
    request
        .system
        .as_deref()
        .filter(|_| codec.dialect != Dialect::Xai)
}

impl Responses {
    fn include(&self, params: &Map<String, Value>) -> Option<Value> {
        let asked = self.encrypted_reasoning.unwrap_or_else(|| {
            params.get("reasoning").is_some_and(Value::is_object) || self.may_reason()
        });
        let mut include = match params.get("include") {
            _ if !asked => return None,
            None => Vec::new(),
            Some(Value::Array(include)) => include.clone(),
            Some(_) => return None,
        };
        if !include.iter().any(|value| value == ENCRYPTED) {
            include.push(Value::from(ENCRYPTED));
        }
        Some(Value::Array(include))
    }

    /// Whether the model may reason, judged by its name. Gateways put the vendor before the name.
    fn may_reason(&self) -> bool {
        let name = self.model_id.strip_prefix("ft:").unwrap_or(&self.model_id);
        let name = name.rsplit('/').next().unwrap_or(name);
        let refuses = NEVER_REASON.iter().any(|known| name.starts_with(known));
        let chats = name.starts_with("gpt-") && name.contains("-chat");
        !refuses && !chats
    }

    fn tools(&self, request: &Request) -> Option<Value> {
        let own = request.tools.iter().map(|tool| self.tool(tool));
        match request.params.get("tools") {
            Some(Value::Array(native)) => {
                let tools: Vec<Value> = own.chain(native.iter().cloned()).collect();
                Some(Value::Array(tools)).filter(|_| !request.tools.is_empty())
            }
            _ => (!request.tools.is_empty()).then(|| own.collect()),
        }
    }

    fn tool(&self, tool: &Tool) -> Value {
        let mut fields = Map::new();
        let extras = [self.provider.as_str(), "openai"]
            .iter()
            .find_map(|namespace| tool.metadata.get(*namespace)?.as_object());
        let custom = is_custom(extras);
        let kind = if custom { "custom" } else { "function" };
        fields.insert("type".into(), Value::from(kind));
        fields.insert("name".into(), Value::from(tool.name.as_str()));
        fields.insert("description".into(), Value::from(tool.description.as_str()));
        if !custom {
            fields.insert("parameters".into(), (*tool.parameters).clone());
            if self.dialect != Dialect::Xai {
                fields.insert("strict".into(), Value::Bool(false));
            }
        }
        for (key, value) in extras.into_iter().flatten() {
            if !matches!(key.as_str(), "type" | "name" | "description" | "parameters") {
                fields.insert(key.clone(), value.clone());
            }
        }
        Value::Object(fields)
    }

    fn tool_choice(&self, request: &Request) -> Option<Value> {
        match &request.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::None => Some(json!("none")),
            ToolChoice::Required => Some(json!("required")),
            ToolChoice::Tool(name) => {
                let tool = request.tools.iter().find(|tool| tool.name == *name);
                let kind = tool.map(|tool| self.tool(tool));
                let kind = kind.as_ref().and_then(|tool| tool.get("type")?.as_str());
                Some(json!({"type": kind.unwrap_or("function"), "name": name}))
            }
        }
    }

    fn conversation(&self, request: &Request) -> Result<Conversation, Error> {
        let mut conversation = Conversation::default();
        if let Some(system) = &request.system
            && self.dialect == Dialect::Xai
        {
            let item = json!({"type": "message", "role": "system", "content": &**system});
            conversation.push(&item);
        }
        let mut sending = Sending {
            codec: self,
            stored: stores(&request.params),
            ids: CallIds::new(CallIdForm::UpTo64),
            custom: BTreeSet::new(),
        };
        for message in &request.messages {
            match message {
                Message::User(user) => conversation.push(&self.user(user)?),
                Message::Assistant(assistant) => sending.assistant(assistant, &mut conversation),
                Message::ToolResult(answered) => {
                    for result in &answered.results {
                        conversation.push(&sending.result(result));
                    }
                }
            }
        }
        Ok(conversation)
    }
}

impl Sending<'_> {
    /// The result of a call. The format has no flag for a failure; only the text shows it.
    fn result(&self, result: &ToolResult) -> Value {
        let id = self.ids.result(&result.tool_call_id);
        let kind = if self.is_custom(&result.tool_call_id) {
            "custom_tool_call_output"
        } else {
            "function_call_output"
        };
        let mut item = Map::new();
        item.insert("type".into(), Value::from(kind));
        if self.codec.dialect == Dialect::OpenRouter {
            item.insert("id".into(), Value::from(format!("fco_{id}")));
        }
        item.insert("call_id".into(), Value::from(id));
        item.insert("output".into(), Value::from(tool_result_text(result)));
        Value::Object(item)
    }

    fn is_custom(&self, id: &ToolCallId) -> bool {
        self.custom.contains(id)
    }
}

/// Whether a tool has free text as input: its metadata has the type `custom`.
fn is_custom(extras: Option<&Map<String, Value>>) -> bool {
    extras.and_then(|extras| extras.get("type")) == Some(&json!("custom"))
}

fn format(schema: &Value) -> Value {
    let mut format = Map::new();
    format.insert("type".into(), json!("json_schema"));
    format.insert("name".into(), json!("json_response"));
    if let Some(description) = schema.get("description") {
        format.insert("description".into(), description.clone());
    }
    format.insert("schema".into(), schema.clone());
    format.insert("strict".into(), Value::Bool(strict::qualifies(schema)));
    Value::Object(format)
}

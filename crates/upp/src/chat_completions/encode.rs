//! Requests in the Chat Completions format.

use super::{ChatCompletions, ReasoningForm};
use crate::codec::{CallIds, Conversation, Encoded, is_native, items, tool_result_text};
use crate::content::{AssistantContent, UserContent};
use crate::error::Error;
use crate::message::{AssistantMessage, Message, Speaker, UserMessage};
use crate::model::{Request, ToolChoice};
use crate::responses::strict;
use crate::tool::{Tool, ToolResult};
use serde_json::{Map, Value, json};

/// The body of a streaming request. Params come first; fields of the protocol overwrite them.
/// Native tools among the params follow ours. `stream_options` that are null are not sent, for hosts
/// that refuse them.
pub(super) fn encode(codec: &ChatCompletions, request: &Request) -> Result<Encoded, Error> {
    let mut head: Map<String, Value> = (*request.params).clone();
    head.remove("messages");
    let mut tail = Map::new();
    let tool_choice = head.remove("tool_choice");
    let native_tools = head.remove("tools");
    head.insert("model".into(), Value::from(&*codec.model_id));
    head.insert("stream".into(), Value::Bool(true));
    let native = native_tools
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .cloned();
    let tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| codec.tool(tool))
        .chain(native)
        .collect();
    if tools.is_empty() {
        // Refused where there are none.
        head.shift_remove("parallel_tool_calls");
    } else {
        head.insert("tools".into(), Value::Array(tools));
        if let Some(choice) = choice(&request.tool_choice).or(tool_choice) {
            tail.insert("tool_choice".into(), choice);
        }
    }
    codec.dialect.limit_once(&mut head);
    if let Some(schema) = &request.structure {
        head.insert("response_format".into(), codec.response_format(schema));
    }
    let options = head.get("stream_options");
    if options.is_some_and(Value::is_null) {
        head.shift_remove("stream_options");
    } else if options.is_some() || codec.dialect.asks_usage {
        // Other stream options of the caller stay.
        let options = head
            .entry("stream_options")
            .or_insert_with(|| Value::Object(Map::new()));
        if !options.is_object() {
            *options = Value::Object(Map::new());
        }
        if let Some(options) = options.as_object_mut() {
            options.insert("include_usage".to_owned(), Value::Bool(true));
        }
    }
    let conversation = codec.conversation(request)?;
    Ok(conversation.encode_then(&head, "messages", &tail))
}

fn choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!("none")),
        ToolChoice::Required => Some(json!("required")),
        ToolChoice::Tool(name) => Some(json!({"type": "function", "function": {"name": name}})),
    }
}

impl ChatCompletions {
    fn conversation(&self, request: &Request) -> Result<Conversation, Error> {
        let mut conversation = Conversation::default();
        if let Some(system) = &request.system {
            conversation.push(&json!({"role": "system", "content": &**system}));
        }
        let mut ids = CallIds::new(self.dialect.call_ids);
        for message in &request.messages {
            match message {
                Message::User(user) => conversation.push(&self.user(user)?),
                Message::Assistant(assistant) => {
                    let message = self.assistant(assistant, &mut ids, &mut conversation);
                    if let Some(message) = message {
                        conversation.push(&message);
                    }
                }
                Message::ToolResult(answered) => {
                    for result in &answered.results {
                        conversation.push(&tool_result(result, &ids));
                    }
                }
            }
        }
        Ok(conversation)
    }

    fn user(&self, user: &UserMessage) -> Result<Value, Error> {
        let provider = &*self.dialect.provider;
        let marked = user
            .metadata
            .get(provider)
            .and_then(|of| of.get("cache_control"));
        // The vendors of this format have all kept the older word for instructions.
        let role = match user.explicit_speaker() {
            Speaker::User => "user",
            Speaker::System | Speaker::Developer => "system",
        };
        if let ([UserContent::Text { text }], None) = (user.content.as_slice(), marked) {
            return Ok(json!({"role": role, "content": text}));
        }
        let parts = user.content.iter().map(|block| self.part(block));
        let mut parts: Vec<Value> = parts.collect::<Result<_, _>>()?;
        let last = parts.iter_mut().rfind(|part| part["type"] == "text");
        if let (Some(cache), Some(Value::Object(last))) = (marked, last) {
            last.insert("cache_control".into(), cache.clone());
        }
        Ok(json!({"role": role, "content": parts}))
    }

    /// A message of the model; `None` if nothing of it can be sent.
    fn assistant(
        &self,
        assistant: &AssistantMessage,
        ids: &mut CallIds,
        conversation: &mut Conversation,
    ) -> Option<Value> {
        let provider = &*self.dialect.provider;
        // A provider's other formats keep theirs in the same place.
        let native = is_native(assistant, provider, &self.model_id)
            && assistant
                .metadata
                .get(provider)
                .is_some_and(|fields| fields.get("finish_reason").is_some());
        if !native {
            items::omit_foreign(assistant, conversation);
        }
        for what in assistant.content.iter().filter_map(media_of) {
            conversation.omit(assistant, what, NO_MEDIA);
        }
        let calls: Vec<Value> = assistant
            .tool_calls
            .iter()
            .map(|call| {
                // The provider's own text, so that what it wrote comes back unchanged.
                let text = call.arguments.sent();
                let arguments = if text.is_empty() { "{}" } else { &*text };
                json!({
                    "id": ids.call(&call.tool_call_id, native),
                    "type": "function",
                    "function": {"name": call.tool_name, "arguments": arguments},
                })
            })
            .collect();
        let mut message = Map::new();
        message.insert("role".into(), json!("assistant"));
        // The format has one text; what was one is one again.
        let text = if native {
            texts(assistant).concat()
        } else {
            assistant.joined_text()
        };
        let silent = text.is_empty();
        let content = if silent && !calls.is_empty() {
            Value::Null
        } else {
            Value::String(text)
        };
        message.insert("content".into(), content);
        self.reasoning(assistant, native, &mut message, conversation);
        if silent && calls.is_empty() && message.len() == 2 {
            return None;
        }
        if !calls.is_empty() {
            if self.dialect.reasoning == ReasoningForm::Content {
                // A call without any is refused while the model thinks, and so is an empty one.
                message.entry("reasoning_content").or_insert(json!(" "));
            }
            message.insert("tool_calls".into(), Value::Array(calls));
        }
        Some(Value::Object(message))
    }

    fn reasoning(
        &self,
        assistant: &AssistantMessage,
        native: bool,
        message: &mut Map<String, Value>,
        conversation: &mut Conversation,
    ) {
        let provider = &*self.dialect.provider;
        let fields = assistant.metadata.get(provider);
        let details = fields.and_then(|fields| fields.get("reasoning_details"));
        let thought = thoughts(assistant).concat();
        if thought.is_empty() && details.is_none() {
            return;
        }
        if !native {
            conversation.omit(assistant, "reasoning", "it is another model's");
            return;
        }
        let (key, value) = match (self.dialect.reasoning, details) {
            (ReasoningForm::Content, _) => ("reasoning_content", Value::String(thought)),
            (ReasoningForm::Details, Some(details)) => ("reasoning_details", details.clone()),
            (ReasoningForm::Text, _) | (ReasoningForm::Details, None) => {
                ("reasoning", Value::String(thought))
            }
            (ReasoningForm::Shown, _) => {
                let why = "the provider does not take reasoning back";
                conversation.omit(assistant, "reasoning", why);
                return;
            }
        };
        message.insert(key.into(), value);
    }

    fn tool(&self, tool: &Tool) -> Value {
        let mut function = Map::new();
        function.insert("name".into(), Value::from(tool.name.as_str()));
        function.insert("description".into(), Value::from(tool.description.as_str()));
        function.insert("parameters".into(), (*tool.parameters).clone());
        let strict = [&*self.dialect.provider, "openai"]
            .iter()
            .find_map(|namespace| tool.metadata.get(*namespace)?.get("strict"));
        if let Some(strict) = strict {
            function.insert("strict".into(), strict.clone());
        }
        json!({"type": "function", "function": function})
    }

    fn response_format(&self, schema: &Value) -> Value {
        let mut format = Map::new();
        format.insert("name".into(), json!("json_response"));
        if let Some(description) = schema.get("description") {
            format.insert("description".into(), description.clone());
        }
        format.insert("schema".into(), schema.clone());
        // Any other schema would be refused.
        if self.dialect.strict && strict::qualifies(schema) {
            format.insert("strict".into(), json!(true));
        }
        json!({"type": "json_schema", "json_schema": format})
    }
}

fn texts<'a>(assistant: &'a AssistantMessage) -> Vec<&'a str> {
    let text = |block: &'a AssistantContent| match block {
        AssistantContent::Text { text } => Some(text.as_str()),
        AssistantContent::Reasoning { .. }
        | AssistantContent::Image(_)
        | AssistantContent::Audio(_)
        | AssistantContent::Video(_) => None,
    };
    assistant.content.iter().filter_map(text).collect()
}

const NO_MEDIA: &str = "the provider takes no media in the model's own messages";

/// The media type of a block for error messages; `None` for text and reasoning.
fn media_of(block: &AssistantContent) -> Option<&'static str> {
    match block {
        AssistantContent::Image(_) => Some("image"),
        AssistantContent::Audio(_) => Some("audio"),
        AssistantContent::Video(_) => Some("video"),
        AssistantContent::Text { .. } | AssistantContent::Reasoning { .. } => None,
    }
}

fn thoughts<'a>(assistant: &'a AssistantMessage) -> Vec<&'a str> {
    let text = |block: &'a AssistantContent| match block {
        AssistantContent::Reasoning { text, .. } => Some(text.as_str()),
        AssistantContent::Text { .. }
        | AssistantContent::Image(_)
        | AssistantContent::Audio(_)
        | AssistantContent::Video(_) => None,
    };
    assistant.content.iter().filter_map(text).collect()
}

fn tool_result(result: &ToolResult, ids: &CallIds) -> Value {
    let id = ids.result(&result.tool_call_id);
    json!({"role": "tool", "tool_call_id": id, "content": tool_result_text(result)})
}

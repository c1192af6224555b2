//! Requests to Ollama.

use super::{Ollama, PROVIDER};
use crate::codec::{Conversation, Encoded, document_text, is_native, items, tool_result_text};
use crate::content::{AssistantContent, UserContent};
use crate::error::{Code, Error};
use crate::message::{AssistantMessage, Message, Speaker, UserMessage};
use crate::model::{Request, ToolChoice};
use crate::tool::{Tool, ToolCallId};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The params at the top level of the body; all others go into `options`.
const BESIDE: [&str; 6] = [
    "think",
    "keep_alive",
    "format",
    "logprobs",
    "top_logprobs",
    "options",
];

pub(super) fn encode(codec: &Ollama, request: &Request) -> Result<Encoded, Error> {
    if let ToolChoice::Required | ToolChoice::Tool(_) = request.tool_choice {
        return Err(refused("Ollama can't be made to call a tool"));
    }
    let mut head = Map::from_iter([
        ("model".to_owned(), Value::from(codec.model_id.as_str())),
        ("stream".to_owned(), Value::Bool(true)),
    ]);
    let mut options = Map::new();
    for (key, value) in &*request.params {
        match (key.as_str(), value) {
            ("options", Value::Object(own)) => options.extend(own.clone()),
            (beside, _) if BESIDE.contains(&beside) => {
                head.insert(key.clone(), value.clone());
            }
            _ => {
                options.insert(key.clone(), value.clone());
            }
        }
    }
    if !options.is_empty() {
        head.insert("options".to_owned(), Value::Object(options));
    }
    if let Some(schema) = &request.structure {
        head.insert("format".to_owned(), (**schema).clone());
    }
    // A model that may call nothing is not told of tools; there is no other way to say so.
    if !request.tools.is_empty() && request.tool_choice != ToolChoice::None {
        let tools = request.tools.iter().map(tool).collect();
        head.insert("tools".to_owned(), Value::Array(tools));
    }
    Ok(conversation(codec, request)?.encode(&head, "messages"))
}

fn conversation(codec: &Ollama, request: &Request) -> Result<Conversation, Error> {
    let mut conversation = Conversation::default();
    if let Some(system) = &request.system {
        conversation.push(&json!({"role": "system", "content": &**system}));
    }
    // A result names its tool, which only the call knows.
    let mut names: BTreeMap<&ToolCallId, &str> = BTreeMap::new();
    for message in &request.messages {
        match message {
            Message::User(message) => conversation.push(&user(message)?),
            Message::Assistant(message) => {
                for call in &message.tool_calls {
                    names.insert(&call.tool_call_id, &call.tool_name);
                }
                let written = assistant(codec, message, &mut conversation);
                conversation.push(&written);
            }
            Message::ToolResult(message) => {
                for result in &message.results {
                    let name = names.get(&result.tool_call_id).copied().unwrap_or_default();
                    conversation.push(&json!({
                        "role": "tool",
                        "tool_name": name,
                        "tool_call_id": result.tool_call_id.as_str(),
                        "content": tool_result_text(result),
                    }));
                }
            }
        }
    }
    Ok(conversation)
}

fn user(message: &UserMessage) -> Result<Value, Error> {
    let mut texts: Vec<Cow<'_, str>> = Vec::new();
    let mut images = Vec::new();
    for block in &message.content {
        match block {
            UserContent::Text { text } => texts.push(text.into()),
            UserContent::Document(media) => {
                let text = document_text(media);
                texts.push(text.ok_or_else(|| refused("Ollama takes no documents"))?);
            }
            UserContent::Image(media) => {
                let data = media.base64();
                let data = data.ok_or_else(|| refused("Ollama takes images as bytes only"))?;
                images.push(Value::from(data));
            }
            UserContent::Audio(_) => return Err(refused("Ollama takes no audio")),
            UserContent::Video(_) => return Err(refused("Ollama takes no video")),
            UserContent::Binary(_) => return Err(refused("Ollama takes no binary content")),
        }
    }
    let role = match message.explicit_speaker() {
        Speaker::User => "user",
        Speaker::System | Speaker::Developer => "system",
    };
    let mut written = json!({"role": role, "content": texts.join("\n")});
    if !images.is_empty()
        && let Some(fields) = written.as_object_mut()
    {
        fields.insert("images".to_owned(), Value::Array(images));
    }
    Ok(written)
}

fn assistant(codec: &Ollama, message: &AssistantMessage, conversation: &mut Conversation) -> Value {
    let native = is_native(message, PROVIDER, &codec.model_id);
    if !native {
        items::omit_foreign(message, conversation);
    }
    let mut text = String::new();
    let mut thought = String::new();
    for block in &message.content {
        match block {
            AssistantContent::Text { text: more } => {
                if !native && !text.is_empty() {
                    text.push_str("\n\n");
                }
                text.push_str(more);
            }
            AssistantContent::Reasoning { text: more, .. } => thought.push_str(more),
            AssistantContent::Image(_)
            | AssistantContent::Audio(_)
            | AssistantContent::Video(_) => {
                conversation.omit(message, "media", "Ollama takes none from an assistant");
            }
        }
    }
    let mut fields = Map::new();
    fields.insert("role".to_owned(), json!("assistant"));
    fields.insert("content".to_owned(), Value::String(text));
    if !thought.is_empty() {
        if native {
            fields.insert("thinking".to_owned(), Value::String(thought));
        } else {
            conversation.omit(message, "reasoning", "it is another model's");
        }
    }
    let calls: Vec<Value> = message
        .tool_calls
        .iter()
        .map(|call| {
            // What is no object was answered with an error; the model still sees that it called.
            let arguments = call.arguments.parse().unwrap_or_else(|_| json!({}));
            json!({"id": call.tool_call_id.as_str(), "function": {"name": call.tool_name, "arguments": arguments}})
        })
        .collect();
    if !calls.is_empty() {
        fields.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    Value::Object(fields)
}

fn tool(tool: &Tool) -> Value {
    json!({"type": "function", "function": {
        "name": tool.name, "description": tool.description, "parameters": *tool.parameters,
    }})
}

fn refused(text: &str) -> Error {
    Error::new(Code::InvalidRequest, PROVIDER, text)
}

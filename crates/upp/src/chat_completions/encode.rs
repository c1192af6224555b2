//! Requests in the Chat Completions format.

use crate::content::{AssistantContent, UserContent};
use crate::error::{Code, Error};
use crate::message::{AssistantMessage, Message, UserMessage};
use crate::model::{Request, ToolChoice};
use crate::tool::{Tool, ToolResult};
use serde_json::{Map, Value, json};

/// How requests are written.
#[derive(Clone, Debug)]
pub struct Encoding {
    /// The provider's name: the namespace of metadata and the provider of errors.
    pub provider: String,
    /// The model.
    pub model_id: String,
    /// Whether reasoning goes back as `reasoning_content`, as some compatible providers want.
    pub resend_reasoning: bool,
}

impl Encoding {
    /// The body of a streaming request. Params come first; what the protocol rules overwrites them.
    pub fn encode(&self, request: &Request) -> Result<Value, Error> {
        let mut body: Map<String, Value> = (*request.params).clone();
        let mut set = |key: &str, value: Value| body.insert(key.to_owned(), value);
        set("model", Value::from(self.model_id.as_str()));
        set("messages", Value::Array(self.messages(request)?));
        set("stream", Value::Bool(true));
        if !request.tools.is_empty() {
            set(
                "tools",
                request.tools.iter().map(|it| self.tool(it)).collect(),
            );
            match &request.tool_choice {
                ToolChoice::Auto => {}
                ToolChoice::None => drop(set("tool_choice", json!("none"))),
                ToolChoice::Required => drop(set("tool_choice", json!("required"))),
                ToolChoice::Tool(name) => {
                    let choice = json!({"type": "function", "function": {"name": name}});
                    set("tool_choice", choice);
                }
            }
        }
        if let Some(schema) = &request.structure {
            set("response_format", response_format(schema));
        }
        // Other stream options of the caller stay.
        let options = body
            .entry("stream_options")
            .or_insert_with(|| Value::Object(Map::new()));
        if !options.is_object() {
            *options = Value::Object(Map::new());
        }
        if let Some(options) = options.as_object_mut() {
            options.insert("include_usage".to_owned(), Value::Bool(true));
        }
        Ok(Value::Object(body))
    }

    fn messages(&self, request: &Request) -> Result<Vec<Value>, Error> {
        let mut messages = Vec::with_capacity(request.messages.len() + 1);
        if let Some(system) = &request.system {
            messages.push(json!({"role": "system", "content": &**system}));
        }
        for message in &request.messages {
            match message {
                Message::User(user) => messages.push(self.user(user)?),
                Message::Assistant(assistant) => messages.push(self.assistant(assistant)),
                Message::ToolResult(answered) => {
                    messages.extend(answered.results.iter().map(tool_result));
                }
            }
        }
        Ok(messages)
    }

    fn user(&self, user: &UserMessage) -> Result<Value, Error> {
        if let [UserContent::Text { text }] = user.content.as_slice() {
            return Ok(json!({"role": "user", "content": text}));
        }
        let parts = user.content.iter().map(|block| self.part(block));
        let parts: Vec<Value> = parts.collect::<Result<_, _>>()?;
        Ok(json!({"role": "user", "content": parts}))
    }

    fn part(&self, block: &UserContent) -> Result<Value, Error> {
        match block {
            UserContent::Text { text } => Ok(json!({"type": "text", "text": text})),
            UserContent::Image(media) => match media.data_url().as_deref().or(media.url()) {
                Some(url) => Ok(image(url)),
                None => Err(self.unsupported("an image as text")),
            },
            UserContent::Document(media) => match (media.data_url(), media.text()) {
                (Some(data), _) => Ok(json!({"type": "file", "file": {
                    "filename": media.title.as_deref().unwrap_or("document.pdf"),
                    "file_data": data,
                }})),
                (None, Some(text)) => Ok(json!({"type": "text", "text": text})),
                (None, None) => Err(self.unsupported("a document by address; send its bytes")),
            },
            UserContent::Audio(media) => {
                let Some((data, format)) = media.base64().zip(audio_format(&media.mime_type))
                else {
                    return Err(self.unsupported("audio other than WAV and MP3 bytes"));
                };
                Ok(json!({
                    "type": "input_audio", "input_audio": {"data": data, "format": format},
                }))
            }
            UserContent::Video(_) => Err(self.unsupported("video")),
            UserContent::Binary(_) => Err(self.unsupported("binary content")),
        }
    }

    fn unsupported(&self, what: &str) -> Error {
        Error::new(
            Code::InvalidRequest,
            self.provider.as_str(),
            format!("Chat Completions can't take {what}"),
        )
    }

    fn assistant(&self, assistant: &AssistantMessage) -> Value {
        let text = assistant.joined_text();
        let calls: Vec<Value> = assistant
            .tool_calls
            .iter()
            .map(|call| {
                // The provider's own text, so that what it wrote comes back unchanged.
                let arguments = match call.arguments.text() {
                    "" => "{}",
                    text => text,
                };
                json!({
                    "id": call.tool_call_id.as_str(),
                    "type": "function",
                    "function": {"name": call.tool_name, "arguments": arguments},
                })
            })
            .collect();
        let mut message = Map::new();
        message.insert("role".into(), json!("assistant"));
        let content = if text.is_empty() && !calls.is_empty() {
            Value::Null
        } else {
            Value::String(text)
        };
        message.insert("content".into(), content);
        if self.resend_reasoning {
            let reasoning = reasoning(assistant);
            if !reasoning.is_empty() {
                message.insert("reasoning_content".into(), Value::String(reasoning));
            }
        }
        if !calls.is_empty() {
            message.insert("tool_calls".into(), Value::Array(calls));
        }
        Value::Object(message)
    }

    fn tool(&self, tool: &Tool) -> Value {
        let mut function = Map::new();
        function.insert("name".into(), Value::from(tool.name.as_str()));
        function.insert("description".into(), Value::from(tool.description.as_str()));
        function.insert("parameters".into(), (*tool.parameters).clone());
        let strict = [self.provider.as_str(), "openai"]
            .iter()
            .find_map(|namespace| tool.metadata.get(*namespace)?.get("strict"));
        if let Some(strict) = strict {
            function.insert("strict".into(), strict.clone());
        }
        json!({"type": "function", "function": function})
    }
}

fn response_format(schema: &Value) -> Value {
    let mut format = Map::new();
    format.insert("name".into(), json!("json_response"));
    if let Some(description) = schema.get("description") {
        format.insert("description".into(), description.clone());
    }
    format.insert("schema".into(), schema.clone());
    format.insert("strict".into(), json!(true));
    json!({"type": "json_schema", "json_schema": format})
}

fn image(url: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": url}})
}

fn audio_format(mime_type: &str) -> Option<&'static str> {
    match mime_type {
        "audio/wav" | "audio/x-wav" | "audio/wave" => Some("wav"),
        "audio/mp3" | "audio/mpeg" => Some("mp3"),
        _ => None,
    }
}

fn reasoning(assistant: &AssistantMessage) -> String {
    let texts: Vec<&str> = assistant
        .content
        .iter()
        .filter_map(|block| match block {
            AssistantContent::Reasoning { text, .. } => Some(text.as_str()),
            AssistantContent::Text { .. }
            | AssistantContent::Image(_)
            | AssistantContent::Audio(_)
            | AssistantContent::Video(_) => None,
        })
        .collect();
    texts.join("\n\n")
}

fn tool_result(result: &ToolResult) -> Value {
    let text = match result.result.as_str() {
        Some(text) => text.to_owned(),
        None => result.result.to_string(),
    };
    json!({"role": "tool", "tool_call_id": result.tool_call_id.as_str(), "content": text})
}

//! Requests in the Chat Completions format.

use super::ChatCompletions;
use crate::codec::{CallIds, Conversation, Encoded, tool_result_text};
use crate::content::{AssistantContent, Media, MediaSource, UserContent};
use crate::error::{Code, Error};
use crate::message::{AssistantMessage, Message, UserMessage};
use crate::model::{Request, ToolChoice};
use crate::tool::{Tool, ToolResult};
use serde_json::{Map, Value, json};

/// The longest id of a call that the format takes.
const LONGEST_ID: usize = 64;

/// The body of a streaming request. Params come first; what the protocol rules overwrites them.
pub(super) fn encode(codec: &ChatCompletions, request: &Request) -> Result<Encoded, Error> {
    let mut head: Map<String, Value> = (*request.params).clone();
    head.remove("messages");
    let mut set = |key: &str, value: Value| head.insert(key.to_owned(), value);
    set("model", Value::from(codec.model_id.as_str()));
    set("stream", Value::Bool(true));
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|it| codec.tool(it)).collect();
        set("tools", tools);
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
    let options = head
        .entry("stream_options")
        .or_insert_with(|| Value::Object(Map::new()));
    if !options.is_object() {
        *options = Value::Object(Map::new());
    }
    if let Some(options) = options.as_object_mut() {
        options.insert("include_usage".to_owned(), Value::Bool(true));
    }
    Ok(codec.conversation(request)?.encode(&head, "messages"))
}

impl ChatCompletions {
    fn conversation(&self, request: &Request) -> Result<Conversation, Error> {
        let mut conversation = Conversation::default();
        if let Some(system) = &request.system {
            conversation.push(&json!({"role": "system", "content": &**system}));
        }
        let mut ids = CallIds::new(LONGEST_ID);
        for message in &request.messages {
            match message {
                Message::User(user) => conversation.push(&self.user(user)?),
                Message::Assistant(assistant) => {
                    let message = self.assistant(assistant, &mut ids, &mut conversation);
                    conversation.push(&message);
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
            UserContent::Image(media) => match &media.source {
                MediaSource::Base64 { data } => Ok(image(&data_url(media, data))),
                MediaSource::Url { url } => Ok(image(url)),
                MediaSource::Text { .. } => Err(self.unsupported("an image as text")),
            },
            UserContent::Document(media) => match &media.source {
                MediaSource::Base64 { data } => Ok(json!({"type": "file", "file": {
                    "filename": media.title.as_deref().unwrap_or("document.pdf"),
                    "file_data": data_url(media, data),
                }})),
                MediaSource::Text { data } => Ok(json!({"type": "text", "text": data})),
                MediaSource::Url { .. } => {
                    Err(self.unsupported("a document by address; send its bytes"))
                }
            },
            UserContent::Audio(media) => match (&media.source, audio_format(&media.mime_type)) {
                (MediaSource::Base64 { data }, Some(format)) => Ok(json!({
                    "type": "input_audio", "input_audio": {"data": data, "format": format},
                })),
                (
                    MediaSource::Base64 { .. } | MediaSource::Url { .. } | MediaSource::Text { .. },
                    _,
                ) => Err(self.unsupported("audio other than WAV and MP3 bytes")),
            },
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

    fn assistant(
        &self,
        assistant: &AssistantMessage,
        ids: &mut CallIds,
        conversation: &mut Conversation,
    ) -> Value {
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
                    "id": ids.call(&call.tool_call_id),
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
        let reasoning = reasoning(assistant);
        if self.resend_reasoning && !reasoning.is_empty() {
            message.insert("reasoning_content".into(), Value::String(reasoning));
        } else if !reasoning.is_empty() {
            let why = "the provider does not take reasoning back";
            conversation.omit(assistant, "reasoning", why);
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

fn data_url(media: &Media, data: &str) -> String {
    format!("data:{};base64,{data}", media.mime_type)
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

fn tool_result(result: &ToolResult, ids: &CallIds) -> Value {
    let id = ids.result(&result.tool_call_id);
    json!({"role": "tool", "tool_call_id": id, "content": tool_result_text(result)})
}

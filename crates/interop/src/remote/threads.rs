//! Requests to remote agents behind the Threads API. The module `reader` reads their responses.

mod reader;

use super::delta::News;
pub use reader::{RunEnd, RunEventError, RunReader};
use serde_json::{Map, Value, json};
use upp::{Message, Tool, UserContent};

/// The entry of a run's metadata with the token of the local call that started the run.
const TOKEN: &str = "loomline_call";
/// Maximum length of a metadata value, in characters. Longer tokens are cut.
const MAX_VALUE: usize = 512;

/// The body of the request that starts a run. It has all messages that the assistant has not received
/// yet, and the members of `params`.
pub fn run(
    assistant: &str,
    token: &str,
    news: &News<'_>,
    tools: &[Tool],
    params: &Map<String, Value>,
) -> Value {
    let mut body = params.clone();
    body.insert("assistant_id".to_owned(), assistant.into());
    let metadata = body.entry("metadata").or_insert_with(|| json!({}));
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert(TOKEN.to_owned(), value_of(token).into());
    }
    let messages: Vec<Value> = news.messages.iter().filter_map(|it| message(it)).collect();
    body.insert("additional_messages".to_owned(), messages.into());
    if !tools.is_empty() {
        let tools: Vec<Value> = tools.iter().map(function).collect();
        body.insert("tools".to_owned(), tools.into());
    }
    body.insert("stream".to_owned(), true.into());
    body.into()
}

/// Whether the local call with this token started the run.
pub fn is_of(run: &Value, token: &str) -> bool {
    let said = run.get("metadata").and_then(|metadata| metadata.get(TOKEN));
    said.and_then(Value::as_str) == Some(&*value_of(token))
}

fn value_of(token: &str) -> String {
    token.chars().take(MAX_VALUE).collect()
}

/// The body of the request that sends the results of a run's calls.
pub fn outputs(news: &News<'_>) -> Value {
    let place = news.position.as_ref();
    let outputs: Vec<Value> = news
        .results
        .iter()
        .map(|result| {
            let ask = place.and_then(|place| place.ask(result.tool_call_id.as_str()));
            let id = ask.and_then(|ask| ask.id.as_deref());
            let id = id.unwrap_or(result.tool_call_id.as_str());
            json!({"tool_call_id": id, "output": result.text()})
        })
        .collect();
    json!({"tool_outputs": outputs, "stream": true})
}

fn function(tool: &Tool) -> Value {
    json!({"type": "function", "function": {
        "name": tool.name, "description": tool.description, "parameters": *tool.parameters,
    }})
}

fn message(message: &Message) -> Option<Value> {
    match message {
        Message::User(user) => {
            let parts: Vec<Value> = user.content.iter().filter_map(part).collect();
            (!parts.is_empty()).then(|| json!({"role": "user", "content": parts}))
        }
        Message::Assistant(answer) => {
            let text = answer.joined_text();
            (!text.is_empty()).then(|| json!({"role": "assistant", "content": text}))
        }
        Message::ToolResult(_) => None,
    }
}

fn part(content: &UserContent) -> Option<Value> {
    let (media, is_image) = match content {
        UserContent::Text { text } => return Some(json!({"type": "text", "text": text})),
        UserContent::Image(media) => (media, true),
        UserContent::Document(media)
        | UserContent::Audio(media)
        | UserContent::Video(media)
        | UserContent::Binary(media) => (media, false),
    };
    if let Some(text) = media.text() {
        return Some(json!({"type": "text", "text": text}));
    }
    let url = media
        .url()
        .map(str::to_owned)
        .or_else(|| media.data_url())?;
    if is_image {
        return Some(json!({"type": "image_url", "image_url": { "url": url }}));
    }
    // Other files would have to be uploaded; an address can be told.
    let text = media.url().map_or_else(
        || format!("(A file of type {} is left out.)", media.mime_type),
        |url| format!("({}: {url})", media.mime_type),
    );
    Some(json!({"type": "text", "text": text}))
}

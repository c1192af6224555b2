//! Requests to Gemini.

use super::{Gemini, PROVIDER};
use crate::codec::items::{self, Item};
use crate::codec::{Conversation, Encoded, is_native};
use crate::content::{AssistantContent, Media, UserContent};
use crate::error::{Code, Error};
use crate::message::{AssistantMessage, Message, UserMessage};
use crate::model::{Request, ToolChoice};
use crate::tool::{Tool, ToolCallId, ToolResult};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The params at the top level of the body; all others go into the generation's configuration.
const BESIDE: [&str; 5] = [
    "safetySettings",
    "cachedContent",
    "labels",
    "serviceTier",
    "store",
];

pub(super) fn encode(codec: &Gemini, request: &Request) -> Result<Encoded, Error> {
    let mut head = Map::new();
    let mut generation = Map::new();
    let mut tail = Map::new();
    let mut tools = declared(&request.tools);
    for (key, value) in &*request.params {
        match (key.as_str(), value) {
            ("contents" | "model", _) => {}
            ("generationConfig", Value::Object(own)) => generation.extend(own.clone()),
            ("tools", Value::Array(native)) => tools.extend(native.iter().cloned()),
            ("toolConfig", _) => drop(tail.insert(key.clone(), value.clone())),
            (beside, _) if BESIDE.contains(&beside) => {
                head.insert(key.clone(), value.clone());
            }
            _ => drop(generation.insert(key.clone(), value.clone())),
        }
    }
    if let Some(system) = &request.system {
        head.insert(
            "systemInstruction".to_owned(),
            json!({"parts": [{"text": &**system}]}),
        );
    }
    if !tools.is_empty() {
        head.insert("tools".to_owned(), Value::Array(tools));
    }
    if let Some(mode) = mode(&request.tool_choice)
        && !request.tools.is_empty()
    {
        let config = tail.entry("toolConfig").or_insert_with(|| json!({}));
        if let Some(config) = config.as_object_mut() {
            // What else the caller configures of it stays, such as streamed arguments.
            let config = config
                .entry("functionCallingConfig")
                .or_insert_with(|| json!({}));
            *config = extended(config.take(), Some(&mode));
        }
    }
    if let Some(schema) = &request.structure {
        generation.insert("responseMimeType".to_owned(), json!("application/json"));
        generation.insert("responseJsonSchema".to_owned(), (**schema).clone());
    }
    if !generation.is_empty() {
        head.insert("generationConfig".to_owned(), Value::Object(generation));
    }
    Ok(conversation(codec, request)?.encode_then(&head, "contents", &tail))
}

fn mode(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({"mode": "NONE"})),
        ToolChoice::Required => Some(json!({"mode": "ANY"})),
        ToolChoice::Tool(name) => Some(json!({"mode": "ANY", "allowedFunctionNames": [name]})),
    }
}

fn declared(tools: &[Tool]) -> Vec<Value> {
    if tools.is_empty() {
        return Vec::new();
    }
    let declaration = |tool: &Tool| json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": *tool.parameters});
    let declarations: Vec<Value> = tools.iter().map(declaration).collect();
    vec![json!({ "functionDeclarations": declarations })]
}

/// The fields of a call that its result must repeat.
struct Called<'a> {
    name: &'a str,
    /// Whether the id is Google's. Google then requires it in the result.
    has_id: bool,
}

fn conversation(codec: &Gemini, request: &Request) -> Result<Conversation, Error> {
    let mut conversation = Conversation::default();
    let mut called: BTreeMap<&ToolCallId, Called<'_>> = BTreeMap::new();
    let mut results: Vec<Value> = Vec::new();
    for message in &request.messages {
        if let Message::ToolResult(message) = message {
            let parts = message.results.iter();
            results.extend(parts.map(|result| response(result, called.get(&result.tool_call_id))));
            continue;
        }
        flush(&mut results, &mut conversation);
        match message {
            Message::User(message) => conversation.push(&user(message)?),
            Message::Assistant(message) => {
                let native = is_native(message, PROVIDER, &codec.model_id);
                let items = if native {
                    items::read(message, PROVIDER)
                } else {
                    items::omit_foreign(message, &mut conversation);
                    items::plain(message)
                };
                let ours: BTreeSet<usize> = items.iter().filter_map(without_id).collect();
                for (at, call) in message.tool_calls.iter().enumerate() {
                    let has_id = native && !ours.contains(&at);
                    let name = &*call.tool_name;
                    called.insert(&call.tool_call_id, Called { name, has_id });
                }
                let mut parts = parts(message, &items, native, &mut conversation);
                if !native && codec.wants_signatures() {
                    skip_signature(&mut parts);
                }
                if !parts.is_empty() {
                    conversation.push(&json!({"role": "model", "parts": parts}));
                }
            }
            Message::ToolResult(_) => {}
        }
    }
    flush(&mut results, &mut conversation);
    Ok(conversation)
}

/// The position of the call, if Google sent it without an id.
fn without_id(item: &Item) -> Option<usize> {
    match item {
        Item::Call(at, with) if with.contains_key(NO_ID) => Some(*at),
        Item::Call(..) | Item::Content(..) | Item::Native(_) => None,
    }
}

/// Puts the vendor's placeholder for "no signature" on the first call, which the vendor would refuse
/// without a signature.
fn skip_signature(parts: &mut [Value]) {
    let call = parts
        .iter_mut()
        .filter_map(Value::as_object_mut)
        .find(|part| part.contains_key("functionCall"));
    if let Some(call) = call {
        let word = json!("skip_thought_signature_validator");
        call.entry("thoughtSignature").or_insert(word);
    }
}

/// The results of one round are one content.
fn flush(results: &mut Vec<Value>, conversation: &mut Conversation) {
    if !results.is_empty() {
        let parts = std::mem::take(results);
        conversation.push(&json!({"role": "user", "parts": parts}));
    }
}

fn user(message: &UserMessage) -> Result<Value, Error> {
    let parts = message.content.iter().map(|block| match block {
        UserContent::Text { text } => Ok(json!({ "text": text })),
        UserContent::Document(media) if media.text().is_some() => Ok(json!({"text": media.text()})),
        UserContent::Image(media)
        | UserContent::Document(media)
        | UserContent::Audio(media)
        | UserContent::Video(media)
        | UserContent::Binary(media) => media_part(media),
    });
    let parts: Vec<Value> = parts.collect::<Result<_, _>>()?;
    Ok(json!({"role": "user", "parts": parts}))
}

fn media_part(media: &Media) -> Result<Value, Error> {
    if let Some(data) = media.base64() {
        return Ok(json!({"inlineData": {"mimeType": media.mime_type, "data": data}}));
    }
    let url = media.url().ok_or_else(|| {
        let text = format!("Gemini can't take {} as text", media.mime_type);
        Error::new(Code::InvalidRequest, PROVIDER, text)
    })?;
    Ok(json!({"fileData": {"mimeType": media.mime_type, "fileUri": url}}))
}

/// The key in an item's `with` for a call that Google sent without an id.
pub(super) const NO_ID: &str = "noId";
/// The key for the fields of a part other than its call or text.
pub(super) const PART: &str = "part";
/// The key for the fields of a call other than name, arguments and id.
pub(super) const CALL: &str = "call";

fn parts(
    message: &AssistantMessage,
    items: &[Item],
    native: bool,
    conversation: &mut Conversation,
) -> Vec<Value> {
    let mut parts = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Item::Native(part) => parts.push(part.clone()),
            Item::Content(at, with) => {
                let block = message.content.get(*at);
                let part = block.and_then(|block| content(message, block, native, conversation));
                parts.extend(part.map(|part| extended(part, with.get(PART))));
            }
            Item::Call(at, with) => {
                let Some(call) = message.tool_calls.get(*at) else {
                    continue;
                };
                let mut function = Map::new();
                if native && !with.contains_key(NO_ID) {
                    function.insert("id".to_owned(), Value::from(call.tool_call_id.as_str()));
                }
                function.insert("name".to_owned(), Value::from(&*call.tool_name));
                // What is no object was answered with an error; the model still sees its call.
                let arguments = call.arguments.parse().unwrap_or_else(|_| json!({}));
                function.insert("args".to_owned(), arguments);
                let function = extended(Value::Object(function), with.get(CALL));
                parts.push(extended(json!({"functionCall": function}), with.get(PART)));
            }
        }
    }
    parts
}

fn content(
    message: &AssistantMessage,
    block: &AssistantContent,
    native: bool,
    conversation: &mut Conversation,
) -> Option<Value> {
    match block {
        // Google itself writes no such text; what carries a signature is kept as it is.
        AssistantContent::Text { text } if text.is_empty() => None,
        AssistantContent::Text { text } => Some(json!({ "text": text })),
        AssistantContent::Reasoning { text, signature } if native => {
            let mut part = json!({"text": text, "thought": true});
            if let (Some(signature), Some(fields)) = (signature, part.as_object_mut()) {
                fields.insert(
                    "thoughtSignature".to_owned(),
                    Value::from(signature.as_str()),
                );
            }
            Some(part)
        }
        AssistantContent::Reasoning { .. } => {
            conversation.omit(message, "reasoning", "it is another model's");
            None
        }
        AssistantContent::Image(media)
        | AssistantContent::Audio(media)
        | AssistantContent::Video(media) => match media_part(media) {
            Ok(part) => Some(part),
            Err(error) => {
                conversation.omit(message, "media", &error.message);
                None
            }
        },
    }
}

fn extended(mut value: Value, more: Option<&Value>) -> Value {
    if let (Some(fields), Some(Value::Object(more))) = (value.as_object_mut(), more) {
        fields.extend(more.clone());
    }
    value
}

/// A result in Google's form: an object, under the name of the function.
fn response(result: &ToolResult, called: Option<&Called<'_>>) -> Value {
    let mut function = Map::new();
    if called.is_some_and(|called| called.has_id) {
        function.insert("id".to_owned(), Value::from(result.tool_call_id.as_str()));
    }
    let name = called.map_or("", |called| called.name);
    function.insert("name".to_owned(), Value::from(name));
    let response = if result.is_error {
        json!({ "error": result.result })
    } else if result.result.is_object() {
        result.result.value().clone()
    } else {
        json!({ "result": result.result })
    };
    function.insert("response".to_owned(), response);
    json!({ "functionResponse": function })
}

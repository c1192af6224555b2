//! `POST /responses/compact` and `POST /responses/input_tokens`: conversations in brief, and counted.

use super::echo::Echo;
use super::ending::Status;
use super::error::RequestError;
use super::fields::Fields;
use super::item::{InputContent, InputItem, input};
use super::items::{ListedItem, listed};
use super::request::{Continues, CreateRequest, continues};
use super::resource::ResponseObject;
use super::sealed::seal_summary;
use super::thread_input::message_item;
use super::usage::Tokens;
use crate::ids::COMPACTION;
use crate::json_text::quoted;
use crate::options::RunOptions;
use jiff::Timestamp;
use serde_json::{Value, json};
use timeline::{Item, ItemStatus, Role};

/// Bytes per token in the estimate.
const BYTES_PER_TOKEN: usize = 4;
/// The members of parts that do not count as text.
const MEDIA: [&str; 6] = [
    "type",
    "image_url",
    "file_url",
    "file_data",
    "video_url",
    "signature",
];

/// A request for a conversation in brief.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactRequest {
    /// The model that is to write the summary.
    pub model: String,
    /// The response or conversation that the request continues.
    pub continues: Continues,
    /// The input items after it.
    pub input: Vec<InputItem>,
    /// Replaces the system prompt.
    pub instructions: Option<String>,
}

impl CompactRequest {
    /// Reads the body.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let fields = Fields::of(body, "")?;
        let model = fields.required("model", 256)?.to_owned();
        let continues = match continues(&fields)? {
            Continues::Conversation { .. } => {
                let message = "a conversation keeps itself in bounds";
                return Err(super::fields::unsupported("/conversation", message));
            }
            other @ (Continues::Nothing | Continues::Response { .. }) => other,
        };
        let input = input(&fields, "input")?;
        if input.is_empty() && continues == Continues::Nothing {
            return Err(fields.missing("input"));
        }
        fields.text("prompt_cache_key", 64)?;
        Ok(Self {
            model,
            continues,
            input,
            instructions: fields.text("instructions", usize::MAX)?.map(str::to_owned),
        })
    }

    /// The conversation as a request for a response, to be stored or counted.
    pub fn as_create(&self) -> CreateRequest {
        let mut options = RunOptions {
            model: Some(self.model.clone()),
            instructions: self.instructions.clone(),
            ..RunOptions::default()
        };
        Echo::default().keep(&mut options);
        CreateRequest {
            continues: self.continues.clone(),
            input: self.input.clone(),
            options,
            stream: false,
            background: false,
            store: false,
            input_at: "/input",
        }
    }

    /// The user messages in the request. They stay unchanged next to the summary.
    pub fn user_messages(&self, at: Timestamp, ids: &mut dyn FnMut() -> String) -> Vec<ListedItem> {
        let messages = self.input.iter().filter(|given| match &given.content {
            InputContent::Message { role, .. } => *role == Role::User,
            InputContent::Reasoning(_)
            | InputContent::Call { .. }
            | InputContent::CallOutput { .. }
            | InputContent::Compaction { .. }
            | InputContent::Reference { .. }
            | InputContent::Approval { .. } => false,
        });
        let items = messages.filter_map(|given| message_item(given, false, ids));
        items
            .flat_map(|new| {
                listed(&Item {
                    id: new.id,
                    item_type: new.item_type,
                    role: new.role,
                    created_at: at,
                    status: ItemStatus::Stored,
                    channel: None,
                    content: new.content,
                    execution_id: None,
                    run: None,
                    metadata: new.metadata,
                })
            })
            .collect()
    }
}

impl CreateRequest {
    /// Adds a user's message at the end of the request.
    #[must_use]
    pub fn with_prompt(mut self, text: &str) -> Self {
        self.input.push(InputItem {
            pointer: "/input".to_owned(),
            content: InputContent::Message {
                role: Role::User,
                content: vec![json!({"type": "input_text", "text": text})],
                phase: None,
            },
        });
        self
    }
}

/// The text of a finished response, and its token usage.
///
/// # Errors
///
/// A model error if the response failed or has no text.
pub fn outcome(made: &ResponseObject) -> Result<(String, Tokens), RequestError> {
    let said: Value = serde_json::from_str(&made.json).unwrap_or_default();
    let items = said["output"].as_array().into_iter().flatten();
    let parts = items.flat_map(|item| item["content"].as_array().into_iter().flatten());
    let texts = parts.filter(|part| part["type"] == "output_text");
    let texts: Vec<&str> = texts.filter_map(|part| part["text"].as_str()).collect();
    let text = texts.join("\n\n");
    if made.status == Status::Completed && !text.is_empty() {
        return Ok((text, Tokens::of(&said["usage"])));
    }
    let why = said["error"]["message"].as_str();
    Err(RequestError::model_error(
        why.unwrap_or("the model has written no summary"),
    ))
}

/// The object of a compacted conversation: the items that stay, then the summary of all of it. If a
/// client sends it back as `input`, the summary replaces the earlier history. `id` is a new id.
pub fn compaction(
    id: &str,
    created_at: Timestamp,
    kept: &[ListedItem],
    summary: &str,
    usage: Tokens,
) -> String {
    let mut output: Vec<String> = kept.iter().map(|item| item.json.clone()).collect();
    output.push(format!(
        r#"{{"type":"compaction","id":{},"encrypted_content":{}}}"#,
        quoted(&COMPACTION.write(id)),
        quoted(&seal_summary(summary)),
    ));
    format!(
        r#"{{"id":{},"object":"response.compaction","created_at":{},"output":[{}],"usage":{}}}"#,
        quoted(&format!("resp_{}", COMPACTION.write(id))),
        created_at.as_second(),
        output.join(","),
        usage.object(),
    )
}

/// Reads a request to count input tokens. It may have the fields of a request for a response; all
/// are optional.
pub fn read_input_tokens(body: &Value) -> Result<CreateRequest, RequestError> {
    Ok(CreateRequest::read_to_count(body)?.value)
}

/// Estimates the input tokens of a request: a quarter of the bytes of its instructions, tools and
/// input. Images and files are not counted.
pub fn n_tokens(request: &CreateRequest) -> u64 {
    let instructions = request.options.instructions.as_deref();
    let tools = request.options.tools.iter().map(|tool| {
        let described = tool.description.as_ref().map_or(0, String::len);
        let schema = tool.parameters.as_ref().map_or(0, text_bytes);
        tool.name.len() + described + schema
    });
    let said = request.input.iter().map(|given| match &given.content {
        InputContent::Message { content, .. } => content.iter().map(text_bytes).sum(),
        InputContent::Reasoning(part) => text_bytes(&part.value()),
        InputContent::Call {
            name, arguments, ..
        } => name.len() + arguments.len(),
        InputContent::CallOutput { output, .. } => text_bytes(output),
        InputContent::Compaction { summary } => summary.len(),
        InputContent::Approval { reason, .. } => reason.as_ref().map_or(0, String::len),
        InputContent::Reference { .. } => 0,
    });
    let n_bytes = instructions.map_or(0, str::len) + tools.sum::<usize>() + said.sum::<usize>();
    u64::try_from(n_bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
}

/// The number of bytes of all texts in a value, without images and files.
fn text_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 0,
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(text_bytes).sum(),
        Value::Object(members) => {
            let words = members
                .iter()
                .filter(|(key, _)| !MEDIA.contains(&key.as_str()));
            words.map(|(_, value)| text_bytes(value)).sum()
        }
    }
}

/// The answer to it.
pub fn input_tokens(n_tokens: u64) -> Value {
    json!({"object": "response.input_tokens", "input_tokens": n_tokens})
}

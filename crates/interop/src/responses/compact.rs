//! `POST /responses/compact` and `POST /responses/input_tokens`: conversations in brief, and counted.

use super::echo::Echo;
use super::error::RequestError;
use super::fields::Fields;
use super::item::{InputItem, InputSays, input};
use super::items::{ListedItem, listed};
use super::request::{Continues, CreateRequest, continues};
use super::said::said_item;
use super::sealed::seal_summary;
use super::usage::Tokens;
use super::wire::quoted;
use crate::ids::COMPACTION;
use crate::options::RunOptions;
use jiff::Timestamp;
use serde_json::{Value, json};
use timeline::{Item, ItemStatus, Role};

/// A request for a conversation in brief.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactRequest {
    /// The model that is to write the summary.
    pub model: String,
    /// What it goes on with.
    pub continues: Continues,
    /// What is said beyond it.
    pub input: Vec<InputItem>,
    /// Stands in place of the system prompt.
    pub instructions: Option<String>,
}

impl CompactRequest {
    /// Reads the body.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let fields = Fields::of(body, "")?;
        let model = fields.needed("model", 256)?.to_owned();
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
        fields.short("prompt_cache_key", 64)?;
        Ok(Self {
            model,
            continues,
            input,
            instructions: fields.text("instructions")?.map(str::to_owned),
        })
    }

    /// The same conversation as a request for a response, to be written down or counted.
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
        }
    }

    /// What users said in the request, which stays as it is beside the summary.
    pub fn kept(&self, at: Timestamp, ids: &mut dyn FnMut() -> String) -> Vec<ListedItem> {
        let said = self.input.iter().filter(|given| match &given.says {
            InputSays::Message { role, .. } => *role == Role::User,
            InputSays::Reasoning(_)
            | InputSays::Call { .. }
            | InputSays::CallOutput { .. }
            | InputSays::Compaction { .. }
            | InputSays::Reference { .. }
            | InputSays::Approval { .. } => false,
        });
        let items = said.filter_map(|given| said_item(given, false, ids));
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

/// The object of a conversation in brief: what stays as it is, and then the summary of all of it.
/// Handed back as `input`, the summary stands for what came before. `id` is minted for it.
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

/// Reads a request to count the tokens of an input: what a request for a response would have.
pub fn read_input_tokens(body: &Value) -> Result<CreateRequest, RequestError> {
    Ok(CreateRequest::read(body)?.value)
}

/// The answer to it.
pub fn input_tokens(n_tokens: u64) -> Value {
    json!({"object": "response.input_tokens", "input_tokens": n_tokens})
}

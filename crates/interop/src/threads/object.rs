//! The objects of the protocol, as they are written.

mod words;

pub use words::{MessageStatus, Reason, RunStatus, StepStatus};

use super::content::Content;
use super::metadata::Metadata;
use super::tools::AssistantTool;
pub use crate::page::Named;
use serde::Serialize;
use serde_json::Value;

macro_rules! named {
    ($($name:ident),*) => {
        $(impl Named for $name {
            fn id(&self) -> &str {
                &self.id
            }
        })*
    };
}

named!(ThreadObject, MessageObject, RunObject, StepObject);

/// `thread`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadObject {
    /// `thread_…`.
    pub id: String,
    /// `thread`.
    pub object: &'static str,
    /// Unix seconds.
    pub created_at: i64,
    /// The tool resources as the client sent them.
    pub tool_resources: Option<Value>,
    /// The client's metadata, with AITP's `actors` and `parent_id`.
    pub metadata: Metadata,
    /// All messages, if AITP's form of a thread is requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<MessageObject>>,
}

/// A file of a message.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attachment {
    /// The file.
    pub file_id: String,
    /// Which tools it was meant for.
    pub tools: Vec<Value>,
}

/// `{"reason": …}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Why {
    pub(super) reason: Reason,
}

/// `thread.message`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MessageObject {
    /// `msg_…`.
    pub id: String,
    /// `thread.message`.
    pub object: &'static str,
    /// Unix seconds.
    pub created_at: i64,
    /// The thread.
    pub thread_id: String,
    /// The state of the message.
    pub status: MessageStatus,
    /// Why it is incomplete.
    pub(super) incomplete_details: Option<Why>,
    /// When the message was complete.
    pub completed_at: Option<i64>,
    /// When it was cut off.
    pub incomplete_at: Option<i64>,
    /// `user` or `assistant`.
    pub role: &'static str,
    /// The content blocks.
    pub content: Vec<Content>,
    /// The assistant whose run wrote it; `None` if no run wrote it.
    pub assistant_id: Option<String>,
    /// The run that wrote it, if one did.
    pub run_id: Option<String>,
    /// Its files.
    pub attachments: Vec<Attachment>,
    /// The client's metadata, with AITP's `actor`.
    pub metadata: Metadata,
}

/// Tokens that were used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Tokens the models wrote.
    pub completion_tokens: u64,
    /// Tokens the models were sent.
    pub prompt_tokens: u64,
    /// Their sum.
    pub total_tokens: u64,
}

/// A function's name and arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Called {
    pub(super) name: String,
    pub(super) arguments: String,
}

/// A call that waits for the client's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallObject {
    /// The call's id, as the model gave it.
    pub id: String,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) function: Called,
}

/// `{"type": "submit_tool_outputs", …}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequiredAction {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    pub(super) submit_tool_outputs: Calls<CallObject>,
}

/// `{"tool_calls": […]}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Calls<T> {
    pub(super) tool_calls: Vec<T>,
}

/// The error of a run or run step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LastError {
    /// `server_error`, `rate_limit_exceeded` or `invalid_prompt`.
    pub code: &'static str,
    /// The text for people.
    pub message: String,
}

/// Why a run is incomplete: a word of the protocol, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Short {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<&'static str>,
}

/// `thread.run`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunObject {
    /// `run_…`: the id of its first execution.
    pub id: String,
    /// `thread.run`.
    pub object: &'static str,
    /// Unix seconds.
    pub created_at: i64,
    /// The assistant that runs.
    pub assistant_id: String,
    /// The thread.
    pub thread_id: String,
    /// The state of the run.
    pub status: RunStatus,
    /// When the run started.
    pub started_at: Option<i64>,
    /// When the run will expire; `None` after its end.
    pub expires_at: Option<i64>,
    /// When it was stopped.
    pub cancelled_at: Option<i64>,
    /// When the run failed.
    pub failed_at: Option<i64>,
    /// When it ended as it should.
    pub completed_at: Option<i64>,
    /// The calls whose results the client must submit before the run continues.
    pub required_action: Option<RequiredAction>,
    /// The error, if the run failed.
    pub last_error: Option<LastError>,
    /// The model's name.
    pub model: String,
    /// The instructions that the model receives.
    pub instructions: String,
    /// The tools it may call.
    pub tools: Vec<AssistantTool>,
    /// The client's metadata.
    pub metadata: Metadata,
    /// 0 to 2.
    pub temperature: Option<f64>,
    /// 0 to 1.
    pub top_p: Option<f64>,
    /// The value from the client's request.
    pub max_completion_tokens: Option<u64>,
    /// The value from the client's request.
    pub max_prompt_tokens: Option<u64>,
    /// The value from the client's request.
    pub truncation_strategy: Value,
    pub(super) incomplete_details: Option<Short>,
    /// The tokens used. Absent until the run ends; all zeros if no model answered.
    pub usage: Option<Usage>,
    /// The value from the client's request.
    pub response_format: Value,
    /// The value from the client's request.
    pub tool_choice: Value,
    /// The value from the client's request.
    pub parallel_tool_calls: bool,
}

/// The work of a run step.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StepDetails {
    /// It wrote a message.
    MessageCreation {
        /// The message.
        message_creation: Written,
    },
    /// It called tools.
    ToolCalls {
        /// The calls with their results.
        tool_calls: Vec<StepCall>,
    },
}

/// `{"message_id": …}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Written {
    /// The message.
    pub message_id: String,
}

/// A call of a run step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepCall {
    /// The call's id, as the model gave it.
    pub id: String,
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    /// The function.
    pub function: Function,
}

/// A function that was called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The arguments' text, as the model sent it.
    pub arguments: String,
    /// The result's text, once there is one.
    pub output: Option<String>,
}

/// `thread.run.step`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepObject {
    /// `step_…`.
    pub id: String,
    /// `thread.run.step`.
    pub object: &'static str,
    /// Unix seconds.
    pub created_at: i64,
    /// The assistant that runs.
    pub assistant_id: String,
    /// The thread.
    pub thread_id: String,
    /// The run.
    pub run_id: String,
    /// `message_creation` or `tool_calls`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The state of the run step.
    pub status: StepStatus,
    /// The message written or the tools called.
    pub step_details: StepDetails,
    /// The error, if the run step failed.
    pub last_error: Option<LastError>,
    /// When the run expired.
    pub expired_at: Option<i64>,
    /// When it was stopped.
    pub cancelled_at: Option<i64>,
    /// When the step failed.
    pub failed_at: Option<i64>,
    /// When the step was complete.
    pub completed_at: Option<i64>,
    /// Always empty: steps can't be changed.
    pub metadata: Metadata,
    /// The tokens of the model call. Only the first run step of a model call has them, so that sums
    /// are right.
    pub usage: Option<Usage>,
}

/// That something was deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deleted {
    /// Its id.
    pub id: String,
    /// `thread.deleted`, `thread.message.deleted`, `assistant.deleted`, `file`.
    pub object: &'static str,
    /// `true`.
    pub deleted: bool,
}

impl Deleted {
    /// The report that the object with this id was deleted; `object` is its type.
    pub fn new(object: &'static str, id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            object,
            deleted: true,
        }
    }
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct List<T> {
    /// `list`.
    pub object: &'static str,
    /// The objects.
    pub data: Vec<T>,
    /// The first one's id.
    pub first_id: Option<String>,
    /// The last one's id.
    pub last_id: Option<String>,
    /// Whether more objects follow this page.
    pub has_more: bool,
}

impl<T: Named> List<T> {
    /// A page of these.
    pub fn new(data: Vec<T>, has_more: bool) -> Self {
        Self {
            object: "list",
            first_id: data.first().map(|it| it.id().to_owned()),
            last_id: data.last().map(|it| it.id().to_owned()),
            data,
            has_more,
        }
    }
}

//! The Threads API (`OpenAI`'s Assistants v2) and the shapes of AITP-T01, as a view of a thread.
//!
//! A thread is a thread, an execution is a run. A run that waits for its client's tools and goes on
//! with their outputs is several executions here ([`continues`](crate::run::continues)) and one [`Run`] there, named after
//! the first; so is one in which agents have handed over. What one step of a model says is one
//! message with its own run step, and what it calls is another run step beside it.
//!
//! - Requests: [`CreateThread`], [`CreateMessage`], [`CreateRun`], [`SubmitToolOutputs`], … read a body,
//!   and say what is to be written and which [`RunOptions`](crate::options::RunOptions) it comes to.
//! - Objects: [`ThreadView`] folds entries of a transcript into runs, steps and messages, in order;
//!   [`Page`] cuts a page out of them as they come.
//! - Events: [`RunStream`] writes the server-sent events of a run, record by record.
//!
//! `metadata.actors` and `metadata.parent_id` of a thread and `metadata.actor` of a message are AITP's.
//! They pass through as the JSON they are; what they mean is not known here.

mod assistant;
mod content;
mod error;
mod fields;
mod file;
mod ids;
mod message;
mod metadata;
mod object;
mod page;
mod request;
mod run;
mod stream;
mod tools;
mod view;

pub use assistant::{Assistant, AssistantChange, CreateAssistant};
pub use content::{Annotated, Content, Image, ImageFile};
pub use error::{ErrorKind, ObjectKind, RequestError};
pub use file::{FileObject, FileUpload, MAX_FILE_BYTES};
pub use ids::{
    ASSISTANT, FILE, RunStepId, message_id, read_message_id, split_attached, without_attempt,
};
pub use message::message_of_item;
pub use metadata::Metadata;
pub use object::{
    Attachment, CallObject, Deleted, LastError, List, MessageObject, MessageStatus, Named, Reason,
    RequiredAction, RunObject, RunStatus, StepDetails, StepObject, StepStatus, ThreadObject, Usage,
};
pub use page::{FileQuery, ListQuery, Order, Page, Walk};
pub use request::{
    CreateMessage, CreateRun, CreateThread, CreateThreadAndRun, ModifyThread, RunOverrides,
    SubmitToolOutputs, SubmittedOutput, cancels, metadata_of, trigger,
};
pub use run::{EXPIRES_AFTER, RequiredCall, Run, RunEcho};
pub use stream::RunStream;
pub use tools::AssistantTool;
pub(crate) use view::cancelled;
pub use view::{Listed, ThreadView, thread_object};

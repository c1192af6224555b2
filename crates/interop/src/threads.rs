//! The Threads API (`OpenAI`'s Assistants v2) and the shapes of AITP-T01, as a view of a thread.
//!
//! A thread is a thread, and an execution is a run. Several executions can be one [`Run`], named after
//! the first: those that continue with a client's tool outputs ([`continues`](crate::run::continues)),
//! and those after a handoff. The text of one model step is one message with its own run step. The
//! step's calls are another run step.
//!
//! - Requests: [`CreateThread`], [`CreateMessage`], [`CreateRun`], [`SubmitToolOutputs`], … read a
//!   body. They return the items to write and the [`RunOptions`](crate::options::RunOptions).
//! - Objects: [`ThreadView`] folds entries of a transcript into runs, steps and messages, in order.
//!   [`Page`] cuts a page out of them as they arrive.
//! - Events: [`RunStream`] writes the server-sent events of a run, record by record.
//!
//! `metadata.actors` and `metadata.parent_id` of a thread and `metadata.actor` of a message are
//! AITP's. This view passes them through as JSON without interpreting them.

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

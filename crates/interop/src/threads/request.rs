//! What clients ask for.

mod message;
mod outputs;
mod run;
mod thread;

pub use message::CreateMessage;
pub use outputs::{SubmitToolOutputs, SubmittedOutput};
pub use run::{CreateRun, CreateThreadAndRun, RunOverrides};
pub use thread::{CreateThread, ModifyThread};

use super::error::RequestError;
use super::fields::Fields;
use super::metadata::{Carrier, Metadata};
use super::run::CANCELS;
use serde_json::{Value, json};
use timeline::{ExecutionId, ItemId, NewItem};

/// Reads the body of `POST …/messages/{id}` and `POST …/runs/{id}`: `{"metadata": {…}}`. None where
/// nothing is to be changed. `of_message` says which of the two it is.
pub fn metadata_of(body: &Value, of_message: bool) -> Result<Option<Metadata>, RequestError> {
    let carrier = if of_message {
        Carrier::Message
    } else {
        Carrier::Other
    };
    Metadata::change(&Fields::of(body, "")?, carrier)
}

/// The item that a run answers which comes without a message: a pointer to the last one there is.
pub fn trigger(id: &str, last: Option<&ItemId>) -> NewItem {
    NewItem::reference(id, last)
}

/// The item that says of a run which waits that it is stopped: for `POST …/cancel` when nothing of it
/// is executing. `execution` is the run's last one.
pub fn cancels(id: &str, execution: &ExecutionId) -> NewItem {
    NewItem {
        content: Some(json!({ CANCELS: execution }).into()),
        ..NewItem::reference(id, None)
    }
}

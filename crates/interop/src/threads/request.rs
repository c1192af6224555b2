//! The bodies of clients' requests.

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

/// Reads the body of `POST …/messages/{id}` and `POST …/runs/{id}`: `{"metadata": {…}}`. `None` if it
/// changes nothing. `of_message` selects the first of the two.
pub fn metadata_of(body: &Value, of_message: bool) -> Result<Option<Metadata>, RequestError> {
    let carrier = if of_message {
        Carrier::Message
    } else {
        Carrier::Other
    };
    Metadata::change(&Fields::of(body, "")?, carrier)
}

/// The trigger of a run that was requested without a message: a reference to the last item, if there
/// is one.
pub fn trigger(id: &str, last: Option<&ItemId>) -> NewItem {
    NewItem::reference(id, last)
}

/// The item that records the stop of a waiting run: for `POST …/cancel` when the run is not executing.
/// `execution` is the run's last one.
pub fn cancels(id: &str, execution: &ExecutionId) -> NewItem {
    NewItem {
        content: Some(json!({ CANCELS: execution }).into()),
        ..NewItem::reference(id, None)
    }
}

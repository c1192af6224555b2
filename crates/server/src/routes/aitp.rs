//! AITP in the server's own dialect: who takes part in a thread, and what waits for an answer there.
//!
//! So a user interface that does not speak AITP can show a form for what nobody else can answer, and
//! what is filled in becomes a capability message.

pub(super) mod actors;
pub(super) mod answer;
pub(super) mod requests;
mod view;

use crate::aitp::Speech;
use crate::error::ApiError;
use crate::state::Api;
use crate::threads::ThreadRef;
use interop::aitp::Desk;

/// Looks at the desk of a thread as it stands.
async fn looked<T>(
    api: &Api,
    thread: &ThreadRef,
    look: impl FnOnce(&Desk) -> T,
) -> Result<T, ApiError> {
    let held = Speech::new(api, thread.caller()).desk(thread.row()).await?;
    let none = Desk::default();
    Ok(look(held.desk().unwrap_or(&none)))
}

//! AITP in the server's own dialect: who takes part in a thread, and what waits for an answer there.
//!
//! So a user interface that does not speak AITP can show a form for what nobody else can answer, and
//! what is filled in becomes a capability message.

pub(super) mod actors;
pub(super) mod answer;
pub(super) mod requests;
mod view;

use crate::aitp::MessagePost;
use crate::error::ApiError;
use crate::state::Api;
use crate::threads::ThreadRef;
use interop::aitp::AitpState;

/// Looks at the desk of a thread as it stands.
async fn looked<T>(
    api: &Api,
    thread: &ThreadRef,
    look: impl FnOnce(&AitpState) -> T,
) -> Result<T, ApiError> {
    let held = MessagePost::new(api, thread.caller())
        .locked_state(thread.row())
        .await?;
    let none = AitpState::default();
    Ok(look(held.get().unwrap_or(&none)))
}

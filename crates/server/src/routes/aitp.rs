//! AITP in the native API: the actors of a thread, and its open requests.
//!
//! A user interface without AITP can show a form for a request, and the value becomes a capability
//! message.

pub(super) mod actors;
pub(super) mod answer;
pub(super) mod answerer;
pub(super) mod requests;
mod view;

use crate::aitp::MessagePost;
use crate::error::ApiError;
use crate::state::Api;
use crate::threads::ThreadRef;
use interop::aitp::AitpState;

/// Reads the current AITP state of a thread.
pub(crate) async fn looked<T>(
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

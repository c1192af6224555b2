//! AITP in the server's own dialect: who takes part in a thread, and what waits for an answer there.
//!
//! So a user interface that does not speak AITP can show a form for what nobody else can answer, and
//! what is filled in becomes a capability message.

pub(super) mod actors;
pub(super) mod answer;
pub(super) mod requests;
mod view;

use crate::aitp::Speech;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::Api;
use interop::aitp::Desk;
use runtime::ThreadRow;

/// Looks at the desk of a thread as it stands.
async fn looked<T>(
    api: &Api,
    caller: &Caller,
    row: &ThreadRow,
    look: impl FnOnce(&Desk) -> T,
) -> Result<T, ApiError> {
    let held = Speech::new(api, caller).desk(row).await?;
    let none = Desk::default();
    Ok(look(held.desk().unwrap_or(&none)))
}

//! Messages that a request sends again: some clients send the whole state with each request.

use super::find;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::Api;
use crate::threads::ThreadRef;
use interop::langgraph::{Input, messages_of};
use runtime::{Filter, Landmark};
use serde_json::Value;
use timeline::{ItemId, StepId};

/// Removes from an input the messages that the named thread has already. A thread that does not exist
/// has none.
pub(super) async fn leave_out(
    api: &Api,
    caller: &Caller,
    named: Option<&str>,
    input: &mut Input,
) -> Result<(), ApiError> {
    let found = match named {
        Some(id) => find(api, caller, id).await?,
        None => None,
    };
    let Some(found) = found else {
        return Ok(input.leave_out(&[])?);
    };
    leave_out_of(&found, caller, input).await
}

/// Removes from an input the messages that this thread has already. If there are any, this costs time
/// proportional to the thread. A key without the right to read would learn message contents this way. So
/// its repeated messages remain in the input, and are refused as duplicates.
pub(super) async fn leave_out_of(
    found: &ThreadRef,
    caller: &Caller,
    input: &mut Input,
) -> Result<(), ApiError> {
    let known = if caller.may_read() {
        known(found, input).await?
    } else {
        Vec::new()
    };
    Ok(input.leave_out(&known)?)
}

/// The messages of the thread, if the thread has any of the input's messages.
async fn known(found: &ThreadRef, input: &Input) -> Result<Vec<Value>, ApiError> {
    for id in input.ids() {
        if has(found, id).await? {
            let transcript = found.transcript(Filter::Facts).await?;
            return Ok(messages_of(&transcript));
        }
    }
    Ok(Vec::new())
}

/// Whether the thread has the item or the step that a message id belongs to.
async fn has(found: &ThreadRef, id: &str) -> Result<bool, ApiError> {
    let whole = id.rsplit_once(':').map_or(id, |(whole, _)| whole);
    let items = [ItemId::from(id), ItemId::from(whole)];
    let step = StepId::from(whole);
    let [own, beside] = &items;
    for landmark in [
        Landmark::Item(own),
        Landmark::Step(&step),
        Landmark::Item(beside),
    ] {
        if found.position_of(landmark).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

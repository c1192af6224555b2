//! Messages that a request sends again: clients that keep the whole state send all of it with each request.

use super::find;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::Api;
use crate::threads::ThreadRef;
use interop::langgraph::{Input, messages_of};
use runtime::{Filter, Landmark};
use serde_json::Value;
use timeline::{ItemId, StepId};

/// Leaves out of what a run is given what the thread of this name has already. A thread that is not there has nothing.
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

/// Leaves out of an input what this thread has already. Costs the thread where it has any of that. A key that may not
/// read would learn from it what messages say, so what it sends again is refused as known when it is written.
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

/// The messages of the thread, if it has any of the input.
async fn known(found: &ThreadRef, input: &Input) -> Result<Vec<Value>, ApiError> {
    for id in input.ids() {
        if has(found, id).await? {
            let transcript = found.transcript(Filter::Facts).await?;
            return Ok(messages_of(&transcript));
        }
    }
    Ok(Vec::new())
}

/// Whether the thread has what a message of this id is of: an item, or a step and its calls.
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

//! Messages that a request sends again: clients that keep the whole state send all of it with each request.

use super::{Found, find};
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::Api;
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
    let row = match named {
        Some(id) => find(api.runtime(), caller, id).await?,
        None => None,
    };
    let Some(row) = row else {
        return Ok(input.leave_out(&[])?);
    };
    let runtime = api.runtime().clone();
    leave_out_of(&Found { runtime, row }, caller, input).await
}

/// Leaves out of an input what this thread has already. Costs the thread where it has any of that. A key that may not
/// read would learn from it what messages say, so what it sends again is refused as known when it is written.
pub(super) async fn leave_out_of(
    found: &Found,
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
async fn known(found: &Found, input: &Input) -> Result<Vec<Value>, ApiError> {
    for id in input.ids() {
        if has(found, id).await? {
            let (tenant, key) = (found.tenant(), found.key());
            let transcript = found.runtime.transcript(tenant, key, Filter::Facts).await?;
            return Ok(messages_of(&transcript));
        }
    }
    Ok(Vec::new())
}

/// Whether the thread has what a message of this id is of: an item, or a step and its calls.
async fn has(found: &Found, id: &str) -> Result<bool, ApiError> {
    let (runtime, tenant, key) = (&found.runtime, found.tenant(), found.key());
    let whole = id.rsplit_once(':').map_or(id, |(whole, _)| whole);
    let items = [ItemId::from(id), ItemId::from(whole)];
    let step = StepId::from(whole);
    let [own, beside] = &items;
    for landmark in [
        Landmark::Item(own),
        Landmark::Step(&step),
        Landmark::Item(beside),
    ] {
        if runtime.place_of(tenant, key, landmark).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

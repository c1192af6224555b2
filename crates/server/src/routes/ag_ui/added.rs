//! What a client adds, held against what was said.

use super::asked::Reader;
use crate::error::ApiError;
use interop::ag_ui::{RunInput, Said, ToolAnswer, has_call, is_said};
use runtime::{Filter, Landmark, Place, RuntimeError, StoreError, Stretch};
use timeline::{ItemId, OpenCall};

fn differs(pointer: String, what: String) -> ApiError {
    ApiError::HistoryDiffers { pointer, what }
}

impl Reader {
    /// Of what the user says at the end of the messages what is new. The rest was said before, and so.
    pub(super) async fn added<'a>(&self, input: &'a RunInput) -> Result<Vec<&'a Said>, ApiError> {
        let mut new: Vec<&Said> = Vec::new();
        for said in &input.said {
            if !self.was_said(said).await? {
                new.push(said);
            } else if let Some(first) = new.first() {
                let what = format!("the conversation has no message {:?} here", first.id);
                return Err(differs(format!("/messages/{}", first.place), what));
            }
        }
        Ok(new)
    }

    async fn was_said(&self, said: &Said) -> Result<bool, ApiError> {
        // What was said beside answers stands with them.
        let beside = said.id.rsplit_once(':').map(|(item, _)| item);
        let mut place = self.place_of(&said.id).await?;
        if let Some(item) = beside.filter(|_| place.is_none()) {
            place = self.place_of(item).await?;
        }
        let Some(place) = place else { return Ok(false) };
        let Self { api, caller, key } = self;
        let piece = Stretch::UpTo { place, n: 1 };
        let piece = api
            .runtime()
            .stretch(&caller.tenant, key, piece, Filter::Facts);
        let id = &said.id;
        match is_said(&piece.await?.transcript, said) {
            Some(true) => Ok(true),
            Some(false) => Err(differs(
                format!("/messages/{}/content", said.place),
                format!("the message {id:?} says something else"),
            )),
            None => Err(differs(
                format!("/messages/{}", said.place),
                format!("the conversation has no message {id:?} any more"),
            )),
        }
    }

    async fn place_of(&self, id: &str) -> Result<Option<Place>, ApiError> {
        let Self { api, caller, key } = self;
        let id = ItemId::from(id);
        let place = api
            .runtime()
            .place_of(&caller.tenant, key, Landmark::Item(&id));
        match place.await {
            Err(RuntimeError::Store(StoreError::NotFound)) => Ok(None),
            found => Ok(found?),
        }
    }

    /// Refuses results of calls that no agent has made. Costs a look at the thread's end where there are
    /// results of calls that do not wait, and at all of it where the end has not made these.
    pub(super) async fn check_results(
        &self,
        input: &RunInput,
        open: &[OpenCall],
    ) -> Result<(), ApiError> {
        let is_open =
            |it: &&ToolAnswer| open.iter().any(|call| call.tool_call_id == it.tool_call_id);
        let results = input.results.iter();
        let mut unknown: Vec<&ToolAnswer> = results.filter(|it| !is_open(it)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let Self { api, caller, key } = self;
        let (runtime, tenant) = (api.runtime(), &caller.tenant);
        let end = Stretch::UpTo {
            place: Place::END,
            n: 1,
        };
        match runtime.stretch(tenant, key, end, Filter::Facts).await {
            Err(RuntimeError::Store(StoreError::NotFound)) => {}
            end => {
                let end = end?;
                unknown.retain(|it| !has_call(&end.transcript, &it.tool_call_id));
                if unknown.is_empty() {
                    return Ok(());
                }
                let all = runtime.transcript(tenant, key, Filter::Facts).await?;
                unknown.retain(|it| !has_call(&all, &it.tool_call_id));
            }
        }
        let Some(first) = unknown.first() else {
            return Ok(());
        };
        let what = format!("the agent has made no call {:?}", first.tool_call_id);
        Err(differs(
            format!("/messages/{}/toolCallId", first.place),
            what,
        ))
    }
}

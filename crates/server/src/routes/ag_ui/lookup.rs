//! What a client adds, held against what was said.

use super::answers::Reader;
use crate::error::ApiError;
use interop::ag_ui::{NewMessage, RunInput, ToolAnswer, is_known_message, is_sent_with_answers};
use interop::parts::has_call;
use runtime::{Filter, Landmark, PageRequest, Position, RuntimeError, StoreError};
use timeline::{ItemId, OpenCall, Transcript};

fn differs(pointer: String, what: String) -> ApiError {
    ApiError::HistoryDiffers { pointer, what }
}

impl Reader {
    /// Of what the user says at the end of the messages what is new. The rest was said before, and so.
    pub(super) async fn added<'a>(
        &self,
        input: &'a RunInput,
    ) -> Result<Vec<&'a NewMessage>, ApiError> {
        let mut new: Vec<&NewMessage> = Vec::new();
        for said in &input.messages {
            if new
                .iter()
                .any(|it| it.id == said.id && it.content == said.content)
            {
                continue;
            }
            if !self.is_stored(input, said).await? {
                new.push(said);
            } else if let Some(first) = new.first() {
                let what = format!("the conversation has no message {:?} here", first.id);
                return Err(differs(format!("/messages/{}", first.index), what));
            }
        }
        Ok(new)
    }

    async fn is_stored(&self, input: &RunInput, said: &NewMessage) -> Result<bool, ApiError> {
        // What was said beside answers stands with them.
        let beside = said.id.rsplit_once(':').map(|(item, _)| item);
        let own = self.place_of(&said.id).await?;
        let mut place = own;
        if let Some(item) = beside.filter(|_| place.is_none()) {
            place = self.place_of(item).await?;
        }
        let Some(place) = place else {
            return self.is_stored_with_answers(input, said).await;
        };
        let id = &said.id;
        match is_known_message(&self.up_to(place).await?, said) {
            Some(true) => Ok(true),
            None if own.is_none() => Ok(false),
            Some(false) => Err(differs(
                format!("/messages/{}/content", said.index),
                format!("the message {id:?} says something else"),
            )),
            None => Err(differs(
                format!("/messages/{}", said.index),
                format!("the conversation has no message {id:?} any more"),
            )),
        }
    }

    /// Whether it was said beside the results that stand before it: then it has no id of its client's, and stands at
    /// the thread's end, for nothing was answered since that the client would know of.
    async fn is_stored_with_answers(
        &self,
        input: &RunInput,
        said: &NewMessage,
    ) -> Result<bool, ApiError> {
        if input.results.is_empty() {
            return Ok(false);
        }
        match self.up_to(Position::END).await {
            Err(RuntimeError::Store(StoreError::NotFound)) => Ok(false),
            end => {
                let calls = input.results.iter().map(|it| it.tool_call_id.as_str());
                let calls: Vec<&str> = calls.collect();
                Ok(is_sent_with_answers(&end?, &calls, said))
            }
        }
    }

    /// The piece of the thread that ends here.
    async fn up_to(&self, place: Position) -> Result<Transcript, RuntimeError> {
        let piece = PageRequest::UpTo { place, n: 1 };
        let piece = self.thread.page(piece, Filter::Facts);
        Ok(piece.await?.transcript)
    }

    async fn place_of(&self, id: &str) -> Result<Option<Position>, ApiError> {
        let id = ItemId::from(id);
        let place = self.thread.position_of(Landmark::Item(&id));
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
        match self.up_to(Position::END).await {
            Err(RuntimeError::Store(StoreError::NotFound)) => {}
            end => {
                let end = end?;
                unknown.retain(|it| !has_call(&end, &it.tool_call_id));
                if unknown.is_empty() {
                    return Ok(());
                }
                let all = self.thread.transcript(Filter::Facts).await?;
                unknown.retain(|it| !has_call(&all, &it.tool_call_id));
            }
        }
        let Some(first) = unknown.first() else {
            return Ok(());
        };
        let what = format!("the agent has made no call {:?}", first.tool_call_id);
        Err(differs(
            format!("/messages/{}/toolCallId", first.index),
            what,
        ))
    }
}

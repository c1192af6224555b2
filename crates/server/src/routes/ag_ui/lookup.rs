//! Compares a client's messages with the stored ones.

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
    /// The user's messages at the end of the input that are new. The others must equal the stored ones.
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

    /// Whether the message was posted together with the results before it. Such a message has no client
    /// id. It is at the thread's end, because the client knows of no later answers.
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

    /// The page of the thread that ends at this position.
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

    /// Refuses results of calls that no agent has made. If calls are not pending, this reads the
    /// thread's end; if they are not there, the whole thread.
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

//! Compares a client's messages with the stored ones.
//!
//! The cost depends on what the client sends. Messages are looked up from the last one back, in pages
//! that grow while no message is missing between them.

use crate::error::ApiError;
use crate::state::Api;
use crate::threads::ThreadKey;
use interop::ai_sdk::{
    Difference, SentMessage, SentRole, StoredMessage, Streamed, stored_messages,
};
use runtime::{Filter, Landmark, PageRequest, Position};
use std::collections::BTreeMap;

/// Maximum number of messages read at once.
const PIECE: usize = 64;
/// Number of records of one answer read at once.
const PAGE: usize = 512;

/// A chat whose messages are looked up.
#[derive(Clone, Copy)]
pub(super) struct Chat<'a> {
    pub(super) api: &'a Api,
    pub(super) thread: &'a ThreadKey,
}

impl From<Difference> for ApiError {
    fn from(Difference { pointer, what }: Difference) -> Self {
        Self::HistoryDiffers { pointer, what }
    }
}

fn unknown(sent: &SentMessage) -> ApiError {
    let pointer = sent.pointer();
    let id = &sent.id;
    let what = format!("the conversation has no message {id:?} here, or has it no longer");
    ApiError::HistoryDiffers { pointer, what }
}

impl Chat<'_> {
    /// Checks the messages that are stored already, and returns their number. The messages after them
    /// are new: the user's messages at the end that the thread does not have.
    ///
    /// # Errors
    ///
    /// [`ApiError::HistoryDiffers`] if a message is not stored, has another content or another place.
    pub(super) async fn check(&self, sent: &[SentMessage]) -> Result<usize, ApiError> {
        let mut n_known = sent.len();
        for message in sent.iter().rev() {
            if message.role != SentRole::User
                || self.thread.item_position(&message.id).await?.is_some()
            {
                break;
            }
            n_known -= 1;
        }
        let known = sent.get(..n_known).unwrap_or_default();
        self.check_known(known).await?;
        Ok(n_known)
    }

    async fn check_known(&self, known: &[SentMessage]) -> Result<(), ApiError> {
        let mut left = known;
        let mut before = Position::END;
        let mut n = 1;
        while let Some((next, _)) = left.split_last() {
            // What has nothing to show was never sent to be shown.
            if next.role == SentRole::Assistant && is_empty(next) {
                left = left.get(..left.len() - 1).unwrap_or_default();
                continue;
            }
            let place = self.place(next).await?.filter(|place| *place < before);
            let place = place.ok_or_else(|| unknown(next))?;
            let piece = PageRequest::UpTo { place, n };
            let piece = self.thread.page(piece, Filter::Facts);
            let piece = piece.await?;
            let stored = stored_messages(&piece.transcript);
            let rest = self.check_page(left, &stored).await?;
            let n_found = left.len() - rest.len();
            if n_found == 0 {
                return Err(unknown(next));
            }
            // Where something is left out between, whoever reads on reads it in vain.
            n = if n_found >= stored.len() {
                (n * 2).min(PIECE)
            } else {
                1
            };
            before = piece.first;
            left = rest;
        }
        Ok(())
    }

    /// Compares the last of these messages with the stored ones, and returns the messages before them.
    async fn check_page<'s>(
        &self,
        mut left: &'s [SentMessage],
        stored: &[StoredMessage],
    ) -> Result<&'s [SentMessage], ApiError> {
        let places = stored.iter().enumerate();
        let places: BTreeMap<&str, usize> =
            places.map(|(place, stored)| (stored.id(), place)).collect();
        let mut end = stored.len();
        while let Some((sent, before)) = left.split_last() {
            let found = places.get(sent.id.as_str()).filter(|place| **place < end);
            let Some((place, found)) = found.and_then(|at| Some((*at, stored.get(*at)?))) else {
                break;
            };
            if let Err(difference) = found.compare(sent) {
                let streamed = self.streamed(found).await?;
                streamed.ok_or(difference)?.compare(sent)?;
            }
            end = place;
            left = before;
        }
        Ok(left)
    }

    /// An answer with everything that its streams have shown. Costs time proportional to that.
    async fn streamed(&self, stored: &StoredMessage) -> Result<Option<StoredMessage>, ApiError> {
        let Some(execution) = stored.execution() else {
            return Ok(None);
        };
        let landmark = Landmark::Execution(execution);
        let place = self.thread.position_of(landmark).await?;
        let Some(mut after) = place.map(Position::before) else {
            return Ok(None);
        };
        let mut streamed = Streamed::of(stored.clone());
        loop {
            let page = self.thread.records(after, PAGE);
            let (page, last) = page.await?;
            let mut records = page.iter().map(|logged| &logged.record);
            let is_over = records.any(|record| streamed.see(record));
            if is_over || last == after {
                return Ok(Some(streamed.finish()));
            }
            after = last;
        }
    }

    /// The stored form of an agent's message; none if it does not exist.
    pub(super) async fn stored(
        &self,
        sent: &SentMessage,
    ) -> Result<Option<StoredMessage>, ApiError> {
        let Some(place) = self.place(sent).await? else {
            return Ok(None);
        };
        let piece = PageRequest::UpTo { place, n: 1 };
        let piece = self.thread.page(piece, Filter::Facts);
        let stored = stored_messages(&piece.await?.transcript);
        Ok(stored.into_iter().rfind(|stored| stored.id() == sent.id))
    }

    /// The position of a message.
    async fn place(&self, sent: &SentMessage) -> Result<Option<Position>, ApiError> {
        let thread = self.thread;
        if sent.role != SentRole::User {
            return Ok(thread.item_position(&sent.id).await?);
        }
        if let Some(revision) = thread.last_revision(&sent.id).await? {
            return Ok(thread.item_position(&revision.of(&sent.id)).await?);
        }
        // What was said beside answers stands with them.
        match sent.id.rsplit_once(':') {
            Some((item, _)) => Ok(thread.item_position(item).await?),
            None => Ok(None),
        }
    }
}

/// Whether clients see nothing of a message.
fn is_empty(sent: &SentMessage) -> bool {
    sent.parts.iter().all(|part| part["type"] == "step-start")
}

//! Copies the history that a request continues into the request itself, for a response that is not
//! stored.

mod closed;

use super::echo::Echo;
use super::error::RequestError;
use super::include::ListOptions;
use super::item::{self, InputContent};
use super::items::{conversation_items, is_imported};
use super::request::{Continues, CreateRequest};
use super::resource::{chain, reaction_of};
use closed::closed;
use serde_json::Value;
use std::collections::BTreeSet;
use timeline::{Entry, ExecutionId, Transcript};

/// A transcript up to the end of the response that begins with this execution; `None` if there is
/// no such response.
pub fn transcript_until(mut transcript: Transcript, execution: &ExecutionId) -> Option<Transcript> {
    let (place, _) = reaction_of(&transcript, execution)?;
    let (last, _) = chain(&transcript, place).last()?;
    transcript.entries.truncate(last + 1);
    Some(transcript)
}

/// Whether the request of another response has brought this execution as a part of its past.
pub fn is_brought(transcript: &Transcript, execution: &ExecutionId) -> bool {
    reaction_of(transcript, execution).is_some_and(|(_, reaction)| is_imported(reaction))
}

/// Whether a thread contains only the response that begins with this execution and the history that
/// came with its request, as far as the transcript shows. `None` if there is no such response.
pub fn is_alone(transcript: &Transcript, execution: &ExecutionId) -> Option<bool> {
    let (place, reaction) = reaction_of(transcript, execution)?;
    let (last, _) = chain(transcript, place).last()?;
    let echo = Echo::of(&reaction.execution);
    let began =
        echo.members.get("previous_response_id") == Some(&Value::Null) && !echo.conversation;
    let before = transcript.entries.get(..place).unwrap_or_default();
    let is_first = before.iter().all(|entry| match entry {
        Entry::Reaction(reaction) => is_imported(reaction),
        Entry::Item(_) => true,
    });
    Some(began && is_first && last + 1 == transcript.entries.len())
}

impl CreateRequest {
    /// Puts all items of a conversation before the request's own input. The new request continues
    /// nothing and has the same meaning. The response repeats the members of the original request.
    ///
    /// Reasoning includes the encrypted content that its provider needs. Referenced items of the
    /// input are omitted if the conversation has them. Open calls get results that report an
    /// interruption, unless they are at the end of the conversation. Results without a call are
    /// omitted.
    pub fn with_past(mut self, transcript: &Transcript) -> Result<Self, RequestError> {
        let options = ListOptions {
            encrypted_reasoning: true,
            extensions: false,
        };
        let items = conversation_items(transcript, options).value;
        let mut past = Vec::with_capacity(items.len());
        let mut known = BTreeSet::new();
        for (place, listed) in items.into_iter().enumerate() {
            let item: Value = serde_json::from_str(&listed.json)
                .map_err(|_| RequestError::server_error("an item of the conversation is broken"))?;
            past.push(item::item(&item, format!("/previous/{place}"))?);
            known.insert(listed.id);
        }
        let mut input = closed(past, &self.input);
        for given in self.input {
            match &given.content {
                InputContent::Reference { id } if known.contains(id) => {}
                InputContent::Reference { .. }
                | InputContent::Message { .. }
                | InputContent::Reasoning(_)
                | InputContent::Call { .. }
                | InputContent::CallOutput { .. }
                | InputContent::Compaction { .. }
                | InputContent::Approval { .. } => input.push(given),
            }
        }
        self.input = input;
        self.continues = Continues::Nothing;
        Ok(self)
    }
}

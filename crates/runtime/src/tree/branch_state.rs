//! The state of a branch after each entry of its log.

use super::branch_events::{BranchEvent, Saved};
use super::ranges::{MessageRange, apply};
use crate::agent::record;
use agents::AgentState;
use interop::model;
use interop::parts::StepResponse;
use std::collections::BTreeMap;
use std::sync::Arc;
use timeline::{Entry, Payload, Seq, Transcript};
use upp::{Message, Messages, ToolCall, ToolResult, ToolResultMessage};

/// A branch at one position of its log. Clones share all data.
#[derive(Clone, Debug)]
pub(super) struct BranchState {
    /// The messages from the root on.
    pub(super) conversation: Messages,
    /// The snapshot.
    pub(super) state: AgentState,
}

impl BranchState {
    /// The state of a branch without messages.
    pub(super) fn initial() -> Self {
        Self {
            conversation: Messages::new(),
            state: AgentState::initial(),
        }
    }

    /// The messages that an entry adds if it comes next.
    pub(super) fn messages(&self, entry: &Entry) -> Vec<Message> {
        let mut transcript = Transcript::default();
        transcript.entries.push(identified(entry.clone()));
        let mut said = model::history(&transcript, None);
        match entry {
            Entry::Item(item) => {
                if let Some(Message::Assistant(message)) = said.first_mut() {
                    Arc::make_mut(message).id = item.id.as_str().into();
                }
                let left = model::superseded(open_calls(&self.conversation), item);
                said.splice(0..0, left.map(Message::from));
            }
            // What comes of calls that had waited is in their order, which the entry does not know.
            Entry::Reaction(_) => in_order(&mut said, last_round(&self.conversation).0),
        }
        said
    }

    /// The state after an entry that added these messages.
    pub(super) fn after(&self, entry: &Entry, said: &[Message]) -> Self {
        let mut conversation = self.conversation.clone();
        let mut messages = self.state.messages().clone();
        for message in said {
            conversation.push_back_mut(message.clone());
            messages.push_back_mut(message.clone());
        }
        let mut state = self.state.with_shared_context(messages);
        if let Entry::Reaction(reaction) = entry {
            for step in &reaction.steps {
                state = record::after_step(&state, step);
            }
        }
        Self {
            conversation,
            state,
        }
    }

    /// The state on which a snapshot is stored: the previous state with the snapshot's messages.
    pub(super) fn with_view(&self, view: Option<&[MessageRange]>) -> Option<AgentState> {
        let messages = match view {
            None => self.conversation.clone(),
            Some(pieces) => {
                let have: Vec<Message> = self.conversation.iter().cloned().collect();
                apply(pieces, &have)?.into_iter().collect()
            }
        };
        Some(self.state.with_shared_context(messages))
    }

    fn restored(&self, saved: &Saved) -> Result<AgentState, String> {
        let earlier = self.with_view(saved.view.as_deref());
        let earlier = earlier.ok_or("it shows more messages than there are")?;
        AgentState::from_json_since(saved.state.text(), &earlier)
            .map_err(|error| crate::error::render_error(&error))
    }
}

/// A position in a log where it can be forked, with the branch's state there.
#[derive(Clone, Debug)]
pub(super) struct Rest {
    pub(super) seq: Seq,
    pub(super) state: BranchState,
}

/// The states of a branch at each fork position of its log.
#[derive(Clone, Debug)]
pub(super) struct Course {
    first: Rest,
    rests: Vec<Rest>,
    /// Number of entries read since a state was stored.
    pub(super) n_unsaved: usize,
}

impl Course {
    /// A course that starts with the state of another branch.
    pub(super) fn new(base: BranchState) -> Self {
        Self {
            first: Rest {
                seq: Seq::ZERO,
                state: base,
            },
            rests: Vec::new(),
            n_unsaved: 0,
        }
    }

    /// Applies the next events. Fails with a description if an event is invalid.
    pub(super) fn follow(&mut self, told: &[(Seq, BranchEvent)]) -> Result<(), String> {
        let (fixes, n_unsaved) = fixes(told, self.n_unsaved);
        for (place, (seq, told)) in told.iter().enumerate() {
            let now = self.last();
            let standing = match told {
                BranchEvent::Message(entry) => {
                    let mut said = now.messages(entry);
                    if let Some(pieces) = fixes.get(&place) {
                        said = apply(pieces, &said).ok_or("it corrects more than was said")?;
                    }
                    now.after(entry, &said)
                }
                BranchEvent::Saved(saved) => BranchState {
                    state: now.restored(saved)?,
                    conversation: now.conversation.clone(),
                },
                BranchEvent::Rests => now.clone(),
            };
            self.rests.push(Rest {
                seq: *seq,
                state: standing,
            });
        }
        self.n_unsaved = n_unsaved;
        Ok(())
    }

    /// The state at the end of the log.
    pub(super) fn last(&self) -> &BranchState {
        &self.rests.last().unwrap_or(&self.first).state
    }

    /// The state at an event.
    pub(super) fn at(&self, seq: Seq) -> &BranchState {
        let n = self.rests.partition_point(|rest| rest.seq <= seq);
        let rest = n.checked_sub(1).and_then(|place| self.rests.get(place));
        &rest.unwrap_or(&self.first).state
    }

    /// The last position with at most `n_messages` messages; else the first position.
    pub(super) fn rest_within(&self, n_messages: usize) -> &Rest {
        let is_within = |rest: &Rest| rest.state.conversation.len() <= n_messages;
        let n = self.rests.partition_point(is_within);
        let place = n.saturating_sub(1);
        self.rests.get(place).unwrap_or(&self.first)
    }
}

/// An entry whose results have ids of their own. Without a stored id, a result would get another id
/// each time it is read.
fn identified(mut entry: Entry) -> Entry {
    let steps = match &mut entry {
        Entry::Item(_) => return entry,
        Entry::Reaction(reaction) => &mut reaction.steps,
    };
    for step in steps {
        let Some((about, _)) = &mut step.response else {
            continue;
        };
        let said: StepResponse = about.read().unwrap_or_default();
        if said.message_id.is_some() {
            continue;
        }
        let said = StepResponse {
            message_id: Some(step.step.id.to_string()),
            ..said
        };
        if let Ok(identified) = Payload::write(&said) {
            *about = identified;
        }
    }
    entry
}

/// Returns the corrections of messages, by position, and the number of entries after the last
/// snapshot. `n_unsaved` entries precede the first position.
fn fixes(
    told: &[(Seq, BranchEvent)],
    n_unsaved: usize,
) -> (BTreeMap<usize, &[MessageRange]>, usize) {
    let mut fixes = BTreeMap::new();
    let mut said = vec![None; n_unsaved];
    for (place, (_, told)) in told.iter().enumerate() {
        match told {
            BranchEvent::Message(_) => said.push(Some(place)),
            BranchEvent::Saved(saved) => {
                for (nth, pieces) in &saved.fixes {
                    let place = said.get(*nth).copied().flatten();
                    fixes.extend(place.map(|place| (place, pieces.as_slice())));
                }
                said.clear();
            }
            BranchEvent::Rests => {}
        }
    }
    (fixes, said.len())
}

/// The calls of the response that the conversation ends with, and the results that follow it.
fn last_round(conversation: &Messages) -> (&[ToolCall], Vec<&ToolResult>) {
    let mut results = Vec::new();
    let places = (0..conversation.len()).rev();
    for message in places.filter_map(|place| conversation.get(place)) {
        match message {
            Message::ToolResult(message) => results.extend(&message.results),
            Message::Assistant(message) => return (&message.tool_calls, results),
            Message::User(_) => break,
        }
    }
    (&[], Vec::new())
}

/// The calls at the end that have no result. Where an id repeats, each result is for one of them.
pub(super) fn open_calls(conversation: &Messages) -> Vec<&ToolCall> {
    let (calls, mut results) = last_round(conversation);
    let mut open = Vec::new();
    for call in calls {
        let is_its = |result: &&ToolResult| result.tool_call_id == call.tool_call_id;
        match results.iter().position(is_its) {
            Some(place) => {
                results.swap_remove(place);
            }
            None => open.push(call),
        }
    }
    open
}

/// Sorts the results at the front by the positions of their calls.
fn in_order(messages: &mut [Message], calls: &[ToolCall]) {
    let place = |result: &ToolResult| {
        let is_its = |call: &ToolCall| call.tool_call_id == result.tool_call_id;
        calls.iter().position(is_its)
    };
    for message in messages {
        let Message::ToolResult(results) = message else {
            return;
        };
        if !results.results.is_sorted_by_key(place) {
            let mut sorted = ToolResultMessage::clone(results);
            sorted.results.sort_by_key(place);
            *message = sorted.into();
        }
    }
}

//! A thread's state, and those it had before.

use super::interrupt::{InterruptedCall, interrupts};
use super::message::{agent_of, entry_messages, messages_of};
use super::run::is_stop;
use super::thread::instant;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use timeline::{Entry, ExecutionId, ExecutionStatus, ItemId, OpenCall, Transcript};

/// A thread's values: its messages.
pub fn values_of(transcript: &Transcript) -> Value {
    json!({ "messages": messages_of(transcript) })
}

/// A moment of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// When the execution started.
    Begin,
    /// When the execution ended.
    End,
}

/// A thread's values at a moment of an execution, without items that were queued then or that came
/// later. `None` if the thread has no such execution.
pub fn values_at(
    transcript: &Transcript,
    execution: &ExecutionId,
    moment: Moment,
) -> Option<Value> {
    let is_it = |entry: &Entry| match entry {
        Entry::Reaction(reaction) => reaction.execution.id == *execution,
        Entry::Item(_) => false,
    };
    let place = transcript.entries.iter().position(is_it)?;
    let n_entries = match moment {
        Moment::Begin => place,
        Moment::End => place + 1,
    };
    let entries = transcript.entries.iter().take(n_entries);
    let messages: Vec<Value> = entries.flat_map(entry_messages).collect();
    Some(json!({ "messages": messages }))
}

/// One state: after a run, or after messages that no run answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Its id: that of the execution that led to it, or of the last posted item.
    pub checkpoint_id: String,
    /// How many of the messages it has.
    n_messages: usize,
    at: Timestamp,
    agent: Option<String>,
    is_run: bool,
    is_running: bool,
    open: Vec<OpenCall>,
    error: Option<String>,
}

/// The states of a thread, the oldest first. They share their messages.
#[derive(Clone, Debug, Default)]
pub struct Snapshots {
    messages: Vec<Value>,
    states: Vec<Snapshot>,
}

impl Snapshots {
    /// The states that a thread has been in.
    pub fn of(transcript: &Transcript) -> Self {
        let mut all = Self::default();
        let mut stops: BTreeSet<&ItemId> = BTreeSet::new();
        // What was said or done since the last state.
        let mut since: Option<Snapshot> = None;
        for entry in &transcript.entries {
            let n_before = all.messages.len();
            all.messages.extend(entry_messages(entry));
            let n_messages = all.messages.len();
            match entry {
                Entry::Item(item) => {
                    if is_stop(item) {
                        stops.insert(&item.id);
                    }
                    if n_messages > n_before {
                        since = Some(Snapshot {
                            checkpoint_id: item.id.to_string(),
                            n_messages,
                            at: item.created_at,
                            agent: None,
                            is_run: false,
                            is_running: false,
                            open: Vec::new(),
                            error: None,
                        });
                    }
                }
                Entry::Reaction(reaction) => {
                    let execution = &reaction.execution;
                    if stops.contains(&execution.trigger_item_id) {
                        continue;
                    }
                    let is_running = execution.status == ExecutionStatus::Executing;
                    let failed = execution.status == ExecutionStatus::Failed;
                    let why = execution.interruption.as_ref().filter(|_| failed);
                    since = None;
                    all.states.push(Snapshot {
                        checkpoint_id: execution.id.to_string(),
                        n_messages,
                        at: reaction.ended_at.unwrap_or(execution.created_at),
                        agent: agent_of(execution.run.as_ref()),
                        is_run: true,
                        is_running,
                        open: reaction.open_calls(),
                        error: why
                            .map(|why| why.detail.clone().unwrap_or_else(|| why.reason.clone())),
                    });
                }
            }
        }
        all.states.extend(since);
        all
    }

    /// The index of the state with this id; the oldest one has 0.
    pub fn index_of(&self, checkpoint_id: &str) -> Option<usize> {
        let mut states = self.states.iter();
        states.rposition(|state| state.checkpoint_id == checkpoint_id)
    }

    /// The place of the last state; none of an empty thread.
    pub fn last(&self) -> Option<usize> {
        self.states.len().checked_sub(1)
    }

    /// The last state's id.
    pub fn last_id(&self) -> Option<&str> {
        self.states.last().map(|state| state.checkpoint_id.as_str())
    }

    /// A page of states before the place `before`, newest first. It has at most `limit` states. After
    /// the first one, their messages have at most `max_bytes` bytes in total.
    pub fn page(&self, before: Option<usize>, limit: usize, max_bytes: usize) -> Vec<usize> {
        let end = before.unwrap_or(self.states.len());
        // How long the messages are up to each.
        let mut sums = Vec::with_capacity(self.messages.len() + 1);
        let mut sum = 0usize;
        sums.push(0);
        for message in &self.messages {
            sum = sum.saturating_add(message.to_string().len());
            sums.push(sum);
        }
        let mut total = 0usize;
        let places = (0..end).rev().take(limit).enumerate();
        let fitting = places.take_while(|(nth, place)| {
            let n_messages = self.states.get(*place).map_or(0, |state| state.n_messages);
            total = total.saturating_add(sums.get(n_messages).copied().unwrap_or(sum));
            *nth == 0 || total <= max_bytes
        });
        fitting.map(|(_, place)| place).collect()
    }

    /// The state at an index. `asked` are the currently pending calls; they count only for the last
    /// state. Earlier states show the calls that were open then.
    pub fn to_json(
        &self,
        place: Option<usize>,
        thread: &str,
        key: &str,
        asked: Option<&[InterruptedCall]>,
    ) -> Value {
        let state = place.and_then(|place| self.states.get(place));
        let parent = place.and_then(|place| self.states.get(place.checked_sub(1)?));
        let is_last = place == self.last();
        let then: Vec<InterruptedCall> = state
            .iter()
            .flat_map(|state| &state.open)
            .filter_map(|call| InterruptedCall::of(key, key, call))
            .collect();
        let asked = if is_last {
            asked.unwrap_or_default()
        } else {
            then.as_slice()
        };
        let n_messages = state.map_or(0, |state| state.n_messages);
        let messages = self.messages.get(..n_messages).unwrap_or_default();
        let agent = state.and_then(|state| state.agent.as_deref());
        let is_running = state.is_some_and(|state| state.is_running);
        let error = state.and_then(|state| state.error.as_deref());
        let next: Vec<&str> = agent
            .filter(|_| is_running || !asked.is_empty())
            .into_iter()
            .collect();
        let tasks: Vec<Value> = state
            .filter(|_| is_running || error.is_some() || !asked.is_empty())
            .map(|state| {
                json!({
                    "id": state.checkpoint_id, "name": agent,
                    "error": error, "interrupts": interrupts(asked), "checkpoint": null,
                    "state": null, "result": null,
                })
            })
            .into_iter()
            .collect();
        let mut metadata = json!({
            "source": state.map_or("input", |state| if state.is_run { "loop" } else { "update" }),
            "step": place.map_or(-1, |place| i64::try_from(place).unwrap_or(i64::MAX)),
            "thread_id": thread,
        });
        if let Some(state) = state.filter(|state| state.is_run) {
            metadata["run_id"] = state.checkpoint_id.as_str().into();
            metadata["assistant_id"] = agent.into();
        }
        let own = checkpoint(thread, state.map(|state| state.checkpoint_id.as_str()));
        let above = parent.map(|state| checkpoint(thread, Some(&state.checkpoint_id)));
        json!({
            "values": {"messages": messages},
            "next": next,
            "tasks": tasks,
            "metadata": metadata,
            "created_at": state.map(|state| instant(state.at)),
            "checkpoint": own,
            "parent_checkpoint": above,
            "interrupts": interrupts(asked),
            "checkpoint_id": state.map(|state| state.checkpoint_id.as_str()),
            "parent_checkpoint_id": parent.map(|state| state.checkpoint_id.as_str()),
        })
    }
}

fn checkpoint(thread: &str, id: Option<&str>) -> Value {
    json!({"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": id, "checkpoint_map": null})
}

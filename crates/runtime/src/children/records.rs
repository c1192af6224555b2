//! The records of a child in its parent's log: its start and its end.

use crate::error::RuntimeError;
use agents::Spawn;
use interop::parts::EventPart;
use serde::{Deserialize, Serialize};
use timeline::{Payload, Seq, ThreadId};

/// A child that was started (`data-tp-thread_spawn`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::struct_field_names,
    reason = "the first is the protocol's name"
)]
pub(super) struct Spawned {
    /// Its thread.
    pub(super) spawned_thread_id: ThreadId,
    /// The call that started it.
    pub(super) tool_call_id: String,
    /// The run of the sub-agent; the same when the call is run again after a crash.
    pub(super) subagent_id: String,
    /// The type of sub-agent that the tool declares.
    pub(super) subagent_type: String,
    /// Whether its events are hidden from followers of the parent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_hidden: bool,
}

/// A child that has ended (`data-tp-thread_end`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ended {
    /// Its thread.
    pub(super) thread_id: ThreadId,
    /// The call that started it.
    pub(super) tool_call_id: String,
    /// The outcome: `completed`, `waiting`, or the reason of its interruption.
    pub(super) reason: String,
    /// The last event of its log that counts; absent in older logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) seq: Option<Seq>,
}

impl Spawned {
    pub(super) fn of(spawn: &Spawn, child: &ThreadId) -> Self {
        Self {
            spawned_thread_id: child.clone(),
            tool_call_id: spawn.tool_call_id.as_str().to_owned(),
            subagent_id: spawn.subagent_id.to_string(),
            subagent_type: spawn.subagent_type.to_string(),
            is_hidden: !spawn.propagate,
        }
    }

    pub(super) fn read(part: &Payload) -> Option<Self> {
        let event = EventPart::read(part)?;
        let spawned = event.part_type == EventPart::THREAD_SPAWN;
        spawned.then(|| event.data.read().ok())?
    }

    pub(super) fn write(&self) -> Result<Payload, RuntimeError> {
        event(EventPart::THREAD_SPAWN, &self.spawned_thread_id, self)
    }
}

impl Ended {
    pub(super) fn read(part: &Payload) -> Option<Self> {
        let event = EventPart::read(part)?;
        let ended = event.part_type == EventPart::THREAD_END;
        ended.then(|| event.data.read().ok())?
    }

    pub(super) fn write(&self) -> Result<Payload, RuntimeError> {
        event(EventPart::THREAD_END, &self.thread_id, self)
    }
}

fn event(kind: &str, thread: &ThreadId, data: &impl Serialize) -> Result<Payload, RuntimeError> {
    let event = EventPart {
        part_type: kind.to_owned(),
        id: thread.as_str().to_owned(),
        data: Payload::write(data)?,
    };
    Ok(event.write()?)
}

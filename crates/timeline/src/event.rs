//! The sixteen timeline events (EK §8.2) and their place in a log.

mod decode;

use crate::entity::{Context, Execution, Interruption, Item, Step, StepOutcome, Thread};
use crate::ids::{ContextId, ExecutionId, ItemId, Seq, StepId, ThreadId};
use crate::payload::Payload;
use crate::status::{ContextStatus, ExecutionStatus, ItemStatus, StepStatus, ThreadStatus};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Chunk types (EK §8.1, and extensions of this crate). A model's chunks have the names of the AI
/// SDK's stream.
pub mod chunk_type {
    /// The context a client is in.
    pub const CONTEXT_ID: &str = "data-context-id";
    /// `{"key": "actions"}` while tools run, `{"key": null}` after.
    pub const CONTEXT_SUBSTATE: &str = "data-context-substate";
    /// A sign of life.
    pub const THREAD_PING: &str = "data-thread-ping";
    /// A tool's result.
    pub const TOOL_OUTPUT_AVAILABLE: &str = "tool-output-available";
    /// A tool's failure.
    pub const TOOL_OUTPUT_ERROR: &str = "tool-output-error";
    /// The reaction is over.
    pub const FINISH: &str = "finish";
    /// Extension to EK: the model has answered; `data` is the model, its usage and stop reason.
    pub const STEP_RESPONSE: &str = "data-step-response";
    /// Extension to EK: the earlier chunks of this step came from a dead attempt and are void.
    pub const STEP_RESET: &str = "data-step-reset";
    /// Extension to EK: an effect tool starts; if nothing follows, its outcome is unknown.
    pub const TOOL_STARTED: &str = "data-tool-started";
    /// Extension to EK: data that the process running a step stores for a later attempt. The last
    /// note counts, and it survives [`STEP_RESET`].
    pub const STEP_NOTED: &str = "data-step-noted";
    /// Extension to EK: a process resumes the running execution, which another process began.
    pub const EXECUTION_RESUMED: &str = "data-execution-resumed";
    /// Extension to EK: the process that ran the execution shuts down in order. Without it, the
    /// process died.
    pub const EXECUTION_PARKED: &str = "data-execution-parked";
    /// Extension to EK: the thread's title or metadata changed; `data` is a [`ThreadUpdate`].
    ///
    /// [`ThreadUpdate`]: crate::ThreadUpdate
    pub const THREAD_UPDATED: &str = "data-thread-updated";
    /// Extension to EK: readers omit an item, step or compaction of the thread from here on; `data`
    /// is a [`Removed`](crate::Removed).
    pub const ITEM_REMOVED: &str = "data-item-removed";
    /// Extension to EK: from here on, a summary replaces the oldest runs when a model reads the
    /// thread; `data` is a [`Compaction`](crate::Compaction).
    pub const THREAD_COMPACTED: &str = "data-thread-compacted";

    /// The markers that belong to the thread and to no run.
    pub const OF_THREAD: [&str; 3] = [THREAD_UPDATED, ITEM_REMOVED, THREAD_COMPACTED];
    /// The chunks that state depends on: only the runtime writes them, each by its own command.
    pub const MARKERS: [&str; 9] = [
        STEP_RESPONSE,
        STEP_RESET,
        TOOL_STARTED,
        STEP_NOTED,
        EXECUTION_RESUMED,
        EXECUTION_PARKED,
        THREAD_UPDATED,
        ITEM_REMOVED,
        THREAD_COMPACTED,
    ];
}

/// How an execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum ExecutionResult {
    /// As it should.
    Completed,
    /// Otherwise.
    Failed,
}

/// One fact of a thread's life (EK §8.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type")]
#[expect(missing_docs, reason = "the fields are those of the entities")]
pub enum Event {
    /// A context was made.
    #[serde(rename = "context.created", rename_all = "camelCase")]
    ContextCreated { context: Context },
    /// A context was found again.
    #[serde(rename = "context.resolved", rename_all = "camelCase")]
    ContextResolved { context_id: ContextId },
    /// A context moved.
    #[serde(rename = "context.status.changed", rename_all = "camelCase")]
    ContextStatusChanged {
        context_id: ContextId,
        from: ContextStatus,
        to: ContextStatus,
    },
    /// A thread was made.
    #[serde(rename = "thread.created", rename_all = "camelCase")]
    ThreadCreated { thread: Thread },
    /// A thread was found again.
    #[serde(rename = "thread.resolved", rename_all = "camelCase")]
    ThreadResolved { thread_id: ThreadId },
    /// A thread moved.
    #[serde(rename = "thread.status.changed", rename_all = "camelCase")]
    ThreadStatusChanged {
        thread_id: ThreadId,
        from: ThreadStatus,
        to: ThreadStatus,
    },
    /// An execution began.
    #[serde(rename = "execution.created", rename_all = "camelCase")]
    ExecutionCreated { execution: Execution },
    /// An execution ended.
    #[serde(rename = "execution.status.changed", rename_all = "camelCase")]
    ExecutionStatusChanged {
        execution_id: ExecutionId,
        from: ExecutionStatus,
        to: ExecutionStatus,
        #[serde(skip_serializing_if = "Option::is_none")]
        interruption: Option<Interruption>,
    },
    /// An item was stored.
    #[serde(rename = "item.created", rename_all = "camelCase")]
    ItemCreated { item: Item },
    /// An item moved.
    #[serde(rename = "item.status.changed", rename_all = "camelCase")]
    ItemStatusChanged {
        item_id: ItemId,
        from: ItemStatus,
        to: ItemStatus,
    },
    /// A step began.
    #[serde(rename = "step.created", rename_all = "camelCase")]
    StepCreated { step: Step },
    /// A step ended.
    #[serde(rename = "step.status.changed", rename_all = "camelCase")]
    StepStatusChanged {
        step_id: StepId,
        from: StepStatus,
        to: StepStatus,
        #[serde(flatten)]
        outcome: StepOutcome,
    },
    /// A part was written.
    #[serde(rename = "part.created", rename_all = "camelCase")]
    PartCreated {
        part_key: String,
        step_id: StepId,
        idx: u32,
        part: Payload,
    },
    /// A part was written again: a tool call got its result.
    #[serde(rename = "part.updated", rename_all = "camelCase")]
    PartUpdated {
        part_key: String,
        step_id: StepId,
        idx: u32,
        part: Payload,
    },
    /// A chunk for clients that watch the run. State depends only on the markers among them.
    #[serde(rename = "chunk.emitted", rename_all = "camelCase")]
    ChunkEmitted {
        chunk_type: String,
        context_id: ContextId,
        #[serde(skip_serializing_if = "Option::is_none")]
        execution_id: Option<ExecutionId>,
        #[serde(skip_serializing_if = "Option::is_none")]
        step_id: Option<StepId>,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<Payload>,
    },
    /// An execution is over and the thread at rest.
    #[serde(rename = "thread.finished", rename_all = "camelCase")]
    ThreadFinished {
        thread_id: ThreadId,
        context_id: ContextId,
        execution_id: ExecutionId,
        result: ExecutionResult,
    },
}

/// The name of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "one for each event, under its name")]
pub enum EventType {
    ContextCreated,
    ContextResolved,
    ContextStatusChanged,
    ThreadCreated,
    ThreadResolved,
    ThreadStatusChanged,
    ExecutionCreated,
    ExecutionStatusChanged,
    ItemCreated,
    ItemStatusChanged,
    StepCreated,
    StepStatusChanged,
    PartCreated,
    PartUpdated,
    ChunkEmitted,
    ThreadFinished,
}

impl EventType {
    /// All sixteen, in the order of EK §8.2.
    pub const ALL: [Self; 16] = [
        Self::ContextCreated,
        Self::ContextResolved,
        Self::ContextStatusChanged,
        Self::ThreadCreated,
        Self::ThreadResolved,
        Self::ThreadStatusChanged,
        Self::ExecutionCreated,
        Self::ExecutionStatusChanged,
        Self::ItemCreated,
        Self::ItemStatusChanged,
        Self::StepCreated,
        Self::StepStatusChanged,
        Self::PartCreated,
        Self::PartUpdated,
        Self::ChunkEmitted,
        Self::ThreadFinished,
    ];

    /// The name as the specification spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ContextCreated => "context.created",
            Self::ContextResolved => "context.resolved",
            Self::ContextStatusChanged => "context.status.changed",
            Self::ThreadCreated => "thread.created",
            Self::ThreadResolved => "thread.resolved",
            Self::ThreadStatusChanged => "thread.status.changed",
            Self::ExecutionCreated => "execution.created",
            Self::ExecutionStatusChanged => "execution.status.changed",
            Self::ItemCreated => "item.created",
            Self::ItemStatusChanged => "item.status.changed",
            Self::StepCreated => "step.created",
            Self::StepStatusChanged => "step.status.changed",
            Self::PartCreated => "part.created",
            Self::PartUpdated => "part.updated",
            Self::ChunkEmitted => "chunk.emitted",
            Self::ThreadFinished => "thread.finished",
        }
    }

    /// A small number for storage; it never changes.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The event type of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|event_type| event_type.name() == name)
    }
}

/// The reason why a text is not an event.
#[derive(Debug, thiserror::Error)]
pub enum EventError {
    /// Not an object with a string `type`.
    #[error("an event is a JSON object with a string \"type\"")]
    NotAnEvent(#[source] serde_json::Error),
    /// Not one of the sixteen.
    #[error("{0:?} is none of the sixteen event types of EK §8.2")]
    UnknownType(String),
    /// One of the sixteen, but a field is missing or wrong.
    #[error("{event_type} event: {source}", event_type = .event_type.name())]
    Malformed {
        /// The type of the event.
        event_type: EventType,
        /// The faulty field and its error.
        source: serde_json::Error,
    },
}

/// One event at its place in its thread's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The place.
    pub seq: Seq,
    /// When it was written. It orders nothing.
    pub at: Timestamp,
    /// The event.
    pub event: Event,
}

impl Event {
    /// The event's type.
    pub const fn event_type(&self) -> EventType {
        match self {
            Self::ContextCreated { .. } => EventType::ContextCreated,
            Self::ContextResolved { .. } => EventType::ContextResolved,
            Self::ContextStatusChanged { .. } => EventType::ContextStatusChanged,
            Self::ThreadCreated { .. } => EventType::ThreadCreated,
            Self::ThreadResolved { .. } => EventType::ThreadResolved,
            Self::ThreadStatusChanged { .. } => EventType::ThreadStatusChanged,
            Self::ExecutionCreated { .. } => EventType::ExecutionCreated,
            Self::ExecutionStatusChanged { .. } => EventType::ExecutionStatusChanged,
            Self::ItemCreated { .. } => EventType::ItemCreated,
            Self::ItemStatusChanged { .. } => EventType::ItemStatusChanged,
            Self::StepCreated { .. } => EventType::StepCreated,
            Self::StepStatusChanged { .. } => EventType::StepStatusChanged,
            Self::PartCreated { .. } => EventType::PartCreated,
            Self::PartUpdated { .. } => EventType::PartUpdated,
            Self::ChunkEmitted { .. } => EventType::ChunkEmitted,
            Self::ThreadFinished { .. } => EventType::ThreadFinished,
        }
    }

    /// The event as JSON text.
    pub fn encode(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// Reads an event; its `type` names the kind.
    pub fn decode(text: &str) -> Result<Self, EventError> {
        #[derive(Deserialize)]
        struct Tag<'a> {
            #[serde(rename = "type", borrow)]
            name: std::borrow::Cow<'a, str>,
        }
        let tag: Tag<'_> = serde_json::from_str(text).map_err(EventError::NotAnEvent)?;
        let event_type = EventType::from_name(&tag.name)
            .ok_or_else(|| EventError::UnknownType(tag.name.into_owned()))?;
        decode::decode_as(event_type, text)
            .map_err(|source| EventError::Malformed { event_type, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_sixteen_event_types_are_those_of_section_8_2() {
        let names: Vec<&str> = EventType::ALL
            .iter()
            .map(|event_type| event_type.name())
            .collect();
        assert_eq!(names.len(), 16);
        assert!(
            names
                .iter()
                .all(|name| EventType::from_name(name).is_some())
        );
    }

    #[test]
    fn a_part_keeps_the_spelling_of_its_numbers_through_the_log() {
        let part = Payload::from_text(
            r#"{"type":"app-x","big":12345678901234567890123,"one":1.0,"none":null}"#.into(),
        );
        let event = Event::PartCreated {
            part_key: "st_1:0".into(),
            step_id: "st_1".into(),
            idx: 0,
            part: part.unwrap(),
        };
        assert_eq!(Event::decode(&event.encode().unwrap()).unwrap(), event);
    }

    #[test]
    fn what_a_step_came_to_keeps_its_spelling_through_the_log() {
        let kept = |text: &str| Payload::from_text(text.to_owned()).ok();
        let event = Event::StepStatusChanged {
            step_id: "st_1".into(),
            from: StepStatus::Running,
            to: StepStatus::Completed,
            outcome: StepOutcome {
                tool_calls: kept(r#"[{"toolCallId":"c"}]"#),
                continue_loop: Some(false),
                agent_state: kept(r#"{"step":1.0,"x": null}"#),
                open_calls: kept(r#"[{"toolCallId":"c","kind":"approval","part":{"n":1e3}}]"#),
                cut_short: Some(StepOutcome::SPENT.to_owned()),
                ..StepOutcome::default()
            },
        };
        assert_eq!(Event::decode(&event.encode().unwrap()).unwrap(), event);
    }

    #[test]
    fn an_unknown_event_type_is_refused_by_name() {
        let error = Event::decode(&json!({"type": "thread.exploded"}).to_string()).unwrap_err();
        assert!(matches!(error, EventError::UnknownType(name) if name == "thread.exploded"));
    }

    #[test]
    fn an_event_without_a_required_field_is_refused() {
        let error = Event::decode(&json!({"type": "thread.resolved"}).to_string()).unwrap_err();
        assert_eq!(
            error.to_string().split(": ").next(),
            Some("thread.resolved event")
        );
    }
}

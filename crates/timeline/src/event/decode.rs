//! Events from their JSON.

use super::{Event, EventType, ExecutionResult};
use crate::entity::{Context, Execution, Interruption, Item, Step, StepOutcome, Thread};
use crate::ids::{ContextId, ExecutionId, ItemId, StepId, ThreadId};
use crate::payload::Payload;
use crate::status::{ContextStatus, ExecutionStatus, ItemStatus, StepStatus, ThreadStatus};
use serde::Deserialize;

// `RawValue` can't be read through serde's tagged enums, so each event is read by its own struct.
pub(super) fn decode_as(event_type: EventType, text: &str) -> Result<Event, serde_json::Error> {
    macro_rules! read {
        ($($variant:ident { $($(#[$attribute:meta])* $field:ident : $ty:ty),* $(,)? })*) => {
            match event_type {
                $(EventType::$variant => {
                    #[derive(Deserialize)]
                    #[serde(rename_all = "camelCase")]
                    struct Fields { $($(#[$attribute])* $field: $ty,)* }
                    let fields: Fields = serde_json::from_str(text)?;
                    Ok(Event::$variant { $($field: fields.$field,)* })
                })*
                EventType::StepStatusChanged => step_status_changed(text),
            }
        };
    }
    read! {
        ContextCreated { context: Context }
        ContextResolved { context_id: ContextId }
        ContextStatusChanged { context_id: ContextId, from: ContextStatus, to: ContextStatus }
        ThreadCreated { thread: Thread }
        ThreadResolved { thread_id: ThreadId }
        ThreadStatusChanged { thread_id: ThreadId, from: ThreadStatus, to: ThreadStatus }
        ExecutionCreated { execution: Execution }
        ExecutionStatusChanged {
            execution_id: ExecutionId, from: ExecutionStatus, to: ExecutionStatus,
            interruption: Option<Interruption>,
        }
        ItemCreated { item: Item }
        ItemStatusChanged { item_id: ItemId, from: ItemStatus, to: ItemStatus }
        StepCreated { step: Step }
        PartCreated { part_key: String, step_id: StepId, idx: u32, part: Payload }
        PartUpdated { part_key: String, step_id: StepId, idx: u32, part: Payload }
        ChunkEmitted {
            chunk_type: String, context_id: ContextId, execution_id: Option<ExecutionId>,
            step_id: Option<StepId>, data: Option<Payload>,
        }
        ThreadFinished {
            thread_id: ThreadId, context_id: ContextId, execution_id: ExecutionId, result: ExecutionResult,
        }
    }
}

// What is flattened can't hold a `RawValue` either, so the outcome is read field by field.
fn step_status_changed(text: &str) -> Result<Event, serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Fields {
        step_id: StepId,
        from: StepStatus,
        to: StepStatus,
        tool_calls: Option<Payload>,
        tool_execution_results: Option<Payload>,
        continue_loop: Option<bool>,
        error_text: Option<String>,
        agent_state: Option<Payload>,
        open_calls: Option<Payload>,
        cut_short: Option<String>,
    }
    let fields: Fields = serde_json::from_str(text)?;
    Ok(Event::StepStatusChanged {
        step_id: fields.step_id,
        from: fields.from,
        to: fields.to,
        outcome: StepOutcome {
            tool_calls: fields.tool_calls,
            tool_execution_results: fields.tool_execution_results,
            continue_loop: fields.continue_loop,
            error_text: fields.error_text,
            agent_state: fields.agent_state,
            open_calls: fields.open_calls,
            cut_short: fields.cut_short,
        },
    })
}

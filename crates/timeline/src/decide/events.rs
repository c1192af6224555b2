//! The events of decisions, and their contents.

use super::Rejected;
use crate::chunk::NewChunk;
use crate::command::NewItem;
use crate::content::check_item;
use crate::entity::{Context, Interruption, Item, ItemType, Role, Step, StepOutcome, Thread};
use crate::event::Event;
use crate::ids::{ExecutionId, ItemId, PartKey, StepId};
use crate::payload::Payload;
use crate::state::{Active, ActiveStep};
use crate::status::{
    ContextStatus, IllegalTransition, ItemStatus, Machine, StepStatus, ThreadStatus,
};
use jiff::Timestamp;

/// The reason why an execution ended early, as text for people.
pub(super) fn reason_text(interruption: &Interruption) -> String {
    interruption
        .detail
        .clone()
        .unwrap_or_else(|| interruption.reason.clone())
}

/// A new item as it is stored, if it may be.
pub(super) fn stored(new: NewItem, run: Option<Payload>, at: Timestamp) -> Result<Item, Rejected> {
    if new.role.is_some() != (new.item_type == ItemType::Message) {
        return Err(Rejected::Role);
    }
    if let Some(content) = &new.content {
        check_item(new.item_type, content)?;
    }
    Ok(Item {
        run,
        ..new.stored(at)
    })
}

/// The empty reaction item of an execution.
pub(super) fn reaction(id: &ItemId, execution_id: &ExecutionId, at: Timestamp) -> Item {
    Item {
        id: id.clone(),
        item_type: ItemType::Message,
        role: Some(Role::Assistant),
        created_at: at,
        status: ItemStatus::Stored,
        channel: None,
        content: None,
        execution_id: Some(execution_id.clone()),
        run: None,
        metadata: None,
    }
}

/// A step that begins.
pub(super) fn new_step(
    id: StepId,
    execution_id: ExecutionId,
    event_id: ItemId,
    iteration: u32,
    at: Timestamp,
) -> Step {
    Step {
        id,
        execution_id,
        iteration,
        status: StepStatus::Running,
        event_id,
        outcome: StepOutcome::default(),
        created_at: at,
        updated_at: None,
    }
}

/// The event for a written part: created, or replaced if there already is one.
pub(super) fn part_written(step: &ActiveStep, idx: u32, part: Payload) -> Event {
    let step_id = step.step.id.clone();
    let part_key = PartKey {
        step_id: step_id.clone(),
        idx,
    }
    .to_string();
    if (idx as usize) < step.parts.len() {
        Event::PartUpdated {
            part_key,
            step_id,
            idx,
            part,
        }
    } else {
        Event::PartCreated {
            part_key,
            step_id,
            idx,
            part,
        }
    }
}

/// A chunk of the runtime's own.
pub(super) fn marker(
    active: &Active,
    step: &ActiveStep,
    chunk_type: &str,
    data: Option<Payload>,
) -> Event {
    emitted(
        active,
        Some(step),
        NewChunk {
            chunk_type: chunk_type.to_owned(),
            data,
        },
    )
}

/// The event for an emitted chunk.
pub(super) fn emitted(active: &Active, step: Option<&ActiveStep>, chunk: NewChunk) -> Event {
    Event::ChunkEmitted {
        chunk_type: chunk.chunk_type,
        context_id: active.execution.context_id.clone(),
        execution_id: Some(active.execution.id.clone()),
        step_id: step.map(|step| step.step.id.clone()),
        data: chunk.data,
    }
}

/// The event for a status transition, if it is legal.
pub(super) fn thread_moved(
    thread: &Thread,
    from: ThreadStatus,
    to: ThreadStatus,
) -> Result<Event, IllegalTransition> {
    from.transition(to)?;
    Ok(Event::ThreadStatusChanged {
        thread_id: thread.id.clone(),
        from,
        to,
    })
}

/// The transitions of a thread to streaming; a failed one is opened first (EK §5.1).
pub(super) fn streaming(thread: &Thread) -> Result<Vec<Event>, IllegalTransition> {
    let mut events = Vec::new();
    let mut from = thread.status;
    if from == ThreadStatus::Failed {
        events.push(thread_moved(thread, from, ThreadStatus::Open)?);
        from = ThreadStatus::Open;
    }
    events.push(thread_moved(thread, from, ThreadStatus::Streaming)?);
    Ok(events)
}

pub(super) fn context_moved(
    context: &Context,
    to: ContextStatus,
) -> Result<Event, IllegalTransition> {
    let from = context.status;
    from.transition(to)?;
    Ok(Event::ContextStatusChanged {
        context_id: context.id.clone(),
        from,
        to,
    })
}

pub(super) fn item_moved(
    item_id: &ItemId,
    from: ItemStatus,
    to: ItemStatus,
) -> Result<Event, IllegalTransition> {
    from.transition(to)?;
    Ok(Event::ItemStatusChanged {
        item_id: item_id.clone(),
        from,
        to,
    })
}

pub(super) fn step_moved(
    step: &ActiveStep,
    to: StepStatus,
    outcome: StepOutcome,
) -> Result<Event, IllegalTransition> {
    let from = step.step.status;
    from.transition(to)?;
    Ok(Event::StepStatusChanged {
        step_id: step.step.id.clone(),
        from,
        to,
        outcome,
    })
}

//! The fields of the events, in the order in which a block holds them.
//!
//! The codes and orders are those of stored data: they never change, they are only added to.

use super::BlockFault;
use super::wire::{Field, Reader, Writer};
use super::{DELTA, STREAM};
use timeline::{
    CHUNK_TYPES, Context, ContextId, ContextStatus, Event, EventType, Execution, ExecutionId,
    ExecutionResult, ExecutionStatus, Fork, Interruption, Item, ItemId, ItemStatus, ItemType,
    Payload, Role, Seq, Step, StepId, StepOutcome, StepStatus, Thread, ThreadId, ThreadStatus,
    split_delta,
};

/// A status, a type or a role with its code, in blocks and in columns of tables. Codes never change.
pub(crate) trait Coded: Copy {
    /// Its code.
    fn code(self) -> u8;

    /// The value with this code.
    fn of_code(code: u8) -> Option<Self>;
}

macro_rules! ids {
    ($($id:ident)*) => {$(
        impl Field for $id {
            fn write(&self, to: &mut Writer) {
                to.id(self.as_str());
            }

            fn read(from: &mut Reader<'_>) -> Result<Self, BlockFault> {
                Ok(Self::from(&*from.id()?))
            }
        }
    )*};
}

macro_rules! codes {
    ($($name:literal $type:ident: $($variant:ident)*;)*) => {$(
        impl Coded for $type {
            fn code(self) -> u8 {
                // It has every variant: the match below does not compile otherwise.
                let all = [$(Self::$variant,)*];
                match self { $(Self::$variant => {})* }
                let code = all.iter().position(|it| *it == self).unwrap_or_default();
                u8::try_from(code).unwrap_or_default()
            }

            fn of_code(code: u8) -> Option<Self> {
                [$(Self::$variant,)*].get(usize::from(code)).copied()
            }
        }

        impl Field for $type {
            fn write(&self, to: &mut Writer) {
                to.byte(self.code());
            }

            fn read(from: &mut Reader<'_>) -> Result<Self, BlockFault> {
                let code = from.byte()?;
                Self::of_code(code).ok_or(BlockFault::Code(code.into(), $name))
            }
        }
    )*};
}

macro_rules! fields {
    ($($type:ident { $($field:ident)* })*) => {$(
        impl Field for $type {
            fn write(&self, to: &mut Writer) {
                let Self { $($field,)* } = self;
                $($field.write(to);)*
            }

            fn read(from: &mut Reader<'_>) -> Result<Self, BlockFault> {
                $(let $field = Field::read(from)?;)*
                Ok(Self { $($field,)* })
            }
        }
    )*};
}

macro_rules! events {
    ($($variant:ident { $($field:ident)* })*) => {
        fn write_plain(event: &Event, to: &mut Writer) {
            match event {
                $(Event::$variant { $($field,)* } => { $($field.write(to);)* })*
                Event::PartCreated { step_id, idx, part, part_key: _ }
                | Event::PartUpdated { step_id, idx, part, part_key: _ } => {
                    step_id.write(to);
                    idx.write(to);
                    to.part(part);
                }
                Event::ChunkEmitted { chunk_type, context_id, execution_id, step_id, data } => {
                    write_chunk_type(chunk_type, to);
                    context_id.write(to);
                    execution_id.write(to);
                    step_id.write(to);
                    data.write(to);
                }
            }
        }

        fn read_plain(event_type: EventType, from: &mut Reader<'_>) -> Result<Event, BlockFault> {
            Ok(match event_type {
                $(EventType::$variant => {
                    $(let $field = Field::read(from)?;)*
                    Event::$variant { $($field,)* }
                })*
                EventType::PartCreated => {
                    let (part_key, step_id, idx, part) = read_part(from)?;
                    Event::PartCreated { part_key, step_id, idx, part }
                }
                EventType::PartUpdated => {
                    let (part_key, step_id, idx, part) = read_part(from)?;
                    Event::PartUpdated { part_key, step_id, idx, part }
                }
                EventType::ChunkEmitted => Event::ChunkEmitted {
                    chunk_type: read_chunk_type(from)?,
                    context_id: Field::read(from)?,
                    execution_id: Field::read(from)?,
                    step_id: Field::read(from)?,
                    data: Field::read(from)?,
                },
            })
        }
    };
}

ids! { ThreadId ContextId ItemId ExecutionId StepId }

codes! {
    "a thread's status" ThreadStatus: Open Streaming Closed Failed;
    "a context's status" ContextStatus: Open Streaming Closed;
    "an execution's status" ExecutionStatus: Executing Completed Failed;
    "a step's status" StepStatus: Running Completed Failed;
    "an item's status" ItemStatus: Stored Pending Completed;
    "an item's type" ItemType: Message ActionExecute ActionResult ItemReference;
    "a role" Role: User Assistant System Developer;
    "a result" ExecutionResult: Completed Failed;
}

fields! {
    Fork { thread_id seq }
    Thread { id key status created_at updated_at title metadata fork }
    Context { id key thread_id status content created_at updated_at }
    Item { id item_type role created_at status channel content execution_id run metadata }
    Interruption { reason detail }
    Execution {
        id thread_id context_id trigger_item_id reaction_item_id workflow_run_id status created_at
        updated_at interruption run
    }
    StepOutcome {
        tool_calls tool_execution_results continue_loop error_text agent_state open_calls cut_short
    }
    Step { id execution_id iteration status event_id outcome created_at updated_at }
}

events! {
    ContextCreated { context }
    ContextResolved { context_id }
    ContextStatusChanged { context_id from to }
    ThreadCreated { thread }
    ThreadResolved { thread_id }
    ThreadStatusChanged { thread_id from to }
    ExecutionCreated { execution }
    ExecutionStatusChanged { execution_id from to interruption }
    ItemCreated { item }
    ItemStatusChanged { item_id from to }
    StepCreated { step }
    StepStatusChanged { step_id from to outcome }
    ThreadFinished { thread_id context_id execution_id result }
}

impl Field for Seq {
    fn write(&self, to: &mut Writer) {
        to.number(self.0);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, BlockFault> {
        from.number().map(Self)
    }
}

/// The fields that the chunks of a stream share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stream {
    chunk_type: String,
    context_id: ContextId,
    execution_id: Option<ExecutionId>,
    step_id: Option<StepId>,
    /// The text of the data up to the delta, with its quote.
    before: String,
}

/// The text behind a delta in the data of its chunk.
const BEHIND_DELTA: &str = r#""}"#;

impl Stream {
    /// The stream of a chunk, and its delta as it is escaped. `None` unless the chunk is a delta.
    pub(super) fn of(event: &Event) -> Option<(Self, &str)> {
        let Event::ChunkEmitted {
            chunk_type,
            context_id,
            execution_id,
            step_id,
            data: Some(data),
        } = event
        else {
            return None;
        };
        // Tables name the data of other chunks by their ranges.
        let (before, delta) = split_delta(chunk_type, data)?;
        let stream = Self {
            chunk_type: chunk_type.clone(),
            context_id: context_id.clone(),
            execution_id: execution_id.clone(),
            step_id: step_id.clone(),
            before: before.to_owned(),
        };
        Some((stream, delta))
    }

    /// The chunk with this delta.
    fn chunk(&self, delta: &str) -> Result<Event, BlockFault> {
        let data = [&self.before, delta, BEHIND_DELTA].concat();
        Ok(Event::ChunkEmitted {
            chunk_type: self.chunk_type.clone(),
            context_id: self.context_id.clone(),
            execution_id: self.execution_id.clone(),
            step_id: self.step_id.clone(),
            data: Some(Payload::from_text(data)?),
        })
    }
}

impl Field for Stream {
    fn write(&self, to: &mut Writer) {
        write_chunk_type(&self.chunk_type, to);
        self.context_id.write(to);
        self.execution_id.write(to);
        self.step_id.write(to);
        self.before.write(to);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, BlockFault> {
        Ok(Self {
            chunk_type: read_chunk_type(from)?,
            context_id: Field::read(from)?,
            execution_id: Field::read(from)?,
            step_id: Field::read(from)?,
            before: Field::read(from)?,
        })
    }
}

/// Writes an event behind its code. `begin` writes the code and the instant.
pub(super) fn write(event: &Event, to: &mut Writer, begin: impl FnOnce(&mut Writer, u8)) {
    let Some((stream, delta)) = Stream::of(event) else {
        begin(to, event.event_type().code());
        return write_plain(event, to);
    };
    if to.continues(&stream) {
        begin(to, DELTA);
    } else {
        begin(to, STREAM);
        stream.write(to);
        to.begin_stream(stream);
    }
    to.delta(delta);
}

/// Reads the event with this code.
pub(super) fn read(code: u8, from: &mut Reader<'_>) -> Result<Event, BlockFault> {
    if code == STREAM || code == DELTA {
        if code == STREAM {
            let stream = Stream::read(from)?;
            from.begin_stream(stream)?;
        }
        let (stream, delta) = from.delta()?;
        return stream.chunk(delta);
    }
    let all = EventType::ALL;
    let event_type = all.into_iter().find(|it| it.code() == code);
    read_plain(
        event_type.ok_or(BlockFault::Code(code.into(), "an event"))?,
        from,
    )
}

/// Whether a block can hold the event in its own form. A part has another key only in logs of other programs.
pub(super) fn is_plain(event: &Event) -> bool {
    let (Event::PartCreated {
        part_key,
        step_id,
        idx,
        ..
    }
    | Event::PartUpdated {
        part_key,
        step_id,
        idx,
        ..
    }) = event
    else {
        return true;
    };
    *part_key == key_of(step_id, *idx)
}

fn key_of(step_id: &StepId, idx: u32) -> String {
    format!("{step_id}:{idx}")
}

fn read_part(from: &mut Reader<'_>) -> Result<(String, StepId, u32, Payload), BlockFault> {
    let step_id = StepId::read(from)?;
    let idx = u32::read(from)?;
    Ok((key_of(&step_id, idx), step_id, idx, Field::read(from)?))
}

fn write_chunk_type(name: &str, to: &mut Writer) {
    let place = CHUNK_TYPES.iter().position(|it| *it == name);
    if let Some(code) = place.and_then(|place| u8::try_from(place + 1).ok()) {
        to.byte(code);
    } else {
        to.byte(0);
        to.text(name);
    }
}

fn read_chunk_type(from: &mut Reader<'_>) -> Result<String, BlockFault> {
    let code = from.byte()?;
    let Some(place) = usize::from(code).checked_sub(1) else {
        return from.text().map(str::to_owned);
    };
    let name = CHUNK_TYPES.get(place);
    let name = name.ok_or(BlockFault::Code(code.into(), "a type of chunk"))?;
    Ok((*name).to_owned())
}

/// Calls back with each JSON value that a table names by its range.
pub(super) fn each_value<'e>(event: &'e Event, with: &mut dyn FnMut(&'e Payload)) {
    let outcome = |outcome: &'e StepOutcome, with: &mut dyn FnMut(&'e Payload)| {
        outcome.tool_calls.iter().for_each(&mut *with);
        outcome.tool_execution_results.iter().for_each(&mut *with);
        outcome.open_calls.iter().for_each(&mut *with);
    };
    match event {
        Event::ContextCreated { context } => context.content.iter().for_each(with),
        Event::ItemCreated { item } => item.content.iter().for_each(with),
        Event::StepCreated { step } => outcome(&step.outcome, with),
        Event::StepStatusChanged { outcome: it, .. } => outcome(it, with),
        Event::PartCreated { part, .. } | Event::PartUpdated { part, .. } => with(part),
        Event::ChunkEmitted { data, .. } => data.iter().for_each(with),
        Event::ContextResolved { .. }
        | Event::ContextStatusChanged { .. }
        | Event::ThreadCreated { .. }
        | Event::ThreadResolved { .. }
        | Event::ThreadStatusChanged { .. }
        | Event::ExecutionCreated { .. }
        | Event::ExecutionStatusChanged { .. }
        | Event::ItemStatusChanged { .. }
        | Event::ThreadFinished { .. } => {}
    }
}

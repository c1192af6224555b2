//! Streamed chunks: the hot path. A delta without characters to escape is not copied.

use super::super::slot::{OutputStatus, SlotKind};
use super::step::{DeltaKey, DeltaKind, StepState};
use super::{Block, ItemEnd, Output, Sealed, child};
use crate::ids::{FUNCTION_CALL, MESSAGE, REASONING};
use crate::json_text::{escaped, quoted};
use std::borrow::Cow;
use timeline::{BlockKind, Chunk};

impl Output {
    /// A chunk of the running step.
    pub(super) fn chunk(&mut self, chunk: Chunk<'_>, out: &mut String) {
        match chunk {
            Chunk::BlockDelta {
                kind, block, text, ..
            } => self.delta(DeltaKind::Block(kind), block.id, &text, out),
            Chunk::ToolInputDelta {
                tool_call_id, text, ..
            } => self.delta(DeltaKind::Call, tool_call_id, &text, out),
            Chunk::ToolInputStart {
                tool_call_id,
                tool_name,
                ..
            } => self.call_starts(tool_call_id, &tool_name, out),
            Chunk::BlockEnd {
                kind: BlockKind::Reasoning,
                ..
            } => self.end_reasoning(out),
            Chunk::BlockStart { .. }
            | Chunk::BlockEnd {
                kind: BlockKind::Text,
                ..
            }
            | Chunk::Source { .. }
            | Chunk::Marker(_)
            | Chunk::Runtime { .. }
            | Chunk::Data { .. }
            | Chunk::Other { .. } => {}
        }
    }

    fn delta(&mut self, kind: DeltaKind, id: Cow<'_, str>, text: &str, out: &mut String) {
        if text.is_empty() || self.step.is_answered {
            return;
        }
        let place = match &self.step.last {
            Some(((of, known), place)) if *of == kind && *known == id => *place,
            Some(_) | None => {
                let key = (kind, id.into_owned());
                let known = self.step.by_delta.get(&key).copied();
                let Some(place) = known.or_else(|| self.block_starts(&key, out)) else {
                    return;
                };
                self.step.last = Some((key, place));
                place
            }
        };
        self.grow(place, &escaped(text), out);
    }

    /// A block of text or reasoning begins with its first delta; a call has a chunk for its start.
    fn block_starts(&mut self, key: &DeltaKey, out: &mut String) -> Option<usize> {
        let place = match key.0 {
            DeltaKind::Block(BlockKind::Text) => {
                let id = child(MESSAGE, &self.step.id, self.step.messages.len());
                let place = self.begin(SlotKind::Block(Block::Text), id, out);
                self.step.messages.push(place);
                place
            }
            DeltaKind::Block(BlockKind::Reasoning) => {
                let id = child(REASONING, &self.step.id, self.step.reasonings.len());
                let place = self.begin(SlotKind::Block(self.shows.reasoning()), id, out);
                self.step.open_reasoning = Some(place);
                self.step.reasonings.push(place);
                place
            }
            DeltaKind::Call => return None,
        };
        self.step.by_delta.insert(key.clone(), place);
        Some(place)
    }

    fn call_starts(&mut self, id: Cow<'_, str>, name: &str, out: &mut String) {
        let key = (DeltaKind::Call, id.into_owned());
        if self.step.is_answered || self.step.by_delta.contains_key(&key) {
            return;
        }
        let kind = SlotKind::Call {
            call_id: quoted(&key.1),
            name: quoted(name),
        };
        let id = child(FUNCTION_CALL, &self.step.id, self.step.calls.len());
        let place = self.begin(kind, id, out);
        self.step.calls.push(place);
        self.step.by_delta.insert(key, place);
    }

    /// Ends reasoning when another item starts, unless it must wait for its provider's signature.
    pub(super) fn end_reasoning(&mut self, out: &mut String) {
        if self.shows.sealed == Sealed::Always {
            return;
        }
        let Some(place) = self.step.open_reasoning.take() else {
            return;
        };
        let last = ItemEnd {
            status: OutputStatus::Completed,
            ..ItemEnd::CUT
        };
        self.end(place, &last, out);
    }

    /// Ends the items of an attempt that died; the next attempt makes new ones. The final response
    /// has none of the old ones.
    pub(super) fn reset(&mut self, out: &mut String) {
        self.wire.skip_lost();
        self.interrupt(None, out);
        let step = std::mem::take(&mut self.step);
        // Its stored parts are void too, and its usage is not counted.
        let (execution, iteration) = (self.n_executions, step.iteration);
        self.done.retain(|done| done.step != (execution, iteration));
        self.step = StepState {
            id: step.id,
            iteration: step.iteration,
            results: step.results,
            ..StepState::default()
        };
    }

    /// Ends the items that are open. With a status, the deltas are the step's content; without one, they
    /// are void.
    pub(super) fn interrupt(&mut self, valid: Option<OutputStatus>, out: &mut String) {
        for place in 0..self.step.slots.len() {
            let slot = self.step.slots.get(place);
            let status = match slot.map(|(_, slot)| slot.is_open) {
                Some(true) => valid.unwrap_or(OutputStatus::Incomplete),
                // It was over before the step was.
                Some(false) if valid.is_some() => OutputStatus::Completed,
                Some(false) | None => continue,
            };
            let last = ItemEnd {
                status,
                ..ItemEnd::CUT
            };
            let ended = self.end(place, &last, out);
            if let Some((index, id, json)) = ended.filter(|_| valid.is_some()) {
                self.push_done(index, id, json);
            }
        }
    }
}

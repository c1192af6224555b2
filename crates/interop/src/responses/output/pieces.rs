//! Pieces that are streamed: the hot path. A piece's text is copied as it stands in the log's JSON.

use super::super::slot::{SlotKind, Standing};
use super::super::wire::{quoted, within};
use super::step::{PieceKey, PieceKind, StepState};
use super::{LastWord, Output, Sealed, child};
use crate::ids::{FUNCTION_CALL, MESSAGE, REASONING};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use timeline::{Payload, chunk_type};

#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow, alias = "toolCallId")]
    id: Cow<'a, str>,
    #[serde(borrow, alias = "inputTextDelta")]
    delta: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallStart<'a> {
    #[serde(borrow)]
    tool_call_id: Cow<'a, str>,
    #[serde(borrow)]
    tool_name: Cow<'a, str>,
}

impl Output {
    /// A chunk of the running step.
    pub(in crate::responses) fn chunk(
        &mut self,
        kind: &str,
        data: Option<&Payload>,
        out: &mut String,
    ) {
        match kind {
            "text-delta" => self.piece(PieceKind::Text, data, out),
            "reasoning-delta" => self.piece(PieceKind::Reasoning, data, out),
            "tool-input-delta" => self.piece(PieceKind::Call, data, out),
            "tool-input-start" => self.call_begins(data, out),
            "reasoning-end" => self.end_reasoning(out),
            chunk_type::STEP_RESPONSE => self.responded(data, out),
            chunk_type::STEP_RESET => self.reset(out),
            _ => {}
        }
    }

    fn piece(&mut self, kind: PieceKind, data: Option<&Payload>, out: &mut String) {
        let Some(Ok(piece)) = data.map(Payload::read::<Piece<'_>>) else {
            return;
        };
        let text = within(piece.delta.get());
        if text.is_empty() || self.step.is_answered {
            return;
        }
        let place = match &self.step.last {
            Some(((of, id), place)) if *of == kind && *id == piece.id => *place,
            _ => {
                let key = (kind, piece.id.into_owned());
                let known = self.step.by_piece.get(&key).copied();
                let Some(place) = known.or_else(|| self.block_begins(&key, out)) else {
                    return;
                };
                self.step.last = Some((key, place));
                place
            }
        };
        self.grow(place, text, out);
    }

    /// A block of text or reasoning begins with its first piece; a call has a beginning of its own.
    fn block_begins(&mut self, key: &PieceKey, out: &mut String) -> Option<usize> {
        let (form, number, block) = match key.0 {
            PieceKind::Text => (MESSAGE, self.step.messages.len(), super::Block::Text),
            PieceKind::Reasoning => (
                REASONING,
                self.step.reasonings.len(),
                self.shows.reasoning(),
            ),
            PieceKind::Call => return None,
        };
        let id = child(form, &self.step.id, number);
        let place = self.begin(SlotKind::Block(block), id, out);
        match key.0 {
            PieceKind::Text => self.step.messages.push(place),
            PieceKind::Reasoning | PieceKind::Call => {
                self.step.open_reasoning = Some(place);
                self.step.reasonings.push(place);
            }
        }
        self.step.by_piece.insert(key.clone(), place);
        Some(place)
    }

    fn call_begins(&mut self, data: Option<&Payload>, out: &mut String) {
        let Some(Ok(start)) = data.map(Payload::read::<CallStart<'_>>) else {
            return;
        };
        let key = (PieceKind::Call, start.tool_call_id.into_owned());
        if self.step.is_answered || self.step.by_piece.contains_key(&key) {
            return;
        }
        let kind = SlotKind::Call {
            call_id: quoted(&key.1),
            name: quoted(&start.tool_name),
        };
        let id = child(FUNCTION_CALL, &self.step.id, self.step.calls.len());
        let place = self.begin(kind, id, out);
        self.step.calls.push(place);
        self.step.by_piece.insert(key, place);
    }

    /// Reasoning is over when something else begins, unless it must wait for what its provider
    /// gives at the end.
    pub(super) fn end_reasoning(&mut self, out: &mut String) {
        if self.shows.sealed == Sealed::Always {
            return;
        }
        let Some(place) = self.step.open_reasoning.take() else {
            return;
        };
        let last = LastWord {
            standing: Standing::Completed,
            ..LastWord::CUT
        };
        self.end(place, &last, out);
    }

    /// A dead attempt's pieces are void: its items end as they stand, and what comes again comes as
    /// new items. None of them is in the response when that is over.
    fn reset(&mut self, out: &mut String) {
        self.cut(None, out);
        let step = std::mem::take(&mut self.step);
        // What was stored is void too, and what it used is not counted.
        let (execution, iteration) = (self.n_executions, step.iteration);
        self.done.retain(|done| done.step != (execution, iteration));
        self.step = StepState {
            id: step.id,
            iteration: step.iteration,
            known_given: step.known_given,
            ..StepState::default()
        };
    }

    /// Ends what is open where it stands. `kept` says how it stands then, where all that was streamed
    /// is what the step says; else it is void.
    pub(super) fn cut(&mut self, kept: Option<Standing>, out: &mut String) {
        for place in 0..self.step.slots.len() {
            let slot = self.step.slots.get(place);
            let standing = match slot.map(|(_, slot)| slot.is_open) {
                Some(true) => kept.unwrap_or(Standing::Incomplete),
                // It was over before the step was, as it should be.
                Some(false) if kept.is_some() => Standing::Completed,
                Some(false) | None => continue,
            };
            let last = LastWord {
                standing,
                ..LastWord::CUT
            };
            let ended = self.end(place, &last, out);
            if let Some((index, id, json)) = ended.filter(|_| kept.is_some()) {
                self.is_done(index, id, json);
            }
        }
    }
}

//! Parts that are stored: what counts of a step.

use super::super::content::{citation, shown_output};
use super::super::extension;
use super::super::sealed::seal_reasoning;
use super::super::slot::{Block, More, SlotKind, Standing, block_item, escaped, output_item};
use super::super::wire::quoted;
use super::cited::{Citations, citations};
use super::step::StepState;
use super::{LastWord, Output, Sealed, child};
use crate::cut::Cut;
use crate::ids::{FUNCTION_CALL, FUNCTION_OUTPUT, MESSAGE, REASONING};
use crate::parts::{
    EventPart, OUTPUT_FILE, ReasoningPart, StepResponse, ToolPart, ToolState, is_prompt,
};
use serde_json::Value;
use std::collections::BTreeSet;
use timeline::{PartKind, Payload, StepOutcome, part_kind};

/// What an assistant's message can be in its turn.
const PHASES: [&str; 2] = ["commentary", "final_answer"];

impl Output {
    /// A step begins. `given` are the calls that its trigger has answered with results, if that is
    /// known.
    pub(in crate::responses) fn step_begins(
        &mut self,
        id: &str,
        iteration: u32,
        given: Option<BTreeSet<String>>,
    ) {
        self.usage = self.usage();
        self.step = StepState {
            id: id.to_owned(),
            iteration,
            known_given: given,
            ..StepState::default()
        };
    }

    /// The step is over. What a step has stored without a model's answer is shown now; where it has
    /// stored nothing, what it has streamed is what it says. What it had begun to say and was cut off
    /// in is kept if the step has failed.
    pub(in crate::responses) fn step_ends(
        &mut self,
        has_failed: bool,
        outcome: &StepOutcome,
        out: &mut String,
    ) {
        if !self.step.is_answered && !self.step.parts.is_empty() {
            self.show_parts(&Citations::new(), out);
        }
        if self.step.is_answered {
            self.cut(None, out);
        } else if has_failed {
            self.cut(Some(Standing::Incomplete), out);
        } else {
            self.cut(Some(Standing::Completed), out);
        }
        self.cut = Cut::of_step(outcome).or(self.cut);
    }

    /// A part was written.
    pub(in crate::responses) fn part(&mut self, idx: u32, part: &Payload, out: &mut String) {
        if !self.step.is_answered {
            let known = self
                .step
                .parts
                .get_mut(idx as usize)
                .filter(|(at, _)| *at == idx);
            match known {
                Some((_, known)) => *known = part.clone(),
                None => self.step.parts.push((idx, part.clone())),
            }
            return;
        }
        if let Some(tool) = ToolPart::read(part) {
            self.became(idx, &tool, out);
        } else if let Some(event) = EventPart::read(part) {
            self.told(idx, &event, out);
        }
    }

    /// The model has answered, with the parts that were written before.
    pub(super) fn responded(&mut self, said: Option<&Payload>, out: &mut String) {
        let said: StepResponse = said.and_then(|said| said.read().ok()).unwrap_or_default();
        self.step.answers = said.answers;
        if !said.answers {
            self.model = said.model.or_else(|| self.model.take());
            self.cut = Cut::of_answer(said.stop_reason.as_deref());
        }
        let usage = said.usage.as_ref().and_then(|usage| usage.read().ok());
        self.step.usage = usage;
        let citations = said.metadata.as_ref().map(citations).unwrap_or_default();
        self.show_parts(&citations, out);
    }

    fn show_parts(&mut self, citations: &Citations, out: &mut String) {
        self.step.is_answered = true;
        let parts = std::mem::take(&mut self.step.parts);
        let is_cut = self.cut == Some(Cut::Tokens);
        let last = parts
            .iter()
            .rposition(|(_, part)| !is_prompt(part))
            .filter(|_| is_cut);
        let mut n_blocks = 0;
        for (place, (idx, part)) in parts.iter().enumerate() {
            let standing = if last == Some(place) {
                Standing::Incomplete
            } else {
                Standing::Completed
            };
            if let Some(tool) = ToolPart::read(part) {
                self.called(*idx, &tool, standing, out);
            } else if let Some(event) = EventPart::read(part) {
                self.told(*idx, &event, out);
            } else if !is_prompt(part) {
                let cited = citations
                    .get(&n_blocks)
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                n_blocks += 1;
                self.said(*idx, part, standing, cited, out);
            }
        }
        self.cut(None, out);
        for (idx, part) in &parts {
            if let Some(tool) = ToolPart::read(part) {
                self.became(*idx, &tool, out);
            }
        }
    }

    fn said(
        &mut self,
        idx: u32,
        part: &Payload,
        standing: Standing,
        cited: &[String],
        out: &mut String,
    ) {
        let value = part.value();
        let text_of = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = value
            .get("type")
            .and_then(Value::as_str)
            .and_then(part_kind);
        let (block, said) = match kind {
            Some(PartKind::OutputText | PartKind::InputText) => (Block::Text, text_of("text")),
            Some(PartKind::Refusal) => (Block::Refusal, text_of("refusal")),
            Some(PartKind::Reasoning) => {
                return self.reasoned(idx, part, standing, out);
            }
            Some(PartKind::Extension(OUTPUT_FILE)) => {
                return self.lost(idx, "a file that a model made");
            }
            Some(
                PartKind::InputImage
                | PartKind::InputFile
                | PartKind::Tool(_)
                | PartKind::Extension(_),
            )
            | None => return self.lost(idx, "a part that is no output of a response"),
        };
        if said.is_empty() {
            return;
        }
        let own = value.get("annotations").and_then(Value::as_array);
        let own: Vec<String> = own
            .into_iter()
            .flatten()
            .filter_map(|annotation| Some(citation(annotation)?.to_string()))
            .collect();
        let annotations = match block {
            Block::Text if own.is_empty() => cited,
            Block::Text => own.as_slice(),
            Block::Refusal | Block::Summary | Block::Reasoning => &[],
        };
        let text = escaped(said);
        let last = LastWord {
            standing,
            text: Some(&text),
            annotations,
            more: More {
                sealed: None,
                phase: PHASES.into_iter().find(|phase| *phase == text_of("phase")),
            },
        };
        let (number, begun) = self.step.messages.stored();
        let id = child(MESSAGE, &self.step.id, number);
        self.complete(begun, SlotKind::Block(block), id, &last, out);
    }

    /// Completes an item that pieces have begun, or shows one whole: where none was begun, or one that
    /// says something else, which can't be taken back and ends where it stands.
    fn complete(
        &mut self,
        begun: Option<usize>,
        kind: SlotKind,
        id: String,
        last: &LastWord<'_>,
        out: &mut String,
    ) {
        let text = last.text.unwrap_or_default();
        let begun = begun.filter(|place| self.step.is(*place, &kind, text));
        let place = begun.unwrap_or_else(|| self.begin(kind, id, out));
        if let Some((index, id, json)) = self.end(place, last, out) {
            for hidden in std::mem::take(&mut self.step.hidden) {
                self.put_before(hidden, index);
            }
            self.is_done(index, id, json);
        }
    }

    fn reasoned(&mut self, idx: u32, part: &Payload, standing: Standing, out: &mut String) {
        let Ok(reasoning) = part.read::<ReasoningPart>() else {
            return self.lost(idx, "reasoning without its text");
        };
        let sealed = reasoning
            .signature
            .as_deref()
            .filter(|_| self.shows.sealed != Sealed::No);
        let sealed = sealed.map(|it| seal_reasoning(reasoning.provider.as_deref(), it));
        if reasoning.text.is_empty() {
            if let Some(sealed) = sealed {
                self.hidden(&sealed, out);
            }
            return;
        }
        let text = escaped(&reasoning.text);
        let last = LastWord {
            standing,
            text: Some(&text),
            annotations: &[],
            more: More {
                sealed: sealed.as_deref(),
                phase: None,
            },
        };
        let (number, begun) = self.step.reasonings.stored();
        let id = child(REASONING, &self.step.id, number);
        let kind = SlotKind::Block(self.shows.reasoning());
        self.complete(begun, kind, id, &last, out);
    }

    /// Reasoning that its provider does not show.
    fn hidden(&mut self, sealed: &str, out: &mut String) {
        let id = child(
            REASONING,
            &self.step.id,
            format_args!("h{}", self.step.n_hidden),
        );
        self.step.n_hidden += 1;
        self.step.hidden.push(self.done.len());
        let quoted_id = quoted(&id);
        let item = |standing: Standing| {
            let more = More {
                sealed: (standing != Standing::InProgress).then_some(sealed),
                phase: None,
            };
            block_item(Block::Summary, &quoted_id, standing.word(), "", &more)
        };
        if self.shows.sealed == Sealed::Always {
            self.whole(id, item, out);
            return;
        }
        // It has no events: those that come after it would have other numbers.
        let json = item(Standing::Completed);
        let index = self.n_items;
        self.is_done(index, id, json);
        self.put_before(self.done.len().saturating_sub(1), index);
    }

    fn called(&mut self, idx: u32, tool: &ToolPart, standing: Standing, out: &mut String) {
        if self.step.answers {
            let is_given = match &self.step.known_given {
                Some(given) => given.contains(&tool.tool_call_id),
                None => tool.approval.is_none(),
            };
            if is_given {
                self.step.given.insert(idx);
            }
            return;
        }
        let kind = SlotKind::Call {
            call_id: quoted(&tool.tool_call_id),
            name: quoted(tool.tool_name()),
        };
        let arguments = escaped(tool.arguments());
        let last = LastWord {
            standing,
            text: Some(&arguments),
            annotations: &[],
            more: More::default(),
        };
        let (number, begun) = self.step.calls.stored();
        let id = child(FUNCTION_CALL, &self.step.id, number);
        self.complete(begun, kind, id, &last, out);
    }

    /// What a call has come to since it was made.
    fn became(&mut self, idx: u32, tool: &ToolPart, out: &mut String) {
        match tool.state {
            ToolState::InputAvailable | ToolState::ApprovalResponded => {}
            ToolState::ApprovalRequested => {
                if self.shows.extensions && self.step.asked.insert(idx) {
                    let id = extension::id("apr", &self.step.id, idx);
                    let item = |standing| extension::approval_request(&id, tool, standing);
                    self.whole(id.clone(), item, out);
                }
            }
            ToolState::OutputAvailable | ToolState::OutputError => {
                if !self.step.given.contains(&idx) && self.step.ended.insert(idx) {
                    self.returned(idx, tool, out);
                }
            }
        }
    }

    fn returned(&mut self, idx: u32, tool: &ToolPart, out: &mut String) {
        let given = tool
            .output
            .as_ref()
            .map(|output| shown_output(&output.value()));
        let output = match (tool.state, &tool.error_text) {
            (ToolState::OutputError, Some(text)) => Value::from(text.as_str()),
            _ => given.unwrap_or_else(|| "".into()),
        };
        let id = child(FUNCTION_OUTPUT, &self.step.id, idx);
        let item = |standing: Standing| {
            let empty = Value::from("");
            let shown = if standing == Standing::InProgress {
                &empty
            } else {
                &output
            };
            output_item(&id, &tool.tool_call_id, shown, standing)
        };
        self.whole(id.clone(), item, out);
    }

    fn told(&mut self, idx: u32, event: &EventPart, out: &mut String) {
        if self.shows.extensions {
            let id = extension::id("evt", &self.step.id, idx);
            let item = |standing| extension::event(&id, event, standing);
            self.whole(id.clone(), item, out);
        }
    }
}

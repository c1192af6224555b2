//! Stored parts: the authoritative content of a step.

use super::super::content::{citation, shown_output};
use super::super::extension;
use super::super::sealed::seal_reasoning;
use super::super::slot::{Block, More, OutputStatus, SlotKind, block_item, output_item};
use super::cited::{Citations, citations};
use super::step::{StepState, StoredPart};
use super::{ItemEnd, Output, Sealed, child};
use crate::ids::{FUNCTION_CALL, FUNCTION_OUTPUT, MESSAGE, REASONING};
use crate::json_text::{escaped, quoted};
use crate::parts::{
    EventPart, OUTPUT_FILE, ReasoningPart, StepResponse, ToolPart, ToolState, is_prompt,
};
use crate::run::RunPart;
use crate::truncate::Cut;
use serde_json::Value;
use timeline::{MessagePartKind, Payload, Step, StepOutcome, StepStatus, part_kind};

/// The phases of an assistant's message in its turn.
const PHASES: [&str; 2] = ["commentary", "final_answer"];

impl Output {
    pub(super) fn step_started(&mut self, step: &Step) {
        self.usage = self.usage();
        self.step = StepState {
            id: step.id.to_string(),
            iteration: step.iteration,
            // Only the first step of an execution can be about answers.
            results: self.results.take(),
            ..StepState::default()
        };
    }

    /// Ends the step. If no model answered, its stored parts are emitted now. If nothing is stored,
    /// the deltas are its content, even if the step failed.
    pub(super) fn step_ended(
        &mut self,
        status: StepStatus,
        outcome: &StepOutcome,
        out: &mut String,
    ) {
        let unanswered = match status {
            StepStatus::Running => return,
            StepStatus::Completed => OutputStatus::Completed,
            StepStatus::Failed => OutputStatus::Incomplete,
        };
        if !self.step.is_answered && !self.step.parts.is_empty() {
            self.show_parts(&Citations::new(), out);
        }
        self.interrupt((!self.step.is_answered).then_some(unanswered), out);
        self.cut = Cut::of_step(outcome).or(self.cut);
    }

    /// A part was stored, for the first time or again.
    pub(super) fn part(&mut self, idx: u32, part: RunPart, payload: &Payload, out: &mut String) {
        if !self.step.is_answered {
            let stored = StoredPart {
                idx,
                part,
                payload: payload.clone(),
            };
            let known = self.step.parts.get_mut(idx as usize);
            match known.filter(|known| known.idx == idx) {
                Some(known) => *known = stored,
                None => self.step.parts.push(stored),
            }
            return;
        }
        match part {
            RunPart::Tool(tool) => self.tool_state(idx, &tool, out),
            RunPart::Event(event) => self.event_part(idx, &event, out),
            RunPart::File { .. } | RunPart::Content => {}
        }
    }

    /// The model has answered; the parts of its answer are stored.
    pub(super) fn responded(&mut self, response: StepResponse, out: &mut String) {
        self.step.answers = response.answers;
        if !response.answers {
            self.model = response.model.or_else(|| self.model.take());
            self.cut = Cut::of_answer(response.stop_reason.as_deref());
        }
        let usage = response.usage.as_ref();
        self.step.usage = usage.and_then(|usage| usage.read().ok());
        let metadata = response.metadata.as_ref();
        self.show_parts(&metadata.map(citations).unwrap_or_default(), out);
    }

    fn show_parts(&mut self, citations: &Citations, out: &mut String) {
        self.step.is_answered = true;
        let parts = std::mem::take(&mut self.step.parts);
        let is_cut = self.cut == Some(Cut::Tokens);
        let last = parts
            .iter()
            .rposition(|stored| !is_prompt(&stored.payload))
            .filter(|_| is_cut);
        let mut n_blocks = 0;
        for (place, stored) in parts.iter().enumerate() {
            let status = if last == Some(place) {
                OutputStatus::Incomplete
            } else {
                OutputStatus::Completed
            };
            match &stored.part {
                RunPart::Tool(tool) => self.tool_call(stored.idx, tool, status, out),
                RunPart::Event(event) => self.event_part(stored.idx, event, out),
                RunPart::File { .. } | RunPart::Content if is_prompt(&stored.payload) => {}
                RunPart::File { .. } | RunPart::Content => {
                    let cited = citations.get(&n_blocks);
                    n_blocks += 1;
                    let cited = cited.map(Vec::as_slice).unwrap_or_default();
                    self.content_part(stored.idx, &stored.payload, status, cited, out);
                }
            }
        }
        self.interrupt(None, out);
        for stored in &parts {
            if let Some(tool) = stored.part.tool() {
                self.tool_state(stored.idx, tool, out);
            }
        }
    }

    fn content_part(
        &mut self,
        idx: u32,
        part: &Payload,
        status: OutputStatus,
        cited: &[String],
        out: &mut String,
    ) {
        let value = part.value();
        let text_of = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
        let kind = value
            .get("type")
            .and_then(Value::as_str)
            .and_then(part_kind);
        let (block, text) = match kind {
            Some(MessagePartKind::OutputText | MessagePartKind::InputText) => {
                (Block::Text, text_of("text"))
            }
            Some(MessagePartKind::Refusal) => (Block::Refusal, text_of("refusal")),
            Some(MessagePartKind::Reasoning) => {
                return self.reasoning_part(idx, part, status, out);
            }
            Some(MessagePartKind::Extension(OUTPUT_FILE)) => {
                return self.lost(idx, "a file that a model made");
            }
            Some(MessagePartKind::Extension(_)) if self.shows.extensions => {
                return self.extension_part(idx, &value, out);
            }
            Some(
                MessagePartKind::InputImage
                | MessagePartKind::InputFile
                | MessagePartKind::Tool(_)
                | MessagePartKind::Extension(_),
            )
            | None => return self.lost(idx, "a part that is no output of a response"),
        };
        if text.is_empty() {
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
        let text = escaped(text);
        let last = ItemEnd {
            status,
            text: Some(&text),
            annotations,
            more: More {
                sealed: None,
                phase: PHASES.into_iter().find(|phase| *phase == text_of("phase")),
            },
        };
        let (number, streamed) = self.step.messages.stored();
        let id = child(MESSAGE, &self.step.id, number);
        self.complete(streamed, SlotKind::Block(block), id, &last, out);
    }

    /// Completes an item that deltas have started. If there is none, or its text differs, the item
    /// is emitted whole. A streamed item that differs can't be withdrawn and ends unchanged.
    fn complete(
        &mut self,
        streamed: Option<usize>,
        kind: SlotKind,
        id: String,
        last: &ItemEnd<'_>,
        out: &mut String,
    ) {
        let text = last.text.unwrap_or_default();
        let streamed = streamed.filter(|place| self.step.is(*place, &kind, text));
        let place = streamed.unwrap_or_else(|| self.begin(kind, id, out));
        if let Some((index, id, json)) = self.end(place, last, out) {
            for hidden in std::mem::take(&mut self.step.hidden) {
                self.put_before(hidden, index);
            }
            self.push_done(index, id, json);
        }
    }

    fn reasoning_part(&mut self, idx: u32, part: &Payload, status: OutputStatus, out: &mut String) {
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
                self.hidden_reasoning(&sealed, out);
            }
            return;
        }
        let text = escaped(&reasoning.text);
        let last = ItemEnd {
            status,
            text: Some(&text),
            annotations: &[],
            more: More {
                sealed: sealed.as_deref(),
                phase: None,
            },
        };
        let (number, streamed) = self.step.reasonings.stored();
        let id = child(REASONING, &self.step.id, number);
        let kind = SlotKind::Block(self.shows.reasoning());
        self.complete(streamed, kind, id, &last, out);
    }

    /// Emits reasoning that its provider hides.
    fn hidden_reasoning(&mut self, sealed: &str, out: &mut String) {
        let id = child(
            REASONING,
            &self.step.id,
            format_args!("h{}", self.step.n_hidden),
        );
        self.step.n_hidden += 1;
        self.step.hidden.push(self.done.len());
        let quoted_id = quoted(&id);
        let item = |status: OutputStatus| {
            let more = More {
                sealed: (status != OutputStatus::InProgress).then_some(sealed),
                phase: None,
            };
            block_item(Block::Summary, &quoted_id, status.name(), "", &more)
        };
        if self.shows.sealed == Sealed::Always {
            self.whole(id, item, out);
            return;
        }
        // It has no events: those that come after it would have other numbers.
        let json = item(OutputStatus::Completed);
        let index = self.n_items;
        self.push_done(index, id, json);
        self.put_before(self.done.len().saturating_sub(1), index);
    }

    fn tool_call(&mut self, idx: u32, tool: &ToolPart, status: OutputStatus, out: &mut String) {
        if self.step.answers {
            let is_submitted = match &self.step.results {
                Some(results) => results.contains(&tool.tool_call_id),
                None => tool.approval.is_none(),
            };
            if is_submitted {
                self.step.submitted.insert(idx);
            }
            return;
        }
        let kind = SlotKind::Call {
            call_id: quoted(&tool.tool_call_id),
            name: quoted(tool.tool_name()),
        };
        let arguments = escaped(tool.arguments());
        let last = ItemEnd {
            status,
            text: Some(&arguments),
            annotations: &[],
            more: More::default(),
        };
        let (number, streamed) = self.step.calls.stored();
        let id = child(FUNCTION_CALL, &self.step.id, number);
        self.complete(streamed, kind, id, &last, out);
    }

    /// The state of a call since it was made: an approval request, or its result.
    fn tool_state(&mut self, idx: u32, tool: &ToolPart, out: &mut String) {
        match tool.state {
            ToolState::InputAvailable | ToolState::ApprovalResponded => {}
            ToolState::ApprovalRequested => {
                if self.shows.extensions && self.step.approvals.insert(idx) {
                    let id = extension::id("apr", &self.step.id, idx);
                    let item = |status| extension::approval_request(&id, tool, status);
                    self.whole(id.clone(), item, out);
                }
            }
            ToolState::OutputAvailable | ToolState::OutputError => {
                if !self.step.submitted.contains(&idx) && self.step.ended.insert(idx) {
                    self.tool_output(idx, tool, out);
                }
            }
        }
    }

    fn tool_output(&mut self, idx: u32, tool: &ToolPart, out: &mut String) {
        let stored = tool
            .output
            .as_ref()
            .map(|output| shown_output(&output.value()));
        let output = match (tool.state, &tool.error_text) {
            (ToolState::OutputError, Some(text)) => Value::from(text.as_str()),
            _ => stored.unwrap_or_else(|| "".into()),
        };
        let id = child(FUNCTION_OUTPUT, &self.step.id, idx);
        let item = |status: OutputStatus| {
            let empty = Value::from("");
            let shown = if status == OutputStatus::InProgress {
                &empty
            } else {
                &output
            };
            output_item(&id, &tool.tool_call_id, shown, status)
        };
        self.whole(id.clone(), item, out);
    }

    /// An extension part of the agent's, for clients that request such items.
    fn extension_part(&mut self, idx: u32, part: &Value, out: &mut String) {
        let id = extension::id("prt", &self.step.id, idx);
        let item = |status| extension::part_message(&id, part, status);
        self.whole(id.clone(), item, out);
    }

    fn event_part(&mut self, idx: u32, event: &EventPart, out: &mut String) {
        if self.shows.extensions {
            let id = extension::id("evt", &self.step.id, idx);
            let item = |status| extension::event(&id, event, status);
            self.whole(id.clone(), item, out);
        }
    }
}

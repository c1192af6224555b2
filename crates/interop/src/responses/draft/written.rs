//! The steps of an imported execution as commands.

use super::super::error::RequestError;
use super::super::thread_input::marked;
use super::{Called, Slot, Step, unwritable};
use crate::parts::{StepResponse, ToolState};
use serde_json::{Map, Value, json};
use timeline::{ANSWER, Command, Ending, OpenCall, OpenKind, Payload, StepOutcome};

/// Converts the steps of an execution up to its end; returns the answers to the calls that stay
/// open.
pub(super) fn write(
    steps: Vec<Step>,
    waits: bool,
    is_answered: bool,
    commands: &mut Vec<Command>,
    ids: &mut dyn FnMut() -> String,
) -> Result<Vec<Value>, RequestError> {
    let n_steps = steps.len();
    let mut given = Vec::new();
    for (place, step) in steps.into_iter().enumerate() {
        let last = place + 1 == n_steps;
        let next = (!last).then(|| ids().into());
        let mut written = Written::of(step, last && waits, is_answered)?;
        let response = StepResponse {
            stop_reason: Some(
                if written.calls.is_empty() {
                    "end_turn"
                } else {
                    "tool_use"
                }
                .to_owned(),
            ),
            metadata: Some(marked(&Map::from_iter([(
                "imported".to_owned(),
                true.into(),
            )]))),
            ..StepResponse::default()
        };
        let response = Payload::write(&response).map_err(|_| unwritable("/input"))?;
        let parts = std::mem::take(&mut written.parts);
        commands.push(Command::Respond { parts, response });
        let results = std::mem::take(&mut written.results).into_iter();
        commands.extend(results.map(|(idx, part)| Command::PutPart { idx, part }));
        given.append(&mut written.answers);
        let outcome = written.outcome()?;
        commands.push(Command::ImportStep { outcome, next });
    }
    let ending = Ending::Completed;
    commands.push(Command::End { ending });
    Ok(given)
}

/// The records of one step.
#[derive(Default)]
struct Written {
    parts: Vec<Payload>,
    results: Vec<(u32, Payload)>,
    answers: Vec<Value>,
    open: Vec<OpenCall>,
    calls: Vec<Value>,
    ended: Vec<Value>,
}

impl Written {
    fn of(step: Step, waits: bool, is_answered: bool) -> Result<Self, RequestError> {
        let mut written = Self::default();
        for (idx, slot) in (0..).zip(step.parts) {
            match slot {
                Slot::Part(part) => written.parts.push(part),
                Slot::Call(call) => written.call(idx, *call, waits, is_answered)?,
            }
        }
        Ok(written)
    }

    fn call(
        &mut self,
        idx: u32,
        call: Called,
        waits: bool,
        is_answered: bool,
    ) -> Result<(), RequestError> {
        let (mut tool, pointer) = (call.tool, call.pointer.as_str());
        let id = tool.tool_call_id.clone();
        let part = tool.write().map_err(|_| unwritable(pointer))?;
        self.calls
            .push(json!({"toolCallId": id, "toolName": tool.tool_name()}));
        self.parts.push(part.clone());
        let open = OpenCall {
            tool_call_id: id.clone(),
            kind: OpenKind::External,
            part,
            origin: None,
            children: Vec::new(),
        };
        match call.output {
            Some(output) if waits && is_answered => {
                self.answers
                    .push(json!({"type": ANSWER, "toolCallId": id, "output": output}));
                self.open.push(open);
            }
            Some(output) => {
                tool.state = ToolState::OutputAvailable;
                tool.output = Some(output.into());
                let part = tool.write().map_err(|_| unwritable(pointer))?;
                self.results.push((idx, part));
                self.ended.push(json!({"toolCallId": id, "success": true}));
            }
            None if waits && !is_answered => self.open.push(open),
            None => {
                let message = format!("No tool output found for function call {id}.");
                return Err(RequestError::at(pointer, "invalid_value", message));
            }
        }
        Ok(())
    }

    fn outcome(self) -> Result<StepOutcome, RequestError> {
        let some = |list: Vec<Value>| (!list.is_empty()).then(|| Value::Array(list).into());
        let open = (!self.open.is_empty())
            .then(|| Payload::write(&self.open))
            .transpose();
        Ok(StepOutcome {
            tool_calls: some(self.calls),
            tool_execution_results: some(self.ended),
            open_calls: open.map_err(|_| unwritable("/input"))?,
            ..StepOutcome::default()
        })
    }
}

//! `POST …/submit_tool_outputs`.

use crate::threads::error::RequestError;
use crate::threads::fields::{Fields, MAX_ID};
use crate::threads::object::RunStatus;
use crate::threads::run::Run;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use timeline::{ANSWER, ItemType, NewItem};

const MAX_OUTPUTS: usize = 256;
/// The most characters of one output.
const MAX_OUTPUT: usize = 1 << 20;

/// The result of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmittedOutput {
    /// The call.
    pub tool_call_id: String,
    /// The result's text.
    pub output: String,
}

/// The results of the calls that a run waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmitToolOutputs {
    /// One for each call.
    pub outputs: Vec<SubmittedOutput>,
    /// Whether the answer is a stream.
    pub stream: bool,
}

impl SubmitToolOutputs {
    /// Reads the body.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let fields = Fields::of(body, "")?;
        let list = fields.placed("tool_outputs", MAX_OUTPUTS)?;
        let list = list.ok_or_else(|| fields.missing("tool_outputs"))?;
        let outputs = list.into_iter().map(|(pointer, output)| {
            let output = Fields::of(output, pointer)?;
            Ok(SubmittedOutput {
                tool_call_id: output.required("tool_call_id", MAX_ID)?.to_owned(),
                output: output
                    .text("output", MAX_OUTPUT)?
                    .unwrap_or_default()
                    .to_owned(),
            })
        });
        Ok(Self {
            outputs: outputs.collect::<Result<_, _>>()?,
            stream: fields.flag("stream")?.unwrap_or_default(),
        })
    }

    /// The item that answers the run's calls; `id` is its id. There must be one output for each
    /// pending call, and no other.
    pub fn item(self, id: &str, run: &Run, now: Timestamp) -> Result<NewItem, RequestError> {
        let status = run.status(now);
        if status != RunStatus::RequiresAction {
            return Err(RequestError::NotWaiting { status });
        }
        let pending = run.pending();
        let expected = pending.iter().map(|call| call.id.as_str());
        let brought = self.outputs.iter().map(|it| it.tool_call_id.as_str());
        let is_whole =
            expected.clone().collect::<BTreeSet<_>>() == brought.clone().collect::<BTreeSet<_>>();
        if !is_whole || self.outputs.len() != pending.len() {
            return Err(RequestError::Outputs {
                expected: expected.map(str::to_owned).collect(),
                got: brought.map(str::to_owned).collect(),
            });
        }
        let answers = self
            .outputs
            .into_iter()
            .map(|it| json!({"type": ANSWER, "toolCallId": it.tool_call_id, "output": it.output}));
        Ok(NewItem {
            id: id.into(),
            item_type: ItemType::ActionResult,
            role: None,
            channel: None,
            content: Some(Value::Array(answers.collect()).into()),
            metadata: None,
        })
    }
}

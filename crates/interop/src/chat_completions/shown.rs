//! The answer of a run, as this protocol shows it.

use super::message::HistoryCall;
use super::wire::FinishReason;
use crate::parts::{StepResponse, ToolPart};
use crate::responses::ending::{Ending, Failure};
use crate::responses::{RequestError, Status, Tokens};
use crate::run::RunEvent;
use crate::truncate::Cut;
use timeline::{BlockKind, Chunk, ExecutionStatus, Interruption, OpenCall, OpenKind, StepOutcome};

/// The separator between two texts of an answer.
const BETWEEN: &str = "\n\n";

/// The answer so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Shown {
    pub(super) content: String,
    pub(super) reasoning: String,
    pub(super) calls: Vec<HistoryCall>,
    /// The tokens of the steps that are over, and of the one at work.
    usage: Tokens,
    step_usage: Tokens,
    /// The lengths of the texts when the step at work began.
    step: (usize, usize),
    /// Whether the next text is of another block than the one before it.
    is_next_block: bool,
    /// The calls that the last step has left open.
    open: Vec<OpenCall>,
    cut: Option<Cut>,
}

/// An addition of an event to the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The text or the reasoning has grown, from this byte on.
    Grown(BlockKind, usize),
    /// The additions of the running step are void: this text.
    Reset(String),
}

impl Shown {
    /// Adds an event of the run.
    pub(super) fn event(&mut self, event: &RunEvent<'_>) -> Option<Change> {
        match event {
            RunEvent::StepStarted { .. } => self.step = (self.content.len(), self.reasoning.len()),
            RunEvent::Chunk(Chunk::BlockStart { .. }) => self.is_next_block = true,
            RunEvent::Chunk(Chunk::BlockDelta { kind, text, .. }) if !text.is_empty() => {
                let from = self.text(*kind).len();
                if std::mem::take(&mut self.is_next_block) {
                    self.separate(*kind);
                }
                self.text(*kind).push_str(text);
                return Some(Change::Grown(*kind, from));
            }
            RunEvent::StepReset { .. } => {
                let void = self.content.split_off(self.step.0);
                self.reasoning.truncate(self.step.1);
                self.step_usage = Tokens::default();
                return Some(Change::Reset(void));
            }
            RunEvent::Responded { response } => self.responded(response.as_ref()),
            RunEvent::StepEnded { outcome, .. } => self.step_ended(outcome),
            RunEvent::Started { .. }
            | RunEvent::Continued { .. }
            | RunEvent::Chunk(_)
            | RunEvent::Part { .. }
            | RunEvent::ExecutionEnded { .. }
            | RunEvent::ContinuationPending
            | RunEvent::Ended
            | RunEvent::Abandoned
            | RunEvent::ItemAdded(_)
            | RunEvent::ThreadChanged(_) => {}
        }
        None
    }

    fn text(&mut self, kind: BlockKind) -> &mut String {
        match kind {
            BlockKind::Text => &mut self.content,
            BlockKind::Reasoning => &mut self.reasoning,
        }
    }

    fn separate(&mut self, kind: BlockKind) {
        let text = self.text(kind);
        if !text.is_empty() {
            text.push_str(BETWEEN);
        }
    }

    fn responded(&mut self, response: Option<&StepResponse>) {
        let usage = response.and_then(|it| it.usage.as_ref()?.read().ok());
        self.step_usage = usage.unwrap_or_default();
        self.cut = Cut::of_answer(response.and_then(|it| it.stop_reason.as_deref()));
    }

    fn step_ended(&mut self, outcome: &StepOutcome) {
        self.usage = self.usage();
        self.step_usage = Tokens::default();
        self.open = OpenCall::list(outcome.open_calls.as_ref());
        self.cut = self.cut.or(Cut::of_step(outcome));
    }

    /// The tokens that it has used.
    pub(super) fn usage(&self) -> Tokens {
        self.usage.plus(self.step_usage)
    }

    /// Ends it. The calls that its client answers become its calls. Other waiting calls are named in its
    /// text, which grows from the passed byte.
    ///
    /// # Errors
    ///
    /// Why the run failed.
    pub(super) fn end(
        &mut self,
        status: ExecutionStatus,
        why: Option<&Interruption>,
    ) -> (usize, Result<FinishReason, RequestError>) {
        let from = self.content.len();
        for call in std::mem::take(&mut self.open) {
            let Some(tool) = ToolPart::read(&call.part) else {
                continue;
            };
            match call.kind {
                OpenKind::External => self.calls.push(HistoryCall {
                    id: call.tool_call_id,
                    name: tool.tool_name().to_owned(),
                    arguments: tool.arguments().to_owned(),
                }),
                OpenKind::Approval => self.waits(&tool, "approval"),
                OpenKind::Child => self.waits(&tool, "its sub-agent"),
                OpenKind::Others => {}
            }
        }
        let ending = Ending::of(status, why, self.cut);
        let reason = match ending.status {
            Status::Completed if self.calls.is_empty() => FinishReason::Stop,
            Status::Completed => FinishReason::ToolCalls,
            Status::Incomplete => match ending.incomplete.as_deref() {
                Some("content_filter") => FinishReason::ContentFilter,
                Some(_) | None => FinishReason::Length,
            },
            Status::Failed | Status::Cancelled | Status::Queued | Status::InProgress => {
                return (from, Err(failure(ending.error)));
            }
        };
        (from, Ok(reason))
    }

    fn waits(&mut self, tool: &ToolPart, what: &str) {
        self.separate(BlockKind::Text);
        let (name, input, call) = (tool.tool_name(), tool.arguments(), &tool.tool_call_id);
        let told = format!("[{name} {input} waits for {what}: call {call}]");
        self.content.push_str(&told);
    }
}

/// The error of a run; one that has none was stopped.
fn failure(failure: Option<Failure>) -> RequestError {
    let Some(failure) = failure else {
        return RequestError::server_error("the run was stopped");
    };
    let code = match failure.code.as_str() {
        "rate_limit_exceeded" => "rate_limit_exceeded",
        _ => "server_error",
    };
    RequestError {
        kind: failure.kind,
        code,
        pointer: None,
        message: failure.message,
    }
}

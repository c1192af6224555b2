//! From the log to the chunks of a completion and to the whole of it.

use super::VIEW;
use super::message::HistoryCall;
use super::shown::{Change, Shown};
use super::wire::{
    AssistantMessage, ChatCompletion, ChatCompletionChunk, ChunkChoice, CompletionChoice,
    CompletionToolCall, CompletionUsage, Delta, FinishReason, FunctionCall, ToolCallDelta,
};
use crate::ids::IdForm;
use crate::responses::RequestError;
use crate::run::{RunEvent, RunFold, RunSelector};
use crate::sse::{DONE, write_event};
use serde_json::{Value, json};
use timeline::{BlockKind, Execution, ExecutionStatus, Interruption, Record};

/// A completion's id: that of its first execution.
const COMPLETION: IdForm = IdForm::new("chatcmpl-");

/// One completion, while its run is made.
///
/// It reads the records of a thread in order, from before the run's first one. Without
/// [`CompletionStream::streaming`] it writes nothing; [`CompletionStream::outcome`] gives the whole.
///
/// Chunks can't be taken back. Where an attempt at a step dies, the next attempt's text is left out as
/// far as it is the same. If it differs, the stream fails.
#[derive(Debug)]
pub struct CompletionStream {
    fold: RunFold,
    head: Option<Head>,
    shown: Shown,
    /// Whether chunks have the usage; none if no chunks are written.
    streams: Option<bool>,
    /// Text of a dead attempt that is written, and that the next attempt has not repeated.
    ahead: String,
    outcome: Option<Result<FinishReason, RequestError>>,
}

/// The members that all chunks share.
#[derive(Debug)]
struct Head {
    id: String,
    created: i64,
    model: String,
}

impl Head {
    fn of(execution: &Execution) -> Self {
        let run = execution.run.as_ref().map(timeline::Payload::value);
        let run = run.unwrap_or_default();
        let names = [
            &run["params"]["echo"][VIEW]["model"],
            &run["agent"],
            &run["params"]["model"],
        ];
        let model = names.into_iter().find_map(Value::as_str);
        Self {
            id: COMPLETION.write(execution.id.as_str()),
            created: execution.created_at.as_second(),
            model: model.unwrap_or_default().to_owned(),
        }
    }
}

impl CompletionStream {
    /// The completion of this run.
    pub fn new(run: RunSelector) -> Self {
        Self {
            fold: RunFold::new(run).with_blocks(),
            head: None,
            shown: Shown::default(),
            streams: None,
            ahead: String::new(),
            outcome: None,
        }
    }

    /// Writes chunks, as server-sent events.
    #[must_use]
    pub fn streaming(self, include_usage: bool) -> Self {
        Self {
            streams: Some(include_usage),
            ..self
        }
    }

    /// Whether the run is over, and the last chunk written.
    pub fn is_over(&self) -> bool {
        self.outcome.is_some()
    }

    /// The whole completion, or why its run failed; none while it is made.
    pub fn outcome(&self) -> Option<Result<ChatCompletion, RequestError>> {
        let reason = match self.outcome.as_ref()? {
            Ok(reason) => *reason,
            Err(error) => return Some(Err(error.clone())),
        };
        let head = self.head.as_ref()?;
        let shown = &self.shown;
        let has_content = !shown.content.is_empty() || shown.calls.is_empty();
        let message = AssistantMessage {
            role: "assistant",
            content: has_content.then(|| shown.content.clone()),
            refusal: None,
            reasoning_content: Some(shown.reasoning.clone()).filter(|it| !it.is_empty()),
            tool_calls: shown.calls.iter().map(tool_call).collect(),
        };
        Some(Ok(ChatCompletion {
            id: head.id.clone(),
            object: "chat.completion",
            created: head.created,
            model: head.model.clone(),
            choices: [CompletionChoice {
                index: 0,
                message,
                logprobs: None,
                finish_reason: reason,
            }],
            usage: shown.usage().into(),
        }))
    }

    /// Writes the chunks of a record; nothing for a record of another run.
    pub fn apply(&mut self, record: &Record, out: &mut String) {
        for event in self.fold.events(record) {
            self.event(&event, out);
        }
    }

    /// Writes the chunks of an event.
    pub fn event(&mut self, event: &RunEvent<'_>, out: &mut String) {
        if self.is_over() {
            return;
        }
        match event {
            RunEvent::Started { execution } => {
                self.head = Some(Head::of(execution));
                let delta = Delta {
                    role: Some("assistant"),
                    content: Some(""),
                    ..Delta::default()
                };
                self.chunk(delta, None, out);
            }
            RunEvent::ExecutionEnded {
                status,
                interruption,
                is_last,
                ..
            } if *is_last || *status != ExecutionStatus::Completed => {
                self.end(*status, *interruption, out);
            }
            RunEvent::Abandoned => {
                let closed = RequestError::server_error("the thread was closed");
                self.failed(closed, out);
            }
            RunEvent::Continued { .. }
            | RunEvent::StepStarted { .. }
            | RunEvent::Chunk(_)
            | RunEvent::StepReset { .. }
            | RunEvent::Responded { .. }
            | RunEvent::Part { .. }
            | RunEvent::StepEnded { .. }
            | RunEvent::ExecutionEnded { .. }
            | RunEvent::ContinuationPending
            | RunEvent::Ended
            | RunEvent::ItemAdded(_)
            | RunEvent::ThreadChanged(_) => match self.shown.event(event) {
                Some(Change::Grown(kind, from)) => self.grown(kind, from, out),
                Some(Change::Reset(void)) if self.streams.is_some() => {
                    self.ahead.insert_str(0, &void);
                }
                Some(Change::Reset(_)) | None => {}
            },
        }
    }

    /// Writes that the stream can't go on, and its end. `error` is the object that a body has as its
    /// `error`.
    pub fn fail(&self, error: &Value, out: &mut String) {
        write_event(&json!({"error": error}).to_string(), out);
        write_event(DONE, out);
    }

    fn failed(&mut self, error: RequestError, out: &mut String) {
        if self.streams.is_some() {
            self.fail(&error.body()["error"], out);
        }
        self.outcome = Some(Err(error));
    }

    fn end(&mut self, status: ExecutionStatus, why: Option<&Interruption>, out: &mut String) {
        let (from, ended) = self.shown.end(status, why);
        self.grown(BlockKind::Text, from, out);
        let reason = match ended {
            Ok(reason) => reason,
            Err(error) => return self.failed(error, out),
        };
        if !self.ahead.is_empty() {
            return self.differs(out);
        }
        let calls = self.shown.calls.iter().map(tool_call).enumerate();
        let calls = calls.map(|(index, call)| ToolCallDelta { index, call });
        for call in calls {
            let delta = Delta {
                tool_calls: vec![call],
                ..Delta::default()
            };
            self.chunk(delta, None, out);
        }
        self.chunk(Delta::default(), Some(reason), out);
        self.outcome = Some(Ok(reason));
        if self.streams == Some(true) {
            self.write(Vec::new(), Some(self.shown.usage().into()), out);
        }
        if self.streams.is_some() {
            write_event(DONE, out);
        }
    }

    /// Writes what the text or the reasoning has grown by, from this byte on.
    fn grown(&mut self, kind: BlockKind, from: usize, out: &mut String) {
        if self.streams.is_none() {
            return;
        }
        let mut delta = Delta::default();
        match kind {
            BlockKind::Reasoning => delta.reasoning_content = self.shown.reasoning.get(from..),
            BlockKind::Text => {
                let new = self.shown.content.get(from..).unwrap_or_default();
                if let Some(rest) = self.ahead.strip_prefix(new) {
                    self.ahead = rest.to_owned();
                    return;
                }
                let Some(new) = new.strip_prefix(self.ahead.as_str()) else {
                    return self.differs(out);
                };
                self.ahead.clear();
                delta.content = Some(new);
            }
        }
        self.chunk(delta, None, out);
    }

    fn differs(&mut self, out: &mut String) {
        let message = "the model was asked again after a failure and answers otherwise than was \
                       streamed; send the request again";
        self.failed(RequestError::model_error(message), out);
    }

    fn chunk(&self, delta: Delta<'_>, finish_reason: Option<FinishReason>, out: &mut String) {
        let choice = ChunkChoice {
            index: 0,
            delta,
            logprobs: None,
            finish_reason,
        };
        self.write(vec![choice], None, out);
    }

    fn write(
        &self,
        choices: Vec<ChunkChoice<'_>>,
        usage: Option<CompletionUsage>,
        out: &mut String,
    ) {
        let (Some(has_usage), Some(head)) = (self.streams, &self.head) else {
            return;
        };
        let chunk = ChatCompletionChunk {
            id: &head.id,
            object: "chat.completion.chunk",
            created: head.created,
            model: &head.model,
            choices,
            usage: has_usage.then_some(usage),
        };
        // Texts and numbers can be written.
        let json = serde_json::to_string(&chunk).unwrap_or_default();
        write_event(&json, out);
    }
}

fn tool_call(call: &HistoryCall) -> CompletionToolCall {
    CompletionToolCall {
        id: call.id.clone(),
        kind: "function",
        function: FunctionCall {
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        },
    }
}

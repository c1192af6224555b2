//! The model of an external agent in one step: a worker's answer as a stream.

use crate::reactor::StepRun;
use crate::worker_steps::{
    ExternalAnswer, ExternalSteps, Offer, Offered, Status, StepDelta, WorkerPolicy,
};
use async_stream::try_stream;
use futures_util::future::{Either, select};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::StoreError;
use timeline::Payload;
use upp::{
    AssistantContent, Capabilities, Code, Error, Model, ModelEvent, ModelStream, NativeSettings,
    Request, Response, Settings, StreamEvent, ToolChoice,
};

const PROVIDER: &str = "external";
/// The first wait and the longest one after the store could not be read.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(4));
/// Maximum size of a request to a worker, in bytes.
const MAX_REQUEST: usize = 32 << 20;
/// Maximum size of the streamed text of an attempt, in bytes, with [`PIECE`] for each piece.
const MAX_STREAMED: usize = 16 << 20;
/// Each piece of streamed text counts this number of bytes in addition to its text.
const PIECE: usize = 64;

fn error(code: Code, message: impl Into<String>) -> Error {
    Error::new(code, PROVIDER, message)
}

/// One step as a call of a worker.
pub(super) struct ExternalCall {
    steps: ExternalSteps,
    offer: Offer,
    /// Whether the attempt is void and the step must run again.
    void: AtomicBool,
    messages: Mutex<Option<Vec<Payload>>>,
}

impl ExternalCall {
    pub(super) fn new(step: &StepRun, agent: String, policy: WorkerPolicy) -> Self {
        Self {
            steps: step.external.clone(),
            offer: Offer {
                tenant: step.tenant.clone(),
                step: step.step.id.to_string(),
                agent,
                thread: step.thread.clone(),
                key: step.key.clone(),
                execution: step.execution.id.to_string(),
                iteration: step.step.iteration,
                policy,
            },
            void: AtomicBool::new(false),
            messages: Mutex::default(),
        }
    }

    pub(super) fn is_void(&self) -> bool {
        self.void.load(Ordering::Acquire)
    }

    /// The messages that the worker sent to its model, if it reports them.
    pub(super) fn take_messages(&self) -> Option<Vec<Payload>> {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        messages.take()
    }

    fn set_messages(&self, messages: Option<Vec<Value>>) {
        let messages = messages.map(|all| all.into_iter().map(Into::into).collect());
        *self.messages.lock().unwrap_or_else(PoisonError::into_inner) = messages;
    }

    /// Ends the call so that the step runs again.
    fn give_up(&self) -> Error {
        self.void.store(true, Ordering::Release);
        error(Code::Cancelled, "the step must run again")
    }

    fn failed(&self, cause: &StoreError) -> Error {
        tracing::warn!(step = self.offer.step, error = %cause, "a step for a worker can't be stored or read");
        self.give_up()
    }

    async fn offered(self: &Arc<Self>, request: &Request) -> Result<OfferedCall, Error> {
        let text = request_text(request).map_err(|cause| {
            error(Code::InvalidRequest, "a message has no JSON form").caused_by(cause)
        })?;
        if text.len() > MAX_REQUEST {
            let message = format!("the messages have more than {MAX_REQUEST} bytes");
            return Err(error(Code::ContextLengthExceeded, message));
        }
        let offered = self.steps.offer(&self.offer, text).await;
        let attempt = match offered.map_err(|cause| self.failed(&cause))? {
            Offered::Attempt(attempt) => attempt,
            Offered::LostTooOften => {
                let n = self.offer.policy.max_lost_leases;
                let message = format!("{n} workers have lost the step");
                return Err(error(Code::Timeout, message));
            }
            Offered::Overtaken => return Err(self.give_up()),
        };
        Ok(OfferedCall {
            call: Arc::clone(self),
            attempt,
            last_chunk: String::new(),
            answer: None,
            is_over: false,
        })
    }
}

/// The request for the worker: the messages for the model, the tools and the parameters.
fn request_text(request: &Request) -> Result<String, serde_json::Error> {
    let tools = request.tools.iter().map(|tool| {
        json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters})
    });
    let choice = match &request.tool_choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Tool(name) => json!({"tool": name}),
    };
    let messages: Result<Vec<Value>, _> =
        request.messages.iter().map(serde_json::to_value).collect();
    serde_json::to_string(&json!({
        "system": request.system,
        "messages": messages?,
        "tools": tools.collect::<Vec<_>>(),
        "toolChoice": choice,
        "params": *request.params,
        "structure": request.structure,
    }))
}

/// The next event of an offered call.
enum Progress {
    Deltas(Vec<StepDelta>),
    Answered(Box<ExternalAnswer>),
}

/// A step that workers can see. If it is dropped before its end, it is withdrawn.
struct OfferedCall {
    call: Arc<ExternalCall>,
    attempt: u32,
    last_chunk: String,
    /// The answer, from its first read until its step is removed.
    answer: Option<Box<ExternalAnswer>>,
    is_over: bool,
}

impl OfferedCall {
    async fn next(&mut self) -> Result<Progress, Error> {
        let call = Arc::clone(&self.call);
        let notify = call.steps.changes(&call.offer.tenant, &call.offer.step);
        let (mut pause, longest) = PAUSES;
        loop {
            let changed = notify.notified();
            let wait = match self.look().await {
                Ok(Look::Progress(progress)) => return Ok(progress),
                Ok(Look::Wait(wait)) => wait,
                Ok(Look::Failed(error)) => return Err(error),
                // The worker computes all the same, and its answer is read after the outage.
                Err(cause @ StoreError::Failed(_)) => {
                    tracing::warn!(step = call.offer.step, error = %cause, "a step for a worker can't be read");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(longest);
                    continue;
                }
                Err(cause) => {
                    self.is_over = true;
                    return Err(call.failed(&cause));
                }
            };
            let wait = call.steps.step_poll().map_or(wait, |poll| wait.min(poll));
            let sleep = tokio::time::sleep(wait);
            match select(pin!(changed), pin!(sleep)).await {
                Either::Left(_) | Either::Right(_) => {}
            }
        }
    }

    /// Reads the step once.
    async fn look(&mut self) -> Result<Look, StoreError> {
        let call = Arc::clone(&self.call);
        let (steps, tenant, id) = (&call.steps, &call.offer.tenant, &call.offer.step);
        let found = steps.read(tenant, id).await?;
        let Some((object, mut step)) = found.filter(|(_, step)| step.attempt == self.attempt)
        else {
            self.is_over = true;
            if let Some(answer) = self.answer.take() {
                // The removal was done, though it seemed to fail.
                return Ok(Look::Progress(Progress::Answered(answer)));
            }
            // Another process has run the step, or the thread is deleted. If the run is still this one's, it begins again.
            return Ok(Look::Failed(call.give_up()));
        };
        let last = &mut self.last_chunk;
        let deltas = steps.take_chunks(tenant, id, self.attempt, last).await?;
        if !deltas.is_empty() {
            return Ok(Look::Progress(Progress::Deltas(deltas)));
        }
        let now = steps.now();
        let until = match step.status {
            Status::Waiting { until } if until <= now => {
                let message = "no worker has taken the step in time";
                return Ok(Look::Failed(error(Code::Timeout, message)));
            }
            Status::Leased { until, .. } if until <= now => {
                step.set(Status::Lost, now);
                if !steps.replace(tenant, &object, &step).await? {
                    return Ok(Look::Wait(Duration::ZERO));
                }
                self.is_over = true;
                return Ok(Look::Failed(call.give_up()));
            }
            Status::Waiting { until } | Status::Leased { until, .. } => until,
            Status::Answered { .. } => {
                if self.answer.is_none() {
                    self.answer = steps.answer(tenant, id, self.attempt).await?;
                }
                let Some(answer) = self.answer.clone() else {
                    self.is_over = true;
                    return Ok(Look::Failed(call.give_up()));
                };
                steps.remove(tenant, &object, self.attempt).await?;
                self.is_over = true;
                return Ok(Look::Progress(Progress::Answered(answer)));
            }
            Status::Failed { message, .. } => {
                return Ok(Look::Failed(error(Code::ProviderError, message)));
            }
            Status::Lost | Status::Cancelled { .. } => {
                self.is_over = true;
                return Ok(Look::Failed(call.give_up()));
            }
        };
        let left = until.duration_since(now).max(jiff::SignedDuration::ZERO);
        let left = Duration::try_from(left).unwrap_or_default();
        // The clock of the wait and that of the lease may differ by a rounding.
        Ok(Look::Wait(left + Duration::from_millis(1)))
    }
}

/// The state of a step that was read.
enum Look {
    Progress(Progress),
    Failed(Error),
    Wait(Duration),
}

impl Drop for OfferedCall {
    fn drop(&mut self) {
        let call = Arc::clone(&self.call);
        // A server that stops leaves the step to its next start.
        if self.is_over || call.steps.is_stopping() {
            return;
        }
        let attempt = self.attempt;
        let steps = call.steps.clone();
        steps.run(async move {
            let Offer { tenant, step, .. } = &call.offer;
            if let Err(error) = call.steps.withdraw(tenant, step, attempt).await {
                tracing::warn!(step, %error, "a step could not be withdrawn from its worker");
            }
        });
    }
}

/// The text that was streamed of each block of the answer.
#[derive(Default)]
struct Streamed {
    blocks: BTreeMap<u32, String>,
    bytes: usize,
}

impl Streamed {
    fn event(&mut self, delta: StepDelta) -> Result<StreamEvent, Error> {
        self.bytes = self.bytes.saturating_add(delta.text().len() + PIECE);
        if self.bytes > MAX_STREAMED {
            let message = format!("a worker has streamed more than {MAX_STREAMED} bytes");
            return Err(error(Code::InvalidResponse, message));
        }
        Ok(match delta {
            StepDelta::OutputText { index, delta: text } => {
                self.blocks.entry(index).or_default().push_str(&text);
                StreamEvent::TextDelta { index, text }
            }
            StepDelta::Reasoning { index, delta: text } => {
                self.blocks.entry(index).or_default().push_str(&text);
                StreamEvent::ReasoningDelta { index, text }
            }
        })
    }

    /// The events of an answer that were not streamed. The text of a block that begins otherwise than it
    /// was streamed is only in the answer.
    fn rest(&self, response: &Response) -> Vec<StreamEvent> {
        let mut events = Vec::new();
        for (index, block) in (0u32..).zip(&response.message.content) {
            let Some((text, is_reasoning)) = text_of(block) else {
                continue;
            };
            let streamed = self.blocks.get(&index).map_or("", String::as_str);
            let Some(text) = text.strip_prefix(streamed).filter(|rest| !rest.is_empty()) else {
                continue;
            };
            let text = text.to_owned();
            events.push(if is_reasoning {
                StreamEvent::ReasoningDelta { index, text }
            } else {
                StreamEvent::TextDelta { index, text }
            });
        }
        for (index, call) in (0u32..).zip(&response.message.tool_calls) {
            events.push(StreamEvent::ToolCallDelta {
                index,
                tool_call_id: call.tool_call_id.clone(),
                tool_name: Arc::clone(&call.tool_name),
                arguments_json: call.arguments.text().to_owned(),
            });
        }
        events
    }
}

/// The model of an external agent.
pub(super) struct ExternalModel {
    agent: String,
    call: Option<Arc<ExternalCall>>,
}

impl ExternalModel {
    pub(super) fn without_step(agent: &str) -> Self {
        Self {
            agent: agent.to_owned(),
            call: None,
        }
    }

    pub(super) fn of_step(call: Arc<ExternalCall>) -> Self {
        Self {
            agent: call.offer.agent.clone(),
            call: Some(call),
        }
    }
}

impl Model for ExternalModel {
    fn model_id(&self) -> &str {
        &self.agent
    }

    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    fn settings(&self, settings: &Settings) -> NativeSettings {
        let all = json!({
            "temperature": settings.temperature,
            "topP": settings.top_p,
            "presencePenalty": settings.presence_penalty,
            "frequencyPenalty": settings.frequency_penalty,
            "maxOutputTokens": settings.max_output_tokens,
            "parallelToolCalls": settings.parallel_tool_calls,
            "reasoningEffort": settings.reasoning_effort,
            "reasoningSummary": settings.reasoning_summary,
        });
        let all = if let Value::Object(all) = all {
            all
        } else {
            Map::new()
        };
        NativeSettings {
            params: all.into_iter().filter(|(_, it)| !it.is_null()).collect(),
            left_out: Vec::new(),
        }
    }

    fn stream(&self, request: Request) -> ModelStream {
        let call = self.call.clone();
        Box::pin(try_stream! {
            let call = call.ok_or_else(|| {
                error(Code::InvalidRequest, "a worker answers only steps of a stored thread")
            })?;
            let signal = request.signal.token().clone();
            let mut offered = call.offered(&request).await?;
            drop(request);
            yield ModelEvent::Event(StreamEvent::MessageStart);
            let mut streamed = Streamed::default();
            let answer = loop {
                let next = signal.run_until_cancelled(offered.next()).await;
                match next.unwrap_or_else(|| Err(error(Code::Cancelled, "the run was cancelled")))? {
                    Progress::Answered(answer) => break answer,
                    Progress::Deltas(deltas) => for delta in deltas {
                        yield ModelEvent::Event(streamed.event(delta)?);
                    },
                }
            };
            let response = answer.response(&call.offer.agent, call.steps.now());
            let response = response.map_err(|cause| {
                error(Code::InvalidResponse, "the answer of a worker can't be read").caused_by(cause)
            })?;
            call.set_messages(answer.messages_for_model);
            for event in streamed.rest(&response) {
                yield ModelEvent::Event(event);
            }
            yield ModelEvent::Event(StreamEvent::MessageStop);
            yield ModelEvent::Done(Box::new(response));
        })
    }
}

/// The text of a block, and whether it is reasoning.
fn text_of(block: &AssistantContent) -> Option<(&str, bool)> {
    match block {
        AssistantContent::Text { text } => Some((text, false)),
        AssistantContent::Reasoning { text, .. } => Some((text, true)),
        AssistantContent::Image(_) | AssistantContent::Audio(_) | AssistantContent::Video(_) => {
            None
        }
    }
}

//! The scripted model: a real model without a network.
//!
//! [`Scripted`] answers immediately and deterministically from the text of the last user message. Use it
//! offline, for demonstrations, and for tests of the layers above a model.
//!
//! # The grammar of prompts
//!
//! Words are matched whole and without regard to case. Text in double quotes and JSON objects are
//! values; they never match.
//!
//! | prompt | answer |
//! |---|---|
//! | anything | `You said: …`, word by word |
//! | a tool's name, also after `use`, `call` or `run` | a call; several names: parallel calls |
//! | `a … then b …` | one model round per part: the calls of `a`, those of `b`, then the answer |
//! | a part of an external tool's name (`weather` of `get_weather`), no whole name | a call |
//! | `think`, `reason` anywhere | a reasoning block with a signature, before the rest |
//! | `say N words`, `write N words` | exactly N words (at most a million) |
//! | `slow …`, `slow 20ms …`, `slow 2s …` first | waits before each delta |
//! | `fail` first (also first in a part of a chain) | a provider error |
//! | `fail rate_limited`, `auth`, `timeout`, `context`, `network`, `quota`, `model` | that error |
//! | `fail invalid`, `invalid_response`, `filter`, `provider`, `cancelled` | that error |
//! | `fail after N`, `fail network after N` | that error after N deltas |
//!
//! After tools have run, the answer names each result: `compute gave 14.` With a required or named tool
//! choice, the model calls a tool until the user's message has results. With a structure, it answers
//! with a valid instance, as text and as data.
//!
//! The parts of a name are its pieces between `_` and `-` with four letters or more, except `get`,
//! `set`, `read`, `list` and `find`.
//!
//! # Settings
//!
//! A word counts as a token. The model stops after `max_output_tokens` words with that stop reason, and
//! makes no call that would exceed the limit. With `parallel_tool_calls` false it makes only the first
//! of several calls. Both hold for scripts as well.
//!
//! # Arguments
//!
//! The text after a tool's name, up to the next name, offers values: a JSON object with the property
//! names; `name=value` (a word or quoted) and `name: value` (up to a comma). Otherwise the only required
//! property takes the whole remainder (`read_file notes.txt`), and several take a word each (`add 2 3`).
//! A value that the schema refuses and a required property without a value get a made-up valid one. It
//! respects `type`, `enum`, `const`, `default`, bounds, `multipleOf`, lengths, common formats,
//! `required`, local `$ref`, `allOf`, and the first branch of `anyOf` and `oneOf`. It matches `pattern`
//! if that is simple (classes and quantifiers, no groups).
//!
//! # Scripts
//!
//! A [`Script`] replaces the grammar by fixed answers:
//!
//! ```json
//! {
//!   "turns": [
//!     { "reasoning": "I need the sum.", "tool_calls": [{ "name": "add", "arguments": { "a": 1, "b": 2 } }] },
//!     { "text": "It is 3.", "delay_ms": 20, "usage": { "inputTokens": 7, "outputTokens": 3 } },
//!     { "error": { "code": "RATE_LIMITED", "message": "slow down", "retry_after_ms": 500 } }
//!   ],
//!   "repeat_last": false,
//!   "per_turn": true
//! }
//! ```
//!
//! Turn k answers the k-th model call since the last user message, so each user message starts the
//! script again. With `"per_turn": false` the turns are counted through the whole thread; the model then
//! reads the whole history on each call. Arguments that are a string are sent unchanged, even if they
//! are not JSON. A call after the last turn is an error.
//!
//! # Cost
//!
//! A call reads the messages from the end back to the last user message and no others. Usage counts
//! words: the input is the last user message and the results since.

mod arguments;
mod check;
mod hint;
mod instance;
mod limit;
mod pattern;
mod plan;
mod prompt;
mod script;
mod situation;
mod strings;
mod work;

pub use script::{Script, ScriptCall, ScriptError, ScriptFailure, ScriptTurn};

use crate::content::AssistantContent;
use crate::error::{Code, Error};
use crate::event::StreamEvent;
use crate::message::{AssistantMessage, MessageOptions};
use crate::model::{Capabilities, Model, ModelEvent, ModelStream, Request, Response, StopReason};
use crate::settings::{NativeSettings, Settings};
use crate::tool::ToolCall;
use futures_util::StreamExt;
use plan::Plan;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const PROVIDER: &str = "scripted";

/// A deterministic model; the [module](self) describes its prompts.
#[derive(Clone, Debug)]
pub struct Scripted {
    model_id: Arc<str>,
    script: Option<Arc<Script>>,
    delay: Option<Duration>,
    slow: Duration,
}

impl Default for Scripted {
    fn default() -> Self {
        Self::new()
    }
}

impl Scripted {
    /// The model `scripted-1`, which answers according to the prompt.
    pub fn new() -> Self {
        Self {
            model_id: "scripted-1".into(),
            script: None,
            delay: None,
            slow: Duration::from_millis(50),
        }
    }

    /// The model that follows a script.
    pub fn with_script(script: Script) -> Self {
        Self {
            script: Some(Arc::new(script)),
            ..Self::new()
        }
    }

    /// Sets another model id.
    #[must_use]
    pub fn with_model_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.model_id = id.into();
        self
    }

    /// Sets a wait before each delta. A prompt or script can override it.
    #[must_use]
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// Sets how long `slow` waits before each delta; 50 ms otherwise.
    #[must_use]
    pub fn with_slow_delay(mut self, delay: Duration) -> Self {
        self.slow = delay;
        self
    }
}

impl Model for Scripted {
    fn model_id(&self) -> &str {
        &self.model_id
    }

    fn provider(&self) -> &str {
        PROVIDER
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    fn settings(&self, settings: &Settings) -> NativeSettings {
        limit::settings(settings)
    }

    fn stream(&self, request: Request) -> ModelStream {
        let model = self.clone();
        async_stream::try_stream! {
            let signal = request.signal.clone();
            pause(None, &signal).await?;
            let plan = plan::plan(&request, model.script.as_deref(), model.slow)?;
            drop(request);
            let delay = plan.delay.or(model.delay);
            let fails_at = plan.failure.as_ref().and_then(|(after, _)| *after);
            // A failure before the first delta is a refused request, not a broken stream.
            if fails_at != Some(0) {
                yield ModelEvent::Event(StreamEvent::MessageStart);
                let mut deltas = 0;
                for event in events(&plan) {
                    if is_delta(&event) {
                        pause(delay, &signal).await?;
                        if fails_at == Some(deltas) {
                            break;
                        }
                        deltas += 1;
                    }
                    yield ModelEvent::Event(event);
                }
            }
            if let Some((_, error)) = plan.failure {
                Err(error)?;
            } else {
                pause(None, &signal).await?;
                yield ModelEvent::Event(StreamEvent::MessageStop);
                yield ModelEvent::Done(Box::new(model.response(plan)));
            }
        }
        .boxed()
    }
}

impl Scripted {
    fn response(&self, plan: Plan) -> Response {
        let mut content = Vec::new();
        if let Some((text, signature)) = plan.reasoning {
            content.push(AssistantContent::Reasoning {
                text,
                signature: Some(signature),
            });
        }
        if let Some(text) = plan.text {
            content.push(AssistantContent::Text { text });
        }
        let stop_reason = plan.stop_reason.unwrap_or(if plan.calls.is_empty() {
            StopReason::EndTurn
        } else {
            StopReason::ToolUse
        });
        Response {
            message: AssistantMessage::new(content, plan.calls, MessageOptions::default()),
            usage: plan.usage,
            stop_reason,
            data: plan.data,
            model_id: Arc::clone(&self.model_id),
            provider: PROVIDER.into(),
            response_id: None,
            request: None,
        }
    }
}

/// Waits, unless the request is cancelled.
async fn pause(delay: Option<Duration>, signal: &CancellationToken) -> Result<(), Error> {
    let cancelled = || Error::new(Code::Cancelled, PROVIDER, "the request was cancelled");
    if signal.is_cancelled() {
        return Err(cancelled());
    }
    if let Some(delay) = delay {
        signal
            .run_until_cancelled(tokio::time::sleep(delay))
            .await
            .ok_or_else(cancelled)?;
    }
    Ok(())
}

fn is_delta(event: &StreamEvent) -> bool {
    matches!(
        event,
        StreamEvent::TextDelta { .. }
            | StreamEvent::ReasoningDelta { .. }
            | StreamEvent::ToolCallDelta { .. }
    )
}

/// The events between start and stop, one at a time: a long answer is never held twice.
fn events(plan: &Plan) -> impl Iterator<Item = StreamEvent> + Send + '_ {
    let reasoning = plan.reasoning.iter().flat_map(|(thought, _)| {
        let deltas =
            thought
                .split_inclusive(char::is_whitespace)
                .map(|word| StreamEvent::ReasoningDelta {
                    index: 0,
                    text: word.to_owned(),
                });
        std::iter::once(StreamEvent::ContentBlockStart { index: 0 })
            .chain(deltas)
            .chain([StreamEvent::ContentBlockStop { index: 0 }])
    });
    let index = u32::from(plan.reasoning.is_some());
    let text = plan.text.iter().flat_map(move |text| {
        let deltas =
            text.split_inclusive(char::is_whitespace)
                .map(move |word| StreamEvent::TextDelta {
                    index,
                    text: word.to_owned(),
                });
        std::iter::once(StreamEvent::ContentBlockStart { index })
            .chain(deltas)
            .chain([StreamEvent::ContentBlockStop { index }])
    });
    let calls = (0..)
        .zip(&plan.calls)
        .flat_map(|(index, call)| halves(index, call));
    reasoning.chain(text).chain(calls)
}

/// A call in two deltas, as providers cut them.
fn halves(index: u32, call: &ToolCall) -> [StreamEvent; 2] {
    let text = call.arguments.text();
    let middle = text.floor_char_boundary(text.len() / 2);
    let (first, second) = text.split_at(middle);
    [first, second].map(|piece| StreamEvent::ToolCallDelta {
        index,
        tool_call_id: call.tool_call_id.clone(),
        tool_name: call.tool_name.clone(),
        arguments_json: piece.to_owned(),
    })
}

#[cfg(test)]
mod tests;

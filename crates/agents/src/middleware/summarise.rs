//! Summarises old context (UAP §6.2, pattern 3).

use super::cycles;
use super::{Estimate, Middleware, MiddlewareContext, transcript};
use crate::agent::Agent;
use crate::error::AgentError;
use crate::state::AgentState;
use crate::strategy::prompt;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use upp::{
    Message, MessageOptions, Messages, Metadata, Model, Request, StopReason, UserContent,
    UserMessage,
};

const NAME: &str = "summarise";

/// The first line of a summary message.
const HEADING: &str = "[Summary of the conversation so far]";

const PROMPT: &str = "Summarise the conversation below, so that the assistant can go on from your \
summary alone. Keep facts, names, numbers, decisions, what the user asked for and what is still \
open. If it begins with an earlier summary, carry over what that says. Answer with the summary only.";

/// Replaces the older part of a long conversation by a summary that a model writes (UAP §6.2).
///
/// It acts if the state's messages have more than `threshold` tokens. It summarises all but the
/// latest `keep_recent` messages. It may summarise fewer, as the cut is made between cycles: a call
/// is never separated from its results, nor an input from its answer. Earlier summaries are
/// included.
///
/// If the run waits for outside answers, the conversation is within a run. Then the run's input and
/// the last prompt of its strategy stay after the summary, with a note of the later tool rounds
/// that were summarised. So the run continues within its limits.
///
/// The summary is a user message. Its metadata has the ids of the first and the last original
/// message, and the tokens of the summary's request:
/// `{"uap": {"summary": {"of": [first, last], "usage": {…}}}}`. These tokens are no part of the
/// turn's usage.
///
/// If the summariser fails, is filtered or returns no text, the state does not change, and the
/// failure is logged (`tracing`, level warn). The run's resulting state has the summary in place of
/// the messages. If you need the messages, store the state before the run.
#[derive(Clone)]
pub struct Summarise {
    /// Writes the summary.
    pub by: Summariser,
    /// Maximum number of tokens of the conversation. Default: 150,000.
    pub threshold: u64,
    /// Minimum number of the latest messages that are not summarised. Default: 10.
    pub keep_recent: usize,
    /// The summariser's instructions, above the conversation.
    pub prompt: String,
    /// Parameters of the model's call, such as its limit of tokens; an agent has its own.
    pub params: Arc<Map<String, Value>>,
    /// How tokens are counted.
    pub estimate: Estimate,
}

/// The author of a summary.
#[derive(Clone)]
pub enum Summariser {
    /// A model, in one call.
    Model(Arc<dyn Model>),
    /// An agent, by a query.
    Agent(Agent),
}

/// The position at which a conversation is cut.
struct Cut {
    /// Messages before this index are summarised.
    at: usize,
    /// The indexes before the cut whose messages stay.
    needed: BTreeSet<usize>,
}

impl Summarise {
    /// Summarises by one call of a model.
    pub fn with_model(model: Arc<dyn Model>) -> Self {
        Self::by(Summariser::Model(model))
    }

    /// Summarises by a query to an agent.
    pub fn with_agent(agent: Agent) -> Self {
        Self::by(Summariser::Agent(agent))
    }

    fn by(by: Summariser) -> Self {
        Self {
            by,
            threshold: 150_000,
            keep_recent: 10,
            prompt: PROMPT.to_owned(),
            params: Arc::default(),
            estimate: Estimate::default(),
        }
    }

    /// The position to cut at; none if there is nothing to gain.
    fn split_point(&self, state: &AgentState) -> Option<Cut> {
        let messages = state.messages();
        let (_, total) = self.estimate.of_all(messages);
        if total <= self.threshold {
            return None;
        }
        // The last cycle stays in any case, for its calls may be open.
        let at = messages.len().checked_sub(self.keep_recent.max(1))?;
        let cut = cycles::last_until(messages, at)?;
        let needed = if state.open_calls().is_empty() {
            BTreeSet::new()
        } else {
            cycles::needed(messages, cut)
        };
        let mut old = (0..cut).filter(|at| !needed.contains(at));
        let is_summed_up = match old.next() {
            None => true,
            Some(at) => cycles::is_summary(messages, at) && old.next().is_none(),
        };
        (!is_summed_up).then_some(Cut { at: cut, needed })
    }

    async fn summary(&self, old: &[Message]) -> Result<UserMessage, AgentError> {
        let (Some(first), Some(last)) = (old.first(), old.last()) else {
            return Err(AgentError::extension(NAME, "there is nothing to summarise"));
        };
        let WrittenSummary {
            text,
            n_input,
            n_output,
        } = self.written(old).await?;
        let usage = json!({"inputTokens": n_input, "outputTokens": n_output});
        let note = json!({"of": [first_id(first), last.id()], "usage": usage});
        Ok(message(&text, &note, MessageOptions::default()))
    }

    /// Writes a summary of these messages.
    ///
    /// # Errors
    ///
    /// The summariser's; also if it is filtered or returns no text.
    pub async fn written(&self, old: &[Message]) -> Result<WrittenSummary, AgentError> {
        let input = format!("{}\n\n{}", self.prompt, transcript::of(old.iter()));
        let written = self.ask(input).await?;
        if written.text.trim().is_empty() {
            return Err(AgentError::extension(NAME, "the summary is empty"));
        }
        Ok(written)
    }

    /// The model that writes the summaries.
    pub fn model(&self) -> &dyn Model {
        match &self.by {
            Summariser::Model(model) => &**model,
            Summariser::Agent(agent) => &**agent.model(),
        }
    }

    /// Whether messages exceed the threshold.
    pub fn is_exceeded(&self, messages: &Messages) -> bool {
        self.estimate.of_all(messages).1 > self.threshold
    }

    async fn ask(&self, input: String) -> Result<WrittenSummary, AgentError> {
        let (message, stop_reason, n_input, n_output) = match &self.by {
            Summariser::Agent(agent) => {
                let turn = agent.query(input).await?;
                let usage = (turn.usage.input_tokens, turn.usage.output_tokens);
                (turn.response, turn.stop_reason, usage.0, usage.1)
            }
            Summariser::Model(model) => {
                let request = Request {
                    messages: [Message::from(input)].into_iter().collect(),
                    params: Arc::clone(&self.params),
                    ..Request::default()
                };
                let response = upp::telemetry::complete(&**model, request).await?;
                let usage = (response.usage.input_tokens, response.usage.output_tokens);
                (
                    Arc::new(response.message),
                    response.stop_reason,
                    usage.0,
                    usage.1,
                )
            }
        };
        if matches!(stop_reason, StopReason::Error | StopReason::ContentFilter) {
            return Err(AgentError::extension(
                NAME,
                "the model did not finish the summary",
            ));
        }
        Ok(WrittenSummary {
            text: message.joined_text(),
            n_input,
            n_output,
        })
    }
}

/// A summary as a summariser wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenSummary {
    /// The text.
    pub text: String,
    /// The tokens that the summariser read.
    pub n_input: u64,
    /// The tokens that it wrote.
    pub n_output: u64,
}

/// A message with a summary in place of the messages whose ids run from `first` to `last`.
pub fn summary_message(text: &str, of: (&str, &str), options: MessageOptions) -> UserMessage {
    message(text, &json!({"of": [of.0, of.1]}), options)
}

fn message(text: &str, note: &Value, options: MessageOptions) -> UserMessage {
    let text = format!("{HEADING}\n{text}");
    let note = json!({ "summary": note });
    let options = MessageOptions {
        metadata: Some(Metadata::from_iter([(prompt::NAMESPACE.to_owned(), note)])),
        ..options
    };
    UserMessage::new(vec![UserContent::Text { text }], options)
}

/// The id of the first original message that this message represents.
fn first_id(message: &Message) -> &str {
    let summary = match message {
        Message::User(message) => prompt::summary(message),
        Message::Assistant(_) | Message::ToolResult(_) => None,
    };
    summary.map_or_else(|| message.id().as_str(), |(first, _)| first)
}

impl Middleware for Summarise {
    fn name(&self) -> &'static str {
        NAME
    }

    fn before<'a>(
        &'a self,
        context: &'a mut MiddlewareContext,
    ) -> BoxFuture<'a, Result<(), AgentError>> {
        async move {
            let messages = context.state.messages();
            let Some(Cut { at: cut, needed }) = self.split_point(&context.state) else {
                return Ok(());
            };
            let old: Vec<Message> = messages.iter().take(cut).cloned().collect();
            match self.summary(&old).await {
                Ok(summary) => {
                    let recent = (cut..messages.len()).filter_map(|at| messages.get(at).cloned());
                    let needed = cycles::without(messages, &needed, cut);
                    let kept = std::iter::once(summary.into()).chain(needed).chain(recent);
                    context.state = context.state.with_context(kept);
                }
                Err(error) => {
                    let error = &error as &(dyn std::error::Error + 'static);
                    tracing::warn!(
                        agent_id = context.agent.id(),
                        error,
                        "the conversation was not summarised"
                    );
                }
            }
            Ok(())
        }
        .boxed()
    }
}

impl std::fmt::Debug for Summarise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Summarise")
            .field("threshold", &self.threshold)
            .field("keep_recent", &self.keep_recent)
            .finish_non_exhaustive()
    }
}

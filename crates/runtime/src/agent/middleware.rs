//! Middleware around a run (UAP §9), and the hooks of its end (UAP §10).

use super::AgentReactor;
use super::failure::failed;
use super::journal::AgentJournal;
use super::limits::Spent;
use super::record::{Folded, View};
use crate::reactor::{ReactorError, StepRun};
use agents::middleware::{enter, leave};
use agents::{Agent, AgentError, AgentState, GenerateResult, Journal, MiddlewareContext};
use interop::model;
use interop::parts::{StepResponse, ToolPart, is_prompt};
use serde_json::{Map, Value};
use std::sync::Arc;
use timeline::{ItemType, Payload};
use upp::{Message, Response, SharedJson, StopReason, ToolExecution, Turn, UserMessage};

/// The middleware around an execution, from its first step to its end.
pub(super) struct Around {
    context: MiddlewareContext,
    n_entered: usize,
    /// The parts and the response of each step so far.
    steps: Vec<(Vec<Payload>, Payload)>,
    /// Whether the execution answers a posted message; if not, it continues an earlier run.
    is_asked: bool,
    /// Whether the execution has tried to compact the thread in vain. It does not try again.
    pub(super) has_failed_to_compact: bool,
}

/// A started run.
pub(super) struct StartedRun {
    /// The state before its first step, the input included.
    pub(super) state: AgentState,
    pub(super) around: Around,
    /// The changes that `before` made to the conversation.
    pub(super) view: View,
    /// Number of messages that the view was made for.
    pub(super) view_n_messages: usize,
    /// The error that ended the run before it started.
    pub(super) failure: Option<AgentError>,
    /// The usage of the run before the step, if it has a limit.
    pub(super) spent: Option<Spent>,
    /// Whether the log has messages that the state gets only after the waiting calls are answered.
    pub(super) holds_back: bool,
}

impl Around {
    /// Starts a run at a state without its input.
    pub(super) async fn begin(agent: &Agent, step: &StepRun, state: AgentState) -> StartedRun {
        let is_asked = step.trigger.item_type == ItemType::Message;
        let input = if is_asked {
            Message::from(model::user_message(&step.trigger))
        } else {
            question(&state)
        };
        let said = |state: &AgentState, input: &Message| {
            if is_asked {
                state.with_message(input.clone())
            } else {
                state.clone()
            }
        };
        let before = said(&state, &input);
        let layers = &agent.options().middleware;
        let mut context = MiddlewareContext {
            agent: agent.clone(),
            input,
            state,
            metadata: Map::new(),
        };
        let (n_entered, entered) = enter(layers, &mut context, &step.signal).await;
        let state = said(&context.state, &context.input);
        let view = if n_entered == 0 {
            View::default()
        } else {
            View::between(before.messages(), state.messages())
        };
        StartedRun {
            around: Self {
                context,
                n_entered,
                steps: Vec::new(),
                is_asked,
                has_failed_to_compact: false,
            },
            state,
            view,
            view_n_messages: before.messages().len(),
            failure: entered.err(),
            spent: None,
            holds_back: false,
        }
    }

    /// Restores the middleware's state of an execution that a restart interrupted.
    pub(super) fn resumed(agent: &Agent, step: &StepRun, folded: &Folded) -> Self {
        Self {
            context: MiddlewareContext {
                agent: agent.clone(),
                input: question(&folded.state),
                state: folded.state.clone(),
                metadata: folded.middleware_state.clone(),
            },
            n_entered: agent.options().middleware.len(),
            steps: folded.steps.clone(),
            is_asked: step.trigger.item_type == ItemType::Message,
            has_failed_to_compact: false,
        }
    }

    /// A step is complete.
    pub(super) fn push(&mut self, journal: &AgentJournal<'_>) {
        self.steps.push((journal.written(), journal.about()));
    }

    /// The state that the middleware stores for this run.
    pub(super) fn extension_members(&self) -> &Map<String, Value> {
        &self.context.metadata
    }

    /// Runs `after` and the end hooks of a run with a result; returns the state after it.
    pub(super) async fn complete(
        &mut self,
        agent: &Agent,
        step: &StepRun,
        state: AgentState,
    ) -> Result<AgentState, AgentError> {
        let layers = agent.options().middleware.clone();
        let layers = layers.get(..self.n_entered).unwrap_or_default();
        let result = GenerateResult {
            turn: self.turn(agent, &state)?,
            pending: agent.pending(&state),
            state: state.clone(),
        };
        if result.pending.is_empty() {
            agent.options().strategy.on_complete(&result);
        }
        let result = leave(layers, &mut self.context, Ok(result), &step.signal).await?;
        // What was said is said; what the application keeps with the state may still change.
        let mut after = state;
        for (key, value) in result.state.metadata() {
            if after.metadata().get(key) != Some(value) {
                after = after.with_metadata(key.as_str(), value.clone());
            }
        }
        Ok(after)
    }

    /// Runs the `on_error` hook and the middleware of a failed run, each of which may return a
    /// result.
    pub(super) async fn fail(
        &mut self,
        agent: &Agent,
        step: &StepRun,
        state: &AgentState,
        error: AgentError,
        has_run: bool,
    ) -> Result<GenerateResult, AgentError> {
        if matches!(error, AgentError::Cancelled) {
            return Err(error);
        }
        let options = agent.options();
        let hook = |error: &AgentError| options.strategy.on_error(error, state);
        let outcome = match has_run.then(|| hook(&error)).flatten() {
            Some(result) => Ok(result),
            None => Err(error),
        };
        let layers = options.middleware.get(..self.n_entered);
        let layers = layers.unwrap_or_default();
        leave(layers, &mut self.context, outcome, &step.signal).await
    }

    /// All messages and tool executions of the run.
    fn turn(&self, agent: &Agent, state: &AgentState) -> Result<Turn, AgentError> {
        let response = state.last_response().ok_or(AgentError::NoResponse)?;
        let mut turn = Turn {
            messages: Vec::new(),
            response: Arc::clone(response),
            tool_executions: Vec::new(),
            usage: upp::TokenUsage::default(),
            cycles: 0,
            data: None,
            stop_reason: StopReason::EndTurn,
            requests: Vec::new(),
        };
        let mut n_messages = usize::from(self.is_asked);
        for (parts, about) in &self.steps {
            let said: StepResponse = about.read().unwrap_or_default();
            n_messages += parts.iter().filter(|part| is_prompt(part)).count();
            let tools: Vec<ToolPart> = parts.iter().filter_map(ToolPart::read).collect();
            let n_before = turn.tool_executions.len();
            turn.tool_executions
                .extend(tools.iter().filter_map(execution));
            n_messages += usize::from(turn.tool_executions.len() > n_before);
            if said.answers {
                continue;
            }
            n_messages += 1;
            turn.cycles = turn.cycles.saturating_add(1);
            let usage = said.usage.as_ref().and_then(|usage| usage.read().ok());
            turn.usage.push(usage.unwrap_or_default());
            let sent = said.request.as_ref().and_then(|sent| sent.read().ok());
            turn.requests.extend(sent);
            let word = said.stop_reason.map(Value::String);
            let word = word.and_then(|word| serde_json::from_value(word).ok());
            turn.stop_reason = word.unwrap_or(StopReason::EndTurn);
        }
        if agent.options().structure.is_some() {
            turn.data = serde_json::from_str(&response.joined_text()).ok();
        }
        let messages = state.messages();
        let first = messages.len().saturating_sub(n_messages);
        let own = (first..messages.len()).filter_map(|at| messages.get(at).cloned());
        turn.messages = own.collect();
        Ok(turn)
    }
}

/// Builds a call's execution from its part; none if the call has no result.
fn execution(tool: &ToolPart) -> Option<ToolExecution> {
    let result = model::result_of(tool)?;
    let arguments = serde_json::from_str::<Value>(tool.arguments());
    Some(ToolExecution {
        tool_name: tool.tool_name().into(),
        tool_call_id: result.tool_call_id,
        arguments: arguments.map_or_else(|_| tool.arguments().into(), SharedJson::from),
        result: result.result,
        is_error: result.is_error,
        duration: tool.duration_ms.unwrap_or_default(),
        approved: tool.approval.as_ref().and_then(|it| it.approved),
    })
}

/// The message that the run answers: the last one that the user wrote.
fn question(state: &AgentState) -> Message {
    let messages = state.messages();
    let is_said = |message: &&Message| match message {
        Message::User(message) => agents::PromptMark::of(message).is_none(),
        Message::Assistant(_) | Message::ToolResult(_) => false,
    };
    let mut backwards = (0..messages.len()).rev().filter_map(|at| messages.get(at));
    let question = backwards.find(is_said).cloned();
    question.unwrap_or_else(|| UserMessage::text("").into())
}

impl AgentReactor {
    /// Writes the result that middleware returned for a failed run as the step's answer. A step
    /// that already has an answer is not changed.
    pub(super) async fn rescue(
        &self,
        result: GenerateResult,
        journal: &AgentJournal<'_>,
    ) -> Result<(), ReactorError> {
        let model = self.agent.model();
        let response = Response {
            message: (*result.turn.response).clone(),
            usage: upp::CycleUsage::default(),
            stop_reason: result.turn.stop_reason,
            data: None,
            model_id: model.model_id().into(),
            provider: model.provider().into(),
            response_id: None,
            request: None,
        };
        let written = journal.responded(&response).await;
        written.map_err(|stopped| failed(&AgentError::from(stopped)))
    }
}

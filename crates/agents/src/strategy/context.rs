//! The operations of a strategy within a step.

use super::prompt::{self, PromptMark};
use crate::agent::Agent;
use crate::answers::Answers;
use crate::error::AgentError;
use crate::event::{EventData, UapEvent, UapEventType};
use crate::journal::{self, EmitFuture, Journal};
use crate::state::AgentState;
use crate::subagent::SubAgentHost;
use crate::tools::{self, Round};
use futures_util::StreamExt;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use upp::{
    CallRecord, Code, Message, MessageOptions, ModelEvent, ModelStream, Request, Response,
    SharedJson, Signal, Tool, ToolCall, ToolCallId, ToolChoice, ToolExecution, ToolResult,
    ToolResultMessage,
};

/// The context of a step (UAP §5.1, `ExecutionContext`).
pub struct StepContext<'a> {
    /// The agent that runs.
    pub agent: &'a Agent,
    /// Receives the events of the run.
    pub journal: &'a dyn Journal,
    /// Cancelled when the run is cancelled.
    pub signal: Signal,
    /// Results that were already stored for the open calls at the end of the state before a crash.
    /// These calls do not run again. The traces of their sub-agents are not included. A journal
    /// that stored them ([`Journal::traced`]) must add them to the rebuilt state
    /// ([`AgentState::with_subagent_trace`]) before the step continues. These traces precede those
    /// of the calls that run now.
    pub answered: &'a [ToolResult],
    /// The prefix that makes call ids unique: a call's idempotency key is `<scope>:<call id>`. It
    /// must be the same if the same call runs again. It must differ for each response, because
    /// providers repeat call ids. If it is empty, the id of the response's message is used; that
    /// works as long as the state has that message.
    pub scope: &'a str,
    /// The answers to the open calls at the end of the state, if the step waited for them;
    /// otherwise `None`. They must have passed [`Agent::check`].
    pub answers: Option<&'a Answers>,
    /// Maximum number of further calls in the run of tools that the agent itself runs; `None` is no
    /// limit. It counts from the response whose calls are open, or else from the next response.
    /// Calls beyond it get an error result. At 0 the model is offered external tools only. If there
    /// are none, it sees its tools but may call none.
    pub n_calls_left: Option<usize>,
    /// Runs the sub-agents of the step's tools. `None` runs them in memory, inside the calls that
    /// spawn them.
    pub host: Option<Arc<dyn SubAgentHost>>,
    /// The durable record of the step's model call, which survives a crash.
    pub call_record: Option<Arc<dyn CallRecord>>,
}

impl StepContext<'_> {
    /// The agent's request for the conversation of this state (UAP §4.2).
    ///
    /// A forced `tool_choice` applies only to the model's first answer to an input; answers to
    /// prompts for reasoning or a plan do not count. If it applied to later answers, no run could
    /// end.
    pub fn request(&self, state: &AgentState) -> Request {
        let messages = state.messages();
        let options = self.agent.options();
        let (tools, choice) = match self.n_calls_left {
            Some(0) => self.offered_elsewhere(),
            Some(_) | None => (self.agent.shared_tools(), &options.tool_choice),
        };
        let tool_choice = match choice {
            ToolChoice::Required | ToolChoice::Tool(_) if !prompt::is_first_answer(messages) => {
                ToolChoice::Auto
            }
            choice @ (ToolChoice::Auto
            | ToolChoice::None
            | ToolChoice::Required
            | ToolChoice::Tool(_)) => choice.clone(),
        };
        Request {
            messages: messages.clone(),
            system: options.system.clone(),
            tools,
            tool_choice,
            params: options.params.clone(),
            structure: options.structure.clone(),
            previous: state.last_request().cloned(),
            // A model that cancels its own call does not cancel the run.
            signal: self.signal.child(),
            call_record: self.call_record.clone(),
        }
    }

    /// The tools that the model may call once the agent runs no more tools: the external ones. If
    /// there are none, the model sees its tools as before, with the tool choice `None`.
    fn offered_elsewhere(&self) -> (Arc<[Tool]>, &ToolChoice) {
        let tools = self.agent.tools().iter();
        let elsewhere: Arc<[Tool]> = tools.filter(|tool| tool.external).cloned().collect();
        if elsewhere.is_empty() {
            return (self.agent.shared_tools(), &ToolChoice::None);
        }
        let choice = match &self.agent.options().tool_choice {
            ToolChoice::Tool(name) if self.agent.runs(name) => &ToolChoice::Auto,
            choice @ (ToolChoice::Auto
            | ToolChoice::None
            | ToolChoice::Required
            | ToolChoice::Tool(_)) => choice,
        };
        (elsewhere, choice)
    }

    /// Calls the model, emits its events as they arrive, and stores its response in the journal.
    ///
    /// If the conversation has media that the model does not support, this fails with
    /// [`Code::InvalidRequest`]. The response has data only if the request has a structure, as in
    /// [`upp::Llm`] (UPP §3).
    pub async fn ask(&self, request: Request) -> Result<Response, AgentError> {
        self.call_model(request).await.map(|response| *response)
    }

    /// [`ask`](Self::ask) with a boxed response, because it is large and often moved.
    pub(super) async fn call_model(&self, request: Request) -> Result<Box<Response>, AgentError> {
        let model = self.agent.model();
        if let Some(what) = model.capabilities().refuses(&request.messages) {
            let text = format!("the model can't take {what}");
            let refusal = upp::Error::new(Code::InvalidRequest, model.provider(), text);
            return Err(refusal.into());
        }
        let is_structured = request.structure.is_some();
        // Pinned here, for a future that is handed on is copied.
        let answered = pin!(self.heard(upp::telemetry::call(&**model, request), is_structured));
        let answer = self.signal.run_until_cancelled(answered).await;
        answer.unwrap_or(Err(AgentError::Cancelled))
    }

    async fn heard(
        &self,
        mut stream: ModelStream,
        is_structured: bool,
    ) -> Result<Box<Response>, AgentError> {
        loop {
            // A stream that never waits would not be stopped otherwise.
            if self.signal.is_cancelled() {
                return Err(AgentError::Cancelled);
            }
            match stream.next().await {
                Some(Ok(ModelEvent::Event(event))) => journal::show(self.journal, event).await?,
                Some(Ok(ModelEvent::Done(mut response))) => {
                    if !is_structured {
                        response.data = None;
                    }
                    self.journal.responded(&response).await?;
                    return Ok(response);
                }
                Some(Err(error)) => return Err(error.into()),
                None => {
                    return Err(AgentError::Model(upp::Error::new(
                        Code::InvalidResponse,
                        self.agent.model().provider(),
                        "the stream ended without a response",
                    )));
                }
            }
        }
    }

    /// Appends a prompt to the conversation in the user's role (UAP §5.3, §5.4). The message is
    /// marked as a prompt of this kind ([`PromptMark`]), and the journal stores it first.
    ///
    /// If `state` already ends with the prompt of this kind and step, as after a crash, it is
    /// returned unchanged. If calls are open, this fails with [`AgentError::OpenCalls`].
    pub async fn prompt(
        &self,
        state: &AgentState,
        kind: &str,
        text: impl Into<String>,
    ) -> Result<AgentState, AgentError> {
        if let Some(Message::User(last)) = state.messages().last()
            && PromptMark::of(last).is_some_and(|mark| mark.is_now(kind, state))
        {
            return Ok(state.clone());
        }
        let n_calls = state.open_calls().len();
        if n_calls > 0 {
            return Err(AgentError::OpenCalls { n_calls });
        }
        let message = Arc::new(prompt::marked(state, kind, text.into()));
        self.journal.prompted(&message).await?;
        Ok(state.with_message(Message::User(message)))
    }

    /// The state with the model's response at its end, and the response's data. A response that the
    /// state already ends with, as after a crash or a wait, is used; its data is parsed from its
    /// text.
    pub(super) async fn answered_by_model(
        &self,
        state: AgentState,
        request: Request,
    ) -> Result<(AgentState, Option<Value>), AgentError> {
        let is_answered = matches!(state.messages().last(), Some(Message::Assistant(_)));
        if is_answered || state.has_open_calls() {
            return Ok((state, None));
        }
        let response = self.call_model(request).await?;
        let data = response.data.clone();
        Ok((state.and_response(response), data))
    }

    /// Answers the open calls at the end of `state` with an error, because tools can't run now. A
    /// state without open calls is returned unchanged.
    ///
    /// The conversation stays valid for every provider. Nothing runs, so there are no hooks and no
    /// events.
    pub(super) async fn refuse(
        &self,
        state: &AgentState,
        why: &str,
    ) -> Result<AgentState, AgentError> {
        let calls = state.open_calls();
        if calls.is_empty() {
            return Ok(state.clone());
        }
        let mut recorded: BTreeMap<&ToolCallId, &ToolResult> = BTreeMap::new();
        for result in self.answered {
            recorded.entry(&result.tool_call_id).or_insert(result);
        }
        let mut results = Vec::with_capacity(calls.len());
        for (position, call) in calls.into_iter().enumerate() {
            if let Some(result) = recorded.remove(&call.tool_call_id) {
                results.push(result.clone());
                continue;
            }
            let execution = refused(call, why);
            self.journal.returned(position, &execution).await?;
            results.push(ToolResult::from(&execution));
        }
        Ok(state.with_message(ToolResultMessage::new(results, MessageOptions::default())))
    }

    /// Runs or answers the open calls at the end of `state`, and appends one message with the new
    /// results in call order. A state without open calls is returned unchanged.
    ///
    /// These calls stay open: calls that wait for an outside answer, calls whose sub-agents wait on
    /// a host ([`Waits`](crate::Waits)), and calls that depend on those. If the state has open
    /// calls then, the run waits in it ([`Next::Wait`](super::Next)).
    ///
    /// Once for each response, `on_act` and the `action` event come before the first tool starts;
    /// `on_observe` and `observation` come after all calls have their results (UAP §10.2). With
    /// [answers](Self::answers), the response was shown when the step started to wait, so it is not
    /// shown again. A step that is repeated after a crash shows it again. Traces of sub-agents are
    /// added to the state in call order (UAP §8.8).
    pub async fn act(&self, state: &AgentState) -> Result<AgentState, AgentError> {
        self.acted(state.clone()).await
    }

    /// [`act`](Self::act) for a state that is no longer needed.
    pub(super) async fn acted(&self, state: AgentState) -> Result<AgentState, AgentError> {
        let Some(round) = Round::open(self.agent, &state) else {
            return Ok(state);
        };
        let round = round.limited(self.n_calls_left);
        let hooks = &self.agent.options().strategy;
        if self.answers.is_none() && round.recorded.is_empty() {
            hooks.on_act(state.step(), round.calls);
            if let Some(response) = state.last_response() {
                let data = EventData::action(Arc::clone(response));
                self.emit_data(UapEventType::Action, state.step(), data)
                    .await?;
            }
        }
        let outcome = tools::answer(self, &round, state.shared_id(), state.step()).await?;
        drop(round);
        let mut after = state;
        for trace in outcome.traces {
            after = after.with_subagent_trace(trace);
        }
        if !outcome.results.is_empty() {
            let message = ToolResultMessage::new(outcome.results, MessageOptions::default());
            after = after.and_message(message.into());
        }
        after = after.and_suspended(outcome.suspended);
        if !after.has_open_calls() {
            let results = after.observed();
            hooks.on_observe(after.step(), &results.results);
            let data = EventData::observation(results);
            self.emit_data(UapEventType::Observation, after.step(), data)
                .await?;
        }
        Ok(after)
    }

    /// Emits an event of the agent itself (UAP §11.2).
    pub async fn emit(
        &self,
        kind: UapEventType,
        step: u64,
        data: Map<String, Value>,
    ) -> Result<(), AgentError> {
        Ok(self.emit_data(kind, step, data.into()).await?)
    }

    /// [`emit`](Self::emit) that completes at once if no wait is necessary.
    pub(crate) fn emit_data(
        &self,
        kind: UapEventType,
        step: u64,
        data: EventData,
    ) -> EmitFuture<'_> {
        let event = UapEvent {
            kind,
            step,
            agent_id: self.agent.shared_id(),
            data,
        };
        journal::show(self.journal, event)
    }

    pub(super) async fn show<T: serde::Serialize + ?Sized>(
        &self,
        kind: UapEventType,
        state: &AgentState,
        key: &str,
        value: &T,
    ) -> Result<(), AgentError> {
        let value = serde_json::to_value(value).unwrap_or_default();
        let data = Map::from_iter([(key.to_owned(), value)]);
        self.emit(kind, state.step(), data).await
    }
}

fn refused(call: &ToolCall, why: &str) -> ToolExecution {
    ToolExecution {
        tool_name: call.tool_name.clone(),
        tool_call_id: call.tool_call_id.clone(),
        arguments: upp::arguments_of(call)
            .map_or_else(|_| call.arguments.text().into(), SharedJson::from),
        result: format!("Tool '{}' was not run: {why}", call.tool_name).into(),
        is_error: true,
        duration: 0,
        approved: None,
    }
}

//! A run, its steps and its messages as objects.

use super::Run;
use super::ending::{Over, State};
use super::step::{End, Message, MessageEnd, Step};
use crate::threads::content::Content;
use crate::threads::ids::RunStepId;
use crate::threads::metadata::Metadata;
use crate::threads::object::{
    CallObject, Called, Calls as Listed, LastError, MessageObject, MessageStatus, RequiredAction,
    RunObject, RunStatus, Short, StepCall, StepDetails, StepObject, StepStatus, Why, Written,
};
use crate::threads::tools::AssistantTool;
use jiff::Timestamp;
use serde_json::json;

/// The id of an assistant without a name.
const UNNAMED: &str = "default";

impl Run {
    /// The run at an instant.
    pub fn object(&self, now: Timestamp) -> RunObject {
        self.object_as(self.status(now))
    }

    /// The run as it was created, for the response to that request.
    pub fn as_queued(&self) -> RunObject {
        RunObject {
            started_at: None,
            ..self.object_as(RunStatus::Queued)
        }
    }

    /// The run after outputs were submitted, for the response to that request.
    pub fn as_queued_again(&self) -> RunObject {
        self.object_as(RunStatus::Queued)
    }

    pub(in crate::threads) fn object_as(&self, status: RunStatus) -> RunObject {
        let echo = &self.echo;
        let over = match &self.state {
            State::Over(over, at) => Some((over, at.as_second())),
            State::Running | State::Waiting => None,
        };
        let at = |wanted: RunStatus| over.filter(|_| status == wanted).map(|(_, at)| at);
        let own_tools = self.options.tools.iter().cloned();
        let own_tools = own_tools.map(|function| AssistantTool::Function { function });
        let has_echo = echo.assistant_id.is_some();
        let model = echo.model.clone().or_else(|| self.options.model.clone());
        let instructions = echo.instructions.clone();
        RunObject {
            id: self.id.clone(),
            object: "thread.run",
            created_at: self.created_at.as_second(),
            assistant_id: self.assistant_id(),
            thread_id: self.thread_id.clone(),
            status,
            started_at: Some(self.created_at.as_second()),
            expires_at: self.expires_at().filter(|_| status.is_active()),
            cancelled_at: at(RunStatus::Cancelled),
            failed_at: at(RunStatus::Failed),
            completed_at: at(RunStatus::Completed),
            required_action: (status == RunStatus::RequiresAction).then(|| self.action()),
            last_error: match over {
                Some((Over::Failed(error), _)) => Some(error.clone()),
                _ => None,
            },
            model: model.or_else(|| self.model.clone()).unwrap_or_default(),
            instructions: instructions
                .or_else(|| self.options.instructions.clone())
                .unwrap_or_default(),
            tools: if has_echo {
                echo.tools.clone()
            } else {
                own_tools.collect()
            },
            metadata: echo.metadata.clone(),
            temperature: echo.temperature.or(self.options.temperature),
            top_p: echo.top_p.or(self.options.top_p),
            max_completion_tokens: echo.max_completion_tokens,
            max_prompt_tokens: echo.max_prompt_tokens,
            truncation_strategy: echo
                .truncation_strategy
                .clone()
                .unwrap_or_else(|| json!({"type": "auto", "last_messages": null})),
            incomplete_details: match over {
                Some((Over::Incomplete(reason), _)) => Some(Short { reason: *reason }),
                _ => None,
            },
            usage: (!status.is_active()).then(|| self.usage.unwrap_or_default()),
            response_format: echo
                .response_format
                .clone()
                .unwrap_or_else(|| "auto".into()),
            tool_choice: echo.tool_choice.clone().unwrap_or_else(|| "auto".into()),
            parallel_tool_calls: echo.parallel_tool_calls.unwrap_or(true),
        }
    }

    fn assistant_id(&self) -> String {
        let id = self.echo.assistant_id.as_ref().or(self.agent.as_ref());
        id.cloned().unwrap_or_else(|| UNNAMED.to_owned())
    }

    fn action(&self) -> RequiredAction {
        let calls = self.pending().into_iter().map(|call| CallObject {
            id: call.id.clone(),
            kind: "function",
            function: Called {
                name: call.name.clone(),
                arguments: call.arguments.clone(),
            },
        });
        RequiredAction {
            kind: "submit_tool_outputs",
            submit_tool_outputs: Listed {
                tool_calls: calls.collect(),
            },
        }
    }

    /// Number of model steps; each has at most one message.
    pub(in crate::threads) fn n_steps(&self) -> usize {
        self.steps.len()
    }

    /// The message of a model step, if it has content.
    pub(in crate::threads) fn message(&self, place: usize) -> Option<MessageObject> {
        let step = self.steps.get(place)?;
        let streamed;
        let message = match &step.message {
            Some(message) => message,
            None if !self.is_final(place, step) => {
                let texts = self.streamed.texts.iter().cloned();
                let content: Vec<_> = (0..).zip(texts.map(Content::text)).collect();
                streamed = Message { content, end: None };
                &streamed
            }
            None => return None,
        };
        (!message.content.is_empty()).then(|| self.message_of(step, message))
    }

    /// The ids of the message and of the calls of the step that started last.
    pub(in crate::threads) fn last_ids(&self) -> Option<(String, String)> {
        let step = self.steps.last()?;
        Some((step.message_id(), step.calls_id()))
    }

    /// A message of a step before it has content.
    pub(in crate::threads) fn empty_message(
        &self,
        place: usize,
    ) -> Option<(MessageObject, StepObject)> {
        let step = self.steps.get(place)?;
        let object = self.message_of(step, &Message::default());
        Some((object, self.message_step(step, None)))
    }

    /// A void message after `n_texts` of its texts were streamed. It has that many texts, some of them
    /// empty, because clients read the last one.
    pub(in crate::threads) fn void_message(
        &self,
        place: usize,
        n_texts: usize,
        end: (MessageEnd, Timestamp),
    ) -> Option<(MessageObject, StepObject)> {
        let step = self.steps.get(place)?;
        let texts =
            (0..n_texts).map(|index| self.streamed_text(index).unwrap_or_default().to_owned());
        let message = Message {
            content: (0..).zip(texts.map(Content::text)).collect(),
            end: Some(end),
        };
        let object = self.message_of(step, &message);
        Some((object, self.message_step(step, Some(end))))
    }

    fn message_of(&self, step: &Step, message: &Message) -> MessageObject {
        let end = message.end;
        let reason = end.and_then(|(end, _)| end.reason());
        let at = end.map(|(_, at)| at.as_second());
        MessageObject {
            id: step.message_id(),
            object: "thread.message",
            created_at: step.created_at.as_second(),
            thread_id: self.thread_id.clone(),
            status: match (end, reason) {
                (None, _) => MessageStatus::InProgress,
                (Some(_), None) => MessageStatus::Completed,
                (Some(_), Some(_)) => MessageStatus::Incomplete,
            },
            incomplete_details: reason.map(|reason| Why { reason }),
            completed_at: at.filter(|_| reason.is_none()),
            incomplete_at: at.filter(|_| reason.is_some()),
            role: "assistant",
            content: message
                .content
                .iter()
                .map(|(_, content)| content.clone())
                .collect(),
            assistant_id: Some(self.assistant_id()),
            run_id: Some(self.id.clone()),
            attachments: Vec::new(),
            metadata: Metadata::default(),
        }
    }

    /// Its messages, in order.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = MessageObject> {
        (0..self.n_steps()).filter_map(|place| self.message(place))
    }

    /// The message of the model step with this id.
    pub(in crate::threads) fn message_by_id(&self, step: &str) -> Option<MessageObject> {
        let place = self.steps.iter().position(|it| it.id.as_str() == step)?;
        self.message(place)
    }

    /// Its run steps at an instant, in order.
    pub fn steps(&self, now: Timestamp) -> Vec<StepObject> {
        let places = 0..self.n_steps();
        let steps = places.flat_map(|place| {
            let message = self.message_step_at(place);
            message.into_iter().chain(self.calls_step_at(place, now))
        });
        steps.collect()
    }

    /// The run step of this id at an instant.
    pub fn step(&self, id: &RunStepId, now: Timestamp) -> Option<StepObject> {
        let (RunStepId::Message(step) | RunStepId::Calls(step)) = id;
        let place = self.steps.iter().position(|it| it.id.as_str() == step)?;
        match id {
            RunStepId::Message(_) => self.message_step_at(place),
            RunStepId::Calls(_) => self.calls_step_at(place, now),
        }
    }

    /// The run step for the message of a model step.
    pub(in crate::threads) fn message_step_at(&self, place: usize) -> Option<StepObject> {
        let step = self.steps.get(place)?;
        match &step.message {
            Some(message) if message.content.is_empty() && !step.is_removed => None,
            Some(message) => Some(self.message_step(step, message.end)),
            None if self.is_final(place, step) || self.n_streamed_texts() == 0 => None,
            None => Some(self.message_step(step, None)),
        }
    }

    /// Whether a step grows no more: deltas belong to the last one.
    fn is_final(&self, place: usize, step: &Step) -> bool {
        place + 1 != self.steps.len() || step.is_complete()
    }

    fn message_step(&self, step: &Step, end: Option<(MessageEnd, Timestamp)>) -> StepObject {
        let end = end.map(|(end, at)| (end.step(), at.as_second()));
        let message_creation = Written {
            message_id: step.message_id(),
        };
        let mut object = self.step_object(step, end);
        object.id = step.written_id();
        object.kind = "message_creation";
        object.step_details = StepDetails::MessageCreation { message_creation };
        object.usage = step.usage.filter(|_| end.is_some());
        object
    }

    /// The run step for the calls of a model step.
    pub(in crate::threads) fn calls_step_at(
        &self,
        place: usize,
        now: Timestamp,
    ) -> Option<StepObject> {
        let step = self.steps.get(place)?;
        let (list, end) = match &step.calls {
            Some(calls) => (calls.list.clone(), calls.end),
            None if !self.is_final(place, step) => (self.streamed.calls(), None),
            None => return None,
        };
        if list.is_empty() {
            return None;
        }
        let end = end.map(|(end, at)| (end, at.as_second()));
        let expired = self.lapses_at().filter(|_| self.is_expired(now));
        let end = end.or_else(|| expired.map(|at| (End::Expired, at.as_second())));
        Some(self.calls_step(step, list, end))
    }

    /// A run step of calls before it has calls.
    pub(in crate::threads) fn empty_calls(
        &self,
        place: usize,
        end: Option<(End, Timestamp)>,
    ) -> Option<StepObject> {
        let step = self.steps.get(place)?;
        let end = end.map(|(end, at)| (end, at.as_second()));
        Some(self.calls_step(step, Vec::new(), end))
    }

    fn calls_step(&self, step: &Step, list: Vec<StepCall>, end: Option<(End, i64)>) -> StepObject {
        let mut object = self.step_object(step, end);
        object.id = step.calls_id();
        object.step_details = StepDetails::ToolCalls { tool_calls: list };
        // The usage is shown once, with the first run step of the answer.
        let is_first = step.message.is_none() && end.is_some();
        object.usage = step.usage.filter(|_| is_first);
        object
    }

    fn step_object(&self, step: &Step, end: Option<(End, i64)>) -> StepObject {
        let at = |wanted: End| end.filter(|(end, _)| *end == wanted).map(|(_, at)| at);
        let failure = match &self.state {
            State::Over(Over::Failed(error), _) => Some(LastError {
                // A step has no code for a refused prompt.
                code: match error.code {
                    "rate_limit_exceeded" => "rate_limit_exceeded",
                    _ => "server_error",
                },
                message: error.message.clone(),
            }),
            State::Over(
                Over::Completed | Over::Incomplete(_) | Over::Cancelled | Over::Expired,
                _,
            )
            | State::Running
            | State::Waiting => None,
        };
        StepObject {
            id: String::new(),
            object: "thread.run.step",
            created_at: step.created_at.as_second(),
            assistant_id: self.assistant_id(),
            thread_id: self.thread_id.clone(),
            run_id: self.id.clone(),
            kind: "tool_calls",
            status: match end {
                None => StepStatus::InProgress,
                Some((End::Completed, _)) => StepStatus::Completed,
                Some((End::Cancelled, _)) => StepStatus::Cancelled,
                Some((End::Expired, _)) => StepStatus::Expired,
                Some((End::Failed, _)) => StepStatus::Failed,
            },
            step_details: StepDetails::ToolCalls {
                tool_calls: Vec::new(),
            },
            last_error: failure.filter(|_| at(End::Failed).is_some()),
            expired_at: at(End::Expired),
            cancelled_at: at(End::Cancelled),
            failed_at: at(End::Failed),
            completed_at: at(End::Completed),
            metadata: Metadata::default(),
            usage: None,
        }
    }
}

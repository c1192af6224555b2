//! Continues a run that waited for answers from outside.

use super::{Agent, GenerateResult, Start};
use crate::answers::{AnswerError, Answers, PendingCall};
use crate::error::AgentError;
use crate::state::AgentState;
use crate::strategy::{Next, StepOutcome, prompt};
use crate::stream::AgentStream;
use crate::tools::Round;
use upp::Message;

impl Agent {
    /// Continues a waiting run with answers to its pending calls.
    ///
    /// The state is the one the run ended with, or one parsed from its JSON. Answers may arrive in
    /// any order and not all at once. Calls without an answer stay pending, and the run waits
    /// again. Each call runs once, when its own answer arrives. If an answer does not fit, this
    /// fails with [`AgentError::Answers`] before anything runs. The turn has only the messages
    /// after the wait.
    ///
    /// ```
    /// use loomline_agents::{Agent, AgentOptions, AgentState, Answers};
    /// use serde_json::json;
    /// use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let schema = json!({"type": "object", "properties": {"sum": {"type": "integer"}}});
    /// let pay = upp::Tool::simple("pay", "Pays.", schema, |arguments| async { Ok(arguments) });
    /// let mut options = AgentOptions::new("clerk", Arc::new(upp::Scripted::new()));
    /// options.tools = vec![pay.with_requires_approval()];
    /// let agent = Agent::new(options)?;
    ///
    /// let waiting = agent.generate("pay", AgentState::initial()).await?;
    /// let stored = waiting.state.to_json()?; // an answer may come days later
    /// let call = waiting.pending[0].call.tool_call_id.clone();
    /// let answers = Answers::new().approve_with(call, json!({"sum": 3}));
    /// let done = agent.resume(answers, AgentState::from_json(&stored)?).await?;
    /// assert_eq!(done.turn.tool_executions[0].arguments, json!({"sum": 3}));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn resume(
        &self,
        answers: Answers,
        state: AgentState,
    ) -> Result<GenerateResult, AgentError> {
        self.resume_stream(answers, state).result().await
    }

    /// Continues a waiting run like [`Agent::resume`], and streams its events.
    pub fn resume_stream(&self, answers: Answers, state: AgentState) -> AgentStream {
        AgentStream::new(self.clone(), Start::Resume(answers), state)
    }

    /// The calls at the end of a state that wait for an outside answer and can be answered now.
    /// Calls that depend on one of them are not included.
    pub fn pending(&self, state: &AgentState) -> Vec<PendingCall> {
        Round::open(self, state).map_or_else(Vec::new, |round| round.pending())
    }

    /// Checks answers against the calls that a state waits for; `resume` does it itself.
    pub fn check(&self, answers: &Answers, state: &AgentState) -> Result<(), AnswerError> {
        let first = self.faults(answers, state).into_iter().next();
        first.map_or(Ok(()), Err)
    }

    /// All errors of answers to the calls that a state waits for. Use it to accept some of the
    /// answers anyway.
    pub fn faults(&self, answers: &Answers, state: &AgentState) -> Vec<AnswerError> {
        match Round::open(self, state) {
            Some(round) => round.faults(answers),
            None => vec![AnswerError::NothingWaits],
        }
    }
}

/// The input of a resumed run: the user's last own message, without summaries and prompts of
/// strategies.
pub(super) fn question(state: &AgentState) -> Message {
    let messages = state.messages();
    let mut backwards = (0..messages.len()).rev().filter_map(|at| messages.get(at));
    let question = backwards.find(|message| prompt::is_input(message));
    question
        .or(messages.first())
        .cloned()
        .unwrap_or_else(|| Message::from(""))
}

/// Whether the run can do nothing before an answer arrives, whatever the strategy returned.
pub(super) fn waits(agent: &Agent, outcome: &StepOutcome) -> bool {
    outcome.next == Next::Wait
        || Round::open(agent, &outcome.state).is_some_and(|round| round.is_stuck())
}

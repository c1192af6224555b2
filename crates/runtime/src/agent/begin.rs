//! The state at the start of a step: the cached one, or the one folded from the log.

use super::middleware::{Around, StartedRun};
use super::record::{self, Folded, View};
use super::{AgentReactor, Remembered};
use crate::reactor::{ReactorError, StepRun};
use agents::AgentState;
use interop::model;
use store::FoundExecution;
use timeline::{Item, ItemType};

impl AgentReactor {
    /// The state before this step, with its trigger, and the middleware of the run.
    pub(super) async fn started(&self, step: &mut StepRun) -> Result<StartedRun, ReactorError> {
        let memory = step
            .memory
            .take()
            .and_then(|memory| memory.downcast::<Remembered>().ok());
        if step.step.iteration > 0 {
            let known = memory.and_then(|it| Some((it.state, it.around?, it.spent, false)));
            let (mut state, mut around, mut spent, mut holds_back) = if let Some(known) = known {
                known
            } else {
                let folded = self.folded(step).await?;
                let around = Around::resumed(&self.agent, step, &folded);
                (folded.state, around, folded.spent, folded.holds_back)
            };
            let has_failed = &mut around.has_failed_to_compact;
            if self.compact(step, &state, has_failed).await? {
                let folded = self.folded(step).await?;
                (state, spent, holds_back) = (folded.state, folded.spent, folded.holds_back);
            }
            return Ok(StartedRun {
                state,
                around,
                view: View::default(),
                view_n_messages: 0,
                failure: None,
                spent: self.is_limited().then(|| spent.unwrap_or_default()),
                holds_back,
            });
        }
        let (mut state, mut spent, mut holds_back) = if let Some(memory) = memory {
            let state = without_waiting(memory.state, &step.trigger);
            (state, memory.spent, false)
        } else {
            let folded = self.folded(step).await?;
            let state = without_trigger(folded.state, &step.trigger);
            (state, folded.spent, folded.holds_back)
        };
        let mut has_failed = false;
        if self.compact(step, &state, &mut has_failed).await? {
            let folded = self.folded(step).await?;
            state = without_trigger(folded.state, &step.trigger);
            (spent, holds_back) = (folded.spent, folded.holds_back);
        }
        // Answers and a handover go on with a run; anything else begins one.
        let goes_on = FoundExecution::continues(&step.execution, step.trigger.item_type);
        let mut spent = spent.filter(|_| goes_on).unwrap_or_default();
        if self.begins_tokens(&step.trigger) {
            spent.tokens = 0;
        }
        let spent = self.is_limited().then_some(spent);
        if step.trigger.item_type != ItemType::ActionResult && state.phase().is_some() {
            // A phase left by a run that did not end is no position in this one.
            state = state.with_phase(None);
        }
        let mut begun = Around::begin(&self.agent, step, state).await;
        begun.around.has_failed_to_compact = has_failed;
        Ok(StartedRun {
            spent,
            holds_back,
            ..begun
        })
    }

    async fn folded(&self, step: &StepRun) -> Result<Folded, ReactorError> {
        // Middleware counted messages that are removed by now.
        let read = step.writer.for_model().await?;
        let agent = step.run.agent.as_deref();
        Ok(record::folded(&read, agent, &step.step))
    }
}

/// Closes the waiting calls of a conversation if the trigger is a message.
fn without_waiting(state: AgentState, trigger: &Item) -> AgentState {
    if trigger.item_type != ItemType::Message {
        return state;
    }
    match model::superseded(state.open_calls(), trigger) {
        Some(results) => state.with_message(results),
        None => state,
    }
}

/// The conversation without the run's trigger, which the log has already.
fn without_trigger(state: AgentState, trigger: &Item) -> AgentState {
    let messages = state.messages();
    let is_last = messages
        .last()
        .is_some_and(|last| last.id().as_str() == trigger.id.as_str());
    match messages.drop_last() {
        Some(before) if is_last => state.with_context(before.iter().cloned()),
        Some(_) | None => state,
    }
}

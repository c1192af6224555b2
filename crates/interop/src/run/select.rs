//! Picks the events of one run from a thread's log.

use super::continuation::is_handoff;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use timeline::{Event, Execution, ExecutionId, ItemId, ThreadStatus};

/// The relation of an event of a thread's log to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selected {
    /// It belongs to another run, or to none.
    Other,
    /// It belongs to the run.
    Own,
    /// It is the run's last event.
    Last,
    /// The run will never begin: its thread was closed.
    Never,
}

impl Selected {
    /// Whether the event belongs to the run.
    pub fn is_own(self) -> bool {
        matches!(self, Self::Own | Self::Last)
    }

    /// Whether more events of the run can follow.
    pub fn flow(self) -> ControlFlow<()> {
        match self {
            Self::Other | Self::Own => ControlFlow::Continue(()),
            Self::Last | Self::Never => ControlFlow::Break(()),
        }
    }
}

/// The criterion for an execution that has not started yet.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Awaited {
    /// It is the next one that begins.
    Next {
        /// Whether it acts on answers to calls.
        answers: bool,
    },
    /// It answers this item.
    Answering(ItemId),
}

/// The phase of a run in its log.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Its first execution has not started.
    Waits(Awaited),
    /// This execution runs.
    Runs(ExecutionId),
    /// An execution ended, and this one continues the run.
    Continues(Awaited),
    /// Its last execution ended.
    Over,
}

/// Picks the events of one run: from the item that it answers to the end of the last execution that
/// continues it. Events that other items cause before the run begins are left out.
///
/// The caller passes all events of the log in order. Each costs a comparison of ids; parts are read
/// only if they may be a handoff.
#[derive(Clone, Debug)]
pub struct RunSelector {
    phase: Phase,
    /// Whether the execution at work acts on answers to calls.
    answers: bool,
    /// The execution that runs, or ran last.
    execution: Option<ExecutionId>,
    hands_over: bool,
    /// The executions that continue the run, in order.
    later: VecDeque<Awaited>,
}

impl Awaited {
    fn is(&self, execution: &Execution) -> bool {
        match self {
            Self::Next { .. } => true,
            Self::Answering(item) => *item == execution.trigger_item_id,
        }
    }
}

impl RunSelector {
    /// The run whose first execution answers this item.
    pub fn answering(trigger: ItemId) -> Self {
        Self::waiting(Awaited::Answering(trigger))
    }

    /// The run of this execution, or the next run that begins. The selection may start in the
    /// middle of the execution.
    pub fn running(execution: Option<ExecutionId>) -> Self {
        let next = Self::waiting(Awaited::Next { answers: false });
        match &execution {
            Some(id) => Self {
                phase: Phase::Runs(id.clone()),
                execution,
                ..next
            },
            None => next,
        }
    }

    fn waiting(first: Awaited) -> Self {
        Self {
            phase: Phase::Waits(first),
            answers: false,
            execution: None,
            hands_over: false,
            later: VecDeque::new(),
        }
    }

    /// Extends the run over as many executions as `answers` has items. Each item states whether the
    /// next execution acts on answers to calls.
    #[must_use]
    pub fn through(mut self, answers: impl IntoIterator<Item = bool>) -> Self {
        let later = answers.into_iter();
        self.later = later.map(|answers| Awaited::Next { answers }).collect();
        self
    }

    /// The executions that answer these items continue the run, in order.
    #[must_use]
    pub fn then_answering(mut self, items: impl IntoIterator<Item = ItemId>) -> Self {
        self.later = items.into_iter().map(Awaited::Answering).collect();
        self
    }

    /// The execution that runs, or ran last.
    pub fn execution(&self) -> Option<&ExecutionId> {
        self.execution.as_ref()
    }

    /// Whether an execution of the run is at work.
    pub fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Runs(_))
    }

    /// Whether the run is over.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Whether this execution of the run is at work.
    pub fn runs(&self, execution: &ExecutionId) -> bool {
        matches!(&self.phase, Phase::Runs(own) if own == execution)
    }

    /// Whether another execution continues the run when the one at work ends.
    pub fn will_continue(&self) -> bool {
        self.hands_over || !self.later.is_empty()
    }

    /// The next execution continues the run, which had ended with pending calls.
    pub fn await_next(&mut self) {
        self.phase = Phase::Continues(Awaited::Next { answers: true });
    }

    /// Classifies the next event of the log.
    pub fn select(&mut self, event: &Event) -> Selected {
        match self.phase {
            Phase::Runs(_) => self.while_running(event),
            Phase::Waits(_) | Phase::Continues(_) => self.while_waiting(event),
            Phase::Over => Selected::Other,
        }
    }

    /// Whether the execution at work acts on answers to calls.
    pub(super) fn answers(&self) -> bool {
        self.answers
    }

    fn while_waiting(&mut self, event: &Event) -> Selected {
        let (awaited, is_between) = match &self.phase {
            Phase::Waits(awaited) => (awaited, false),
            Phase::Continues(awaited) => (awaited, true),
            Phase::Runs(_) | Phase::Over => return Selected::Other,
        };
        match (event, awaited) {
            (Event::ItemCreated { item }, Awaited::Answering(trigger)) if item.id == *trigger => {
                Selected::Own
            }
            (Event::ExecutionCreated { execution }, awaited) if awaited.is(execution) => {
                self.begin(execution);
                Selected::Own
            }
            // The next execution begins in the same moment.
            (_, Awaited::Next { .. }) if is_between => Selected::Own,
            (
                Event::ThreadStatusChanged {
                    to: ThreadStatus::Closed,
                    ..
                },
                _,
            ) => Selected::Never,
            _ => Selected::Other,
        }
    }

    fn begin(&mut self, execution: &Execution) {
        self.answers = match &self.phase {
            Phase::Continues(Awaited::Next { answers }) => *answers,
            Phase::Continues(Awaited::Answering(_)) => true,
            Phase::Waits(_) | Phase::Runs(_) | Phase::Over => false,
        };
        self.phase = Phase::Runs(execution.id.clone());
        self.execution = Some(execution.id.clone());
        self.hands_over = false;
        // The next one may be one of the later ones. It does not begin again.
        let trigger = &execution.trigger_item_id;
        let is_it = |later: &Awaited| matches!(later, Awaited::Answering(item) if item == trigger);
        self.later.retain(|later| !is_it(later));
    }

    fn while_running(&mut self, event: &Event) -> Selected {
        if let Event::ExecutionCreated { execution } = event
            && self.runs(&execution.id)
        {
            // The parts before it are those of other executions.
            self.hands_over = false;
        }
        if let Event::PartCreated { part, .. } = event {
            self.hands_over |= is_handoff(part);
        }
        if let Event::ThreadFinished { execution_id, .. } = event
            && self.runs(execution_id)
        {
            return self.end();
        }
        Selected::Own
    }

    /// The execution at work ended.
    fn end(&mut self) -> Selected {
        let hands_over = std::mem::take(&mut self.hands_over);
        let is_next = |later: &mut Awaited| !hands_over || matches!(later, Awaited::Next { .. });
        let handoff = hands_over.then_some(Awaited::Next { answers: false });
        if let Some(awaited) = self.later.pop_front_if(is_next).or(handoff) {
            self.phase = Phase::Continues(awaited);
            return Selected::Own;
        }
        self.phase = Phase::Over;
        Selected::Last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::EventPart;
    use serde_json::{Value, json};
    use timeline::{Execution, ExecutionResult, ExecutionStatus, Payload};

    fn seen(part: Value) -> Selected {
        let mut run = RunSelector::running(Some("e".into()));
        let part = Payload::from(part);
        let created = Event::PartCreated {
            part_key: "s:0".into(),
            step_id: "s".into(),
            idx: 0,
            part,
        };
        assert_eq!(run.select(&created), Selected::Own);
        run.select(&Event::ThreadFinished {
            thread_id: "t".into(),
            context_id: "c".into(),
            execution_id: "e".into(),
            result: ExecutionResult::Completed,
        })
    }

    fn begins(run: &mut RunSelector, execution: &str, trigger: &str) -> Selected {
        run.select(&Event::ExecutionCreated {
            execution: Execution {
                id: execution.into(),
                thread_id: "t".into(),
                context_id: "c".into(),
                trigger_item_id: trigger.into(),
                reaction_item_id: "r".into(),
                workflow_run_id: None,
                status: ExecutionStatus::Executing,
                created_at: jiff::Timestamp::UNIX_EPOCH,
                updated_at: None,
                interruption: None,
                run: None,
            },
        })
    }

    fn ends(run: &mut RunSelector, execution: &str) -> Selected {
        run.select(&Event::ThreadFinished {
            thread_id: "t".into(),
            context_id: "c".into(),
            execution_id: execution.into(),
            result: ExecutionResult::Completed,
        })
    }

    #[test]
    fn a_selector_follows_the_runs_of_its_items_alone() {
        let mut run = RunSelector::answering("one".into()).then_answering(["two".into()]);
        assert_eq!(begins(&mut run, "a", "one"), Selected::Own);
        assert_eq!(ends(&mut run, "a"), Selected::Own);
        assert_eq!(begins(&mut run, "b", "another"), Selected::Other);
        assert_eq!(ends(&mut run, "b"), Selected::Other);
        assert_eq!(begins(&mut run, "c", "two"), Selected::Own);
        assert_eq!(ends(&mut run, "c"), Selected::Last);
    }

    #[test]
    fn a_selector_does_not_wait_again_for_an_item_already_answered() {
        let next = || RunSelector::running(None).then_answering(["one".into(), "two".into()]);
        let mut run = next();
        assert_eq!(begins(&mut run, "a", "one"), Selected::Own);
        assert_eq!(ends(&mut run, "a"), Selected::Own);
        assert_eq!(begins(&mut run, "b", "two"), Selected::Own);
        assert_eq!(ends(&mut run, "b"), Selected::Last);
        let mut run = next();
        for (execution, trigger) in [("a", "another"), ("b", "one")] {
            assert_eq!(begins(&mut run, execution, trigger), Selected::Own);
            assert_eq!(ends(&mut run, execution), Selected::Own);
        }
        assert_eq!(begins(&mut run, "c", "two"), Selected::Own);
        assert_eq!(ends(&mut run, "c"), Selected::Last);
    }

    #[test]
    fn a_selector_ignores_the_handoff_before_its_execution_begins() {
        let mut run = RunSelector::running(Some("b".into()));
        let handoff = json!({"type": EventPart::AGENT_HANDOFF, "id": "h", "data": {"to": "b"}});
        run.select(&Event::PartCreated {
            part_key: "s:0".into(),
            step_id: "s".into(),
            idx: 0,
            part: handoff.into(),
        });
        begins(&mut run, "b", "one");
        assert_eq!(ends(&mut run, "b"), Selected::Last);
    }

    #[test]
    fn a_run_continues_after_a_handoff_and_after_no_other_part() {
        let handoff = |data: Value| {
            let mut part = json!({"type": EventPart::AGENT_HANDOFF, "id": "h"});
            part["data"] = data;
            part
        };
        let to = json!({"from": "a", "to": "b", "reason": ""});
        assert_eq!(seen(handoff(to)), Selected::Own);
        assert_eq!(
            seen(json!({"type": "text", "text": "data-tp-agent_handoff"})),
            Selected::Last
        );
        assert_eq!(
            seen(json!({"type": EventPart::AGENT_HANDOFF})),
            Selected::Last
        );
    }
}

//! The events of one run, picked from a thread's log: from its trigger to where the work that this
//! began is at rest, over executions that hand over to each other.

use interop::parts::EventPart;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use timeline::{Event, ExecutionId, ItemId, ThreadStatus};

/// Picks the events of the run that answers an item: the item's own, then all from the run's
/// beginning to its end. While the item waits, what others cause is left out.
#[derive(Clone)]
pub(crate) struct RunEvents {
    begins: Begins,
    execution: Option<ExecutionId>,
    /// Whether another execution goes on when this one has ended.
    hands_over: bool,
    /// How many more executions are known to go on.
    n_through: usize,
    /// What the runs answer that are followed after this one.
    then: VecDeque<ItemId>,
}

/// How a run is known that has not begun.
#[derive(Clone)]
enum Begins {
    /// It answers this item.
    Answering(ItemId),
    /// It is the next one.
    Next,
}

/// What an event is to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It is another's.
    Other,
    /// It is the run's.
    Own,
    /// It is the run's last.
    Last,
    /// The run will never begin.
    Never,
}

impl Seen {
    /// Whether it is to be shown.
    pub(crate) fn is_shown(self) -> bool {
        matches!(self, Self::Own | Self::Last)
    }

    /// Whether more is coming.
    pub(crate) fn flow(self) -> ControlFlow<()> {
        match self {
            Self::Other | Self::Own => ControlFlow::Continue(()),
            Self::Last | Self::Never => ControlFlow::Break(()),
        }
    }
}

impl RunEvents {
    /// The run that answers this item.
    pub(crate) fn of(trigger: ItemId) -> Self {
        Self {
            begins: Begins::Answering(trigger),
            execution: None,
            hands_over: false,
            n_through: 0,
            then: VecDeque::new(),
        }
    }

    /// This execution, or the next one that begins.
    pub(crate) fn running(execution: Option<ExecutionId>) -> Self {
        Self {
            begins: Begins::Next,
            execution,
            hands_over: false,
            n_through: 0,
            then: VecDeque::new(),
        }
    }

    /// The execution that runs, or ran last.
    pub(crate) fn execution(&self) -> Option<&ExecutionId> {
        self.execution.as_ref()
    }

    /// The run goes on over the ends of so many executions, which have answered its calls or were
    /// handed over to.
    pub(crate) fn through(self, n_through: usize) -> Self {
        Self { n_through, ..self }
    }

    /// The runs that answer these items are followed after this one, in order.
    pub(crate) fn then(self, items: impl IntoIterator<Item = ItemId>) -> Self {
        let then = items.into_iter().collect();
        Self { then, ..self }
    }

    /// Whether it has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.execution.is_some()
    }

    /// Looks at the next event of the log.
    pub(crate) fn see(&mut self, event: &Event) -> Seen {
        match (&self.execution, event) {
            (None, Event::ItemCreated { item }) if self.is_trigger(&item.id) => Seen::Own,
            (None, Event::ExecutionCreated { execution })
                if self.hands_over || self.is_meant(&execution.trigger_item_id) =>
            {
                self.execution = Some(execution.id.clone());
                self.hands_over = false;
                // The next one may be one of those that follow; it does not begin again.
                self.then.retain(|item| *item != execution.trigger_item_id);
                Seen::Own
            }
            // The other execution begins in the same moment.
            (None, _) if self.hands_over => Seen::Own,
            (
                None,
                Event::ThreadStatusChanged {
                    to: ThreadStatus::Closed,
                    ..
                },
            ) => Seen::Never,
            (None, _) => Seen::Other,
            (Some(own), Event::ThreadFinished { execution_id, .. }) if execution_id == own => {
                if self.n_through > 0 {
                    self.n_through -= 1;
                    self.hands_over = true;
                }
                if self.hands_over {
                    self.execution = None;
                    return Seen::Own;
                }
                let Some(next) = self.then.pop_front() else {
                    return Seen::Last;
                };
                self.begins = Begins::Answering(next);
                self.execution = None;
                Seen::Own
            }
            (Some(_), Event::PartCreated { part, .. }) => {
                let event = EventPart::read(part);
                self.hands_over |=
                    event.is_some_and(|event| event.part_type == EventPart::AGENT_HANDOFF);
                Seen::Own
            }
            (Some(_), _) => Seen::Own,
        }
    }

    fn is_trigger(&self, item: &ItemId) -> bool {
        match &self.begins {
            Begins::Answering(wanted) => wanted == item,
            Begins::Next => false,
        }
    }

    fn is_meant(&self, trigger: &ItemId) -> bool {
        match &self.begins {
            Begins::Answering(wanted) => wanted == trigger,
            Begins::Next => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use timeline::{Execution, ExecutionResult, ExecutionStatus, Payload};

    fn seen(part: Value) -> Seen {
        let mut run = RunEvents::running(Some("e".into()));
        let part = Payload::from(part);
        let created = Event::PartCreated {
            part_key: "s:0".into(),
            step_id: "s".into(),
            idx: 0,
            part,
        };
        assert_eq!(run.see(&created), Seen::Own);
        run.see(&Event::ThreadFinished {
            thread_id: "t".into(),
            context_id: "c".into(),
            execution_id: "e".into(),
            result: ExecutionResult::Completed,
        })
    }

    fn begins(run: &mut RunEvents, execution: &str, trigger: &str) -> Seen {
        run.see(&Event::ExecutionCreated {
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

    fn ends(run: &mut RunEvents, execution: &str) -> Seen {
        run.see(&Event::ThreadFinished {
            thread_id: "t".into(),
            context_id: "c".into(),
            execution_id: execution.into(),
            result: ExecutionResult::Completed,
        })
    }

    #[test]
    fn the_runs_of_several_items_are_followed_and_those_between_are_not() {
        let mut run = RunEvents::of("one".into()).then(["two".into()]);
        assert_eq!(begins(&mut run, "a", "one"), Seen::Own);
        assert_eq!(ends(&mut run, "a"), Seen::Own);
        assert_eq!(begins(&mut run, "b", "another"), Seen::Other);
        assert_eq!(ends(&mut run, "b"), Seen::Other);
        assert_eq!(begins(&mut run, "c", "two"), Seen::Own);
        assert_eq!(ends(&mut run, "c"), Seen::Last);
    }

    #[test]
    fn the_next_run_is_not_waited_for_again_where_it_is_one_of_those_that_follow() {
        let next = || RunEvents::running(None).then(["one".into(), "two".into()]);
        let mut run = next();
        assert_eq!(begins(&mut run, "a", "one"), Seen::Own);
        assert_eq!(ends(&mut run, "a"), Seen::Own);
        assert_eq!(begins(&mut run, "b", "two"), Seen::Own);
        assert_eq!(ends(&mut run, "b"), Seen::Last);
        let mut run = next();
        for (execution, trigger) in [("a", "another"), ("b", "one")] {
            assert_eq!(begins(&mut run, execution, trigger), Seen::Own);
            assert_eq!(ends(&mut run, execution), Seen::Own);
        }
        assert_eq!(begins(&mut run, "c", "two"), Seen::Own);
        assert_eq!(ends(&mut run, "c"), Seen::Last);
    }

    #[test]
    fn a_run_goes_on_after_a_handoff_and_no_other_part_is_read_for_it() {
        let handoff = |data: Value| {
            let mut part = json!({"type": EventPart::AGENT_HANDOFF, "id": "h"});
            part["data"] = data;
            part
        };
        let to = json!({"from": "a", "to": "b", "reason": ""});
        assert_eq!(seen(handoff(to)), Seen::Own);
        assert_eq!(
            seen(json!({"type": "text", "text": "data-tp-agent_handoff"})),
            Seen::Last
        );
        assert_eq!(seen(json!({"type": EventPart::AGENT_HANDOFF})), Seen::Last);
    }
}

//! The events of one run, picked from a thread's log.

use std::ops::ControlFlow;
use timeline::{Event, ExecutionId, ItemId, ThreadStatus};

/// Picks the events of the run that answers an item: the item's own, then all from the run's
/// beginning to its end. While the item waits, what others cause is left out.
pub(crate) struct RunEvents {
    trigger: ItemId,
    execution: Option<ExecutionId>,
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
            trigger,
            execution: None,
        }
    }

    /// Looks at the next event of the log.
    pub(crate) fn see(&mut self, event: &Event) -> Seen {
        match (&self.execution, event) {
            (None, Event::ItemCreated { item }) if item.id == self.trigger => Seen::Own,
            (None, Event::ExecutionCreated { execution })
                if execution.trigger_item_id == self.trigger =>
            {
                self.execution = Some(execution.id.clone());
                Seen::Own
            }
            (
                None,
                Event::ThreadStatusChanged {
                    to: ThreadStatus::Closed,
                    ..
                },
            ) => Seen::Never,
            (None, _) => Seen::Other,
            (Some(own), Event::ThreadFinished { execution_id, .. }) if execution_id == own => {
                Seen::Last
            }
            (Some(_), _) => Seen::Own,
        }
    }
}

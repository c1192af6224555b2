//! The states of a tree's threads, derived from the records of a stream.

use runtime::Below;
use std::collections::BTreeMap;
use timeline::{Event, ThreadId};

/// The states of the threads in a tree's stream.
#[derive(Default)]
pub(super) struct Standings {
    threads: BTreeMap<ThreadId, Standing>,
}

#[derive(Default)]
struct Standing {
    /// The thread with the call that started it; none for the followed thread.
    parent: Option<ThreadId>,
    /// Whether its last step ended with pending calls; unknown before the first event about it.
    waits: Option<bool>,
    /// Whether its last execution has ended and nothing continues it. Sub-agents that still run are
    /// stopped.
    is_at_rest: bool,
    /// Whether its own run is over.
    is_over: bool,
}

impl Standings {
    /// Reads the next record, and returns the threads without further records.
    ///
    /// A finished sub-agent may still be continued by its parent while the parent waits for it. So it is
    /// done only when its parent is at rest too. Its descendants are done with it.
    pub(super) fn see(&mut self, below: &Below) -> Vec<ThreadId> {
        let id = &below.thread_id;
        let event = &below.followed.record.event;
        let parent = below.path.last().map(|call| call.thread_id.clone());
        let own = self.threads.entry(id.clone()).or_default();
        own.parent.clone_from(&parent);
        own.is_over = below.is_last;
        if let Event::ExecutionCreated { .. } = event {
            (own.waits, own.is_at_rest) = (Some(false), false);
        } else if let Event::StepStatusChanged { outcome, .. } = event {
            own.waits = Some(outcome.open_calls.is_some());
        }
        let mut done = Vec::new();
        if let Event::ThreadFinished { .. } = event {
            own.is_at_rest = own.waits == Some(false);
            if own.is_at_rest {
                let over = self.threads.iter();
                let over = over.filter(|(_, it)| it.is_over && it.parent.as_ref() == Some(id));
                done.extend(over.map(|(child, _)| child.clone()));
            }
        }
        if below.is_last {
            done.extend(self.descendants(id));
            let parent = parent.and_then(|parent| self.threads.get(&parent));
            if parent.is_some_and(|parent| parent.is_at_rest) {
                done.push(id.clone());
            }
        }
        for thread in &done {
            self.threads.remove(thread);
        }
        done
    }

    /// The descendants of a thread, at any depth.
    fn descendants(&self, thread: &ThreadId) -> Vec<ThreadId> {
        let mut found = vec![thread.clone()];
        let mut next = 0;
        while let Some(above) = found.get(next).cloned() {
            let children = self.threads.iter();
            let children = children.filter(|(_, it)| it.parent.as_ref() == Some(&above));
            found.extend(children.map(|(child, _)| child.clone()));
            next += 1;
        }
        found.remove(0);
        found
    }
}

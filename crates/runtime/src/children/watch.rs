//! A thread's log with the events of its sub-agents, in the form of UAP §8.7.
//!
//! A child's events are derived from the child's own log, live or years later. The parent's log has
//! none of them.

use super::events::ChildEvents;
use super::records::Spawned;
use super::report::Report;
use super::tree::{Below, Tree};
use crate::error::RuntimeError;
use crate::follow::{FollowedRecord, Until};
use crate::runtime::Runtime;
use agents::{AgentStreamEvent, SubagentEvent, SubagentForwarded, SubagentStart};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use std::collections::BTreeMap;
use store::{StoreError, TenantId};
use timeline::{ReadPosition, Record, ThreadId};

/// An event of a thread or of a thread below it.
#[derive(Clone, Debug)]
pub enum Watched {
    /// A record of the thread.
    Record(FollowedRecord),
    /// An event of a sub-agent that the thread has started. No record of the thread has it, so a
    /// client resumes after the last record.
    Subagent(Box<SubagentEvent>),
}

/// The records of a thread, once and in order, with the events of its sub-agents between them. All
/// events of a sub-agent come between the records of its start and its end, except those while it
/// waited.
pub type Watch = BoxStream<'static, Result<Watched, StoreError>>;

impl Runtime {
    /// Follows a thread like [`Runtime::follow`], with its sub-agents at any depth that start or
    /// continue after `after`.
    pub async fn watch(
        &self,
        tenant: &TenantId,
        key: &str,
        after: impl Into<ReadPosition> + Send,
        until: Until,
    ) -> Result<Watch, RuntimeError> {
        Ok(watch_tree(
            self.tree(tenant, key, after.into().into(), until).await?,
        ))
    }
}

fn watch_tree(mut tree: Tree) -> Watch {
    Box::pin(async_stream::try_stream! {
        let mut family = Family::default();
        while let Some(below) = tree.next().await {
            let below = below?;
            for event in family.events(&below) {
                yield Watched::Subagent(Box::new(event));
            }
            if below.path.is_empty() {
                yield Watched::Record(below.followed);
            }
        }
    })
}

/// The children, each up to the position read.
#[derive(Default)]
struct Family(BTreeMap<ThreadId, Child>);

impl Family {
    /// The sub-agent events of one record.
    fn events(&mut self, below: &Below) -> Vec<SubagentEvent> {
        if let Some(spawned) = &below.begins {
            let child = spawned.spawned_thread_id.clone();
            let spawned = spawned.clone();
            self.0.entry(child).or_insert_with(|| Child::new(spawned));
        }
        let Some(child) = self.0.get_mut(&below.thread_id) else {
            return Vec::new();
        };
        let events = child.events(&below.followed.record);
        if below.is_past {
            return Vec::new();
        }
        let above = below.path.iter().skip(1).rev();
        let above: Vec<&Child> = above.filter_map(|it| self.0.get(&it.thread_id)).collect();
        let nested = |event| {
            let mut outer = above.iter();
            outer.try_fold(event, |event, child| child.nested(event))
        };
        events.into_iter().filter_map(nested).collect()
    }
}

/// A child, up to the position read.
struct Child {
    spawned: Spawned,
    report: Report,
    inside: Option<ChildEvents>,
}

impl Child {
    fn new(spawned: Spawned) -> Self {
        Self {
            spawned,
            report: Report::default(),
            inside: None,
        }
    }

    fn events(&mut self, record: &Record) -> Vec<SubagentEvent> {
        let mut events = Vec::new();
        let own = self.report.push(record);
        if self.inside.is_none() && self.report.has_started() {
            self.inside = Some(ChildEvents::new(&self.report.agent()));
            events.push(self.started());
        }
        let mut inside = Vec::new();
        if let Some(child) = &mut self.inside {
            inside.extend(
                own.into_iter()
                    .filter_map(|event| child.event(event, record.at)),
            );
        }
        events.extend(inside.into_iter().map(|event| self.forwarded(event)));
        if self.report.is_over() {
            events.push(self.report.trace(&self.spawned).ended());
        }
        events
    }

    /// Converts an event of this child's child to an event for this child's parent.
    fn nested(&self, event: SubagentEvent) -> Option<SubagentEvent> {
        let inside = self.inside.as_ref()?;
        Some(self.forwarded(event.into_event(inside.step(), inside.agent_id())))
    }

    fn started(&self) -> SubagentEvent {
        SubagentEvent::Start(SubagentStart {
            subagent_id: self.spawned.subagent_id.clone(),
            subagent_type: self.spawned.subagent_type.clone(),
            parent_tool_call_id: self.spawned.tool_call_id.as_str().into(),
            prompt: self.report.prompt(),
            timestamp: self.report.began_at(),
        })
    }

    fn forwarded(&self, inner_event: AgentStreamEvent) -> SubagentEvent {
        SubagentEvent::Forwarded(SubagentForwarded {
            subagent_id: self.spawned.subagent_id.clone(),
            subagent_type: self.spawned.subagent_type.clone(),
            parent_tool_call_id: self.spawned.tool_call_id.as_str().into(),
            inner_event,
        })
    }
}

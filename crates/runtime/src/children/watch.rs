//! A thread's log with what happens inside its sub-agents (UAP §8.7).
//!
//! The events of a child are read from the child's own log, by whoever wants to see them, while
//! they come or years later. The parent's log has none of them.

use super::records::{Ended, Spawned};
use super::report::Report;
use super::told::Told;
use crate::error::RuntimeError;
use crate::follow::{Until, follow};
use crate::live::Live;
use crate::react::Runtime;
use crate::store::{Logged, StoreError, TenantId};
use agents::{AgentStreamEvent, SubagentEvent, SubagentForwarded, SubagentStart};
use futures_util::StreamExt;
use futures_util::stream::{BoxStream, SelectAll};
use std::collections::BTreeSet;
use std::sync::Arc;
use timeline::{Event, Payload, Record, Seq, ThreadId};

/// One thing that happened on a thread or beneath it.
#[derive(Clone, Debug)]
pub enum Watched {
    /// A record of the thread.
    Record(Arc<Logged>),
    /// Something about a sub-agent that the thread has started. It is in no record of the thread:
    /// who has to resume begins after the last record.
    Subagent(Box<SubagentEvent>),
}

/// The records of a thread, once and in order, and between them what happens inside its
/// sub-agents. Everything of a sub-agent comes between the record of its start and that of its end.
pub type Watch = BoxStream<'static, Result<Watched, StoreError>>;

/// An event of a child, or that there are no more.
type FromChild = (ThreadId, Option<SubagentEvent>);

impl Runtime {
    /// Follows a thread like [`Runtime::follow`], and the sub-agents that it starts after `after`,
    /// and theirs.
    pub async fn watch(
        &self,
        tenant: &TenantId,
        key: &str,
        after: Seq,
        until: Until,
    ) -> Result<Watch, RuntimeError> {
        let live = self.existing(tenant, key).await?;
        Ok(watch(self.clone(), live, after, until))
    }
}

fn watch(runtime: Runtime, live: Arc<Live>, after: Seq, until: Until) -> Watch {
    let mut own = follow(live, after, until);
    Box::pin(async_stream::try_stream! {
        let mut children: SelectAll<BoxStream<'static, FromChild>> = SelectAll::new();
        let mut open: BTreeSet<ThreadId> = BTreeSet::new();
        loop {
            let logged = tokio::select! {
                biased;
                Some((child, event)) = children.next(), if !children.is_empty() => {
                    match event {
                        Some(event) => yield Watched::Subagent(Box::new(event)),
                        None => { open.remove(&child); }
                    }
                    continue;
                }
                logged = own.next() => logged,
            };
            let Some(logged) = logged else { return };
            let logged = logged?;
            // A child's end is known here only after everything that it did.
            if let Some(ended) = added(&logged.record).and_then(Ended::read) {
                while open.contains(&ended.thread_id) {
                    match children.next().await {
                        Some((_, Some(event))) => yield Watched::Subagent(Box::new(event)),
                        Some((child, None)) => { open.remove(&child); }
                        None => open.clear(),
                    }
                }
            }
            let spawned = added(&logged.record).and_then(Spawned::read);
            yield Watched::Record(logged);
            if let Some(spawned) = spawned {
                open.insert(spawned.spawned_thread_id.clone());
                children.push(inside(runtime.clone(), spawned));
            }
        }
    })
}

/// The part that a record adds.
fn added(record: &Record) -> Option<&Payload> {
    if let Event::PartCreated { part, .. } = &record.event {
        return Some(part);
    }
    None
}

/// The events of one child, from its start to its end. What can't be read is not shown.
fn inside(runtime: Runtime, spawned: Spawned) -> BoxStream<'static, FromChild> {
    Box::pin(async_stream::stream! {
        let thread = spawned.spawned_thread_id.clone();
        if let Ok(live) = runtime.live_by_id(&thread).await {
            let mut records = watch(runtime, live, Seq::ZERO, Until::Forever);
            let mut child = Child::new(spawned);
            while let Some(Ok(watched)) = records.next().await {
                for event in child.events(&watched) {
                    yield (thread.clone(), Some(event));
                }
                if child.report.is_over() {
                    break;
                }
            }
        }
        yield (thread, None);
    })
}

/// A child as far as it is read.
struct Child {
    spawned: Spawned,
    report: Report,
    told: Option<Told>,
}

impl Child {
    fn new(spawned: Spawned) -> Self {
        Self {
            spawned,
            report: Report::default(),
            told: None,
        }
    }

    fn events(&mut self, watched: &Watched) -> Vec<SubagentEvent> {
        let mut events = Vec::new();
        match watched {
            Watched::Record(logged) => {
                self.report.push(&logged.record);
                if self.told.is_none() && self.report.has_begun() {
                    self.told = Some(Told::new(&self.report.agent()));
                    events.push(self.started());
                }
                let inner = self.told.as_mut();
                let inner = inner.map(|told| told.events(&logged.record));
                events.extend(
                    inner
                        .into_iter()
                        .flatten()
                        .map(|event| self.forwarded(event)),
                );
                if self.report.is_over() {
                    events.push(self.report.trace(&self.spawned).ended());
                }
            }
            Watched::Subagent(event) => {
                if let Some(told) = &self.told {
                    let event =
                        SubagentEvent::clone(event).into_event(told.step(), told.agent_id());
                    events.push(self.forwarded(event));
                }
            }
        }
        events
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

//! One sub-agent on a thread of its own, from the call that spawns it to its result.

use super::Site;
use super::outcome::ChildError;
use super::records::{Ended, Spawned};
use super::report::Report;
use super::stop::{StoppedChildren, is_active};
use crate::error::{RuntimeError, told};
use crate::follow::{Until, follow};
use crate::live::Live;
use crate::request::{Accepted, NewThreadRequest, ParentRun, Policy, React, Run};
use crate::store::StoreError;
use agents::{AgentError, Spawn, SubAgentRun};
use futures_util::StreamExt;
use interop::model;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use timeline::{ItemId, NewItem, Payload, Seq, ThreadId};
use upp::Message;

/// How long it takes until a store that failed is asked again, for the first time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// And at most, when it goes on failing.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Why there is no run to tell of.
enum Lost {
    /// The child's thread can't be used, perhaps only now.
    Thread(RuntimeError),
    /// The call is over, or nothing can be written for it.
    Call(AgentError),
}

impl From<RuntimeError> for Lost {
    fn from(error: RuntimeError) -> Self {
        Self::Thread(error)
    }
}

impl From<StoreError> for Lost {
    fn from(error: StoreError) -> Self {
        Self::Thread(error.into())
    }
}

impl From<AgentError> for Lost {
    fn from(error: AgentError) -> Self {
        Self::Call(error)
    }
}

/// Runs the sub-agent, or finds the run that an earlier attempt at the call has begun. `n_before`
/// sub-agents of the same call came before it.
pub(super) async fn child(site: Arc<Site>, spawn: Spawn, n_before: u32) -> SubAgentRun {
    let call = spawn.tool_call_id.as_str();
    // The call's idempotency key, so that the same call is the same run.
    let mut token = format!("{}:{}:{call}", site.live.thread, site.step);
    if n_before > 0 {
        token = format!("{token}#{n_before}");
    }
    let key = super::key::of(&site.live.key, call, &token);
    let mut unheard = Unheard {
        site: Arc::clone(&site),
        child: None,
    };
    let mut pause = FIRST_PAUSE;
    let error = loop {
        match attached(&site, &spawn, &key, &token, &mut unheard).await {
            Ok(run) => return run,
            Err(Lost::Thread(error)) if error.is_transient() => {
                tracing::error!(
                    error = told(&error),
                    key,
                    "a sub-agent is looked for again after a pause"
                );
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(Lost::Thread(cause)) => {
                let cause = Box::new(cause);
                break failed(&spawn, ChildError::Thread { key, cause });
            }
            Err(Lost::Call(error)) => break error,
        }
    };
    if site.signal.is_cancelled() {
        // The step is stopped. What it has not written it does not write any more.
        std::future::pending::<()>().await;
    }
    SubAgentRun {
        turn: Err(error),
        traces: Vec::new(),
    }
}

async fn attached(
    site: &Arc<Site>,
    spawn: &Spawn,
    key: &str,
    token: &str,
    unheard: &mut Unheard,
) -> Result<SubAgentRun, Lost> {
    let child = site.thread(key, spawn).await?;
    let spawned = site.spawned(&child.thread, spawn).await?;
    unheard.child = Some(child.thread.clone());
    let accepted = site.begin(&child, spawn, token).await?;
    let report = tokio::select! {
        biased;
        () = spawn.signal.cancelled() => return Err(AgentError::Cancelled.into()),
        report = heard(&child, accepted.item_id) => report?,
    };
    unheard.child = None;
    site.ended(&spawned, &report).await?;
    let store = site.runtime.inner.store.as_ref();
    let mut traces = report.nested(store).await?;
    traces.push(report.trace(&spawned));
    let turn = report.turn().map_err(|error| failed(spawn, error));
    Ok(SubAgentRun { turn, traces })
}

fn failed(spawn: &Spawn, error: ChildError) -> AgentError {
    AgentError::extension(format!("the agent {:?}", spawn.agent.name()), error)
}

/// Reads the child's log, as it grows, to the end of its run.
async fn heard(child: &Arc<Live>, item: ItemId) -> Result<Report, StoreError> {
    let mut report = Report::answering(Some(item));
    let mut records = follow(Arc::clone(child), Seq::ZERO, Until::Forever);
    while let Some(logged) = records.next().await {
        report.push(&logged?.record);
        if report.is_over() {
            break;
        }
    }
    Ok(report)
}

impl Site {
    /// The child's thread, made if there is none, with the link to the parent (0.0.3
    /// `relationships`) in its document.
    async fn thread(&self, key: &str, spawn: &Spawn) -> Result<Arc<Live>, RuntimeError> {
        let link = json!({
            "thread_id": self.live.thread,
            "relation": "spawned_from",
            "metadata": {"tool_call_id": spawn.tool_call_id},
        });
        let metadata = json!({"threadprotocol": {"root": {"relationships": {"links": [link]}}}});
        let new = NewThreadRequest {
            key: Some(key.to_owned()),
            metadata: Some(metadata.into()),
            ..NewThreadRequest::default()
        };
        self.runtime.get_or_create(&self.live.tenant, new).await?;
        self.runtime.existing(&self.live.tenant, key).await
    }

    /// Writes that the child is started, unless an earlier attempt at the call has.
    async fn spawned(&self, child: &ThreadId, spawn: &Spawn) -> Result<Spawned, AgentError> {
        let parts = self.writer.parts().await.map_err(stopped)?;
        let mut known = parts.iter().filter_map(Spawned::read);
        if let Some(spawned) = known.find(|it| it.spawned_thread_id == *child) {
            return Ok(spawned);
        }
        let spawned = Spawned::of(spawn, child);
        self.write(spawned.write()).await?;
        Ok(spawned)
    }

    /// Writes that the child has ended, unless an earlier attempt at the call has.
    async fn ended(&self, spawned: &Spawned, report: &Report) -> Result<(), AgentError> {
        let parts = self.writer.parts().await.map_err(stopped)?;
        let mut known = parts.iter().filter_map(Ended::read);
        if known.any(|it| it.thread_id == spawned.spawned_thread_id) {
            return Ok(());
        }
        let ended = Ended {
            thread_id: spawned.spawned_thread_id.clone(),
            tool_call_id: spawned.tool_call_id.clone(),
            reason: report.reason(),
        };
        self.write(ended.write()).await
    }

    async fn write(&self, part: Result<Payload, RuntimeError>) -> Result<(), AgentError> {
        let part = part.map_err(|error| AgentError::extension("the record of a child", error))?;
        self.writer.add_part(part).await.map_err(stopped)
    }

    /// Begins the child's execution, or finds it begun. Runs to its end even if the parent is
    /// stopped meanwhile; then the child is stopped at once.
    async fn begin(
        &self,
        child: &Arc<Live>,
        spawn: &Spawn,
        token: &str,
    ) -> Result<Accepted, RuntimeError> {
        let content = match &spawn.prompt {
            Message::User(message) => model::item_content(message),
            other @ (Message::Assistant(_) | Message::ToolResult(_)) => {
                let text = serde_json::to_string(other)?;
                json!([{"type": "input_text", "text": text}]).into()
            }
        };
        let parent = ParentRun {
            thread_id: self.live.thread.clone(),
            execution_id: self.execution.clone(),
        };
        let request = React {
            tenant: child.tenant.clone(),
            key: child.key.clone(),
            item: NewItem::user(self.runtime.mint(), content),
            run: Run {
                agent: Some(spawn.agent.name().to_owned()),
                parent: Some(parent),
                ..Run::default()
            },
            policy: Policy::Queue,
            token: Some(token.to_owned()),
        };
        let (runtime, live) = (self.runtime.clone(), Arc::clone(&self.live));
        let (execution, thread) = (self.execution.clone(), child.thread.clone());
        self.runtime
            .owned(async move {
                let accepted = runtime.react(request).await?;
                let wanted = {
                    let mut held = live.hold().await?;
                    is_active(&held.core()?.state, &execution)
                };
                if !wanted {
                    runtime.stop_children(Some(StoppedChildren::one(execution, thread)));
                }
                Ok(accepted)
            })
            .await
    }
}

fn stopped(_: crate::writer::Stopped) -> AgentError {
    AgentError::Cancelled
}

/// A child whose end nobody has heard. Dropped while the parent goes on, it stops the child: its
/// tool wants it no more. A parent that ends stops its children itself, and one that is tried again
/// finds them.
struct Unheard {
    site: Arc<Site>,
    child: Option<ThreadId>,
}

impl Drop for Unheard {
    fn drop(&mut self) {
        let goes_on = !self.site.signal.is_cancelled() && !self.site.writer.is_given_up();
        if let Some(child) = self.child.take().filter(|_| goes_on) {
            let execution = self.site.execution.clone();
            let stopped = StoppedChildren::one(execution, child);
            self.site.runtime.stop_children(Some(stopped));
        }
    }
}

//! One sub-agent on a thread of its own, from the call that spawns it to its result.

use super::Site;
use super::outcome::ChildError;
use super::records::{Ended, Spawned};
use super::report::Report;
use super::stop::{StoppedChildren, is_active};
use crate::error::{RuntimeError, log_failure};
use crate::follow::{Until, facts, follow};
use crate::gate::Preconditions;
use crate::live::Live;
use crate::request::{Accepted, NewThreadRequest, ReactRequest};
use agents::{AgentError, Spawn, SubAgentRun, Waits};
use futures_util::StreamExt;
use interop::model;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use store::StoreError;
use store::{ParentRun, Run};
use timeline::{ItemId, NewItem, OpenChild, Payload, ThreadId};
use upp::Message;

/// Pause before the first retry of a store that failed.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause between retries of a store that still fails.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The reason that there is no run to report.
enum Lost {
    /// The child's thread can't be used, possibly only for now.
    Thread(RuntimeError),
    /// The call is over, or its thread can't be written.
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

/// Runs the sub-agent, or finds the run that an earlier attempt at the call started. `n_before` is
/// the number of earlier sub-agents of the same call.
pub(super) async fn child(site: Arc<Site>, spawn: Spawn, n_before: u32) -> SubAgentRun {
    let call = spawn.tool_call_id.as_str();
    // The call's idempotency key, so that the same call is the same run.
    let mut token = format!("{}:{}:{call}", site.live.thread, site.origin);
    if n_before > 0 {
        token = format!("{token}#{n_before}");
    }
    let key = super::key::of(&site.live.key, call, &token);
    let mut unheard = Unheard {
        site: Arc::clone(&site),
        waits: spawn.waits.clone(),
        child: None,
    };
    let mut pause = FIRST_PAUSE;
    let error = loop {
        match attached(&site, &spawn, &key, &token, &mut unheard).await {
            Ok(run) => return run,
            Err(Lost::Thread(error)) if error.is_transient() => {
                log_failure(
                    &error,
                    &key,
                    "a sub-agent is looked for again after a pause",
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
    let call = spawn.tool_call_id.as_str();
    site.note(call, Site::open_child(&child, &spawned, &Report::default()));
    unheard.child = Some(child.thread.clone());
    let accepted = site.begin(&child, spawn, token).await?;
    let report = tokio::select! {
        biased;
        () = spawn.signal.cancelled() => return Err(AgentError::Cancelled.into()),
        report = site.heard(&child, accepted.item_id, &spawned, spawn) => report?,
    };
    unheard.child = None;
    site.ended(&spawned, &report).await?;
    site.note(call, Site::open_child(&child, &spawned, &report));
    let mut traces = report.nested(&site.runtime, &site.live.tenant, 0).await?;
    traces.push(report.trace(&spawned));
    let turn = report.turn().map_err(|error| failed(spawn, error));
    Ok(SubAgentRun { turn, traces })
}

fn failed(spawn: &Spawn, error: ChildError) -> AgentError {
    AgentError::extension(format!("the agent {:?}", spawn.agent.name()), error)
}

impl Site {
    /// Reads the child's log, as it grows, to the end of its run. Meanwhile it reports whether the
    /// child waits for an outside answer. If the child waits and the call may not run again, it
    /// stops reading.
    async fn heard(
        &self,
        child: &Arc<Live>,
        item: ItemId,
        spawned: &Spawned,
        spawn: &Spawn,
    ) -> Result<Report, StoreError> {
        let mut report = Report::answering(Some(item));
        let tail = child.watch();
        // What it had said by now is in its facts.
        let seen = tail.borrow().seq;
        let store = Arc::clone(self.runtime.store());
        let past = facts(store, child.thread.clone(), seen);
        let mut records = past.chain(follow(Arc::clone(child), seen.into(), Until::Forever));
        while let Some(logged) = records.next().await {
            let logged = logged?;
            report.push(&logged.record);
            if report.is_over() {
                break;
            }
            // What other nodes append is read before the end of the log is known here.
            let is_last = tail.borrow().seq <= logged.record.seq;
            let waits = report.is_waiting() && is_last;
            let call = spawn.tool_call_id.as_str();
            if waits && self.is_marked(call).await {
                break;
            }
            if waits {
                self.note(call, Self::open_child(child, spawned, &report));
            }
            spawn.waits.set(waits);
        }
        Ok(report)
    }

    /// Whether the call must not be run again.
    async fn is_marked(&self, call: &str) -> bool {
        let Ok(mut held) = self.live.hold().await else {
            return false;
        };
        let step = held.core().ok().and_then(|core| core.state.active());
        let step = step.and_then(|active| active.step.as_ref());
        step.is_some_and(|step| step.started.iter().any(|id| id == call))
    }

    /// The child's thread, created if it does not exist, with the link to the parent (0.0.3
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
        if !self.known.values().any(|known| known.key == key) {
            self.runtime.get_or_create(&self.live.tenant, new).await?;
        }
        // One that was waited for and is gone is not begun again, whoever has its key now.
        let live = self.runtime.existing(&self.live.tenant, key).await?;
        let mut known = self.known.values().filter(|known| known.key == key);
        if known.any(|known| known.thread_id != live.thread) {
            return Err(StoreError::NotFound.into());
        }
        Ok(live)
    }

    fn open_child(child: &Live, spawned: &Spawned, report: &Report) -> OpenChild {
        OpenChild {
            thread_id: child.thread.clone(),
            key: child.key.clone(),
            subagent_id: spawned.subagent_id.clone(),
            subagent_type: spawned.subagent_type.clone(),
            seq: report.seq(),
            is_over: report.is_over(),
            is_hidden: spawned.is_hidden,
        }
    }

    /// Records the start of the child, unless an earlier attempt at the call has done so.
    async fn spawned(&self, child: &ThreadId, spawn: &Spawn) -> Result<Spawned, AgentError> {
        if let Some(known) = self.known.get(child) {
            return Ok(Spawned {
                subagent_id: known.subagent_id.clone(),
                subagent_type: known.subagent_type.clone(),
                ..Spawned::of(spawn, child)
            });
        }
        let parts = self.writer.parts().await.map_err(stopped)?;
        let mut known = parts.iter().filter_map(Spawned::read);
        if let Some(spawned) = known.find(|it| it.spawned_thread_id == *child) {
            return Ok(spawned);
        }
        let spawned = Spawned::of(spawn, child);
        self.add(spawned.write())?;
        // The child begins only when it is known of.
        self.writer.flush().await.map_err(stopped)?;
        Ok(spawned)
    }

    /// Records the end of the child, unless an earlier attempt at the call has done so.
    async fn ended(&self, spawned: &Spawned, report: &Report) -> Result<(), AgentError> {
        let known = self.known.get(&spawned.spawned_thread_id);
        if known.is_some_and(|known| known.is_over) {
            return Ok(());
        }
        let parts = self.writer.parts().await.map_err(stopped)?;
        let mut known = parts.iter().filter_map(Ended::read);
        if known.any(|it| it.thread_id == spawned.spawned_thread_id) {
            return Ok(());
        }
        let ended = Ended {
            thread_id: spawned.spawned_thread_id.clone(),
            tool_call_id: spawned.tool_call_id.clone(),
            reason: report.reason(),
            seq: Some(report.seq()),
        };
        self.add(ended.write())
    }

    fn add(&self, part: Result<Payload, RuntimeError>) -> Result<(), AgentError> {
        let part = part.map_err(|error| AgentError::extension("the record of a child", error))?;
        self.writer.add_part(part);
        Ok(())
    }

    /// Starts the child's execution, or finds it already started. It completes even if the parent
    /// is stopped meanwhile; in that case it then stops the child.
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
        let request = ReactRequest {
            run: Run {
                agent: Some(spawn.agent.name().to_owned()),
                parent: Some(parent),
                ..Run::default()
            },
            token: Some(token.to_owned().into()),
            ..ReactRequest::new(
                child.tenant.clone(),
                child.key.clone(),
                NewItem::user(self.runtime.mint(), content),
            )
        };
        let (runtime, live) = (self.runtime.clone(), Arc::clone(&self.live));
        let (execution, child) = (self.execution.clone(), Arc::clone(child));
        let is_known = self.known.contains_key(&child.thread);
        self.runtime
            .run_to_completion(async move {
                let accepted = if is_known {
                    runtime
                        .accept_on(&child, &request, &Preconditions::default())
                        .await?
                } else {
                    runtime.react(request).await?
                };
                let wanted = {
                    let mut held = live.hold().await?;
                    is_active(&held.core()?.state, &execution)
                };
                if !wanted {
                    let parent = live.thread.clone();
                    runtime.stop_children(Some(StoppedChildren::one(parent, child.thread.clone())));
                }
                Ok(accepted)
            })
            .await
    }
}

fn stopped(_: crate::writer::WriterStopped) -> AgentError {
    AgentError::Cancelled
}

/// A child whose end was not observed. If it is dropped while the parent continues, it stops the
/// child, as the tool no longer needs it. A parent that ends stops its children itself. A parent
/// that is retried, or whose call is left open for the child, finds the child again.
struct Unheard {
    site: Arc<Site>,
    waits: Waits,
    child: Option<ThreadId>,
}

impl Drop for Unheard {
    fn drop(&mut self) {
        let is_left = self.site.signal.is_cancelled() || self.site.writer.is_abandoned();
        let goes_on = !is_left && !self.waits.is_suspended();
        if let Some(child) = self.child.take().filter(|_| goes_on) {
            let stopped = StoppedChildren::one(self.site.live.thread.clone(), child);
            self.site.runtime.stop_children(Some(stopped));
        }
    }
}

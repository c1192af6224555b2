//! Commits: the events of commands are appended, and the state follows them.

use super::records::{apply, created, logged, resets, started};
use super::unstored::Unstored;
use super::{Decided, LockedThread, Tail};
use crate::error::RuntimeError;
use jiff::Timestamp;
use store::{Append, StoreError, Token};
use timeline::{Command, Seq, ThreadId, ThreadStatus};

impl LockedThread<'_> {
    /// Decides all commands in order and appends their events in one transaction: all or none. The
    /// chunks that are not stored yet come before them.
    pub(crate) async fn commit(
        &mut self,
        commands: impl IntoIterator<Item = (Option<Timestamp>, Command)>,
        token: Option<Token>,
    ) -> Result<Seq, RuntimeError> {
        self.append(commands, token, Vec::new()).await
    }

    /// Does what [`commit`](Self::commit) does, if the logs of these other threads still end there.
    ///
    /// # Errors
    ///
    /// [`StoreError::Moved`] if one does not. Nothing was written then, and the commands can be decided anew.
    pub(crate) async fn commit_unmoved(
        &mut self,
        commands: impl IntoIterator<Item = (Option<Timestamp>, Command)>,
        unmoved: Vec<(ThreadId, Seq)>,
    ) -> Result<Seq, RuntimeError> {
        self.append(commands, None, unmoved).await
    }

    async fn append(
        &mut self,
        commands: impl IntoIterator<Item = (Option<Timestamp>, Command)>,
        token: Option<Token>,
        unmoved: Vec<(ThreadId, Seq)>,
    ) -> Result<Seq, RuntimeError> {
        let live = self.live;
        let core = self.core()?;
        let now = core.instant(live.clock.now());
        core.warn_of_clock(now, &live.thread);
        let Decided {
            records,
            ended,
            growth,
            ahead,
            n_ahead,
        } = core.decided(commands, now, live.message_bytes)?;
        if records.is_empty() {
            return Ok(core.tail);
        }
        let step = records.iter().rev().find_map(|new| created(new.event()));
        let step = step.cloned();
        let begun = records.iter().rev().find_map(|new| started(new.event()));
        if let Some(execution) = begun {
            // Also where its append fails in doubt: this process alone has begun it.
            live.occupied.take_up(execution);
        }
        let reset = records.iter().rev().find_map(|new| resets(new.event()));
        let reset = reset.cloned();
        let is_new = core.is_pending();
        core.in_doubt = true;
        let answer = if let Some(first) = core.unmade.take() {
            live.make(first, records.clone(), token).await
        } else {
            let append = Append {
                thread: live.thread.clone(),
                epoch: core.epoch,
                tail: core.tail,
                records: records.clone(),
                token,
                is_limited: growth.is_limited(!core.unstored.records().is_empty()),
                unmoved,
            };
            let tail = live.store.append(append).await;
            tail.map(|tail| (tail, core.epoch))
        };
        core.in_doubt = false;
        match answer {
            Ok((tail, epoch)) => {
                let first = core.tail;
                core.tail = tail;
                core.epoch = epoch;
                core.last_at = now;
                core.state = ahead.unwrap_or_else(|| std::mem::take(&mut core.state));
                apply(&mut core.state, records.iter().skip(n_ahead));
                live.occupied.queue(core.state.waiting().len());
                core.may_have_lost = false;
                core.unstored = Unstored::default();
                if step.is_some() || reset.is_some() {
                    core.fresh = step.or(reset);
                }
                let streaming = core
                    .state
                    .thread()
                    .is_some_and(|thread| thread.status == ThreadStatus::Streaming);
                for ended in &ended {
                    live.observer.ended(ended);
                }
                // One that runs stays in memory, whatever it takes.
                let state_bytes = if streaming { 0 } else { core.bytes() };
                live.publish(
                    logged(first, records),
                    state_bytes,
                    Tail {
                        seq: tail,
                        streaming,
                        gone: false,
                    },
                );
                Ok(tail)
            }
            Err(error) => {
                // Whether a failed append is in the log is not known here; the log knows. An append
                // over the limit is not, and a message over it loses no chunks of a run.
                let is_unknown = matches!(
                    error,
                    StoreError::Conflict { .. }
                        | StoreError::Fenced { .. }
                        | StoreError::Failed(_)
                        | StoreError::KeyTaken(_)
                );
                let is_unmade = is_new && matches!(error, StoreError::LimitReached(_));
                core.in_doubt = is_unknown || is_unmade;
                core.is_fenced = matches!(error, StoreError::Fenced { .. });
                Err(error.into())
            }
        }
    }
}

//! Commits: the events of commands are appended, and the state follows them.

use super::records::{RunChange, apply, created, logged, resets};
use super::unstored::Unstored;
use super::{Core, Decided, Doubt, LockedThread, Tail};
use crate::error::RuntimeError;
use crate::planted::{self, Bug};
use jiff::Timestamp;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use store::{Append, Appended, Ownership, StoreError, Token};
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
        let is_guarded = !planted::has(Bug::SleepsUnguarded);
        self.append(
            commands,
            None,
            if is_guarded { unmoved } else { Vec::new() },
        )
        .await
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
            mut ahead,
            mut n_ahead,
        } = core.decided(commands, now, live.message_bytes)?;
        if records.is_empty() {
            return Ok(core.tail);
        }
        let step = records.iter().rev().find_map(|new| created(new.event()));
        let step = step.cloned();
        let reset = records.iter().rev().find_map(|new| resets(new.event()));
        let reset = reset.cloned();
        let is_new = core.is_pending();
        let run = RunChange::of(&records);
        if run == RunChange::Ends {
            let after = ahead.get_or_insert_with(|| core.state.clone());
            apply(after, records.iter().skip(n_ahead));
            n_ahead = records.len();
        }
        let after = ahead.as_ref().unwrap_or(&core.state);
        let node = live.node.id();
        let ownership = run.ownership(core.owns, after, node);
        let takes = matches!(ownership, Ownership::Take(_));
        core.doubt = records.first().map(|first| Doubt::Unknown {
            first: Arc::clone(first.text()),
            takes,
        });
        let answer = if let Some(first) = core.unmade.take() {
            let owner = takes.then_some(node);
            live.make(first, records.clone(), token, owner).await
        } else {
            let append = Append {
                thread: live.thread.clone(),
                epoch: core.epoch,
                tail: core.tail,
                ownership,
                records: records.clone(),
                token,
                is_limited: growth.is_limited(!core.unstored.records().is_empty()),
                unmoved,
            };
            live.store.append(append).await
        };
        match answer {
            Ok(Appended { tail, epoch }) => {
                let first = core.tail;
                core.doubt = None;
                core.tail = tail;
                core.epoch = epoch;
                core.owns = takes || (core.owns && ownership == Ownership::Keep);
                core.owner = core.owner.filter(|_| ownership == Ownership::Keep);
                core.last_at = now;
                core.state = ahead.unwrap_or_else(|| std::mem::take(&mut core.state));
                apply(&mut core.state, records.iter().skip(n_ahead));
                live.occupied.queue(core.state.waiting().len());
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
                if matches!(error, StoreError::NotFound) {
                    live.gone();
                }
                if core.refused(&error, is_new) {
                    live.n_overtaken.fetch_add(1, Ordering::AcqRel);
                }
                if run == RunChange::Starts && matches!(error, StoreError::Failed(_)) {
                    live.may_have_started.store(true, Ordering::Release);
                }
                Err(error.into())
            }
        }
    }
}

impl Core {
    /// Notes the meaning of an append that was not acknowledged. Returns whether another node has written.
    fn refused(&mut self, error: &StoreError, is_new: bool) -> bool {
        let is_overtaken = matches!(
            error,
            StoreError::Conflict { .. } | StoreError::Fenced { .. }
        );
        let is_unknown = matches!(
            error,
            StoreError::Failed(_) | StoreError::KeyTaken(_) | StoreError::NotFound
        ) && !planted::has(Bug::TakesUnknownAsRefused);
        // An append over the limit is not in the log, and a message over it loses no chunks of a run.
        let is_unmade = is_new && matches!(error, StoreError::LimitReached(_));
        if is_overtaken {
            self.doubt = Some(Doubt::Overtaken);
        } else if !is_unknown && !is_unmade {
            self.doubt = None;
        }
        is_overtaken
    }
}

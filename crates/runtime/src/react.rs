//! Triggers, and the policies for busy threads.

use crate::attempt_note::Abandoned;
use crate::children::{StoppedChildren, reason_of, waiting_parent};
use crate::error::RuntimeError;
use crate::gate::{Preconditions, judged_trigger};
use crate::live::{Live, LockedThread};
use crate::repeat::commit_accepted;
use crate::request::{Accepted, Cancelled, Policy, ReactRequest};
use crate::runtime::Runtime;
use std::sync::Arc;
use store::{Run, Side, StoreError, TenantId};
use timeline::{Command, Ending, ExecutionId, Interruption, NewItem, Payload, Seq, State, Trigger};

/// Number of attempts to find a thread that other requests create and delete meanwhile.
const MAX_TRIES: u32 = 8;

/// Limits the size of the messages queued on one thread: at most this number times the size of the
/// largest allowed message, plus one message. All of them are in memory while the thread is.
const QUEUED_MESSAGES: usize = 4;

impl Runtime {
    /// Accepts a trigger. When this returns, the trigger is durable and its execution is started or
    /// queued. The execution continues even if nobody waits for it.
    pub async fn react(&self, request: ReactRequest) -> Result<Accepted, RuntimeError> {
        self.react_on(request, Preconditions::default()).await
    }

    /// Reacts under these preconditions. A thread that is continued after a position must exist.
    pub async fn react_on(
        &self,
        mut request: ReactRequest,
        terms: Preconditions,
    ) -> Result<Accepted, RuntimeError> {
        // There is nothing in a new thread that it could be taken back to.
        request.must_exist |= request.rewind.is_some() || terms.after.is_some();
        let runtime = self.clone();
        self.run_to_completion(async move {
            let mut n_tries = 0;
            loop {
                n_tries += 1;
                if let Some(live) = runtime.entered(&request, &terms).await? {
                    match runtime.accept_on(&live, &request, &terms).await {
                        // It was deleted a moment ago: the key is free, or another thread's.
                        Err(RuntimeError::Store(StoreError::NotFound))
                            if live.is_gone() && n_tries < MAX_TRIES =>
                        {
                            runtime.forget(&live);
                            continue;
                        }
                        accepted => return accepted,
                    }
                }
                runtime.check_new(&request)?;
                let unmade = runtime.pending_thread(&request.tenant, &request.key)?;
                let made = runtime.accept_on(&unmade.live, &request, &terms).await;
                unmade.resolve(&made);
                match made {
                    // Somebody else has made it a moment ago.
                    Err(RuntimeError::Store(StoreError::KeyTaken(_))) if n_tries < MAX_TRIES => {}
                    made => return made,
                }
            }
        })
        .await
    }

    /// Fails if a message was posted or something ran in the thread's own log after this event. The
    /// caller holds the thread's lock.
    pub(crate) async fn check_last(
        &self,
        live: &Live,
        held: &mut LockedThread<'_>,
        seq: Seq,
    ) -> Result<(), RuntimeError> {
        let (store, thread) = (&self.inner.store, &live.thread);
        let waits = held.core()?.state.waiting().len() > 0;
        if waits
            || store.nearest_run(thread, Side::After(seq)).await?.is_some()
            || !store
                .nearest_triggers(thread, Side::After(seq), 1)
                .await?
                .is_empty()
        {
            return Err(RuntimeError::Followed(seq));
        }
        Ok(())
    }

    /// The thread of a request, if it exists. Prepares the gate for it.
    async fn entered(
        &self,
        request: &ReactRequest,
        terms: &Preconditions,
    ) -> Result<Option<Arc<Live>>, RuntimeError> {
        if self.inner.shutdown.is_cancelled() {
            return Err(RuntimeError::ShuttingDown);
        }
        let live = match self.existing(&request.tenant, &request.key).await {
            Err(RuntimeError::Store(StoreError::NotFound)) => return Ok(None),
            found => found?,
        };
        if let Some(gate) = &terms.gate {
            gate.prepare(&live.thread, live.end()).await?;
        }
        Ok(Some(live))
    }

    /// Fails if the request can't create a thread that does not exist.
    fn check_new(&self, request: &ReactRequest) -> Result<(), RuntimeError> {
        let agent = request.run.agent.as_deref();
        if self.inner.reactors.find(agent).is_none() {
            let unknown = agent.unwrap_or_default().to_owned();
            return Err(RuntimeError::UnknownAgent(unknown));
        }
        if request.must_exist {
            return Err(StoreError::NotFound.into());
        }
        Ok(())
    }

    /// Accepts a trigger on an existing thread. If the thread was deleted, it is not created again.
    pub(crate) async fn accept_on(
        &self,
        live: &Arc<Live>,
        request: &ReactRequest,
        terms: &Preconditions,
    ) -> Result<Accepted, RuntimeError> {
        self.decided(live, async || {
            let held = live.hold().await?;
            self.accept_held(live, held, request.clone(), terms).await
        })
        .await
    }

    async fn accept_held(
        &self,
        live: &Arc<Live>,
        mut held: LockedThread<'_>,
        mut request: ReactRequest,
        terms: &Preconditions,
    ) -> Result<Accepted, RuntimeError> {
        // A repetition is answered before anything else is asked: its first run may still be going.
        let token = request.token.as_ref();
        if let Some(first) = self.answered_before(live, &mut held, token).await? {
            return Ok(first);
        }
        if let Some(seq) = terms.after {
            self.check_last(live, &mut held, seq).await?;
        }
        if self
            .inner
            .reactors
            .find(request.run.agent.as_deref())
            .is_none()
        {
            return Err(RuntimeError::UnknownAgent(
                request.run.agent.unwrap_or_default(),
            ));
        }
        request.run.agent = self.inner.reactors.name(request.run.agent.as_deref());
        let at = match &terms.gate {
            Some(gate) => Some(judged_trigger(live, &mut held, gate.as_ref(), &mut request).await?),
            None => None,
        };
        let admitted = self.admit(live, &held.core()?.state, &request)?;
        // Not before it is judged: whoever waits for what goes is woken.
        let mut rewound = Vec::new();
        if let Some(to) = &request.rewind {
            rewound = self.taken_back(live, &held.core()?.state, to).await?;
            request.policy = Policy::Interrupt;
        }
        let core = held.core()?;
        let after = core.tail;
        let is_next = core.state.waiting().len() == 0 || request.policy != Policy::Queue;
        let waiting_parent = waiting_parent(&core.state).filter(|_| is_next);
        if request.run.parent.is_none() {
            // The run that waits for answers goes on with what is said in their place.
            request.run.parent.clone_from(&waiting_parent);
        }
        let item_id = request.item.id.clone();
        let named = request.run.execution_id.clone();
        let mut dealt = self.plan(&core.state, request.item, request.run, request.policy)?;
        if !request.before.is_empty() || request.rewind.is_some() {
            // What is remembered between steps has not heard them, or has what goes.
            core.generation += 1;
        }
        let before = request.before.into_iter();
        let before = before.map(|item| Command::Record { item });
        dealt.begin_with(rewound.into_iter().chain(before));
        let mut children = None;
        if dealt.begins.is_some() {
            children = StoppedChildren::of(&core.state, Interruption::USER_CANCELLED);
        }
        let mut abandoned = None;
        if dealt.stops.is_some() {
            core.generation += 1;
            abandoned = Abandoned::of(&core.state);
            let active = core.state.active();
            let parent = active.and_then(|it| Run::of(it.execution.run.as_ref()).parent);
            let trigger = active.and_then(|it| it.trigger.clone());
            self.wake_parents(live, parent.as_ref(), trigger.as_ref())
                .await?;
        }
        let Admission {
            commands,
            begins: execution_id,
            stops,
        } = dealt;
        let accepted = Accepted {
            thread_id: live.thread.clone(),
            item_id,
            queued: execution_id.is_none(),
            execution_id: execution_id.or(named),
            after,
            repeated: false,
        };
        let commands = commands.into_iter().map(|command| (at, command));
        let accepted = commit_accepted(&mut held, commands, request.token, accepted).await?;
        if accepted.repeated {
            return Ok(accepted);
        }
        if let Some(execution) = &stops {
            live.stop(execution);
        }
        self.stop_children(children);
        self.abandon(abandoned);
        admitted.resolve(live);
        self.ensure_worker(live, &mut held)?;
        drop(held);
        self.wake_later(live, waiting_parent.as_ref(), None).await;
        Ok(accepted)
    }

    /// Decides what to do with a trigger in this state of the thread (EK-16).
    fn plan(
        &self,
        state: &State,
        item: NewItem,
        run: Run,
        policy: Policy,
    ) -> Result<Admission, RuntimeError> {
        let active = state.active().map(|active| active.execution.id.clone());
        let n_waiting = state.waiting().len();
        match (active, policy) {
            (Some(active), Policy::Reject) => Err(RuntimeError::Busy(active)),
            (active, Policy::Queue) if active.is_some() || n_waiting > 0 => {
                let limit = self.inner.options.queue_limit;
                if n_waiting >= limit {
                    return Err(RuntimeError::QueueFull { limit });
                }
                let max_bytes = self
                    .inner
                    .options
                    .message_bytes
                    .saturating_mul(QUEUED_MESSAGES);
                if n_waiting > 0 && waiting_bytes(state) >= max_bytes {
                    return Err(RuntimeError::QueueFull { limit: n_waiting });
                }
                let run = Payload::write(&run)?;
                Ok(Admission {
                    commands: vec![Command::Enqueue { item, run }],
                    begins: None,
                    stops: None,
                })
            }
            (active, Policy::Queue | Policy::Reject | Policy::Interrupt) => {
                let detail = Some("a newer message came".to_owned());
                let why = Interruption {
                    reason: Interruption::USER_CANCELLED.into(),
                    detail,
                };
                let end = active.is_some().then_some(Command::End {
                    ending: Ending::Stopped(why),
                });
                let start = self.start(Trigger::New(item), run)?;
                let begins = started_execution(&start);
                Ok(Admission {
                    commands: end.into_iter().chain([start]).collect(),
                    begins,
                    stops: active,
                })
            }
        }
    }

    /// Starts an execution, under the id that its run names.
    pub(crate) fn start(&self, trigger: Trigger, mut run: Run) -> Result<Command, RuntimeError> {
        let ids = &self.inner.ids;
        // A run that goes on with it has another.
        let named = run.execution_id.take();
        Ok(Command::Start {
            trigger,
            run: Some(Payload::write(&run)?),
            execution_id: named.unwrap_or_else(|| ids.mint().into()),
            reaction_item_id: ids.mint().into(),
            step_id: ids.mint().into(),
            workflow_run_id: None,
        })
    }

    /// Stops the running execution, or `execution` if that one runs, and records that. Complete
    /// output stays, and the next queued message starts. If nothing runs, open calls of the thread
    /// are closed. If `execution` is set, that happens only for the execution that left them open.
    /// Sub-agents whose parent execution is stopped are stopped, too.
    pub async fn cancel(
        &self,
        tenant: &TenantId,
        key: &str,
        execution: Option<&ExecutionId>,
        reason: &str,
    ) -> Result<Cancelled, RuntimeError> {
        let live = self.existing(tenant, key).await?;
        let (runtime, wanted, reason) = (self.clone(), execution.cloned(), reason.to_owned());
        self.run_to_completion(async move {
            let decided = runtime.decided(&live, async || {
                let mut held = live.hold().await?;
                let state = &held.core()?.state;
                let active = state.active().map(|active| active.execution.id.clone());
                let waits = state.open().map(|open| &open.execution.id);
                if let Some(wanted) = &wanted
                    && active.as_ref().or(waits) != Some(wanted)
                {
                    return Err(RuntimeError::NotRunning(wanted.clone()));
                }
                let why = Interruption {
                    reason: reason.clone(),
                    detail: None,
                };
                let mut active = active;
                if let Some(id) = &active {
                    runtime
                        .end(&live, &mut held, id, Ending::Stopped(why))
                        .await?;
                } else {
                    active = runtime.withdraw(&live, &mut held, why).await?;
                }
                Ok(Cancelled {
                    execution_id: active,
                    seq: held.core()?.tail,
                })
            });
            decided.await
        })
        .await
    }

    /// Whether this process starts the next queued trigger at the end of an execution. Without a slot it
    /// leaves the trigger to any node that has one.
    fn starts_next(&self, live: &Live, state: &State) -> bool {
        let Some(next) = state.waiting().next() else {
            return false;
        };
        let needs_slot = Run::of(Some(&next.run)).parent.is_none();
        let has_slot = live.occupied.has_slot() || !needs_slot;
        !self.inner.shutdown.is_cancelled() && (has_slot || !self.inner.store.is_shared())
    }

    /// Ends an execution and starts the next queued one, in one transaction.
    pub(crate) async fn end(
        &self,
        live: &Arc<Live>,
        held: &mut LockedThread<'_>,
        execution: &ExecutionId,
        ending: Ending,
    ) -> Result<(), RuntimeError> {
        let state = &held.core()?.state;
        let children = StoppedChildren::of(state, reason_of(&ending));
        let abandoned = Abandoned::of(state);
        let active = state.active();
        let parent = active.and_then(|it| Run::of(it.execution.run.as_ref()).parent);
        let trigger = active.and_then(|it| it.trigger.clone());
        self.wake_parents(live, parent.as_ref(), trigger.as_ref())
            .await?;
        let mut commands = vec![(None, Command::End { ending })];
        if self.starts_next(live, &held.core()?.state) {
            let start = self.start_waiting(&held.core()?.state, None)?;
            commands.push((None, start));
        }
        held.core()?.generation += 1;
        held.commit(commands, None).await?;
        live.stop(execution);
        self.stop_children(children);
        self.abandon(abandoned);
        self.ensure_worker(live, held)
    }
}

/// The size of the queued messages, in bytes.
fn waiting_bytes(state: &State) -> usize {
    let contents = state.waiting().filter_map(|it| it.item.content.as_ref());
    contents.map(|content| content.text().len()).sum()
}

/// The commands to write for a trigger, and the executions that they start and stop.
struct Admission {
    commands: Vec<Command>,
    begins: Option<ExecutionId>,
    stops: Option<ExecutionId>,
}

impl Admission {
    /// Inserts commands before the others, but after the one that stops an execution, which has not
    /// seen them.
    fn begin_with(&mut self, first: impl Iterator<Item = Command>) {
        let place = usize::from(self.stops.is_some());
        self.commands.splice(place..place, first);
    }
}

pub(crate) fn started_execution(command: &Command) -> Option<ExecutionId> {
    if let Command::Start { execution_id, .. } = command {
        return Some(execution_id.clone());
    }
    None
}

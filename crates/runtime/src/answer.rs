//! Answers from outside to the open calls of a thread.

use crate::children::StoppedChildren;
use crate::error::RuntimeError;
use crate::gate::{Preconditions, judged};
use crate::live::{Live, LockedThread};
use crate::react::started_execution;
use crate::repeat::commit_accepted;
use crate::request::{Accepted, AnswerRequest, for_others};
use crate::runtime::Runtime;
use crate::thread_page::{PageRequest, Position};
use interop::options::RunOptions;
use interop::parts::{StepResponse, ToolPart};
use jiff::Timestamp;
use serde_json::json;
use std::sync::Arc;
use store::{Filter, ParentRun, Run, StoreError, TenantId};
use timeline::{
    Answer, AnswerContent, Command, Ending, Entry, ExecutionId, Interruption, Open, OpenCall,
    OpenKind, Payload, Rejected, Seq, State, ThreadId, Transcript, Trigger,
};

/// Number of posted messages, from a thread's end, that are searched for a call that is no longer
/// open. It bounds the cost of a repeated answer on a long thread.
const N_LOOKED_AT: usize = 50;

impl Runtime {
    /// The calls of a thread that wait for an outside answer, the execution that left them open,
    /// and the log's last event. None while an execution runs.
    pub async fn open_calls(
        &self,
        tenant: &TenantId,
        key: &str,
    ) -> Result<(Option<Open>, Seq), RuntimeError> {
        let (state, tail) = self.state(tenant, key).await?;
        Ok((state.open().cloned(), tail))
    }

    /// Fails if an answer does not fit its waiting call.
    fn check(&self, state: &State, request: &AnswerRequest) -> Result<(), RuntimeError> {
        state.check_answers(&request.item)?;
        let (run, calls) = waiting_run(state);
        let agent = run.agent.as_deref();
        let reactor = self.inner.reactors.find(agent);
        let unknown = || RuntimeError::UnknownAgent(agent.unwrap_or_default().to_owned());
        let reactor = reactor.ok_or_else(unknown)?;
        let answers = Answer::read(request.item.content.as_ref()).map_err(Rejected::from)?;
        if let Some(own) = answers
            .iter()
            .find(|it| it.content == AnswerContent::Resumed)
        {
            let (call, kind) = (own.tool_call_id.clone(), OpenKind::Child);
            return Err(Rejected::WrongAnswer { call, kind }.into());
        }
        Ok(reactor.check(&run, calls, &answers)?)
    }

    /// Accepts answers to open calls. When this returns, they are durable and their execution is
    /// started or queued. Answers may arrive in any order, one by one, in any process. An answer
    /// that does not fit is refused, and nothing is written.
    pub async fn answer(&self, request: AnswerRequest) -> Result<Accepted, RuntimeError> {
        self.answer_on(request, Preconditions::default()).await
    }

    /// Answers open calls under preconditions. A gate validates what the request adds to the answers.
    pub async fn answer_on(
        &self,
        request: AnswerRequest,
        terms: Preconditions,
    ) -> Result<Accepted, RuntimeError> {
        let runtime = self.clone();
        self.run_to_completion(async move { runtime.take_answer(request, &terms).await })
            .await
    }

    async fn take_answer(
        &self,
        request: AnswerRequest,
        terms: &Preconditions,
    ) -> Result<Accepted, RuntimeError> {
        if self.inner.shutdown.is_cancelled() {
            return Err(RuntimeError::ShuttingDown);
        }
        let live = self.existing(&request.tenant, &request.key).await?;
        if let Some(gate) = &terms.gate {
            gate.prepare(&live.thread, live.end()).await?;
        }
        self.decided(&live, async || {
            self.answer_once(&live, request.clone(), terms).await
        })
        .await
    }

    async fn answer_once(
        &self,
        live: &Arc<Live>,
        request: AnswerRequest,
        terms: &Preconditions,
    ) -> Result<Accepted, RuntimeError> {
        let mut held = live.hold().await?;
        let token = request.token.as_ref();
        if let Some(first) = self.answered_before(live, &mut held, token).await? {
            return Ok(first);
        }
        if let Some(seq) = terms.after {
            self.check_last(live, &mut held, seq).await?;
        }
        let mut at = None;
        if let Some(gate) = &terms.gate {
            let mut said = request.item.attached_messages_of();
            at = Some(judged(live, &mut held, gate.as_ref(), &mut said).await?);
        }
        let core = held.core()?;
        if let Err(refused) = self.check(&core.state, &request) {
            drop(held);
            let RuntimeError::Rejected(Rejected::NotOpen(call)) = refused else {
                return Err(refused);
            };
            let (before, n) = (Position::END, N_LOOKED_AT);
            let stretch = PageRequest::Before { before, n };
            let read =
                self.page_with_removed(&request.tenant, &request.key, stretch, Filter::Facts);
            return Err(became_of(call, &read.await?.transcript).into());
        }
        let (begun_with, _) = waiting_run(&core.state);
        let parent = begun_with.parent.clone();
        let run = match request.run {
            // Whoever waits for the run does so however it goes on, and it stays its agent's.
            Some(run) => Run {
                agent: begun_with.agent,
                handoffs: begun_with.handoffs,
                parent: begun_with.parent,
                ..run
            },
            None => for_others(begun_with),
        };
        let waits = core.state.active().is_some() || core.state.waiting().len() > 0;
        let limit = self.inner.options.queue_limit;
        if waits && core.state.waiting().len() >= limit {
            return Err(RuntimeError::QueueFull { limit });
        }
        let admitted = if waits {
            self.admit_trigger(live)?
        } else {
            let model = self.inner.reactors.model(&run);
            self.admit_run(live, model.as_deref())?
        };
        let after = core.tail;
        let item_id = request.item.id.clone();
        let named = run.execution_id.clone();
        let command = if waits {
            Command::Enqueue {
                item: request.item,
                run: Payload::write(&run)?,
            }
        } else {
            self.start(Trigger::New(request.item), run)?
        };
        let accepted = Accepted {
            thread_id: live.thread.clone(),
            item_id,
            execution_id: started_execution(&command).or(named),
            after,
            queued: waits,
            repeated: false,
        };
        let commands = [(at, command)];
        let accepted = commit_accepted(&mut held, commands, request.token, accepted).await?;
        if accepted.repeated {
            return Ok(accepted);
        }
        admitted.resolve(live);
        self.ensure_worker(live, &mut held)?;
        drop(held);
        let answer = Some(&accepted.item_id);
        self.wake_later(live, parent.as_ref(), answer).await;
        Ok(accepted)
    }

    /// Closes the calls for whose answers a thread waits. It does so by an execution that is
    /// stopped when it starts. Returns none if the thread waits for none.
    pub(crate) async fn withdraw(
        &self,
        live: &Arc<Live>,
        held: &mut LockedThread<'_>,
        why: Interruption,
    ) -> Result<Option<ExecutionId>, RuntimeError> {
        self.withdraw_and(live, held, why, Vec::new()).await
    }

    /// Where the log of a parent ends now, if there is one.
    async fn parent_end(
        &self,
        parent: Option<&ParentRun>,
    ) -> Result<Vec<(ThreadId, Seq)>, RuntimeError> {
        let Some(parent) = parent else {
            return Ok(Vec::new());
        };
        match self.inner.store.row(&parent.thread_id).await {
            Ok(row) => Ok(vec![(row.thread.id, row.tail)]),
            Err(StoreError::NotFound) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    /// Withdraws the open calls and appends more in one transaction. Writes nothing if the thread
    /// has no open calls.
    pub(crate) async fn withdraw_and(
        &self,
        live: &Arc<Live>,
        held: &mut LockedThread<'_>,
        why: Interruption,
        then: Vec<(Option<Timestamp>, Command)>,
    ) -> Result<Option<ExecutionId>, RuntimeError> {
        let state = &held.core()?.state;
        let Some(open) = state.open().filter(|_| state.waiting().len() == 0) else {
            return Ok(None);
        };
        let children = StoppedChildren::of(state, &why.reason);
        let run = Run::of(open.execution.run.as_ref());
        let parent = run.parent.clone();
        let asked = open.execution.trigger_item_id.clone();
        // By what is stopped, views tell this from a run of its own.
        let mut stop = self.reference_to(&asked);
        stop.content = Some(json!({"itemId": asked, "cancels": open.execution.id}).into());
        let start = self.start(Trigger::New(stop), run)?;
        let execution = started_execution(&start);
        let end = Command::End {
            ending: Ending::Stopped(why),
        };
        held.core()?.generation += 1;
        let own = [(None, start), (None, end)].into_iter().chain(then);
        let commands: Vec<_> = own.collect();
        loop {
            // A parent that falls asleep after this look is woken by nobody, so then it is looked at again.
            let unmoved = self.parent_end(parent.as_ref()).await?;
            self.wake_parents(live, parent.as_ref(), None).await?;
            match held.commit_unmoved(commands.clone(), unmoved).await {
                Err(RuntimeError::Store(StoreError::Moved { .. })) => {}
                done => {
                    done?;
                    break;
                }
            }
        }
        self.stop_children(children);
        Ok(execution)
    }
}

/// The parameters of the execution that left the calls open, and the calls.
pub(crate) fn waiting_run(state: &State) -> (Run, &[OpenCall]) {
    let (execution, calls) = match (state.active(), state.open()) {
        (Some(active), _) => (&active.execution, active.open_calls.as_slice()),
        (None, Some(open)) => (&open.execution, open.calls.as_slice()),
        (None, None) => return (Run::default(), &[]),
    };
    let mut run = Run::of(execution.run.as_ref());
    if let Some(params) = &mut run.params {
        RunOptions::keep_for_continuation(params);
    }
    (run, calls)
}

/// Why a call is not open: it was answered, it was closed, or it does not occur in the searched
/// part of its thread.
fn became_of(call: String, transcript: &Transcript) -> Rejected {
    let mut was_open = false;
    let steps = transcript.entries.iter().flat_map(|entry| match entry {
        Entry::Reaction(reaction) => reaction.steps.as_slice(),
        Entry::Item(_) => &[],
    });
    for step in steps {
        let response = step.response.as_ref();
        let said: StepResponse = response
            .and_then(|(said, _)| said.read().ok())
            .unwrap_or_default();
        let tools = step
            .parts
            .iter()
            .filter_map(|part| ToolPart::read(&part.part));
        for tool in tools.filter(|tool| tool.tool_call_id == call) {
            if said.answers || tool.is_answered() {
                return Rejected::AnsweredAlready(call);
            }
        }
        let open = OpenCall::list(step.step.outcome.open_calls.as_ref());
        was_open |= open.iter().any(|open| open.tool_call_id == call);
    }
    if was_open {
        Rejected::Superseded(call)
    } else {
        Rejected::NotOpen(call)
    }
}

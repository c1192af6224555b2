//! Answers to pending calls, and the runs that continue with them.

use super::threads::{Words, known_already, position};
use crate::aitp::MessagePost;
use crate::error::ApiError;
use crate::routes::answers::item as answers_item;
use crate::state::OpenStream;
use crate::threads::{ThreadRef, answered};
use futures_util::StreamExt as _;
use interop::langgraph::{
    ErrorKind, InterruptedCall, MESSAGE_METADATA, RequestError, Resume, RunCreate,
};
use interop::options::RunOptions;
use interop::parts::has_call;
use interop::run::{RunSelector, Selected};
use runtime::{
    Accepted, Addressed, AnswerRequest, Filter, PageRequest, Position, RequestToken, Run,
    RuntimeError, ThreadContinuation, Until, continued_run,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use timeline::{ExecutionId, Seq, ThreadStatus, attached_message};

/// Time limit for a thread to continue after its sub-agent was answered.
const GOES_ON: Duration = Duration::from_secs(30);
/// Number of a thread's last messages that are searched for a call which an answer names and which is
/// over.
const PAGE: usize = 50;

/// The effect of an accepted request.
pub(super) enum Admitted {
    /// The thread continues with the answer.
    Here(Accepted),
    /// A sub-agent's thread has the answer; this thread continues when the sub-agent is done.
    Beneath(ThreadContinuation),
}

impl Admitted {
    /// The run that continues, and the event before it. None if it is not known yet.
    pub(super) fn run(&self) -> Option<(RunSelector, Seq)> {
        match self {
            Self::Here(accepted) => Some((
                RunSelector::answering(accepted.item_id.clone()),
                accepted.after,
            )),
            Self::Beneath(ThreadContinuation {
                item: Some(item),
                before,
                ..
            }) => Some((RunSelector::answering(item.clone()), *before)),
            Self::Beneath(ThreadContinuation {
                item: None,
                execution,
                before,
            }) => {
                let execution = execution.clone()?;
                Some((RunSelector::running(Some(execution)), *before))
            }
        }
    }
}

/// The result of an earlier request with the same token, if any. An answer for a sub-agent is stored on
/// the sub-agent's thread. If the answer names its interrupt, this costs one look-up there. If it names
/// neither interrupt nor call, the server searches all answers to sub-agents, and reads the logs that
/// list these.
pub(super) async fn known(
    found: &ThreadRef,
    create: &RunCreate,
    token: Option<&RequestToken>,
) -> Result<Option<Admitted>, ApiError> {
    let (runtime, key) = (found.runtime(), found.key());
    let Some(token) = token else {
        return Ok(None);
    };
    let known = answered(runtime, found.id(), Some(token)).await?;
    if let Some(accepted) = known {
        return Ok(Some(Admitted::Here(accepted)));
    }
    if !create.is_resumed() {
        return Ok(None);
    }
    let mut named = create.resume.as_ref().and_then(Resume::named);
    if let [result, ..] = create.input.results.as_slice() {
        named = named.or(Some((&result.tool_call_id, None)));
    }
    let (call, thread_key) = named.unwrap_or_default();
    let mut by = found.addressed(call, thread_key, Some(token)).await?;
    if by == Addressed::OtherThread {
        // What looked like the id of an interrupt is none.
        by = found.addressed(call, None, Some(token)).await?;
    }
    let target = match by {
        Addressed::To(target) if target != key => target,
        Addressed::To(_) | Addressed::Ambiguous | Addressed::OtherThread => return Ok(None),
    };
    let below = found.descendant(&target).find().await?;
    let known = answered(runtime, below.id(), Some(token)).await?;
    let Some(accepted) = known else {
        return Ok(None);
    };
    let goes_on = found.has_continuation(&target, &accepted).await?;
    Ok(Some(Admitted::Beneath(goes_on)))
}

/// A request's answers to the pending calls.
pub(super) fn resumed(
    create: &RunCreate,
    standing: &ResumeContext,
) -> Result<Resume, RequestError> {
    let ResumeContext { waiting, over } = standing;
    match &create.resume {
        Some(answers) => Resume::of_answers(answers, (waiting, over)),
        None => Resume::of_results(&create.input.results, waiting),
    }
}

/// The context for reading a request's answers.
#[derive(Default)]
pub(super) struct ResumeContext {
    /// The calls that may be answered.
    waiting: Vec<InterruptedCall>,
    /// Call ids that the answers may name and that are no longer pending.
    over: BTreeSet<String>,
}

impl ResumeContext {
    /// Costs time proportional to the pending calls. Reads one page of the thread more if an answer has
    /// members that are neither interrupts nor texts.
    async fn of(found: &ThreadRef, create: &RunCreate) -> Result<Self, ApiError> {
        let key = found.key();
        let calls = found.unanswered().await?;
        let waiting = calls.iter();
        let waiting = waiting.filter_map(|it| InterruptedCall::of(key, &it.address.key, &it.call));
        let waiting: Vec<InterruptedCall> = waiting.collect();
        let unknown = create.resume.as_ref();
        let unknown = unknown.map_or_else(Vec::new, |it| Resume::unknown(it, &waiting));
        // A sub-agent's thread is called after the one that it works for.
        let beneath = format!("@{key}/");
        let (mut over, own): (BTreeSet<&str>, BTreeSet<&str>) =
            unknown.into_iter().partition(|id| id.contains(&beneath));
        if !own.is_empty() {
            let before = Position::END;
            let page = PageRequest::Before { before, n: PAGE };
            let piece = found.page(page, Filter::Facts);
            let transcript = piece.await?.transcript;
            over.extend(own.into_iter().filter(|id| has_call(&transcript, id)));
        }
        let over = over.into_iter().map(str::to_owned).collect();
        Ok(Self { waiting, over })
    }
}

/// Answers pending calls.
pub(super) async fn resume(
    speech: &MessagePost<'_>,
    found: &ThreadRef,
    create: &RunCreate,
    said: Words,
    token: Option<RequestToken>,
) -> Result<Admitted, ApiError> {
    let (runtime, tenant, key) = (found.runtime(), found.tenant(), found.key());
    let resume = resumed(create, &ResumeContext::of(found, create).await?)?;
    let mut keys = resume
        .answers
        .iter()
        .map(|answer| answer.thread_key.as_str());
    let target = keys.next().unwrap_or(key).to_owned();
    if keys.any(|key| key != target) {
        let what = "the answers of one run are for calls of one thread";
        return Err(RequestError::at("/command/resume", what).into());
    }
    let mut parts: Vec<Value> = resume.answers.into_iter().map(|it| it.part).collect();
    let Words {
        items,
        positions: places,
    } = said;
    parts.extend(items.iter().map(|item| attached_message(item).value()));
    let metadata = json!({"tenant": tenant.as_str(), "via": MESSAGE_METADATA});
    let (state, _) = found.state().await?;
    let active = state.active().map(|active| &active.execution);
    let left = active.or(state.open().map(|open| &open.execution));
    let run = match left.filter(|_| target == key) {
        Some(left) => Some(run_after_answers(
            create,
            continued_run(left.run.as_ref()),
            runtime.mint(),
        )?),
        None => None,
    };
    let request = AnswerRequest {
        tenant: tenant.clone(),
        key: target.clone(),
        item: answers_item(runtime.mint(), Value::Array(parts).into(), metadata),
        run,
        token,
    };
    let accepted = speech
        .answer(request, (None, None), |n| position(&places, n))
        .await;
    let accepted = accepted.map_err(known_already)?;
    if target == key {
        return Ok(Admitted::Here(accepted));
    }
    let goes_on = found.has_continuation(&target, &accepted).await?;
    Ok(Admitted::Beneath(goes_on))
}

/// The continuation of the run with the calls: the former options, a new execution id and this request's
/// own notes.
fn run_after_answers(create: &RunCreate, began: Run, id: String) -> Result<Run, ApiError> {
    let mut options: RunOptions = match &began.params {
        Some(params) => serde_json::from_value(params.clone()).map_err(RuntimeError::from)?,
        None => RunOptions::default(),
    };
    create.note(&mut options);
    let params = serde_json::to_value(&options).map_err(RuntimeError::from)?;
    Ok(Run {
        max_steps: create.max_steps.or(began.max_steps),
        params: Some(params),
        execution_id: Some(id.into()),
        ..began
    })
}

/// Waits for the run that continues the thread after its sub-agent was answered. The thread is not
/// locked meanwhile.
pub(super) async fn ancestors(
    found: &ThreadRef,
    goes_on: ThreadContinuation,
    open: Option<&OpenStream>,
) -> Result<Accepted, ApiError> {
    let run = tokio::select! {
        biased;
        why = unwanted(open) => {
            return Err(why.unwrap_or(RuntimeError::ShuttingDown.into()));
        }
        begun = begun(found, goes_on) => begun?,
    };
    let run = super::run::Run::find(found, run.as_str()).await?;
    Ok(Accepted {
        thread_id: found.id().clone(),
        item_id: run.record.trigger,
        execution_id: Some(run.record.id),
        after: run.after,
        queued: false,
        repeated: false,
    })
}

/// The execution of the run. If it is not known yet, waits until it starts: the one that answers the
/// item, or else the next one.
async fn begun(found: &ThreadRef, goes_on: ThreadContinuation) -> Result<ExecutionId, ApiError> {
    if let Some(known) = goes_on.execution {
        return Ok(known);
    }
    let mut run = match goes_on.item {
        Some(item) => RunSelector::answering(item),
        None => RunSelector::running(None),
    };
    let follow = found.follow(goes_on.before, Until::Forever);
    let mut follow = follow.await?;
    let (state, _) = found.state().await?;
    let closed = || {
        let what = "the answer was stored, but the thread is closed and does not continue with it";
        ApiError::from(RequestError::new(ErrorKind::Conflict, what))
    };
    if state
        .thread()
        .is_some_and(|it| it.status == ThreadStatus::Closed)
    {
        return Err(closed());
    }
    let begins = async {
        while let Some(next) = follow.next().await {
            if run.select(&next?.record.event) == Selected::Never {
                return Err(closed());
            }
            if let Some(execution) = run.execution() {
                return Ok(Some(execution.clone()));
            }
        }
        Ok(None)
    };
    let late = || {
        let what = "the answer was taken, and the thread has not gone on yet: see its runs";
        RequestError::new(ErrorKind::Conflict, what)
    };
    let begun = tokio::time::timeout(GOES_ON, begins).await;
    Ok(begun.unwrap_or(Ok(None))?.ok_or_else(late)?)
}

/// Waits until the request's stream must end.
async fn unwanted(open: Option<&OpenStream>) -> Option<ApiError> {
    match open {
        Some(open) => open.unwanted().await,
        None => std::future::pending().await,
    }
}

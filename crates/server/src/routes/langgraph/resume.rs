//! Answers to calls that wait, and the runs that go on with them.

use super::threads::{items, known_already, place, places};
use super::{Found, asked};
use crate::aitp::Speech;
use crate::error::ApiError;
use crate::routes::answers::{above as beneath, item as answers_item};
use crate::routes::repeated;
use crate::run_events::RunEvents;
use crate::state::{Api, OpenStream};
use futures_util::StreamExt as _;
use interop::langgraph::{
    Asked, ErrorKind, MESSAGE_METADATA, RequestError, Resume, RunCreate, Said,
};
use interop::options::RunOptions;
use runtime::{Accepted, Addressed, AnswerRequest, Run, RuntimeError, Until};
use serde_json::{Value, json};
use std::time::Duration;
use timeline::{ExecutionId, Seq, beside};

/// How long a thread may take to go on after its sub-agent was answered.
const GOES_ON: Duration = Duration::from_secs(30);

/// What a request was taken as.
pub(super) enum Taken {
    /// The thread goes on with it.
    Here(Accepted),
    /// A sub-agent was answered, and the thread goes on in this run, which begins after this event.
    Beneath(RunEvents, Seq),
}

/// What a request was taken as that was sent before under the same token. An answer for a sub-agent was taken on
/// that one's thread, so that an answer may cost a look at each of the thread's sub-agents.
pub(super) async fn known(
    api: &Api,
    found: &Found,
    create: &RunCreate,
    token: Option<&str>,
) -> Result<Option<Taken>, ApiError> {
    let (runtime, tenant, key) = (&found.runtime, found.tenant(), found.key());
    let Some(token) = token else {
        return Ok(None);
    };
    let known = repeated::accepted(runtime, &found.row.thread.id, Some(token)).await?;
    if let Some(accepted) = known {
        return Ok(Some(Taken::Here(accepted)));
    }
    if !create.is_resumed() {
        return Ok(None);
    }
    // An answer need not name its call, but its token tells who has taken it.
    let by = runtime
        .addressed(tenant, key, "", None, Some(token))
        .await?;
    let target = match by {
        Addressed::To(target) if target != key => target,
        Addressed::To(_) | Addressed::Ambiguous | Addressed::Elsewhere => return Ok(None),
    };
    let row = runtime.find(tenant, &target).await?;
    let known = repeated::accepted(runtime, &row.thread.id, Some(token)).await?;
    let Some(accepted) = known else {
        return Ok(None);
    };
    let (run, before) = beneath::went_on(api, tenant, key, &target, &accepted).await?;
    Ok(Some(Taken::Beneath(run, before)))
}

/// The answers of a request, for what waits.
pub(super) fn resumed(create: &RunCreate, waiting: &[Asked]) -> Result<Resume, RequestError> {
    match &create.resume {
        Some(resume) => Resume::read(resume, "/command/resume", waiting),
        None => Resume::of_results(&create.input.results, waiting),
    }
}

/// Answers calls that wait.
pub(super) async fn resume(
    speech: &Speech<'_>,
    found: &Found,
    create: &RunCreate,
    said: Vec<Said>,
    token: Option<String>,
) -> Result<Taken, ApiError> {
    let (runtime, tenant, key) = (&found.runtime, found.tenant(), found.key());
    let waiting = asked(found).await?;
    let resume = resumed(create, &waiting)?;
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
    let places = places(&said);
    let said = items(runtime, said)?;
    parts.extend(said.iter().map(|item| beside(item).value()));
    let metadata = json!({"tenant": tenant.as_str(), "via": MESSAGE_METADATA});
    let (state, tail) = runtime.state(tenant, key).await?;
    let running = state.active().map(|active| active.execution.id.clone());
    let run = match state.open().filter(|_| target == key) {
        Some(open) => Some(goes_on(
            create,
            Run::of(open.execution.run.as_ref()),
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
        .answer(request, (None, None), |n| place(&places, n))
        .await;
    let accepted = accepted.map_err(known_already)?;
    if target == key {
        return Ok(Taken::Here(accepted));
    }
    Ok(Taken::Beneath(RunEvents::running(running), tail))
}

/// How the run goes on that left the calls: as it began, under a new name, and as this request notes it.
fn goes_on(create: &RunCreate, began: Run, id: String) -> Result<Run, ApiError> {
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

/// The run in which a thread goes on whose sub-agent was answered. The thread's turn is not held meanwhile.
pub(super) async fn above(
    found: &Found,
    (mut run, before): (RunEvents, Seq),
    open: Option<&OpenStream>,
) -> Result<Accepted, ApiError> {
    let (tenant, key) = (found.tenant(), found.key());
    let follow = found.runtime.follow(tenant, key, before, Until::Forever);
    let mut follow = follow.await?;
    let begun = async {
        while run.execution().is_none() {
            let Some(next) = follow.next().await else {
                return Ok(None);
            };
            run.see(&next?.record.event);
        }
        Ok::<_, ApiError>(run.execution().cloned())
    };
    let begun: Option<ExecutionId> = tokio::select! {
        biased;
        why = unwanted(open) => {
            return Err(why.unwrap_or(RuntimeError::ShuttingDown.into()));
        }
        begun = tokio::time::timeout(GOES_ON, begun) => begun.unwrap_or(Ok(None))?,
    };
    let late = || {
        let what = "the answer was taken, and the thread has not gone on yet: see its runs";
        RequestError::new(ErrorKind::Conflict, what)
    };
    let run = super::run::Run::find(found, begun.ok_or_else(late)?.as_str()).await?;
    Ok(Accepted {
        thread_id: found.row.thread.id.clone(),
        item_id: run.record.trigger,
        execution_id: Some(run.record.id),
        after: run.after,
        queued: false,
        repeated: false,
    })
}

/// Waits until the request's stream has to end.
async fn unwanted(open: Option<&OpenStream>) -> Option<ApiError> {
    match open {
        Some(open) => open.unwanted().await,
        None => std::future::pending().await,
    }
}

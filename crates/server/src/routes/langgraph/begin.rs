//! Runs that begin: with what is said, or with what answers calls that wait.

use super::threads::{items, known_already, made};
use super::{Found, asked, state};
use crate::auth::Caller;
use crate::error::ApiError;
use crate::routes::answers::item as answers_item;
use crate::routes::check_named_key;
use crate::routes::messages::token_of;
use crate::routes::responses::passing::Passing;
use crate::state::Api;
use futures_util::StreamExt as _;
use http::HeaderMap;
use interop::langgraph::{
    ErrorKind, MESSAGE_METADATA, Multitask, RequestError, Resume, RunCreate, Said, Speaks,
    ThreadCreate, merged_metadata,
};
use interop::options::RunOptions;
use runtime::{Accepted, AnswerRequest, NewThreadRequest, Policy, React, Run, RuntimeError, Until};
use serde_json::{Map, Value, json};
use std::time::Duration;
use timeline::{Event, ExecutionId, ItemId, NewItem, Role, Seq, ThreadUpdate, beside};

/// How long a thread may take to go on after its sub-agent was answered.
const GOES_ON: Duration = Duration::from_secs(30);

/// A run that has begun, or waits for its turn.
pub(super) struct Begun {
    pub(super) found: Found,
    pub(super) id: ExecutionId,
    /// What it answers.
    pub(super) trigger: ItemId,
    pub(super) is_resumed: bool,
    /// The last event before its own.
    pub(super) after: Seq,
    /// The thread that is deleted when this is dropped and the run is over.
    pub(super) passing: Option<Passing>,
}

/// The thread that a run is to begin on: the one that is named, one that is made because the request asks for it, or
/// where none is named a new one.
pub(super) async fn thread_for(
    api: &Api,
    caller: &Caller,
    named: Option<&str>,
    asked: &RunCreate,
) -> Result<(Found, Option<Passing>), ApiError> {
    if let Some(id) = named {
        match Found::of(api, caller, id).await {
            Err(ApiError::LangGraph(error))
                if error.kind == ErrorKind::NotFound && asked.makes_thread =>
            {
                check_named_key(caller, Some(id), "/thread_id")?;
                let new = json!({ "thread_id": id, "if_exists": "do_nothing" });
                let (found, _) = made(api, caller, &ThreadCreate::read(&new)?).await?;
                return Ok((found, None));
            }
            found => return Ok((found?, None)),
        }
    }
    check_named_key(caller, None, "")?;
    let keeps = asked.keeps.unwrap_or_default();
    let runtime = if keeps {
        api.runtime()
    } else {
        api.app().passing()
    };
    let runtime = runtime.clone();
    let new = NewThreadRequest::default();
    let (row, _) = runtime.get_or_create(&caller.tenant, new).await?;
    let found = Found { runtime, row };
    let passing = (!keeps).then(|| Passing {
        runtime: found.runtime.clone(),
        tenant: found.tenant().clone(),
        key: found.key().to_owned(),
    });
    Ok((found, passing))
}

/// Begins a run.
pub(super) async fn begin(
    api: &Api,
    caller: &Caller,
    headers: &HeaderMap,
    named: Option<&str>,
    mut asked: RunCreate,
) -> Result<Begun, ApiError> {
    let agent = agent(api, &asked)?;
    let token = token_of(headers, "langgraph.runs")?;
    let (found, passing) = thread_for(api, caller, named, &asked).await?;
    let _turn = api.turns().of(&found.row.thread.id).await;
    let answered = match &token {
        Some(token) => {
            let store = found.runtime.store();
            store.answer(&found.row.thread.id, token).await?
        }
        None => None,
    };
    let is_resumed = asked.resume.is_some() || !asked.input.results.is_empty();
    let accepted = if let Some(answer) = answered {
        // A repetition is answered as the first request was.
        serde_json::from_str(&answer).map_err(RuntimeError::from)?
    } else {
        state::check_last(&found, asked.checkpoint.as_deref()).await?;
        let said = std::mem::take(&mut asked.input.said);
        let accepted = if is_resumed {
            resume(&found, &asked, said, token).await?
        } else {
            say(&found, &asked, said, agent.clone(), token).await?
        };
        // Only now, for a run that is refused changes nothing; and one that has begun goes on without it.
        if asked.speaks == Speaks::LangGraph
            && let Err(error) = note_agent(&found, &agent).await
        {
            let error = crate::error::told(&error);
            tracing::warn!(error, "a thread's agent could not be noted on it");
        }
        accepted
    };
    let unnamed = || RequestError::new(ErrorKind::Conflict, "the run has no id yet: ask again");
    Ok(Begun {
        id: accepted.execution_id.ok_or_else(unnamed)?,
        trigger: accepted.item_id,
        is_resumed,
        after: accepted.after,
        found,
        passing,
    })
}

/// The name of the agent that answers.
fn agent(api: &Api, asked: &RunCreate) -> Result<String, ApiError> {
    let agents = api.app().agents();
    let found = match &asked.agent {
        Some(name) => agents.into_iter().find(|agent| agent.name == *name),
        None => agents.into_iter().find(|agent| agent.is_default),
    };
    let named = asked.agent.as_deref().unwrap_or_default();
    found
        .map(|agent| agent.name)
        .ok_or_else(|| RequestError::no_agent(named).into())
}

/// Notes on a thread which agent it is with: by that, clients find their threads again.
async fn note_agent(found: &Found, agent: &str) -> Result<(), ApiError> {
    let (runtime, tenant) = (&found.runtime, found.tenant());
    let row = runtime.find_by_id(tenant, &found.row.thread.id).await?;
    let kept = row.thread.metadata.as_ref();
    if kept.is_some_and(|kept| kept.str_field("graph_id").is_some()) {
        return Ok(());
    }
    let noted = ["graph_id", "assistant_id"].map(|key| (key.to_owned(), agent.into()));
    let metadata = merged_metadata(kept, Map::from_iter(noted));
    let update = ThreadUpdate {
        title: None,
        metadata: Some(Some(metadata)),
    };
    runtime.update_thread(tenant, found.key(), update).await?;
    Ok(())
}

fn policy(asked: &RunCreate) -> Policy {
    match asked.multitask {
        Multitask::Reject => Policy::Reject,
        Multitask::Interrupt => Policy::Interrupt,
        Multitask::Enqueue => Policy::Queue,
    }
}

/// Says something, or has the agent go on with what there is.
async fn say(
    found: &Found,
    asked: &RunCreate,
    said: Vec<Said>,
    agent: String,
    token: Option<String>,
) -> Result<Accepted, ApiError> {
    let runtime = &found.runtime;
    let mut before = items(found, said)?;
    let is_user = before
        .last()
        .is_some_and(|item| item.role == Some(Role::User));
    let item = match before.pop_if(|_| is_user) {
        Some(item) => item,
        None => NewItem::reference(runtime.mint(), before.last().map(|item| &item.id)),
    };
    let params = serde_json::to_value(asked.options()).map_err(RuntimeError::from)?;
    let react = React {
        rewind: None,
        tenant: found.tenant().clone(),
        key: found.key().to_owned(),
        before,
        item,
        run: Run {
            agent: Some(agent),
            max_steps: asked.max_steps,
            params: Some(params),
            execution_id: Some(runtime.mint().into()),
            ..Run::default()
        },
        policy: policy(asked),
        token,
        must_exist: true,
    };
    runtime.react(react).await.map_err(known_already)
}

/// Answers calls that wait.
async fn resume(
    found: &Found,
    create: &RunCreate,
    said: Vec<Said>,
    token: Option<String>,
) -> Result<Accepted, ApiError> {
    let (runtime, tenant, key) = (&found.runtime, found.tenant(), found.key());
    let waiting = asked(found).await?;
    let resume = match &create.resume {
        Some(resume) => Resume::read(resume, "/command/resume", &waiting)?,
        None => Resume::of_results(&create.input.results, &waiting)?,
    };
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
    let said = items(found, said)?;
    parts.extend(said.iter().map(|item| beside(item).value()));
    let metadata = json!({"tenant": tenant.as_str(), "via": MESSAGE_METADATA});
    let (state, tail) = runtime.state(tenant, key).await?;
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
    let accepted = runtime.answer(request).await?;
    if target == key {
        return Ok(accepted);
    }
    above(found, tail).await
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

/// The execution in which a thread goes on whose sub-agent was answered.
async fn above(found: &Found, after: Seq) -> Result<Accepted, ApiError> {
    let (tenant, key) = (found.tenant(), found.key());
    let mut follow = found
        .runtime
        .follow(tenant, key, after, Until::Forever)
        .await?;
    let begun = async {
        while let Some(next) = follow.next().await {
            let logged = next?;
            if let Event::ExecutionCreated { execution } = &logged.record.event {
                return Ok(Some(execution.clone()));
            }
        }
        Ok::<_, ApiError>(None)
    };
    let begun = tokio::time::timeout(GOES_ON, begun)
        .await
        .unwrap_or(Ok(None))?;
    let late = || {
        let what = "the answer was taken, and the thread has not gone on yet: see its runs";
        RequestError::new(ErrorKind::Conflict, what)
    };
    let execution = begun.ok_or_else(late)?;
    Ok(Accepted {
        thread_id: found.row.thread.id.clone(),
        item_id: execution.trigger_item_id,
        execution_id: Some(execution.id),
        after,
        queued: false,
        repeated: false,
    })
}

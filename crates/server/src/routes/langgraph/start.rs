//! Starting runs, with new messages or with answers to pending calls.

use super::answers::{Admitted, ResumeContext, ancestors, known, resume, resumed};
use super::disconnect::Disconnect;
use super::rollback::roll_back_active;
use super::state::{check_last, not_last};
use super::threads::{Words, known_already, made, position};
use super::{find, found};
use super::{index, resent};
use crate::aitp::MessagePost;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::idempotency::IdempotencyKey;
use crate::state::{Api, OpenStream};
use crate::threads::{Ephemeral, ThreadKey, ThreadRef, check_new_key, id_for};
use interop::langgraph::{
    ErrorKind, Multitask, RequestError, RunCreate, Speaks, ThreadCreate, merged_metadata, uuid_of,
};
use jiff::Timestamp;
use runtime::{Accepted, NewThreadRequest, Policy, ReactRequest, RequestToken, Run, RuntimeError};
use serde_json::{Map, json};
use timeline::{Command, ExecutionId, ItemId, NewItem, Role, Seq, ThreadUpdate};

/// A started or queued run.
pub(super) struct StartedRun {
    pub(super) found: ThreadRef,
    pub(super) id: ExecutionId,
    /// The item that it responds to.
    pub(super) trigger: ItemId,
    pub(super) is_resumed: bool,
    /// The last event before its own.
    pub(super) after: Seq,
    /// A temporary thread, which is deleted when this is dropped and the run is over.
    pub(super) ephemeral: Option<Ephemeral>,
    /// Cancels the run when its reader disconnects, if the request wants that.
    pub(super) disconnect: Option<Disconnect>,
}

/// The thread for a run: the named one, one created because the request allows it, or a new one if none
/// is named. A repetition with the same token finds the thread that the first request created.
async fn thread_for(
    api: &Api,
    caller: &Caller,
    named: Option<&str>,
    (asked, said, token): (&RunCreate, &Words, Option<&str>),
) -> Result<(ThreadRef, Option<Ephemeral>), ApiError> {
    if let Some(id) = named {
        return match found(api, caller, id).await {
            Err(ApiError::LangGraph(error))
                if error.kind == ErrorKind::NotFound && asked.makes_thread =>
            {
                let id = uuid_of(id).unwrap_or_else(|| id.to_owned());
                check_new_key(caller, Some(&id), "/thread_id")?;
                Ok((make(api, caller, (asked, said), Some(id)).await?, None))
            }
            found => Ok((found?, None)),
        };
    }
    check_new_key(caller, None, "")?;
    if asked.keeps {
        let key = token.map(|token| id_for(api, &[caller.tenant.as_str()], Some(token)));
        let known = match &key {
            Some(key) => find(api, caller, key).await?,
            None => None,
        };
        let found = match known {
            Some(found) => found,
            None => make(api, caller, (asked, said), key).await?,
        };
        return Ok((found, None));
    }
    let runtime = api.app().ephemeral();
    let new = NewThreadRequest::default();
    let (row, _) = runtime.get_or_create(&caller.tenant, new).await?;
    let found = ThreadRef::authorise(runtime, caller, row)?;
    let passing = Ephemeral::new(ThreadKey::clone(&found));
    Ok((found, Some(passing)))
}

/// Creates a thread for a run, after checking the run's first messages.
async fn make(
    api: &Api,
    caller: &Caller,
    (asked, said): (&RunCreate, &Words),
    key: Option<String>,
) -> Result<ThreadRef, ApiError> {
    // Nothing waits on what is not there, and it has no states.
    if asked.is_resumed() {
        resumed(asked, &ResumeContext::default())?;
    }
    if asked.checkpoint.is_some() {
        return Err(not_last().into());
    }
    let items = said.items.iter().cloned();
    let items = items.map(|item| (Timestamp::now(), Command::Record { item }));
    let mut items: Vec<_> = items.collect();
    let speech = MessagePost::new(api, caller);
    let judged = speech.begin(None, None, &mut items, |n| position(&said.positions, n));
    judged.await.map_err(known_already)?;
    let new = match key {
        Some(id) => json!({ "thread_id": id }),
        None => json!({}),
    };
    Ok(made(api, caller, &ThreadCreate::read(&new)?).await?.0)
}

/// Starts a run. If it may have to wait first, the request has its stream open.
pub(super) async fn begin(
    api: &Api,
    caller: &Caller,
    idempotency: IdempotencyKey,
    named: Option<&str>,
    (mut asked, open): (RunCreate, Option<&OpenStream>),
) -> Result<StartedRun, ApiError> {
    let agent = agent(api, &asked)?;
    let token = idempotency.token("langgraph.runs")?;
    resent::leave_out(api, caller, named, &mut asked.input).await?;
    let said = Words::read(
        api.runtime(&caller.tenant),
        std::mem::take(&mut asked.input.messages),
    )?;
    let made_for = (&asked, &said, token.as_deref());
    let (found, passing) = thread_for(api, caller, named, made_for).await?;
    let speech = match &passing {
        Some(_) => MessagePost::ephemeral(api, caller),
        None => MessagePost::new(api, caller),
    };
    let is_resumed = asked.is_resumed();
    let turn = api.turns().of(found.id()).await;
    let before = known(&found, &asked, token.as_ref()).await?;
    let is_new = before.is_none();
    let began = if let Some(known) = before {
        // A repetition is answered as the first request was.
        known
    } else {
        let last = check_last(&found, asked.checkpoint.as_deref()).await?;
        if is_resumed {
            resume(&speech, &found, &asked, said, token).await?
        } else {
            if asked.multitask == Multitask::Rollback {
                roll_back_active(&found).await?;
            }
            Admitted::Here(
                say(
                    &speech,
                    (&found, last),
                    &asked,
                    said,
                    (agent.clone(), token),
                )
                .await?,
            )
        }
    };
    // From here on: the reader may go away while it is not told of the run yet.
    let stops = began.run().filter(|_| asked.cancels_on_disconnect);
    let disconnect = stops.map(|run| Disconnect::new(api, &found, run));
    // Only now, for a run that is refused changes nothing; and one that has begun goes on without it.
    if is_new
        && asked.speaks == Speaks::LangGraph
        && asked.agent.is_some()
        && let Err(error) = note_agent(&found, &agent).await
    {
        let error = crate::error::render_error(&error);
        tracing::warn!(error, "a thread's agent could not be noted on it");
    }
    // Nobody else has to wait while a sub-agent goes on.
    drop(turn);
    let accepted = match began {
        Admitted::Here(accepted) => accepted,
        Admitted::Beneath(goes_on) => ancestors(&found, goes_on, open).await?,
    };
    let unnamed = || RequestError::new(ErrorKind::Conflict, "the run has no id yet: ask again");
    let id = accepted.execution_id.ok_or_else(unnamed)?;
    if asked.speaks == Speaks::AgentProtocol {
        index::note(&found, &id).await?;
    }
    Ok(StartedRun {
        id,
        trigger: accepted.item_id,
        is_resumed,
        after: accepted.after,
        found,
        ephemeral: passing,
        disconnect,
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

/// Stores the agent's name in a thread's metadata, because clients search their threads by it.
async fn note_agent(found: &ThreadRef, agent: &str) -> Result<(), ApiError> {
    let agent = agent.to_owned();
    let noted = found.change_thread(move |thread| {
        let before = thread.metadata.as_ref();
        if before.is_some_and(|before| before.str_field("graph_id").is_some()) {
            return ThreadUpdate::default();
        }
        let noted = ["graph_id", "assistant_id"].map(|key| (key.to_owned(), agent.clone().into()));
        ThreadUpdate {
            title: None,
            metadata: Some(Some(merged_metadata(before, Map::from_iter(noted)))),
        }
    });
    noted.await?;
    Ok(())
}

fn policy(asked: &RunCreate) -> Policy {
    match asked.multitask {
        Multitask::Reject => Policy::Reject,
        Multitask::Interrupt => Policy::Interrupt,
        Multitask::Rollback | Multitask::Enqueue => Policy::Queue,
    }
}

/// Posts messages and starts the agent; without a message, the agent continues from the thread as it is.
async fn say(
    speech: &MessagePost<'_>,
    (found, last): (&ThreadRef, Option<Seq>),
    asked: &RunCreate,
    said: Words,
    (agent, token): (String, Option<RequestToken>),
) -> Result<Accepted, ApiError> {
    let runtime = found.runtime();
    let Words {
        items: mut before,
        positions: places,
    } = said;
    let is_user = before
        .last()
        .is_some_and(|item| item.role == Some(Role::User));
    let item = match before.pop_if(|_| is_user) {
        Some(item) => item,
        None if !found.unanswered().await?.is_empty() => {
            let what =
                "the thread has pending calls: resume it with a command, or send a new message";
            return Err(RequestError::new(ErrorKind::Conflict, what).into());
        }
        None => NewItem::reference(runtime.mint(), before.last().map(|item| &item.id)),
    };
    let options = asked.options(before.iter().map(|item| item.id.as_str()));
    let params = serde_json::to_value(options).map_err(RuntimeError::from)?;
    let react = ReactRequest {
        before,
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
        ..ReactRequest::new(found.tenant().clone(), found.key(), item)
    };
    let accepted = speech.react(react, last, |n| position(&places, n)).await;
    accepted.map_err(|error| {
        if let RuntimeError::Followed(_) = error {
            not_last().into()
        } else {
            known_already(error)
        }
    })
}

//! From a request to an execution: on a thread of its own, on the one it goes on with, on a fork of
//! that, or on one that is forgotten.

use super::models::run_of;
use super::passing::Passing;
use super::past::{Found, find};
use super::refused::refused;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::protocol::{key_of, thread_of};
use crate::state::Api;
use interop::ids::CONVERSATION;
use interop::responses::{
    Continues, CreateRequest, Last, RequestError, ResponseOf, Said, transcript_until,
};
use jiff::Timestamp;
use runtime::{
    Accepted, AnswerRequest, Filter, Import, Policy, React, Run, Runtime, RuntimeError, StoreError,
    TenantId,
};
use std::collections::BTreeMap;
use timeline::{ExecutionId, Payload, Seq, Transcript};

/// A response that has begun.
pub(super) struct Begun {
    pub(super) runtime: Runtime,
    pub(super) tenant: TenantId,
    pub(super) key: String,
    pub(super) of: ResponseOf,
    /// The event before its first.
    pub(super) after: Seq,
    /// Whether an earlier request with the same token has begun it.
    pub(super) repeated: bool,
    /// Its thread, if that is not kept.
    pub(super) passing: Option<Passing>,
}

/// A response that is not kept, and can be gone on with as long as this is.
pub(super) struct Held {
    pub(super) id: String,
    pub(super) execution: ExecutionId,
    pub(super) passing: Passing,
}

/// A thread on which a response is to be made.
struct Site<'a> {
    runtime: &'a Runtime,
    tenant: &'a TenantId,
    key: &'a str,
    /// What the client calls what it goes on with.
    goes_on: &'a str,
}

/// Begins the response that is asked for. `held` is given up where the request goes on with it.
pub(super) async fn begin(
    api: &Api,
    caller: &Caller,
    request: CreateRequest,
    token: Option<String>,
    held: &mut Option<Held>,
) -> Result<Begun, ApiError> {
    let run = run_of(api.app(), request.options.clone());
    match request.continues.clone() {
        Continues::Nothing => {
            check_new(caller)?;
            anew(api, caller, &request, run?, token).await
        }
        Continues::Response { id, .. } => {
            // One that can't be gone on with as it was asked is not gone on with at all.
            if let Some(held) = held.take_if(|held| held.id == id) {
                return after_held(api, caller, request, run?, held).await;
            }
            let found = find(api, caller, &id).await?;
            let found = found.ok_or_else(|| RequestError::previous_response_not_found(&id))?;
            after(api, caller, request, run?, token, &found, &id).await
        }
        Continues::Conversation { id, .. } => {
            let row = thread_of(api, caller, CONVERSATION, &id).await?;
            let row = row.ok_or_else(|| RequestError::conversation_not_found(&id))?;
            let runtime = api.runtime();
            let site = Site {
                runtime,
                tenant: &caller.tenant,
                key: key_of(&row),
                goes_on: &id,
            };
            if request.store {
                return site.go_on(&request, run?, token).await;
            }
            if runtime
                .state(site.tenant, site.key)
                .await?
                .0
                .active()
                .is_some()
            {
                return Err(RequestError::conversation_locked(&id).into());
            }
            let past = site.transcript().await?;
            copied(api, caller, request, run?, &past).await
        }
    }
}

/// Who may touch only some threads makes none that are none of them.
pub(super) fn check_new(caller: &Caller) -> Result<(), ApiError> {
    if caller.rights.threads.is_some() {
        return Err(ApiError::ForbiddenThread);
    }
    Ok(())
}

/// What comes after a response: in its thread if it is the last one there, else in a fork of that.
async fn after(
    api: &Api,
    caller: &Caller,
    request: CreateRequest,
    run: Run,
    token: Option<String>,
    found: &Found,
    id: &str,
) -> Result<Begun, ApiError> {
    let runtime = api.runtime();
    let mut site = Site {
        runtime,
        tenant: &caller.tenant,
        key: &found.key,
        goes_on: id,
    };
    let is_known = site.knows(token.as_deref()).await?;
    if request.store && is_known {
        return site.go_on(&request, run, token).await;
    }
    let standing = found.standing(runtime).await?;
    let standing = standing.ok_or_else(|| RequestError::previous_response_not_found(id))?;
    let Some(end) = standing.end else {
        return Err(RequestError::conversation_locked(id).into());
    };
    if !request.store {
        let past = transcript_until(site.transcript().await?, &found.execution);
        let past = past.ok_or_else(|| RequestError::previous_response_not_found(id))?;
        return copied(api, caller, request, run, &past).await;
    }
    if !found.is_followed(runtime, end).await? {
        return site.go_on(&request, run, token).await;
    }
    check_new(caller)?;
    let forked = site.fork(token.clone(), end).await?;
    site.key = &forked;
    site.go_on(&request, run, token).await
}

/// What comes after a response that is not kept.
async fn after_held(
    api: &Api,
    caller: &Caller,
    request: CreateRequest,
    run: Run,
    held: Held,
) -> Result<Begun, ApiError> {
    let Held {
        id,
        execution,
        passing,
    } = held;
    let site = Site {
        runtime: &passing.runtime,
        tenant: &passing.tenant,
        key: &passing.key,
        goes_on: &id,
    };
    if request.store {
        let past = transcript_until(site.transcript().await?, &execution);
        let past = past.ok_or_else(|| RequestError::previous_response_not_found(&id))?;
        let request = request.with_past(&past)?;
        check_new(caller)?;
        return anew(api, caller, &request, run, None).await;
    }
    let begun = site.go_on(&request, run, None).await?;
    Ok(Begun {
        passing: Some(passing),
        ..begun
    })
}

/// What comes after all of a conversation, on a thread that is forgotten.
async fn copied(
    api: &Api,
    caller: &Caller,
    request: CreateRequest,
    run: Run,
    past: &Transcript,
) -> Result<Begun, ApiError> {
    anew(api, caller, &request.with_past(past)?, run, None).await
}

/// A response on a new thread, which has the past that the request brings.
///
/// The token is the thread's key, so that a repetition finds the thread.
async fn anew(
    api: &Api,
    caller: &Caller,
    request: &CreateRequest,
    run: Run,
    token: Option<String>,
) -> Result<Begun, ApiError> {
    let (runtime, token) = if request.store {
        (api.runtime(), token)
    } else {
        (api.app().passing(), None)
    };
    let kept = Payload::write(&run).map_err(RuntimeError::from)?;
    let mut mint = || runtime.mint();
    let said = request.said(&BTreeMap::new(), Some(&kept), Timestamp::now(), &mut mint)?;
    let key = token.clone().unwrap_or_else(|| runtime.mint());
    let tenant = &caller.tenant;
    let passing = (!request.store).then(|| Passing {
        runtime: runtime.clone(),
        tenant: tenant.clone(),
        key: key.clone(),
    });
    if !said.past.is_empty() {
        let import = Import {
            commands: said.past.clone(),
            ..Import::default()
        };
        match runtime.import(tenant, Some(key.clone()), import).await {
            Ok(_) => {}
            // The same request has been here before.
            Err(RuntimeError::NotEmpty) if token.is_some() => {}
            Err(error) => return Err(refused(error, &key)),
        }
    }
    let site = Site {
        runtime,
        tenant,
        key: &key,
        goes_on: &key,
    };
    let begun = site.start(said, run, token).await?;
    Ok(Begun { passing, ..begun })
}

impl Site<'_> {
    /// Whether a request with this token was taken on the thread.
    async fn knows(&self, token: Option<&str>) -> Result<bool, ApiError> {
        let Some(token) = token else {
            return Ok(false);
        };
        let row = self.runtime.find(self.tenant, self.key).await?;
        let answer = self.runtime.store().answer(&row.thread.id, token).await?;
        Ok(answer.is_some())
    }

    /// The whole conversation, with what answers that were cut off had said.
    async fn transcript(&self) -> Result<Transcript, RuntimeError> {
        self.runtime
            .transcript(self.tenant, self.key, Filter::All)
            .await
    }

    /// A fork of the thread at this event; gives its key.
    async fn fork(&self, token: Option<String>, at: Seq) -> Result<String, ApiError> {
        let forked = self.runtime.fork(self.tenant, self.key, token, Some(at));
        match forked.await {
            Ok(row) => Ok(key_of(&row).to_owned()),
            // The same request has been here before.
            Err(RuntimeError::Store(StoreError::KeyTaken(key))) => Ok(key),
            Err(error) => Err(refused(error, self.goes_on)),
        }
    }

    /// The response on this thread.
    async fn go_on(
        &self,
        request: &CreateRequest,
        run: Run,
        token: Option<String>,
    ) -> Result<Begun, ApiError> {
        let mut mint = || self.runtime.mint();
        let said = request.said(&BTreeMap::new(), None, Timestamp::now(), &mut mint)?;
        self.start(said, run, token).await
    }

    async fn start(&self, said: Said, run: Run, token: Option<String>) -> Result<Begun, ApiError> {
        let accepted = match said.last {
            Last::Item(item) => {
                let react = React {
                    tenant: self.tenant.clone(),
                    key: self.key.to_owned(),
                    before: said.records,
                    rewind: None,
                    item,
                    run,
                    policy: Policy::Reject,
                    token,
                };
                self.runtime.react(react).await
            }
            Last::Answers(item) => {
                if !self.knows(token.as_deref()).await? {
                    self.check_rest().await?;
                }
                let answer = AnswerRequest {
                    tenant: self.tenant.clone(),
                    key: self.key.to_owned(),
                    item,
                    run: Some(run),
                    token,
                };
                self.runtime.answer(answer).await
            }
        };
        let Accepted {
            item_id,
            execution_id,
            after,
            repeated,
            ..
        } = accepted.map_err(|error| refused(error, self.goes_on))?;
        let of = execution_id.map(ResponseOf::Execution);
        Ok(Begun {
            runtime: self.runtime.clone(),
            tenant: self.tenant.clone(),
            key: self.key.to_owned(),
            of: of.unwrap_or(ResponseOf::Trigger(item_id)),
            after,
            repeated,
            passing: None,
        })
    }

    /// Refuses where another response is being made.
    async fn check_rest(&self) -> Result<(), ApiError> {
        let (state, _) = self.runtime.state(self.tenant, self.key).await?;
        if state.active().is_some() {
            return Err(RequestError::conversation_locked(self.goes_on).into());
        }
        Ok(())
    }
}

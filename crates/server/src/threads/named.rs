//! Threads that a request names, whether they exist or not.

use super::{ThreadRef, check_key};
use crate::auth::Caller;
use crate::body::PathOf;
use crate::error::ApiError;
use crate::protocol::{Policy, ThreadAt};
use crate::state::Api;
use axum::extract::FromRequestParts;
use futures_util::FutureExt as _;
use http::request::Parts;
use interop::ids::IdForm;
use runtime::tree::Branch;
use runtime::{
    Accepted, Addressed, Cancelled, Cursor, Filter, Follow, Landmark, Logged, MessageVersions,
    NewCompaction, PageRequest, Pending, Position, Relatives, Runtime, RuntimeError, TenantId,
    ThreadCompaction, ThreadContinuation, ThreadPage, ThreadRow, Tree, Until, Watch,
};
use std::sync::Arc;
use timeline::{
    CompactionId, ExecutionId, Item, ItemId, Open, ReadPosition, Removed, Seq, State, Thread,
    ThreadUpdate, Transcript,
};

/// The key of a thread that the caller may access. The thread need not exist: then reads fail with
/// `NotFound`, and posting creates it.
#[derive(Clone)]
pub(crate) struct ThreadKey {
    runtime: Runtime,
    caller: Caller,
    key: String,
}

impl ThreadKey {
    /// A stored thread's key.
    pub(crate) fn new(api: &Api, caller: &Caller, key: &str) -> Result<Self, ApiError> {
        Self::authorise(api.runtime(&caller.tenant), caller, key)
    }

    /// The key that a body has at `pointer`, for a thread that may be created.
    pub(crate) fn named(
        api: &Api,
        caller: &Caller,
        key: &str,
        pointer: &str,
    ) -> Result<Self, ApiError> {
        check_key(key, pointer)?;
        Self::new(api, caller, key)
    }

    /// The key of a thread of this runtime. An error if the caller may not access it.
    pub(crate) fn authorise(
        runtime: &Runtime,
        caller: &Caller,
        key: &str,
    ) -> Result<Self, ApiError> {
        caller.check(key)?;
        Ok(Self {
            runtime: runtime.clone(),
            caller: caller.clone(),
            key: key.to_owned(),
        })
    }

    /// The key of an ephemeral thread that the caller creates. The caller always has access to it.
    pub(crate) fn ephemeral(api: &Api, caller: &Caller, key: &str) -> Self {
        Self {
            runtime: api.app().ephemeral().clone(),
            caller: caller.clone(),
            key: key.to_owned(),
        }
    }

    /// A fork of this thread, by the fork's key.
    pub(crate) fn forked(&self, key: &str) -> Result<Self, ApiError> {
        Self::authorise(&self.runtime, &self.caller, key)
    }

    /// The thread of a sub-agent of this thread. Access to this thread includes access to it.
    pub(crate) fn descendant(&self, key: &str) -> Self {
        Self {
            key: key.to_owned(),
            ..self.clone()
        }
    }

    /// The thread in its current state.
    pub(crate) async fn find(&self) -> Result<ThreadRef, RuntimeError> {
        ThreadRef::at(self.clone()).await
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(crate) fn tenant(&self) -> &TenantId {
        &self.caller.tenant
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }
}

/// Adds operations of the runtime to [`ThreadKey`], on its thread.
// Boxed here and in the handlers that run agents: otherwise the compiler proves for each handler anew that all futures
// within are `Send`, a tenth of this crate's build.
macro_rules! operations {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $value:ty;)*) => {
        #[expect(clippy::disallowed_methods, reason = "the caller's rights were checked")]
        impl ThreadKey {$(
            pub(crate) async fn $name(&self, $($argument: $kind),*) -> Result<$value, RuntimeError> {
                let (tenant, key) = (&self.caller.tenant, self.key.as_str());
                self.runtime.$name(tenant, key, $($argument),*).boxed().await
            }
        )*}
    };
}

operations! {
    state() -> (State, Seq);
    transcript(filter: Filter) -> Transcript;
    page(page: PageRequest, filter: Filter) -> ThreadPage;
    page_with_removed(page: PageRequest, filter: Filter) -> ThreadPage;
    page_at(page: (Option<PageRequest>, Seq), filter: Filter) -> ThreadPage;
    item(id: &ItemId) -> Item;
    answers(id: &ItemId) -> MessageVersions;
    versions(id: &ItemId) -> MessageVersions;
    run_until(execution: ExecutionId, last: Seq) -> Transcript;
    position_of(landmark: Landmark<'_>) -> Option<Position>;
    positions_of(lists: &[Vec<Landmark<'_>>]) -> Vec<Option<Position>>;
    records(after: Position, limit: usize) -> (Vec<Logged>, Position);
    read(after: Seq, limit: usize) -> Vec<Logged>;
    follow(after: impl Into<ReadPosition> + Send, until: Until) -> Follow;
    tree(after: Cursor, until: Until) -> Tree;
    watch(after: ReadPosition, until: Until) -> Watch;
    pending() -> (Vec<Pending>, Seq);
    pending_at(at: Seq) -> Vec<Pending>;
    unanswered() -> Vec<Pending>;
    open_calls() -> (Option<Open>, Seq);
    addressed(call: &str, named: Option<&str>, token: Option<&str>) -> Addressed;
    has_continuation(target: &str, answer: &Accepted) -> ThreadContinuation;
    cancel(execution: Option<&ExecutionId>, reason: &str) -> Cancelled;
    close() -> Seq;
    reopen() -> Seq;
    fork(new: Option<String>, at: Option<Seq>) -> ThreadRow;
    change_thread(change: impl Fn(&Thread) -> ThreadUpdate + Send + Sync + 'static) -> Seq;
    remove(what: Removed) -> Seq;
    compact(new: NewCompaction) -> ThreadCompaction;
    compactions(before: Position, limit: usize) -> (Vec<ThreadCompaction>, Option<Position>);
    current_compaction() -> Option<ThreadCompaction>;
    withdraw_compaction(id: CompactionId) -> Seq;
    branches() -> Vec<Branch>;
    outermost(may_see: &(dyn Fn(&str) -> bool + Send + Sync)) -> ThreadRow;
    relatives(limit: usize, may_see: &(dyn Fn(&str) -> bool + Send + Sync)) -> Relatives;
    delete() -> ();
    delete_stopping() -> ();
}

#[cfg(feature = "web")]
operations! {
    inherited_events() -> u64;
}

/// The path segment with this name.
async fn segment(parts: &mut Parts, name: &str) -> Result<Option<String>, ApiError> {
    let PathOf(segments) = PathOf::<Vec<(String, String)>>::from_request_parts(parts, &()).await?;
    let mut named = segments.into_iter().filter(|(own, _)| own == name);
    Ok(named.next().map(|(_, value)| value))
}

fn declared(parts: &Parts) -> Option<ThreadAt> {
    let policy = parts.extensions.get::<Arc<Policy>>();
    policy.map(|policy| policy.thread)
}

impl FromRequestParts<Api> for ThreadKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, api).await?;
        let Some(ThreadAt::PathKey(name)) = declared(parts) else {
            return Err(ApiError::ForbiddenThread);
        };
        let key = segment(parts, name).await?;
        Self::new(api, &caller, &key.ok_or(ApiError::ForbiddenThread)?)
    }
}

/// The thread that a path names by an id in a protocol's form, before the look-up.
pub(crate) struct NamedThread {
    caller: Caller,
    form: IdForm,
    id: String,
}

impl NamedThread {
    /// The id, as in the path.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The stored thread; none if it does not exist or the caller may not access it.
    pub(crate) async fn find(&self, api: &Api) -> Result<Option<ThreadRef>, ApiError> {
        ThreadRef::find(api, &self.caller, self.form, &self.id)
            .boxed()
            .await
    }
}

impl FromRequestParts<Api> for NamedThread {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, api).await?;
        let Some(ThreadAt::PathId(name, form)) = declared(parts) else {
            return Err(ApiError::ForbiddenThread);
        };
        let id = segment(parts, name).await?;
        Ok(Self {
            caller,
            form,
            id: id.ok_or(ApiError::ForbiddenThread)?,
        })
    }
}

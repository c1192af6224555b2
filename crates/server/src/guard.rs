//! Who may call: keys, and in development mode this machine alone.

mod host;
mod scopes;

use crate::app::DEV_TENANT;
use crate::audit::Who;
use crate::auth::{Caller, Scope, Tokens};
use crate::budgets::Permit;
use crate::error::ApiError;
use crate::local::LocalKey;
use crate::protocol::Dialect;
use crate::state::Api;
use axum::RequestPartsExt as _;
use axum::extract::{FromRequestParts, MatchedPath, RawPathParams, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use host::check_origin;
pub(crate) use host::{check_host, is_local};
use http::request::Parts;
use http::{HeaderMap, Uri, header};
use jiff::Timestamp;
use runtime::TenantId;

/// The tenant a request speaks for.
pub(crate) struct Tenant(pub(crate) TenantId);

impl<S: Send + Sync> FromRequestParts<S> for Tenant {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let caller = Caller::from_request_parts(parts, state).await?;
        Ok(Self(caller.tenant))
    }
}

/// Routes that name no thread in their path, and ask [`Caller::check`] themselves.
const CHECK_THEMSELVES: [&str; 6] = [
    "/api/v1/threads",
    "/api/v1/import",
    "/api/v1/agents",
    "/api/chat",
    "/ag-ui",
    "/ag-ui/agents/{agent}",
];

impl Caller {
    /// Refuses a kind of request that the key may not make.
    pub(crate) fn check_scope(&self, needed: Scope) -> Result<(), ApiError> {
        if self.rights.scopes.contains(&needed) {
            return Ok(());
        }
        Err(ApiError::MissingScope { needed })
    }

    /// Whether the key may see what was there before its own request.
    pub(crate) fn may_read(&self) -> bool {
        self.rights.scopes.contains(&Scope::Read)
    }

    /// Refuses a request whose answer has what was there before to a key that may not read. Asked before anything
    /// is written.
    pub(crate) fn check_read(&self) -> Result<(), ApiError> {
        self.check_scope(Scope::Read)
    }

    /// Refuses a thread that the key may not touch.
    pub(crate) fn check(&self, key: &str) -> Result<(), ApiError> {
        if self.rights.cover(key) {
            return Ok(());
        }
        Err(ApiError::ForbiddenThread)
    }

    /// Whether the key is for some threads only.
    pub(crate) fn is_restricted(&self) -> bool {
        self.rights.threads.is_some()
    }

    /// Refuses what belongs to no thread to a key that is for some threads only.
    pub(crate) fn check_beside(&self) -> Result<(), ApiError> {
        if self.is_restricted() {
            return Err(ApiError::ForbiddenBeside);
        }
        Ok(())
    }

    /// Refuses an actor that the key may not speak as; `pointer` is where the body names it.
    pub(crate) fn check_actor(&self, actor: &str, pointer: &str) -> Result<(), ApiError> {
        if self.rights.may_speak_as(actor) {
            return Ok(());
        }
        Err(ApiError::ForbiddenActor {
            actor: actor.to_owned(),
            pointer: pointer.to_owned(),
        })
    }

    /// Waits until the key opens nothing any more; says why.
    pub(crate) async fn ended(&self) -> ApiError {
        tokio::select! {
            () = self.revoked() => ApiError::KeyRevoked,
            () = self.expired() => ApiError::KeyExpired,
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        // Nobody without the layer below, so that a route that forgets it is closed, not open.
        parts
            .extensions
            .get()
            .cloned()
            .ok_or(ApiError::Unauthorized)
    }
}

/// Lets through who has a key, or in development mode who is on this machine.
pub(crate) async fn authenticate(
    State(api): State<Api>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let local = request.extensions().get::<LocalKey>().cloned();
    let caller = caller(&api, local, request.headers(), request.uri()).await?;
    let (mut parts, body) = request.into_parts();
    // Before anything is judged or done: the audit log tells who it was, however this ends.
    if let Some(who) = parts.extensions.get::<Who>() {
        who.is(&caller);
    }
    let _in_flight = admit(&api, &caller, &mut parts).await?;
    // Until the answer begins: the route holds what it has read from the body so long.
    let lease = api.app().body_lease(&caller.tenant);
    parts.extensions.insert(lease.clone());
    parts.extensions.insert(caller);
    let response = next.run(Request::from_parts(parts, body)).await;
    drop(lease);
    Ok(response)
}

async fn caller(
    api: &Api,
    local: Option<LocalKey>,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<Caller, ApiError> {
    if let Some(local) = local {
        return local.caller(bearer(headers), api, headers);
    }
    let config = api.app().config();
    if config.is_development() {
        check_origin(headers, &config.server.cors_origins)?;
        return Ok(Caller::local(DEV_TENANT));
    }
    if Dialect::of(uri.path()).checks_origins() {
        check_origin(headers, &config.server.cors_origins)?;
    }
    let key = bearer(headers).or_else(|| api_key(headers));
    let key = key.ok_or(ApiError::Unauthorized)?;
    let known = api.app().keys().caller(key).cloned();
    if let Some(caller) = known {
        return Ok(caller);
    }
    let tokens = api.app().tokens().filter(|_| Tokens::looks_like(key));
    let claimed = tokens.ok_or(ApiError::Unauthorized)?.verify(key).await?;
    Ok(api.app().keys().token_caller(claimed)?)
}

/// Whether the caller may ask this at all. The request is in flight until the permit is dropped.
async fn admit(api: &Api, caller: &Caller, parts: &mut Parts) -> Result<Permit, ApiError> {
    check_rates(api, caller)?;
    let in_flight = api.app().budgets().begin_request(caller)?;
    check_rights(caller, parts).await?;
    Ok(in_flight)
}

/// Refuses a key that has expired, and one request more than the rates of the key and of its tenant allow.
pub(crate) fn check_rates(api: &Api, caller: &Caller) -> Result<(), ApiError> {
    if caller.has_expired(Timestamp::now()) {
        return Err(ApiError::KeyExpired);
    }
    caller
        .spend()
        .map_err(|wait| ApiError::RateLimited { wait })?;
    Ok(api.app().budgets().spend(caller)?)
}

/// Refuses what the key may not do.
async fn check_rights(caller: &Caller, parts: &mut Parts) -> Result<(), ApiError> {
    let route = parts.extensions.get().map(MatchedPath::as_str);
    if let Some(needed) = scopes::needed(&parts.method, route, parts.uri.path()) {
        caller.check_scope(needed)?;
    }
    if caller.rights.threads.is_none() {
        return Ok(());
    }
    if Dialect::of(parts.uri.path()).checks_threads() {
        return Ok(());
    }
    // A path that can't be decoded is refused by its route.
    let params = parts.extract::<RawPathParams>().await.ok();
    let named = params.iter().flat_map(RawPathParams::iter);
    let mut keys = named
        .filter(|(name, _)| matches!(*name, "key" | "id"))
        .peekable();
    if keys.peek().is_some() {
        return keys.try_for_each(|(_, key)| caller.check(key));
    }
    let route = parts
        .extensions
        .get::<MatchedPath>()
        .map(MatchedPath::as_str);
    match route {
        Some(route) if CHECK_THEMSELVES.contains(&route) => Ok(()),
        _ => Err(ApiError::ForbiddenThread),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?
        .split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
}

/// A key as the clients of `LangGraph` send it.
fn api_key(headers: &HeaderMap) -> Option<&str> {
    Some(headers.get("x-api-key")?.to_str().ok()?.trim())
}

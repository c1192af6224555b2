//! Access control: keys and tokens, and in development mode requests from this machine. Each route is
//! checked against the policy that it declares; a route without a policy is refused.

mod host;
mod query;

use crate::audit::Who;
use crate::auth::DEV_TENANT;
use crate::auth::{Caller, Scope, Tokens};
use crate::budgets::Permit;
use crate::error::ApiError;
use crate::local::LocalKey;
use crate::pause::check_pause;
use crate::protocol::{Access, Policy, RouteTable, ThreadAt};
#[cfg(feature = "web")]
use crate::routes::web;
#[cfg(feature = "web")]
use crate::sessions;
use crate::state::Api;
use axum::RequestPartsExt as _;
use axum::extract::{FromRequestParts, MatchedPath, RawPathParams, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use host::check_origin;
#[cfg(feature = "web")]
pub(crate) use host::is_this_machine;
pub(crate) use host::{check_host, is_local};
use http::request::Parts;
use http::{HeaderMap, header};
use jiff::Timestamp;
use std::num::NonZeroU32;
use std::sync::Arc;

/// Checks requests against the policies of their routes.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) api: Api,
    pub(crate) table: Arc<RouteTable>,
}

impl Caller {
    /// An error if the key lacks this scope.
    pub(crate) fn check_scope(&self, needed: Scope) -> Result<(), ApiError> {
        if self.rights.scopes.contains(&needed) {
            return Ok(());
        }
        Err(ApiError::MissingScope { needed })
    }

    /// Whether the key may see data older than its own request.
    pub(crate) fn may_read(&self) -> bool {
        self.rights.scopes.contains(&Scope::Read)
    }

    /// An error if the key has no scope `read`. Call it before anything is written, if the response
    /// contains older data.
    pub(crate) fn check_read(&self) -> Result<(), ApiError> {
        self.check_scope(Scope::Read)
    }

    /// An error if the key may not access this thread.
    pub(crate) fn check(&self, key: &str) -> Result<(), ApiError> {
        if self.rights.cover(key) {
            return Ok(());
        }
        Err(ApiError::ForbiddenThread)
    }

    /// Whether the key is restricted to some threads.
    pub(crate) fn is_restricted(&self) -> bool {
        self.rights.threads.is_some()
    }

    /// An error if the key is restricted to some threads. For data that belongs to no thread.
    pub(crate) fn check_sidecar(&self) -> Result<(), ApiError> {
        if self.is_restricted() {
            return Err(ApiError::ForbiddenSidecar);
        }
        Ok(())
    }

    /// Refuses an actor that the key may not speak as; `pointer` is the JSON pointer of the actor.
    pub(crate) fn check_actor(&self, actor: &str, pointer: &str) -> Result<(), ApiError> {
        if self.rights.may_speak_as(actor) {
            return Ok(());
        }
        Err(ApiError::ForbiddenActor {
            actor: actor.to_owned(),
            pointer: pointer.to_owned(),
        })
    }

    /// Waits until the key becomes invalid, and returns the reason.
    pub(crate) async fn ended(&self) -> ApiError {
        #[cfg(feature = "web")]
        let session_ended = self.session_ended();
        #[cfg(not(feature = "web"))]
        let session_ended = std::future::pending::<()>();
        tokio::select! {
            () = self.revoked() => ApiError::KeyRevoked,
            () = self.expired() => ApiError::KeyExpired,
            () = session_ended => ApiError::NotLoggedIn,
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

/// Passes a request to its route, if the route's policy allows it.
pub(crate) async fn check_policy(
    State(Guard { api, table }): State<Guard>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let template = request.extensions().get().map(MatchedPath::as_str);
    let policy = template.and_then(|template| table.policy(template, request.method()));
    let policy = policy.ok_or(ApiError::UnknownRoute)?;
    request.extensions_mut().insert(Arc::clone(&policy));
    if policy.access.is_console() && !api.app().config().web.has_console {
        return Err(ApiError::UnknownRoute);
    }
    if policy.access == Access::Open {
        return answered(&policy, request, next).await;
    }
    authenticate(&api, &policy, request, next).await
}

/// Authenticates the caller: by key, or in development mode by the loopback address.
async fn authenticate(
    api: &Api,
    policy: &Policy,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let local = request.extensions().get::<LocalKey>().cloned();
    let caller = match caller(api, local, request.headers(), policy).await {
        #[cfg(feature = "web")]
        Err(error) if policy.rules.own_pages => return web::redirect_or_refuse(&request, error),
        known => known?,
    };
    let (mut parts, body) = request.into_parts();
    // Before anything is judged or done: the audit log tells who it was, however this ends.
    if let Some(who) = parts.extensions.get::<Who>() {
        who.is(&caller);
    }
    let _in_flight = admit(api, &caller, policy, &mut parts).await?;
    // Until the answer begins: the route holds what it has read from the body so long.
    let tenant = caller.tenant.clone();
    let lease = api.app().body_lease(&tenant);
    parts.extensions.insert(lease.clone());
    parts.extensions.insert(caller);
    // Runs have the tools of MCP servers only after recovery has begun.
    api.app().recover_for(&tenant).await?;
    let response = answered(policy, Request::from_parts(parts, body), next).await;
    drop(lease);
    response
}

/// Passes the request to the route, if it has the method.
async fn answered(policy: &Policy, request: Request, next: Next) -> Result<Response, ApiError> {
    query::check(request.uri(), policy)?;
    if !policy.is_served {
        return Err(ApiError::UnknownMethod);
    }
    Ok(next.run(request).await)
}

async fn caller(
    api: &Api,
    local: Option<LocalKey>,
    headers: &HeaderMap,
    policy: &Policy,
) -> Result<Caller, ApiError> {
    if let Some(local) = local {
        return local.caller(bearer(headers), api, headers);
    }
    let config = api.app().config();
    if config.is_development() {
        check_origin(headers, &config.server.cors_origins)?;
        return Ok(Caller::local(DEV_TENANT));
    }
    if policy.rules.checks_origin {
        check_origin(headers, &config.server.cors_origins)?;
    }
    match key_in(headers) {
        #[cfg(feature = "web")]
        Some(token) if policy.rules.own_pages && sessions::is_token(token) => {
            let caller = sessions::find_token(api, token).await?;
            caller.ok_or(ApiError::NotLoggedIn)
        }
        Some(key) => caller_with(api, key).await,
        #[cfg(feature = "web")]
        None if policy.rules.own_pages => {
            let caller = sessions::find(api, headers).await?;
            caller.ok_or(ApiError::NotLoggedIn)
        }
        None => Err(ApiError::Unauthorized),
    }
}

/// The caller with this key or token.
pub(crate) async fn caller_with(api: &Api, key: &str) -> Result<Caller, ApiError> {
    let known = api.app().keys().caller(key).cloned();
    if let Some(caller) = known {
        return Ok(caller);
    }
    let tokens = api.app().tokens().filter(|_| Tokens::looks_like(key));
    let claimed = tokens.ok_or(ApiError::Unauthorized)?.verify(key).await?;
    Ok(api.app().keys().token_caller(claimed)?)
}

/// Checks the caller's rights and budgets. The request counts as in flight until the permit is dropped.
async fn admit(
    api: &Api,
    caller: &Caller,
    policy: &Policy,
    parts: &mut Parts,
) -> Result<Permit, ApiError> {
    if !policy.ends_runs {
        check_pause(api, caller)?;
    }
    check_rates(api, caller)?;
    let in_flight = api.app().budgets().begin_request(caller)?;
    check_rights(caller, policy, parts).await?;
    Ok(in_flight)
}

/// Refuses an expired key, and requests that exceed the rate of the key or of its tenant.
pub(crate) fn check_rates(api: &Api, caller: &Caller) -> Result<(), ApiError> {
    if caller.has_expired(Timestamp::now()) {
        return Err(ApiError::KeyExpired);
    }
    let n_servers = u32::try_from(api.runtime(&caller.tenant).n_nodes()).unwrap_or(u32::MAX);
    let n_servers = NonZeroU32::new(n_servers).unwrap_or(NonZeroU32::MIN);
    caller
        .spend(n_servers)
        .map_err(|wait| ApiError::RateLimited { wait })?;
    Ok(api.app().budgets().spend(caller, n_servers)?)
}

/// Checks the rights of the key.
async fn check_rights(caller: &Caller, policy: &Policy, parts: &mut Parts) -> Result<(), ApiError> {
    for needed in policy.access.scopes(&parts.method, parts.uri.path()) {
        caller.check_scope(needed)?;
    }
    if !caller.is_restricted() {
        return Ok(());
    }
    match policy.thread {
        ThreadAt::PathKey(name) => {
            let params = parts.extract::<RawPathParams>().await;
            let params = params.map_err(|_| ApiError::ForbiddenThread)?;
            let mut named = params.iter().filter(|(segment, _)| *segment == name);
            let (_, key) = named.next().ok_or(ApiError::ForbiddenThread)?;
            caller.check(key)
        }
        ThreadAt::Process => Err(ApiError::ForbiddenThread),
        ThreadAt::PathId(..) | ThreadAt::PathPart(_) | ThreadAt::InBody | ThreadAt::Visible => {
            Ok(())
        }
        ThreadAt::NoThread => Ok(()),
    }
}

/// The key or the token of a request.
pub(crate) fn key_in(headers: &HeaderMap) -> Option<&str> {
    bearer(headers).or_else(|| api_key(headers))
}

pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?
        .split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
}

/// The key in the header that clients of `LangGraph` send.
fn api_key(headers: &HeaderMap) -> Option<&str> {
    Some(headers.get("x-api-key")?.to_str().ok()?.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::App;
    use crate::config::Config;
    use crate::openapi::Document;
    use crate::routes::PROTOCOLS;
    use crate::threads::{NamedThread, ThreadKey};
    use axum::Router;
    use axum::body::Body;
    use axum::middleware::from_fn_with_state;
    use axum::routing::get;
    use stores::OpenMode;
    use tokio_util::sync::CancellationToken;
    use tower::ServiceExt as _;
    use utoipa::OpenApi as _;

    /// The statuses of responses to `GET` from routes that replace the server's own.
    async fn statuses(routes: Router<Api>, paths: &[&str]) -> Vec<u16> {
        let directory = tempfile::tempdir().unwrap();
        let config = Config::parse("", &|_| None).unwrap();
        let app = App::open(config, directory.path(), OpenMode::ReadWrite)
            .await
            .unwrap();
        let api = Api::new(app, CancellationToken::new());
        let (_, table) = RouteTable::assemble(PROTOCOLS, Document::openapi());
        let guard = Guard {
            api: api.clone(),
            table: Arc::new(table),
        };
        let service = routes
            .route_layer(from_fn_with_state(guard, check_policy))
            .with_state(api);
        let mut found = Vec::new();
        for path in paths {
            let request = Request::get(*path).body(Body::empty()).unwrap();
            let response = service.clone().oneshot(request).await.unwrap();
            found.push(response.status().as_u16());
        }
        found
    }

    #[tokio::test]
    async fn a_served_route_without_a_policy_is_refused() {
        let routes = Router::new()
            .route("/undeclared", get(async || "answered"))
            .route("/healthz", get(async || "answered"));
        let statuses = statuses(routes, &["/undeclared", "/healthz"]).await;
        assert_eq!(statuses, [404, 200]);
    }

    #[tokio::test]
    async fn a_handler_gets_no_thread_that_its_route_does_not_declare() {
        let routes = Router::new()
            .route("/api/v1/agents", get(async |_: ThreadKey| "answered"))
            .route("/v1/models/{model}", get(async |_: NamedThread| "answered"))
            .route(
                "/api/v1/threads/{key}",
                get(async |_: ThreadKey| "answered"),
            );
        let paths = ["/api/v1/agents", "/v1/models/t", "/api/v1/threads/t"];
        assert_eq!(statuses(routes, &paths).await, [403, 403, 200]);
    }
}

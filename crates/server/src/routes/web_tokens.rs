//! Tokens for the chat within pages of other sites.

use crate::auth::{Caller, Scope, ThreadPattern, TokenLimits};
use crate::body::JsonBody;
use crate::error::{ApiError, ErrorBody};
use crate::guard;
use crate::sessions;
use crate::state::Api;
use axum::Json;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use utoipa::ToSchema;

/// The token of development mode, which needs none.
const DEVELOPMENT: &str = "development";

/// The limits of a token.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NewWebToken {
    /// The beginning of the keys of its threads.
    thread_prefix: String,
    /// The agent that answers its messages.
    agent: String,
    /// The actor in whose name its messages are.
    actor: Option<String>,
    /// `read`, or `read` and `write`, which is the default.
    #[schema(value_type = Option<Vec<String>>)]
    scopes: Option<BTreeSet<Scope>>,
    /// Whether its holder may answer calls that wait for an approval or a result. Default: no.
    #[serde(default)]
    may_answer: bool,
}

/// A token for the chat within a page of another site.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WebToken {
    /// The token. The server stores its hash only.
    token: String,
    /// When it expires: after ten minutes, or with the key of the request.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
}

impl NewWebToken {
    /// An error if the key may not access all of these threads.
    fn check_threads(&self, caller: &Caller) -> Result<(), ApiError> {
        let prefix = &self.thread_prefix;
        if prefix.is_empty() || ThreadPattern::parse(&format!("{prefix}*")).is_none() {
            let expected = "expected the beginning of the keys of its threads";
            return Err(ApiError::field("/threadPrefix", expected));
        }
        if caller.rights.cover_all(prefix) {
            return Ok(());
        }
        Err(ApiError::ForbiddenThread)
    }

    fn limits(self, caller: &Caller) -> Result<TokenLimits, ApiError> {
        if let Some(actor) = &self.actor {
            caller.check_actor(actor, "/actor")?;
        }
        let both = || BTreeSet::from([Scope::Read, Scope::Write]);
        let scopes = self.scopes.unwrap_or_else(both);
        if !scopes.contains(&Scope::Read) {
            return Err(ApiError::field("/scopes", "expected read among them"));
        }
        for scope in &scopes {
            if !matches!(scope, Scope::Read | Scope::Write) {
                return Err(ApiError::field("/scopes", "expected read and write only"));
            }
            caller.check_scope(*scope)?;
        }
        Ok(TokenLimits {
            thread_prefix: self.thread_prefix,
            agent: self.agent,
            actor: self.actor,
            scopes,
            may_answer: self.may_answer,
        })
    }
}

/// Makes a token with which a page of another site shows the chat of some threads.
///
/// The token lasts ten minutes and works on the pages of the widget only. It ends with the key of this
/// request. The server answers 404 if the configuration has no `embed_origins`.
#[utoipa::path(post, path = "/web/tokens", operation_id = "createWebToken", tag = "threads", security(("key" = [])),
    request_body = NewWebToken,
    responses((status = 201, body = WebToken), (status = "default", body = ErrorBody)))]
pub(crate) async fn create(
    State(api): State<Api>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody(body): JsonBody<NewWebToken>,
) -> Result<(StatusCode, Json<WebToken>), ApiError> {
    body.check_threads(&caller)?;
    if !api.app().config().web.has_widget() {
        return Err(ApiError::UnknownRoute);
    }
    if !api.app().has_agent(&body.agent) {
        return Err(ApiError::field("/agent", "there is no such agent"));
    }
    let limits = body.limits(&caller)?;
    let key = guard::key_in(&headers).unwrap_or_default();
    let made = sessions::make_token(&api, (&caller, key), limits).await?;
    let (token, expires_at) = made.unwrap_or_else(|| (DEVELOPMENT.to_owned(), Timestamp::MAX));
    Ok((StatusCode::CREATED, Json(WebToken { token, expires_at })))
}

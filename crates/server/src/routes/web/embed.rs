//! The chat within a page of another site. The site hands over a token; no cookie counts there.

use super::assets::ASSETS;
use super::form::Action;
use super::pages::{PageParts, chat_content};
use super::reply::{CONTENT_SECURITY_POLICY, page};
use crate::body::{PathOf, Query};
use crate::error::ApiError;
use crate::state::Api;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderName, HeaderValue, header};
use serde::{Deserialize, Serialize};
use web::EmbedPage;

/// The thread to show.
#[derive(Deserialize)]
pub(super) struct EmbedQuery {
    thread: String,
}

/// The content of a page within another site.
#[derive(Serialize)]
pub(super) struct EmbeddedContent {
    html: String,
}

/// The script that other sites load. Its path has no hash, so browsers ask for it again after an hour.
pub(super) async fn script(State(api): State<Api>) -> Result<Response, ApiError> {
    check_origins(&api)?;
    let script = ASSETS.named("embed.js").ok_or(ApiError::UnknownRoute)?;
    let headers = [
        (header::CONTENT_TYPE, script.media_type),
        (header::CACHE_CONTROL, "public, max-age=3600"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "cross-origin",
        ),
    ];
    Ok((headers, Bytes::from_static(script.bytes)).into_response())
}

/// The page in the frame. It has no data: these come with the token.
pub(super) async fn frame(
    State(api): State<Api>,
    PathOf(agent): PathOf<String>,
    Query(query): Query<EmbedQuery>,
) -> Result<Response, ApiError> {
    check_origins(&api)?;
    if !api.app().has_agent(&agent) {
        return Err(ApiError::UnknownRoute);
    }
    let web = &api.app().config().web;
    let shown = EmbedPage {
        assets: &ASSETS,
        name: &web.name,
        agent: &agent,
        thread: &query.thread,
        origins: &web.embed_origins,
    };
    let mut response = page(shown.html());
    let ancestors = format!("frame-ancestors {}", web.embed_origins.join(" "));
    let policy = CONTENT_SECURITY_POLICY.replace("frame-ancestors 'none'", &ancestors);
    let policy = HeaderValue::from_str(&policy).map_err(|_| ApiError::Panicked)?;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    headers.insert(
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("cross-origin"),
    );
    Ok(response)
}

/// The conversation of the page, for a caller with a token. Begins the thread if the token may.
pub(super) async fn content(action: Action) -> Result<Json<EmbeddedContent>, ApiError> {
    let (api, caller) = (&action.api, &action.caller);
    check_origins(api)?;
    let thread = action.thread()?;
    let agent = action.form.required("agent")?;
    if caller.only_agent().is_some_and(|only| only != agent) {
        return Err(ApiError::field("/agent", "the token is for another agent"));
    }
    super::actions::begin_empty(api, caller, thread.key()).await?;
    let parts = PageParts::read(api, caller).await?;
    let parts = parts.with_agent(agent);
    let html = chat_content((api, caller), &thread, &parts).await?;
    Ok(Json(EmbeddedContent {
        html: html.into_string(),
    }))
}

/// Without configured origins nothing of the widget exists.
fn check_origins(api: &Api) -> Result<(), ApiError> {
    if !api.app().config().web.has_widget() {
        return Err(ApiError::UnknownRoute);
    }
    Ok(())
}

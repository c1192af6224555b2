//! Logging in and out. A form takes a key or a token; after that the browser has a cookie.

use super::assets::ASSETS;
use super::form::is_local;
use super::live::fail_page;
use super::pages::wants_page;
use super::reply::page;
use crate::audit::Who;
use crate::auth::Caller;
use crate::body::Query;
use crate::connections::ClientAddress;
use crate::error::{ApiError, render_error};
use crate::guard;
use crate::sessions::{self, LoginAttempts};
use crate::sse::{wants_json, wants_stream};
use crate::state::Api;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use jiff::Timestamp;
use serde::Deserialize;
use std::time::Duration;
use web::{ContinuePage, LoginPage};

/// Maximum size of the form, in bytes: a token with a path.
const MAX_FORM_BYTES: usize = 32 << 10;
/// Time limit for the form to arrive.
const ARRIVAL: Duration = Duration::from_secs(10);
/// The longest path to return to, in bytes.
const MAX_PATH_BYTES: usize = 2_048;
/// The page after a log-in without a path.
const START: &str = "/";
/// The path of the log-in page.
const LOGIN: &str = "/login";
/// The one answer to everything that is wrong with a key or a token.
const REFUSED: &str = "The key or token is not valid.";

/// Where to go after the log-in.
#[derive(Deserialize)]
pub(super) struct LoginQuery {
    to: Option<String>,
}

/// The fields of the form.
struct LoginForm {
    key: String,
    to: Option<String>,
}

impl LoginForm {
    async fn read(request: Request) -> Result<Self, ApiError> {
        let body = axum::body::to_bytes(request.into_body(), MAX_FORM_BYTES);
        let body = tokio::time::timeout(ARRIVAL, body).await;
        let body = body.map_err(|_| ApiError::BodyTimeout)?;
        let body = body.map_err(|_| ApiError::BodyTooLarge {
            limit: MAX_FORM_BYTES,
        })?;
        let field = |wanted: &str| {
            let mut fields = form_urlencoded::parse(&body);
            let found = fields.find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.into_owned())
        };
        Ok(Self {
            key: field("key").unwrap_or_default().trim().to_owned(),
            to: field("to"),
        })
    }
}

/// The log-in page. A person who is logged in, or needs no key, is redirected at once.
pub(super) async fn form(
    State(api): State<Api>,
    headers: HeaderMap,
    Query(query): Query<LoginQuery>,
) -> Result<Response, ApiError> {
    let to = path_to(query.to.as_deref());
    if api.app().config().is_development() || sessions::find(&api, &headers).await?.is_some() {
        return Ok(go(to));
    }
    Ok(shown(&api, &headers, to, None))
}

/// Begins a session with a key or a token.
pub(super) async fn log_in(State(api): State<Api>, request: Request) -> Result<Response, ApiError> {
    let (headers, extensions) = (request.headers().clone(), request.extensions().clone());
    if api.app().config().is_development() {
        return Ok(go(START));
    }
    let address = ClientAddress::text(&extensions, &headers);
    if let Err(wait) = api.shared::<LoginAttempts>().spend(&address) {
        return Ok(too_many(&api, &headers, wait));
    }
    let form = LoginForm::read(request).await?;
    let to = path_to(form.to.as_deref());
    let caller = match known(&api, &form.key).await {
        Ok(caller) => caller,
        Err(error) => {
            tracing::debug!(error = render_error(&error), "a log-in was refused");
            let page = shown(&api, &headers, to, Some(REFUSED));
            return Ok((StatusCode::UNAUTHORIZED, page).into_response());
        }
    };
    if let Some(who) = extensions.get::<Who>() {
        who.is(&caller);
    }
    crate::pause::check_pause(&api, &caller)?;
    guard::check_rates(&api, &caller)?;
    sessions::end(&api, &headers).await?;
    let cookie = sessions::begin(&api, &caller, &form.key).await?;
    Ok(match cookie {
        Some(cookie) => with_cookie(to, cookie),
        None => go(to),
    })
}

/// Ends the session, and the streams that it has opened.
pub(super) async fn log_out(
    State(api): State<Api>,
    request: Request,
) -> Result<Response, ApiError> {
    let (headers, extensions) = (request.headers().clone(), request.extensions().clone());
    if let Some(caller) = sessions::find(&api, &headers).await?
        && let Some(who) = extensions.get::<Who>()
    {
        who.is(&caller);
    }
    sessions::end(&api, &headers).await?;
    Ok(with_cookie(LOGIN, sessions::no_cookie()?))
}

/// The caller with a key or a token that is valid now.
async fn known(api: &Api, key: &str) -> Result<Caller, ApiError> {
    let caller = guard::caller_with(api, key).await?;
    if caller.has_expired(Timestamp::now()) {
        return Err(ApiError::KeyExpired);
    }
    Ok(caller)
}

/// The response to a request for a page whose caller is not known. A page sends the person to the
/// log-in; a stream ends with an event.
pub(crate) fn redirect_or_refuse(request: &Request, error: ApiError) -> Result<Response, ApiError> {
    if !matches!(error, ApiError::NotLoggedIn) {
        return Err(error);
    }
    let headers = request.headers();
    if wants_stream(headers) {
        return Ok(refused_stream(&error));
    }
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if !is_read || wants_json(headers) || !wants_page(headers) {
        return Err(error);
    }
    let path = request.uri().path_and_query();
    let to = path_to(path.map(http::uri::PathAndQuery::as_str));
    let login = login_path(to);
    let is_foreign = headers
        .get("sec-fetch-site")
        .is_some_and(|site| site == "cross-site");
    if is_foreign {
        // Browsers leave the cookie out where a link of another site leads here. From a page of this
        // server they send it.
        let shown = ContinuePage {
            assets: &ASSETS,
            path: &login,
        };
        return Ok(page(shown.html()));
    }
    Ok(go(&login))
}

/// The path of the log-in page, which leads back to a path.
fn login_path(to: &str) -> String {
    let to: String = form_urlencoded::byte_serialize(to.as_bytes()).collect();
    format!("{LOGIN}?to={to}")
}

/// A path of this server to return to; the start if it is anything else.
fn path_to(path: Option<&str>) -> &str {
    let is_own = |path: &&str| {
        path.len() <= MAX_PATH_BYTES
            && is_local(path)
            && !path.starts_with(LOGIN)
            && !path.starts_with("/logout")
    };
    path.filter(is_own).unwrap_or(START)
}

fn go(to: &str) -> Response {
    ([(header::CACHE_CONTROL, "no-store")], Redirect::to(to)).into_response()
}

fn with_cookie(to: &str, cookie: HeaderValue) -> Response {
    ([(header::SET_COOKIE, cookie)], go(to)).into_response()
}

fn shown(api: &Api, headers: &HeaderMap, to: &str, refused: Option<&str>) -> Response {
    let shown = LoginPage {
        assets: &ASSETS,
        name: &api.app().config().web.name,
        to,
        refused,
        needs_https: needs_https(api, headers),
    };
    page(shown.html())
}

fn too_many(api: &Api, headers: &HeaderMap, wait: Duration) -> Response {
    let seconds = wait.as_secs() + 1;
    let refused = format!("There were too many attempts. Try again in {seconds} s.");
    let page = shown(api, headers, START, Some(&refused));
    let retry = [(header::RETRY_AFTER, HeaderValue::from(seconds))];
    (StatusCode::TOO_MANY_REQUESTS, retry, page).into_response()
}

/// Whether the browser is going to refuse the cookie, because the page came without TLS and not from
/// this machine. Browsers send `Sec-Fetch-Site` only where they keep such cookies.
fn needs_https(api: &Api, headers: &HeaderMap) -> bool {
    let server = &api.app().config().server;
    let has_tls = server.tls.is_some()
        || server
            .public_url
            .as_ref()
            .is_some_and(|url| url.starts_with("https://"));
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    !has_tls && !headers.contains_key("sec-fetch-site") && !guard::is_this_machine(host)
}

/// A stream with one event: the page shows it and does not reconnect.
fn refused_stream(error: &ApiError) -> Response {
    let mut body = String::new();
    fail_page(error, &mut body);
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_server_are_returned_to() {
        for path in ["/", "/chat", "/chat/a%2Fb?at=3", "/console/t/x/events"] {
            assert_eq!(path_to(Some(path)), path);
        }
        for path in [
            "",
            "chat",
            "//evil.example",
            "/\\evil.example",
            "/a\\b",
            "https://evil.example",
            "javascript:alert(1)",
            "/\t/evil.example",
            "/\n/evil.example",
            "/a b",
            "/ä",
            "/login?to=/login",
            "/logout",
        ] {
            assert_eq!(path_to(Some(path)), "/", "{path:?}");
        }
        let long = format!("/{}", "a".repeat(MAX_PATH_BYTES));
        assert_eq!(path_to(Some(&long)), "/");
    }
}

//! Request bodies: the limits on their size and depth, and their types.

mod arrival;
pub(crate) mod budget;
pub(crate) mod form;
mod json;

pub(crate) use arrival::{ArrivalError, Arriving, grow};
pub(crate) use budget::BodyLease;
pub(crate) use json::{parse, typed};

use crate::error::ApiError;
use crate::pause::check_pause_again;
use crate::protocol::Policy;
use crate::state::Api;
use axum::RequestPartsExt as _;
use axum::extract::{FromRequest, FromRequestParts, Request};
use http::{HeaderMap, header};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// Time limit for a body to arrive.
const ARRIVAL: Duration = Duration::from_mins(2);

/// The text of a body that is JSON within the limits.
pub(crate) struct JsonText(pub(crate) String);

/// A body of this shape.
pub(crate) struct JsonBody<T>(pub(crate) T);

/// A body of this type, or the default if the body is absent.
pub(crate) struct OptionalBody<T>(pub(crate) T);

/// A body that has arrived.
struct Arrived {
    text: String,
    is_json: bool,
    lease: BodyLease,
}

impl Arrived {
    async fn of(request: Request, api: &Api) -> Result<Self, ApiError> {
        let is_json = is_json(request.headers());
        let (mut parts, body) = request.into_parts();
        let lease: BodyLease = parts.extract().await?;
        let config = api.app().config();
        let rate = config.limits.body_bytes_per_second;
        let arriving = Arriving::new(body, lease.clone(), rate, ARRIVAL);
        // A body that is too long is told so first: nobody wants to send it twice.
        let bytes = arriving.collect(config.server.max_body_bytes).await?;
        check_pause_again(api, &parts.extensions)?;
        let text = json::utf8(bytes)?;
        Ok(Self {
            text,
            is_json,
            lease,
        })
    }

    /// Checks that the text is JSON within the limits, and passes it to `read`.
    async fn checked<T: Send + 'static>(
        self,
        api: &Api,
        read: impl FnOnce(String, usize) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        if !self.is_json {
            return Err(ApiError::NotJson);
        }
        let max_depth = api.app().config().server.max_depth;
        json::checked(self.text, max_depth, self.lease, read).await
    }
}

/// Reads a request's body, and passes its text and the maximum depth to `read`. Parses long bodies off
/// the async workers.
pub(crate) async fn required<T: Send + 'static>(
    request: Request,
    api: &Api,
    read: impl FnOnce(String, usize) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let policy = request.extensions().get::<Arc<Policy>>();
    let may_be_empty = policy.is_some_and(|it| it.rules.empty_body_is_object);
    let arrived = Arrived::of(request, api).await?;
    if arrived.text.is_empty() && may_be_empty {
        // Its clients are told which member is missing, and not which header.
        return read("{}".to_owned(), api.app().config().server.max_depth);
    }
    arrived.checked(api, read).await
}

/// Reads a body as `required` does; none if the body is absent.
pub(crate) async fn optional<T: Send + 'static>(
    request: Request,
    api: &Api,
    read: impl FnOnce(String, usize) -> Result<T, ApiError> + Send + 'static,
) -> Result<Option<T>, ApiError> {
    let arrived = Arrived::of(request, api).await?;
    if arrived.text.is_empty() {
        return Ok(None);
    }
    arrived.checked(api, read).await.map(Some)
}

impl FromRequest<Api> for JsonText {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Api) -> Result<Self, ApiError> {
        required(request, api, |text, _| Ok(Self(text))).await
    }
}

impl<T: DeserializeOwned + Send + 'static> FromRequest<Api> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Api) -> Result<Self, ApiError> {
        let read = |text: String, max_depth| typed(&text, max_depth).map(Self);
        required(request, api, read).await
    }
}

impl<T: DeserializeOwned + Default + Send + 'static> FromRequest<Api> for OptionalBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Api) -> Result<Self, ApiError> {
        let read = |text: String, max_depth| typed(&text, max_depth);
        let body = optional(request, api, read).await?;
        Ok(Self(body.unwrap_or_default()))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let kind = value
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// A query of this shape.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut http::request::Parts, _: &S) -> Result<Self, ApiError> {
        match axum::extract::Query::try_from_uri(&parts.uri) {
            Ok(axum::extract::Query(query)) => Ok(Self(query)),
            Err(rejection) => Err(ApiError::InvalidQuery {
                what: crate::error::render_error(&rejection),
            }),
        }
    }
}

/// The parts of a path.
pub(crate) struct PathOf<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathOf<T> {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut http::request::Parts,
        state: &S,
    ) -> Result<Self, ApiError> {
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(path)) => Ok(Self(path)),
            Err(rejection) => Err(ApiError::InvalidPath {
                what: rejection.body_text(),
            }),
        }
    }
}

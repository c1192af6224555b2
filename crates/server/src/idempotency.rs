//! The header `Idempotency-Key`: a client's name for a request. A repetition gets the first response.

use crate::body::{optional, required, typed};
use crate::error::ApiError;
use crate::hex::hex;
use crate::state::Api;
use aws_lc_rs::digest;
use axum::extract::{FromRequest, Request};
use http::{HeaderMap, HeaderValue};
use jiff::Timestamp;
use runtime::objects::NewObject;
use runtime::{RequestToken, RuntimeError, TenantId};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use timeline::ThreadId;

const NAME: &str = "idempotency-key";
/// Maximum length of a key, in bytes.
const MAX_BYTES: usize = 255;

/// A JSON body, and the key of its request.
pub(crate) struct KeyedBody<T>(pub(crate) T, pub(crate) IdempotencyKey);

/// A JSON body that may be absent, and the key of its request.
pub(crate) struct KeyedOptionalBody<T>(pub(crate) T, pub(crate) IdempotencyKey);

/// The key of a request, if it has one.
pub(crate) struct IdempotencyKey(Option<Key>);

struct Key {
    value: HeaderValue,
    fingerprint: String,
}

impl IdempotencyKey {
    /// The token of the request, distinct from the tokens of other kinds of requests.
    pub(crate) fn token(self, kind: &str) -> Result<Option<RequestToken>, ApiError> {
        let Some(Key { value, fingerprint }) = self.0 else {
            return Ok(None);
        };
        let text = token_text(&value, kind)?;
        Ok(Some(RequestToken::with_fingerprint(
            text,
            Some(fingerprint),
        )))
    }
}

/// The token of a request, without a fingerprint: its route compares repetitions itself.
pub(crate) fn token_of(headers: &HeaderMap, kind: &str) -> Result<Option<String>, ApiError> {
    let value = headers.get(NAME);
    value.map(|value| token_text(value, kind)).transpose()
}

/// The kind of the sidecar objects with request fingerprints. They exist for requests that create an
/// object whose id follows from their token.
const MADE: &str = "idempotency";

/// Refuses a request whose token has created the object with this id for a different request. Objects of
/// earlier versions have no fingerprint.
pub(crate) async fn check_made(
    api: &Api,
    tenant: &TenantId,
    id: &str,
    token: &RequestToken,
) -> Result<(), ApiError> {
    let first = api.runtime(tenant).objects().get(tenant, MADE, id).await?;
    let is_other = first.is_some_and(|first| {
        let first: Option<String> = serde_json::from_str(&first.json).unwrap_or_default();
        first
            .as_deref()
            .zip(token.fingerprint())
            .is_some_and(|(one, other)| one != other)
    });
    if is_other {
        return Err(RuntimeError::TokenReused.into());
    }
    Ok(())
}

/// Stores the fingerprint of the request that created the object with this id, as a sidecar object of
/// its thread.
pub(crate) async fn note_made(
    api: &Api,
    tenant: &TenantId,
    id: &str,
    token: &RequestToken,
    thread: Option<&ThreadId>,
) -> Result<(), ApiError> {
    let object = NewObject {
        kind: MADE.to_owned(),
        id: id.to_owned(),
        created_at: Timestamp::now(),
        json: serde_json::json!(token.fingerprint()).to_string(),
        content: None,
        thread: thread.cloned(),
        is_limited: thread.is_none(),
    };
    Ok(api.runtime(tenant).objects().put(tenant, object).await?)
}

fn token_text(value: &HeaderValue, kind: &str) -> Result<String, ApiError> {
    let named = value.to_str().ok().filter(|text| is_token(text));
    let named = named.ok_or(ApiError::InvalidHeader {
        name: NAME,
        expected: "1 to 255 ASCII characters",
    })?;
    Ok(format!("{kind}:{named}"))
}

/// Whether a text is a valid token.
pub(crate) fn is_token(token: &str) -> bool {
    (1..=MAX_BYTES).contains(&token.len())
}

/// The SHA-256 of the parts of a request, each with its length before it.
pub(crate) fn fingerprint(parts: &[&str]) -> String {
    let mut hash = digest::Context::new(&digest::SHA256);
    for part in parts {
        hash.update(&(part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hex(hash.finish().as_ref())
}

/// The token, the method and the path of a request, before its body is read.
#[derive(Clone)]
struct Named {
    value: Option<HeaderValue>,
    method: String,
    path: String,
}

impl Named {
    fn of(request: &Request) -> Self {
        Self {
            value: request.headers().get(NAME).cloned(),
            method: request.method().to_string(),
            path: request.uri().path().to_owned(),
        }
    }

    fn key(self, text: &str) -> IdempotencyKey {
        let Self {
            value,
            method,
            path,
        } = self;
        IdempotencyKey(value.map(|value| Key {
            value,
            fingerprint: fingerprint(&[&[&*method, &*path][..], &fingerprinted(text)].concat()),
        }))
    }
}

/// The parts of a body that a fingerprint covers: its members, sorted by name. `stream` is left out,
/// because it selects only the form of the response.
fn fingerprinted(body: &str) -> Vec<&str> {
    let Ok(members) = serde_json::from_str::<BTreeMap<&str, &RawValue>>(body) else {
        // It is no object, or a name in it has an escape.
        return vec![body];
    };
    let members = members.into_iter().filter(|(name, _)| *name != "stream");
    members
        .flat_map(|(name, value)| [name, value.get()])
        .collect()
}

impl<T: DeserializeOwned + Send + 'static> FromRequest<Api> for KeyedBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Api) -> Result<Self, ApiError> {
        let named = Named::of(&request);
        let read = move |text: String, max_depth| {
            let body = typed(&text, max_depth)?;
            Ok(Self(body, named.key(&text)))
        };
        required(request, api, read).await
    }
}

impl<T: DeserializeOwned + Default + Send + 'static> FromRequest<Api> for KeyedOptionalBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Api) -> Result<Self, ApiError> {
        let named = Named::of(&request);
        let absent = named.clone();
        let read = move |text: String, max_depth| {
            let body = typed(&text, max_depth)?;
            Ok(Self(body, named.key(&text)))
        };
        let body = optional(request, api, read).await?;
        Ok(body.unwrap_or_else(|| Self(T::default(), absent.key(""))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_leaves_out_how_the_answer_is_told() {
        let of = |body| fingerprint(&fingerprinted(body));
        let one = of(r#"{"content":"one","metadata":{"stream":true}}"#);
        for same in [
            r#"{"content":"one","metadata":{"stream":true},"stream":true}"#,
            r#"{ "stream": false, "metadata": {"stream":true}, "content": "one" }"#,
        ] {
            assert_eq!(of(same), one, "{same}");
        }
        for other in [
            r#"{"content":"two","metadata":{"stream":true}}"#,
            r#"{"content":"one","metadata":{"stream":false}}"#,
            r#"{"content":"one"}"#,
            "[]",
            "",
        ] {
            assert_ne!(of(other), one, "{other}");
        }
    }
}

//! Request bodies: how long, how deep, and of what shape they may be.

use crate::by_name::ByName;
use crate::error::ApiError;
use crate::protocol::Dialect;
use crate::state::Api;
use crate::wording;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};
use std::fmt::Write as _;
use std::time::Duration;
use thread::json::Fault;
use thread::{DecodeError, Json, Limits};

/// How long a body may take to arrive.
const ARRIVAL: Duration = Duration::from_mins(2);

/// How many values the JSON of a body may have: a short text of many values takes much memory.
const MAX_VALUES: usize = 2_000_000;

/// The text of a body that is JSON within the limits.
pub(crate) struct JsonText(pub(crate) String);

/// A body of this shape.
pub(crate) struct JsonBody<T>(pub(crate) T);

/// The same, where an absent body is the default.
pub(crate) struct OptionalBody<T>(pub(crate) T);

impl FromRequest<Api> for JsonText {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Api) -> Result<Self, ApiError> {
        let is_json = is_json(request.headers());
        let is_openai = Dialect::of(request.uri().path()) == Dialect::OpenAi;
        let limits = &api.app().config().server;
        // A body that is too long is told so first: nobody wants to send it twice.
        let text = read(request.into_body(), limits.max_body_bytes).await?;
        if text.is_empty() && is_openai {
            // Clients of this dialect are told which member is missing, and not which header.
            return Ok(Self("{}".to_owned()));
        }
        if !is_json {
            return Err(ApiError::NotJson);
        }
        check(&text, limits.max_depth)?;
        Ok(Self(text))
    }
}

impl<T: DeserializeOwned> FromRequest<Api> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Api) -> Result<Self, ApiError> {
        let JsonText(text) = JsonText::from_request(request, api).await?;
        typed(&text, api.app().config().server.max_depth).map(Self)
    }
}

impl<T: DeserializeOwned + Default> FromRequest<Api> for OptionalBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Api) -> Result<Self, ApiError> {
        match optional_text(request, api).await? {
            Some(text) => typed(&text, api.app().config().server.max_depth).map(Self),
            None => Ok(Self(T::default())),
        }
    }
}

/// The text of a body that is JSON within the limits; none if it is absent.
pub(crate) async fn optional_text(request: Request, api: &Api) -> Result<Option<String>, ApiError> {
    let is_json = is_json(request.headers());
    let limits = &api.app().config().server;
    let text = read(request.into_body(), limits.max_body_bytes).await?;
    if text.is_empty() {
        return Ok(None);
    }
    if !is_json {
        return Err(ApiError::NotJson);
    }
    check(&text, limits.max_depth)?;
    Ok(Some(text))
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

async fn read(body: Body, limit: usize) -> Result<String, ApiError> {
    let too_large = ApiError::BodyTooLarge { limit };
    if http_body::Body::size_hint(&body).lower() > limit as u64 {
        return Err(too_large);
    }
    let collected = tokio::time::timeout(ARRIVAL, Limited::new(body, limit).collect()).await;
    let bytes = match collected {
        Err(_) => return Err(ApiError::BodyTimeout),
        Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(too_large),
        Ok(Err(_)) => return Err(ApiError::BodyBroken),
        Ok(Ok(collected)) => collected.to_bytes(),
    };
    String::from_utf8(bytes.into()).map_err(|error| {
        let valid = error
            .as_bytes()
            .get(..error.utf8_error().valid_up_to())
            .unwrap_or_default();
        let lines = valid.split(|byte| *byte == b'\n');
        let (line, last) = (1..).zip(lines).last().unwrap_or_default();
        let what = "bytes that are no UTF-8".into();
        ApiError::MalformedJson {
            what,
            line,
            column: last.len() + 1,
        }
    })
}

/// Reads a text that did not come as a body, within the same limits.
pub(crate) fn parsed<T: DeserializeOwned>(text: &str, max_depth: usize) -> Result<T, ApiError> {
    check(text, max_depth)?;
    typed(text, max_depth)
}

/// Whether a text is JSON, and not too deep.
fn check(text: &str, max_depth: usize) -> Result<(), ApiError> {
    let limits = Limits {
        max_depth,
        max_bytes: usize::MAX,
        max_nodes: MAX_VALUES,
    };
    match Json::parse_with(text, &limits) {
        Ok(_) => Ok(()),
        Err(DecodeError {
            fault: Fault::TooDeep { limit },
            pointer,
            ..
        }) => Err(ApiError::TooDeep { pointer, limit }),
        Err(DecodeError {
            fault: Fault::TooManyNodes { limit },
            ..
        }) => Err(ApiError::TooManyValues { limit }),
        Err(DecodeError {
            fault,
            line,
            column,
            ..
        }) => {
            let what = format!("{fault}, expected {}", fault.expected());
            Err(ApiError::MalformedJson { what, line, column })
        }
    }
}

/// Reads JSON as a type; says where it is of another shape.
pub(crate) fn typed<T: DeserializeOwned>(text: &str, max_depth: usize) -> Result<T, ApiError> {
    let mut json = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(ByName(&mut json)).map_err(|error| {
        let pointer = pointer(error.path());
        let error = error.into_inner();
        let what = error.to_string();
        let what = what
            .rsplit_once(" at line ")
            .map_or(what.as_str(), |(what, _)| what);
        if error.is_data() {
            ApiError::field(pointer, wording::JSON.of(what))
        } else if what.contains("recursion limit") {
            ApiError::TooDeep {
                pointer,
                limit: max_depth,
            }
        } else {
            ApiError::MalformedJson {
                what: what.to_owned(),
                line: error.line(),
                column: error.column(),
            }
        }
    })
}

fn pointer(path: &Path) -> String {
    path.iter().fold(String::new(), |mut pointer, segment| {
        // Writing to a string can't fail.
        let _ = match segment {
            Segment::Seq { index } => write!(pointer, "/{index}"),
            Segment::Map { key } | Segment::Enum { variant: key } => {
                write!(pointer, "/{}", key.replace('~', "~0").replace('/', "~1"))
            }
            Segment::Unknown => Ok(()),
        };
        pointer
    })
}

/// A query of this shape.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut http::request::Parts, _: &S) -> Result<Self, ApiError> {
        match axum::extract::Query::try_from_uri(&parts.uri) {
            Ok(axum::extract::Query(query)) => Ok(Self(query)),
            Err(rejection) => Err(ApiError::InvalidQuery {
                what: crate::error::told(&rejection),
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use timeline::Payload;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Shape {
        list: Vec<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[serde(rename = "a/b")]
        n: u8,
        raw: Option<Payload>,
    }

    #[test]
    fn a_field_of_the_wrong_type_is_pointed_at() {
        let error = typed::<Shape>(r#"{"list":[{"a/b":1},{"a/b":"x"}]}"#, 128)
            .unwrap_err()
            .failure();
        assert_eq!(
            (error.code, error.pointer.as_deref()),
            ("invalid_field", Some("/list/1/a~1b"))
        );
        assert_eq!(
            error.message,
            "this is the text \"x\", expected a whole number from 0 to 255"
        );
    }

    #[test]
    fn a_list_is_no_object_whose_fields_stand_in_order() {
        for (text, pointer) in [("[[]]", ""), (r#"{"list":[{"a/b":1},[1]]}"#, "/list/1")] {
            let error = typed::<Shape>(text, 128).unwrap_err().failure();
            assert_eq!(
                (error.code, error.pointer.as_deref(), error.message.as_str()),
                (
                    "invalid_field",
                    Some(pointer),
                    "this is a list, expected an object"
                )
            );
        }
    }

    #[test]
    fn a_payload_keeps_its_text_through_the_path_tracker() {
        let shape: Shape =
            typed(r#"{"list":[{"a/b":1,"raw":{"n": 1.0,  "m":null}}]}"#, 128).unwrap();
        let inner = shape.list.first().unwrap();
        assert_eq!(
            (inner.n, inner.raw.as_ref().unwrap().text()),
            (1, r#"{"n": 1.0,  "m":null}"#)
        );
    }

    #[test]
    fn nesting_is_checked_without_recursion() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        let error = check(&deep, 128).unwrap_err().failure();
        assert_eq!(error.code, "too_deep");
        assert!(
            error
                .pointer
                .is_some_and(|pointer| pointer.starts_with("/0/0"))
        );
    }

    #[test]
    fn a_short_text_of_very_many_values_is_refused() {
        let many = format!("[{}0]", "0,".repeat(MAX_VALUES));
        assert_eq!(
            check(&many, 128).unwrap_err().failure().code,
            "too_many_values"
        );
    }

    #[test]
    fn malformed_json_has_a_line_and_a_column() {
        let error = check("{\n  \"a\": ,\n}", 128).unwrap_err().failure();
        assert_eq!(
            error.details,
            Some(serde_json::json!({ "line": 2, "column": 8 }))
        );
    }
}

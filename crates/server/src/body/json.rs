//! Bodies as JSON: checked without building their values, then read once.

use super::budget::BodyLease;
use crate::error::ApiError;
use crate::serde_messages;
use crate::strict_struct::ByName;
use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};
use std::fmt::Write as _;
use thread::json::{self, Counts, JsonFault};
use thread::{DecodeError, Limits};

/// Maximum number of values of a body.
const MAX_VALUES: usize = 500_000;

/// Length from which a text is parsed on a separate thread, in bytes.
const LONG: usize = 64 << 10;

/// Bytes as a text.
pub(super) fn utf8(bytes: Vec<u8>) -> Result<String, ApiError> {
    String::from_utf8(bytes).map_err(|error| {
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

/// Parses JSON that is not a body, within the same limits.
pub(crate) async fn parse<S, T>(text: S, max_depth: usize, lease: BodyLease) -> Result<T, ApiError>
where
    S: AsRef<str> + Send + 'static,
    T: DeserializeOwned + Send + 'static,
{
    checked(text, max_depth, lease, |text, max_depth| {
        typed(text.as_ref(), max_depth)
    })
    .await
}

/// Checks that a text is JSON within the limits, and passes it to `read`. The lease covers the text, and
/// takes the memory of its values. A long text is parsed off the async workers.
pub(super) async fn checked<S, T>(
    text: S,
    max_depth: usize,
    lease: BodyLease,
    read: impl FnOnce(S, usize) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError>
where
    S: AsRef<str> + Send + 'static,
    T: Send + 'static,
{
    let len = text.as_ref().len();
    let permit = match len {
        ..=LONG => None,
        _ => lease.budgets().parser().await,
    };
    let work = move || {
        // Until this is done, whether or not anyone waits for it.
        let _permit = permit;
        let counts = check(text.as_ref(), max_depth)?;
        lease.take_values(len, &counts)?;
        read(text, max_depth)
    };
    if len <= LONG {
        return work();
    }
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or(Err(ApiError::Panicked))
}

/// Checks that a text is JSON within limits, and counts its values.
fn check(text: &str, max_depth: usize) -> Result<Counts, ApiError> {
    let limits = Limits {
        max_depth,
        max_bytes: usize::MAX,
        max_nodes: MAX_VALUES,
    };
    match json::check(text, &limits) {
        Ok(counts) => Ok(counts),
        Err(DecodeError {
            fault: JsonFault::TooDeep { limit },
            pointer,
            ..
        }) => Err(ApiError::TooDeep { pointer, limit }),
        Err(DecodeError {
            fault: JsonFault::TooManyNodes { limit },
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

/// Parses JSON as a type; an error has the place of the mismatch.
pub(crate) fn typed<T: DeserializeOwned>(text: &str, max_depth: usize) -> Result<T, ApiError> {
    // Most bodies are well-formed, and only an error needs its place.
    let mut json = serde_json::Deserializer::from_str(text);
    if let Ok(read) = T::deserialize(ByName(&mut json)) {
        return Ok(read);
    }
    let mut json = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(ByName(&mut json)).map_err(|error| {
        let pointer = pointer(error.path());
        let error = error.into_inner();
        let what = error.to_string();
        let what = what
            .rsplit_once(" at line ")
            .map_or(what.as_str(), |(what, _)| what);
        if error.is_data() {
            ApiError::field(pointer, serde_messages::JSON.of(what))
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

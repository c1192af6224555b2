//! Reading an archive from its JSON.

use super::{Archive, ArchivedRun, Format, SourceText, VERSION};
use std::sync::Arc;
use thread::json::{Scanner, Shape, Step, Within};
use thread::{DecodeError, Json, Limits, Object};

/// An error of reading an archive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// It is not JSON, or too large.
    #[error(transparent)]
    Json(#[from] DecodeError),
    /// A member has the wrong type or is missing.
    #[error("{pointer:?}: expected {expected}, found {found}")]
    Shape {
        /// Its JSON Pointer.
        pointer: String,
        /// The expected value.
        expected: &'static str,
        /// The value that was found.
        found: String,
    },
    /// The archive is of a version that this program does not know.
    #[error(
        "an archive of version {found:?} can't be read here, only 1.x can; a newer loomline may"
    )]
    Version {
        /// The version.
        found: String,
    },
}

impl ArchiveError {
    /// The JSON Pointer of the error, if it has one position.
    #[must_use]
    pub fn pointer(&self) -> Option<&str> {
        match self {
            Self::Json(error) => Some(&error.pointer),
            Self::Shape { pointer, .. } => Some(pointer),
            Self::Version { .. } => Some("/archive"),
        }
    }
}

impl Within for ArchiveError {
    fn within(self, step: Step<'_>) -> Self {
        match self {
            Self::Json(error) => Self::Json(error.within(step)),
            Self::Shape {
                pointer,
                expected,
                found,
            } => Self::Shape {
                pointer: format!("{}{pointer}", thread::json::pointer([step])),
                expected,
                found,
            },
            Self::Version { .. } => self,
        }
    }
}

fn shape(expected: &'static str, found: impl Into<String>) -> ArchiveError {
    ArchiveError::Shape {
        pointer: String::new(),
        expected,
        found: found.into(),
    }
}

impl Archive {
    /// Reads an archive; records preserve their original text. The cost is linear in the text,
    /// which is stored once.
    pub fn decode(text: impl Into<String>, limits: &Limits) -> Result<Self, ArchiveError> {
        let source = Arc::new(text.into());
        let mut scanner = Scanner::new(&source, limits)?;
        let mut root = Object::new();
        let mut runs = None;
        let mut version = None;
        expect(
            &mut scanner,
            Shape::Object,
            "an archive, which is an object",
        )?;
        scanner.object(|scanner, key| {
            match key {
                "archive" => version = Some(member(scanner, &source)?),
                "runs" => {
                    expect(scanner, Shape::Array, "a list of runs")?;
                    let found = runs.insert(Vec::new());
                    scanner.array(|scanner, _| {
                        found.push(ArchivedRun::decode(scanner, &source)?);
                        Ok::<(), ArchiveError>(())
                    })?;
                }
                _ => {
                    let value = member(scanner, &source)?;
                    root.insert(key, value);
                }
            }
            Ok::<(), ArchiveError>(())
        })?;
        scanner.finish()?;
        let major = VERSION.split('.').next();
        match version.as_ref().map(Json::as_str) {
            Some(Some(found)) if found.split('.').next() == major => {}
            Some(Some(found)) => {
                let found = found.to_owned();
                return Err(ArchiveError::Version { found });
            }
            Some(None) => {
                return Err(shape("a version", "another type").within(Step::Key("archive")));
            }
            None => return Err(shape("the member `archive`, its version", "none")),
        }
        let runs = runs.ok_or_else(|| shape("the member `runs`", "none"))?;
        Ok(Self { root, runs })
    }
}

impl ArchivedRun {
    fn decode(scanner: &mut Scanner<'_>, source: &Arc<String>) -> Result<Self, ArchiveError> {
        expect(scanner, Shape::Object, "a run, which is an object")?;
        let mut format = None;
        let mut agent_id = None;
        let mut head = Object::new();
        let mut records = None;
        scanner.object(|scanner, key| {
            match key {
                "format" => {
                    let name = member(scanner, source)?;
                    let known = name.as_str().and_then(Format::of);
                    let expected = "pydantic-ai, ai-sdk-ui, ai-sdk-stream or thread";
                    format = Some(known.ok_or_else(|| shape(expected, name.to_text()))?);
                }
                "agent_id" => {
                    let id = member(scanner, source)?;
                    let found = id.type_name();
                    let id = id.as_str().ok_or_else(|| shape("an agent's id", found))?;
                    agent_id = Some(id.to_owned());
                }
                "records" => {
                    expect(scanner, Shape::Array, "a list of records")?;
                    let found = records.insert(Vec::new());
                    scanner.array(|scanner, _| {
                        let span = scanner.skip()?;
                        found.push(SourceText::checked(source, span));
                        Ok::<(), DecodeError>(())
                    })?;
                }
                _ => {
                    let value = member(scanner, source)?;
                    head.insert(key, value);
                }
            }
            Ok::<(), ArchiveError>(())
        })?;
        Ok(Self {
            format: format.ok_or_else(|| shape("the member `format`", "none"))?,
            agent_id,
            head,
            records: records.ok_or_else(|| shape("the member `records`", "none"))?,
        })
    }
}

fn expect(
    scanner: &mut Scanner<'_>,
    wanted: Shape,
    expected: &'static str,
) -> Result<(), ArchiveError> {
    let found = scanner.peek()?;
    if found == wanted {
        Ok(())
    } else {
        Err(shape(expected, found.name()))
    }
}

/// A member, built.
fn member(scanner: &mut Scanner<'_>, source: &Arc<String>) -> Result<Json, ArchiveError> {
    let span = scanner.skip()?;
    Ok(SourceText::checked(source, span).json())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(text: &str) -> Result<Archive, ArchiveError> {
        Archive::decode(text, &Limits::default())
    }

    #[test]
    fn an_archive_comes_back_as_it_was() {
        let text = concat!(
            r#"{"archive":"1.0.0","thread_id":"t","x":1.0,"agents":{},"#,
            r#""runs":[{"format":"pydantic-ai","agent_id":"a\"b","y":null,"records":[ {"b" : 1e2} ,[]]},"#,
            r#"{"format":"thread","records":[]}]}"#
        );
        let archive = decode(text).unwrap();
        let again = archive.encode();
        assert_eq!(again, text.replace("[ {", "[{").replace("} ,", "},"));
        assert_eq!(decode(&again).unwrap(), archive);
    }

    #[test]
    fn what_is_no_archive_is_refused_with_its_place() {
        let told = |text| decode(text).unwrap_err().to_string();
        assert_eq!(
            told("[]"),
            r#""": expected an archive, which is an object, found array"#
        );
        assert_eq!(
            told(r#"{"archive":"1.0.0","runs":[{"format":"csv"}]}"#),
            r#""/runs/0/format": expected pydantic-ai, ai-sdk-ui, ai-sdk-stream or thread, found "csv""#
        );
        assert!(told(r#"{"archive":"2.0.0","runs":[]}"#).contains("2.0.0"));
        assert!(told(r#"{"archive":"1.0.0"}"#).contains("runs"));
        assert!(
            told(r#"{"archive":"1.0.0","runs":[{"format":"thread","records":[{"a":}]}]}"#)
                .contains("/runs/0/records/0")
        );
    }
}

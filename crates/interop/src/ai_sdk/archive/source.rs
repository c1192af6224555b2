//! The records of a source.

use super::check;
use super::error::{AiSdkError, shape};
use super::events::{Streamed, events};
use crate::Losses;
use crate::archive::SourceText;
use std::sync::Arc;
use thread::json::{Scanner, Shape, Step, Within};
use thread::{DecodeError, Json, Limits};

/// A message's original text, and its value.
pub(super) struct SourceMessage {
    pub(super) record: SourceText,
    pub(super) json: Json,
}

/// The messages of a list, or of the body of a request.
pub(super) fn messages(text: &str, limits: &Limits) -> Result<Vec<SourceMessage>, AiSdkError> {
    let source = Arc::new(text.to_owned());
    let mut scanner = Scanner::new(text, limits)?;
    let mut found = None;
    match scanner.peek()? {
        Shape::Array => found = Some(list(&mut scanner, &source)?),
        Shape::Object => {
            scanner.object(|scanner, key| {
                if key == "messages" && scanner.peek()? == Shape::Array {
                    found = Some(list(scanner, &source)?);
                } else {
                    scanner.skip()?;
                }
                Ok::<(), AiSdkError>(())
            })?;
        }
        other @ (Shape::Null | Shape::Bool | Shape::Number | Shape::String) => {
            scanner.skip()?;
            return Err(shape("a list of messages", other.name()));
        }
    }
    scanner.finish()?;
    let records = found.ok_or_else(|| shape("the member `messages`, a list", "none"))?;
    let said = |(place, record): (usize, SourceText)| {
        let json = record.json();
        check::message(&json).map_err(|error| error.within(Step::Index(place)))?;
        Ok(SourceMessage { record, json })
    };
    records.into_iter().enumerate().map(said).collect()
}

fn list(scanner: &mut Scanner<'_>, source: &Arc<String>) -> Result<Vec<SourceText>, DecodeError> {
    let mut records = Vec::new();
    scanner.array(|scanner, _| {
        let span = scanner.skip()?;
        records.push(SourceText::checked(source, span));
        Ok::<(), DecodeError>(())
    })?;
    Ok(records)
}

/// The chunks of server-sent events, or of a list.
pub(super) fn chunks(
    text: &str,
    limits: &Limits,
    losses: &mut Losses,
) -> Result<Streamed, AiSdkError> {
    let mut scanner = Scanner::new(text, limits)?;
    let streamed = if text.trim_start().starts_with('[') {
        let chunks = list(&mut scanner, &Arc::new(text.to_owned()))?;
        scanner.finish()?;
        let ends = |chunk: &SourceText| {
            let json = chunk.json();
            matches!(
                json.get("type").and_then(Json::as_str),
                Some("finish" | "abort")
            )
        };
        let done = chunks.iter().any(ends);
        Streamed {
            chunks,
            done,
            done_at: Vec::new(),
        }
    } else {
        events(text, limits, losses)?
    };
    for (place, chunk) in streamed.chunks.iter().enumerate() {
        let json = chunk.json();
        let judged = match json.get("type") {
            _ if json.as_object().is_none() => {
                Err(shape("a chunk, which is an object", json.type_name()))
            }
            Some(Json::String(_)) => Ok(()),
            other => {
                let found = other.map_or("none", Json::type_name);
                Err(shape("the type of a chunk", found).within(Step::Key("type")))
            }
        };
        judged.map_err(|error| error.within(Step::Index(place)))?;
    }
    Ok(streamed)
}

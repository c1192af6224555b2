//! The message and the facts that a run of chunks contains.

use super::{major_of, text_of};
use crate::Losses;
use crate::ai_sdk::chunk::{FieldFault, Major, check_chunk};
use crate::ai_sdk::partial_json::{PartialJsonError, read};
use crate::ai_sdk::reduce::{Reducer, StreamFacts};
use crate::archive::ArchivedRun;
use crate::runs::RunInterruption;
use std::borrow::Cow;
use thread::{Json, Object};

/// The message and the facts of one stream.
pub(super) struct StreamFold {
    /// The message, if it has one.
    pub(super) message: Option<Json>,
    /// The facts that are not in the message.
    pub(super) facts: StreamFacts,
    /// Whether a client fails on the stream.
    is_broken: bool,
    done: bool,
}

/// Reads the chunks of a run. `before` is the message that the run continues. Without it, the run's
/// own copy in `continues` is used.
pub(super) fn read_chunks(
    run: &ArchivedRun,
    pointer: &str,
    before: Option<Json>,
    losses: &mut Losses,
) -> StreamFold {
    let major = major_of(&run.head);
    let continued = before.filter(|_| run.head.contains_key("continues"));
    let continued = continued.or_else(|| run.head.get("continues").cloned());
    let mut reducer = Reducer::new(major, continued).checked();
    let mut is_broken = false;
    for (place, record) in run.records.iter().enumerate() {
        let json = record.json();
        let at = format!("{pointer}/records/{place}");
        let chunk = as_sent(&json);
        if matches!(chunk, Cow::Owned(_)) {
            losses.push(
                at.as_str(),
                "a data chunk in a form that no client takes, read as the one they do",
            );
        }
        if let Err(fault @ FieldFault::UnknownType { .. }) = check_chunk(&chunk, major) {
            losses.push(at, format!("a chunk: {fault}"));
            continue;
        }
        let refused = unreadable(record.text()).map(|error| error.to_string());
        let pushed = match refused {
            Some(error) => Err(error),
            None => reducer.push(&chunk).map_err(|error| error.to_string()),
        };
        if let Err(error) = pushed {
            let rest = run.records.len() - place;
            losses.push(
                at,
                format!("the last {rest} chunks, for a client gives up: {error}"),
            );
            is_broken = true;
            break;
        }
    }
    let done = is_done(run) || done_at(run).next().is_some();
    if done {
        reducer.done();
    }
    let told = reducer.finish();
    StreamFold {
        message: told.message,
        facts: told.facts,
        is_broken,
        done,
    }
}

/// Whether a stream ended with `[DONE]`.
pub(super) fn is_done(run: &ArchivedRun) -> bool {
    run.head.get("done").and_then(Json::as_bool) == Some(true)
}

/// The numbers of the records before which the stream had a `[DONE]` marker.
pub(super) fn done_at(run: &ArchivedRun) -> impl Iterator<Item = u64> {
    let places = run.head.get("done_at").and_then(Json::as_array);
    let places = places.unwrap_or_default().iter().filter_map(Json::as_u64);
    places.filter(|place| *place <= run.records.len() as u64)
}

/// Why no client reads the text of a chunk, if so: the parse of clients refuses keys that reach for
/// the prototype.
pub(super) fn unreadable(text: &str) -> Option<PartialJsonError> {
    // Such a key is spelled out, or has an escape.
    if !text.contains("proto") && !text.contains("\\u") {
        return None;
    }
    let error = read(text).err()?;
    matches!(error, PartialJsonError::ForbiddenKey { .. }).then_some(error)
}

impl StreamFold {
    /// Why the run ended early, if it did.
    pub(super) fn interruption(&self) -> Option<RunInterruption> {
        let reason = if self.facts.aborted.is_some() {
            timeline::Interruption::USER_CANCELLED
        } else if self.is_broken || !self.facts.errors.is_empty() {
            "error"
        } else if self.facts.finished || self.done {
            return None;
        } else {
            "network_failure"
        };
        Some(RunInterruption {
            reason: reason.to_owned(),
            at: None,
        })
    }

    /// Lists the facts that the message can't hold as losses.
    pub(super) fn note_losses(&self, pointer: &str, losses: &mut Losses) {
        if let Some(reason) = &self.facts.finish_reason {
            losses.push(pointer, format!("the finish reason {reason:?}"));
        }
        if self.facts.aborted.is_some() {
            losses.push(pointer, "that the run was aborted");
        }
        for error in &self.facts.errors {
            losses.push(pointer, format!("the error {:?}", error.text));
        }
        for chunk in &self.facts.transient {
            losses.push(pointer, format!("transient {:?}", text_of(chunk, "type")));
        }
    }
}

/// A chunk in the form that clients accept: data has its own type (ruling 19).
pub(super) fn as_sent(chunk: &Json) -> Cow<'_, Json> {
    if text_of(chunk, "type") != "data" {
        return Cow::Borrowed(chunk);
    }
    let name = text_of(chunk, "name");
    let kind = match name.strip_prefix("data-") {
        Some(_) => name.to_owned(),
        None => format!("data-{name}"),
    };
    let mut sent = Object::new().with("type", kind);
    for (key, value) in chunk.as_object().into_iter().flatten() {
        match key {
            "type" | "name" => {}
            "value" => {
                sent.insert("data", value.clone());
            }
            _ => {
                sent.insert(key, value.clone());
            }
        }
    }
    if !sent.contains_key("data") {
        sent.insert("data", Json::Null);
    }
    Cow::Owned(sent.into())
}

/// Whether clients of this version know the type of a chunk.
pub(super) fn is_known(chunk: &Json, major: Major) -> bool {
    !matches!(
        check_chunk(chunk, major),
        Err(FieldFault::UnknownType { .. })
    )
}

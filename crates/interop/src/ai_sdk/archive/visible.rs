//! The messages of an archive.

use super::namespace::{self, Sealed};
use super::{lower, major_of, project, stream};
use crate::Losses;
use crate::ai_sdk::chunk::Major;
use crate::archive::{Archive, ArchivedRun, Format, SourceText};
use thread::{Json, Object};

/// A message, and the first of the records that it shows.
pub(super) struct VisibleMessage {
    pub(super) message: Json,
    pub(super) run: usize,
    pub(super) record: usize,
}

/// How messages are written.
#[derive(Clone, Copy)]
pub(super) struct How {
    pub(super) major: Major,
    pub(super) namespace: bool,
}

/// Every message of an archive. A stream that continues a message replaces it, at its place.
pub(super) fn visible_messages(
    archive: &Archive,
    how: How,
    losses: &mut Losses,
) -> Vec<VisibleMessage> {
    let mut all: Vec<VisibleMessage> = Vec::new();
    let mut lost = Losses::default();
    let mut projected = project::projected(archive, &mut lost);
    if !how.namespace {
        if !projected.is_empty() {
            losses.push(
                "/runs",
                "which members of messages are null, how they are spelled, and where each \
                       message ends",
            );
        }
        losses.extend(lost);
    }
    for (place, run) in archive.runs.iter().enumerate() {
        let pointer = format!("/runs/{place}");
        match run.format {
            Format::AiSdkUi => {
                for (record, message) in run.records.iter().enumerate() {
                    let at = format!("{pointer}/records/{record}");
                    let message = verbatim(message, run, how, &at, losses);
                    all.push(VisibleMessage {
                        message,
                        run: place,
                        record,
                    });
                }
            }
            Format::AiSdkStream => {
                let goes_on = run.head.contains_key("continues") && !all.is_empty();
                let before = all.last().filter(|_| goes_on);
                let before = before.map(|last| last.message.clone());
                let told = stream::read_chunks(run, &pointer, before, losses);
                told.note_losses(&pointer, losses);
                let Some(message) = told.message else {
                    continue;
                };
                let message = for_client(message, run, how, &pointer, losses);
                let first = if goes_on { all.pop() } else { None };
                all.push(VisibleMessage {
                    message,
                    run: first.as_ref().map_or(place, |first| first.run),
                    record: first.map_or(0, |first| first.record),
                });
            }
            Format::PydanticAi | Format::Thread => {
                let own = projected.remove(&place).unwrap_or_default();
                push_projected(&mut all, archive, place, own, how, losses);
            }
        }
    }
    all
}

fn verbatim(
    record: &SourceText,
    run: &ArchivedRun,
    how: How,
    pointer: &str,
    losses: &mut Losses,
) -> Json {
    let message = record.json();
    if namespace::is_sealed(&message) {
        losses.push(
            format!("{pointer}/metadata/loomline"),
            "that a namespace of ours, written as it came, is not believed",
        );
    }
    for_client(message, run, how, pointer, losses)
}

/// A message for clients that may be older than those it is from.
fn for_client(
    message: Json,
    run: &ArchivedRun,
    how: How,
    pointer: &str,
    losses: &mut Losses,
) -> Json {
    if how.major >= major_of(&run.head) {
        return message;
    }
    lower::lowered(message, how.major, pointer, losses)
}

fn push_projected(
    all: &mut Vec<VisibleMessage>,
    archive: &Archive,
    place: usize,
    own: Vec<project::Projected>,
    how: How,
    losses: &mut Losses,
) {
    let Some(run) = archive.runs.get(place) else {
        return;
    };
    let mut starts: Vec<usize> = own.iter().map(|one| one.record).collect();
    if let Some(first) = starts.first_mut() {
        *first = 0;
    }
    starts.push(run.records.len());
    let of = own.len() as u64;
    for (n, one) in own.into_iter().enumerate() {
        let (start, end) = (starts.get(n), starts.get(n + 1));
        let start = start.copied().unwrap_or_default();
        let pointer = format!("/runs/{place}/records/{start}");
        let mut left_out = Losses::default();
        let mut message = lower::lowered(one.message, how.major, &pointer, &mut left_out);
        if how.namespace {
            let end = end.copied().unwrap_or_default().max(start);
            let records = run.records.get(start..end).unwrap_or_default();
            let first = (n == 0).then_some(run);
            let sealed = Sealed {
                run: place as u64,
                position: n as u64,
                of,
                carried: carried(archive, first, records, all.is_empty()),
            };
            namespace::seal(&mut message, sealed);
        } else {
            losses.extend(left_out);
        }
        all.push(VisibleMessage {
            message,
            run: place,
            record: start,
        });
    }
}

/// The data that a message's namespace carries.
fn carried(
    archive: &Archive,
    first: Option<&ArchivedRun>,
    records: &[SourceText],
    is_first: bool,
) -> Object {
    let mut carried = Object::new();
    if is_first {
        carried.insert("thread", archive.root.clone());
    }
    if let Some(run) = first {
        carried.insert("format", run.format.name());
        if let Some(id) = &run.agent_id {
            carried.insert("agent_id", id.as_str());
            if let Some(config) = archive.agent(id) {
                carried.insert("agents", Object::new().with(id.as_str(), config.clone()));
            }
        }
        if !run.head.is_empty() {
            carried.insert("head", run.head.clone());
        }
    }
    let records = records.iter().map(SourceText::json);
    carried.with("records", records.collect::<Json>())
}

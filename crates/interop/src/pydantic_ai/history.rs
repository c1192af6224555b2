//! Histories in and out of an archive.

use super::PydanticAiError;
use super::messages::library_message;
use super::note::{Note, notes};
use super::truncate::{Cut, Roles, Who, truncate};
use crate::archive::{Archive, ArchivedRun, Format, SourceText};
use crate::canonical::instant;
use crate::convert::ReadOptions;
use crate::runs::{ModelMessage, ModelRun, RunInterruption, model_runs_of};
use crate::{Converted, Losses};
use std::collections::BTreeMap;
use std::sync::Arc;
use thread::{Json, Object};
use uuid::Uuid;

/// The namespace for generated thread ids; it never changes.
const NAMESPACE: Uuid = Uuid::from_u128(0x4e0b_95c1_6a0d_4d5e_8b7f_21c3_90aa_6d17);

/// Reads a history into an archive, with each message unchanged.
///
/// The following are errors with their position: text that is not JSON or too large, a value that
/// is not a list of messages, and a message that no version of the library accepts. Unknown kinds
/// and members stay.
pub fn read(text: &str, options: &ReadOptions) -> Result<Archive, PydanticAiError> {
    let notes = notes(text, &options.limits)?;
    Ok(archive_of(
        &notes,
        text,
        || Arc::new(text.to_owned()),
        options,
    ))
}

/// Reads a history like [`read`], from an owned text without a copy.
pub fn read_owned(text: String, options: &ReadOptions) -> Result<Archive, PydanticAiError> {
    let source = Arc::new(text);
    let notes = notes(&source, &options.limits)?;
    Ok(archive_of(&notes, &source, || Arc::clone(&source), options))
}

fn archive_of(
    notes: &[Note<'_>],
    text: &str,
    source: impl FnOnce() -> Arc<String>,
    options: &ReadOptions,
) -> Archive {
    let cuts = truncate(notes, None, &mut Roles::new(&options.attribution, None));
    let created_at = notes
        .iter()
        .find_map(own)
        .unwrap_or_else(|| options.at.clone());
    let updated_at = notes.iter().rev().find_map(own);
    let updated_at = updated_at.unwrap_or_else(|| options.at.clone());
    let thread_id = options.thread_id.clone();
    let root = Object::new()
        .with(
            "thread_id",
            thread_id.unwrap_or_else(|| thread_id_of(notes, text)),
        )
        .with("created_at", created_at.as_str())
        .with("updated_at", updated_at)
        .with_some("title", options.title.as_deref())
        .with("agents", Object::new());
    let mut archive = Archive {
        root,
        runs: Vec::with_capacity(cuts.len()),
    };
    register(&mut archive, &cuts, notes, &created_at);
    let source = source();
    for cut in cuts {
        let notes = notes.get(cut.messages).unwrap_or_default();
        let records = notes
            .iter()
            .map(|note| SourceText::checked(&source, note.span.clone()));
        let mut run = ArchivedRun::new(
            Format::PydanticAi,
            Some(&cut.who.agent_id),
            records.collect(),
        );
        run.head = head(cut.run_id);
        archive.runs.push(run);
    }
    archive
}

/// The instant of a message, if it has one.
pub(super) fn own(note: &Note<'_>) -> Option<String> {
    note.instant.as_deref().and_then(instant)
}

pub(super) fn head(run_id: Option<String>) -> Object {
    Object::new().with_some("run_id", run_id)
}

/// The conversation's id from the first message, or else an id derived from the text.
fn thread_id_of(notes: &[Note<'_>], text: &str) -> String {
    let said = notes
        .first()
        .and_then(|note| note.conversation_id.as_deref());
    let said = said.filter(|id| id.len() == 36 && Uuid::try_parse(id).is_ok());
    said.map_or_else(
        || Uuid::new_v5(&NAMESPACE, &gist(text.as_bytes())).to_string(),
        str::to_owned,
    )
}

/// The key of a long text: its first and last 64 KiB, and its length. Both ends of a history hold
/// ids and timestamps, so hashing the whole text would add cost but little distinction.
fn gist(text: &[u8]) -> Vec<u8> {
    const END: usize = 1 << 16;
    let (first, rest) = text.split_at(text.len().min(END));
    let (_, last) = rest.split_at(rest.len().saturating_sub(END));
    let length = (text.len() as u64).to_le_bytes();
    [first, last, &length].concat()
}

/// Registers the agents, each with the model that it used last.
pub(super) fn register(archive: &mut Archive, cuts: &[Cut], notes: &[Note<'_>], at: &str) {
    let mut agents: Vec<(&Who, String, [Option<&str>; 2])> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for cut in cuts {
        let notes = notes.get(cut.messages.clone()).unwrap_or_default();
        let place = *places.entry(&cut.who.agent_id).or_insert(agents.len());
        if place == agents.len() {
            let first = notes.iter().find_map(own);
            agents.push((&cut.who, first.unwrap_or_else(|| at.to_owned()), [None; 2]));
        }
        let Some(agent) = agents.get_mut(place) else {
            continue;
        };
        for note in notes {
            let [model, provider] = &mut agent.2;
            *model = note.model_name.as_deref().or(*model);
            *provider = note.provider_name.as_deref().or(*provider);
        }
    }
    for (who, created_at, [model, provider]) in agents {
        let Some(name) = &who.name else { continue };
        let config = Object::new()
            .with("agent_id", who.agent_id.as_str())
            .with("agent_name", name.as_str())
            .with_some("model_name", model)
            .with_some("provider_name", provider)
            .with("created_at", created_at);
        archive.register(&who.agent_id, config);
    }
}

/// The history of an archive: its own records unchanged, and records of other formats in the
/// library's form.
pub fn write(archive: &Archive) -> Converted<String> {
    let records = archive.runs.iter().flat_map(|run| &run.records);
    let length: usize = records.map(|record| record.text().len() + 1).sum();
    let mut text = String::with_capacity(length + 2);
    let mut losses = Losses::default();
    text.push('[');
    for (place, run) in archive.runs.iter().enumerate() {
        let mut push = |message: &str| {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(message);
        };
        if run.format == Format::PydanticAi {
            for record in &run.records {
                push(record.text());
            }
            continue;
        }
        let read = model_runs_of(run, &format!("/runs/{place}"));
        losses.extend(read.losses);
        for message in read.value.iter().flat_map(|run| &run.messages) {
            if let Some(message) = library_message(message, &mut losses) {
                push(&message.to_text());
            }
        }
        for run in &read.value {
            if let (Some(_), Some(last)) = (&run.interruption, run.messages.last()) {
                lose_interruption(run, last, &mut losses);
            }
        }
    }
    text.push(']');
    losses.with(text)
}

/// Reports a loss if no message records that the run was interrupted. The format can record an
/// interruption only in a message.
fn lose_interruption(run: &ModelRun, last: &ModelMessage, losses: &mut Losses) {
    if !run.messages.iter().any(is_interrupted) {
        losses.push(
            last.pointer.clone(),
            "that the run was interrupted after it, and why",
        );
    }
}

fn is_interrupted(message: &ModelMessage) -> bool {
    message.json.get("state").and_then(Json::as_str) == Some("interrupted")
}

/// A run of the library's messages, as they are.
pub(crate) fn model_runs(run: &ArchivedRun, pointer: &str) -> Converted<Vec<ModelRun>> {
    let messages: Vec<_> = run
        .records
        .iter()
        .enumerate()
        .map(|(place, record)| ModelMessage {
            json: record.json(),
            pointer: format!("{pointer}/records/{place}"),
        })
        .collect();
    let interrupted = messages.iter().any(is_interrupted);
    Converted::whole(vec![ModelRun {
        agent_id: run.agent_id.clone(),
        messages,
        interruption: interrupted.then(|| RunInterruption {
            reason: "interrupted".to_owned(),
            at: None,
        }),
    }])
}

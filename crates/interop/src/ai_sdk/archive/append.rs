//! Appending to an archive.

use super::agents::Agents;
use super::last::last;
use super::read::{push, stream_run};
use super::visible::{How, VisibleMessage, visible_messages};
use super::{AiSdkError, namespace, parts_of, source, text_of, tool_of};
use crate::ai_sdk::chunk::is_set;
use crate::archive::{Archive, ArchivedRun, SourceText};
use crate::convert::ReadOptions;
use crate::{Loss, Losses};
use thread::{Json, Object};

/// Appends messages to an archive. `text` is the whole list as it is now, or only the new messages.
///
/// If the list begins with a message of the archive, it is the whole list. Messages equal to the
/// archive's stay. From the first difference on, the archive's messages are replaced and moved to
/// `superseded`. Messages are identified by their ids. They are compared as browsers would compare
/// them, without our namespace. Any other list contains new messages only.
///
/// Linear in `text` and in the archive, because the start of the list is searched among all messages.
pub fn append_messages(
    archive: &mut Archive,
    text: &str,
    options: &ReadOptions,
) -> Result<Vec<Loss>, AiSdkError> {
    let mut said = source::messages(text, &options.limits)?;
    let how = How {
        major: super::major(u64::from(options.ai_sdk)),
        namespace: false,
    };
    let mut losses = Losses::default();
    let known = visible_messages(archive, how, &mut Losses::default());
    let is_first = |known: &VisibleMessage| {
        let id = text_of(&known.message, "id");
        let first = said.first().map(|said| &said.json);
        first.is_some_and(|first| {
            text_of(first, "id") == id
                && (!id.is_empty() || namespace::is_same(first, &known.message))
        })
    };
    let mut from = 0;
    let mut old = None;
    if let Some(start) = known.iter().position(is_first) {
        let rest = known.get(start..).unwrap_or_default();
        let same = rest
            .iter()
            .zip(&said)
            .take_while(|(known, said)| namespace::is_same(&known.message, &said.json))
            .count();
        if let Some(changed) = rest.get(same) {
            old = Some(truncate(archive, changed));
        }
        said.drain(..same);
        from = same;
    }
    if let Some(last) = said
        .iter()
        .rev()
        .find_map(|said| super::instant(said.json.get("metadata")).map(str::to_owned))
    {
        archive.root.insert("updated_at", last);
    }
    let host = archive.runs.len();
    let at = options.at.clone();
    push(archive, said, from, &at, options, &mut losses);
    if let Some(old) = old {
        keep(archive, old, host);
    }
    Ok(losses.into_vec())
}

/// Records cut off an archive. `of_run` holds the cut run's place, the cut's position and its records,
/// if that run remains.
struct Cut {
    of_run: Option<(usize, usize, Vec<SourceText>)>,
    runs: Vec<ArchivedRun>,
}

/// Removes a message and everything after it.
fn truncate(archive: &mut Archive, from: &VisibleMessage) -> Cut {
    let whole = if from.record == 0 {
        from.run
    } else {
        from.run + 1
    };
    let runs = archive.runs.split_off(whole.min(archive.runs.len()));
    let run = archive.runs.get_mut(from.run).filter(|_| from.record > 0);
    let of_run = run.map(|run| {
        let at = from.record.min(run.records.len());
        (from.run, at, run.records.split_off(at))
    });
    Cut { of_run, runs }
}

/// Stores the cut-off records as `superseded`: in the run that was cut, else in the first new run,
/// else in the last existing run, else at the root.
fn keep(archive: &mut Archive, cut: Cut, host: usize) {
    let told = |records: Vec<SourceText>| records.iter().map(SourceText::json).collect::<Json>();
    let mut old = Vec::new();
    let n_runs = archive.runs.len();
    let (place, at) = match cut.of_run {
        Some((run, at, records)) => {
            old.push(
                Object::new()
                    .with("at", at as u64)
                    .with("records", told(records)),
            );
            (Some(run), at)
        }
        None if host < n_runs => (Some(host), 0),
        None => {
            let last = n_runs.checked_sub(1);
            let run = last.and_then(|last| archive.runs.get(last));
            (last, run.map_or(0, |run| run.records.len()))
        }
    };
    for run in cut.runs {
        let entry = Object::new()
            .with("at", at as u64)
            .with("format", run.format.name())
            .with_some("agent_id", run.agent_id)
            .with("head", run.head)
            .with("records", told(run.records));
        old.push(entry);
    }
    let home = match place.and_then(|place| archive.runs.get_mut(place)) {
        Some(run) => &mut run.head,
        None => &mut archive.root,
    };
    match home.get_mut("superseded").and_then(Json::as_array_mut) {
        Some(known) => known.extend(old.into_iter().map(Json::from)),
        None => {
            home.insert("superseded", old);
        }
    }
}

/// Appends the stream of the next answer to an archive. The stream continues the last message if that
/// is the assistant's and the stream names it or no message.
///
/// Linear in `text` and in the last message. That is the message of the last run, or of the streams at
/// the end that continue one another. If that run has another format, linear in the archive.
pub fn append_stream(
    archive: &mut Archive,
    text: &str,
    options: &ReadOptions,
) -> Result<Vec<Loss>, AiSdkError> {
    let mut losses = Losses::default();
    let mut run = stream_run(text, options, &mut losses)?;
    let chunks: Vec<Json> = run.records.iter().map(SourceText::json).collect();
    let start = chunks
        .iter()
        .find(|chunk| text_of(chunk, "type") == "start");
    let id = start.and_then(|start| start.get("messageId"));
    let last = last(archive).filter(|last| text_of(last, "role") == "assistant");
    let last = last.filter(|last| id.is_none_or(|id| Some(id) == last.get("id")));
    if let Some(last) = last {
        run.head.insert("continues", open_calls(&last));
    }
    let told = |chunk: &Json| super::instant(chunk.get("messageMetadata")).map(str::to_owned);
    if let Some(at) = chunks.iter().rev().find_map(told) {
        archive.root.insert("updated_at", at);
    }
    let first = chunks.iter().find_map(told);
    let at = first.unwrap_or_else(|| options.at.clone());
    let before = archive
        .runs
        .last()
        .filter(|_| run.head.contains_key("continues"));
    let agent_id = match before.and_then(|before| before.agent_id.clone()) {
        Some(id) => id,
        None => Agents::of(&options.attribution).registered(archive, 0, &at),
    };
    run.agent_id = Some(agent_id);
    archive.runs.push(run);
    Ok(losses.into_vec())
}

/// A message reduced to the calls whose results may still change.
fn open_calls(message: &Json) -> Object {
    let is_open = |part: &&Json| match text_of(part, "state") {
        "output-available" => is_set(part, "preliminary"),
        "output-error" | "output-denied" => false,
        _ => tool_of(part).is_some(),
    };
    let parts = parts_of(message).iter().filter(is_open).cloned();
    Object::new()
        .with("id", text_of(message, "id"))
        .with("role", "assistant")
        .with("parts", parts.collect::<Json>())
}

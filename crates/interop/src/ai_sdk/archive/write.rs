//! The messages and the stream of an archive.

use super::chunks::chunks;
use super::visible::{How, visible_messages};
use super::{major, namespace, parts_of, stream, text_of};
use crate::ai_sdk::chunk::{Major, REASONS};
use crate::ai_sdk::partial_json::PartialJsonError;
use crate::ai_sdk::reduce::Reducer;
use crate::ai_sdk::sse::{DONE, write_event};
use crate::archive::{Archive, ArchivedRun, Format};
use crate::convert::WriteOptions;
use crate::{Converted, Losses};
use thread::Json;

/// The UI messages of an archive, as a client of version `options.ai_sdk` has them that read every
/// stream.
///
/// Messages that were read as UI messages are unchanged, unless they are from a newer version.
/// Messages from other formats carry the rest of their data in a namespace; see the table in
/// `docs/reference/ai-sdk.md`.
pub fn ui_messages(archive: &Archive, options: &WriteOptions) -> Converted<Vec<Json>> {
    let mut losses = Losses::default();
    let shown = visible_messages(archive, how(options), &mut losses);
    losses.with(shown.into_iter().map(|shown| shown.message).collect())
}

/// The UI messages of an archive, as a JSON array; see [`ui_messages`].
pub fn write_messages(archive: &Archive, options: &WriteOptions) -> Converted<String> {
    ui_messages(archive, options).map(|messages| Json::Array(messages).to_text())
}

fn how(options: &WriteOptions) -> How {
    How {
        major: major(u64::from(options.ai_sdk)),
        namespace: options.namespace,
    }
}

/// The UI message stream of an archive's last answer, as server-sent events.
///
/// An answer that was read as a stream is written chunk by chunk, without chunks that no client reads.
/// Any other answer is written as chunks that build its message. Earlier messages are not in the
/// stream and are reported as a loss.
pub fn write_stream(archive: &Archive, options: &WriteOptions) -> Converted<String> {
    let mut text = String::new();
    let mut losses = Losses::default();
    let how = how(options);
    match archive.runs.last() {
        Some(run) if run.format == Format::AiSdkStream => {
            let pointer = format!("/runs/{}", archive.runs.len() - 1);
            if archive.runs.len() > 1 {
                before_it(archive.runs.len() - 1, "runs", &mut losses);
            }
            as_it_came(run, &pointer, how.major, &mut text, &mut losses);
        }
        Some(_) | None => write_new(archive, how, &mut text, &mut losses),
    }
    losses.with(text)
}

fn before_it(n: usize, of: &str, losses: &mut Losses) {
    losses.push("/runs", format!("{n} {of} before the last answer"));
}

fn as_it_came(
    run: &ArchivedRun,
    pointer: &str,
    major: Major,
    text: &mut String,
    losses: &mut Losses,
) {
    let mut done_at: Vec<u64> = stream::done_at(run).collect();
    done_at.sort_unstable();
    let mut done_at = done_at.into_iter().peekable();
    for (place, record) in run.records.iter().enumerate() {
        while done_at.next_if(|at| *at <= place as u64).is_some() {
            write_event(DONE, text);
        }
        if let Some(error) = stream::unreadable(record.text()) {
            give_up(format!("{pointer}/records/{place}"), &error, losses);
            continue;
        }
        let chunk = record.json();
        let sent = stream::as_sent(&chunk);
        if !stream::is_known(&sent, major) {
            losses.push(
                format!("{pointer}/records/{place}"),
                format!("what clients of {major:?} don't know"),
            );
            continue;
        }
        match sent {
            std::borrow::Cow::Borrowed(_) => write_event(record.text(), text),
            std::borrow::Cow::Owned(sent) => write_event(&sent.to_text(), text),
        }
    }
    for _ in done_at {
        write_event(DONE, text);
    }
    if stream::is_done(run) {
        write_event(DONE, text);
    }
}

fn give_up(pointer: String, error: &PartialJsonError, losses: &mut Losses) {
    losses.push(
        pointer,
        format!("a chunk on which clients give up: {error}"),
    );
}

fn write_new(archive: &Archive, how: How, text: &mut String, losses: &mut Losses) {
    let mut shown = visible_messages(archive, how, losses);
    let Some(last) = shown.pop_if(|last| text_of(&last.message, "role") == "assistant") else {
        losses.push("/runs", "everything: the last message is no answer");
        return;
    };
    if !shown.is_empty() {
        before_it(shown.len(), "messages", losses);
    }
    let pointer = format!("/runs/{}/records/{}", last.run, last.record);
    let told = chunks(&last.message, how.major);
    let mut reducer = Reducer::new(how.major, None).checked();
    for (place, chunk) in told.iter().enumerate() {
        if !stream::is_known(chunk, how.major) {
            let what = format!("a part of type {:?}", text_of(chunk, "type"));
            let pointer = pointer.clone();
            losses.push(pointer, what);
            continue;
        }
        let event = chunk.to_text();
        if let Some(error) = stream::unreadable(&event) {
            give_up(pointer.clone(), &error, losses);
            continue;
        }
        if let Err(error) = reducer.push(chunk) {
            let rest = told.len() - place;
            let what = format!("the last {rest} chunks, for a client gives up: {error}");
            losses.push(pointer.clone(), what);
            break;
        }
        write_event(&chunk.to_text(), text);
    }
    match reducer.finish().message {
        Some(built) => compare(&last.message, &built, losses),
        None => losses.push(pointer.clone(), "the answer: a client shows nothing of it"),
    }
    let is_open = |part: &Json| matches!(text_of(part, "state"), "streaming" | "input-streaming");
    if !parts_of(&last.message).iter().any(is_open) {
        let reason = last
            .message
            .pointer("/metadata/finishReason")
            .and_then(Json::as_str);
        let finish = thread::Object::new().with("type", "finish").with_some(
            "finishReason",
            reason.filter(|reason| REASONS.contains(reason)),
        );
        write_event(&Json::from(finish).to_text(), text);
    }
    write_event(DONE, text);
}

/// Names the parts that a client builds otherwise from the stream.
fn compare(message: &Json, built: &Json, losses: &mut Losses) {
    let (ours, theirs) = (parts_of(message), parts_of(built));
    for (place, part) in ours.iter().enumerate() {
        if !theirs
            .get(place)
            .is_some_and(|built| namespace::is_same(part, built))
        {
            losses.push(
                format!("/parts/{place}"),
                "how a part is in the message: a stream builds it otherwise",
            );
        }
    }
}

//! The chunks of server-sent events.

use super::AiSdkError;
use super::halves::Halves;
use crate::Losses;
use crate::ai_sdk::sse::{DONE, SseDecoder};
use crate::archive::SourceText;
use thread::json::{JsonFault, Step, Within};
use thread::{DecodeError, Limits};

/// The chunks of a stream, and the places of its end markers.
pub(super) struct Streamed {
    pub(super) chunks: Vec<SourceText>,
    /// Whether the stream ends with [`DONE`].
    pub(super) done: bool,
    /// The chunks that an earlier [`DONE`] precedes, by index.
    pub(super) done_at: Vec<usize>,
}

/// How many characters of a line an error shows.
const SHOWN: usize = 60;

/// Reads events. Events after [`DONE`] count, as they do for clients.
pub(super) fn events(
    text: &str,
    limits: &Limits,
    losses: &mut Losses,
) -> Result<Streamed, AiSdkError> {
    check_lines(text, losses)?;
    let mut decoder = SseDecoder::with_limit(limits.max_bytes);
    let mut events = Vec::new();
    decoder.push(text.as_bytes(), &mut events)?;
    let whole = events.len();
    decoder.push(b"\n\n", &mut events)?;
    if events.len() > whole {
        events.truncate(whole);
        losses.push(
            format!("/{whole}"),
            "an event without its end, which was never sent",
        );
    }
    let mut chunks = Vec::with_capacity(events.len());
    let mut done_at = Vec::new();
    let mut halves: Option<Halves> = None;
    for (place, event) in events.into_iter().enumerate() {
        if let Some(mut open) = halves.take() {
            if !open.take(&event) {
                return Err(open.refused().into());
            }
            if open.is_whole() {
                chunks.push(open.into_chunk(limits, losses)?);
            } else {
                halves = Some(open);
            }
        } else if event == DONE {
            done_at.push(chunks.len());
        } else {
            match SourceText::parse(&event, limits) {
                Ok(chunk) => chunks.push(chunk),
                Err(error) => halves = Some(begun(&event, place, error)?),
            }
        }
    }
    if let Some(open) = halves {
        return Err(open.refused().into());
    }
    let done = done_at.pop_if(|last| *last == chunks.len()).is_some();
    Ok(Streamed {
        chunks,
        done,
        done_at,
    })
}

/// Starts joining an event that ends in half a character with the next one. Any other unreadable event
/// is an error.
fn begun(event: &str, place: usize, error: DecodeError) -> Result<Halves, DecodeError> {
    let begun = if error.fault == JsonFault::LoneSurrogate {
        Halves::new(event, place, error)
    } else {
        Err(error)
    };
    begun.map_err(|error| error.within(Step::Index(place)))
}

/// Refuses what has no line of a stream, and names the lines that are none.
fn check_lines(text: &str, losses: &mut Losses) -> Result<(), AiSdkError> {
    let mut strange = 0usize;
    let mut first = None;
    let mut first_any = None;
    let mut is_stream = false;
    for (number, line) in (1..).zip(lines(text)) {
        if line.trim().is_empty() {
            continue;
        }
        first_any = first_any.or(Some((number, line)));
        match line.split_once(':').map_or(line, |(field, _)| field) {
            "" | "data" => is_stream = true,
            "event" | "id" | "retry" => {}
            _ => {
                strange += 1;
                first = first.or(Some((number, line)));
            }
        }
    }
    if !is_stream {
        let (line, found) = first_any.unwrap_or((1, ""));
        return Err(AiSdkError::NoStream {
            line,
            expected: if is_ai_4(found) {
                "server-sent events or an array of chunks (the data stream protocol of ai 4, \
                 `0:\"…\"`, is not read)"
            } else {
                "server-sent events or an array of chunks"
            },
            found: if found.is_empty() {
                "no chunk".to_owned()
            } else {
                quoted(found)
            },
        });
    }
    if let Some((number, line)) = first {
        let line = quoted(line);
        losses.push(
            "",
            format!(
                "{strange} lines that are no fields of an event, the first of them line {number}: \
                 {line}"
            ),
        );
    }
    Ok(())
}

/// The lines of a text, without what ends them.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.split('\n');
    lines.flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

fn quoted(line: &str) -> String {
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}…", line.get(..end).unwrap_or_default()),
        None => format!("{line:?}"),
    }
}

/// Whether a line is of `ai` 4's protocol: a character for the kind, then JSON.
fn is_ai_4(line: &str) -> bool {
    let mut characters = line.chars();
    let kind = characters.next();
    kind.is_some_and(|kind| kind.is_ascii_alphanumeric())
        && characters.next() == Some(':')
        && characters.as_str().starts_with(['"', '[', '{'])
}

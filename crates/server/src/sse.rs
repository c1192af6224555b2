//! Server-sent events: records as frames, as cheaply as they can be.

use crate::error::{ApiError, ErrorBody};
use crate::event_id::{EventId, Incarnation};
use crate::state::OpenStream;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use interop::aitp::shown_metadata;
use interop::sse;
use runtime::Logged;
use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::time::Duration;
use timeline::{Event, Item};

/// How long a stream is silent before a comment shows that it lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How many records at most are sent in one piece.
const BATCH: usize = 256;

/// What a stream shows of what happens: of the records of a log, or of those beneath it as well.
pub(crate) trait View<T>: Send + 'static {
    /// Writes the frames of one thing that happened; breaks after the last one.
    fn write(&mut self, happened: &T, out: &mut String) -> ControlFlow<()>;

    /// Writes that the stream can't go on.
    fn fail(&mut self, error: &ApiError, out: &mut String);
}

/// What something that has happened is to a reader.
pub(crate) struct Told<T> {
    /// What is said, in order.
    pub(crate) said: Vec<T>,
    /// Whether this was the last.
    pub(crate) is_last: bool,
}

/// Breaks where a stream is over.
pub(crate) fn flow(is_over: bool) -> ControlFlow<()> {
    if is_over {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

/// The stream of a view, until the view, the log, the server or the end of the caller's key ends it. What can't be read
/// is told by the view, and ends it, too.
pub(crate) fn response<T: Send + 'static, E: Into<ApiError> + Send + 'static>(
    happens: BoxStream<'static, Result<T, E>>,
    mut view: impl View<T>,
    open: OpenStream,
) -> Response {
    let frames = async_stream::stream! {
        let mut batches = happens.ready_chunks(BATCH);
        let mut unwanted = std::pin::pin!(open.unwanted());
        loop {
            let next = tokio::select! {
                biased;
                why = &mut unwanted => {
                    if let Some(error) = why {
                        let mut text = String::new();
                        view.fail(&error, &mut text);
                        yield Ok(Bytes::from(text));
                    }
                    break;
                }
                next = tokio::time::timeout(KEEP_ALIVE, batches.next()) => next,
            };
            let mut text = String::new();
            let flow = match next {
                Err(_) => {
                    text.push_str(sse::KEEP_ALIVE);
                    ControlFlow::Continue(())
                }
                Ok(None) => ControlFlow::Break(()),
                Ok(Some(batch)) => batch.into_iter().try_for_each(|record| match record {
                    Ok(happened) => view.write(&happened, &mut text),
                    Err(error) => {
                        let error = error.into();
                        noted(&error);
                        view.fail(&error, &mut text);
                        ControlFlow::Break(())
                    }
                }),
            };
            if !text.is_empty() {
                yield Ok::<_, Infallible>(Bytes::from(text));
            }
            if flow.is_break() {
                break;
            }
        }
    };
    let mut response = Body::from_stream(frames).into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    response
}

/// A fault is the operator's to look at; that a thread was deleted is what somebody wanted.
fn noted(error: &ApiError) {
    let told = crate::error::told(error);
    if error.is_fault() && !error.is_logged() {
        tracing::error!(error = told, "a stream can't go on");
    } else {
        tracing::debug!(error = told, "a stream is over");
    }
}

/// Writes a record of a thread's log as a frame: its id, its type as the event.
pub(crate) fn record_frame(logged: &Logged, incarnation: Incarnation, out: &mut String) {
    let event = logged.record.event.event_type().name();
    let id = EventId {
        seq: logged.record.seq,
        incarnation: Some(incarnation),
    };
    frame(&id, event, "{", logged, out);
}

/// The same, with another id and another event; `head` is how its object begins.
pub(crate) fn frame(
    id: &impl std::fmt::Display,
    event: &str,
    head: &str,
    logged: &Logged,
    out: &mut String,
) {
    out.reserve(logged.text.len() + head.len() + 128);
    sse::write_id(id, out);
    sse::begin(event, out);
    let start = out.len();
    out.push_str(head);
    record_fields(logged, out);
    // JSON that came from outside is kept as it came, line breaks between its tokens included.
    if out
        .as_bytes()
        .iter()
        .skip(start)
        .any(|byte| matches!(byte, b'\n' | b'\r'))
    {
        let data = out
            .split_off(start)
            .replace("\r\n", "\n")
            .replace('\r', "\n");
        out.push_str(&data.replace('\n', "\ndata: "));
    }
    out.push_str(sse::END);
}

/// Writes a record as JSON: `{"seq": …, "at": …, …event}`.
pub(crate) fn record_json(logged: &Logged, out: &mut String) {
    out.push('{');
    record_fields(logged, out);
}

/// Writes the fields of a record, and the end of its object.
fn record_fields(logged: &Logged, out: &mut String) {
    let text = shown(logged);
    let fields = text.strip_prefix('{').unwrap_or("}");
    // Writing to a string can't fail.
    let _ = write!(
        out,
        r#""seq":{},"at":"{}","#,
        logged.record.seq, logged.record.at
    );
    out.push_str(fields);
}

/// The event as clients may see it: that an actor has joined, without the credential it is bound to.
fn shown(logged: &Logged) -> Cow<'_, str> {
    let text: &str = &logged.text;
    let Event::ItemCreated { item } = &logged.record.event else {
        return text.into();
    };
    let metadata = shown_metadata(item);
    if metadata == item.metadata {
        return text.into();
    }
    let item = Item {
        metadata,
        ..item.clone()
    };
    // An event that was read can be written.
    let written = Event::ItemCreated { item }.encode();
    written.map_or(Cow::Borrowed("}"), Cow::Owned)
}

/// Writes a failure as a frame.
pub(crate) fn failure_frame(error: &ApiError, out: &mut String) {
    let body = serde_json::to_string(&ErrorBody {
        error: error.failure(),
    })
    .unwrap_or_else(|_| "{}".into());
    sse::write_named("error", body, out);
}

/// Whether the client asks for JSON and not for a stream.
pub(crate) fn wants_json(headers: &HeaderMap) -> bool {
    accepts(headers, "application/json") && !wants_stream(headers)
}

/// Whether the client asks for a stream.
pub(crate) fn wants_stream(headers: &HeaderMap) -> bool {
    accepts(headers, "text/event-stream")
}

fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let values = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|item| {
        item.split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .eq_ignore_ascii_case(kind)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::{Payload, Record, Seq};

    #[test]
    fn a_frame_is_one_event_whatever_line_breaks_its_json_has() {
        let part = Payload::from_text("{\"type\":\"app-x\",\r\n\"n\":\n1.0}".into()).unwrap();
        let event = Event::PartCreated {
            part_key: "s:0".into(),
            step_id: "s".into(),
            idx: 0,
            part,
        };
        let text = event.encode().unwrap().into();
        let logged = Logged {
            record: Record {
                seq: Seq(7),
                at: jiff::Timestamp::UNIX_EPOCH,
                event,
            },
            text,
        };
        let mut out = String::new();
        let incarnation = Incarnation::of(&"t".into());
        record_frame(&logged, incarnation, &mut out);
        assert_eq!(
            out,
            "id: 7.e3b98a4d\nevent: part.created\ndata: {\"seq\":7,\"at\":\"1970-01-01T00:00:00Z\",\"type\":\"part.created\",\
             \"partKey\":\"s:0\",\"stepId\":\"s\",\"idx\":0,\"part\":{\"type\":\"app-x\",\ndata: \"n\":\ndata: 1.0}}\n\n"
        );
    }
}

//! Server-sent events: writes records as frames, with few copies.

mod body;
mod buffer;

pub(crate) use buffer::FrameBuffer;

use crate::error::{ApiError, ErrorBody};
use crate::event_id::{EventId, Incarnation};
use crate::state::OpenStream;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use body::EventBody;
use futures_util::stream::BoxStream;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use interop::aitp::shown_metadata;
use interop::sse;
use runtime::{FollowedRecord, Logged};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use timeline::{Event, Item};

/// The view of a stream: it turns log records, or the records of descendants too, into events.
pub(crate) trait View<T>: Send + 'static {
    /// Writes the frames of one input; breaks after the last one.
    fn write(&mut self, happened: &T, out: &mut FrameBuffer) -> ControlFlow<()>;

    /// Writes the error that ends the stream.
    fn fail(&mut self, error: &ApiError, out: &mut String);
}

/// The events of one record.
pub(crate) struct SentEvents<T> {
    /// The events, in order.
    pub(crate) events: Vec<T>,
    /// Whether this was the last.
    pub(crate) is_last: bool,
}

/// Breaks if a stream is over.
pub(crate) fn flow(is_over: bool) -> ControlFlow<()> {
    if is_over {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

/// Streams the events of a view. The stream ends when the view, the log, the server or the caller's key
/// ends. A record that the view can't read becomes an error event, and ends the stream too.
pub(crate) fn response<T: Send + 'static, E: Into<ApiError> + Send + 'static>(
    happens: BoxStream<'static, Result<T, E>>,
    view: impl View<T>,
    open: OpenStream,
) -> Response {
    let mut response = Body::new(EventBody::new(happens, view, open)).into_response();
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

/// Logs an error that concerns the operator. A deleted thread is not one.
fn noted(error: &ApiError) {
    let told = crate::error::render_error(error);
    if error.is_fault() && !error.is_logged() {
        tracing::error!(error = told, "a stream can't go on");
    } else {
        tracing::debug!(error = told, "a stream is over");
    }
}

/// Writes a record of a thread's log as a frame: its id, its type as the event.
pub(crate) fn record_frame(
    followed: &FollowedRecord,
    incarnation: Incarnation,
    out: &mut FrameBuffer,
) {
    let event = followed.record.event.event_type().name();
    let id = EventId {
        position: followed.position,
        incarnation: Some(incarnation),
    };
    frame(&id, event, "{", followed, out);
}

/// Writes a record as a frame with another id and event. `head` begins its JSON object.
pub(crate) fn frame(
    id: &impl std::fmt::Display,
    event: &str,
    head: &str,
    logged: &Logged,
    out: &mut FrameBuffer,
) {
    sse::write_id(id, out);
    sse::begin(event, out);
    out.push_str(head);
    record_place(logged, out);
    let text = record_text(logged);
    // JSON that came from outside is kept as it came, line breaks between its tokens included.
    if text.contains(['\n', '\r']) {
        let data = fields(&text).replace("\r\n", "\n").replace('\r', "\n");
        out.push_str(&data.replace('\n', "\ndata: "));
    } else if let Cow::Borrowed(text) = text {
        out.push_text(logged, text.len() - fields(text).len()..text.len());
    } else {
        out.push_str(fields(&text));
    }
    out.push_str(sse::END);
}

/// Writes a record as JSON: `{"seq": …, "at": …, …event}`.
pub(crate) fn record_json(logged: &Logged, out: &mut String) {
    out.push('{');
    record_place(logged, out);
    out.push_str(fields(&record_text(logged)));
}

/// Writes a record's `seq` and time.
fn record_place(logged: &Logged, out: &mut String) {
    // Writing to a string can't fail.
    let _ = write!(
        out,
        r#""seq":{},"at":"{}","#,
        logged.record.seq, logged.record.at
    );
}

/// The fields of an event, and the end of its object.
fn fields(text: &str) -> &str {
    text.strip_prefix('{').unwrap_or("}")
}

/// The event as clients may see it. A joined actor is shown without the credential that it is bound to.
fn record_text(logged: &Logged) -> Cow<'_, str> {
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

/// Writes an error as a frame.
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
            large: None,
        };
        let mut out = FrameBuffer::default();
        let incarnation = Incarnation::of(&"t".into());
        let followed = FollowedRecord::stored(logged.into());
        record_frame(&followed, incarnation, &mut out);
        assert_eq!(
            *out,
            "id: 7.e3b98a4d\nevent: part.created\ndata: {\"seq\":7,\"at\":\"1970-01-01T00:00:00Z\",\"type\":\"part.created\",\
             \"partKey\":\"s:0\",\"stepId\":\"s\",\"idx\":0,\"part\":{\"type\":\"app-x\",\ndata: \"n\":\ndata: 1.0}}\n\n"
        );
    }
}

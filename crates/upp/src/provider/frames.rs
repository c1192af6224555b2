//! The frames of a response: server-sent events or lines, with a limit on each.

use crate::error::{Code, Error};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use sse_stream::SseByteStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The data of one event, or one line.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) data: String,
    /// Whether the bytes ended before what ends a frame: it may be cut short.
    pub(crate) unfinished: bool,
}

impl Frame {
    /// Passes the frame's data to a decoder. Returns `None` if the frame was cut off; the end of the
    /// answer then reports the loss.
    pub(crate) fn read<E>(
        &self,
        push: impl FnOnce(&str) -> Result<Vec<E>, Error>,
    ) -> Result<Option<Vec<E>>, Error> {
        let data = self.data.trim();
        if data.is_empty() {
            return Ok(Some(Vec::new()));
        }
        match push(data) {
            Ok(events) => Ok(Some(events)),
            Err(error) if self.unfinished && error.code == Code::InvalidResponse => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Why frames can't be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    #[error("the bytes can't be read")]
    Body(#[source] Error),
    #[error("a frame is longer than {0} bytes")]
    TooLong(usize),
    #[error("the event stream is malformed")]
    Malformed(#[source] sse_stream::Error),
}

impl FrameError {
    /// The protocol's error.
    pub(super) fn into_error(self, provider: &str) -> Error {
        match self {
            Self::Body(error) => error,
            Self::TooLong(_) | Self::Malformed(_) => {
                Error::new(Code::InvalidResponse, provider, self.to_string())
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("too long")]
    TooLong,
    #[error("body")]
    Body(#[source] Error),
}

/// The events of `bytes` that have data. An event longer than `most` bytes is an error. So are `most`
/// bytes of comments without an event.
pub(super) fn events(
    bytes: impl Stream<Item = Result<Bytes, Error>> + Send + 'static,
    most: usize,
) -> impl Stream<Item = Result<Frame, FrameError>> + Send {
    async_stream::try_stream! {
        // The parser holds an event's bytes until its blank line, whatever their number.
        let held = Arc::new(AtomicUsize::new(0));
        let ended = Arc::new(AtomicBool::new(false));
        let (count, end) = (Arc::clone(&held), Arc::clone(&ended));
        let bounded = bytes
            .map(move |chunk| {
                let chunk = chunk.map_err(Broken::Body)?;
                let held = count.fetch_add(chunk.len(), Ordering::Relaxed);
                if held.saturating_add(chunk.len()) > most {
                    return Err(Broken::TooLong);
                }
                Ok(chunk)
            })
            // The last event may lack its blank line.
            .chain(futures_util::stream::once(async move {
                end.store(true, Ordering::Relaxed);
                Ok(Bytes::from_static(b"\n\n"))
            }));
        let mut events = std::pin::pin!(SseByteStream::new(bounded));
        while let Some(event) = events.next().await {
            held.store(0, Ordering::Relaxed);
            let event = event.map_err(|error| failure(error, most))?;
            if let Some(data) = event.data {
                yield Frame { data, unfinished: ended.load(Ordering::Relaxed) };
            }
        }
    }
}

/// The data of the server-sent events in these bytes, independent of their boundaries. An event longer
/// than `most` bytes and malformed data are errors of `provider`.
pub fn event_data<S>(
    bytes: S,
    most: usize,
    provider: &str,
) -> impl Stream<Item = Result<String, Error>> + Send + use<S> + 'static
where
    S: Stream<Item = Result<Bytes, Error>> + Send + 'static,
{
    let provider = provider.to_owned();
    events(bytes, most).map(move |frame| match frame {
        Ok(frame) => Ok(frame.data),
        Err(error) => Err(error.into_error(&provider)),
    })
}

fn failure(error: sse_stream::Error, most: usize) -> FrameError {
    let sse_stream::Error::Body(cause) = error else {
        return FrameError::Malformed(error);
    };
    match cause.downcast::<Broken>() {
        Ok(broken) => match *broken {
            Broken::TooLong => FrameError::TooLong(most),
            Broken::Body(cause) => FrameError::Body(cause),
        },
        Err(cause) => FrameError::Malformed(sse_stream::Error::Body(cause)),
    }
}

/// The lines of `bytes`; linear, however they are cut. Invalid UTF-8 is replaced.
pub(super) fn lines(
    bytes: impl Stream<Item = Result<Bytes, Error>> + Send + 'static,
    most: usize,
) -> impl Stream<Item = Result<Frame, FrameError>> + Send {
    async_stream::try_stream! {
        let mut held = BytesMut::new();
        let mut bytes = std::pin::pin!(bytes);
        while let Some(chunk) = bytes.next().await {
            let chunk = chunk.map_err(FrameError::Body)?;
            let mut seen = held.len();
            held.extend_from_slice(&chunk);
            while let Some(end) = held.iter().skip(seen).position(|byte| *byte == b'\n') {
                let line = held.split_to(seen + end + 1);
                seen = 0;
                if line.len() > most {
                    Err(FrameError::TooLong(most))?;
                }
                yield Frame { data: String::from_utf8_lossy(&line).into_owned(), unfinished: false };
            }
            if held.len() > most {
                Err(FrameError::TooLong(most))?;
            }
        }
        if !held.is_empty() {
            yield Frame { data: String::from_utf8_lossy(&held).into_owned(), unfinished: true };
        }
    }
}

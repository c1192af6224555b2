//! Server-sent events from a response's bytes, with a limit on each event.

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use sse_stream::SseByteStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The data of one event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) data: String,
    /// Whether the bytes ended before the blank line that ends an event: it may be cut short.
    pub(crate) unfinished: bool,
}

/// Why events can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SseError<E: std::error::Error + 'static> {
    #[error("the bytes can't be read")]
    Body(#[source] E),
    #[error("an event is longer than {0} bytes")]
    TooLong(usize),
    #[error("the event stream is malformed")]
    Malformed(#[source] sse_stream::Error),
}

#[derive(Debug, thiserror::Error)]
enum Broken<E: std::error::Error + 'static> {
    #[error("too long")]
    TooLong,
    #[error("body")]
    Body(#[source] E),
}

/// The events of `bytes` that have data. An event longer than `most` bytes is an error; so are as
/// many bytes of comments, which are no answer either.
pub(crate) fn events<E>(
    bytes: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    most: usize,
) -> impl Stream<Item = Result<Event, SseError<E>>> + Send
where
    E: std::error::Error + Send + Sync + 'static,
{
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
                yield Event { data, unfinished: ended.load(Ordering::Relaxed) };
            }
        }
    }
}

fn failure<E>(error: sse_stream::Error, most: usize) -> SseError<E>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let sse_stream::Error::Body(cause) = error else {
        return SseError::Malformed(error);
    };
    match cause.downcast::<Broken<E>>() {
        Ok(broken) => match *broken {
            Broken::TooLong => SseError::TooLong(most),
            Broken::Body(cause) => SseError::Body(cause),
        },
        Err(cause) => SseError::Malformed(sse_stream::Error::Body(cause)),
    }
}

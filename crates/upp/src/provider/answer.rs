//! Has a codec read the bytes of an answer.

use super::frames::{self, Frame, FrameError};
use crate::codec::{Codec, Decoder, Framing, Progress};
use crate::error::{Code, Error};
use crate::model::ModelEvent;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use std::pin::Pin;

type Frames = Pin<Box<dyn Stream<Item = Result<Frame, FrameError>> + Send>>;

/// Reads the bytes of a streamed answer, however they are cut; a frame longer than `most` bytes is
/// an error. An answer that ends too early is an error too.
pub fn answer<S>(
    codec: &dyn Codec,
    mut decoder: Box<dyn Decoder>,
    bytes: S,
    most: usize,
) -> impl Stream<Item = Result<ModelEvent, Error>> + Send + use<S> + 'static
where
    S: Stream<Item = Result<Bytes, Error>> + Send + 'static,
{
    let provider = codec.provider().to_owned();
    let mut frames: Frames = match codec.framing() {
        Framing::ServerSentEvents => Box::pin(frames::events(bytes, most)),
        Framing::Lines => Box::pin(frames::lines(bytes, most)),
    };
    async_stream::try_stream! {
        while decoder.progress() != Progress::Closed
            && let Some(frame) = frames.next().await
        {
            let frame = match frame {
                Ok(frame) => frame,
                // Only what a provider may leave out anyway is missing.
                Err(FrameError::Body(error))
                    if decoder.progress() == Progress::Answered
                        && error.code != Code::Cancelled => break,
                Err(error) => Err(unreadable(&provider, error))?,
            };
            let data = frame.data.trim();
            if data.is_empty() {
                continue;
            }
            match decoder.push(data) {
                Ok(events) => {
                    for event in events {
                        yield ModelEvent::Event(event);
                    }
                }
                // Cut short: the answer's end will say what is missing.
                Err(error) if frame.unfinished && error.code == Code::InvalidResponse => break,
                Err(error) => Err(error)?,
            }
        }
        let (events, response) = decoder.finish()?;
        for event in events {
            yield ModelEvent::Event(event);
        }
        yield ModelEvent::Done(Box::new(response));
    }
}

fn unreadable(provider: &str, error: FrameError) -> Error {
    match error {
        FrameError::Body(error) => error,
        FrameError::TooLong(_) | FrameError::Malformed(_) => {
            Error::new(Code::InvalidResponse, provider, error.to_string())
        }
    }
}

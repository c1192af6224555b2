//! Has a codec read the bytes of an answer.

use super::frames::{self, Frame, FrameError};
use crate::codec::{Codec, CodecProgress, Decoder, Framing};
use crate::error::{Code, Error};
use crate::model::ModelEvent;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use std::pin::Pin;

type Frames = Pin<Box<dyn Stream<Item = Result<Frame, FrameError>> + Send>>;

/// Reads the bytes of a streamed answer, independent of their boundaries. A frame longer than `most`
/// bytes is an error, and so is an answer that ends too early. The caller limits the total size.
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
        while decoder.progress() != CodecProgress::Closed
            && let Some(frame) = frames.next().await
        {
            let frame = match frame {
                Ok(frame) => frame,
                // Only what a provider may leave out anyway is missing.
                Err(FrameError::Body(error))
                    if decoder.progress() == CodecProgress::Answered
                        && error.code != Code::Cancelled => break,
                Err(error) => Err(error.into_error(&provider))?,
            };
            let Some(events) = frame.read(|data| decoder.push(data))? else {
                break;
            };
            for event in events {
                yield ModelEvent::Event(event);
            }
        }
        let (events, response) = decoder.finish()?;
        for event in events {
            yield ModelEvent::Event(event);
        }
        yield ModelEvent::Done(Box::new(response));
    }
}

//! The body of an event stream: bounded in bytes, and ended when its reader stalls.

use super::buffer::FrameBuffer;
use super::{View, noted};
use crate::error::ApiError;
use crate::state::{OpenStream, StreamLifetime};
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt as _, StreamExt as _};
use http_body::Frame;
use interop::sse::KEEP_ALIVE as COMMENT;
use runtime::{PAGE_BYTES, RuntimeError, ViewShare};
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

/// Time of silence after which a stream sends a comment, to keep the connection alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Frames are gathered up to this size before they are sent, in bytes.
const BATCH_BYTES: usize = 64 << 10;
/// Time limit for the reader of an ending stream to accept its last frame.
const LAST_FRAME: Duration = Duration::from_secs(1);

/// The reader of an event stream has accepted no bytes for too long, or has lost its right to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the reader of the stream is disconnected")]
pub(crate) struct Disconnected;

/// The source of a stream's frames.
trait Source: Send {
    /// The next frames; none after the last.
    fn poll_frames(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>>;

    /// Ends the stream after the frames that are ready, and after the error if there is one.
    fn end(&mut self, error: Option<&ApiError>);
}

struct Frames<T, E, V> {
    happens: BoxStream<'static, Result<T, E>>,
    view: V,
    buffer: FrameBuffer,
    is_over: bool,
    /// The request's share of the memory for reading threads.
    reading: Option<ViewShare>,
    silence: Pin<Box<Sleep>>,
}

impl<T, E: Into<ApiError>, V: View<T>> Frames<T, E, V> {
    /// Collects frames until a batch is full, or until no more are ready.
    fn gather(&mut self, context: &mut Context<'_>) {
        while !self.is_over && self.buffer.len() < BATCH_BYTES {
            match self.happens.poll_next_unpin(context) {
                Poll::Ready(happened) => self.write(happened),
                Poll::Pending => return,
            }
        }
    }

    fn write(&mut self, happened: Option<Result<T, E>>) {
        let flow = match happened {
            None => ControlFlow::Break(()),
            Some(Ok(happened)) => self.view.write(&happened, &mut self.buffer),
            Some(Err(error)) => {
                let error = error.into();
                noted(&error);
                self.view.fail(&error, &mut self.buffer);
                ControlFlow::Break(())
            }
        };
        self.is_over = flow.is_break();
        self.check_size();
    }

    /// Ends a stream with large next frames if other streams have too many unsent bytes.
    fn check_size(&mut self) {
        let bytes = self.buffer.own_bytes();
        let Some(reading) = self.reading.as_ref().filter(|_| bytes > PAGE_BYTES) else {
            return;
        };
        if let Err(refused) = reading.try_hold(bytes) {
            let error = RuntimeError::from(refused).into();
            noted(&error);
            self.buffer = FrameBuffer::default();
            self.view.fail(&error, &mut self.buffer);
            self.is_over = true;
        }
    }
}

impl<T, E, V> Source for Frames<T, E, V>
where
    T: Send,
    E: Into<ApiError> + Send,
    V: View<T>,
{
    fn poll_frames(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self.reading.clone() {
            Some(reading) => {
                if self.buffer.is_empty() {
                    // What was read as a whole, or written, is sent.
                    reading.release();
                }
                reading.sync_scope(|| self.gather(context));
            }
            None => self.gather(context),
        }
        if let Some(piece) = self.buffer.pop() {
            self.silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
            return Poll::Ready(Some(piece));
        }
        if self.is_over {
            return Poll::Ready(None);
        }
        if self.silence.poll_unpin(context).is_pending() {
            return Poll::Pending;
        }
        self.silence.as_mut().reset(Instant::now() + KEEP_ALIVE);
        Poll::Ready(Some(Bytes::from_static(COMMENT.as_bytes())))
    }

    fn end(&mut self, error: Option<&ApiError>) {
        if let Some(error) = error.filter(|_| !self.is_over) {
            self.view.fail(error, &mut self.buffer);
        }
        self.is_over = true;
    }
}

/// The state that a stream's body and its guard share.
struct Stream {
    source: Option<Box<dyn Source>>,
    /// The permit.
    open: Option<OpenStream>,
    /// When the connection took a frame; none after it polls for the next one.
    taken: Option<Instant>,
    is_cut: bool,
    waker: Option<Waker>,
}

type Shared = Mutex<Stream>;

fn locked(shared: &Shared) -> MutexGuard<'_, Stream> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The body of an event stream.
pub(super) struct EventBody {
    stream: Arc<Shared>,
    /// Ends with the body.
    _guard: JoinSet<()>,
}

impl EventBody {
    /// The frames of a view. A reader that polls for no frame for `stalled_reader` is disconnected.
    pub(super) fn new<T: Send + 'static, E: Into<ApiError> + Send + 'static>(
        happens: BoxStream<'static, Result<T, E>>,
        view: impl View<T>,
        open: OpenStream,
    ) -> Self {
        let stalled_reader = open.stalled_reader();
        let lifetime = open.lifetime().clone();
        let source = Frames {
            happens,
            view,
            buffer: FrameBuffer::default(),
            is_over: false,
            reading: ViewShare::current(),
            silence: Box::pin(sleep(KEEP_ALIVE)),
        };
        let stream = Arc::new(Mutex::new(Stream {
            source: Some(Box::new(source)),
            open: Some(open),
            taken: None,
            is_cut: false,
            waker: None,
        }));
        let mut tasks = JoinSet::new();
        tasks.spawn(guard(Arc::downgrade(&stream), lifetime, stalled_reader));
        Self {
            stream,
            _guard: tasks,
        }
    }
}

impl http_body::Body for EventBody {
    type Data = Bytes;
    type Error = Disconnected;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Disconnected>>> {
        let mut stream = locked(&self.stream);
        stream.taken = None;
        let Some(source) = &mut stream.source else {
            let is_cut = std::mem::take(&mut stream.is_cut);
            let end = is_cut.then_some(Err(Disconnected));
            return Poll::Ready(end);
        };
        match source.poll_frames(context) {
            Poll::Ready(Some(bytes)) => {
                stream.taken = Some(Instant::now());
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Poll::Ready(None) => {
                stream.source = None;
                stream.open = None;
                Poll::Ready(None)
            }
            Poll::Pending => {
                stream.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// Ends a stream when it must end, and disconnects a reader that does not poll for frames.
async fn guard(stream: Weak<Shared>, lifetime: StreamLifetime, stalled_reader: Duration) {
    let mut unwanted = pin!(lifetime.ended());
    let mut wakes = Instant::now() + stalled_reader;
    loop {
        tokio::select! {
            error = &mut unwanted => {
                end(&stream, error.as_ref());
                sleep(LAST_FRAME).await;
                break;
            }
            () = sleep_until(wakes) => {}
        }
        let Some(stream) = stream.upgrade() else {
            return;
        };
        let now = Instant::now();
        wakes = locked(&stream).taken.unwrap_or(now) + stalled_reader;
        if wakes <= now {
            break;
        }
    }
    close(&stream);
}

fn end(stream: &Weak<Shared>, error: Option<&ApiError>) {
    let Some(stream) = stream.upgrade() else {
        return;
    };
    let mut stream = locked(&stream);
    if let Some(source) = &mut stream.source {
        source.end(error);
    }
    if let Some(waker) = stream.waker.take() {
        waker.wake();
    }
}

/// Drops everything of a stream, including its permit. Its connection fails at the next read of the
/// body.
fn close(stream: &Weak<Shared>) {
    let Some(stream) = stream.upgrade() else {
        return;
    };
    let mut stream = locked(&stream);
    let held = (stream.source.take(), stream.open.take());
    if held.0.is_some() {
        stream.is_cut = true;
        tracing::debug!("the reader of a stream is disconnected");
    }
    if let Some(waker) = stream.waker.take() {
        waker.wake();
    }
    drop(stream);
    drop(held);
}

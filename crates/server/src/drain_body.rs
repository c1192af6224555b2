//! Responses to requests whose bodies were not read.

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, Version, header};
use http_body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

/// Sets `Connection: close` on the response if the request's body was not read to its end.
///
/// The connection must close then, because the rest of the body can't be separated from the next
/// request. A client without this header might send its next request while the connection closes.
pub(crate) async fn close(request: Request, next: Next) -> Response {
    if http_body::Body::is_end_stream(request.body()) || request.version() > Version::HTTP_11 {
        return next.run(request).await;
    }
    let is_read = Arc::new(AtomicBool::new(false));
    let noted = Arc::clone(&is_read);
    let request = request.map(|body| {
        Body::new(Noted {
            body,
            is_read: noted,
        })
    });
    let mut response = next.run(request).await;
    if !is_read.load(Ordering::Acquire) {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    response
}

/// A body that notes when it was read to its end.
struct Noted {
    body: Body,
    is_read: Arc<AtomicBool>,
}

impl http_body::Body for Noted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None)) || self.body.is_end_stream() {
            self.is_read.store(true, Ordering::Release);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

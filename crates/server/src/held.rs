//! Response bodies that hold a value until they are sent.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use runtime::ViewShare;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A response body, and a value that is dropped when the body is sent or dropped.
pub(crate) struct HeldBody<T> {
    body: Body,
    _held: T,
}

impl<T> HeldBody<T> {
    pub(crate) fn new(body: Body, held: T) -> Self {
        Self { body, _held: held }
    }
}

/// Holds a request's share of the memory for reading threads until its response is sent or dropped.
pub(crate) fn until_sent(response: Response, view: ViewShare) -> Response {
    if !view.is_held() {
        return response;
    }
    response.map(|body| Body::new(HeldBody::new(body, view)))
}

impl<T: Unpin> HttpBody for HeldBody<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

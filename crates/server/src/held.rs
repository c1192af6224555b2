//! Answers that hold a share of the budget for reading threads until they are sent.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use runtime::ViewShare;
use std::pin::Pin;
use std::task::{Context, Poll};

struct Held {
    body: Body,
    _view: ViewShare,
}

/// Keeps what the request holds until its answer is sent, or dropped.
pub(crate) fn until_sent(response: Response, view: ViewShare) -> Response {
    if !view.is_held() {
        return response;
    }
    response.map(|body| Body::new(Held { body, _view: view }))
}

impl HttpBody for Held {
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

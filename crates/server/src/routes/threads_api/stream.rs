//! A run as events of the Threads API.

use crate::error::ApiError;
use crate::sse::{self, FrameBuffer, View};
use crate::state::OpenStream;
use crate::threads::ThreadRef;
use axum::response::Response;
use interop::threads::RunStream;
use runtime::{FollowedRecord, Until};
use std::ops::ControlFlow;
use timeline::Seq;

/// Shows one run. If the reader disconnects, the run continues.
pub(super) struct RunView(pub(super) RunStream);

impl RunView {
    /// The streaming response with the events after a position.
    pub(super) async fn response(
        self,
        found: &ThreadRef,
        after: Seq,
        open: OpenStream,
    ) -> Result<Response, ApiError> {
        let follow = found.follow(after, Until::Forever);
        Ok(sse::response(follow.await?, self, open))
    }
}

impl View<FollowedRecord> for RunView {
    fn write(&mut self, followed: &FollowedRecord, out: &mut FrameBuffer) -> ControlFlow<()> {
        self.0.write(&followed.record, out)
    }

    fn fail(&mut self, error: &ApiError, out: &mut String) {
        self.0.fail(&error.failure().message, out);
    }
}

//! Detects that a whole step was dropped.

use crate::writer::StepWriter;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The work on a step. When it is dropped, it first marks the writer as abandoned. So a future
/// inside it can distinguish the drop of the step from its own.
pub(crate) struct Scoped<F> {
    writer: Arc<StepWriter>,
    work: Pin<Box<F>>,
}

impl<F> Scoped<F> {
    pub(crate) fn new(writer: &Arc<StepWriter>, work: F) -> Self {
        Self {
            writer: Arc::clone(writer),
            work: Box::pin(work),
        }
    }
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.work.as_mut().poll(context)
    }
}

impl<F> Drop for Scoped<F> {
    fn drop(&mut self) {
        self.writer.give_up();
    }
}

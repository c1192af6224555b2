//! A model with a maximum number of concurrent calls.

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use upp::{Code, Error, Model, ModelLayer, ModelStream, Request, Response};

/// Limits a model to `max` concurrent calls; further calls wait. A call waits only for this limit, so
/// calls of sub-agents and after handoffs can't deadlock.
pub(super) fn limited(model: Arc<dyn Model>, max: usize) -> Arc<dyn Model> {
    let calls = Semaphore::new(max.min(Semaphore::MAX_PERMITS));
    Arc::new(Limited {
        model,
        calls: Arc::new(calls),
    })
}

struct Limited {
    model: Arc<dyn Model>,
    calls: Arc<Semaphore>,
}

async fn permit(calls: Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Error> {
    let permit = calls.acquire_owned().await;
    // The semaphore is never closed.
    permit.map_err(|_| Error::new(Code::Cancelled, "loomline", "the model is closed"))
}

impl ModelLayer for Limited {
    fn inner(&self) -> &dyn Model {
        &*self.model
    }

    fn stream(&self, request: Request) -> ModelStream {
        let (model, calls) = (Arc::clone(&self.model), Arc::clone(&self.calls));
        let begun = async move {
            let permit = permit(calls).await;
            let (permit, stream) = match permit {
                Ok(permit) => (Some(permit), model.stream(request)),
                Err(error) => {
                    let failed = futures_util::stream::iter([Err(error)]);
                    (None, failed.boxed())
                }
            };
            // The permit lives as long as the stream.
            stream.map(move |item| {
                let _ = &permit;
                item
            })
        };
        futures_util::stream::once(begun).flatten().boxed()
    }

    fn complete(&self, request: Request) -> BoxFuture<'static, Result<Response, Error>> {
        let (model, calls) = (Arc::clone(&self.model), Arc::clone(&self.calls));
        Box::pin(async move {
            let _permit = permit(calls).await?;
            model.complete(request).await
        })
    }
}

//! The answer that a crash left, given to the strategy again as if the model had just said it.

use agents::{Agent, OptionsError};
use std::sync::{Arc, Mutex, PoisonError};
use upp::{Model, ModelEvent, ModelLayer, ModelStream, Request, Response};

/// The model of an agent, but for its first answer, which is known.
///
/// So a strategy takes the way it took before the crash, whatever it makes of an answer, and the
/// model is not asked twice.
struct Replayed {
    model: Arc<dyn Model>,
    known: Mutex<Option<Box<Response>>>,
}

impl ModelLayer for Replayed {
    fn inner(&self) -> &dyn Model {
        &*self.model
    }

    fn stream(&self, request: Request) -> ModelStream {
        let known = self
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(mut response) = known else {
            return self.model.stream(request);
        };
        if request.structure.is_some() {
            response.data = serde_json::from_str(&response.message.joined_text()).ok();
        }
        Box::pin(futures_util::stream::iter([Ok(ModelEvent::Done(response))]))
    }
}

/// The agent, with an answer that it is given before its model is asked.
pub(super) fn replaying(agent: &Agent, known: Response) -> Result<Agent, OptionsError> {
    let mut options = agent.options().clone();
    options.id = Some(agent.id().into());
    options.model = Arc::new(Replayed {
        model: Arc::clone(&options.model),
        known: Mutex::new(Some(Box::new(known))),
    });
    agent.with_options(options)
}

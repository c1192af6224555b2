//! Replays the stored answer of a step after a crash, as if the model had just returned it.

use agents::{Agent, OptionsError};
use std::sync::{Arc, Mutex, PoisonError};
use upp::{Model, ModelEvent, ModelLayer, ModelStream, Request, Response};

/// An agent's model whose first answer is already known.
///
/// So a strategy repeats its decisions from before the crash, without a second request to the
/// model.
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

/// Returns the agent with a model that first returns the known answer.
pub(super) fn replaying(agent: &Agent, known: Response) -> Result<Agent, OptionsError> {
    let mut options = agent.options().clone();
    options.id = Some(agent.id().into());
    options.model = Arc::new(Replayed {
        model: Arc::clone(&options.model),
        known: Mutex::new(Some(Box::new(known))),
    });
    agent.with_options(options)
}

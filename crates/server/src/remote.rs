//! Agents elsewhere: behind Responses, the Threads API or A2A.
//!
//! To the runtime such an agent is a model that keeps the conversation itself: it is sent what it has not heard, and
//! its answer is read as it comes. What it began is noted in the step ([`upp::KeptCall`]), so that whoever runs the step
//! again after a crash looks for that and does not begin it twice
//! (decision 18).

mod a2a;
mod client;
mod responses;
mod talk;
mod threads;

use crate::config::{RemoteConfig, RemoteProtocol};
use crate::outbound::Outbound;
use agents::{Agent, AgentOptions, OptionsError};
use async_stream::try_stream;
use client::Client;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use std::sync::Arc;
use talk::{Step, Talk};
use upp::{Capabilities, Error, Model, ModelEvent, ModelStream, Request};

/// An agent that is one elsewhere, under a name here. Nobody is asked yet.
///
/// # Errors
///
/// None that a configuration leads to: it has no tools that could be wrong.
pub fn agent(
    name: &str,
    config: RemoteConfig,
    params: Map<String, Value>,
    outbound: Outbound,
) -> Result<Agent, OptionsError> {
    Agent::new(options(name, config, params, outbound))
}

/// What such an agent is made of.
pub(crate) fn options(
    name: &str,
    config: RemoteConfig,
    params: Map<String, Value>,
    outbound: Outbound,
) -> AgentOptions {
    let client = Client::new(name, config, outbound);
    let model = RemoteAgent {
        client: Arc::new(client),
    };
    let mut options = AgentOptions::new(name, Arc::new(model));
    // The same in every process, so that a resumed run is the same agent's.
    options.id = Some(name.into());
    options.params = Arc::new(params);
    options.foreign_calls = true;
    options
}

/// An agent elsewhere, as a model. Cloning shares it.
#[derive(Clone)]
struct RemoteAgent {
    client: Arc<Client>,
}

impl RemoteAgent {
    fn talk(&self, request: &Request) -> Result<Box<dyn Talk>, Error> {
        let client = Arc::clone(&self.client);
        Ok(match self.client.config.protocol {
            RemoteProtocol::Responses => Box::new(responses::Talk::new(client, request)?),
            RemoteProtocol::A2a => Box::new(a2a::Talk::new(client, request)?),
            RemoteProtocol::Threads => Box::new(threads::Talk::new(client, request)),
        })
    }
}

impl Model for RemoteAgent {
    fn model_id(&self) -> &str {
        let agent = self.client.config.agent.as_deref();
        agent.unwrap_or(&self.client.host)
    }

    fn provider(&self) -> &str {
        self.client.config.protocol.as_str()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            streaming: true,
            tools: self.client.config.protocol != RemoteProtocol::A2a,
            structured_output: false,
            image_input: true,
            document_input: true,
            video_input: false,
            audio_input: false,
        }
    }

    fn stream(&self, request: Request) -> ModelStream {
        let this = self.clone();
        Box::pin(try_stream! {
            let signal = request.signal.token().clone();
            let mut talk = this.talk(&request)?;
            loop {
                let step = signal.run_until_cancelled(talk.next()).await;
                match step.unwrap_or_else(|| Err(this.client.cancelled()))? {
                    Step::Events(events) => {
                        for event in events {
                            yield ModelEvent::Event(event);
                        }
                    }
                    Step::Done(response) => {
                        yield ModelEvent::Done(response);
                        return;
                    }
                }
            }
        })
    }

    fn abandon(&self, note: Value) -> BoxFuture<'static, ()> {
        let client = Arc::clone(&self.client);
        Box::pin(async move {
            let stopped = match client.config.protocol {
                RemoteProtocol::Responses => responses::cancel(&client, &note).await,
                RemoteProtocol::A2a => a2a::cancel(&client, &note).await,
                RemoteProtocol::Threads => threads::cancel(&client, &note).await,
            };
            if let Err(error) = stopped {
                tracing::warn!(agent = client.agent, error = %error, "a run elsewhere could not be stopped");
            }
        })
    }
}

//! Remote agents: other servers' agents, called through Responses, the Threads API or A2A.
//!
//! To the runtime, a remote agent is a model that stores the conversation itself. It receives only
//! messages that it does not have, and its answer is streamed. The step has a note of the remote run
//! ([`upp::CallRecord`]). After a crash, the next attempt of the step finds that run by the note. It
//! does not start a second one (decision 18).

mod a2a;
mod call;
mod client;
mod responses;
mod threads;
mod unnamed;

use crate::config::{RemoteConfig, RemoteProtocol};
use crate::outbound::Outbound;
use agents::{Agent, AgentOptions, OptionsError};
use async_stream::try_stream;
use call::{Notes, RemoteCall, Step};
use client::Client;
use futures_util::future::BoxFuture;
use interop::remote::RemoteRefusal;
use serde_json::{Map, Value};
use std::sync::Arc;
use unnamed::{Made, Unnamed};
use upp::{Capabilities, Error, Model, ModelEvent, ModelStream, Request};

/// Makes a local agent that forwards to a remote one. Sends no request.
///
/// # Errors
///
/// None that a configuration can cause: the agent has no tools that could be wrong.
pub fn agent(
    name: &str,
    config: RemoteConfig,
    params: Map<String, Value>,
    outbound: Outbound,
) -> Result<Agent, OptionsError> {
    Agent::new(options(name, config, params, outbound))
}

/// The options of such an agent.
pub(crate) fn options(
    name: &str,
    config: RemoteConfig,
    params: Map<String, Value>,
    outbound: Outbound,
) -> AgentOptions {
    let client = Client::new(name, config, outbound);
    let model = RemoteAgent {
        client: Arc::new(client),
        unnamed: Arc::default(),
    };
    let mut options = AgentOptions::new(name, Arc::new(model));
    // The same in every process, so that a resumed run is the same agent's.
    options.id = Some(name.into());
    options.params = Arc::new(params);
    options.foreign_calls = true;
    options
}

/// A remote agent as a model. Clones share its state.
#[derive(Clone)]
struct RemoteAgent {
    client: Arc<Client>,
    unnamed: Arc<Unnamed>,
}

impl RemoteAgent {
    fn talk(&self, request: &Request) -> Result<Box<dyn RemoteCall>, Error> {
        let client = Arc::clone(&self.client);
        Ok(match self.client.config.protocol {
            RemoteProtocol::Responses => Box::new(responses::ResponseCall::new(client, request)?),
            RemoteProtocol::A2a => Box::new(a2a::TaskCall::new(client, request)?),
            RemoteProtocol::Threads => Box::new(threads::RunCall::new(client, request)?),
        })
    }

    /// If the agent has refused a message permanently, notes that.
    async fn refused(&self, request: &Request, error: Error) -> Error {
        if !call::is_for_good(&error) {
            return error;
        }
        let refused = RemoteRefusal {
            agent: self.client.agent.clone(),
            at: self.client.at.as_text().to_owned(),
        };
        let noted = Notes::of(request).write(&refused.note()).await;
        noted.err().unwrap_or(error)
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
            let talk = match this.talk(&request) {
                Ok(talk) => talk,
                Err(error) => Err(this.refused(&request, error).await)?,
            };
            let key = request.call_record.as_ref().map(|kept| kept.key().to_owned());
            let mut made = Made::new(&this.unnamed, key, talk);
            while let Some(talk) = made.call() {
                let step = signal.run_until_cancelled(talk.next()).await;
                let step = match step.unwrap_or_else(|| Err(this.client.cancelled())) {
                    Ok(step) => step,
                    Err(error) => Err(this.refused(&request, error).await)?,
                };
                match step {
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
        let Self { client, unnamed } = self.clone();
        Box::pin(async move {
            let Some(note) = noted(&unnamed, note).await else {
                return;
            };
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

/// The note of the remote run. If the call was abandoned before the run's id was known, waits for the
/// id.
async fn noted(unnamed: &Unnamed, note: Value) -> Option<Value> {
    let Some(key) = note.get(call::CALL).and_then(Value::as_str) else {
        return Some(note);
    };
    call::position(unnamed.take_abandoned(key).await?).await
}

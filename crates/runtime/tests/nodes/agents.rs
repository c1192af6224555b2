//! A scripted agent whose model calls and effects are counted.

use agents::{Agent, AgentOptions, SubAgentTool, subagent_tool};
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;
use upp::{
    Capabilities, Effect, Message, Model, ModelStream, NativeSettings, Request, Scripted, Settings,
    Tool, ToolContext,
};

/// What the agents of all nodes have done.
pub(crate) struct World {
    /// The node and the message of each model call.
    calls: Mutex<Vec<(String, String)>>,
    /// How many model calls have not ended.
    open: watch::Sender<usize>,
    /// The node and the key of each run of an effect tool.
    pub(crate) ledger: Mutex<Vec<(String, String)>>,
    /// Lets models that hold answer.
    pub(crate) answers: watch::Sender<bool>,
    /// Lets effect tools end.
    pub(crate) acts: watch::Sender<bool>,
}

impl World {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            calls: Mutex::default(),
            open: watch::Sender::new(0),
            ledger: Mutex::default(),
            answers: watch::Sender::new(false),
            acts: watch::Sender::new(true),
        })
    }

    /// The nodes whose models were called with a message that contains this text, in order.
    pub(crate) fn calls(&self, text: &str) -> Vec<String> {
        let calls = self.calls.lock().unwrap();
        let found = calls.iter().filter(|(_, message)| message.contains(text));
        found.map(|(node, _)| node.clone()).collect()
    }

    /// The nodes that have run effect tools, in order.
    pub(crate) fn effects(&self) -> Vec<String> {
        let ledger = self.ledger.lock().unwrap();
        ledger.iter().map(|(node, _)| node.clone()).collect()
    }

    pub(crate) fn n_open_calls(&self) -> usize {
        *self.open.borrow()
    }
}

/// A model call that has not ended.
struct OpenCall(Arc<World>);

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.0.open.send_modify(|n| *n -= 1);
    }
}

/// The scripted model. A message that contains `hold` is not answered before the test lets it be.
struct Counted {
    inner: Scripted,
    world: Arc<World>,
    node: String,
}

impl Model for Counted {
    fn model_id(&self) -> &str {
        self.inner.model_id()
    }

    fn provider(&self) -> &str {
        self.inner.provider()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn settings(&self, settings: &Settings) -> NativeSettings {
        self.inner.settings(settings)
    }

    fn stream(&self, request: Request) -> ModelStream {
        let mut messages = request.messages.iter().filter_map(|it| match it {
            Message::User(message) => Some(format!("{message:?}")),
            _ => None,
        });
        let message = messages.next_back().unwrap_or_default();
        let holds = message.contains("hold");
        let mut calls = self.world.calls.lock().unwrap();
        calls.push((self.node.clone(), message));
        self.world.open.send_modify(|n| *n += 1);
        let open = OpenCall(Arc::clone(&self.world));
        let mut answers = self.world.answers.subscribe();
        let mut stream = self.inner.stream(request);
        async_stream::stream! {
            let _open = open;
            if holds {
                let _ = answers.wait_for(|may| *may).await;
            }
            while let Some(event) = stream.next().await {
                yield event;
            }
        }
        .boxed()
    }
}

fn parameters() -> Value {
    json!({"type": "object", "properties": {"task": {"type": "string"}}})
}

/// A tool with an effect: a line in the ledger.
fn tool(world: &Arc<World>, node: &str, name: &str) -> Tool {
    let (world, node) = (Arc::clone(world), node.to_owned());
    let run = move |_: Value, context: ToolContext| {
        let (world, node) = (Arc::clone(&world), node.clone());
        async move {
            let key = context.idempotency_key.to_string();
            world.ledger.lock().unwrap().push((node, key));
            let _ = world.acts.subscribe().wait_for(|may| *may).await;
            Ok(json!("done"))
        }
        .boxed()
    };
    Tool::new(name, "Acts.", parameters(), run).with_effect(Effect::Effect)
}

fn agent(world: &Arc<World>, node: &str, name: &str, tools: Vec<Tool>) -> Agent {
    let model = Counted {
        inner: Scripted::new(),
        world: Arc::clone(world),
        node: node.to_owned(),
    };
    let mut options = AgentOptions::new(name, Arc::new(model));
    options.id = Some(name.into());
    options.tools = tools;
    Agent::new(options).unwrap()
}

/// The agents of a node; the first one is the default. `helper` is a sub-agent that asks before it acts.
pub(crate) fn all(world: &Arc<World>, node: &str) -> Vec<Agent> {
    let approved = tool(world, node, "approved").with_requires_approval();
    let helper = agent(world, node, "helper", vec![approved]);
    let prompt = |arguments: &Value| Ok(arguments["task"].as_str().unwrap_or_default().into());
    let sub = SubAgentTool::new(
        "helper",
        "Helps.",
        parameters(),
        helper.clone(),
        move |it| prompt(it),
    );
    let tools = vec![tool(world, node, "effect"), subagent_tool(sub)];
    vec![agent(world, node, "lead", tools), helper]
}

//! Runtimes over one store, one after another, and what is left in it.

use crate::mortal::Mortal;
use agents::{Agent, AgentOptions};
use interop::document::to_document;
use interop::model::history;
use loomline_runtime as runtime;
use runtime::{
    AgentReactor, AnswerRequest, CompactionPolicy, ReactRequest, Rewind, Runtime, RuntimeError,
    RuntimeOptions,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::{EventLog as _, Filter, MemoryStore, Run, Store, TenantId, ThreadTable as _};
use timeline::{Entry, ItemType, NewItem, OpenCall, State, Transcript};

pub(crate) const KEY: &str = "k";

pub(crate) fn tenant() -> TenantId {
    "acme".into()
}

pub(crate) fn runtime_over(store: Arc<dyn Store>, agent: &Agent) -> Runtime {
    runtime_of(store, AgentReactor::new(agent.clone()))
}

fn runtime_of(store: Arc<dyn Store>, reactor: AgentReactor) -> Runtime {
    let reactor = Arc::new(reactor);
    // Processes die here as often as it takes.
    let options = RuntimeOptions {
        max_starts: u32::MAX,
        restart_pause: Duration::ZERO,
        ..RuntimeOptions::default()
    };
    Runtime::new(store, Arc::new(reactor), options)
}

/// What one client does, whatever happens to the processes it talks to.
pub(crate) struct Client {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) agent: Agent,
    policy: Option<CompactionPolicy>,
    process: Arc<Mortal>,
    pub(crate) runtime: Runtime,
    /// After how many writes each next process dies, and whether it does its last one.
    deaths: Vec<(usize, bool)>,
    n_writes: usize,
}

impl Client {
    pub(crate) fn new(options: AgentOptions, mut deaths: Vec<(usize, bool)>) -> Self {
        deaths.reverse();
        let store = Arc::new(MemoryStore::new());
        let agent = Agent::new(options).unwrap();
        let (process, runtime) = start(&store, &agent, None, deaths.pop());
        Self {
            store,
            agent,
            policy: None,
            process,
            runtime,
            deaths,
            n_writes: 0,
        }
    }

    /// The client of a thread whose agent compacts it.
    pub(crate) fn compacting(self, policy: CompactionPolicy, deaths: Vec<(usize, bool)>) -> Self {
        let client = Self {
            policy: Some(policy),
            ..self
        };
        Self::over(client, deaths)
    }

    pub(crate) fn calm(options: AgentOptions) -> Self {
        Self::new(options, Vec::new())
    }

    /// The client of a thread, whose processes die from now on.
    pub(crate) fn over(client: Self, mut deaths: Vec<(usize, bool)>) -> Self {
        deaths.reverse();
        let policy = client.policy.as_ref();
        let (process, runtime) = start(&client.store, &client.agent, policy, deaths.pop());
        Self {
            process,
            runtime,
            deaths,
            ..client
        }
    }

    /// The process is gone; the next one takes over.
    pub(crate) async fn restart(&mut self) {
        self.n_writes = self.writes();
        self.process.die();
        let _ = self.runtime.shutdown().await;
        let policy = self.policy.as_ref();
        let (process, runtime) = start(&self.store, &self.agent, policy, self.deaths.pop());
        (self.process, self.runtime) = (process, runtime);
        self.runtime.recover().await.unwrap();
    }

    /// The next process has only these of the tools.
    pub(crate) fn keep_tools(&mut self, keep: impl Fn(&str) -> bool) {
        let mut options = self.agent.options().clone();
        options.tools.retain(|tool| keep(&tool.name));
        self.agent = Agent::new(options).unwrap();
    }

    pub(crate) async fn say(&mut self, text: &str) {
        self.say_as(text, Run::default()).await;
    }

    /// Says something that is to be answered as these parameters say.
    pub(crate) async fn say_as(&mut self, text: &str, run: Run) {
        self.react(text, run, None).await;
    }

    /// Says something after the thread was taken back.
    pub(crate) async fn say_instead(&mut self, text: &str, rewind: Rewind) {
        self.react(text, Run::default(), Some(rewind)).await;
    }

    async fn react(&mut self, text: &str, run: Run, rewind: Option<Rewind>) {
        let content = json!([{"type": "input_text", "text": text}]);
        loop {
            let request = ReactRequest {
                rewind: rewind.clone(),
                run: run.clone(),
                token: Some(text.into()),
                ..ReactRequest::new(
                    tenant(),
                    KEY,
                    NewItem::user(format!("item-{text}"), content.clone().into()),
                )
            };
            match self.runtime.react(request).await {
                Ok(_) => return,
                Err(error) if self.process.is_dead() => drop(error),
                Err(error) => panic!("{error}"),
            }
            self.restart().await;
        }
    }

    /// Answers, as often as it takes for the answer to be kept.
    pub(crate) async fn answer(&mut self, parts: Value) {
        self.answer_as(parts, None).await;
    }

    /// Answers, and goes on as these parameters say.
    pub(crate) async fn answer_as(&mut self, parts: Value, run: Option<Run>) {
        loop {
            match self.try_answer_as(&parts, run.clone()).await {
                Ok(()) => return,
                Err(error) if self.process.is_dead() => drop(error),
                Err(error) => panic!("{error}: {parts}"),
            }
            self.restart().await;
        }
    }

    pub(crate) async fn try_answer(&self, parts: &Value) -> Result<(), RuntimeError> {
        self.try_answer_as(parts, None).await
    }

    async fn try_answer_as(&self, parts: &Value, run: Option<Run>) -> Result<(), RuntimeError> {
        let request = AnswerRequest {
            run,
            tenant: tenant(),
            key: KEY.into(),
            item: answer_item(self.runtime.mint(), parts),
            token: Some(parts.to_string().into()),
        };
        self.runtime.answer(request).await.map(|_| ())
    }

    /// Waits until the thread is at rest, over as many processes as die.
    pub(crate) async fn rest(&mut self) -> State {
        for _ in 0..200_000 {
            let state = self.state().await;
            if state.active().is_none() && state.waiting().len() == 0 {
                return state;
            }
            if self.process.is_dead() {
                self.restart().await;
            }
            tokio::task::yield_now().await;
        }
        panic!("the thread does not come to rest")
    }

    pub(crate) async fn state(&self) -> State {
        let row = self.store.find(&tenant(), KEY).await.unwrap();
        self.store.head(&row.thread.id).await.unwrap().state
    }

    pub(crate) async fn open(&mut self) -> Vec<OpenCall> {
        let state = self.rest().await;
        state
            .open()
            .map(|open| open.calls.clone())
            .unwrap_or_default()
    }

    pub(crate) async fn transcript(&self) -> Transcript {
        let runtime = runtime_over(self.store.clone(), &self.agent);
        let transcript = runtime.transcript(&tenant(), KEY, Filter::Facts).await;
        transcript.unwrap()
    }

    /// How many records the running process has read.
    pub(crate) fn records_read(&self) -> usize {
        self.process.records_read()
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.process.is_dead()
    }

    /// All writes so far.
    pub(crate) fn writes(&self) -> usize {
        self.n_writes + self.process.writes()
    }
}

fn start(
    store: &Arc<MemoryStore>,
    agent: &Agent,
    policy: Option<&CompactionPolicy>,
    death: Option<(usize, bool)>,
) -> (Arc<Mortal>, Runtime) {
    let (left, keeps_last) = death.unwrap_or((usize::MAX, false));
    let process = Mortal::new(store, left, keeps_last, false);
    let reactor = AgentReactor::new(agent.clone());
    let reactor = match policy {
        Some(policy) => reactor.with_compaction(policy.clone()),
        None => reactor,
    };
    let runtime = runtime_of(process.clone(), reactor);
    (process, runtime)
}

pub(crate) fn answer_item(id: String, parts: &Value) -> NewItem {
    NewItem {
        id: id.into(),
        item_type: ItemType::ActionResult,
        role: None,
        channel: None,
        content: Some(parts.clone().into()),
        metadata: Some(json!({"actor": "tester"}).into()),
    }
}

pub(crate) fn approve(call: &str) -> Value {
    json!([{"type": "loomline-answer", "toolCallId": call, "approved": true}])
}

pub(crate) fn deny(call: &str) -> Value {
    json!([{"type": "loomline-answer", "toolCallId": call, "approved": false}])
}

pub(crate) fn bring(call: &str, output: &Value) -> Value {
    json!([{"type": "loomline-answer", "toolCallId": call, "output": output}])
}

/// What the model sees next, apart from ids, instants and what became of effects.
pub(crate) fn messages(transcript: &Transcript) -> Vec<Value> {
    let mut tools: BTreeMap<String, String> = BTreeMap::new();
    let messages = history(transcript, None);
    let plain = messages.iter().map(|message| {
        let mut value = serde_json::to_value(message).unwrap();
        for call in value["toolCalls"].as_array().into_iter().flatten() {
            let text = |key: &str| call[key].as_str().unwrap().to_owned();
            tools.insert(text("toolCallId"), text("toolName"));
        }
        for result in value["results"].as_array_mut().into_iter().flatten() {
            let tool = &tools[result["toolCallId"].as_str().unwrap()];
            if matches!(tool.as_str(), "effect" | "approved") {
                *result = json!({ "toolCallId": result["toolCallId"] });
            }
        }
        let fields = value.as_object_mut().unwrap();
        fields.remove("id");
        fields.remove("timestamp");
        value
    });
    plain.collect()
}

/// What each step added to the agent's state.
pub(crate) fn records(transcript: &Transcript) -> Vec<Value> {
    let steps = transcript.entries.iter().flat_map(|entry| match entry {
        Entry::Reaction(reaction) => reaction.steps.as_slice(),
        Entry::Item(_) => &[],
    });
    let records = steps.map(|step| step.step.outcome.agent_state.as_ref());
    records
        .map(|record| record.map(timeline::Payload::value).unwrap_or_default())
        .collect()
}

/// The document, apart from ids, instants, durations and what became of effects.
pub(crate) fn document(transcript: &Transcript) -> Value {
    let text = to_document(transcript).value.encode();
    let mut value: Value = serde_json::from_str(&text).unwrap();
    plain(&mut value["turns"]);
    value["turns"].take()
}

fn plain(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(plain),
        Value::Object(fields) => {
            let tool = fields.get("tool_name").and_then(Value::as_str);
            if matches!(tool, Some("effect" | "approved")) {
                for key in ["status", "content", "outcome"] {
                    fields.remove(key);
                }
            }
            for key in [
                "timestamp",
                "started_at",
                "completed_at",
                "submitted_at",
                "duration_ms",
                "received_at",
                "interrupted_at",
            ] {
                fields.remove(key);
            }
            fields.values_mut().for_each(plain);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

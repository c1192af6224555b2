//! Processes that die between two writes of one step, and what the next one makes of it.

use crate::children::rig::{at_rest, endings, message};
use crate::durable::model::{Canned, call, said};
use crate::durable::rig::{Client, KEY, runtime_over, tenant};
use crate::durable::strategies::options;
use crate::durable::tools::{World, all};
use agents::{
    Agent, AgentError, AgentOptions, AgentState, ExecutionStrategy, Loop, Next, StepContext,
    StepOutcome,
};
use futures_util::future::{BoxFuture, ready};
use futures_util::{FutureExt, StreamExt};
use interop::parts::ToolPart;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use store::suite::Layer;
use store::{Append, EventLog as _, Filter, MemoryStore, Store, StoreError, ThreadTable as _};
use timeline::{Entry, Event, ExecutionStatus, Record, Seq};
use upp::{
    AssistantContent, AssistantMessage, MessageOptions, Model, ModelEvent, ModelLayer, ModelStream,
    Request,
};

/// The store of a process that dies as it writes the end of a step; nothing of that is kept.
struct DiesAtStepEnd {
    inner: Arc<MemoryStore>,
    dead: AtomicBool,
}

impl Layer for DiesAtStepEnd {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn passed<'a, T: Send + 'a>(
        &'a self,
        answer: BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        if self.dead.load(Ordering::SeqCst) {
            return Box::pin(ready(Err(StoreError::Closed)));
        }
        answer
    }

    fn append(&self, append: Append) -> BoxFuture<'_, Result<Seq, StoreError>> {
        let mut events = append.records.iter().map(|record| &record.event);
        if events.any(|event| matches!(event, Event::StepStatusChanged { .. })) {
            self.dead.store(true, Ordering::SeqCst);
        }
        self.passed(self.inner.append(append))
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(ready(Ok(())))
    }
}

#[tokio::test]
async fn a_crash_right_after_the_last_effect_does_not_lose_its_result() {
    for calls in [&["c1"][..], &["c1", "c2"]] {
        let world = World::default();
        let round = calls.iter().map(|id| call(id, "effect")).collect();
        let model = Canned::rounds(vec![round]);
        let agent = options(model, Arc::new(Loop::default()), all(&world));
        let agent = Agent::new(agent).unwrap();
        let store = Arc::new(MemoryStore::new());
        let mortal = Arc::new(DiesAtStepEnd {
            inner: Arc::clone(&store),
            dead: AtomicBool::new(false),
        });
        let first = runtime_over(mortal.clone(), &agent);
        first.react(message(&first, "go")).await.unwrap();
        while !mortal.dead.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        let second = runtime_over(store, &agent);
        second.recover().await.unwrap();
        let records = at_rest(&second, KEY).await;
        assert_eq!(endings(&records), [(ExecutionStatus::Completed, None)]);
        let transcript = second.transcript(&tenant(), KEY, Filter::Facts).await;
        let entries = transcript.unwrap().entries;
        let steps = entries.iter().flat_map(|entry| match entry {
            Entry::Reaction(reaction) => reaction.steps.as_slice(),
            Entry::Item(_) => &[],
        });
        let parts = steps.flat_map(|step| &step.parts);
        let tools: Vec<_> = parts.filter_map(|it| ToolPart::read(&it.part)).collect();
        assert_eq!(tools.len(), calls.len());
        for tool in tools {
            let outcome = tool.outcome.as_deref();
            assert_ne!(outcome, Some("interrupted"), "{}", tool.tool_call_id);
            assert_eq!(world.n_runs("effect", &tool.tool_call_id), 1);
        }
    }
}

/// A model that gives its answer's data where a structure is asked for.
struct Structured(Arc<Canned>);

impl ModelLayer for Structured {
    fn inner(&self) -> &dyn Model {
        &*self.0
    }

    fn stream(&self, request: Request) -> ModelStream {
        let is_structured = request.structure.is_some();
        let answers = Model::stream(&*self.0, request).map(move |event| {
            let mut event = event?;
            if let ModelEvent::Done(response) = &mut event {
                let text = response.message.joined_text();
                response.data = serde_json::from_str(&text)
                    .ok()
                    .filter(|_: &Value| is_structured);
            }
            Ok(event)
        });
        answers.boxed()
    }
}

/// Asks for a number and what to do with it, does that, and asks for a word.
struct Counts;

impl ExecutionStrategy for Counts {
    fn name(&self) -> &'static str {
        "counts"
    }

    fn step<'a>(
        &'a self,
        state: AgentState,
        context: &'a StepContext<'a>,
    ) -> BoxFuture<'a, Result<StepOutcome, AgentError>> {
        async move {
            let is_first = state.step() == 1;
            let mut request = context.request(&state);
            if is_first {
                request.structure = Some(Arc::new(json!({"type": "object"})));
            }
            let response = context.ask(request).await?;
            let number = response.data.as_ref().map(|data| data["n"].clone());
            if is_first && number != Some(json!(7)) {
                return Err(AgentError::extension("counts", "the answer has no number"));
            }
            let next = if is_first { Next::Continue } else { Next::Done };
            let state = context.act(&state.with_response(response)).await?;
            Ok(StepOutcome { state, next })
        }
        .boxed()
    }
}

#[tokio::test]
async fn a_structured_answer_has_its_data_after_a_crash_too() {
    let agent = || {
        let model = Canned::new(|request| {
            if request.structure.is_none() {
                return said("seven");
            }
            let text = AssistantContent::Text {
                text: r#"{"n": 7}"#.into(),
            };
            let calls = vec![call("c1", "effect")];
            AssistantMessage::new(vec![text], calls, MessageOptions::default())
        });
        let tools = all(&World::default());
        let counts = options(Arc::clone(&model), Arc::new(Counts), tools);
        AgentOptions {
            model: Arc::new(Structured(model)),
            ..counts
        }
    };
    let mut calm = Client::calm(agent());
    calm.say("go").await;
    calm.rest().await;
    for n in 0..calm.writes() {
        for keeps_last in [false, true] {
            let mut client = Client::new(agent(), vec![(n, keeps_last)]);
            client.say("go").await;
            client.rest().await;
            let thread = client.store.find(&tenant(), KEY).await.unwrap().thread.id;
            let log = client
                .store
                .read(&thread, Seq::ZERO, usize::MAX, Filter::Facts);
            let log = log.await.unwrap().into_iter();
            let records: Vec<Record> = log.map(|logged| logged.record).collect();
            let ended = endings(&records);
            let completed = [(ExecutionStatus::Completed, None)];
            assert_eq!(ended, completed, "death at {n}, kept: {keeps_last}");
        }
    }
}

//! Checkpoints of a run (UAP §12.4).

use crate::strategies::{Own, Stepping};
use crate::support::*;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use loomline_agents::checkpoint::{
    CheckpointError, CheckpointMetadata, CheckpointStore, Checkpoints, MemoryCheckpoints,
};
use loomline_agents::{AgentOptions, AgentState, Next, StepContext, StepOutcome};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;
use upp::{Message, ScriptTurn};

mod queue;
mod sessions;
mod steps;

mod suite {
    use loomline_agents::checkpoint::MemoryCheckpoints;
    use std::sync::Arc;

    loomline_agents::checkpoint_suite!((Arc::new(MemoryCheckpoints::new()), ()));
}

/// Keeps every save; each one waits for a permit first, and may fail instead.
struct Slow {
    saves: Mutex<Vec<(String, AgentState)>>,
    permits: Semaphore,
    started: Log,
    fails: bool,
    panics: bool,
}

impl Slow {
    fn new(n_permits: usize) -> Self {
        Self {
            saves: Mutex::default(),
            permits: Semaphore::new(n_permits),
            started: Log::default(),
            fails: false,
            panics: false,
        }
    }

    fn steps(&self) -> Vec<u64> {
        let saves = self.saves.lock().unwrap();
        saves.iter().map(|(_, state)| state.step()).collect()
    }

    fn last(&self) -> (String, AgentState) {
        self.saves.lock().unwrap().last().unwrap().clone()
    }
}

impl CheckpointStore for Slow {
    fn save<'a>(
        &'a self,
        session_id: &'a str,
        state: String,
    ) -> BoxFuture<'a, Result<(), CheckpointError>> {
        async move {
            self.started.add(session_id);
            self.permits.acquire().await.unwrap().forget();
            assert!(!self.panics, "on purpose");
            if self.fails {
                return Err(CheckpointError::store("the disk is full"));
            }
            let state = AgentState::from_json(&state).unwrap();
            self.saves
                .lock()
                .unwrap()
                .push((session_id.to_owned(), state));
            Ok(())
        }
        .boxed()
    }

    fn load<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<String>, CheckpointError>> {
        std::future::ready(Ok(None)).boxed()
    }

    fn load_metadata<'a>(
        &'a self,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<CheckpointMetadata>, CheckpointError>> {
        std::future::ready(Ok(None)).boxed()
    }

    fn delete<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), CheckpointError>> {
        std::future::ready(Ok(())).boxed()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<String>, CheckpointError>> {
        std::future::ready(Ok(Vec::new())).boxed()
    }
}

fn slow(n_permits: usize, change: impl FnOnce(&mut Slow)) -> (Arc<Slow>, Checkpoints) {
    let mut store = Slow::new(n_permits);
    change(&mut store);
    let store = Arc::new(store);
    let shared: Arc<dyn CheckpointStore> = store.clone();
    (store, shared.into())
}

fn kept(mut options: AgentOptions, checkpoints: &Checkpoints) -> AgentOptions {
    options.checkpoints = Some(checkpoints.clone());
    options
}

fn memory() -> Checkpoints {
    MemoryCheckpoints::new().into()
}

async fn load(checkpoints: &Checkpoints, session_id: &str) -> AgentState {
    checkpoints.flush().await;
    let json = checkpoints.store().load(session_id).await.unwrap().unwrap();
    AgentState::from_json(&json).unwrap()
}

fn session_of(state: &AgentState) -> &str {
    state.metadata()["sessionId"].as_str().unwrap()
}

#[tokio::test]
async fn every_step_is_saved_and_the_last_save_is_the_state_that_is_returned() {
    let (store, checkpoints) = slow(100, |_| {});
    let result = generate(kept(adding(), &checkpoints)).await;
    checkpoints.flush().await;
    assert_eq!(store.steps(), [1, 2, 3, 4]);
    assert_eq!(store.last().1, result.state);
}

#[tokio::test]
async fn a_stream_saves_as_generate_does() {
    let (store, checkpoints) = slow(100, |_| {});
    let mut stream = agent(kept(adding(), &checkpoints)).stream("go", AgentState::initial());
    while futures_util::StreamExt::next(&mut stream).await.is_some() {}
    let state = stream.result().await.unwrap().state;
    checkpoints.flush().await;
    assert_eq!(store.steps(), [1, 2, 3, 4]);
    assert_eq!(store.last().1, state);
}

/// A strategy of the application, which knows nothing of checkpoints.
fn two_steps<'a>(state: AgentState, _: &'a StepContext<'a>) -> Stepping<'a> {
    async move {
        let next = if state.step() < 2 {
            Next::Continue
        } else {
            Next::Done
        };
        let state = state.with_message(said("step"));
        Ok(StepOutcome { state, next })
    }
    .boxed()
}

#[tokio::test]
async fn a_custom_strategy_is_saved_without_knowing_of_it() {
    let checkpoints = memory();
    let mut options = kept(adding(), &checkpoints);
    options.execution = Arc::new(Own("two-steps", two_steps));
    let result = generate(options).await;
    let saved = load(&checkpoints, session_of(&result.state)).await;
    assert_eq!((&saved, saved.step()), (&result.state, 2));
}

#[tokio::test]
async fn a_step_taken_alone_is_saved_too() {
    let checkpoints = memory();
    let agent = agent(kept(adding(), &checkpoints));
    let keeper = Keeper::default();
    let state = AgentState::initial().with_message("go");
    let outcome = agent
        .run_step(state, &keeper.context(&agent, &[]))
        .await
        .unwrap();
    let saved = load(&checkpoints, agent.session_id().unwrap()).await;
    assert_eq!((&saved, saved.step()), (&outcome.state, 1));
}

#[tokio::test]
async fn a_restored_state_goes_on_as_the_live_one_would() {
    let checkpoints = memory();
    let model = Canned::calls(vec![call("1", "add", &[])]);
    let mut options = kept(options(model.clone()), &checkpoints);
    options.tools = vec![add()];
    let agent = agent(options);
    let live = agent.ask("go", AgentState::initial()).await.unwrap().state;
    let restored = load(&checkpoints, session_of(&live)).await;
    assert_eq!(restored, live, "ids, instants and all");

    let input = Message::from("go on");
    let a = agent.ask(input.clone(), live).await.unwrap();
    let b = agent.ask(input, restored).await.unwrap();
    assert_eq!(content(&a.state), content(&b.state));
    let seen = model.seen.lock().unwrap();
    let asked: Vec<_> = seen
        .iter()
        .map(|request| content(&request.messages.iter().collect::<Vec<_>>()))
        .collect();
    assert_eq!(asked[2..4], asked[4..6]);
}

#[tokio::test]
async fn a_run_that_fails_leaves_its_last_complete_step() {
    let checkpoints = memory();
    let failing = ScriptTurn {
        error: serde_json::from_value(serde_json::json!({})).unwrap(),
        ..ScriptTurn::default()
    };
    let round = ScriptTurn::call("add", serde_json::json!({"a": 1, "b": 2}));
    let mut options = kept(scripted(vec![round, failing]), &checkpoints);
    options.tools = vec![add()];
    let agent = agent(options);
    agent.ask("go", AgentState::initial()).await.unwrap_err();
    let saved = load(&checkpoints, agent.session_id().unwrap()).await;
    assert_eq!((saved.step(), saved.messages().len()), (1, 3));
    assert!(saved.open_calls().is_empty());
}

#[tokio::test]
async fn a_query_does_not_replace_the_sessions_checkpoint() {
    let checkpoints = memory();
    let agent = agent(kept(adding(), &checkpoints));
    let state = agent.ask("go", AgentState::initial()).await.unwrap().state;
    agent.query("and by the way").await.unwrap();
    assert_eq!(load(&checkpoints, session_of(&state)).await, state);
}

#[tokio::test]
async fn without_a_store_there_is_no_session_and_no_trace_in_the_state() {
    let agent = agent(adding());
    assert_eq!(agent.session_id(), None);
    let state = agent.ask("go", AgentState::initial()).await.unwrap().state;
    assert!(state.metadata().is_empty());
}

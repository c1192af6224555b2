//! What stays of a run that waits, of one that was cancelled within a layer, and of an agent whose
//! strategy is another.

use crate::strategies::{adds, drafted, on_script, plans, says};
use crate::support::*;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use loomline_agents::checkpoint::{Checkpoints, MemoryCheckpoints};
use loomline_agents::{
    AgentError, AgentState, Answers, ExecutionStrategy, GenerateResult, Loop, Middleware,
    MiddlewareContext, Plan, React,
};
use std::sync::Arc;

#[tokio::test]
async fn a_run_that_waits_is_saved_and_goes_on_from_there() {
    let log = Log::default();
    let checkpoints: Checkpoints = MemoryCheckpoints::new().into();
    let mut options = options(Canned::calls(vec![call("g", "gate", &[])]));
    options.tools = vec![noted("gate", 1, &log).with_requires_approval()];
    options.checkpoints = Some(checkpoints.clone());
    let agent = agent(options);
    let waiting = agent.generate("go", AgentState::initial()).await.unwrap();
    assert_eq!(waiting.pending.len(), 1);
    checkpoints.flush().await;
    let session = agent.session_id().unwrap();
    let saved = checkpoints.store().load(session).await.unwrap();
    let saved = AgentState::from_json(&saved.expect("it is saved while it waits")).unwrap();
    assert_eq!(saved, waiting.state);
    assert_eq!(saved.open_calls().len(), 1);
    let done = agent.resume(Answers::new().approve("g"), saved).await;
    assert!(done.unwrap().pending.is_empty());
}

/// Has a result for every failure.
struct Consoling(GenerateResult, Log);

impl Middleware for Consoling {
    fn name(&self) -> &'static str {
        "consoling"
    }

    fn on_error<'a>(
        &'a self,
        _: &'a mut MiddlewareContext,
        error: &'a AgentError,
    ) -> BoxFuture<'a, Option<GenerateResult>> {
        self.1.add(error.to_string());
        std::future::ready(Some(self.0.clone())).boxed()
    }
}

#[tokio::test]
async fn a_layer_can_not_make_a_result_of_a_cancelled_run() {
    let instead = generate(adding()).await;
    let log = Log::default();
    let mut options = options(Canned::new(|_| None));
    options.middleware = vec![Arc::new(Consoling(instead, log.clone()))];
    let mut stream = agent(options).stream("go", AgentState::initial());
    assert!(stream.next().await.is_some(), "the layer is entered");
    assert!(
        stream.next().now_or_never().is_none(),
        "the model says nothing"
    );
    stream.abort();
    assert!(matches!(stream.result().await, Err(AgentError::Cancelled)));
    assert_eq!(log.lines().len(), 1, "the layer has heard of it");
}

#[tokio::test]
async fn one_definition_runs_by_any_strategy_with_nothing_else_changed() {
    let ways: [(Arc<dyn ExecutionStrategy>, _); 3] = [
        (Arc::new(Loop::default()), vec![adds(), says("3")]),
        (
            Arc::new(React::default()),
            vec![says("I need a sum"), adds(), says("it is known"), says("3")],
        ),
        (
            Arc::new(Plan::default()),
            vec![plans(&[drafted("a", Some("add"), &[])]), adds(), says("3")],
        ),
    ];
    for (execution, turns) in ways {
        let name = execution.name();
        let (mut definition, model) = on_script(Loop::default(), turns);
        definition.system = Some("You add.".into());
        let defined = agent(definition);
        let mut options = defined.options().clone();
        options.id = Some(defined.id().into());
        options.execution = execution;
        let other = agent(options);
        assert_eq!((other.id(), other.name()), (defined.id(), defined.name()));
        let result = other.generate("go", AgentState::initial()).await.unwrap();
        assert_eq!(result.turn.response.joined_text(), "3", "{name}");
        assert_eq!(results(&result.state).len(), 1, "{name}");
        let seen = model.seen.lock().unwrap();
        let systems = seen.iter().map(|request| request.system.as_deref());
        assert!(systems.clone().count() > 1, "{name}");
        assert!(
            systems.into_iter().all(|it| it == Some("You add.")),
            "{name}"
        );
    }
}

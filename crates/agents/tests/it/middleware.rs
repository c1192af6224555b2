//! Middleware (UAP §9).

use crate::support::*;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use loomline_agents::{
    AgentError, AgentOptions, AgentState, GenerateResult, Middleware, MiddlewareContext,
};
use std::sync::Arc;
use upp::{ScriptTurn, Scripted};

#[derive(Default)]
struct Layer {
    name: &'static str,
    log: Log,
    fails_before: bool,
    fails_after: bool,
    recovers: Option<GenerateResult>,
}

impl Layer {
    fn failure(&self) -> AgentError {
        AgentError::extension(self.name, "on purpose")
    }
}

impl Middleware for Layer {
    fn name(&self) -> &str {
        self.name
    }

    fn before<'a>(
        &'a self,
        context: &'a mut MiddlewareContext,
    ) -> BoxFuture<'a, Result<(), AgentError>> {
        async move {
            let n_seen = context.metadata.len();
            self.log.add(format!("{} before {n_seen}", self.name));
            context.metadata.insert(self.name.to_owned(), true.into());
            if self.fails_before {
                Err(self.failure())
            } else {
                Ok(())
            }
        }
        .boxed()
    }

    fn after<'a>(
        &'a self,
        context: &'a mut MiddlewareContext,
        mut result: GenerateResult,
    ) -> BoxFuture<'a, Result<GenerateResult, AgentError>> {
        async move {
            self.log
                .add(format!("{} after {}", self.name, context.metadata.len()));
            result.state = result.state.with_metadata(self.name, true);
            if self.fails_after {
                Err(self.failure())
            } else {
                Ok(result)
            }
        }
        .boxed()
    }

    fn on_error<'a>(
        &'a self,
        context: &'a mut MiddlewareContext,
        _: &'a AgentError,
    ) -> BoxFuture<'a, Option<GenerateResult>> {
        async move {
            self.log
                .add(format!("{} error {}", self.name, context.metadata.len()));
            self.recovers.clone()
        }
        .boxed()
    }
}

fn layers(mut options: AgentOptions, change: impl Fn(&mut [Layer; 3])) -> (AgentOptions, Log) {
    let log = Log::default();
    let mut layers = ["a", "b", "c"].map(|name| Layer {
        name,
        log: log.clone(),
        ..Layer::default()
    });
    change(&mut layers);
    options.middleware = layers
        .map(|layer| Arc::new(layer) as Arc<dyn Middleware>)
        .into();
    (options, log)
}

fn simple() -> AgentOptions {
    options(Arc::new(Scripted::new()))
}

fn failing() -> AgentOptions {
    let turn = ScriptTurn {
        error: serde_json::from_value(serde_json::json!({})).unwrap(),
        ..ScriptTurn::default()
    };
    scripted(vec![turn])
}

#[tokio::test]
async fn before_runs_in_order_and_after_in_reverse() {
    let (options, log) = layers(simple(), |_| {});
    let agent = agent(options);
    let result = agent.generate("go", AgentState::initial()).await.unwrap();
    assert_eq!(
        log.lines(),
        [
            "a before 0",
            "b before 1",
            "c before 2",
            "c after 3",
            "b after 3",
            "a after 3"
        ]
    );
    assert_eq!(
        result.state.metadata().keys().collect::<Vec<_>>(),
        ["c", "b", "a"]
    );
    agent.generate("go", AgentState::initial()).await.unwrap();
    assert_eq!(
        log.lines()[6],
        "a before 0",
        "the metadata of a request starts empty"
    );
}

#[tokio::test]
async fn an_error_goes_outwards_through_every_layer() {
    let (options, log) = layers(failing(), |_| {});
    assert!(agent(options).query("go").await.is_err());
    assert_eq!(log.lines()[3..], ["c error 3", "b error 3", "a error 3"]);
}

#[tokio::test]
async fn a_recovered_error_is_a_result_to_the_layers_outside() {
    let instead = generate(simple()).await;
    let (options, log) = layers(failing(), |layers| {
        layers[1].recovers = Some(instead.clone());
    });
    let result = generate(options).await;
    assert_eq!(log.lines()[3..], ["c error 3", "b error 3", "a after 3"]);
    assert_eq!(result.turn, instead.turn);
}

#[tokio::test]
async fn only_layers_that_were_entered_are_left() {
    let (options, log) = layers(simple(), |layers| layers[1].fails_before = true);
    let error = agent(options).query("go").await.unwrap_err();
    assert!(matches!(error, AgentError::Extension { name, .. } if name == "b"));
    assert_eq!(log.lines(), ["a before 0", "b before 1", "a error 2"]);
}

#[tokio::test]
async fn a_layer_that_fails_afterwards_is_an_error_to_the_layers_outside() {
    let (options, log) = layers(simple(), |layers| layers[1].fails_after = true);
    assert!(agent(options).query("go").await.is_err());
    assert_eq!(log.lines()[3..], ["c after 3", "b after 3", "a error 3"]);
}

struct KeepNone;

impl Middleware for KeepNone {
    fn name(&self) -> &'static str {
        "keep-none"
    }

    fn before<'a>(
        &'a self,
        context: &'a mut MiddlewareContext,
    ) -> BoxFuture<'a, Result<(), AgentError>> {
        context.state = context.state.with_context([]);
        context.input = "changed".into();
        std::future::ready(Ok(())).boxed()
    }
}

#[tokio::test]
async fn what_before_changes_is_what_the_agent_gets() {
    let mut options = simple();
    options.middleware = vec![Arc::new(KeepNone)];
    let start = AgentState::initial()
        .with_message("old")
        .with_message(said("older"));
    let result = agent(options).ask("new", start.clone()).await.unwrap();
    assert_eq!(
        (result.state.messages().len(), result.turn.messages.len()),
        (2, 2)
    );
    assert_eq!(result.turn.response.joined_text(), "You said: changed");
    assert_eq!(start.messages().len(), 2);
}

/// Changes the context on the way in, and writes down what it sees when the run fails.
struct Changing(Log);

impl Middleware for Changing {
    fn name(&self) -> &'static str {
        "changing"
    }

    fn before<'a>(
        &'a self,
        context: &'a mut MiddlewareContext,
    ) -> BoxFuture<'a, Result<(), AgentError>> {
        context.input = "changed".into();
        context.state = context.state.with_step(7);
        context.metadata = serde_json::Map::from_iter([("mine".to_owned(), 1.into())]);
        std::future::ready(Ok(())).boxed()
    }

    fn on_error<'a>(
        &'a self,
        context: &'a mut MiddlewareContext,
        error: &'a AgentError,
    ) -> BoxFuture<'a, Option<GenerateResult>> {
        let (step, mine) = (context.state.step(), &context.metadata["mine"]);
        let input = serde_json::to_string(&context.input).unwrap();
        let is_changed = input.contains("changed");
        self.0.add(format!("{step} {mine} {is_changed}: {error}"));
        std::future::ready(None).boxed()
    }
}

#[tokio::test]
async fn on_error_sees_the_context_as_before_has_left_it() {
    let log = Log::default();
    let mut options = failing();
    options.middleware = vec![Arc::new(Changing(log.clone()))];
    agent(options).query("go").await.unwrap_err();
    assert_eq!(log.lines(), ["7 1 true: the model call failed"]);
}

#[tokio::test]
async fn the_error_of_an_inner_layer_can_be_recovered_by_an_outer_one() {
    let instead = generate(simple()).await;
    let (options, log) = layers(simple(), |layers| {
        layers[0].recovers = Some(instead.clone());
        layers[2].fails_before = true;
    });
    let result = generate(options).await;
    assert_eq!(result, instead);
    assert_eq!(log.lines()[3..], ["b error 3", "a error 3"]);
}

#[tokio::test]
async fn a_stream_goes_through_the_layers_as_generate_does() {
    let (options, log) = layers(simple(), |_| {});
    let mut stream = agent(options).stream("go", AgentState::initial());
    assert!(
        log.lines().is_empty(),
        "nothing happens before it is polled"
    );
    while futures_util::StreamExt::next(&mut stream).await.is_some() {}
    let result = stream.result().await.unwrap();
    let (options, same) = layers(simple(), |_| {});
    let generated = generate(options).await;
    assert_eq!(log.lines(), same.lines());
    assert_eq!(content(&result.state), content(&generated.state));
}

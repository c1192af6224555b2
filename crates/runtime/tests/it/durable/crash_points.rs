//! Processes that die between two writes of one step, and what the next one makes of it.

use crate::children::rig::endings;
use crate::durable::model::{Canned, call, calling, said};
use crate::durable::rig::{Client, KEY, tenant};
use crate::durable::strategies::options;
use crate::durable::tools::{World, all};
use agents::{
    AgentError, AgentOptions, AgentState, ExecutionStrategy, Loop, Next, StepContext, StepOutcome,
};
use futures_util::future::{BoxFuture, pending};
use futures_util::{FutureExt, StreamExt};
use interop::parts::ToolPart;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use store::{EventLog as _, Filter, ThreadTable as _};
use timeline::{Entry, ExecutionStatus, Record, Seq, Transcript};
use upp::{
    AssistantContent, AssistantMessage, Effect, MessageOptions, Model, ModelEvent, ModelLayer,
    ModelStream, Request, Tool, ToolContext, ToolOutput,
};

/// A run that dies at its nth write, in the log or not, with what its model answers when it is asked
/// for the nth time. Returns the world and the parts of the first step.
async fn dying(
    answers: &'static [&'static [(&'static str, &'static str)]],
    death: (usize, bool),
) -> (World, Vec<ToolPart>) {
    let n_asked = AtomicUsize::new(0);
    let model = Canned::new(move |_| {
        let answer = answers.get(n_asked.fetch_add(1, Ordering::SeqCst));
        let calls = answer.map(|calls| calls.iter().map(|(id, tool)| call(id, tool)).collect());
        calls.map_or_else(|| said("done"), calling)
    });
    let world = World::default();
    let agent = options(model, Arc::new(Loop::default()), all(&world));
    let mut client = Client::new(agent, vec![death]);
    client.say("go").await;
    client.rest().await;
    (world, tools(&client.transcript().await))
}

/// The calls of the first step.
fn tools(transcript: &Transcript) -> Vec<ToolPart> {
    let reaction = transcript.entries.iter().find_map(|entry| match entry {
        Entry::Reaction(reaction) => Some(reaction),
        Entry::Item(_) => None,
    });
    let parts = reaction.unwrap().steps[0].parts.iter();
    parts.filter_map(|it| ToolPart::read(&it.part)).collect()
}

fn ids(tools: &[ToolPart]) -> Vec<&str> {
    tools.iter().map(|it| it.tool_call_id.as_str()).collect()
}

fn is_unknown(tool: &ToolPart) -> bool {
    tool.outcome.as_deref() == Some("interrupted")
}

#[tokio::test]
async fn an_answer_lost_after_its_pure_tool_ran_is_asked_for_again() {
    let (world, tools) = dying(&[&[("one", "pure")], &[("two", "pure")]], (1, false)).await;
    assert_eq!(world.n_runs("pure", "one"), 1);
    assert_eq!((ids(&tools), tools[0].is_answered()), (vec!["two"], true));
    // The whole of it is in one commit.
    let (world, tools) = dying(&[&[("one", "pure")], &[]], (1, true)).await;
    assert_eq!((ids(&tools), tools[0].is_answered()), (vec!["one"], true));
    assert_eq!(world.n_runs("pure", "one"), 1);
}

#[tokio::test]
async fn an_effects_call_and_its_start_are_in_the_log_together() {
    let answers: &[&[_]] = &[
        &[("one", "effect"), ("two", "effect")],
        &[("three", "effect")],
    ];
    let (world, tools) = dying(answers, (1, false)).await;
    assert_eq!(ids(&tools), ["three"]);
    assert_eq!(
        (
            world.n_runs("effect", "one"),
            world.n_runs("effect", "three")
        ),
        (0, 1)
    );
    let (world, tools) = dying(&answers[..1], (1, true)).await;
    assert_eq!(ids(&tools), ["one", "two"]);
    assert!(tools.iter().all(is_unknown), "{tools:?}");
    assert_eq!(
        world.n_runs("effect", "one") + world.n_runs("effect", "two"),
        0
    );
}

#[tokio::test]
async fn an_effect_whose_result_was_lost_is_unknown_and_not_repeated() {
    for is_kept in [false, true] {
        let answers: &[&[_]] = &[&[("one", "effect"), ("two", "pure")]];
        let (world, tools) = dying(answers, (2, is_kept)).await;
        assert_eq!(world.n_runs("effect", "one"), 1);
        assert_eq!(is_unknown(&tools[0]), !is_kept);
        assert!(!is_unknown(&tools[1]) && tools[1].is_answered());
    }
}

/// A tool that never ends, in a run with one of the others. Returns the first step once it is so.
async fn stuck(other: &str, is_so: impl Fn(&[ToolPart]) -> bool) {
    let stuck = |_: Value, _: ToolContext| pending::<ToolOutput>().boxed();
    let stuck = Tool::new("stuck", "Hangs.", json!({"type": "object"}), stuck);
    let mut tools_of = all(&World::default());
    tools_of.push(stuck.with_effect(Effect::Pure));
    let model = Canned::rounds(vec![vec![call("one", other), call("two", "stuck")]]);
    let agent = options(model, Arc::new(Loop::default()), tools_of);
    let mut client = Client::calm(agent);
    client.say("go").await;
    let waits = async {
        while !is_so(&tools(&client.transcript().await)) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waits)
        .await
        .unwrap();
}

#[tokio::test]
async fn an_answer_is_durable_while_its_pure_tool_still_runs() {
    stuck("stuck", |tools| ids(tools) == ["one", "two"]).await;
}

#[tokio::test]
async fn a_result_is_durable_while_another_tool_still_runs() {
    for tool in ["effect", "idempotent", "pure"] {
        stuck(tool, |tools| {
            tools.first().is_some_and(ToolPart::is_answered)
        })
        .await;
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

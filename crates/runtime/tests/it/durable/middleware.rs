//! Middleware around executions, whatever happens between their steps.

use crate::durable::model::{Canned, call, said};
use crate::durable::rig::{Client, KEY, records, tenant};
use crate::durable::strategies::options;
use crate::durable::tools::{World, all};
use agents::middleware::{PruneToolOutputs, SlidingWindow};
use agents::{
    Agent, AgentError, AgentOptions, AgentState, AgentStrategy, GenerateResult, Loop, Middleware,
    MiddlewareContext,
};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use timeline::{Entry, ExecutionStatus, Removed};
use upp::Message;

type Seen = Arc<Mutex<Vec<String>>>;

/// Writes down what it sees, and may fail or mend.
#[derive(Clone, Default)]
pub(super) struct Notes {
    seen: Seen,
    refuses: bool,
    mends: bool,
}

impl Notes {
    fn note(&self, line: String) {
        self.seen.lock().unwrap().push(line);
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

impl Middleware for Notes {
    fn name(&self) -> &'static str {
        "notes"
    }

    fn before<'a>(
        &'a self,
        context: &'a mut MiddlewareContext,
    ) -> BoxFuture<'a, Result<(), AgentError>> {
        self.note(format!("before {}", context.state.messages().len()));
        context.metadata.insert("ticket".into(), 7.into());
        let refused = AgentError::extension("notes", "not today");
        ready(if self.refuses { Err(refused) } else { Ok(()) }).boxed()
    }

    fn after<'a>(
        &'a self,
        context: &'a mut MiddlewareContext,
        result: GenerateResult,
    ) -> BoxFuture<'a, Result<GenerateResult, AgentError>> {
        let turn = &result.turn;
        self.note(format!(
            "after ticket {} cycles {} tools {} messages {} tokens {}",
            context.metadata["ticket"],
            turn.cycles,
            turn.tool_executions.len(),
            turn.messages.len(),
            turn.usage.input_tokens,
        ));
        let state = result.state.with_metadata("seen", true);
        ready(Ok(GenerateResult { state, ..result })).boxed()
    }

    fn on_error<'a>(
        &'a self,
        context: &'a mut MiddlewareContext,
        error: &'a AgentError,
    ) -> BoxFuture<'a, Option<GenerateResult>> {
        self.note(format!("on_error {error}"));
        let model = Canned::new(|_| said("mended"));
        let other = Agent::new(AgentOptions::new("other", model)).unwrap();
        let input = context.input.clone();
        let mends = self.mends;
        async move {
            let mended = other.generate(input, AgentState::initial()).await;
            mended.ok().filter(|_| mends)
        }
        .boxed()
    }
}

impl AgentStrategy for Notes {
    fn on_complete(&self, result: &GenerateResult) {
        self.note(format!(
            "on_complete {}",
            result.turn.response.joined_text()
        ));
    }
}

fn agent(notes: &Notes) -> AgentOptions {
    let rounds = vec![vec![call("c", "pure")], vec![call("d", "idempotent")]];
    let model = Canned::rounds(rounds);
    AgentOptions {
        middleware: vec![Arc::new(notes.clone())],
        strategy: Arc::new(notes.clone()),
        ..options(model, Arc::new(Loop::default()), all(&World::default()))
    }
}

async fn ends(client: &Client) -> Vec<ExecutionStatus> {
    let transcript = client.transcript().await;
    let ends = transcript.entries.iter().filter_map(|entry| match entry {
        Entry::Reaction(reaction) => Some(reaction.execution.status),
        Entry::Item(_) => None,
    });
    ends.collect()
}

const AFTER: &str = "after ticket 7 cycles 3 tools 2 messages 6 tokens 9";

#[tokio::test]
async fn middleware_is_around_the_execution_and_not_around_its_steps() {
    let notes = Notes::default();
    let mut client = Client::calm(agent(&notes));
    client.say("go").await;
    client.rest().await;
    assert_eq!(notes.lines(), ["before 0", "on_complete done", AFTER]);
    let records = records(&client.transcript().await);
    assert_eq!(records.last().unwrap()["metadata"]["seen"], true);
    assert!(records.iter().all(|record| record.get("view").is_none()));
}

#[tokio::test]
async fn the_way_back_is_the_same_after_a_restart_between_steps() {
    for at in 2..13 {
        let notes = Notes::default();
        let mut client = Client::new(agent(&notes), vec![(at, at % 2 == 0)]);
        client.say("go").await;
        client.rest().await;
        let lines = notes.lines();
        assert!(
            lines
                .iter()
                .all(|line| !line.starts_with("before") || line == "before 0")
        );
        assert_eq!(lines.last().unwrap(), AFTER, "death at {at}");
        assert_eq!(ends(&client).await, [ExecutionStatus::Completed]);
    }
}

#[tokio::test]
async fn a_layer_that_refuses_fails_the_execution_before_the_model_is_asked() {
    let notes = Notes {
        refuses: true,
        ..Notes::default()
    };
    let mut client = Client::calm(agent(&notes));
    client.say("go").await;
    client.rest().await;
    assert_eq!(ends(&client).await, [ExecutionStatus::Failed]);
    assert_eq!(notes.lines(), ["before 0"]);
}

/// A model that fails.
fn failing(notes: &Notes) -> AgentOptions {
    let turn = json!({"turns": [{"error": {"code": "RATE_LIMITED", "message": "slow down"}}]});
    let script = upp::Script::from_json(&turn.to_string()).unwrap();
    AgentOptions {
        model: Arc::new(upp::Scripted::with_script(script)),
        ..agent(notes)
    }
}

#[tokio::test]
async fn a_result_in_place_of_a_failure_is_the_answer() {
    let notes = Notes {
        mends: true,
        ..Notes::default()
    };
    let mut client = Client::calm(failing(&notes));
    client.say("go").await;
    client.rest().await;
    assert_eq!(ends(&client).await, [ExecutionStatus::Completed]);
    let messages = interop::model::history(&client.transcript().await, None);
    let Some(Message::Assistant(last)) = messages.last() else {
        panic!("an answer")
    };
    assert_eq!(last.joined_text(), "mended");

    let notes = Notes::default();
    let mut client = Client::calm(failing(&notes));
    client.say("go").await;
    client.rest().await;
    assert_eq!(ends(&client).await, [ExecutionStatus::Failed]);
    assert!(notes.lines()[1].starts_with("on_error"));
}

/// What the model was asked last, for each of these messages, apart from ids and instants.
async fn asked(
    layer: Arc<dyn Middleware>,
    restarts: bool,
    deaths: Vec<(usize, bool)>,
) -> Vec<Value> {
    let rounds = vec![vec![call("c", "pure"), call("d", "pure")]];
    let model = Canned::rounds(rounds);
    let options = AgentOptions {
        middleware: vec![layer],
        ..options(
            model.clone(),
            Arc::new(Loop::default()),
            all(&World::default()),
        )
    };
    let mut client = Client::new(options, deaths);
    let mut last = Vec::new();
    for text in ["one", "two", "three", "four", "five"] {
        client.say(text).await;
        client.rest().await;
        let asked = model.asked.lock().unwrap().last().unwrap().clone();
        let plain = asked.iter().map(|message| {
            let mut value = serde_json::to_value(message).unwrap();
            value["id"].take();
            value["timestamp"].take();
            value
        });
        last.push(plain.collect());
        if restarts {
            client.restart().await;
        }
    }
    // The log has all that was said.
    let transcript = client.transcript().await;
    assert_eq!(interop::model::history(&transcript, None).len(), 20);
    last
}

#[tokio::test]
async fn what_middleware_leaves_of_a_conversation_is_the_same_after_a_restart() {
    let window = SlidingWindow::new(NonZeroUsize::new(6).unwrap());
    let prune = PruneToolOutputs {
        usable: 20,
        protect_recent: 10,
        placeholder: "[]".into(),
        ..PruneToolOutputs::default()
    };
    let layers: [Arc<dyn Middleware>; 2] = [Arc::new(window), Arc::new(prune)];
    for layer in layers {
        let calm = asked(Arc::clone(&layer), false, Vec::new()).await;
        let lengths: Vec<usize> = calm.iter().map(|it| it.as_array().unwrap().len()).collect();
        let pruned = json!(calm[4]).to_string().contains("\"[]\"");
        assert!(lengths[4] < 19 || pruned, "{lengths:?}");
        assert_eq!(asked(Arc::clone(&layer), true, Vec::new()).await, calm);
        for at in (4..26).step_by(2) {
            let crashed = asked(Arc::clone(&layer), false, vec![(at, false)]).await;
            assert_eq!(crashed, calm, "{} death at {at}", layer.name());
        }
    }
}

/// What the model is asked after something was removed, as text, by a process that remembers or not.
async fn asked_without(restarts: bool) -> Vec<String> {
    let model = Canned::rounds(vec![vec![call("c", "pure")]]);
    let window = SlidingWindow::new(NonZeroUsize::new(6).unwrap());
    let options = AgentOptions {
        middleware: vec![Arc::new(window)],
        ..options(
            model.clone(),
            Arc::new(Loop::default()),
            all(&World::default()),
        )
    };
    let mut client = Client::new(options, Vec::new());
    for text in ["one", "two", "three", "four"] {
        client.say(text).await;
        client.rest().await;
    }
    let transcript = client.transcript().await;
    let Some(Entry::Reaction(first)) = transcript.entries.get(1) else {
        panic!("the second entry is an answer");
    };
    let step = Removed::Step(first.steps[0].step.id.clone());
    let items = ["item-one", "item-three"].map(|id| Removed::Item(id.into()));
    for what in items.into_iter().chain([step]) {
        client.runtime.remove(&tenant(), KEY, what).await.unwrap();
    }
    if restarts {
        client.restart().await;
    }
    client.say("five").await;
    client.rest().await;
    let asked = model.asked.lock().unwrap().last().unwrap().clone();
    let plain = asked.iter().map(|message| {
        let mut value = serde_json::to_value(message).unwrap();
        value["id"].take();
        value["timestamp"].take();
        value.to_string()
    });
    plain.collect()
}

#[tokio::test]
async fn what_is_removed_is_not_sent_again_whatever_middleware_has_cut() {
    let asked = asked_without(false).await;
    assert!(!asked.concat().contains("three"), "{asked:?}");
    // The cuts are where they were made: two rounds are gone, and the third begins what is left.
    assert!(asked[0].contains("\"rounds\":2"), "{asked:?}");
    assert_eq!(asked_without(true).await, asked);
}

//! Runs that ask no model.

use super::middleware::Notes;
use super::model::{Canned, calling, said};
use super::options::{Kept, agent, call, run, weather};
use super::rig::{Client, bring};
use interop::options::RunOptions;
use serde_json::{Value, json};
use std::sync::Arc;
use timeline::{Entry, ExecutionStatus};
use upp::Request;

fn prepares() -> RunOptions {
    RunOptions {
        without_model: true,
        ..RunOptions::default()
    }
}

/// The texts and results of the messages that the model was sent last.
fn sent(model: &Kept) -> Vec<Value> {
    let requests = model.requests.lock().unwrap();
    let messages = requests.last().unwrap().messages.iter();
    let messages = messages.map(|it| serde_json::to_value(it).unwrap());
    let said = |it: Value| match &it["results"] {
        Value::Null => it["content"][0]["text"].clone(),
        results => results[0]["result"].clone(),
    };
    messages.map(said).collect()
}

/// A model that calls the client's tool once under each of these ids, however often it is asked then.
fn calls(ids: &'static [&str]) -> Arc<Kept> {
    Kept::new(Canned::new(move |request: &Request| {
        match request.messages.len() {
            1 => calling(ids.iter().map(|id| call(id, "weather")).collect()),
            _ => said("done"),
        }
    }))
}

/// What runs bring the client's tool with.
fn with_weather() -> RunOptions {
    RunOptions {
        tools: vec![weather()],
        ..RunOptions::default()
    }
}

#[tokio::test]
async fn a_run_without_a_model_keeps_what_was_said_for_the_next_one() {
    for restarts in [false, true] {
        let model = Kept::new(Canned::rounds(Vec::new()));
        let notes = Notes::default();
        let mut options = agent(Arc::clone(&model));
        options.middleware = vec![Arc::new(notes.clone())];
        let mut client = Client::calm(options);
        client.say("one").await;
        client.rest().await;
        let n_before = notes.lines().len();
        client.say_as("two", run(&prepares())).await;
        client.rest().await;
        assert_eq!(model.requests.lock().unwrap().len(), 1);
        assert_eq!(notes.lines().len(), n_before);
        let transcript = client.transcript().await;
        let Some(Entry::Reaction(reaction)) = transcript.entries.last() else {
            panic!("no reaction");
        };
        assert_eq!(reaction.execution.status, ExecutionStatus::Completed);
        let steps = reaction.steps.iter();
        let steps: Vec<_> = steps
            .map(|it| (it.parts.len(), it.response.is_some()))
            .collect();
        // The response says that no model was asked.
        assert_eq!(steps, [(0, true)]);
        if restarts {
            client.restart().await;
        }
        client.say("three").await;
        client.rest().await;
        assert_eq!(sent(&model), ["one", "done", "two", "three"]);
    }
}

#[tokio::test]
async fn a_run_without_a_model_takes_results_and_leaves_the_answer_to_the_next_one() {
    for restarts in [false, true] {
        let model = calls(&["c"]);
        let mut client = Client::calm(agent(Arc::clone(&model)));
        let mut options = with_weather();
        client.say_as("one", run(&options)).await;
        client.rest().await;
        options.without_model = true;
        client
            .answer_as(bring("c", &json!("sunny")), Some(run(&options)))
            .await;
        client.rest().await;
        assert_eq!(model.requests.lock().unwrap().len(), 1);
        assert!(client.open().await.is_empty());
        if restarts {
            client.restart().await;
        }
        client.say("two").await;
        client.rest().await;
        let sent = sent(&model);
        assert_eq!(
            (sent.len(), &sent[2..]),
            (4, &[json!("sunny"), json!("two")][..])
        );
    }
}

#[tokio::test]
async fn who_answers_what_a_run_without_a_model_has_left_has_the_model_asked() {
    let model = calls(&["c", "d"]);
    let mut client = Client::calm(agent(Arc::clone(&model)));
    let mut options = with_weather();
    client.say_as("one", run(&options)).await;
    client.rest().await;
    options.without_model = true;
    client
        .answer_as(bring("c", &json!("sunny")), Some(run(&options)))
        .await;
    client.rest().await;
    assert_eq!(client.open().await.len(), 1);
    client.answer_as(bring("d", &json!("rainy")), None).await;
    client.rest().await;
    assert_eq!(model.requests.lock().unwrap().len(), 2);
    assert!(client.open().await.is_empty());
}

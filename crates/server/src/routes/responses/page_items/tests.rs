//! What it costs to find items.

use super::Thread;
use super::counted::Counted;
use crate::auth::Caller;
use crate::threads::ThreadKey;
use interop::parts::StepResponse;
use interop::responses::{ListOptions, conversation_item};
use runtime::{MemoryStore, Reactor, Reactors, Runtime, RuntimeOptions, Store};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use store::suite::Author;
use timeline::{
    Command, Ending, Interruption, NewChunk, NewItem, NewThread, Payload, StepOutcome, Trigger,
};

/// Nobody reacts.
struct Nobody;

impl Reactors for Nobody {
    fn find(&self, _agent: Option<&str>) -> Option<Arc<dyn Reactor>> {
        None
    }
}

fn begun(name: &str) -> Command {
    let said = json!([{"type": "input_text", "text": "hi"}]);
    Command::Start {
        trigger: Trigger::New(NewItem::user(format!("{name}-ask"), said.into())),
        run: None,
        execution_id: name.into(),
        reaction_item_id: format!("{name}-reaction").into(),
        step_id: format!("{name}-step").into(),
        workflow_run_id: None,
    }
}

fn streamed(n_chunks: usize) -> Command {
    let chunk = NewChunk {
        chunk_type: "text-delta".to_owned(),
        data: Some(json!({"id": "t0-0", "delta": "word "}).into()),
    };
    Command::Emit {
        chunks: vec![chunk; n_chunks],
    }
}

/// A run that has said three things.
fn run(name: &str, n_chunks: usize) -> Vec<Command> {
    let parts = ["a", "b", "c"].map(|text| json!({"type": "output_text", "text": text}).into());
    vec![
        begun(name),
        streamed(n_chunks),
        Command::Respond {
            parts: parts.to_vec(),
            response: Payload::write(&StepResponse::default()).unwrap(),
        },
        Command::CompleteStep {
            outcome: StepOutcome::default(),
            next: None,
        },
        Command::End {
            ending: Ending::Completed,
        },
    ]
}

/// A thread with so many runs, the last of which was cut off.
async fn thread(n_runs: usize, n_chunks: usize) -> (Runtime, Arc<Counted>) {
    let memory = Arc::new(MemoryStore::new());
    let store: Arc<dyn Store> = Arc::<MemoryStore>::clone(&memory);
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("t"))).await;
    for n in 0..n_runs {
        author.commit_all(run(&format!("r{n}"), n_chunks)).await;
    }
    let why = Interruption {
        reason: Interruption::USER_CANCELLED.into(),
        detail: None,
    };
    let cut_off = [
        begun("cut"),
        streamed(2),
        Command::End {
            ending: Ending::Stopped(why),
        },
    ];
    author.commit_all(cut_off).await;
    let counted = Arc::new(Counted::new(memory));
    let store: Arc<dyn Store> = Arc::<Counted>::clone(&counted);
    let runtime = Runtime::new(store, Arc::new(Nobody), RuntimeOptions::default());
    (runtime, counted)
}

/// How many records it costs to find which of these items a thread has, and how many it has.
async fn cost(n_runs: usize, n_chunks: usize, items: &[&str]) -> (usize, usize) {
    let (runtime, counted) = thread(n_runs, n_chunks).await;
    let caller = Caller::local("acme");
    let key = ThreadKey::authorise(&runtime, &caller, "t").unwrap();
    let thread = Thread::of(&key);
    let listed = thread.listed(items).await.unwrap();
    (counted.records_read(), listed.len())
}

const SAID: [&str; 3] = ["msg_r2-step_0", "msg_r2-step_1", "msg_r2-step_2"];

#[tokio::test]
async fn however_many_items_of_a_piece_are_named_it_is_read_once() {
    let (one, _) = cost(8, 0, &SAID[..1]).await;
    assert!(one > 0);
    assert_eq!(cost(8, 0, &SAID).await, (one, 3));
    assert_eq!(cost(8, 0, &SAID.repeat(30)).await, (one, 3));
    assert_eq!(cost(80, 0, &SAID).await, (one, 3));
    let mut two = SAID.to_vec();
    two.push("msg_r5-step_1");
    assert_eq!(cost(8, 0, &two).await, (2 * one, 4));
}

#[tokio::test]
async fn an_item_that_is_not_there_costs_no_record() {
    for id in ["none", "msg_none", "fc_none_1", "msg_r2x-step_0", "a:1"] {
        assert_eq!(cost(8, 0, &[id]).await, (0, 0), "{id}");
    }
    // The step is there, and has no such item.
    let (one, _) = cost(8, 0, &SAID[..1]).await;
    assert_eq!(cost(80, 0, &["msg_r2-step_9"]).await, (one, 0));
}

#[tokio::test]
async fn what_was_streamed_is_read_only_where_it_was_cut_off() {
    let (runtime, counted) = thread(8, 50).await;
    let caller = Caller::local("acme");
    let key = ThreadKey::authorise(&runtime, &caller, "t").unwrap();
    let thread = Thread::of(&key);
    assert_eq!(thread.listed(&SAID).await.unwrap().len(), 3);
    assert_eq!(counted.pieces_read(), 0);
    let id = "msg_cut-step_0";
    let find = |transcript: &_| conversation_item(transcript, id, ListOptions::default());
    let found = thread.find(id, find).await.unwrap().unwrap();
    assert!(found.json.contains("word word "), "{}", found.json);
    assert_eq!(thread.listed(&[id]).await.unwrap(), BTreeSet::from([id]));
}

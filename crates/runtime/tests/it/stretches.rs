//! What a stretch costs: what it reads, however long the thread is.

use crate::mortal::Mortal;
use loomline_runtime as runtime;
use runtime::{PageRequest, Position, Reactor, Reactors, Runtime, RuntimeOptions};
use serde_json::json;
use std::sync::Arc;
use store::suite::Author;
use store::{Filter, Landmark, MemoryStore, Store, TenantId};
use timeline::{Command, Ending, Fork, NewItem, NewThread, StepOutcome, Trigger};

/// Nobody reacts.
struct Nobody;

impl Reactors for Nobody {
    fn find(&self, _agent: Option<&str>) -> Option<Arc<dyn Reactor>> {
        None
    }
}

fn item(id: String) -> NewItem {
    let content = json!([{"type": "input_text", "text": "hi"}]);
    NewItem::user(id, content.into())
}

/// A message and a run: that answers another one, or what was said before.
fn one_run(name: &str, says: bool) -> [Command; 4] {
    let ask = format!("{name}-ask");
    let trigger = if says {
        item(ask)
    } else {
        NewItem::reference(ask, None)
    };
    [
        Command::Record {
            item: item(format!("{name}-kept")),
        },
        Command::Start {
            trigger: Trigger::New(trigger),
            run: None,
            execution_id: name.into(),
            reaction_item_id: format!("{name}-reaction").into(),
            step_id: format!("{name}-step").into(),
            workflow_run_id: None,
        },
        Command::ImportStep {
            outcome: StepOutcome::default(),
            next: None,
        },
        Command::End {
            ending: Ending::Completed,
        },
    ]
}

async fn thread(
    store: &Arc<dyn Store>,
    id: &str,
    fork: Option<Fork>,
    n_runs: usize,
    says: bool,
) -> Author {
    let mut thread = NewThread::new(id, Some(id));
    thread.fork = fork;
    let mut author = Author::new(store, "acme", thread).await;
    for n in 0..n_runs {
        author.commit_all(one_run(&format!("{id}-{n}"), says)).await;
    }
    author
}

/// How many records a stretch reads of a thread with so many runs, in a fork and out of it.
async fn cost(n_runs: usize, says: bool, stretch: impl Fn(&str, u64) -> PageRequest) -> Vec<usize> {
    let memory = Arc::new(MemoryStore::new());
    let store: Arc<dyn Store> = Arc::<MemoryStore>::clone(&memory);
    let root = thread(&store, "root", None, n_runs, says).await;
    let fork = Fork {
        thread_id: root.thread,
        seq: root.tail,
    };
    thread(&store, "leaf", Some(fork), 1, says).await;
    let mut costs = Vec::new();
    for key in ["root", "leaf"] {
        let counted = Mortal::new(&memory, usize::MAX, true, false);
        let store: Arc<dyn Store> = Arc::<Mortal>::clone(&counted);
        let runtime = Runtime::new(store, Arc::new(Nobody), RuntimeOptions::default());
        let stretch = stretch("root-2", root.tail.0 / 2);
        let tenant = TenantId::from("acme");
        let read = runtime.page(&tenant, key, stretch, Filter::All).await;
        assert!(!read.unwrap().transcript.entries.is_empty());
        costs.push(counted.records_read());
    }
    costs
}

#[tokio::test]
async fn a_stretch_costs_what_it_reads_however_long_the_thread_is() {
    let stretches: [fn(&str, u64) -> PageRequest; 5] = [
        |run, _| PageRequest::Execution(run.into()),
        |run, _| PageRequest::Run(run.into()),
        |_, _| PageRequest::Before {
            before: Position::END,
            n: 3,
        },
        |_, middle| PageRequest::Before {
            before: Position(middle),
            n: 3,
        },
        |_, middle| PageRequest::After {
            after: Position(middle),
            n: 3,
        },
    ];
    for (place, stretch) in stretches.into_iter().enumerate() {
        // Whether runs answer messages of their own, or what was said before them.
        for says in [true, false] {
            let short = cost(8, says, stretch).await;
            let long = cost(80, says, stretch).await;
            assert!(short.iter().all(|n| *n > 0), "{place}: {short:?}");
            let far = short
                .iter()
                .zip(&long)
                .any(|(short, long)| *long > short + 40);
            assert!(!far, "{place}, {says}: {short:?}, {long:?}");
        }
    }
}

/// How many records it costs to read a run as it stood, in a fork and out of it, and to look up places.
async fn costs_as_it_stood(n_runs: usize) -> Vec<usize> {
    let memory = Arc::new(MemoryStore::new());
    let store: Arc<dyn Store> = Arc::<MemoryStore>::clone(&memory);
    let root = thread(&store, "root", None, n_runs, true).await;
    let fork = Fork {
        thread_id: root.thread,
        seq: root.tail,
    };
    thread(&store, "leaf", Some(fork), 1, true).await;
    let mut costs = Vec::new();
    for key in ["root", "leaf"] {
        let counted = Mortal::new(&memory, usize::MAX, true, false);
        let store: Arc<dyn Store> = Arc::<Mortal>::clone(&counted);
        let runtime = Runtime::new(store, Arc::new(Nobody), RuntimeOptions::default());
        let tenant = TenantId::from("acme");
        let run = runtime.run_until(&tenant, key, "root-2".into(), root.tail);
        assert!(!run.await.unwrap().entries.is_empty());
        costs.push(counted.records_read());
        let (ask, step) = ("root-2-ask".into(), "root-3-step".into());
        let none = "none".into();
        let lists = [
            vec![Landmark::Item(&none), Landmark::Item(&ask)],
            vec![Landmark::Step(&step)],
            vec![Landmark::Item(&none)],
        ];
        let places = runtime.positions_of(&tenant, key, &lists).await.unwrap();
        let mut expected = Vec::new();
        for landmark in [
            Landmark::Item(&ask),
            Landmark::Step(&step),
            Landmark::Item(&none),
        ] {
            expected.push(runtime.position_of(&tenant, key, landmark).await.unwrap());
        }
        assert_eq!(places, expected);
        assert_eq!(places.iter().flatten().count(), 2);
        costs.push(counted.records_read());
    }
    costs
}

#[tokio::test]
async fn a_run_as_it_stood_costs_the_run_however_long_the_thread_is() {
    let short = costs_as_it_stood(8).await;
    assert_eq!(costs_as_it_stood(80).await, short);
    assert_eq!(short[0], short[1], "places cost no record");
}

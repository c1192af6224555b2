//! What changes of a thread after it was said, through the runtime.

use crate::runtime::Runtime;
use crate::runtime::RuntimeError;
use crate::runtime::{PageRequest, Position};
use crate::runtime_on;
use store::suite::Subject;
use store::suite::script::{
    Author, answer, complete_step, end, enqueue, fork, item, keep, leave_open, respond, start,
    tenant,
};
use store::{Filter, StoreError};
use timeline::{
    Command, Entry, NewThread, Payload, Rejected, Removed, Seq, ThreadUpdate, Transcript, Trigger,
};

const METADATA: &str = r#"{"z":1.0,"a":null}"#;

fn metadata() -> Option<Payload> {
    Payload::from_text(METADATA.to_owned()).ok()
}

fn of_item(id: &str) -> Removed {
    Removed::Item(id.into())
}

fn of_step(id: &str) -> Removed {
    Removed::Step(id.into())
}

async fn whole(runtime: &Runtime, key: &str) -> Transcript {
    let read = runtime.transcript(&tenant(), key, Filter::Facts).await;
    read.unwrap()
}

/// The ids of items and steps.
fn names(transcript: &Transcript) -> Vec<String> {
    let name = |entry: &Entry| match entry {
        Entry::Item(item) => vec![item.id.to_string()],
        Entry::Reaction(reaction) => {
            let steps = reaction.steps.iter();
            steps.map(|step| step.step.id.to_string()).collect()
        }
    };
    transcript.entries.iter().flat_map(name).collect()
}

async fn refused(runtime: &Runtime, key: &str, what: Removed) -> Rejected {
    match runtime.remove(&tenant(), key, what).await {
        Err(RuntimeError::Rejected(rejected)) => rejected,
        other => unreachable!("{other:?}"),
    }
}

/// Title and metadata are what was set last, in the row, in the state and in every transcript; what
/// was not named stays, and a store that is opened again knows it.
pub(crate) async fn a_title_and_metadata_that_change_are_the_threads(mut subject: impl Subject) {
    let mut thread = NewThread::new("t", Some("k"));
    thread.title = Some("first".to_owned());
    let mut author = Author::new(&subject.store(), "acme", thread).await;
    let ask = start("one", Trigger::New(item("ask")));
    author
        .commit_all([ask, complete_step(Some("one-step-1"))])
        .await;
    drop(author);
    let before = runtime_on(&subject);
    let updated_at = before.find(&tenant(), "k").await.unwrap().thread.updated_at;
    // Also while an execution runs.
    let update = async |title, metadata| {
        let update = ThreadUpdate { title, metadata };
        before.update_thread(&tenant(), "k", update).await.unwrap()
    };
    let seq = update(Some(Some("second".to_owned())), Some(metadata())).await;
    let none = ThreadUpdate::default();
    let same = before.update_thread(&tenant(), "k", none).await.unwrap();
    assert_eq!(seq, same);
    update(None, Some(None)).await;
    update(Some(None), None).await;
    update(Some(Some("third".to_owned())), None).await;
    update(None, Some(metadata())).await;
    drop(before);

    subject.reopen().await;

    let after = runtime_on(&subject);
    let row = after.find(&tenant(), "k").await.unwrap().thread;
    assert!(row.updated_at > updated_at);
    let (state, _) = after.state(&tenant(), "k").await.unwrap();
    let told = whole(&after, "k").await.thread.unwrap();
    for thread in [&row, state.thread().unwrap(), &told] {
        assert_eq!(thread.title.as_deref(), Some("third"));
        assert_eq!(thread.metadata, metadata());
    }
    assert!(state.active().is_some());
    let none = ThreadUpdate::default();
    let nobody = after.update_thread(&tenant(), "none", none).await;
    assert!(
        matches!(&nobody, Err(RuntimeError::Store(StoreError::NotFound))),
        "{nobody:?}"
    );
}

fn life() -> Vec<Command> {
    vec![
        keep("kept"),
        start("one", Trigger::New(item("ask-1"))),
        respond(),
        complete_step(Some("one-step-1")),
        respond(),
        complete_step(None),
        end(),
        start("two", Trigger::New(item("ask-2"))),
        respond(),
        leave_open(),
        end(),
        start("three", Trigger::New(answer("yes"))),
        enqueue("ask-4"),
        complete_step(Some("three-step-1")),
    ]
}

/// What is removed is in no transcript and in no stretch, of the thread and of what is forked from it
/// later; the log keeps it.
pub(crate) async fn what_is_removed_is_read_no_more(mut subject: impl Subject) {
    let mut author = Author::new(&subject.store(), "acme", NewThread::new("t", Some("k"))).await;
    author.commit_all(life()).await;
    let stop = || {
        timeline::Ending::Stopped(timeline::Interruption {
            reason: "timeout".into(),
            detail: None,
        })
    };
    author.commit(Command::End { ending: stop() }).await;
    let early = fork("t", author.tail.0);
    let before = runtime_on(&subject);
    let told = names(&whole(&before, "k").await);
    for what in [of_item("ask-1"), of_step("one-step-0"), of_item("kept")] {
        before.remove(&tenant(), "k", what).await.unwrap();
    }
    let tail = before.find(&tenant(), "k").await.unwrap().tail;
    drop((before, author));

    subject.reopen().await;

    let store = subject.store();
    for (id, of) in [("early", early), ("late", fork("t", tail.0))] {
        let mut thread = NewThread::new(id, Some(id));
        thread.fork = Some(of);
        let mut author = Author::new(&store, "acme", thread).await;
        author.commit(keep("own")).await;
    }
    let after = runtime_on(&subject);
    let gone = ["ask-1", "one-step-0", "kept"].map(str::to_owned);
    let mut expected = told.clone();
    expected.retain(|name| !gone.contains(name));
    assert_eq!(names(&whole(&after, "k").await), expected);
    let of_fork = |mut names: Vec<String>| {
        names.retain(|name| name != "ask-4");
        names.push("own".to_owned());
        names
    };
    let late = of_fork(expected.clone());
    assert_eq!(names(&whole(&after, "late").await), late);
    assert_eq!(names(&whole(&after, "early").await), of_fork(told.clone()));
    let stretches = [
        ("k", expected),
        ("late", late.clone()),
        ("early", of_fork(told)),
    ];
    for (key, expected) in stretches {
        let all = PageRequest::Before {
            before: Position::END,
            n: 1_000,
        };
        let read = after.page(&tenant(), key, all, Filter::Facts).await;
        assert_eq!(names(&read.unwrap().transcript), expected, "{key}");
        let one = PageRequest::Execution("one-execution".into());
        let read = after.page(&tenant(), key, one, Filter::Facts).await;
        let read = names(&read.unwrap().transcript);
        assert_eq!(
            read.contains(&gone[1]),
            expected.contains(&gone[1]),
            "{key}"
        );
    }
    // A fork removes what it has of its parent for itself alone.
    let inherited = of_item("ask-2");
    after
        .remove(&tenant(), "late", inherited.clone())
        .await
        .unwrap();
    assert!(!names(&whole(&after, "late").await).contains(&"ask-2".to_owned()));
    assert!(names(&whole(&after, "k").await).contains(&"ask-2".to_owned()));
    let again = refused(&after, "late", inherited.clone()).await;
    assert_eq!(again, Rejected::RemovedAlready(inherited));
    let log = store
        .read(&"t".into(), Seq::ZERO, 1_000, Filter::All)
        .await
        .unwrap();
    let kept = log
        .iter()
        .any(|logged| logged.text.contains("\"id\":\"ask-1\""));
    assert!(kept);
}

/// What is not there, is removed already, waits, runs or has answers elsewhere stays as it is.
pub(crate) async fn what_can_not_be_removed_is_refused(subject: impl Subject) {
    let mut author = Author::new(&subject.store(), "acme", NewThread::new("t", Some("k"))).await;
    author.commit_all(life()).await;
    let runtime = runtime_on(&subject);
    let before = whole(&runtime, "k").await;
    for (what, expected) in [
        (of_item("none"), Rejected::NotThere(of_item("none"))),
        (of_step("ask-1"), Rejected::NotThere(of_step("ask-1"))),
        (of_item("ask-4"), Rejected::StillNeeded(of_item("ask-4"))),
        (of_item("yes"), Rejected::StillNeeded(of_item("yes"))),
        (
            of_step("three-step-0"),
            Rejected::StillNeeded(of_step("three-step-0")),
        ),
        (
            of_step("three-step-1"),
            Rejected::StillNeeded(of_step("three-step-1")),
        ),
        (
            of_step("two-step-0"),
            Rejected::LeftOpen("two-step-0".into()),
        ),
        (
            of_item("one-reaction"),
            Rejected::Written("one-reaction".into()),
        ),
    ] {
        assert_eq!(refused(&runtime, "k", what).await, expected);
    }
    assert_eq!(whole(&runtime, "k").await, before);
    let kept = of_item("kept");
    runtime.remove(&tenant(), "k", kept.clone()).await.unwrap();
    let again = refused(&runtime, "k", kept.clone()).await;
    assert_eq!(again, Rejected::RemovedAlready(kept));

    let mut closed = Author::new(&subject.store(), "acme", NewThread::new("c", Some("c"))).await;
    closed.commit_all([keep("kept"), Command::Close]).await;
    let refusal = refused(&runtime, "c", of_item("kept")).await;
    assert_eq!(refusal, Rejected::Closed);
    let update = ThreadUpdate {
        title: Some(None),
        metadata: None,
    };
    let refusal = runtime.update_thread(&tenant(), "c", update).await;
    assert!(matches!(
        refusal,
        Err(RuntimeError::Rejected(Rejected::Closed))
    ));
}

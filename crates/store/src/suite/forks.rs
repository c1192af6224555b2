//! Tests of the records that forks inherit from their parents.

use super::Subject;
use super::script::{
    Author, answer, complete_step, end, first, fork, item, keep, leave_open, record, respond,
    start, tenant,
};
use crate::Store;
use jiff::Timestamp;
use std::sync::Arc;
use timeline::{Command, NewThread, Open, Seq, State, Trigger};

async fn forked(store: &Arc<dyn Store>, id: &str, of: &str, at: Seq) -> Author {
    let thread = NewThread {
        fork: Some(fork(of, at.0)),
        ..NewThread::new(id, Some(id))
    };
    Author::new(store, "acme", thread).await
}

/// A fork of the parent that is made with what was done in it already.
async fn imported(store: &Arc<dyn Store>, id: &str, at: Seq, done: Vec<Command>) -> State {
    let thread = NewThread {
        fork: Some(fork("parent", at.0)),
        ..NewThread::new(id, Some(id))
    };
    let made = Timestamp::UNIX_EPOCH;
    let mut records = first(thread, made);
    let mut state = State::default();
    for record in &records {
        state.apply(record.event());
    }
    for command in done {
        for event in state.decide(command, made).unwrap() {
            state.apply(&event);
            records.push(record(event, made));
        }
    }
    let created = store
        .get_or_create(&tenant(), records, None, None)
        .await
        .unwrap();
    store.head(&created.thread).await.unwrap().state
}

/// The open call, and the execution that made it.
fn open(author: &Author) -> Option<(&str, &str)> {
    author.state.open().and_then(left)
}

fn left(open: &Open) -> Option<(&str, &str)> {
    let call = open.calls.first()?;
    Some((&call.tool_call_id, open.execution.id.as_str()))
}

/// A fork inherits the calls that were open at its position, whatever happened to them in the parent
/// since. It does not after a message was posted in the fork, or before it was forked again.
pub async fn a_fork_has_the_calls_that_its_parent_had_left_open_there(mut subject: impl Subject) {
    let store = subject.store();
    let mut parent = Author::new(&store, "acme", NewThread::new("parent", Some("p"))).await;
    let begun = parent.tail;
    parent
        .commit_all([
            start("one", Trigger::New(item("ask"))),
            respond(),
            leave_open(),
            end(),
        ])
        .await;
    let left = parent.tail;
    parent
        .commit_all([
            start("two", Trigger::New(answer("yes"))),
            complete_step(None),
            end(),
        ])
        .await;
    let answered = parent.tail;
    parent.commit(keep("aside")).await;

    let here = Some(("c1", "one-execution"));
    let mut fork = forked(&store, "fork", "parent", left).await;
    let mut deep = forked(&store, "deep", "fork", fork.tail).await;
    assert_eq!(open(&fork), here);
    assert_eq!(open(&deep), here);
    for (id, at) in [
        ("before", begun),
        ("answered", answered),
        ("aside", parent.tail),
    ] {
        assert_eq!(open(&forked(&store, id, "parent", at).await), None, "{id}");
    }

    let before = fork.tail;
    fork.commit(keep("something else")).await;
    assert_eq!(open(&fork), None);
    deep.commit(start("three", Trigger::New(answer("deep yes"))))
        .await;
    let active = deep.state.active().unwrap();
    assert_eq!(active.open_calls[0].tool_call_id, "c1");

    drop(store);
    subject.reopen().await;
    let store = subject.store();
    for author in [&mut parent, &mut fork, &mut deep] {
        author.store = store.clone();
        let head = store.head(&author.thread).await.unwrap();
        assert_eq!(head.state, author.state, "{}", author.thread);
    }
    deep.commit_all([complete_step(None), end()]).await;
    let head = store.head(&deep.thread).await.unwrap();
    assert_eq!((head.state.open(), &head.state), (None, &deep.state));
    // A fork of the fork has what that had, at its place.
    for (id, at, expected) in [("early", before, here), ("late", fork.tail, None)] {
        assert_eq!(
            open(&forked(&store, id, "fork", at).await),
            expected,
            "{id}"
        );
    }
}

/// A fork created with messages and runs has their open calls, not those of its parent.
pub async fn a_fork_that_is_made_with_content_has_what_that_leaves_open(mut subject: impl Subject) {
    let store = subject.store();
    let mut parent = Author::new(&store, "acme", NewThread::new("parent", Some("p"))).await;
    let run = |name: &str| {
        let asked = item(&format!("{name}-ask"));
        [
            start(name, Trigger::New(asked)),
            respond(),
            leave_open(),
            end(),
        ]
    };
    parent.commit_all(run("one")).await;
    let cases = [
        ("empty", Vec::new(), Some("one-execution")),
        ("said", vec![keep("aside")], None),
        ("ran", run("own").to_vec(), Some("own-execution")),
    ];
    let mut made = Vec::new();
    for (id, done, expected) in cases {
        let state = imported(&store, id, parent.tail, done).await;
        let open = state.open().and_then(left);
        assert_eq!(open, expected.map(|run| ("c1", run)), "{id}");
        made.push((id, state));
    }
    drop(store);
    subject.reopen().await;
    let store = subject.store();
    for (id, state) in made {
        let head = store.head(&id.into()).await.unwrap();
        assert_eq!(head.state, state, "{id}");
    }
}

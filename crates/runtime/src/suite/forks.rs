//! What forks have of their parents.

use super::Subject;
use super::script::{
    Author, answer, complete_step, end, fork, item, keep, leave_open, respond, start,
};
use crate::store::Store;
use std::sync::Arc;
use timeline::{NewThread, Seq, Trigger};

async fn forked(store: &Arc<dyn Store>, id: &str, of: &str, at: Seq) -> Author {
    let thread = NewThread {
        fork: Some(fork(of, at.0)),
        ..NewThread::new(id, Some(id))
    };
    Author::new(store, "acme", thread).await
}

/// The call that is open, and the execution that left it.
fn open(author: &Author) -> Option<(&str, &str)> {
    let open = author.state.open()?;
    let call = open.calls.first()?;
    Some((&call.tool_call_id, open.execution.id.as_str()))
}

/// Calls that wait where a thread is forked can be answered in the fork, too, whatever became of them
/// in the thread since; not where something was said in the fork, or before it was forked again.
pub async fn a_fork_has_the_calls_that_its_parent_had_left_open_there(mut subject: impl Subject) {
    let store = subject.store();
    let mut parent = Author::new(&store, "acme", NewThread::new("parent", Some("p"))).await;
    let begun = parent.tail;
    parent
        .tell_all([
            start("one", Trigger::New(item("ask"))),
            respond(),
            leave_open(),
            end(),
        ])
        .await;
    let left = parent.tail;
    parent
        .tell_all([
            start("two", Trigger::New(answer("yes"))),
            complete_step(None),
            end(),
        ])
        .await;
    let answered = parent.tail;
    parent.tell(keep("aside")).await;

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
    fork.tell(keep("something else")).await;
    assert_eq!(open(&fork), None);
    deep.tell(start("three", Trigger::New(answer("deep yes"))))
        .await;
    let active = deep.state.active().unwrap();
    assert_eq!(active.open_calls[0].tool_call_id, "c1");

    drop(store);
    subject.reopen().await;
    let store = subject.store();
    for author in [&mut parent, &mut fork, &mut deep] {
        author.store = store.clone();
        let claim = store.claim(&author.thread).await.unwrap();
        author.epoch = claim.epoch;
        assert_eq!(claim.head.state, author.state, "{}", author.thread);
    }
    deep.tell_all([complete_step(None), end()]).await;
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

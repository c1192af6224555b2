//! Tests of the list of threads in which something waits for a person.

use super::Subject;
use super::script::{
    Author, answer, complete_step, end, fork, item, keep, leave_open, respond, start, tenant,
};
use crate::search::{Search, SearchWords};
use crate::{KeyPattern, Store, ThreadFilter, ThreadRow, ThreadRows, WaitingRow, WaitingRows};
use serde_json::json;
use std::sync::Arc;
use timeline::{Command, NewItem, NewThread, Seq, Trigger};

type Shared = Arc<dyn Store>;

fn waits() -> [Command; 4] {
    [
        start("one", Trigger::New(item("ask"))),
        respond(),
        leave_open(),
        end(),
    ]
}

fn asks(id: &str) -> Command {
    let text = json!({"$schema": "https://aitp.dev/v1/decisions/schema.json", "request_decision": {"id": id}});
    let content = json!([{"type": "input_text", "text": text.to_string()}]);
    Command::Record {
        item: NewItem::user(id, content.into()),
    }
}

async fn thread(store: &Shared, key: &str) -> Author {
    Author::new(store, "acme", NewThread::new(key, Some(key))).await
}

async fn page(store: &Shared, page: WaitingRows) -> Vec<WaitingRow> {
    store.waiting(&tenant(), page).await.unwrap()
}

async fn all(store: &Shared) -> Vec<WaitingRow> {
    let limit = 100;
    page(
        store,
        WaitingRows {
            limit,
            ..WaitingRows::default()
        },
    )
    .await
}

/// The listed keys, and whether calls wait there and requests may.
async fn listed(store: &Shared) -> Vec<(String, bool, bool)> {
    let rows = all(store).await.into_iter();
    let rows = rows.map(|it| {
        let key = it.row.thread.key.unwrap();
        (key, it.calls_since.is_some(), it.may_ask)
    });
    rows.collect()
}

fn calls(key: &str) -> (String, bool, bool) {
    (key.to_owned(), true, false)
}

fn requests(key: &str) -> (String, bool, bool) {
    (key.to_owned(), false, true)
}

/// A thread waits for an answer from the end of the run to the answer, or to another message.
pub async fn a_thread_waits_from_the_end_of_its_run_to_its_answer(mut subject: impl Subject) {
    let store = subject.store();
    let mut quiet = thread(&store, "quiet").await;
    quiet
        .commit_all([
            start("x", Trigger::New(item("i"))),
            complete_step(None),
            end(),
        ])
        .await;
    let mut one = thread(&store, "one").await;
    let [started, answered, left, ended] = waits();
    one.commit_all([started, answered, left]).await;
    assert_eq!(listed(&store).await, []);
    one.commit(ended).await;
    assert_eq!(listed(&store).await, [calls("one")]);
    let row = store.row(&one.thread).await.unwrap();
    let found = all(&store).await.remove(0);
    assert_eq!(found.calls_since, row.thread.updated_at);
    assert_eq!(found.row, row);
    drop(store);
    subject.reopen().await;
    let store = subject.store();
    assert_eq!(listed(&store).await, [calls("one")]);
    one.store = store.clone();
    one.commit(start("two", Trigger::New(answer("yes")))).await;
    assert_eq!(listed(&store).await, []);
    one.commit_all([leave_open(), end()]).await;
    assert_eq!(listed(&store).await, [calls("one")]);
    one.commit(keep("aside")).await;
    assert_eq!(listed(&store).await, []);
}

/// A message that may be a request counts until it is settled; a later one counts on.
pub async fn a_message_that_may_ask_counts_until_it_is_settled(mut subject: impl Subject) {
    let store = subject.store();
    let mut one = thread(&store, "one").await;
    one.commit(keep("plain")).await;
    assert_eq!(listed(&store).await, []);
    one.commit(asks("first")).await;
    let first = one.tail;
    let number = all(&store).await[0].number;
    one.commit(asks("second")).await;
    assert_eq!(listed(&store).await, [requests("one")]);
    assert_eq!(all(&store).await[0].number, number);
    store.settle(&one.thread, first).await.unwrap();
    assert_eq!(listed(&store).await, [requests("one")]);
    store.settle(&one.thread, one.tail).await.unwrap();
    assert_eq!(listed(&store).await, []);
    store.settle(&"nobody".into(), Seq(1)).await.unwrap();

    one.commit(asks("third")).await;
    assert!(all(&store).await[0].number > number);
    one.commit_all(waits()).await;
    assert_eq!(listed(&store).await, [("one".to_owned(), true, true)]);
    store.settle(&one.thread, one.tail).await.unwrap();
    drop(store);
    subject.reopen().await;
    assert_eq!(listed(&subject.store()).await, [calls("one")]);
}

/// A text of an agent may be a request, too.
pub async fn a_part_of_an_agent_may_ask(subject: impl Subject) {
    let store = subject.store();
    let mut one = thread(&store, "one").await;
    let text = json!({"$schema": "s", "request_data": {"id": "d"}}).to_string();
    let respond = Command::Respond {
        parts: vec![json!({"type": "output_text", "text": text}).into()],
        response: json!({"model": "m"}).into(),
    };
    one.commit_all([start("x", Trigger::New(item("i"))), respond])
        .await;
    assert_eq!(listed(&store).await, [requests("one")]);
}

/// Waiting threads are listed by their oldest event, in pages, within a tenant and for some keys.
pub async fn waiting_threads_are_paged_oldest_first(subject: impl Subject) {
    let store = subject.store();
    for key in ["b", "a/1", "a/2", "c"] {
        thread(&store, key).await.commit_all(waits()).await;
    }
    let new = NewThread::new("theirs", Some("theirs"));
    let mut other = Author::new(&store, "globex", new).await;
    other.commit_all(waits()).await;
    let keys = |rows: &[WaitingRow]| -> Vec<String> {
        let keys = rows.iter().map(|it| it.row.thread.key.clone().unwrap());
        keys.collect()
    };
    let mut rows = WaitingRows {
        limit: 3,
        ..WaitingRows::default()
    };
    let first = page(&store, rows.clone()).await;
    assert_eq!(keys(&first), ["b", "a/1", "a/2"]);
    rows.after = first.last().map(|last| last.number);
    assert_eq!(keys(&page(&store, rows.clone()).await), ["c"]);
    rows.after = None;
    rows.key = Some(KeyPattern::Prefix("a/".to_owned()));
    assert_eq!(keys(&page(&store, rows.clone()).await), ["a/1", "a/2"]);
    rows.key = Some(KeyPattern::Key("c".to_owned()));
    assert_eq!(keys(&page(&store, rows).await), ["c"]);
}

/// Lists and searches can leave out the threads in which nothing waits, and previews have it.
pub async fn lists_can_have_waiting_threads_alone(subject: impl Subject) {
    let store = subject.store();
    let mut ids = Vec::new();
    for key in ["a", "b", "c"] {
        let mut author = thread(&store, key).await;
        author.commit(keep("words")).await;
        if key != "b" {
            author.commit_all(waits()).await;
        }
        ids.push(author.thread);
    }
    let filter = ThreadFilter {
        may_wait: true,
        ..ThreadFilter::default()
    };
    let keys = |rows: Vec<ThreadRow>| -> Vec<String> {
        let keys = rows.into_iter().map(|it| it.thread.key.unwrap());
        keys.collect()
    };
    let mut rows = ThreadRows {
        filter: filter.clone(),
        limit: 1,
        ..ThreadRows::default()
    };
    let first = store.list(&tenant(), rows.clone()).await.unwrap();
    rows.after = first.last().map(|row| row.change);
    assert_eq!(keys(first), ["c"]);
    let second = store.list(&tenant(), rows).await.unwrap();
    assert_eq!(keys(second), ["a"]);
    let search = Search {
        words: SearchWords::parse("héllo").unwrap(),
        filter,
        limit: 9,
        ..Search::default()
    };
    let found = store.search(&tenant(), search).await.unwrap();
    let found = found.threads.into_iter().map(|it| it.row);
    assert_eq!(keys(found.collect()), ["c", "a"]);
    let previews = store.previews(ids).await.unwrap();
    let may_wait: Vec<bool> = previews.iter().map(|it| it.may_wait).collect();
    assert_eq!(may_wait, [true, false, true]);
}

/// A fork waits for the calls that it inherits, and may inherit requests. A deleted thread waits no longer.
pub async fn a_fork_waits_with_what_it_inherits(subject: impl Subject) {
    let store = subject.store();
    let mut parent = thread(&store, "parent").await;
    parent.commit_all(waits()).await;
    let new = NewThread {
        fork: Some(fork("parent", parent.tail.0)),
        ..NewThread::new("fork", Some("fork"))
    };
    let mut forked = Author::new(&store, "acme", new).await;
    let both = ("fork".to_owned(), true, true);
    assert_eq!(listed(&store).await, [calls("parent"), both]);
    forked.commit(keep("aside")).await;
    assert_eq!(listed(&store).await, [calls("parent"), requests("fork")]);
    store.settle(&forked.thread, forked.tail).await.unwrap();
    assert_eq!(listed(&store).await, [calls("parent")]);
    for id in [&forked.thread, &parent.thread] {
        store.delete(&tenant(), id, None).await.unwrap();
    }
    assert_eq!(listed(&store).await, []);
}

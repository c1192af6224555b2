//! Making, finding, listing and deleting threads.

use super::Subject;
use super::script::{Author, enqueue, first, fork, item, keep, script, start, tenant};
use crate::{Append, Created, Filter, NodeId, Ownership, StoreError, TenantId, ThreadRows, Token};
use jiff::Timestamp;
use timeline::{Command, NewThread, Seq, ThreadId, ThreadStatus, Trigger};
use tokio::task::JoinSet;

const EPOCH: Timestamp = Timestamp::UNIX_EPOCH;

/// Of concurrent callers, one creates the thread and all get it.
pub async fn get_or_create_by_64_tasks_makes_one_thread(subject: impl Subject) {
    let store = subject.store();
    let mut tasks = JoinSet::new();
    for n in 0..64 {
        let store = store.clone();
        tasks.spawn(async move {
            let records = first(NewThread::new(format!("t{n}").as_str(), Some("k")), EPOCH);
            store
                .get_or_create(&tenant(), records, None, None)
                .await
                .unwrap()
        });
    }
    let answers = tasks.join_all().await;
    assert_eq!(answers.iter().filter(|answer| answer.is_new()).count(), 1);
    let found = store.find(&tenant(), "k").await.unwrap().thread.id;
    assert!(answers.iter().all(|answer| answer.thread == found));
    let page = ThreadRows {
        limit: 10,
        ..ThreadRows::default()
    };
    assert_eq!(store.list(&tenant(), page).await.unwrap().len(), 1);
}

/// The first records of the second caller are dropped.
pub async fn get_or_create_finds_the_thread_again(subject: impl Subject) {
    let store = subject.store();
    let author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    let again = store
        .get_or_create(
            &tenant(),
            first(NewThread::new("u", Some("k")), EPOCH),
            None,
            None,
        )
        .await
        .unwrap();
    assert_eq!(
        again,
        Created {
            thread: author.thread,
            epoch: None
        }
    );
    assert!(matches!(
        store.row(&"u".into()).await,
        Err(StoreError::NotFound)
    ));
}

/// A new thread has the epoch that its creator receives, and the token of its first request counts as used.
pub async fn a_new_thread_keeps_its_epoch_and_its_token(subject: impl Subject) {
    let store = subject.store();
    let token = Token {
        token: "once".into(),
        answer: "made".into(),
    };
    let records = first(NewThread::new("t", Some("k")), EPOCH);
    let tail = Seq(records.len() as u64);
    let tenant = tenant();
    let made = store.get_or_create(&tenant, records, Some(token.clone()), None);
    let made = made.await.unwrap();
    let answer = store.answer(&made.thread, "once").await.unwrap();
    assert_eq!(answer.as_deref(), Some("made"));
    let mut append = Append {
        thread: made.thread.clone(),
        epoch: made.epoch.unwrap(),
        tail,
        ownership: Ownership::Take(NodeId(1)),
        records: first(NewThread::new("t", Some("k")), EPOCH)[2..].to_vec(),
        token: Some(token),
        is_limited: true,
        unmoved: Vec::new(),
    };
    let repeated = store.append(append.clone()).await;
    assert!(matches!(repeated, Err(StoreError::Repeated { answer }) if answer == "made"));
    append.token = None;
    let next = store.append(append.clone()).await.unwrap();
    assert!(next.epoch > append.epoch);
    append.tail = next.tail;
    assert!(matches!(
        store.append(append).await,
        Err(StoreError::Fenced { .. })
    ));
}

/// A key belongs to its tenant.
pub async fn the_same_key_in_two_tenants_is_two_threads(subject: impl Subject) {
    let store = subject.store();
    for name in ["acme", "globex"] {
        Author::new(&store, name, NewThread::new(name, Some("k"))).await;
    }
    for name in ["acme", "globex"] {
        let row = store.find(&name.into(), "k").await.unwrap();
        assert_eq!((row.tenant, row.thread.id), (name.into(), name.into()));
    }
}

/// Only a key makes two requests mean one thread.
pub async fn threads_without_a_key_are_each_their_own(subject: impl Subject) {
    let store = subject.store();
    for id in ["t1", "t2"] {
        Author::new(&store, "acme", NewThread::new(id, None)).await;
    }
    let page = ThreadRows {
        limit: 10,
        ..ThreadRows::default()
    };
    assert_eq!(store.list(&tenant(), page).await.unwrap().len(), 2);
}

/// An id is used once, across all tenants.
pub async fn a_thread_id_that_is_taken_is_refused(subject: impl Subject) {
    let store = subject.store();
    Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    for name in ["acme", "globex"] {
        let records = first(NewThread::new("t", Some("other")), EPOCH);
        let refused = store.get_or_create(&name.into(), records, None, None).await;
        assert!(
            matches!(&refused, Err(StoreError::Duplicate(_))),
            "{refused:?}"
        );
        assert!(matches!(
            store.find(&name.into(), "other").await,
            Err(StoreError::NotFound)
        ));
    }
}

/// A tenant can't find, list or delete threads of another tenant.
pub async fn find_list_and_delete_never_cross_tenants(subject: impl Subject) {
    let store = subject.store();
    let author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    for other in ["globex", "acm", "acme2", ""] {
        let other = TenantId::from(other);
        assert!(matches!(
            store.find(&other, "k").await,
            Err(StoreError::NotFound)
        ));
        assert!(matches!(
            store.delete(&other, &author.thread, None).await,
            Err(StoreError::NotFound)
        ));
        let page = ThreadRows {
            limit: 10,
            ..ThreadRows::default()
        };
        assert_eq!(store.list(&other, page).await.unwrap(), []);
    }
    assert!(store.row(&author.thread).await.is_ok());
}

/// The most recently changed thread comes first.
pub async fn a_list_begins_with_the_last_change(subject: impl Subject) {
    let store = subject.store();
    let mut authors = Vec::new();
    for (id, second) in [("t1", 100), ("t2", 200), ("t3", 300)] {
        let at = Timestamp::from_second(second).unwrap();
        authors.push(Author::begin(&store, "acme", NewThread::new(id, Some(id)), at).await);
    }
    let listed = || async {
        let page = ThreadRows {
            limit: 10,
            ..ThreadRows::default()
        };
        let rows = store.list(&tenant(), page).await.unwrap();
        rows.into_iter()
            .map(|row| row.thread.id.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(listed().await, ["t3", "t2", "t1"]);
    let first = authors.first_mut().unwrap();
    first
        .commit_all((0..250).map(|n| keep(&format!("i{n}"))))
        .await;
    assert_eq!(listed().await, ["t1", "t3", "t2"]);
}

/// Consecutive pages return each thread once, even if many changed at one instant.
pub async fn a_list_is_read_in_pages(subject: impl Subject) {
    let store = subject.store();
    for n in 0..23 {
        let id = format!("t{n}");
        let at = Timestamp::from_second(n / 7).unwrap();
        Author::begin(&store, "acme", NewThread::new(id.as_str(), Some(&id)), at).await;
        Author::begin(
            &store,
            "globex",
            NewThread::new(format!("g{n}").as_str(), Some(&id)),
            at,
        )
        .await;
    }
    let whole = store
        .list(
            &tenant(),
            ThreadRows {
                limit: 100,
                ..ThreadRows::default()
            },
        )
        .await
        .unwrap();
    let mut paged = Vec::new();
    let mut after = None;
    loop {
        let page = ThreadRows {
            after,
            limit: 5,
            ..ThreadRows::default()
        };
        let rows = store.list(&tenant(), page).await.unwrap();
        let Some(last) = rows.last() else { break };
        after = Some(last.change);
        paged.extend(rows);
    }
    assert_eq!(paged.len(), 23);
    assert_eq!(paged, whole);
}

/// Also for instants far in the future or past, and for those beyond a store's resolution.
pub async fn a_list_is_in_the_order_of_changes_not_of_clocks(mut subject: impl Subject) {
    let store = subject.store();
    let mut authors = Vec::new();
    for (id, at) in [
        ("t1", Timestamp::MAX),
        ("t2", Timestamp::from_second(5_000_000_000).unwrap()),
        ("t3", Timestamp::from_second(100).unwrap()),
        ("t4", Timestamp::MIN),
    ] {
        authors.push(Author::begin(&store, "acme", NewThread::new(id, Some(id)), at).await);
    }
    let listed = async |store: std::sync::Arc<dyn crate::Store>, after| {
        let page = ThreadRows {
            after,
            limit: 10,
            ..ThreadRows::default()
        };
        let rows = store.list(&tenant(), page).await.unwrap();
        let rows = rows.into_iter();
        rows.map(|row| (row.thread.id.to_string(), row.change))
            .collect::<Vec<_>>()
    };
    let ids =
        |rows: &[(String, u64)]| -> Vec<String> { rows.iter().map(|(id, _)| id.clone()).collect() };
    let all = listed(store.clone(), None).await;
    assert_eq!(ids(&all), ["t4", "t3", "t2", "t1"]);
    let rest = listed(store.clone(), Some(all[1].1)).await;
    assert_eq!(ids(&rest), ["t2", "t1"]);
    authors[2].commit(keep("i")).await;
    drop(store);
    subject.reopen().await;
    let all = listed(subject.store(), None).await;
    assert_eq!(ids(&all), ["t3", "t4", "t2", "t1"]);
}

/// The prefix is plain text, not a pattern.
pub async fn a_list_can_be_narrowed_to_a_prefix_of_the_key(subject: impl Subject) {
    let store = subject.store();
    for key in [
        "app/a",
        "app/b",
        "app",
        "äpp/a",
        "äpp/b",
        "a%p",
        "a_p",
        "\u{10ffff}x",
    ] {
        Author::new(&store, "acme", NewThread::new(key, Some(key))).await;
    }
    Author::new(&store, "acme", NewThread::new("none", None)).await;
    let counts = [
        ("app/", 2),
        ("app", 3),
        ("äpp", 2),
        ("a", 5),
        ("a%", 1),
        ("a_", 1),
        ("b", 0),
        ("", 8),
        ("\u{10ffff}", 1),
    ];
    for (prefix, count) in counts {
        let page = ThreadRows {
            key: Some(crate::KeyPattern::Prefix(prefix.to_owned())),
            limit: 100,
            ..ThreadRows::default()
        };
        assert_eq!(
            store.list(&tenant(), page).await.unwrap().len(),
            count,
            "{prefix:?}"
        );
    }
}

/// Status, times, title, tail and size, without reading the log.
pub async fn a_row_has_the_status_of_its_thread(subject: impl Subject) {
    let store = subject.store();
    let thread = NewThread {
        title: Some("Weather".into()),
        metadata: Some(serde_json::json!({"team": 1.0}).into()),
        ..NewThread::new("t", Some("k"))
    };
    let mut author = Author::new(&store, "acme", thread).await;
    author.commit(start("x", Trigger::New(item("ask")))).await;

    let row = store.find(&tenant(), "k").await.unwrap();

    assert_eq!(store.row(&author.thread).await.unwrap(), row);
    let mut thread = author.state.thread().unwrap().clone();
    assert_eq!(thread.status, ThreadStatus::Streaming);
    thread.updated_at = Some(Timestamp::from_second(1).unwrap());
    assert_eq!(row.thread, thread);
    assert_eq!(row.tail, author.tail);
    let log = store
        .read(&author.thread, Seq::ZERO, 100, Filter::All)
        .await
        .unwrap();
    assert_eq!(
        row.bytes,
        log.iter()
            .map(|logged| logged.text.len() as u64)
            .sum::<u64>()
    );
}

/// A thread with forks can't be deleted; without them it can.
pub async fn a_fork_keeps_its_parent(subject: impl Subject) {
    let store = subject.store();
    Author::new(&store, "acme", NewThread::new("parent", Some("p"))).await;
    let forked = NewThread {
        fork: Some(fork("parent", 2)),
        ..NewThread::new("fork", Some("f"))
    };
    Author::new(&store, "acme", forked).await;
    assert_eq!(
        store.find(&tenant(), "f").await.unwrap().thread.fork,
        Some(fork("parent", 2))
    );

    let refused = store.delete(&tenant(), &"parent".into(), None).await;

    assert!(
        matches!(refused, Err(StoreError::HasForks { .. })),
        "{refused:?}"
    );
    assert!(store.row(&"parent".into()).await.is_ok());
    store.delete(&tenant(), &"fork".into(), None).await.unwrap();
    store
        .delete(&tenant(), &"parent".into(), None)
        .await
        .unwrap();
}

/// A fork shows its parent's log, so the parent must be the tenant's own.
pub async fn a_fork_of_another_tenants_thread_is_refused(subject: impl Subject) {
    let store = subject.store();
    Author::new(&store, "globex", NewThread::new("parent", Some("p"))).await;
    for parent in ["parent", "nobody"] {
        let forked = NewThread {
            fork: Some(fork(parent, 2)),
            ..NewThread::new("fork", Some("f"))
        };
        let refused = store
            .get_or_create(&tenant(), first(forked, EPOCH), None, None)
            .await;
        assert!(matches!(refused, Err(StoreError::NotFound)), "{refused:?}");
    }
}

/// The list has a thread's own forks, without their forks and without deleted ones.
pub async fn forks_are_listed_in_the_order_they_were_made(subject: impl Subject) {
    let store = subject.store();
    Author::new(&store, "acme", NewThread::new("parent", Some("p"))).await;
    let forked = [
        ("z", "parent"),
        ("a", "parent"),
        ("deep", "a"),
        ("m", "parent"),
    ];
    for (id, of) in forked {
        let new = NewThread {
            fork: Some(fork(of, 2)),
            ..NewThread::new(id, None)
        };
        Author::new(&store, "acme", new).await;
    }
    let listed = async |of: &str| {
        let rows = store.forks(&of.into()).await.unwrap();
        let ids = rows.into_iter().map(|row| row.thread.id.to_string());
        ids.collect::<Vec<_>>()
    };
    assert_eq!(listed("parent").await, ["z", "a", "m"]);
    assert_eq!(listed("a").await, ["deep"]);
    assert_eq!(listed("deep").await, Vec::<String>::new());
    store.delete(&tenant(), &"z".into(), None).await.unwrap();
    assert_eq!(listed("parent").await, ["a", "m"]);
    let none = store.forks(&"nobody".into()).await;
    assert!(matches!(none, Err(StoreError::NotFound)), "{none:?}");
}

/// A deleted thread is not found, and its key, id and tokens can be used again.
pub async fn delete_removes_everything(subject: impl Subject) {
    let store = subject.store();
    let new = || NewThread::new("t", Some("k"));
    let mut author = Author::new(&store, "acme", new()).await;
    author.commit_all(script().into_iter().take(12)).await;
    let mut other = Author::new(&store, "acme", NewThread::new("other", Some("o"))).await;
    other.commit_all(script()).await;

    store.delete(&tenant(), &author.thread, None).await.unwrap();

    assert!(matches!(
        store.find(&tenant(), "k").await,
        Err(StoreError::NotFound)
    ));
    assert!(matches!(
        store.read(&author.thread, Seq::ZERO, 9, Filter::All).await,
        Err(StoreError::NotFound)
    ));
    assert!(matches!(
        store.delete(&tenant(), &author.thread, None).await,
        Err(StoreError::NotFound)
    ));
    let append = author.append_of(enqueue("late"));
    assert!(matches!(
        store.append(append).await,
        Err(StoreError::NotFound)
    ));
    assert_eq!(store.unfinished().await.unwrap(), []);
    assert_eq!(
        store
            .list(
                &tenant(),
                ThreadRows {
                    limit: 9,
                    ..ThreadRows::default()
                }
            )
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(store.head(&other.thread).await.unwrap().state, other.state);
    let mut again = Author::new(&store, "acme", new()).await;
    again.commit_all(script()).await;
}

/// A deletion that names another end of the log than the store's deletes nothing.
pub async fn a_deletion_at_a_stale_tail_is_refused(subject: impl Subject) {
    let store = subject.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    let before = author.tail;
    author.commit(keep("i1")).await;
    let row = store.row(&author.thread).await.unwrap();
    let refused = store.delete(&tenant(), &author.thread, Some(before)).await;
    assert!(
        matches!(refused, Err(StoreError::Conflict { .. })),
        "{refused:?}"
    );
    assert_eq!(store.row(&author.thread).await.unwrap(), row);
    store
        .delete(&tenant(), &author.thread, Some(author.tail))
        .await
        .unwrap();
    assert!(matches!(
        store.row(&author.thread).await,
        Err(StoreError::NotFound)
    ));
}

/// After closing, every call fails with `Closed`.
pub async fn a_closed_store_answers_closed(subject: impl Subject) {
    let store = subject.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    let append = author.append_of(Command::Record { item: item("i1") });
    let id: ThreadId = "t".into();

    store.close().await.unwrap();

    let records = first(NewThread::new("u", Some("k")), EPOCH);
    assert!(matches!(
        store.append(append).await,
        Err(StoreError::Closed)
    ));
    assert!(matches!(
        store.get_or_create(&tenant(), records, None, None).await,
        Err(StoreError::Closed)
    ));
    assert!(matches!(
        store.find(&tenant(), "k").await,
        Err(StoreError::Closed)
    ));
    assert!(matches!(store.row(&id).await, Err(StoreError::Closed)));
    assert!(matches!(
        store.list(&tenant(), ThreadRows::default()).await,
        Err(StoreError::Closed)
    ));
    assert!(matches!(store.forks(&id).await, Err(StoreError::Closed)));
    assert!(matches!(store.head(&id).await, Err(StoreError::Closed)));
    assert!(matches!(
        store.delete(&tenant(), &id, None).await,
        Err(StoreError::Closed)
    ));
    assert!(matches!(
        store.read(&id, Seq::ZERO, 1, Filter::All).await,
        Err(StoreError::Closed)
    ));
    assert!(matches!(store.unfinished().await, Err(StoreError::Closed)));
}

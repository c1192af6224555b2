//! Appending: conditional, atomic, once.

use super::Subject;
use super::script::{Author, enqueue, item, keep, tenant};
use crate::{Append, Appended, Epoch, Filter, NodeId, StoreError, Token};
use jiff::Timestamp;
use serde_json::json;
use timeline::{Command, Event, NewThread, Seq, ThreadId};
use tokio::task::JoinSet;

/// If one record is refused, none is appended.
pub async fn append_is_all_or_nothing(subject: impl Subject) {
    let store = subject.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    author.commit(keep("i1")).await;
    let before = store.row(&author.thread).await.unwrap();

    let mut append = author.append_of(enqueue("i2"));
    append.records.extend(author.append_of(keep("i1")).records);
    append.token = Some(Token {
        token: "once".into(),
        answer: "{}".into(),
    });
    let refused = author.append(append).await;

    assert!(
        matches!(refused, Err(StoreError::Duplicate(_))),
        "{refused:?}"
    );
    assert_eq!(store.row(&author.thread).await.unwrap(), before);
    assert_eq!(store.unfinished().await.unwrap(), []);
    author.commit(keep("i2")).await;
}

/// An append with another tail than the log's is refused.
pub async fn append_at_a_stale_tail_is_refused(subject: impl Subject) {
    let store = subject.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    let stale = author.append_of(keep("i1"));
    author.commit(keep("i2")).await;

    let refused = store.append(stale).await;

    assert!(
        matches!(
            refused,
            Err(StoreError::Conflict {
                expected: Seq(2),
                found: Seq(3),
                ..
            })
        ),
        "{refused:?}"
    );
    assert_eq!(
        store
            .read(&author.thread, Seq::ZERO, 9, Filter::All)
            .await
            .unwrap()
            .len(),
        3
    );
}

/// An append at another epoch is refused.
pub async fn an_append_at_another_epoch_is_refused(subject: impl Subject) {
    let store = subject.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    let own = author.epoch.0;
    for epoch in [0, own - 1, own + 1] {
        author.epoch = Epoch(epoch);
        let append = author.append_of(keep("i1"));
        let refused = store.append(append).await;
        assert!(
            matches!(refused, Err(StoreError::Fenced { .. })),
            "{refused:?}"
        );
    }
}

/// An append that names another thread is refused once that thread has grown, and writes nothing.
pub async fn an_append_lands_only_while_other_threads_are_unmoved(subject: impl Subject) {
    let store = subject.store();
    let mut parent = Author::new(&store, "acme", NewThread::new("p", Some("p"))).await;
    let mut child = Author::new(&store, "acme", NewThread::new("c", Some("c"))).await;
    let before = child.tail;
    let guarded = |parent: &mut Author, name: &str, seq| Append {
        unmoved: vec![(ThreadId::from("c"), seq)],
        token: Some(Token {
            token: name.into(),
            answer: "{}".into(),
        }),
        ..parent.append_of(keep(name))
    };
    let append = guarded(&mut parent, "i1", before);
    parent.append(append).await.unwrap();

    child.commit(keep("i1")).await;
    let row = store.row(&parent.thread).await.unwrap();
    for seq in [before, child.tail.next()] {
        let append = guarded(&mut parent, "i2", seq);
        let refused = store.append(append).await;
        assert!(
            matches!(&refused, Err(StoreError::Moved { thread }) if *thread == child.thread),
            "{refused:?}"
        );
    }
    assert_eq!(store.row(&parent.thread).await.unwrap(), row);

    let append = guarded(&mut parent, "i2", child.tail);
    parent.append(append).await.unwrap();
}

/// A thread that is deleted is not where its log was read.
pub async fn a_guard_of_a_deleted_thread_refuses_the_append(subject: impl Subject) {
    let store = subject.store();
    let mut parent = Author::new(&store, "acme", NewThread::new("p", Some("p"))).await;
    let child = Author::new(&store, "acme", NewThread::new("c", Some("c"))).await;
    let append = Append {
        unmoved: vec![(child.thread.clone(), child.tail)],
        ..parent.append_of(keep("i1"))
    };
    store.delete(&tenant(), &child.thread, None).await.unwrap();
    let refused = store.append(append.clone()).await;
    assert!(
        matches!(refused, Err(StoreError::Moved { .. })),
        "{refused:?}"
    );
    let append = Append {
        unmoved: Vec::new(),
        ..append
    };
    parent.append(append).await.unwrap();
}

/// Two writers that have read each other's threads do not both append.
pub async fn of_two_appends_that_guard_each_other_one_lands(subject: impl Subject) {
    let store = subject.store();
    for n in 0..16 {
        let (a, b) = (format!("a{n}"), format!("b{n}"));
        let mut one = Author::new(&store, "acme", NewThread::new(&*a, Some(&a))).await;
        let mut two = Author::new(&store, "acme", NewThread::new(&*b, Some(&b))).await;
        let first = Append {
            unmoved: vec![(two.thread.clone(), two.tail)],
            ..one.append_of(keep("i"))
        };
        let second = Append {
            unmoved: vec![(one.thread.clone(), one.tail)],
            ..two.append_of(keep("i"))
        };
        let mut both = JoinSet::new();
        for append in [first, second] {
            let store = store.clone();
            both.spawn(async move { store.append(append).await });
        }
        let done = both.join_all().await;
        let n_landed = done.iter().filter(|it| it.is_ok()).count();
        let is_refused =
            |it: &Result<Appended, StoreError>| matches!(it, Err(StoreError::Moved { .. }));
        assert_eq!(n_landed, 1, "{done:?}");
        assert!(done.iter().any(is_refused), "{done:?}");
    }
}

/// A node whose run was taken is refused at its next append, which writes nothing.
pub async fn a_fenced_writer_is_refused_and_has_written_nothing(subject: impl Subject) {
    let store = subject.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    author.take(NodeId(1), keep("i1")).await;
    let mut newer = Author::of(&store, author.thread.clone(), Timestamp::UNIX_EPOCH).await;
    newer.take(NodeId(2), keep("i3")).await;

    let mut append = author.append_of(enqueue("i2"));
    append.token = Some(Token {
        token: "once".into(),
        answer: "{}".into(),
    });
    let refused = author.append(append).await;

    assert!(
        matches!(refused, Err(StoreError::Fenced { .. })),
        "{refused:?}"
    );
    let row = store.row(&author.thread).await.unwrap();
    assert_eq!(row.tail, newer.tail);
    assert_eq!(store.unfinished().await.unwrap(), []);
    newer.commit(keep("i2")).await;
}

/// A second item with the same id is refused, and that append writes nothing.
pub async fn an_item_id_that_is_taken_is_refused(subject: impl Subject) {
    let store = subject.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    author.commit(keep("i1")).await;

    let append = author.append_of(keep("i1"));
    let refused = author.append(append).await;

    assert!(
        matches!(&refused, Err(StoreError::Duplicate(id)) if id == "i1"),
        "{refused:?}"
    );
    let found = store
        .read(&author.thread, Seq::ZERO, 9, Filter::All)
        .await
        .unwrap();
    assert_eq!(found.len(), 3);
}

/// A repeated request gets the first answer, wherever the tail is.
pub async fn a_repeated_token_gets_the_first_answer_and_appends_nothing(subject: impl Subject) {
    let store = subject.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    let mut append = author.append_of(keep("i1"));
    append.token = Some(Token {
        token: "once".into(),
        answer: "{\"n\":1}".into(),
    });
    author.append(append.clone()).await.unwrap();
    author.commit(keep("i2")).await;
    let before = author.epoch;
    author.take(NodeId(1), keep("i3")).await;

    for epoch in [before, author.epoch] {
        let answer = "another".to_owned();
        let token = Some(Token {
            token: "once".into(),
            answer,
        });
        let again = Append {
            epoch,
            token,
            ..append.clone()
        };
        let repeated = store.append(again).await;
        assert!(
            matches!(&repeated, Err(StoreError::Repeated { answer }) if answer == "{\"n\":1}"),
            "{repeated:?}"
        );
    }
    assert_eq!(store.row(&author.thread).await.unwrap().tail, author.tail);
}

/// Two threads may use one token independently.
pub async fn a_token_counts_for_its_thread_alone(subject: impl Subject) {
    let store = subject.store();
    for id in ["t1", "t2"] {
        let mut author = Author::new(&store, "acme", NewThread::new(id, Some(id))).await;
        let mut append = author.append_of(keep("i1"));
        append.token = Some(Token {
            token: "once".into(),
            answer: id.into(),
        });
        assert_eq!(author.append(append).await.unwrap(), Seq(3));
    }
}

/// Only what was done is remembered.
pub async fn a_token_of_a_refused_append_can_be_used_again(subject: impl Subject) {
    let store = subject.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    let token = Some(Token {
        token: "once".into(),
        answer: "a".into(),
    });
    let mut append = author.append_of(keep("i1"));
    append.token = token.clone();
    append.tail = Seq(1);
    assert!(author.append(append).await.is_err());

    let mut append = author.append_of(keep("i1"));
    append.token = token;
    assert!(author.append(append).await.is_ok());
}

/// The log counts one, two, three.
pub async fn sequence_numbers_have_no_gaps(subject: impl Subject) {
    let store = subject.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    for command in super::script() {
        let append = author.append_of(command);
        let mut stale = append.clone();
        stale.tail = Seq(0);
        assert!(store.append(stale).await.is_err());
        author.append(append).await.unwrap();
    }
    let log = store
        .read(&author.thread, Seq::ZERO, 10_000, Filter::All)
        .await
        .unwrap();
    let numbers: Vec<u64> = log.iter().map(|logged| logged.record.seq.0).collect();
    assert_eq!(numbers, (1..=author.tail.0).collect::<Vec<_>>());
    assert_eq!(
        timeline::verify(log.iter().map(|logged| &logged.record)),
        Ok(())
    );
}

/// Writers of different threads don't disturb each other.
pub async fn concurrent_appends_to_32_threads_all_land(subject: impl Subject) {
    let store = subject.store();
    let mut writers = JoinSet::new();
    for n in 0..32 {
        let store = store.clone();
        writers.spawn(async move {
            let id = format!("t{n}");
            let mut author =
                Author::new(&store, "acme", NewThread::new(id.as_str(), Some(&id))).await;
            author
                .commit_all((0..20).map(|n| keep(&format!("i{n}"))))
                .await;
            author
        });
    }
    while let Some(author) = writers.join_next().await {
        let author = author.unwrap();
        assert_eq!(author.tail, Seq(22));
        let head = store.head(&author.thread).await.unwrap();
        assert_eq!(head.state, author.state);
        assert_eq!(head.tenant, tenant());
    }
}

/// Of concurrent appends at one tail, exactly one succeeds.
pub async fn of_32_appends_at_one_tail_one_lands(subject: impl Subject) {
    let store = subject.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    let mut writers = JoinSet::new();
    for n in 0..32 {
        let append = author.append_of(keep(&format!("i{n}")));
        let store = store.clone();
        writers.spawn(async move { store.append(append).await });
    }
    let mut landed = 0;
    while let Some(answer) = writers.join_next().await {
        match answer.unwrap() {
            Ok(appended) => {
                assert_eq!(appended.tail, Seq(3));
                landed += 1;
            }
            Err(refused) => assert!(
                matches!(refused, StoreError::Conflict { .. }),
                "{refused:?}"
            ),
        }
    }
    assert_eq!(landed, 1);
}

/// An append may be long.
pub async fn a_thousand_records_land_together(subject: impl Subject) {
    let store = subject.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    let content = || json!([{"type": "input_text", "text": "x".repeat(2000)}]).into();
    let events = (0..1000).flat_map(|n| {
        let mut item = item(&format!("i{n}"));
        item.content = Some(content());
        author
            .state
            .decide(Command::Record { item }, jiff::Timestamp::UNIX_EPOCH)
            .unwrap()
    });
    let append = author.append_with(events.collect::<Vec<Event>>());
    assert_eq!(author.append(append).await.unwrap(), Seq(1002));
    assert!(store.row(&author.thread).await.unwrap().bytes > 2_000_000);
}

/// Appending needs a thread.
pub async fn an_append_to_a_thread_that_is_not_there_is_refused(subject: impl Subject) {
    let store = subject.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    author.thread = "nobody".into();
    let append = author.append_of(keep("i1"));
    assert!(matches!(
        author.append(append).await,
        Err(StoreError::NotFound)
    ));
    assert!(matches!(
        store.head(&author.thread).await,
        Err(StoreError::NotFound)
    ));
    assert!(matches!(
        store.row(&author.thread).await,
        Err(StoreError::NotFound)
    ));
}

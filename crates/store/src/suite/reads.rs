//! Reading a log.

use super::Subject;
use super::script::{Author, emit, item, respond, script, start, tool_started};
use crate::{Filter, NewRecord, PAGE_BYTES, StoreError};
use jiff::Timestamp;
use timeline::{Command, Event, NewThread, Payload, Seq, Trigger};

/// Order of keys, spelling of numbers, nulls and instants are unchanged.
pub async fn the_text_of_a_record_is_stored_byte_for_byte(mut subject: impl Subject) {
    let mut author = Author::new(&subject.store(), "acme", NewThread::new("t", Some("k"))).await;
    let content =
        r#"[{"type":"app-x","z":1.0,"a":12345678901234567890123,"n":null,"e":1e2,"s":"\u0000é"}]"#;
    let mut kept = item("i1");
    kept.content = Some(Payload::from_text(content.to_owned()).unwrap());
    let at: Timestamp = "2026-11-20T21:09:31.123456789Z".parse().unwrap();
    let event = author
        .state
        .decide(Command::Record { item: kept }, at)
        .unwrap()
        .remove(0);
    let text: std::sync::Arc<str> = event.encode().unwrap().into();
    assert!(text.contains(content));
    let mut append = author.append_with(Vec::new());
    append.records = vec![NewRecord::new(at, event.clone()).unwrap()];
    author.append(append).await.unwrap();
    let thread = author.thread.clone();
    drop(author);

    subject.reopen().await;

    let read = subject
        .store()
        .read(&thread, Seq(2), 1, Filter::Facts)
        .await
        .unwrap();
    let logged = read.first().unwrap();
    assert_eq!(
        (&logged.text, &logged.record.event, logged.record.at),
        (&text, &event, at)
    );
    assert_eq!(logged.record.seq, Seq(3));
}

/// Consecutive pages return each record once.
pub async fn reading_pages_through_the_log(subject: impl Subject) {
    let store = subject.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    author.commit_all(script()).await;
    for filter in [Filter::All, Filter::Facts] {
        let whole = store
            .read(&author.thread, Seq::ZERO, 10_000, filter)
            .await
            .unwrap();
        let mut paged = Vec::new();
        let mut after = Seq::ZERO;
        loop {
            let page = store.read(&author.thread, after, 7, filter).await.unwrap();
            let Some(last) = page.last() else { break };
            after = last.record.seq;
            assert!(page.len() <= 7);
            paged.extend(page);
        }
        assert_eq!(paged, whole);
        assert_eq!(after, author.tail);
    }
}

/// A page ends before the record that would make it larger than its maximum; a larger record is a
/// page of its own.
pub async fn a_page_is_bounded_by_bytes(subject: impl Subject) {
    let store = subject.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    let mut sizes = vec![PAGE_BYTES / 3; 7];
    sizes.extend([2 * PAGE_BYTES, 10, 3 * PAGE_BYTES]);
    for (n, size) in sizes.iter().enumerate() {
        let mut large = item(&format!("i{n}"));
        let text = format!(r#"[{{"type":"app-x","s":"{}"}}]"#, "x".repeat(*size));
        large.content = Some(Payload::from_text(text).unwrap());
        author.commit(Command::Record { item: large }).await;
    }
    for filter in [Filter::All, Filter::Facts] {
        let mut after = Seq::ZERO;
        let mut n_records = 0;
        loop {
            let page = store.read(&author.thread, after, 1_000, filter).await;
            let page = page.unwrap();
            let Some(last) = page.last() else { break };
            let bytes: usize = page.iter().map(|logged| logged.text.len()).sum();
            assert!(page.len() == 1 || bytes <= PAGE_BYTES, "{bytes}");
            let first = page.first().unwrap();
            assert_eq!(first.record.seq, after.next());
            after = last.record.seq;
            n_records += page.len();
        }
        assert_eq!((after, n_records), (author.tail, 2 + sizes.len()));
    }
}

/// A transcript needs neither deltas nor signs of life.
pub async fn facts_leave_out_what_only_shows_and_keep_the_markers(subject: impl Subject) {
    let store = subject.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    author.commit(start("x", Trigger::New(item("ask")))).await;
    let from = author.tail;
    author
        .commit(emit(&[
            "text-delta",
            "data-thread-ping",
            "tool-output-available",
            "finish",
        ]))
        .await;
    author
        .commit_all([respond(), tool_started(), Command::ResetStep])
        .await;

    let names = |filter| {
        let (store, thread) = (store.clone(), author.thread.clone());
        async move {
            let read = store.read(&thread, from, 100, filter).await.unwrap();
            let name = |event: &Event| {
                if let Event::ChunkEmitted { chunk_type, .. } = event {
                    return chunk_type.clone();
                }
                event.event_type().name().to_owned()
            };
            read.iter()
                .map(|logged| name(&logged.record.event))
                .collect::<Vec<_>>()
        }
    };
    let facts = [
        "part.created",
        "part.created",
        "data-step-response",
        "data-tool-started",
        "data-step-reset",
    ];
    assert_eq!(names(Filter::Facts).await, facts);
    assert_eq!(names(Filter::All).await.len(), facts.len() + 4);
}

/// A read beyond the tail returns nothing; a read of a missing thread fails.
pub async fn reading_beyond_the_tail_gives_nothing(subject: impl Subject) {
    let store = subject.store();
    let author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    for after in [2, 3, u64::MAX] {
        assert_eq!(
            store
                .read(&author.thread, Seq(after), 10, Filter::All)
                .await
                .unwrap(),
            []
        );
    }
    assert_eq!(
        store
            .read(&author.thread, Seq::ZERO, 0, Filter::All)
            .await
            .unwrap(),
        []
    );
    let whole = store
        .read(&author.thread, Seq::ZERO, usize::MAX, Filter::All)
        .await
        .unwrap();
    assert_eq!(whole.len(), 2);
    let missing = store
        .read(&"nobody".into(), Seq::ZERO, 10, Filter::All)
        .await;
    assert!(matches!(missing, Err(StoreError::NotFound)), "{missing:?}");
}

//! Everything that a store serves.

use loomline_stores::SqliteStore;
use loomline_stores::Upkeep as _;
use std::collections::BTreeMap;
use std::fmt::Debug;
use store::objects::ObjectPage;
use store::search::{Search, SearchWords};
use store::{
    EventLog as _, Filter, Landmark, LogIndex as _, Side, Store, StoreError, TextIndex as _,
    ThreadFilter, ThreadRows, ThreadTable as _, WaitIndex as _, WaitingRows,
};
use timeline::{Removed, Seq, ThreadId};

/// The answer to each question.
pub(crate) type Reads = BTreeMap<String, Read>;

/// An answer, or an error.
pub(crate) type Read = Result<String, String>;

const THREADS: [&str; 7] = [
    "whole", "answers", "told", "waits", "forked", "runs", "deleted",
];

fn shown<T: Debug>(answer: Result<T, StoreError>) -> Read {
    let answer = answer.map(|it| format!("{it:?}"));
    answer.map_err(|error| format!("{error:?}"))
}

/// Asks everything.
#[allow(clippy::too_many_lines, reason = "a list of questions")]
pub(crate) async fn reads(store: &SqliteStore) -> Reads {
    let mut reads = Reads::new();
    let mut put = |name: String, answer| {
        reads.insert(name, answer);
    };
    for name in THREADS {
        let id: ThreadId = name.into();
        let mut after = Seq::ZERO;
        // A page goes on where the one before ends.
        for page in 0..12 {
            let read = store.read(&id, after, 20, Filter::All).await;
            if let Ok(read) = &read {
                after = read.last().map_or(Seq(u64::MAX >> 2), |it| it.record.seq);
            }
            put(format!("events {name} {page}"), shown(read));
        }
        let facts = store.read(&id, Seq::ZERO, 500, Filter::Facts).await;
        put(format!("facts {name}"), shown(facts));
        put(format!("head {name}"), shown(store.head(&id).await));
        put(format!("row {name}"), shown(store.row(&id).await));
        put(format!("forks {name}"), shown(store.forks(&id).await));
        put(
            format!("answer {name}"),
            shown(store.answer(&id, "once").await),
        );
        let found = store.find(&"acme".into(), name).await;
        put(format!("find {name}"), shown(found));
        let previews = store.previews(vec![id.clone()]).await;
        put(format!("previews {name}"), shown(previews));
        for side in [Side::Before(Seq(40)), Side::After(Seq(3))] {
            let triggers = store.nearest_triggers(&id, side, 9).await;
            put(format!("triggers {name} {side:?}"), shown(triggers));
            let run = store.nearest_run(&id, side).await;
            put(format!("run {name} {side:?}"), shown(run));
        }
        let (item, execution, step) = ("ask-2".into(), "one-execution".into(), "one-step-0".into());
        for landmark in [
            Landmark::Item(&item),
            Landmark::Execution(&execution),
            Landmark::Step(&step),
        ] {
            let name = format!("position {name} {landmark:?}");
            put(name, shown(store.position_of(&id, landmark).await));
        }
        let of = vec![
            Removed::Item("kept-one".into()),
            Removed::Step("two-step-0".into()),
        ];
        put(
            format!("removals {name}"),
            shown(store.removals(&id, of).await),
        );
    }
    for tenant in ["acme", "globex"] {
        let id = tenant.into();
        for (name, filter) in [
            ("all", ThreadFilter::default()),
            (
                "waiting",
                ThreadFilter {
                    may_wait: true,
                    ..ThreadFilter::default()
                },
            ),
            (
                "agent",
                ThreadFilter {
                    agent: Some("demo".into()),
                    ..ThreadFilter::default()
                },
            ),
        ] {
            let page = ThreadRows {
                limit: 50,
                filter,
                ..ThreadRows::default()
            };
            put(
                format!("list {tenant} {name}"),
                shown(store.list(&id, page).await),
            );
        }
        let page = WaitingRows {
            limit: 50,
            ..WaitingRows::default()
        };
        put(
            format!("waiting {tenant}"),
            shown(store.waiting(&id, page).await),
        );
        for words in [
            "kept",
            "question",
            "quito",
            "title",
            "beginning",
            "dry",
            "ask-1",
        ] {
            let search = Search {
                words: SearchWords::parse(words).unwrap(),
                limit: 50,
                ..Search::default()
            };
            let name = format!("search {tenant} {words}");
            put(name, shown(store.search(&id, search).await));
        }
        let objects = store.objects();
        for (kind, ids) in [
            ("file", &["file-0", "file-1", "file-2", "late"][..]),
            ("assistant", &["one"]),
            ("threads.notes:told", &["note"]),
        ] {
            let page = ObjectPage {
                limit: 50,
                ..ObjectPage::default()
            };
            let list = objects.list(&id, kind, page).await;
            put(format!("objects {tenant} {kind}"), shown(list));
            for object in ids {
                let name = format!("object {tenant} {kind} {object}");
                put(name, shown(objects.get(&id, kind, object).await));
                let name = format!("content {tenant} {kind} {object}");
                put(name, shown(objects.content(&id, kind, object).await));
            }
        }
        let table = store.checkpoints();
        put(
            format!("sessions {tenant}"),
            shown(table.sessions(&id).await),
        );
        for session in ["monday", "tuesday"] {
            let name = format!("checkpoint {tenant} {session}");
            put(name, shown(table.row(&id, session).await));
            let name = format!("state {tenant} {session}");
            put(name, shown(table.load(&id, session).await));
        }
    }
    put("unfinished".into(), shown(store.unfinished().await));
    put("usage".into(), shown(store.usage().await));
    put("poisoned".into(), shown(store.poisoned().await));
    put("stats".into(), shown(store.stats().await));
    reads
}

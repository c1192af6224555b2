//! Threads found by words, filters of lists, and previews.

use super::Subject;
use super::script::{Author, complete_step, end, fork, keep, respond, start, tenant};
use crate::search::{FoundThread, FoundThreads, Search, SearchWords};
use crate::{KeyPattern, Store, StoreError, ThreadFilter, ThreadRows};
use jiff::Timestamp;
use serde_json::json;
use std::sync::Arc;
use timeline::{Command, NewItem, NewThread, Removed, Role, Seq, ThreadStatus, Trigger};

type Shared = Arc<dyn Store>;

fn says(id: &str, text: &str) -> NewItem {
    NewItem::user(id, json!([{"type": "input_text", "text": text}]).into())
}

fn records(id: &str, text: &str) -> Command {
    Command::Record {
        item: says(id, text),
    }
}

fn answers(text: &str) -> Command {
    Command::Respond {
        parts: vec![
            json!({"type": "reasoning", "text": "hidden thoughts"}).into(),
            json!({"type": "output_text", "text": text}).into(),
            json!({"type": "tool-look", "toolCallId": "c1", "state": "input-available", "input": {"text": "argument"}}).into(),
        ],
        response: json!({"model": "m"}).into(),
    }
}

fn query(words: &str) -> Search {
    Search {
        words: SearchWords::parse(words).unwrap(),
        limit: 100,
        ..Search::default()
    }
}

async fn thread(store: &Shared, key: &str, text: &str) -> Author {
    let mut author = Author::new(store, "acme", NewThread::new(key, Some(key))).await;
    author.commit(records("first", text)).await;
    author
}

async fn found(store: &Shared, search: Search) -> FoundThreads {
    store.search(&tenant(), search).await.unwrap()
}

fn keys(found: &FoundThreads) -> Vec<&str> {
    let keys = found.threads.iter().map(|it| it.row.thread.key.as_deref());
    keys.map(Option::unwrap).collect()
}

async fn has(store: &Shared, words: &str, expected: &[&str]) {
    let found = found(store, query(words)).await;
    assert_eq!(keys(&found), expected, "{words:?}");
    assert_eq!(found.next, None);
}

/// Messages and texts of agents are found, the thread with the newest text first; nothing else is.
pub async fn texts_are_found_by_their_words(subject: impl Subject) {
    let store = subject.store();
    let mut one = thread(&store, "one", "Das Café in Łódź").await;
    thread(&store, "two", "the cafeteria, tomorrow").await;
    has(&store, "CAFE", &["two", "one"]).await;
    has(&store, "caf in das", &[]).await;
    has(&store, "das caf", &["one"]).await;
    has(&store, "tomorrow the", &["two"]).await;

    one.commit_all([
        start("x", Trigger::New(says("ask", "where?"))),
        answers("The café-bar is closed."),
    ])
    .await;

    has(&store, "cafe", &["one", "two"]).await;
    has(&store, "cafe-bar", &["one"]).await;
    has(&store, "bar-cafe", &[]).await;
    for nowhere in ["hidden", "argument", "look", "demo", "one", "first"] {
        has(&store, nowhere, &[]).await;
    }
    let found = found(&store, query("cafe")).await;
    let hits = &found.threads[0].hits;
    let roles: Vec<_> = hits.iter().map(|hit| hit.role).collect();
    assert_eq!(roles, [Some(Role::Assistant), Some(Role::User)]);
    assert_eq!(hits[1].seq, Some(Seq(3)));
    assert_eq!(hits[1].excerpt.text, "Das Café in Łódź");
    assert_eq!(hits[1].excerpt.utf16_matches(), [[4, 8]]);
    let row = store.find(&tenant(), "one").await.unwrap();
    assert_eq!(found.threads[0].row, row);
}

/// A search finds threads of its tenant only.
pub async fn a_search_never_crosses_tenants(subject: impl Subject) {
    let store = subject.store();
    thread(&store, "mine", "secret plans").await;
    let new = NewThread::new("theirs", Some("theirs"));
    let mut other = Author::new(&store, "globex", new).await;
    other.commit(records("i", "secret plans")).await;
    has(&store, "secret", &["mine"]).await;
    for nobody in ["acm", "", "tacme"] {
        let found = store.search(&nobody.into(), query("secret")).await.unwrap();
        assert_eq!(found, FoundThreads::default());
    }
}

/// Only threads with these keys are found, and all of them.
pub async fn a_search_can_be_restricted_to_keys(subject: impl Subject) {
    let store = subject.store();
    for key in ["app/a", "app/b", "app", "apq", "äpp/a", "a%p"] {
        thread(&store, key, "word").await;
    }
    let prefix = |text: &str| KeyPattern::Prefix(text.to_owned());
    let key = |text: &str| KeyPattern::Key(text.to_owned());
    for (patterns, expected) in [
        (vec![prefix("app/")], vec!["app/b", "app/a"]),
        (vec![prefix("app")], vec!["app", "app/b", "app/a"]),
        (vec![key("app")], vec!["app"]),
        (
            vec![key("app"), prefix("app"), prefix("ä")],
            vec!["äpp/a", "app", "app/b", "app/a"],
        ),
        (vec![prefix("a%")], vec!["a%p"]),
        (vec![key("nothing")], vec![]),
        (vec![], vec![]),
    ] {
        let search = Search {
            keys: Some(patterns),
            ..query("word")
        };
        assert_eq!(keys(&found(&store, search).await), expected);
    }
}

/// Texts that readers omit are not found: removed items and steps, and the parts of a reset step.
pub async fn removed_texts_are_not_found(subject: impl Subject) {
    let store = subject.store();
    let mut author = thread(&store, "t", "apple").await;
    author
        .commit_all([
            start("x", Trigger::New(says("ask", "banana"))),
            answers("cherry"),
            Command::ResetStep,
        ])
        .await;
    has(&store, "cherry", &[]).await;
    author
        .commit_all([answers("date"), complete_step(None), end()])
        .await;
    for word in ["apple", "banana", "date"] {
        has(&store, word, &["t"]).await;
    }
    for what in [
        Removed::Item("first".into()),
        Removed::Step("x-step-0".into()),
    ] {
        for _ in 0..2 {
            author.commit(Command::Remove { what: what.clone() }).await;
        }
    }
    for (word, expected) in [("apple", &[][..]), ("date", &[]), ("banana", &["t"])] {
        has(&store, word, expected).await;
    }
}

/// A part is found by its last content.
pub async fn a_part_is_found_by_its_last_content(subject: impl Subject) {
    let store = subject.store();
    let mut author = thread(&store, "t", "apple").await;
    let put = |text: &str| Command::PutPart {
        idx: 1,
        part: json!({"type": "output_text", "text": text}).into(),
    };
    let begin = start("x", Trigger::New(says("ask", "where?")));
    author
        .commit_all([begin, answers("banana"), put("cherry"), put("date")])
        .await;
    has(&store, "banana", &[]).await;
    has(&store, "cherry", &[]).await;
    has(&store, "date", &["t"]).await;
}

/// A deleted thread is not found; its words can be written again.
pub async fn a_deleted_thread_is_not_found(subject: impl Subject) {
    let store = subject.store();
    let author = thread(&store, "t", "apple").await;
    thread(&store, "other", "apple").await;
    store.delete(&tenant(), &author.thread, None).await.unwrap();
    has(&store, "apple", &["other"]).await;
    thread(&store, "t", "apple").await;
    has(&store, "apple", &["t", "other"]).await;
}

/// Threads whose title has the words come first. Only the current title counts.
pub async fn a_title_is_found_first(subject: impl Subject) {
    let store = subject.store();
    let new = NewThread {
        title: Some("Trip to Lima".into()),
        ..NewThread::new("titled", Some("titled"))
    };
    let mut titled = Author::new(&store, "acme", new).await;
    thread(&store, "newer", "lima").await;
    has(&store, "lima", &["titled", "newer"]).await;
    let all = found(&store, query("trip lima")).await;
    let hit = &all.threads[0].hits[0];
    assert_eq!((hit.seq, hit.role), (None, None));
    assert_eq!(hit.excerpt.utf16_matches(), [[0, 4], [8, 12]]);
    for (title, word) in [(Some("Quito"), "quito"), (None, "quito")] {
        let update = Command::Update {
            title: Some(title.map(str::to_owned)),
            metadata: None,
        };
        titled.commit(update).await;
        has(&store, "trip", &[]).await;
        let expected = title.map(|_| "titled");
        has(&store, word, expected.as_slice()).await;
    }
}

/// Pages have every thread once, however many hits it has.
pub async fn found_threads_are_paged_without_gap_or_repeat(subject: impl Subject) {
    let store = subject.store();
    let mut authors = Vec::new();
    for n in 0..7 {
        authors.push(thread(&store, &format!("t{n}"), "word").await);
    }
    for n in [3, 1, 3, 5, 3, 3] {
        let id = format!("{}", authors[n].tail);
        authors[n].commit(records(&id, "word again")).await;
    }
    let whole = found(&store, query("word")).await;
    assert_eq!(keys(&whole), ["t3", "t5", "t1", "t6", "t4", "t2", "t0"]);
    assert_eq!(whole.threads[0].hits.len(), 3);
    for limit in 1..=7 {
        let mut threads = Vec::new();
        let mut after = None;
        loop {
            let search = Search {
                after,
                limit,
                ..query("word")
            };
            let page = found(&store, search).await;
            assert!(page.threads.len() <= limit);
            threads.extend(page.threads);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let firsts = |threads: &[FoundThread]| -> Vec<_> {
            let firsts = threads.iter();
            firsts
                .map(|it| (it.row.clone(), it.hits[0].clone()))
                .collect()
        };
        assert_eq!(firsts(&threads), firsts(&whole.threads), "{limit}");
    }
}

/// Nothing that a user types is an error or has a special meaning.
pub async fn odd_queries_are_plain_words(subject: impl Subject) {
    let store = subject.store();
    thread(
        &store,
        "t",
        "cats AND dogs: 100% (near) Größe 🎉 c++ 東京へ",
    )
    .await;
    for nothing in ["", " ", "\"", "*", "🎉", "--", "^", "()", "\u{0}", "'"] {
        has(&store, nothing, &[]).await;
    }
    for plain in [
        "AND",
        "cats AND",
        "\"cats\"",
        "dogs*",
        "NEAR(",
        "near(cats",
        "text:dogs",
        "-cats",
        "cats\u{0}and",
        "100%",
        "GRÖSSE grosse größe",
        "c++",
        "東京",
        "京へ",
        "🎉 dogs",
        "^cats",
        "cats OR",
        "{text} : cats",
    ] {
        let found = found(&store, query(plain)).await;
        assert!(found.threads.len() <= 1, "{plain}");
    }
    for word in [
        "AND",
        "\"cats\"",
        "dogs*",
        "NEAR(",
        "-cats",
        "größ",
        "c++",
        "東京",
        "🎉 dogs",
    ] {
        has(&store, word, &["t"]).await;
    }
    for none in ["text:dogs", "cats OR", "scope", "京東"] {
        has(&store, none, &[]).await;
    }
}

/// Inherited texts belong to the parent.
pub async fn shared_history_is_found_in_its_own_thread(subject: impl Subject) {
    let store = subject.store();
    thread(&store, "parent", "apple").await;
    let new = NewThread {
        fork: Some(fork("parent", 3)),
        ..NewThread::new("fork", Some("fork"))
    };
    let mut forked = Author::new(&store, "acme", new).await;
    has(&store, "apple", &["parent"]).await;
    forked.commit(records("own", "apple pie")).await;
    has(&store, "apple", &["fork", "parent"]).await;
    let ids = vec!["fork".into(), "nobody".into(), "parent".into()];
    let previews = store.previews(ids).await.unwrap();
    let shown: Vec<_> = previews
        .iter()
        .map(|it| (it.forked_from.as_deref(), it.last_text.as_deref()))
        .collect();
    let expected = [
        (Some("parent"), Some("apple pie")),
        (None, None),
        (None, Some("apple")),
    ];
    assert_eq!(shown, expected);
}

/// Lists and searches can be filtered by status, agent and change.
pub async fn lists_and_searches_can_be_filtered(subject: impl Subject) {
    let store = subject.store();
    thread(&store, "idle", "word").await;
    let mut busy = thread(&store, "busy", "word").await;
    busy.commit(start("x", Trigger::New(says("ask", "word"))))
        .await;
    let mut closed = thread(&store, "closed", "word").await;
    closed
        .commit_all([
            start("x", Trigger::New(says("ask", "word"))),
            respond(),
            complete_step(None),
            end(),
            Command::Close,
        ])
        .await;
    let at = |second| Timestamp::from_second(second).unwrap();
    for (filter, expected) in [
        (ThreadFilter::default(), &["closed", "busy", "idle"][..]),
        (
            ThreadFilter {
                status: Some(ThreadStatus::Streaming),
                ..ThreadFilter::default()
            },
            &["busy"],
        ),
        (
            ThreadFilter {
                agent: Some("demo".into()),
                ..ThreadFilter::default()
            },
            &["closed", "busy"],
        ),
        (
            ThreadFilter {
                agent: Some("other".into()),
                ..ThreadFilter::default()
            },
            &[],
        ),
        (
            ThreadFilter {
                since: Some(at(3)),
                agent: Some("demo".into()),
                ..ThreadFilter::default()
            },
            &["closed"],
        ),
    ] {
        let search = Search {
            filter: filter.clone(),
            ..query("word")
        };
        assert_eq!(keys(&found(&store, search).await), expected, "{filter:?}");
        let page = ThreadRows {
            filter,
            limit: 9,
            ..ThreadRows::default()
        };
        let rows = store.list(&tenant(), page).await.unwrap();
        let listed: Vec<_> = rows.iter().map(|row| row.thread.key.as_deref()).collect();
        assert_eq!(
            listed,
            expected.iter().map(|key| Some(*key)).collect::<Vec<_>>()
        );
    }
}

/// A preview has the agent of the last run and the beginning of the newest text.
pub async fn a_preview_has_the_last_text(subject: impl Subject) {
    let store = subject.store();
    let mut author = thread(&store, "t", "apple").await;
    let id = author.thread.clone();
    let preview = async || store.previews(vec![id.clone()]).await.unwrap().remove(0);
    assert_eq!(preview().await.agent, None);
    let long = "ä".repeat(300);
    author
        .commit_all([
            start("x", Trigger::New(says("ask", "banana"))),
            answers(&long),
            complete_step(None),
            end(),
        ])
        .await;
    let last = preview().await;
    assert_eq!(last.agent.as_deref(), Some("demo"));
    assert_eq!(last.last_text.unwrap(), "ä".repeat(200));
    let what = Removed::Step("x-step-0".into());
    author.commit(Command::Remove { what }).await;
    assert_eq!(preview().await.last_text.unwrap(), "banana");
}

/// A reopened store finds what it found before; a closed one fails.
pub async fn a_reopened_store_finds_its_texts(mut subject: impl Subject) {
    let store = subject.store();
    let mut author = thread(&store, "t", "apple").await;
    author.commit(keep("more")).await;
    drop(author);
    drop(store);
    subject.reopen().await;
    let store = subject.store();
    has(&store, "apple", &["t"]).await;
    has(&store, "hello", &["t"]).await;
    store.close().await.unwrap();
    let refused = store.search(&tenant(), query("apple")).await;
    assert!(matches!(refused, Err(StoreError::Closed)), "{refused:?}");
    let refused = store.previews(vec!["t".into()]).await;
    assert!(matches!(refused, Err(StoreError::Closed)), "{refused:?}");
}

//! Findings, the rebuild, and sizes.

use super::{Content, Operated, acme};
use loomline_stores::{PoisonedRun, Remedy, Stats};
use store::search::{Search, SearchWords};
use store::suite::script;
use store::suite::script::start;
use store::{ThreadRows, WaitingRows};
use timeline::{Command, Ending, Interruption, Trigger};

/// The check finds nothing in a store with everything that there is.
pub(crate) async fn a_whole_store_has_no_findings(subject: impl Operated) {
    let content = Content::of(subject.durable());
    content.assert_sound().await;
    content.everything().await;
    content.assert_sound().await;
}

/// The check names the event where a log was changed.
pub(crate) async fn a_change_of_a_log_is_found_at_its_event(subject: impl Operated) {
    let content = Content::of(subject.durable());
    let mut author = content.thread("t").await;
    author.commit_all(script()).await;
    content.thread("u").await;
    let first = author.tail.0 - 1;
    let sql = format!(
        "UPDATE thread_blocks SET epoch = epoch + 1 WHERE first = (SELECT max(first) FROM thread_blocks WHERE first <= {first})"
    );
    assert_eq!(subject.execute(&sql).await, 1);
    let found = content.findings().await;
    let fault = &found[0];
    assert_eq!((found.len(), fault.thread.as_deref()), (1, Some("t")));
    assert_eq!(fault.remedy, Remedy::Restore);
    assert!(fault.event.is_some_and(|event| event <= first), "{fault:?}");
}

/// The check compares the end of a log with the thread's row.
pub(crate) async fn an_end_that_is_not_that_of_the_log_is_found(subject: impl Operated) {
    let content = Content::of(subject.durable());
    let mut author = content.thread("t").await;
    author.commit_all(script()).await;
    let sql = "DELETE FROM thread_blocks WHERE first = (SELECT max(first) FROM thread_blocks)";
    assert_eq!(subject.execute(sql).await, 1);
    let found = content.findings().await;
    assert!(
        found
            .iter()
            .any(|it| it.remedy == Remedy::Restore && it.what.contains("events, its row says")),
        "{found:?}"
    );
}

/// The check finds each changed row of a derived table, and the rebuild makes the tables anew.
pub(crate) async fn changed_rows_are_found_and_rebuilt(subject: impl Operated) {
    let content = Content::of(subject.durable());
    content.everything().await;
    for (sql, what) in [
        (
            "UPDATE thread_threads SET bytes = bytes + 0, updated_at = updated_at + 1 WHERE id = 'parent'",
            "last instant",
        ),
        (
            "UPDATE thread_contexts SET status = 2 - status WHERE thread_no = (SELECT no FROM thread_threads WHERE id = 'fork')",
            "thread_contexts",
        ),
        (
            "UPDATE thread_items SET content_offset = content_offset + 1 WHERE id = 'kept-0'",
            "thread_items",
        ),
        (
            "UPDATE thread_executions SET agent = 'other'",
            "thread_executions",
        ),
        (
            "UPDATE thread_steps SET input_tokens = input_tokens + 1",
            "thread_steps",
        ),
        ("DELETE FROM thread_parts WHERE idx = 1", "thread_parts"),
        ("DELETE FROM thread_removals", "thread_removals"),
        (
            "UPDATE thread_waits SET calls_at = calls_at + 1 WHERE calls IS NOT NULL",
            "waits",
        ),
    ] {
        assert!(subject.execute(sql).await > 0, "{sql}");
        let found = content.findings().await;
        let has = found.iter().any(|it| it.what.contains(what));
        assert!(
            has && found.iter().all(|it| it.remedy == Remedy::Rebuild),
            "{sql}: {found:?}"
        );
        content.durable.rebuild_tables().await.unwrap();
        content.assert_sound().await;
    }
}

/// The rebuild makes the tables that appends have made.
pub(crate) async fn rebuilding_changes_nothing(subject: impl Operated) {
    let content = Content::of(subject.durable());
    content.everything().await;
    let shown = async || {
        let page = ThreadRows {
            limit: 100,
            ..ThreadRows::default()
        };
        let rows = content.store.list(&acme(), page).await.unwrap();
        let mut heads = Vec::new();
        for row in &rows {
            heads.push(content.store.head(&row.thread.id).await.unwrap());
        }
        let page = WaitingRows {
            limit: 100,
            ..WaitingRows::default()
        };
        let waiting = content.store.waiting(&acme(), page).await.unwrap();
        let search = Search {
            words: SearchWords::parse("let me see").unwrap(),
            limit: 100,
            ..Search::default()
        };
        let found = content.store.search(&acme(), search).await.unwrap();
        format!("{rows:?} {heads:?} {waiting:?} {found:?}")
    };
    let (before, usage) = (shown().await, content.store.usage().await.unwrap());
    content.durable.rebuild_tables().await.unwrap();
    assert_eq!(shown().await, before);
    assert_eq!(content.store.usage().await.unwrap(), usage);
    content.assert_sound().await;
}

/// The check hashes the contents of objects.
pub(crate) async fn a_changed_content_of_an_object_is_found(subject: impl Operated) {
    let content = Content::of(subject.durable());
    content.file("acme", "f", b"whatever").await;
    let sql = "UPDATE tenant_contents SET content = CAST('whatEver' AS bytea)";
    let sqlite = "UPDATE tenant_contents SET content = CAST('whatEver' AS BLOB)";
    let sql = if content.store.is_shared() {
        sql
    } else {
        sqlite
    };
    assert_eq!(subject.execute(sql).await, 1);
    let found = content.findings().await;
    let fault = &found[0];
    assert_eq!((found.len(), fault.remedy), (1, Remedy::Delete));
    assert!(
        fault
            .object
            .as_deref()
            .is_some_and(|it| it.contains("acme")),
        "{fault:?}"
    );
}

/// The check compares the storage usage with what is stored.
pub(crate) async fn a_wrong_usage_is_found(subject: impl Operated) {
    let content = Content::of(subject.durable());
    content.thread("t").await;
    let sql = "UPDATE tenant_usage SET bytes = bytes + 1 WHERE threads > 0";
    assert_eq!(subject.execute(sql).await, 1);
    let found = content.findings().await;
    let has = found.iter().any(|it| it.what.contains("its usage says"));
    assert!(has, "{found:?}");
}

/// Executions that processes died with are listed, the newest first.
pub(crate) async fn poisoned_executions_are_listed(subject: impl Operated) {
    let content = Content::of(subject.durable());
    let mut expected = Vec::new();
    for name in ["one", "two"] {
        let mut author = content.thread(name).await;
        author
            .commit_all(script().into_iter().take(usize::from(name == "two")))
            .await;
        author
            .commit(start(name, Trigger::New(store::suite::script::item("ask"))))
            .await;
        let why = Interruption {
            reason: Interruption::POISONED.to_owned(),
            detail: None,
        };
        author
            .commit(Command::End {
                ending: Ending::Failed(why),
            })
            .await;
        expected.insert(
            0,
            PoisonedRun {
                tenant: "acme".to_owned(),
                key: name.to_owned(),
                execution_id: format!("{name}-execution"),
            },
        );
    }
    assert_eq!(content.durable.poisoned().await.unwrap(), expected);
}

/// The counts are those of the rows.
pub(crate) async fn a_store_counts_its_threads_and_events(subject: impl Operated) {
    let content = Content::of(subject.durable());
    content.everything().await;
    let mut expected = Stats {
        schema_version: content.durable.stats().await.unwrap().schema_version,
        ..Stats::default()
    };
    for tenant in ["acme", "other"] {
        let page = ThreadRows {
            limit: 100,
            ..ThreadRows::default()
        };
        for row in content.store.list(&tenant.into(), page).await.unwrap() {
            expected.n_threads += 1;
            expected.n_events += row.tail.0;
            expected.event_bytes += row.bytes;
        }
    }
    assert_eq!(content.durable.stats().await.unwrap(), expected);
    assert!(expected.schema_version > 0);
}

/// The space is that of what is stored.
pub(crate) async fn storage_shows_bytes_by_kind_tenant_and_thread(subject: impl Operated) {
    let content = Content::of(subject.durable());
    let small = content.secrets("small", 1).await;
    let large = content.secrets("large", 150).await;
    content.checkpoint("acme", "s", "{}".to_owned()).await;
    let storage = content.durable.storage().await.unwrap();
    let kinds: u64 = storage.kinds.iter().map(|(_, bytes)| bytes).sum();
    assert!(
        kinds > 0 && kinds <= storage.file + storage.log,
        "{storage:?}"
    );
    assert!(
        storage.kinds.iter().any(|(kind, _)| kind == "events"),
        "{storage:?}"
    );
    let tenant = &storage.tenants[0];
    assert_eq!((tenant.tenant.as_str(), tenant.threads), ("acme", 2));
    assert_eq!(tenant.events, small.tail.0 + large.tail.0);
    assert_eq!(tenant.checkpoints, 2);
    assert!(tenant.files > 150 * 16 && tenant.tokens > 20, "{tenant:?}");
    let threads = content.durable.largest_threads(&acme(), 10).await.unwrap();
    let ids: Vec<_> = threads.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids, ["large", "small"]);
    assert_eq!(
        threads.iter().map(|it| it.blocks).sum::<u64>(),
        tenant.blocks
    );
    let one = content.durable.thread_storage(&large.thread).await.unwrap();
    assert_eq!(
        (one.blocks, one.key.as_deref()),
        (threads[0].blocks, Some("large"))
    );
    let row = content.store.row(&large.thread).await.unwrap();
    assert_eq!(one.texts.values().sum::<u64>(), row.bytes);
    let texts = |kind: &str| one.texts.get(kind).copied().unwrap_or_default();
    assert!(texts("chunks") > 2000 && texts("parts") > 6000, "{one:?}");
}

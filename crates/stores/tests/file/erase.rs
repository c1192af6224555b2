//! What is deleted or erased is not in the file any more, and the rest is as before.

use super::{dump, open, place, written};
use jiff::Timestamp;
use loomline_stores::{
    BackupKind, Searched, SqliteOptions, SqliteStore, back_up, export_tenant, import_tenant,
    restore_backup,
};
use rusqlite::Connection;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::objects::NewObject;
use store::suite::script::end;
use store::suite::{Author, script};
use store::{
    Append, CheckpointRow, EventLog as _, Filter, LogIndex as _, Store as _, TenantId,
    ThreadTable as _, Token,
};
use timeline::{
    Command, Compaction, ERASED, Event, NewChunk, NewItem, NewThread, Payload, Record, Removed,
    Replaced, Seq, StepOutcome, SummaryAuthor, ThreadId, Transcript, Trigger,
};

fn acme() -> TenantId {
    "acme".into()
}

/// A secret of a thread and a kind of content. The full-text index has it as one word.
fn secret(thread: &str, kind: &str) -> String {
    format!("zq{kind}{thread}xw0123456789").replace('-', "")
}

/// The kinds of content of a thread.
const KINDS: [&str; 12] = [
    "message",
    "title",
    "metadata",
    "chunk",
    "reasoning",
    "text",
    "input",
    "output",
    "state",
    "token",
    "sidecar",
    "sidecarfile",
];

/// The kinds that are content of the removed message and the removed step.
const REMOVED: [&str; 6] = ["message", "chunk", "reasoning", "text", "input", "output"];

/// A text with a secret, as long as messages are.
fn text(secret: &str, n: usize) -> String {
    format!("{secret} {}", "some other words ".repeat(n % 160))
}

/// Writes a thread with secrets in each kind of content.
async fn write(store: &Arc<SqliteStore>, name: &str, n: usize) -> Author {
    let secret = |kind| secret(name, kind);
    let mut author = written(store, name, vec![]).await;
    let update = Command::Update {
        title: Some(Some(secret("title"))),
        metadata: Some(Some(json!({"note": secret("metadata")}).into())),
    };
    author.commit(update).await;
    let said = json!([{"type": "input_text", "text": text(&secret("message"), n)}]);
    let start = Command::Start {
        trigger: Trigger::New(NewItem::user(format!("{name}-item"), said.into())),
        run: Some(json!({"agent": "demo"}).into()),
        execution_id: format!("{name}-execution").into(),
        reaction_item_id: format!("{name}-reaction").into(),
        step_id: format!("{name}-step").into(),
        workflow_run_id: None,
    };
    let token = Token {
        token: secret("token"),
        answer: "{}".to_owned(),
    };
    let append = Append {
        token: Some(token),
        ..author.append_of(start)
    };
    author.append(append).await.unwrap();
    let chunk = NewChunk {
        chunk_type: "text-delta".to_owned(),
        data: Some(json!({"delta": text(&secret("chunk"), n)}).into()),
    };
    let call = |state: &str, output: Option<String>| -> Payload {
        let mut call = json!({
            "type": "tool-weather", "toolCallId": "c1", "state": state, "input": {"city": secret("input")},
        });
        if let Some(output) = output {
            call["output"] = json!({"found": output});
        }
        call.into()
    };
    let outcome = StepOutcome {
        agent_state: Some(json!({"note": secret("state")}).into()),
        ..StepOutcome::default()
    };
    let commands = [
        Command::Emit {
            chunks: vec![chunk],
        },
        Command::Respond {
            parts: vec![
                json!({"type": "reasoning", "text": text(&secret("reasoning"), n)}).into(),
                json!({"type": "output_text", "text": text(&secret("text"), n + 70)}).into(),
                call("input-available", None),
            ],
            response: json!({"model": "m", "usage": {"inputTokens": 3, "outputTokens": 4}}).into(),
        },
        Command::PutPart {
            idx: 2,
            part: call("output-available", Some(text(&secret("output"), n))),
        },
        Command::ImportStep {
            outcome,
            next: None,
        },
        end(),
    ];
    author.commit_all(commands).await;
    let object = NewObject {
        kind: "checkpoint".into(),
        id: format!("{name}-object"),
        created_at: Timestamp::UNIX_EPOCH,
        json: json!({"value": secret("sidecar")}).to_string(),
        content: Some(text(&secret("sidecarfile"), n).into_bytes()),
        thread: Some(author.thread.clone()),
        is_limited: false,
    };
    store.objects().put(&acme(), object).await.unwrap();
    author
}

/// Removes the message and the answer of a thread.
async fn remove(author: &mut Author) {
    let name = author.thread.to_string();
    for what in [
        Removed::Item(format!("{name}-item").as_str().into()),
        Removed::Step(format!("{name}-step").as_str().into()),
    ] {
        author.commit(Command::Remove { what }).await;
    }
}

/// The files of a store, one after the other.
fn bytes(path: &Path) -> Vec<u8> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let mut bytes = std::fs::read(path).unwrap();
    bytes.extend(std::fs::read(PathBuf::from(log)).unwrap_or_default());
    bytes
}

/// Those of these texts that are anywhere in the files of a store.
fn left<'a>(path: &Path, texts: impl IntoIterator<Item = &'a String>) -> Vec<&'a String> {
    let bytes = bytes(path);
    // All begin alike.
    let starts: Vec<_> = bytes
        .windows(2)
        .enumerate()
        .filter(|(_, window)| window == b"zq")
        .map(|(start, _)| start)
        .collect();
    let is_left = |text: &&String| {
        starts
            .iter()
            .any(|start| bytes[*start..].starts_with(text.as_bytes()))
    };
    texts.into_iter().filter(is_left).collect()
}

fn secrets(name: &str) -> Vec<String> {
    KINDS.iter().map(|kind| secret(name, kind)).collect()
}

async fn assert_sound(store: &SqliteStore) {
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

/// The transcript without what was removed.
async fn shown(store: &SqliteStore, thread: &ThreadId) -> Transcript {
    let mut transcript = Transcript::default();
    for logged in store
        .read(thread, Seq::ZERO, 10_000, Filter::Facts)
        .await
        .unwrap()
    {
        transcript.apply(&logged.record);
    }
    transcript.without_removed()
}

async fn records(store: &SqliteStore, thread: &ThreadId) -> Vec<Record> {
    let page = store.read(thread, Seq::ZERO, 10_000, Filter::All).await;
    page.unwrap()
        .into_iter()
        .map(|logged| logged.record)
        .collect()
}

#[tokio::test]
async fn deleted_threads_leave_no_secret_in_the_file_and_the_log() {
    let (_directory, path) = place();
    let store = open(&path);
    let name = |n: usize| format!("t{n:03}");
    for n in 0..400 {
        write(&store, &name(n), n).await;
    }
    let all =
        |ns: &[usize]| -> Vec<String> { ns.iter().flat_map(|n| secrets(&name(*n))).collect() };
    // In three turns, so that pages are merged in between.
    let turns: [Vec<usize>; 3] = [
        (0..400).filter(|n| n % 3 == 1).collect(),
        (0..400).filter(|n| n % 5 == 0 && n % 3 != 1).collect(),
        (100..140).filter(|n| n % 5 != 0 && n % 3 != 1).collect(),
    ];
    let gone: Vec<String> = turns.iter().flat_map(|turn| all(turn)).collect();
    assert_eq!(left(&path, &gone).len(), gone.len());
    let mut samples = loomline_stores::Samples::default();
    for n in turns.iter().flatten() {
        let thread = name(*n).as_str().into();
        samples.append(store.samples_of_thread(&thread).await.unwrap());
    }
    let before = std::fs::metadata(&path).unwrap().len();
    for turn in &turns {
        for n in turn {
            store
                .delete(&acme(), &name(*n).as_str().into())
                .await
                .unwrap();
        }
    }
    let reclaimed = store.reclaim().await.unwrap();
    assert!(reclaimed.is_log_empty, "{reclaimed:?}");
    let found = left(&path, &gone).len();
    let searched = store.search_for(Arc::new(samples.clone())).await.unwrap();
    println!(
        "{found} of {} secrets are left before the file is compacted: {searched:?}",
        gone.len()
    );
    assert!(found == 0 || searched.left > 0, "{searched:?}");

    store.compact().await.unwrap();

    assert_eq!(left(&path, &gone), Vec::<&String>::new());
    let searched = store.search_for(Arc::new(samples)).await.unwrap();
    assert_eq!(
        (searched.left, searched.has_read_files),
        (0, true),
        "{searched:?}"
    );
    assert!(searched.texts > 1000);
    let after = std::fs::metadata(&path).unwrap().len();
    assert!(after < before * 3 / 4, "{before} {after}");
    let stays: Vec<usize> = (0..400)
        .filter(|n| !turns.iter().flatten().any(|it| it == n))
        .collect();
    let stays = all(&stays);
    assert_eq!(left(&path, &stays).len(), stays.len());
    assert_sound(&store).await;
}

#[tokio::test]
async fn free_pages_are_returned_and_the_log_is_emptied() {
    let (_directory, path) = place();
    let store = open(&path);
    for n in 0..60 {
        write(&store, &format!("t{n}"), 150).await;
    }
    store.reclaim().await.unwrap();
    let before = std::fs::metadata(&path).unwrap().len();
    for n in 0..50 {
        store
            .delete(&acme(), &format!("t{n}").as_str().into())
            .await
            .unwrap();
    }

    let reclaimed = store.reclaim().await.unwrap();

    assert!(reclaimed.bytes > before / 2, "{reclaimed:?}");
    assert!(reclaimed.is_log_empty);
    let after = std::fs::metadata(&path).unwrap().len();
    assert!(before - after >= reclaimed.bytes, "{before} {after}");
    assert_eq!(store.activity().wal_bytes, 0);
    assert_sound(&store).await;
}

#[tokio::test]
async fn a_reader_only_delays_the_emptying_of_the_log() {
    let (_directory, path) = place();
    let store = open(&path);
    write(&store, "t", 1).await;
    let reader = Connection::open(&path).unwrap();
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM thread_threads")
        .unwrap();
    write(&store, "u", 1).await;
    assert!(!store.reclaim().await.unwrap().is_log_empty);
    assert!(store.has_deleted());
    drop(reader);
    assert!(store.reclaim().await.unwrap().is_log_empty);
    assert!(!store.has_deleted());
}

#[tokio::test]
async fn a_sweep_tries_only_once_to_empty_the_log() {
    let (_directory, path) = place();
    let store = open(&path);
    write(&store, "t", 1).await;
    let reader = Connection::open(&path).unwrap();
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM thread_threads")
        .unwrap();
    write(&store, "u", 1).await;
    let before = store.activity().n_requests;
    let reclaimed = store.reclaim_at_once().await.unwrap();
    assert!(!reclaimed.is_log_empty);
    // One finds no free page, or one more returns some first. One empties the log.
    let n_requests = 2 + u64::from(reclaimed.bytes > 0);
    assert_eq!(store.activity().n_requests - before, n_requests);
    assert!(store.has_deleted());
}

#[tokio::test]
async fn a_store_knows_that_deleted_content_may_be_in_its_log() {
    let (_directory, path) = place();
    let store = open(&path);
    // The process before may have died.
    assert!(store.has_deleted());
    let put = async |text: &str| {
        let file = NewObject {
            kind: "file".into(),
            id: "f".into(),
            created_at: Timestamp::UNIX_EPOCH,
            json: "{}".to_owned(),
            content: Some(text.repeat(500).into_bytes()),
            thread: None,
            is_limited: false,
        };
        store.objects().put(&acme(), file).await.unwrap();
    };
    put("first").await;
    let mut author = write(&store, "t", 1).await;
    remove(&mut author).await;
    store.reclaim().await.unwrap();
    assert!(!store.has_deleted());
    put("second").await;
    assert!(store.has_deleted());
    store.reclaim().await.unwrap();
    store.erase_removed(&author.thread).await.unwrap();
    assert!(store.has_deleted());
    store.reclaim().await.unwrap();
    store.erase_removed(&author.thread).await.unwrap();
    assert!(!store.has_deleted(), "nothing was left to erase");
    store.delete(&acme(), &author.thread).await.unwrap();
    assert!(store.has_deleted());
    store.reclaim().await.unwrap();
    let deleted = store.objects().delete(&acme(), "file", "f", None).await;
    assert!(deleted.unwrap());
    assert!(store.has_deleted());
}

#[tokio::test]
async fn a_file_without_a_map_of_pages_returns_space_once_compacted() {
    let (_directory, path) = place();
    let store = open(&path);
    for n in 0..20 {
        write(&store, &format!("t{n}"), 150).await;
    }
    assert!(store.returns_space().await.unwrap());
    store.close().await.unwrap();
    let older = Connection::open(&path).unwrap();
    older
        .execute_batch("PRAGMA auto_vacuum=NONE; VACUUM;")
        .unwrap();
    drop(older);
    let store = open(&path);
    assert!(!store.returns_space().await.unwrap());
    for n in 0..19 {
        let thread = format!("t{n}").as_str().into();
        store.delete(&acme(), &thread).await.unwrap();
    }
    let before = std::fs::metadata(&path).unwrap().len();
    assert_eq!(store.reclaim().await.unwrap().bytes, 0);
    store.compact().await.unwrap();
    assert!(store.returns_space().await.unwrap());
    let after = std::fs::metadata(&path).unwrap().len();
    assert!(after < before / 2, "{before} {after}");
    assert_sound(&store).await;
}

#[tokio::test]
async fn an_erased_block_keeps_its_digest_and_the_chain_holds() {
    let (_directory, path) = place();
    let store = open(&path);
    let mut author = write(&store, "t", 3).await;
    remove(&mut author).await;
    let stays = write(&store, "u", 3).await;
    let thread = author.thread.clone();
    let (before, row) = (
        store.chain(&thread).await.unwrap(),
        store.row(&thread).await.unwrap(),
    );
    let (logged, transcript) = (records(&store, &thread).await, shown(&store, &thread).await);
    assert!(before.blocks.iter().all(|block| block.erased.is_none()));
    let removed: Vec<_> = REMOVED.iter().map(|kind| secret("t", kind)).collect();
    let samples = store.samples_of_removed(&thread).await.unwrap();

    let erased = store.erase_removed(&thread).await.unwrap();

    assert_eq!((erased.entries, erased.shown_by_forks), (2, 0));
    assert!(erased.blocks >= 3, "{erased:?}");
    let after = store.chain(&thread).await.unwrap();
    assert!(after.holds);
    assert_eq!(after.end, before.end);
    let digests = |chain: &loomline_stores::Chain| -> Vec<_> {
        chain
            .blocks
            .iter()
            .map(|it| (it.first, it.digest, it.sum))
            .collect()
    };
    assert_eq!(digests(&after), digests(&before));
    let n_erased = after.blocks.iter().filter(|it| it.erased.is_some()).count();
    assert_eq!(n_erased as u64, erased.blocks);
    assert_eq!(shown(&store, &thread).await, transcript);
    let now = records(&store, &thread).await;
    let about = |records: &[Record]| -> Vec<_> {
        let about = |it: &Record| (it.seq, it.at, it.event.event_type());
        records.iter().map(about).collect()
    };
    assert_eq!(about(&now), about(&logged));
    let is_erased = |record: &Record| {
        matches!(&record.event, Event::ItemCreated { item }
        if item.content.as_ref().is_some_and(|it| it.text().contains(ERASED)))
    };
    assert!(now.iter().any(is_erased));
    let fewer = row.bytes - store.row(&thread).await.unwrap().bytes;
    let usage = store.usage().await.unwrap();
    assert!(fewer > 500, "{fewer}");
    assert_sound(&store).await;

    store.reclaim().await.unwrap();
    let searched = store.search_for(Arc::new(samples)).await.unwrap();
    assert_eq!(searched.left, 0, "{searched:?}");
    assert!(searched.texts >= 6);
    assert_eq!(left(&path, &removed), Vec::<&String>::new());
    let others = secrets("u");
    assert_eq!(left(&path, &others).len(), others.len());
    let tables = dump(&path);
    store.rebuild_tables().await.unwrap();
    assert_eq!(dump(&path), tables);
    assert_eq!(store.usage().await.unwrap(), usage);
    assert_eq!(store.erase_removed(&thread).await.unwrap().blocks, 0);
    store.close().await.unwrap();
    let store = open(&path);
    assert_sound(&store).await;
    assert_eq!(shown(&store, &thread).await, transcript);
    assert!(store.chain(&stays.thread).await.unwrap().holds);
}

#[tokio::test]
async fn a_thread_goes_on_after_its_removed_messages_were_erased() {
    let (_directory, path) = place();
    let store = open(&path);
    let mut author = write(&store, "t", 3).await;
    remove(&mut author).await;
    store.erase_removed(&author.thread).await.unwrap();
    author.commit_all(script()).await;
    assert!(store.chain(&author.thread).await.unwrap().holds);
    assert_sound(&store).await;
}

#[tokio::test]
async fn a_changed_byte_in_an_erased_block_is_found() {
    for column in ["body", "erased"] {
        let (_directory, path) = place();
        let store = open(&path);
        let mut author = write(&store, "t", 3).await;
        remove(&mut author).await;
        store.erase_removed(&author.thread).await.unwrap();
        store.close().await.unwrap();
        let conn = Connection::open(&path).unwrap();
        let sql = format!(
            "UPDATE thread_blocks SET {column} =
                 CAST(substr({column}, 1, 40) || x'7e' || substr({column}, 42) AS BLOB)
             WHERE erased IS NOT NULL"
        );
        assert!(conn.execute(&sql, []).unwrap() > 0);
        drop(conn);
        let store = open(&path);
        assert!(
            !store.chain(&author.thread).await.unwrap().holds,
            "{column}"
        );
        assert!(!store.check().await.unwrap().is_empty(), "{column}");
        let read = store
            .read(&author.thread, Seq::ZERO, 1000, Filter::All)
            .await;
        assert!(read.is_err(), "{column}");
    }
}

#[tokio::test]
async fn what_a_fork_still_shows_is_not_erased() {
    let (_directory, path) = place();
    let store = open(&path);
    let mut author = write(&store, "t", 3).await;
    let shared: Arc<dyn store::Store> = store.clone();
    let mut fork = NewThread::new("fork", Some("fork"));
    fork.fork = Some(timeline::Fork {
        thread_id: author.thread.clone(),
        seq: author.tail,
    });
    Author::new(&shared, "acme", fork).await;
    remove(&mut author).await;
    let erased = store.erase_removed(&author.thread).await.unwrap();
    assert_eq!(
        (erased.entries, erased.blocks, erased.shown_by_forks),
        (0, 0, 2)
    );
    store.delete(&acme(), &"fork".into()).await.unwrap();
    let erased = store.erase_removed(&author.thread).await.unwrap();
    assert_eq!((erased.entries, erased.shown_by_forks), (2, 0));
    let again = store.erase_removed(&author.thread).await.unwrap();
    assert_eq!((again.entries, again.blocks), (0, 0));
    assert_sound(&store).await;
}

#[tokio::test]
async fn an_entry_that_a_fork_removed_stays_in_its_parent() {
    let (_directory, path) = place();
    let store = open(&path);
    let author = write(&store, "t", 3).await;
    let shared: Arc<dyn store::Store> = store.clone();
    let mut fork = NewThread::new("fork", Some("fork"));
    fork.fork = Some(timeline::Fork {
        thread_id: author.thread.clone(),
        seq: author.tail,
    });
    let mut fork = Author::new(&shared, "acme", fork).await;
    let what = Removed::Item("t-item".into());
    fork.commit(Command::Remove { what }).await;
    assert_eq!(
        store.with_removed(&acme()).await.unwrap(),
        [fork.thread.clone()]
    );
    let erased = store.erase_removed(&fork.thread).await.unwrap();
    assert_eq!(
        (erased.entries, erased.blocks, erased.in_parents),
        (0, 0, 1)
    );
    assert_eq!(left(&path, [&secret("t", "message")]).len(), 1);
    assert_sound(&store).await;
}

/// A summary of the run of a thread.
fn compaction(author: &Author, id: &str) -> Compaction {
    let name = author.thread.to_string();
    let state: Payload = json!({"note": secret(&name, &format!("{id}state"))}).into();
    Compaction {
        id: id.into(),
        execution_id: format!("{name}-execution").into(),
        through: author.tail,
        summary: text(&secret(&name, &format!("{id}summary")), 9),
        author: SummaryAuthor::default(),
        replaced: Replaced::default(),
        agent_states: BTreeMap::from([("demo".to_owned(), state)]),
    }
}

#[tokio::test]
async fn the_summary_of_a_withdrawn_compaction_is_erased() {
    let (_directory, path) = place();
    let store = open(&path);
    let mut author = write(&store, "t", 3).await;
    for id in ["one", "two"] {
        let compaction = compaction(&author, id);
        author.commit(Command::Compact { compaction }).await;
    }
    assert_eq!(store.with_removed(&acme()).await.unwrap(), []);
    let made = store.compactions(&author.thread, Seq(u64::MAX), 9).await;
    let what = Removed::Compaction("two".into());
    author.commit(Command::Remove { what }).await;
    let thread = author.thread.clone();
    assert_eq!(
        store.with_removed(&acme()).await.unwrap(),
        std::slice::from_ref(&thread)
    );
    let before = store.chain(&thread).await.unwrap();
    let secrets = |id: &str| ["summary", "state"].map(|kind| secret("t", &format!("{id}{kind}")));
    let samples = store.samples_of_removed(&thread).await.unwrap();
    assert!(samples.texts() >= 2);

    let erased = store.erase_removed(&thread).await.unwrap();

    assert_eq!((erased.entries, erased.blocks), (1, 1));
    store.reclaim().await.unwrap();
    assert_eq!(store.search_for(Arc::new(samples)).await.unwrap().left, 0);
    assert_eq!(left(&path, &secrets("two")), Vec::<&String>::new());
    assert_eq!(left(&path, &secrets("one")).len(), 2);
    let after = store.chain(&thread).await.unwrap();
    assert_eq!((after.holds, after.end), (true, before.end));
    let found = store.compactions(&thread, Seq(u64::MAX), 9).await.unwrap();
    assert_eq!(found, made.unwrap());
    let read = store.read(&thread, Seq(found[0].0 - 1), 1, Filter::Facts);
    let Event::ChunkEmitted {
        data: Some(data), ..
    } = &read.await.unwrap()[0].record.event
    else {
        panic!("the compaction is no chunk");
    };
    let compaction: Compaction = data.read().unwrap();
    assert_eq!(
        (compaction.id.as_str(), &*compaction.summary),
        ("two", ERASED)
    );
    assert!(compaction.agent_states.is_empty());
    assert_sound(&store).await;
}

#[tokio::test]
async fn a_tenants_objects_and_checkpoints_are_erased_with_its_threads() {
    let (_directory, path) = place();
    let store = open(&path);
    write(&store, "t", 3).await;
    for tenant in ["acme", "globex"] {
        let file = NewObject {
            kind: "file".into(),
            id: "f".into(),
            created_at: Timestamp::UNIX_EPOCH,
            json: "{}".to_owned(),
            content: Some(secret(tenant, "file").repeat(500).into_bytes()),
            thread: None,
            is_limited: false,
        };
        store.objects().put(&tenant.into(), file).await.unwrap();
        let about = CheckpointRow {
            session_id: "s".into(),
            checkpoint_id: "c".into(),
            timestamp: Timestamp::UNIX_EPOCH,
            step: 1,
            agent_id: None,
        };
        let state = json!({"note": secret(tenant, "checkpoint")}).to_string();
        store
            .checkpoints()
            .save(&tenant.into(), about, state)
            .await
            .unwrap();
    }
    let of = |tenant| [secret(tenant, "file"), secret(tenant, "checkpoint")];
    let (gone, stays) = (of("acme"), of("globex"));
    let samples = store.samples_of_tenant(&acme()).await.unwrap();
    assert_eq!(left(&path, &gone).len(), 2);
    store.delete(&acme(), &"t".into()).await.unwrap();
    let erased = store.erase_tenant(&acme()).await.unwrap();
    assert_eq!((erased.objects, erased.checkpoints), (1, 1));
    store.reclaim().await.unwrap();
    assert_eq!(left(&path, &gone), Vec::<&String>::new());
    assert_eq!(left(&path, &stays).len(), 2);
    let searched = store.search_for(Arc::new(samples)).await.unwrap();
    assert_eq!(searched.left, 0, "{searched:?}");
    let usage = store.usage().await.unwrap();
    let tenants: Vec<_> = usage.iter().map(|(tenant, _)| tenant.as_str()).collect();
    assert_eq!(tenants, ["globex"]);
    assert_sound(&store).await;
}

#[tokio::test]
async fn content_that_stays_elsewhere_is_reported_as_shared() {
    let (_directory, path) = place();
    let store = open(&path);
    let mut author = write(&store, "t", 3).await;
    // The full-text index has the names in small letters only, the threads in their spelling only.
    let said = format!("HttpServletRequestWrapper {}", secret("t", "message"));
    let said = json!([{"type": "input_text", "text": said}]);
    let item = NewItem::user("name", said.clone().into());
    author.commit(Command::Record { item }).await;
    let mut other = written(&store, "quotes", vec![]).await;
    let item = NewItem::user("quote", said.into());
    other.commit(Command::Record { item }).await;
    remove(&mut author).await;
    let what = Removed::Item("name".into());
    author.commit(Command::Remove { what }).await;
    let samples = store.samples_of_removed(&author.thread).await.unwrap();
    store.erase_removed(&author.thread).await.unwrap();
    store.reclaim().await.unwrap();
    let Searched {
        left,
        shared,
        shared_in,
        ..
    } = store.search_for(Arc::new(samples)).await.unwrap();
    assert_eq!(left, 0);
    assert!(shared > 0);
    let quoted = "thread_blocks.body of thread quotes".to_owned();
    assert!(shared_in.contains(&quoted), "{shared_in:?}");
}

#[tokio::test]
async fn bytes_that_are_left_in_the_file_are_found() {
    let (_directory, path) = place();
    let store = open(&path);
    let author = write(&store, "t", 3).await;
    let samples = store.samples_of_thread(&author.thread).await.unwrap();
    store.delete(&acme(), &author.thread).await.unwrap();
    // Not yet emptied: the log has everything.
    let searched = store.search_for(Arc::new(samples.clone())).await.unwrap();
    assert!(searched.left > 10, "{searched:?}");
    assert!(searched.left_at[0].contains("-wal, byte "), "{searched:?}");
    store.reclaim().await.unwrap();
    assert_eq!(store.search_for(Arc::new(samples)).await.unwrap().left, 0);
}

#[tokio::test]
async fn storage_shows_bytes_by_kind_tenant_and_thread() {
    let (_directory, path) = place();
    let store = open(&path);
    let small = write(&store, "small", 1).await;
    let large = write(&store, "large", 150).await;
    store.reclaim().await.unwrap();
    let storage = store.storage().await.unwrap();
    let pages: u64 = storage.kinds.iter().map(|(_, bytes)| bytes).sum();
    assert!(
        pages <= storage.file && storage.file - pages <= 3 * 4096,
        "{storage:?}"
    );
    assert_eq!((storage.log, storage.free), (0, 0));
    let tenant = &storage.tenants[0];
    assert_eq!((tenant.tenant.as_str(), tenant.threads), ("acme", 2));
    assert!(tenant.files > 150 * 16, "{tenant:?}");
    let threads = store.largest_threads(&acme(), 10).await.unwrap();
    let ids: Vec<_> = threads.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids, [large.thread.as_str(), small.thread.as_str()]);
    assert_eq!(
        threads.iter().map(|it| it.blocks).sum::<u64>(),
        tenant.blocks
    );
    let one = store.thread_storage(&large.thread).await.unwrap();
    assert_eq!(one.blocks, threads[0].blocks);
    let texts = |kind: &str| one.texts.get(kind).copied().unwrap_or_default();
    assert!(texts("chunks") > 2000 && texts("parts") > 6000, "{one:?}");
    assert_eq!(
        one.texts.values().sum::<u64>(),
        store.row(&large.thread).await.unwrap().bytes
    );
}

#[tokio::test]
async fn a_backup_after_an_erasure_is_full_and_restores_the_erased_blocks() {
    let (directory, path) = place();
    let store = open(&path);
    let mut author = write(&store, "t", 3).await;
    remove(&mut author).await;
    let backups = directory.path().join("backups");
    let kind = || back_up(&path, None, &backups, false).unwrap().kind;
    assert_eq!([kind(), kind()], [BackupKind::Full, BackupKind::Increment]);
    store.erase_removed(&author.thread).await.unwrap();
    store.reclaim().await.unwrap();
    assert_eq!([kind(), kind()], [BackupKind::Full, BackupKind::Increment]);
    let to = directory.path().join("restored/loomline.db");
    restore_backup(&backups, &to, None, None).unwrap();
    let restored = open(&to);
    assert_sound(&restored).await;
    let chain = restored.chain(&author.thread).await.unwrap();
    assert_eq!(
        chain.blocks,
        store.chain(&author.thread).await.unwrap().blocks
    );
    let removed: Vec<_> = REMOVED.iter().map(|kind| secret("t", kind)).collect();
    assert_eq!(left(&to, &removed), Vec::<&String>::new());
}

#[tokio::test]
async fn an_erased_thread_is_exported_and_imported_with_its_chain() {
    let (directory, path) = place();
    let store = open(&path);
    let mut author = write(&store, "t", 3).await;
    remove(&mut author).await;
    store.erase_removed(&author.thread).await.unwrap();
    let mut lines = Vec::new();
    export_tenant(&path, None, "acme", &mut lines).unwrap();
    let to = directory.path().join("imported/loomline.db");
    std::fs::create_dir(to.parent().unwrap()).unwrap();
    let mut from = std::io::Cursor::new(lines);
    import_tenant(&to, &SqliteOptions::default(), &mut from).unwrap();
    let imported = open(&to);
    assert_sound(&imported).await;
    let chain = imported.chain(&author.thread).await.unwrap();
    assert!(chain.holds);
    assert_eq!(
        chain.blocks,
        store.chain(&author.thread).await.unwrap().blocks
    );
}

#[tokio::test]
async fn a_block_that_became_larger_is_exported_and_imported() {
    let (directory, path) = place();
    let store = open(&path);
    let mut author = written(&store, "t", vec![]).await;
    let said = json!([{"type": "input_text", "text": "a"}]);
    let start = Command::Start {
        trigger: Trigger::New(NewItem::user("t-item", said.into())),
        run: None,
        execution_id: "t-execution".into(),
        reaction_item_id: "t-reaction".into(),
        step_id: "t-step".into(),
        workflow_run_id: None,
    };
    // The texts are shorter than what replaces them, and the block is almost full.
    let part = || json!({"type": "output_text", "text": "a"}).into();
    let respond = Command::Respond {
        parts: std::iter::repeat_with(part).take(1550).collect(),
        response: json!({"model": "m"}).into(),
    };
    let end_step = Command::ImportStep {
        outcome: StepOutcome::default(),
        next: None,
    };
    author.commit_all([start, respond, end_step, end()]).await;
    remove(&mut author).await;
    let largest = || {
        let conn = Connection::open(&path).unwrap();
        let sql = "SELECT max(octet_length(body)), count(*) FROM thread_blocks";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        conn.query_row(sql, [], read).unwrap()
    };
    let (before, n_blocks) = largest();
    assert!(before <= 64 << 10, "{before}");
    store.erase_removed(&author.thread).await.unwrap();
    let (after, n_after) = largest();
    assert!(after > 64 << 10, "{before} {after}");
    assert_eq!(n_after, n_blocks);
    assert_sound(&store).await;
    let mut lines = Vec::new();
    export_tenant(&path, None, "acme", &mut lines).unwrap();
    let to = directory.path().join("imported/loomline.db");
    std::fs::create_dir(to.parent().unwrap()).unwrap();
    let mut from = std::io::Cursor::new(lines);
    import_tenant(&to, &SqliteOptions::default(), &mut from).unwrap();
    let imported = open(&to);
    assert_sound(&imported).await;
    assert_eq!(
        imported.chain(&author.thread).await.unwrap().blocks,
        store.chain(&author.thread).await.unwrap().blocks
    );
}

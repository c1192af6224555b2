//! What is deleted or erased is not in the file any more, and the rest is as before.

use super::{dump, open, place, written};
use jiff::Timestamp;
use loomline_stores::{
    BackupKind, SqliteOptions, SqliteStore, back_up, export_tenant, import_tenant, restore_backup,
};
use loomline_stores::{Erasure as _, Evidence as _, Upkeep as _};
use rusqlite::Connection;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::objects::NewObject;
use store::suite::Author;
use store::suite::script::end;
use store::{Append, Store as _, TenantId, ThreadTable as _, Token};
use timeline::{Command, NewChunk, NewItem, Payload, Removed, StepOutcome, Trigger};

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
                .delete(&acme(), &name(*n).as_str().into(), None)
                .await
                .unwrap();
        }
    }
    let reclaimed = store.reclaim().await.unwrap();
    assert_eq!(reclaimed.is_log_empty, Some(true), "{reclaimed:?}");
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
            .delete(&acme(), &format!("t{n}").as_str().into(), None)
            .await
            .unwrap();
    }

    let reclaimed = store.reclaim().await.unwrap();

    assert!(reclaimed.bytes > before / 2, "{reclaimed:?}");
    assert_eq!(reclaimed.is_log_empty, Some(true));
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
    let is_log_empty = async || store.reclaim().await.unwrap().is_log_empty;
    assert_eq!(is_log_empty().await, Some(false));
    assert!(store.has_deleted());
    drop(reader);
    assert_eq!(is_log_empty().await, Some(true));
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
    assert_eq!(reclaimed.is_log_empty, Some(false));
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
    store.delete(&acme(), &author.thread, None).await.unwrap();
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
        store.delete(&acme(), &thread, None).await.unwrap();
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
async fn removed_messages_leave_no_secret_in_the_file() {
    let (_directory, path) = place();
    let store = open(&path);
    let mut author = write(&store, "t", 3).await;
    remove(&mut author).await;
    write(&store, "u", 3).await;
    let removed: Vec<_> = REMOVED.iter().map(|kind| secret("t", kind)).collect();
    store.erase_removed(&author.thread).await.unwrap();
    store.reclaim().await.unwrap();
    assert_eq!(left(&path, &removed), Vec::<&String>::new());
    let others = secrets("u");
    assert_eq!(left(&path, &others).len(), others.len());
    let tables = dump(&path);
    store.rebuild_tables().await.unwrap();
    assert_eq!(dump(&path), tables);
    store.close().await.unwrap();
    let store = open(&path);
    assert_sound(&store).await;
}

#[tokio::test]
async fn bytes_that_are_left_in_the_file_are_found() {
    let (_directory, path) = place();
    let store = open(&path);
    let author = write(&store, "t", 3).await;
    let samples = store.samples_of_thread(&author.thread).await.unwrap();
    store.delete(&acme(), &author.thread, None).await.unwrap();
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

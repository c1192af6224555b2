//! Looks at a store after a power loss.

use crate::known::{KINDS, Known, KnownLog, KnownObject, content_of, json_of};
use crate::process::token;
use loomline_stores::Upkeep as _;
use loomline_stores::{SqliteOptions, SqliteStore};
use rusqlite::Connection;
use rusqlite::types::Value;
use std::path::Path;
use store::objects::{ObjectPage, SidecarObject};
use store::suite::script::tenant;
use store::{EventLog as _, Filter, Logged, Store as _, StoreError, ThreadRows, ThreadTable as _};
use timeline::{Seq, ThreadId};

/// Finds what is lost or broken, and settles what was under way.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn findings(path: &Path, known: &mut Known) -> Result<(), String> {
    let asked = async {
        let store = SqliteStore::open(path, &SqliteOptions::default())?;
        let found = findings_of(&store, known).await?;
        store.close().await?;
        Ok::<_, StoreError>(found)
    };
    match asked.await {
        Ok(found) if found.is_empty() => Ok(()),
        Ok(found) => Err(found.join("; ")),
        Err(error) => Err(format!("it can't be read: {error:?}")),
    }
}

async fn findings_of(store: &SqliteStore, known: &mut Known) -> Result<Vec<String>, StoreError> {
    let mut found = store.check().await?;
    let all = ThreadRows {
        limit: 1_000,
        ..ThreadRows::default()
    };
    for row in store.list(&tenant(), all).await? {
        if !known.logs.contains_key(&*row.thread.id.to_string()) {
            found.push(format!("nobody has created thread {}", row.thread.id));
        }
    }
    for (name, log) in &mut known.logs {
        found.extend(findings_of_log(store, &name.as_str().into(), log).await?);
    }
    let mut n_objects = 0;
    for ((kind, id), object) in &mut known.objects {
        found.extend(findings_of_object(store, kind, id, object).await?);
        n_objects += usize::from(object.acknowledged > 0);
    }
    let mut n_listed = 0;
    for kind in KINDS {
        let page = ObjectPage {
            limit: 1_000,
            ..ObjectPage::default()
        };
        n_listed += store.objects().list(&tenant(), kind, page).await?.len();
    }
    if n_listed != n_objects {
        found.push(format!("{n_listed} objects are listed, {n_objects} exist"));
    }
    let before = dump(store.path());
    store.rebuild_tables().await?;
    if dump(store.path()) != before {
        found.push("a rebuild changes the tables".into());
    }
    Ok(found)
}

async fn whole_log(store: &SqliteStore, thread: &ThreadId) -> Result<Vec<Logged>, StoreError> {
    let mut log: Vec<Logged> = Vec::new();
    loop {
        let after = log.last().map_or(Seq::ZERO, |logged| logged.record.seq);
        let page = store.read(thread, after, 1_000, Filter::All).await?;
        if page.is_empty() {
            return Ok(log);
        }
        log.extend(page);
    }
}

async fn findings_of_log(
    store: &SqliteStore,
    thread: &ThreadId,
    known: &mut KnownLog,
) -> Result<Vec<String>, StoreError> {
    let log = match whole_log(store, thread).await {
        Err(StoreError::NotFound) => Vec::new(),
        log => log?,
    };
    let (n, n_acknowledged) = (log.len(), known.n_acknowledged);
    if n < n_acknowledged {
        return Ok(vec![format!(
            "thread {thread} has lost events: {n} of {n_acknowledged}"
        )]);
    }
    let mut found = Vec::new();
    if n != n_acknowledged && n != known.texts.len() {
        found.push(format!("thread {thread} has a part of an append"));
    }
    let texts = log.iter().map(|logged| &*logged.text);
    if !texts.eq(known.texts.iter().take(n).map(String::as_str)) {
        found.push(format!("thread {thread} has other events"));
    }
    if let Err(error) = timeline::verify(log.iter().map(|logged| &logged.record)) {
        found.push(format!("the log of thread {thread} is wrong: {error}"));
    }
    if n > 0 && store.head(thread).await?.tail != Seq(n as u64) {
        found.push(format!("thread {thread} has another tail"));
    }
    for tail in &known.tails {
        let expected = token(Seq(*tail as u64)).filter(|_| *tail < n);
        let name = format!("at {tail}");
        let answer = match store.answer(thread, &name).await {
            Err(StoreError::NotFound) => None,
            answer => answer?,
        };
        if answer != expected.map(|token| token.answer) {
            found.push(format!("token {name:?} of thread {thread}: {answer:?}"));
        }
    }
    known.settle(n);
    Ok(found)
}

async fn findings_of_object(
    store: &SqliteStore,
    kind: &str,
    id: &str,
    known: &mut KnownObject,
) -> Result<Option<String>, StoreError> {
    let object = store.objects().get(&tenant(), kind, id).await?;
    let content = store.objects().content(&tenant(), kind, id).await?;
    let content = content.map(|content| content.to_vec());
    let equals = |n: usize| match &object {
        None => n == 0,
        Some(SidecarObject { json, .. }) => *json == json_of(n) && content == content_of(kind, n),
    };
    let possible = [known.acknowledged, known.requested];
    let Some(n) = possible.into_iter().find(|n| equals(*n)) else {
        return Ok(Some(format!(
            "object {kind}/{id} is {:?}, not {possible:?}",
            object.map(|object| object.json)
        )));
    };
    (known.acknowledged, known.requested) = (n, n);
    Ok(None)
}

/// Every row of every table, as text. Knows nothing of the tables but that SQLite lists them. Indexes of
/// full text are left out: their form depends on the order of the writes.
fn dump(path: &Path) -> Vec<String> {
    let conn = Connection::open(path).unwrap();
    let sql = "SELECT name FROM pragma_table_list
               WHERE schema = 'main' AND type IN ('table', 'view') ORDER BY name";
    let mut names = conn.prepare(sql).unwrap();
    let names = names.query_map([], |row| row.get::<_, String>(0)).unwrap();
    let mut rows = Vec::new();
    for name in names.map(Result::unwrap) {
        let mut select = conn.prepare(&format!("SELECT * FROM \"{name}\"")).unwrap();
        let n_columns = select.column_count();
        let found = select.query_map([], |row| {
            let values = (0..n_columns).map(|column| row.get::<_, Value>(column));
            Ok(format!(
                "{name} {:?}",
                values.collect::<Result<Vec<_>, _>>()?
            ))
        });
        rows.extend(found.unwrap().map(Result::unwrap));
    }
    rows.sort();
    rows
}

//! What a store shows through its contract, as JSON: for the stores `library-v9` and `encrypted-v9`.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use store::objects::ObjectPage;
use store::search::{Search, SearchWords};
use store::waits::WaitingRows;
use store::{Filter, Store, TenantId, ThreadRow, ThreadRows};
use timeline::Seq;

/// The tenants of these stores, the kinds of their objects, and words that they have.
const TENANTS: [&str; 2] = ["acme", "globex"];
const KINDS: [&str; 2] = ["file", "note"];
const WORDS: [&str; 2] = ["hello", "see"];

/// Everything that a store has, by its tenants.
pub(crate) async fn shown(store: &dyn Store) -> Value {
    let mut tenants = Map::new();
    for name in TENANTS {
        let tenant = TenantId::from(name);
        let value = json!({
            "threads": threads(store, &tenant).await,
            "checkpoints": checkpoints(store, &tenant).await,
            "objects": objects(store, &tenant).await,
            "search": search(store, &tenant).await,
            "waiting": waiting(store, &tenant).await,
        });
        tenants.insert(name.to_owned(), value);
    }
    Value::Object(tenants)
}

fn nanoseconds(at: Timestamp) -> String {
    at.as_nanosecond().to_string()
}

fn id(row: &ThreadRow) -> String {
    row.thread.id.to_string()
}

async fn threads(store: &dyn Store, tenant: &TenantId) -> Vec<Value> {
    let page = ThreadRows {
        limit: 99,
        ..ThreadRows::default()
    };
    let mut shown = Vec::new();
    for row in store.list(tenant, page).await.unwrap() {
        let thread = &row.thread;
        let logged = store.read(&thread.id, Seq(0), 9_999, Filter::All).await;
        let logged = logged.unwrap();
        let events: Vec<Value> = logged
            .iter()
            .map(|it| json!([it.record.seq.0, nanoseconds(it.record.at), &*it.text]))
            .collect();
        let forks = store.forks(&thread.id).await.unwrap();
        let forks: Vec<String> = forks.iter().map(id).collect();
        let fork = thread.fork.as_ref();
        shown.push(json!({
            "id": id(&row),
            "key": thread.key,
            "status": format!("{:?}", thread.status),
            "tail": row.tail.0,
            "fork": fork.map(|fork| json!([fork.thread_id.to_string(), fork.seq.0])),
            "forks": forks,
            "answer": store.answer(&thread.id, "token").await.unwrap(),
            "events": events,
        }));
    }
    shown
}

async fn checkpoints(store: &dyn Store, tenant: &TenantId) -> Vec<Value> {
    let table = store.checkpoints();
    let mut shown = Vec::new();
    for session in table.sessions(tenant).await.unwrap() {
        let row = table.row(tenant, &session).await.unwrap().unwrap();
        let state = table.load(tenant, &session).await.unwrap();
        let at = nanoseconds(row.timestamp);
        shown.push(json!([
            session,
            row.checkpoint_id,
            at,
            row.step,
            row.agent_id,
            state
        ]));
    }
    shown
}

async fn objects(store: &dyn Store, tenant: &TenantId) -> Vec<Value> {
    let table = store.objects();
    let mut shown = Vec::new();
    for kind in KINDS {
        let page = ObjectPage {
            limit: 99,
            ..ObjectPage::default()
        };
        for it in table.list(tenant, kind, page).await.unwrap() {
            let content = table.content(tenant, kind, &it.id).await.unwrap();
            let content = content.map(|bytes| hex(&bytes));
            let hash = it.sha256.map(|hash| hex(&hash));
            let at = nanoseconds(it.created_at);
            shown.push(json!([kind, it.id, at, it.json, content, hash]));
        }
    }
    shown
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}

async fn search(store: &dyn Store, tenant: &TenantId) -> Vec<Value> {
    let mut shown = Vec::new();
    for word in WORDS {
        let search = Search {
            words: SearchWords::parse(word).unwrap(),
            limit: 99,
            ..Search::default()
        };
        let found = store.search(tenant, search).await.unwrap();
        let ids: Vec<String> = found.threads.iter().map(|it| id(&it.row)).collect();
        shown.push(json!([word, ids]));
    }
    shown
}

async fn waiting(store: &dyn Store, tenant: &TenantId) -> Vec<Value> {
    let page = WaitingRows {
        limit: 99,
        ..WaitingRows::default()
    };
    let rows = store.waiting(tenant, page).await.unwrap();
    let shown = |row: &store::waits::WaitingRow| json!([id(&row.row), row.may_ask]);
    rows.iter().map(shown).collect()
}

//! Tenants in several PostgreSQL databases, with the real binary. Each database is a schema of the server that
//! `LOOMLINE_POSTGRES` names, behind a proxy of its own.

use crate::nodes::proxy::{Proxy, Traffic};
use crate::support::cli::Home;
use crate::support::http::{Answer, get_as, post};
use crate::support::server::Server;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const ACME: &str = "llk_acme";
const GLOBEX: &str = "llk_globex";

/// Two databases: that of `[store]` and the shard `east`.
struct Databases {
    url: String,
    schemas: [String; 2],
    proxies: [Proxy; 2],
    runtime: Runtime,
}

impl Databases {
    fn new() -> Self {
        #[allow(clippy::disallowed_methods, reason = "the test step sets it")]
        let url = std::env::var("LOOMLINE_POSTGRES");
        let url = url.expect("LOOMLINE_POSTGRES is not set: `export $(scripts/postgres start DIR)` starts a server and sets it");
        let (_, rest) = url.split_once('@').unwrap();
        let address: SocketAddr = rest.split_once('/').unwrap().0.parse().unwrap();
        let runtime = Runtime::new().unwrap();
        let new = || format!("shards_{}_{:08x}", std::process::id(), fastrand::u32(..));
        let schemas = [new(), new()];
        let start = || runtime.block_on(Proxy::start(address));
        let proxies = [start(), start()];
        let own = Self {
            url,
            schemas,
            proxies,
            runtime,
        };
        for schema in &own.schemas {
            own.rows(&format!("CREATE SCHEMA {schema}"));
        }
        own
    }

    fn url(&self, n: usize) -> String {
        let (head, rest) = self.url.split_once('@').unwrap();
        let (_, path) = rest.split_once('/').unwrap();
        let (address, schema) = (self.proxies[n].address, &self.schemas[n]);
        format!("{head}@{address}/{path}?options=-csearch_path%3D{schema}&sslmode=disable")
    }

    /// The first column of an answer.
    fn rows(&self, sql: &str) -> Vec<String> {
        let messages = self.runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&self.url, tokio_postgres::NoTls)
                .await
                .unwrap();
            let asked = async {
                let messages = client.simple_query(sql).await;
                drop(client);
                messages
            };
            let (messages, _) = tokio::join!(asked, connection);
            messages.unwrap()
        });
        let cells = messages.iter().filter_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        });
        cells.collect()
    }

    /// The tenants with threads, objects or checkpoints in a database.
    fn tenants(&self, n: usize) -> BTreeSet<String> {
        let schema = &self.schemas[n];
        let tables = ["thread_threads", "tenant_objects", "agent_checkpoints"];
        let each = tables.map(|table| format!("SELECT tenant FROM {schema}.{table}"));
        self.rows(&each.join(" UNION ")).into_iter().collect()
    }

    fn config(&self, acme: &str, globex: &str) -> String {
        format!(
            "default_agent = \"worker\"\n\
             [store]\nurl = \"{}\"\n[store.shards.east]\nurl = \"{}\"\n\
             [models.offline]\nprovider = \"scripted\"\ndelay_ms = 2\n\
             [agents.worker]\nmodel = \"offline\"\ntools = [\"compute\"]\n\
             [tenants.acme]\nkey_hashes = [\"{}\"]\n{acme}\n\
             [tenants.globex]\nkey_hashes = [\"{}\"]\n{globex}\n",
            self.url(0),
            self.url(1),
            server::auth::hash_text(ACME),
            server::auth::hash_text(GLOBEX),
        )
    }
}

impl Drop for Databases {
    fn drop(&mut self) {
        for schema in &self.schemas {
            self.rows(&format!("DROP SCHEMA {schema} CASCADE"));
        }
    }
}

fn sent(server: &Server, key: &str, path: &str, body: &Value) -> Answer {
    let bearer = format!("Bearer {key}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("accept", "application/json, text/event-stream"),
        ("a2a-version", "1.0"),
    ];
    post(server, path, &body.to_string(), &headers)
}

fn ok(server: &Server, key: &str, path: &str, body: &Value) -> Answer {
    let answer = sent(server, key, path, body);
    assert_eq!(answer.status / 100, 2, "{path}: {answer:?}");
    answer
}

fn say(server: &Server, key: &str, thread: &str, words: &str) -> Answer {
    let path = format!("/api/v1/threads/{thread}/messages");
    sent(
        server,
        key,
        &path,
        &json!({"content": words, "stream": true}),
    )
}

/// Waits until it is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(90);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn each_protocol_stores_a_tenants_threads_in_its_database_alone() {
    let databases = Databases::new();
    let mut homes = [Home::new(), Home::new()];
    for home in &mut homes {
        home.configure(&databases.config("", "shard = \"east\""));
    }
    let servers = homes.each_ref().map(Home::server);
    let hello = json!([{"role": "user", "content": "compute 2+3"}]);
    for key in [ACME, GLOBEX] {
        let [one, other] = &servers;
        assert_eq!(say(one, key, "own", "compute 1+1").status, 200);
        ok(
            one,
            key,
            "/v1/chat/completions",
            &json!({"model": "worker", "messages": hello}),
        );
        ok(
            one,
            key,
            "/v1/responses",
            &json!({"model": "worker", "input": "compute 1+2"}),
        );
        ok(one, key, "/v1/threads", &json!({"messages": hello}));
        ok(
            one,
            key,
            "/runs/wait",
            &json!({"assistant_id": "worker", "input": {"messages": hello}}),
        );
        let made = ok(one, key, "/threads", &json!({})).json();
        let waits = format!("/threads/{}/runs/wait", made["thread_id"].as_str().unwrap());
        ok(
            one,
            key,
            &waits,
            &json!({"assistant_id": "worker", "input": {"messages": hello}}),
        );
        ok(
            one,
            key,
            "/ag-ui",
            &json!({"threadId": "interface", "runId": "r1", "state": {}, "tools": [], "context": [],
                "forwardedProps": {}, "messages": [{"id": "m1", "role": "user", "content": "compute 1+1"}]}),
        );
        ok(
            one,
            key,
            "/a2a/v1/message:send",
            &json!({"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "compute 1+1"}]}}),
        );
        let found = get_as(other, "/api/v1/threads/own/document", key);
        assert_eq!(found.status, 200, "{found:?}");
        let listed = get_as(other, "/api/v1/threads", key).json();
        let n_listed = listed["threads"].as_array().unwrap().len();
        let schema = &databases.schemas[usize::from(key == GLOBEX)];
        let stored = databases.rows(&format!("SELECT count(*) FROM {schema}.thread_threads"));
        assert_eq!(stored, [n_listed.to_string()]);
        assert!(n_listed >= 6, "{listed}");
    }
    assert_eq!(databases.tenants(0), BTreeSet::from(["acme".to_owned()]));
    assert_eq!(databases.tenants(1), BTreeSet::from(["globex".to_owned()]));
}

#[test]
fn a_database_that_is_down_stops_its_own_tenants_alone() {
    let databases = Databases::new();
    let mut home = Home::new();
    home.configure(&databases.config("", "shard = \"east\""));
    let server = home.server();
    for key in [ACME, GLOBEX] {
        assert_eq!(say(&server, key, "t", "compute 1+1").status, 200);
    }
    databases.proxies[1].set(Traffic::REFUSED);
    let read = || get_as(&server, "/api/v1/threads", GLOBEX).status;
    until("the database is used although it is down", || read() == 503);
    assert_eq!(say(&server, ACME, "t", "compute 2+2").status, 200);
    assert_eq!(get_as(&server, "/readyz", ACME).status, 200);
    let shard = || get_as(&server, "/api/v1/health", ACME).json()["shards"][0].clone();
    let seen = shard();
    assert_eq!(
        (&seen["name"], &seen["ready"]),
        (&json!("east"), &json!(false))
    );
    assert_eq!(get_as(&server, "/metrics", ACME).status, 200);

    databases.proxies[1].set(Traffic::FREE);

    until("the database is not used again", || read() == 200);
    until("the node does not run again", || {
        shard()["ready"] == json!(true)
    });
    assert_eq!(say(&server, GLOBEX, "t", "compute 3+3").status, 200);
}

/// The number of `SIGTERM`.
#[cfg(target_os = "linux")]
const TERM: u32 = 15;

#[cfg(target_os = "linux")]
#[test]
fn a_server_that_waits_for_its_database_stops_at_a_signal() {
    let databases = Databases::new();
    let mut home = Home::new();
    home.configure(&databases.config("", ""));
    databases.proxies[0].set(Traffic::HALF_OPEN);
    let starting = home.spawn(&["serve", "--listen", "127.0.0.1:0"]);
    starting.handles(TERM);
    starting.signal("TERM");
    let ran = starting.close();
    assert_eq!(ran.code, 0, "{ran:?}");
}

#[test]
fn a_server_outlives_a_database_that_fails_right_after_the_start() {
    let databases = Databases::new();
    let mut home = Home::new();
    // The server joins the others once this tool server is given up.
    let slow = "[mcp.slow]\ncommand = \"sleep\"\nargs = [\"60\"]\nconnect_timeout_s = 5\n\
                [agents.slow]\nmodel = \"offline\"\ntools = [\"mcp:slow\"]\n";
    home.configure(&(databases.config("", "") + slow));
    let mut server = home.server();
    databases.proxies[0].set(Traffic::REFUSED);
    let log = || std::fs::read_to_string(home.data().join("server.log")).unwrap();
    until("the server has not met the outage", || {
        log().contains("the runs of a database are not resumed")
    });
    databases.proxies[0].set(Traffic::FREE);
    until("the server is not ready", || {
        get_as(&server, "/readyz", ACME).status == 200
    });
    assert_eq!(say(&server, ACME, "t", "compute 1+1").status, 200);
    server.stop();
}

#[test]
fn a_paused_tenant_moves_while_another_one_runs() {
    let databases = Databases::new();
    let mut home = Home::new();
    home.configure(&databases.config("", "shard = \"east\""));
    let server = home.server();
    assert_eq!(say(&server, ACME, "t", "compute 1+1").status, 200);
    ok(
        &server,
        ACME,
        "/v1/chat/completions",
        &json!({"model": "worker", "messages": [{"role": "user", "content": "hello"}]}),
    );
    let file = home.file("note.txt", "a note");
    let uploaded = crate::support::http::upload(&server, "/v1/files", &file, ACME);
    assert_eq!(uploaded.status, 200, "{uploaded:?}");
    let file = format!(
        "/v1/files/{}/content",
        uploaded.json()["id"].as_str().unwrap()
    );
    let document = || get_as(&server, "/api/v1/threads/t/document", ACME);
    let before = document();
    assert_eq!(before.status, 200, "{before:?}");

    let refused = home.run(&["tenant", "move", "acme", "--to", "east"]);
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("it is not paused"), "{refused:?}");
    home.configure(&databases.config("paused = true", "shard = \"east\""));
    let refused = home.run(&["tenant", "move", "acme", "--to", "east"]);
    assert!(refused.err.contains("send SIGHUP to it"), "{refused:?}");
    server.signal("HUP");
    until("the tenant is not paused", || document().status == 503);
    let paused = document();
    assert_eq!(paused.json()["error"]["code"], "tenant_paused");
    assert_eq!(paused.header("retry-after").as_deref(), Some("10"));
    // What brings its runs to their end is not refused.
    let cancel = sent(&server, ACME, "/api/v1/threads/t/cancel", &json!({}));
    assert_ne!(cancel.status, 503, "{cancel:?}");
    let lease = sent(&server, ACME, "/api/v1/steps/lease", &json!({"waitMs": 0}));
    assert_ne!(lease.status, 503, "{lease:?}");

    std::thread::scope(|scope| {
        let talk = scope.spawn(|| say(&server, GLOBEX, "long", "compute 1+1 and compute 2+2"));
        home.ok(&["tenant", "move", "acme", "--to", "east"]);
        let talk = talk.join().unwrap();
        assert_eq!(talk.status, 200, "{talk:?}");
    });
    let again = home.run(&["tenant", "move", "acme", "--to", "east"]);
    assert!(again.err.contains("from an earlier move"), "{again:?}");

    home.configure(&databases.config("shard = \"east\"", "shard = \"east\""));
    server.signal("HUP");
    until("the tenant is still paused", || document().status == 200);
    let purged = home.ok(&[
        "purge", "--all", "--tenant", "acme", "--shard", "default", "--yes",
    ]);
    assert!(purged.contains("in all tables: none is left"), "{purged}");
    for of_file in ["the file", "write-ahead"] {
        assert!(!purged.contains(of_file), "{purged}");
    }
    assert_eq!(document().text, before.text);
    assert_eq!(get_as(&server, &file, ACME).text, "a note");
    assert_eq!(databases.tenants(0), BTreeSet::new());
    assert_eq!(say(&server, ACME, "t", "compute 5+5").status, 200);
    home.ok(&["doctor"]);
}

//! A schema on a PostgreSQL server, and servers of a test's own.

use crate::cluster::{SOON, until};
use crate::proxy::Proxy;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::sync::Arc;
use store::{Filter, Head, Store, TenantId};
use stores::{PostgresOptions, PostgresStore};
use timeline::{Record, Seq};
use tokio_postgres::{Client, NoTls};

pub(crate) fn tenant() -> TenantId {
    "acme".into()
}

/// A server that only one test uses. It is stopped at the end.
pub(crate) struct Server {
    directory: PathBuf,
    url: String,
}

fn script(action: &str, directory: &Path, argument: Option<&OsStr>) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres");
    let mut command = Command::new(script);
    let output = command.arg(action).arg(directory).args(argument);
    let output = output.stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = output.output().unwrap();
    assert!(output.status.success(), "scripts/postgres {action} failed");
    String::from_utf8(output.stdout).unwrap()
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::made("start", None)
    }

    /// A server that receives what this one writes.
    pub(crate) fn standby(&self) -> Self {
        Self::made("standby", Some(self.directory.as_os_str()))
    }

    fn made(action: &str, of: Option<&OsStr>) -> Self {
        let name = format!("loomline-nodes-{}-{:08x}", process::id(), fastrand::u32(..));
        let directory = std::env::temp_dir().join(name);
        let printed = script(action, &directory, of);
        let url = printed
            .lines()
            .find_map(|line| line.strip_prefix("LOOMLINE_POSTGRES="));
        Self {
            url: url.unwrap().to_owned(),
            directory,
        }
    }

    /// No file of the server grows beyond this size, as on a full disk.
    pub(crate) fn limit_files(&self, bytes: Option<i64>) {
        let limit = bytes.map_or_else(|| "unlimited".to_owned(), |bytes| bytes.to_string());
        script("limit", &self.directory, Some(limit.as_ref()));
    }

    /// Ends the server as a crash does.
    pub(crate) fn end(&self) {
        script("end", &self.directory, None);
    }

    /// Does statements, each in a transaction of its own.
    pub(crate) async fn admin(&self, statements: &[&str]) {
        let client = client(&self.url).await;
        for sql in statements {
            client.batch_execute(sql).await.unwrap();
        }
    }

    /// Waits until a query of one boolean is true.
    pub(crate) async fn until(&self, sql: &str) {
        let client = client(&self.url).await;
        let is_so = async || client.query_one(sql, &[]).await.unwrap().get(0);
        until(sql, SOON, is_so).await;
    }

    fn address(&self) -> &str {
        address(&self.url)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        script("stop", &self.directory, None);
    }
}

/// The address in a URL.
fn address(url: &str) -> &str {
    let (_, rest) = url.split_once('@').unwrap();
    rest.split_once('/').unwrap().0
}

/// A connection of the test itself.
pub(crate) async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A schema, empty at first.
pub(crate) struct Database {
    pub(crate) schema: String,
    server: String,
    /// The address of the standby server, if there is one.
    standby: Option<String>,
    observer: Option<Arc<dyn Store>>,
}

impl Database {
    /// A schema on the server for all tests.
    pub(crate) async fn new() -> Self {
        let missing = "LOOMLINE_POSTGRES is not set: `export $(scripts/postgres start DIR)` starts a server and sets it";
        Self::at(std::env::var("LOOMLINE_POSTGRES").expect(missing), None).await
    }

    pub(crate) async fn on(server: &Server) -> Self {
        Self::at(server.url.clone(), None).await
    }

    /// A schema on a server with a standby server. Nodes connect to the one that writes.
    pub(crate) async fn on_pair(server: &Server, standby: &Server) -> Self {
        Self::at(server.url.clone(), Some(standby.address().to_owned())).await
    }

    async fn at(server: String, standby: Option<String>) -> Self {
        let schema = format!("n_{}_{:016x}", process::id(), fastrand::u64(..));
        let sql = format!("CREATE SCHEMA {schema}");
        client(&server).await.batch_execute(&sql).await.unwrap();
        let mut database = Self {
            schema,
            server,
            standby,
            observer: None,
        };
        let options = PostgresOptions::new(database.url(None));
        let observer = PostgresStore::open(&options).await.unwrap();
        database.observer = Some(Arc::new(observer));
        database
    }

    /// The address of the server.
    pub(crate) fn address(&self) -> SocketAddr {
        address(&self.server).parse().unwrap()
    }

    /// The URL of the schema, directly or through a proxy.
    pub(crate) fn url(&self, through: Option<&Proxy>) -> String {
        let (head, rest) = self.server.split_once('@').unwrap();
        let (direct, path) = rest.split_once('/').unwrap();
        let mut hosts =
            through.map_or_else(|| direct.to_owned(), |proxy| proxy.address.to_string());
        if let Some(standby) = &self.standby {
            hosts.extend([",", standby]);
        }
        let name = &self.schema;
        format!(
            "{head}@{hosts}/{path}?options=-csearch_path%3D{name}&application_name={name}&sslmode=disable&target_session_attrs=read-write"
        )
    }

    /// The store without any proxy.
    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        self.observer.as_ref().unwrap()
    }

    pub(crate) async fn client(&self) -> Client {
        client(&self.url(None)).await
    }

    pub(crate) async fn head(&self, key: &str) -> Head {
        let row = self.store().find(&tenant(), key).await.unwrap();
        self.store().head(&row.thread.id).await.unwrap()
    }

    /// The log of a thread; empty if there is none.
    pub(crate) async fn log(&self, key: &str) -> Vec<Record> {
        let Ok(row) = self.store().find(&tenant(), key).await else {
            return Vec::new();
        };
        let mut records = Vec::<Record>::new();
        loop {
            let after = records.last().map_or(Seq::ZERO, |last| last.seq);
            let page = self
                .store()
                .read(&row.thread.id, after, 1000, Filter::All)
                .await
                .unwrap();
            if page.is_empty() {
                return records;
            }
            records.extend(page.into_iter().map(|logged| logged.record));
        }
    }

    /// The numbers of the nodes.
    pub(crate) async fn nodes(&self) -> Vec<i64> {
        let client = self.client().await;
        let rows = client.query("SELECT id FROM nodes ORDER BY id", &[]).await;
        rows.unwrap().iter().map(|row| row.get(0)).collect()
    }
}

//! A store in a schema of its own.

use crate::suite::Operated;
use futures_util::future::BoxFuture;
use loomline_stores::{DurableStore, PostgresOptions, PostgresStore, TransferError, Transferred};
use std::io::Cursor;
use std::process;
use std::sync::Arc;
use store::suite::Subject;
use store::{Quotas, Store};
use tokio_postgres::{Client, NoTls};

/// The URL of the server for tests.
pub(crate) fn server() -> String {
    variable("LOOMLINE_POSTGRES")
}

fn variable(name: &str) -> String {
    let missing = || {
        panic!(
            "{name} is not set: `export $(scripts/postgres start DIR)` starts a server and sets it"
        )
    };
    std::env::var(name).unwrap_or_else(|_| missing())
}

/// A connection to a database, for what a test does itself.
pub(crate) async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A schema that is empty at first.
pub(crate) struct Schema {
    /// Its name.
    pub(crate) name: String,
}

impl Schema {
    pub(crate) async fn new() -> Self {
        let name = format!("t_{}_{:016x}", process::id(), fastrand::u64(..));
        let sql = format!("CREATE SCHEMA {name}");
        client(&server()).await.batch_execute(&sql).await.unwrap();
        Self { name }
    }

    /// The URL of the schema on a server with this address; on the server for tests without one.
    pub(crate) fn url(&self) -> String {
        self.at(&server())
    }

    pub(crate) fn at(&self, server: &str) -> String {
        let name = &self.name;
        let sign = if server.contains('?') { '&' } else { '?' };
        format!(
            "{server}{sign}options=-csearch_path%3D{name}&application_name={name}&sslmode=disable"
        )
    }

    pub(crate) fn options(&self) -> PostgresOptions {
        PostgresOptions::new(self.url())
    }
}

/// A store that a test may open again.
pub(crate) struct Opened {
    store: Option<Arc<PostgresStore>>,
    options: PostgresOptions,
    schema: Schema,
}

impl Opened {
    /// The name of its schema.
    pub(crate) fn schema(&self) -> &str {
        &self.schema.name
    }

    /// The URL of its schema.
    pub(crate) fn url(&self) -> String {
        self.schema.url()
    }

    /// Another handle of the same store, as another process has it.
    pub(crate) async fn again(&self) -> Arc<dyn Store> {
        Arc::new(PostgresStore::open(&self.options).await.unwrap())
    }

    pub(crate) async fn new() -> Self {
        let schema = Schema::new().await;
        let options = schema.options();
        Self::with(schema, options).await
    }

    /// A store behind a pooler. It does not pass on a path of schemas, so a user has it.
    pub(crate) async fn pooled() -> Self {
        let schema = Schema::new().await;
        let name = &schema.name;
        let sql = format!(
            "CREATE ROLE {name} LOGIN; ALTER ROLE {name} SET search_path = {name}; ALTER SCHEMA {name} OWNER TO {name}"
        );
        client(&server()).await.batch_execute(&sql).await.unwrap();
        let pooler = variable("LOOMLINE_PGBOUNCER");
        let (_, address) = pooler.split_once('@').unwrap();
        let options = PostgresOptions {
            url: format!("postgres://{name}@{address}?sslmode=disable"),
            listen_url: Some(schema.url()),
            prepared: false,
            ..schema.options()
        };
        Self::with(schema, options).await
    }

    async fn with(schema: Schema, options: PostgresOptions) -> Self {
        let store = PostgresStore::open(&options).await.unwrap();
        Self {
            store: Some(Arc::new(store)),
            options,
            schema,
        }
    }
}

impl Operated for Opened {
    fn durable(&self) -> Arc<dyn DurableStore> {
        self.store.clone().unwrap()
    }

    fn execute<'a>(&'a self, sql: &'a str) -> BoxFuture<'a, u64> {
        Box::pin(async { client(&self.url()).await.execute(sql, &[]).await.unwrap() })
    }

    fn export<'a>(
        &'a self,
        tenant: &'a str,
    ) -> BoxFuture<'a, Result<(Vec<u8>, Transferred), TransferError>> {
        Box::pin(async move {
            let mut lines = Vec::new();
            let store = self.store.as_ref().unwrap();
            let counts = store.export_tenant(tenant, &mut lines).await?;
            Ok((lines, counts))
        })
    }

    fn import<'a>(
        &'a mut self,
        lines: &'a [u8],
    ) -> BoxFuture<'a, Result<Transferred, TransferError>> {
        Box::pin(async move {
            let store = self.store.as_ref().unwrap();
            store.import_tenant(&mut Cursor::new(lines)).await
        })
    }
}

impl Subject for Opened {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone().unwrap()
    }

    fn quotas(&self) -> Quotas {
        self.options.quotas.clone()
    }

    fn reopen(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.store.take().unwrap().close().await.unwrap();
            let store = PostgresStore::open(&self.options).await.unwrap();
            self.store = Some(Arc::new(store));
        })
    }
}

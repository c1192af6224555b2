//! A connection, and how it is made.

use super::error::{Unavailable, statement};
use super::hosts::Hosts;
use super::options::{self, OptionsFault, PostgresOptions};
use super::tasks::Tasks;
use super::value::Param;
use futures_util::future::poll_fn;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::StoreError;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use tokio_postgres::error::{DbError, Severity, SqlState};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Error, Notification, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Connections beyond those that readers need. An operator uses them, and statements without an answer: their connections
/// stay open until the server answers.
const SPARE: usize = 14;

/// Spare connections of the lanes, which don't depend on readers.
pub(super) const LANE_SPARE: usize = 12;
/// Spare connections of the lease, which does not depend on readers.
pub(super) const LEASE_SPARE: usize = 4;
/// Spare connections of hints, which don't depend on readers.
pub(super) const HINT_SPARE: usize = 2;
/// The part of [`PostgresOptions::patience`] after which a lane gives up the wait for a lock.
const LOCK_WAIT: u32 = 8;

/// Makes connections.
#[derive(Clone)]
pub(super) struct Connector {
    hosts: Hosts,
    listen: Hosts,
    tls: MakeRustlsConnect,
    prepared: bool,
    patience: Duration,
    /// The connections that may still be opened.
    places: Arc<Semaphore>,
    /// The tasks that drive the connections. Each ends after its connection is dropped.
    drivers: Tasks,
}

impl Connector {
    pub(super) fn new(options: &PostgresOptions) -> Result<Self, OptionsFault> {
        Ok(Self {
            hosts: options::hosts(&options.url)?,
            listen: options::hosts(options.listen_url.as_ref().unwrap_or(&options.url))?,
            tls: options::tls(options.authorities.as_deref())?,
            prepared: options.prepared,
            patience: options.patience,
            places: Arc::new(Semaphore::new(options.readers.get() + SPARE)),
            drivers: Tasks::default(),
        })
    }

    /// A connector whose connects try all hosts within this time.
    pub(super) fn within(&self, time: Duration) -> Self {
        Self {
            hosts: self.hosts.within(time),
            ..self.clone()
        }
    }

    /// A connector that has this number of connections open at most. Those of other connectors don't count.
    pub(super) fn with_maximum(&self, n: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(n)),
            ..self.clone()
        }
    }

    /// How long a brief statement may take.
    pub(super) fn patience(&self) -> Duration {
        self.patience
    }

    /// Waits until all connections are closed.
    pub(super) async fn closed(&self) {
        self.drivers.ended().await;
    }

    /// A new connection.
    pub(super) async fn connect(&self) -> Result<Conn, StoreError> {
        let (conn, _) = self.connect_to(&self.hosts).await?;
        Ok(conn)
    }

    /// A new connection for a lane.
    pub(super) async fn connect_to_write(&self) -> Result<Conn, StoreError> {
        let conn = self.connect().await?;
        let tuned = timeout(self.hosts.limit(), conn.tune()).await;
        tuned
            .map_err(|_| StoreError::from(Unavailable::Silent))?
            .map_err(statement)?;
        Ok(conn)
    }

    /// A new connection for notifications, and those that it receives.
    pub(super) async fn listen(
        &self,
    ) -> Result<(Conn, mpsc::UnboundedReceiver<Notification>), StoreError> {
        self.connect_to(&self.listen).await
    }

    async fn connect_to(
        &self,
        hosts: &Hosts,
    ) -> Result<(Conn, mpsc::UnboundedReceiver<Notification>), StoreError> {
        let place = timeout(hosts.limit(), self.places.clone().acquire_owned()).await;
        let place = place.map_err(|_| StoreError::from(Unavailable::TooManyOpen))?;
        let (client, mut connection) = hosts.connect(&self.tls).await?;
        let is_unconfirmed = Arc::new(AtomicBool::new(false));
        let (notify, notifications) = mpsc::unbounded_channel();
        let unconfirmed = is_unconfirmed.clone();
        self.drivers.spawn(async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                match message {
                    AsyncMessage::Notification(notification) => {
                        // Only a listener reads them.
                        let _ = notify.send(notification);
                    }
                    AsyncMessage::Notice(notice) if is_unconfirmed_commit(&notice) => {
                        unconfirmed.store(true, Ordering::Release);
                    }
                    AsyncMessage::Notice(_) | _ => {}
                }
            }
            drop(place);
        });
        let conn = Conn {
            client,
            prepared: self.prepared,
            patience: self.patience,
            is_brief: AtomicBool::new(false),
            is_silent: AtomicBool::new(false),
            statements: Mutex::default(),
            is_unconfirmed,
        };
        Ok((conn, notifications))
    }
}

/// Whether the wait for the standby servers has ended without their answer. The text depends on the language of the
/// server; a warning of this code has no other reason here.
fn is_unconfirmed_commit(notice: &DbError) -> bool {
    notice.message().contains("synchronous replication")
        || notice.parsed_severity() == Some(Severity::Warning)
            && *notice.code() == SqlState::WARNING
}

// A plan that can't avoid a disabled form seems to cost so much that it would be compiled, which takes 100 ms.
const TUNED: &str = "SET jit = off; SET idle_in_transaction_session_timeout = 10000; SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off";

/// A connection.
pub(super) struct Conn {
    client: Client,
    prepared: bool,
    /// How long a statement may take, if it must be brief.
    patience: Duration,
    /// Whether each statement must be brief. The work of an operator may take long.
    is_brief: AtomicBool,
    /// Whether an answer did not arrive in time.
    is_silent: AtomicBool,
    /// The prepared statements, by their text.
    statements: Mutex<BTreeMap<String, Statement>>,
    /// Whether a commit may not be on the standby servers.
    is_unconfirmed: Arc<AtomicBool>,
}

impl Conn {
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed() || self.is_silent.load(Ordering::Acquire)
    }

    /// Sets whether each statement from now on must be brief.
    pub(super) fn set_brief(&self, is_brief: bool) {
        self.is_brief.store(is_brief, Ordering::Release);
    }

    /// Waits for an answer. If it must be brief and is not, the connection counts as closed.
    pub(super) async fn answered<T>(
        &self,
        answer: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, StoreError> {
        if !self.is_brief.load(Ordering::Acquire) {
            return answer.await.map_err(statement);
        }
        let Ok(answer) = timeout(self.patience, answer).await else {
            self.is_silent.store(true, Ordering::Release);
            return Err(Unavailable::Silent.into());
        };
        answer.map_err(statement)
    }

    /// Whether a commit since the last call may not be on the standby servers.
    pub(super) fn takes_unconfirmed(&self) -> bool {
        self.is_unconfirmed.swap(false, Ordering::AcqRel)
    }

    /// Prepares a connection for writing: its statements find few rows by their keys, so they are planned once.
    pub(super) async fn tune(&self) -> Result<(), Error> {
        if self.prepared {
            let wait = self.lock_wait();
            return self
                .batch(&format!("{TUNED}; SET lock_timeout = {wait}"))
                .await;
        }
        // The next transaction may have another connection.
        Ok(())
    }

    /// The longest wait of a lane for a lock, in milliseconds. A statement that waits longer would outlive its
    /// connection.
    fn lock_wait(&self) -> u128 {
        (self.patience / LOCK_WAIT).as_millis().max(1)
    }

    /// Begins a transaction of a lane. One that stops in the middle does not hold its rows for long.
    pub(super) async fn begin(&self) -> Result<(), Error> {
        if self.prepared {
            return self.batch("BEGIN").await;
        }
        let wait = self.lock_wait();
        self.batch(&format!(
            "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 10000; SET LOCAL lock_timeout = {wait}"
        ))
        .await
    }

    /// Begins a transaction on a connection that is not [tuned](Self::tune).
    pub(super) async fn begin_limited(&self) -> Result<(), Error> {
        self.batch("BEGIN; SET LOCAL idle_in_transaction_session_timeout = 10000")
            .await
    }

    /// Does statements without values.
    pub(super) async fn batch(&self, sql: &str) -> Result<(), Error> {
        self.client.batch_execute(sql).await
    }

    /// Prepares a statement, so that it is sent at once when it is used. Then the statements of a pipeline keep their
    /// order.
    pub(super) async fn prepare(&self, sql: &str, values: &[Param<'_>]) -> Result<(), Error> {
        if self.prepared && self.statement(sql).is_none() {
            let types: Vec<Type> = values.iter().map(|(_, kind)| kind.clone()).collect();
            let made = self.client.prepare_typed(sql, &types).await?;
            let statements = self.statements.lock();
            let mut statements = statements.unwrap_or_else(PoisonError::into_inner);
            statements.insert(sql.to_owned(), made);
        }
        Ok(())
    }

    fn statement(&self, sql: &str) -> Option<Statement> {
        let statements = self.statements.lock();
        let statements = statements.unwrap_or_else(PoisonError::into_inner);
        statements.get(sql).cloned()
    }

    /// The rows of a statement.
    pub(super) async fn rows(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Error> {
        if !self.prepared {
            return self.client.query_typed(sql, params).await;
        }
        // It is looked for first, because a pipeline must not wait before it sends.
        if self.statement(sql).is_none() {
            self.prepare(sql, params).await?;
        }
        let Some(statement) = self.statement(sql) else {
            return self.client.query_typed(sql, params).await;
        };
        let values: Vec<&(dyn ToSql + Sync)> = params.iter().map(|(value, _)| *value).collect();
        self.client.query(&statement, &values).await
    }

    /// The rows of a statement, for code that does not look at the kind of error.
    pub(super) async fn query(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        self.answered(Box::pin(self.rows(sql, params))).await
    }

    /// The first row of a statement.
    pub(super) async fn first(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Option<Row>, StoreError> {
        Ok(self.query(sql, params).await?.into_iter().next())
    }

    /// Does a statement.
    pub(super) async fn execute(&self, sql: &str, params: &[Param<'_>]) -> Result<(), StoreError> {
        self.query(sql, params).await.map(drop)
    }
}

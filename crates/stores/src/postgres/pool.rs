//! The connections that read, and those of rare writes.

use super::connection::{Conn, Connector};
use super::error::Unavailable;
use super::value::Param;
use super::work::Work;
use crate::durable::OpenMode;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use store::StoreError;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use tokio_postgres::Row;

/// Connections that are lent.
pub(super) struct Pool {
    connector: Connector,
    idle: Mutex<Vec<Conn>>,
    places: Semaphore,
    mode: OpenMode,
    work: Arc<Work>,
}

/// A lent connection. It goes back, unless it is broken or in the middle of a transaction.
pub(super) struct Lent<'a> {
    conn: Option<Conn>,
    pool: &'a Pool,
    is_between: bool,
    is_writing: bool,
    _place: SemaphorePermit<'a>,
}

/// How a transaction sees others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Isolation {
    /// All its statements read what was committed when it began, and it writes nothing.
    Snapshot,
    /// A snapshot for an operator: each statement may take long.
    LongSnapshot,
    /// Each statement reads what was committed when it began.
    Write,
}

impl Pool {
    pub(super) fn new(connector: Connector, size: usize, mode: OpenMode, work: Arc<Work>) -> Self {
        Self {
            connector,
            mode,
            work,
            idle: Mutex::default(),
            places: Semaphore::new(size),
        }
    }

    pub(super) fn close(&self) {
        self.places.close();
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Conn>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection for brief statements, when one is free. The wait for it has an end, too.
    pub(super) async fn get(&self) -> Result<Lent<'_>, StoreError> {
        let lent = timeout(self.connector.patience(), self.lend()).await;
        lent.unwrap_or_else(|_| Err(Unavailable::Silent.into()))
    }

    async fn lend(&self) -> Result<Lent<'_>, StoreError> {
        let place = self.places.acquire().await;
        let place = place.map_err(|_| StoreError::Closed)?;
        let idle = loop {
            let idle = self.lock().pop();
            match idle {
                Some(conn) if conn.is_closed() => {}
                other => break other,
            }
        };
        let conn = match idle {
            Some(conn) => conn,
            None => self.connector.connect().await?,
        };
        conn.set_brief(true);
        Ok(Lent {
            conn: Some(conn),
            pool: self,
            is_between: true,
            is_writing: false,
            _place: place,
        })
    }

    /// Refuses writes to a store that is only read.
    pub(super) fn writable(&self) -> Result<(), StoreError> {
        match self.mode {
            OpenMode::ReadWrite => Ok(()),
            OpenMode::ReadOnly => Err(StoreError::InUse(
                "the database is open for reading only".into(),
            )),
        }
    }

    /// Does one statement that writes. Its rows are returned once it is durable.
    pub(super) async fn write(
        &self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        self.writable()?;
        let written = async {
            let conn = self.get().await?;
            let rows = conn.query(sql, params).await?;
            if conn.takes_unconfirmed() {
                return Err(Unavailable::Unconfirmed.into());
            }
            Ok(rows)
        };
        self.counted(written.await)
    }

    /// Ends a transaction of a connection that is not lent, durably.
    pub(super) async fn commit(&self, conn: &Conn) -> Result<(), StoreError> {
        let committed = conn.answered(conn.batch("COMMIT")).await;
        self.counted(committed)?;
        if conn.takes_unconfirmed() {
            return Err(Unavailable::Unconfirmed.into());
        }
        Ok(())
    }

    /// Counts a transaction that writes.
    pub(super) fn counted<T>(&self, committed: Result<T, StoreError>) -> Result<T, StoreError> {
        match &committed {
            Ok(_) => self.work.committed(1),
            Err(error) => self.work.failed(error),
        }
        committed
    }

    /// A connection with a transaction.
    pub(super) async fn begin(&self, isolation: Isolation) -> Result<Lent<'_>, StoreError> {
        if isolation == Isolation::Write {
            self.writable()?;
        }
        let mut lent = self.get().await?;
        lent.is_between = false;
        lent.is_writing = isolation == Isolation::Write;
        let begun = match isolation {
            Isolation::Snapshot | Isolation::LongSnapshot => {
                let begin = lent.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
                lent.answered(begin).await
            }
            Isolation::Write => lent.answered(lent.begin_limited()).await,
        };
        begun?;
        lent.set_brief(isolation != Isolation::LongSnapshot);
        Ok(lent)
    }
}

impl Lent<'_> {
    /// Ends the transaction: durably if its work is done, and without a change if it is refused.
    pub(super) async fn end<T>(mut self, done: Result<T, StoreError>) -> Result<T, StoreError> {
        if done.is_ok() {
            self.commit().await?;
        } else if !self.is_closed() {
            self.set_brief(true);
            self.is_between = self.answered(self.batch("ROLLBACK")).await.is_ok();
        }
        done
    }

    async fn commit(mut self) -> Result<(), StoreError> {
        let pool = self.pool;
        let is_writing = self.is_writing;
        let committed = async {
            self.answered(self.batch("COMMIT")).await?;
            self.is_between = true;
            if self.takes_unconfirmed() {
                return Err(Unavailable::Unconfirmed.into());
            }
            Ok(())
        };
        let committed = committed.await;
        if is_writing {
            return pool.counted(committed);
        }
        committed
    }
}

impl Deref for Lent<'_> {
    type Target = Conn;

    #[expect(clippy::unwrap_used, reason = "only `drop` takes the connection")]
    fn deref(&self) -> &Conn {
        self.conn.as_ref().unwrap()
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let conn = self.conn.take();
        if !self.pool.places.is_closed() && self.is_between {
            self.pool
                .lock()
                .extend(conn.filter(|conn| !conn.is_closed()));
        }
    }
}

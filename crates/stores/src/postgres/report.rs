//! The settings of the server that safety depends on, for an operator.

use super::PostgresStore;
use super::connection::Conn;
use super::pool::Isolation;
use super::value::{get, text};
use jiff::Timestamp;
use store::StoreError;

/// The oldest version that the store is made for, as the server reports it.
const OLDEST: i32 = 150_000;

/// The server of a store: its settings, its standby servers, and the nodes that share the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseReport {
    /// The version, as the server names it.
    pub version: String,
    /// The version as a number: 150,004 is 15.4.
    pub version_number: i32,
    /// When a commit is answered: `on`, `off`, `local`, `remote_write` or `remote_apply`.
    pub synchronous_commit: String,
    /// The standby servers that commits wait for. It is empty if they wait for none.
    pub synchronous_standby_names: String,
    /// Whether the server waits until its files are on the disk.
    pub fsync: bool,
    /// Whether the server can repair pages that a power loss has cut.
    pub full_page_writes: bool,
    /// Whether the server is a standby server itself.
    pub is_standby: bool,
    /// The standby servers that are connected.
    pub standbys: Vec<Standby>,
    /// The nodes that have joined, by name.
    pub nodes: Vec<JoinedNode>,
    /// The settings that can cost data.
    pub warnings: Vec<DatabaseWarning>,
}

/// A standby server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standby {
    /// Its name.
    pub name: String,
    /// Its state, such as `streaming`. The server does not show it to every user.
    pub state: Option<String>,
    /// How commits depend on it: `sync`, `quorum`, `potential` or `async`. The server does not show it to every user.
    pub sync_state: Option<String>,
}

/// A node that shares the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedNode {
    /// Its name.
    pub name: String,
    /// The version of its program.
    pub version: String,
    /// The end of its lease.
    pub lease_until: Timestamp,
    /// Whether the lease lasts, by the database's clock.
    pub is_alive: bool,
}

/// A setting of a server that can cost data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseWarning {
    /// The server is older than version 15.
    #[error("the server is older than version 15, which the store is made for")]
    OldVersion,
    /// Files are not written durably.
    #[error("`fsync` is off: a power loss can destroy the database")]
    NoFsync,
    /// Cut pages can't be repaired.
    #[error("`full_page_writes` is off: a power loss can destroy the database")]
    NoFullPageWrites,
    /// A commit is answered before it is durable.
    #[error("`synchronous_commit` is off: a crash of the server can lose acknowledged appends")]
    NoSynchronousCommit,
    /// No standby server is connected.
    #[error("no standby server is connected: the data is on one server only")]
    NoStandby,
    /// No commit waits for a standby server.
    #[error("no commit waits for a standby server: a failover can lose acknowledged appends")]
    AsynchronousStandbys,
}

impl PostgresStore {
    /// The settings of the server that safety depends on. Nothing is written.
    ///
    /// # Errors
    ///
    /// [`StoreError::Failed`] if the database can't be reached.
    pub async fn report(&self) -> Result<DatabaseReport, StoreError> {
        self.noting(async move {
            let conn = self.pool.begin(Isolation::Snapshot).await?;
            let report = report(&conn).await;
            conn.end(report).await
        })
        .await
    }
}

async fn report(conn: &Conn) -> Result<DatabaseReport, StoreError> {
    let sql = "SELECT current_setting('server_version'), current_setting('server_version_num')::int,
                   current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
                   current_setting('fsync')::boolean, current_setting('full_page_writes')::boolean,
                   pg_is_in_recovery()";
    let row = conn.first(sql, &[]).await?.ok_or(StoreError::NotFound)?;
    let sql = "SELECT coalesce(application_name, ''), state, sync_state FROM pg_stat_replication
               WHERE state IS DISTINCT FROM 'backup'
               ORDER BY application_name, pid";
    let standby = |row| {
        Ok::<_, StoreError>(Standby {
            name: get(row, 0)?,
            state: get(row, 1)?,
            sync_state: get(row, 2)?,
        })
    };
    let standbys = conn.query(sql, &[]).await?;
    let standbys = standbys.iter().map(standby).collect::<Result<_, _>>()?;
    let mut report = DatabaseReport {
        version: get(&row, 0)?,
        version_number: get(&row, 1)?,
        synchronous_commit: get(&row, 2)?,
        synchronous_standby_names: get(&row, 3)?,
        fsync: get(&row, 4)?,
        full_page_writes: get(&row, 5)?,
        is_standby: get(&row, 6)?,
        standbys,
        nodes: nodes(conn).await?,
        warnings: Vec::new(),
    };
    report.warnings = warnings(&report);
    Ok(report)
}

async fn nodes(conn: &Conn) -> Result<Vec<JoinedNode>, StoreError> {
    let sql = "SELECT name, version, (extract(epoch FROM lease_until) * 1000000)::bigint, lease_until >= now()
               FROM nodes ORDER BY name";
    let node = |row| {
        let until = Timestamp::from_microsecond(get(row, 2)?);
        Ok(JoinedNode {
            name: text(row, 0)?,
            version: get(row, 1)?,
            lease_until: until.map_err(|error| StoreError::Damaged(error.to_string()))?,
            is_alive: get(row, 3)?,
        })
    };
    conn.query(sql, &[]).await?.iter().map(node).collect()
}

fn warnings(of: &DatabaseReport) -> Vec<DatabaseWarning> {
    let commit = of.synchronous_commit.as_str();
    let waits = !of.synchronous_standby_names.is_empty() && !["off", "local"].contains(&commit);
    let has_standby = !of.standbys.is_empty();
    let found = [
        (of.version_number < OLDEST, DatabaseWarning::OldVersion),
        (!of.fsync, DatabaseWarning::NoFsync),
        (!of.full_page_writes, DatabaseWarning::NoFullPageWrites),
        (commit == "off", DatabaseWarning::NoSynchronousCommit),
        (!has_standby, DatabaseWarning::NoStandby),
        (has_standby && !waits, DatabaseWarning::AsynchronousStandbys),
    ];
    let found = found.into_iter().filter(|(is_found, _)| *is_found);
    found.map(|(_, warning)| warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn safe() -> DatabaseReport {
        DatabaseReport {
            version: "15.4".into(),
            version_number: 150_004,
            synchronous_commit: "on".into(),
            synchronous_standby_names: "ANY 1 (*)".into(),
            fsync: true,
            full_page_writes: true,
            is_standby: false,
            standbys: vec![Standby {
                name: "one".into(),
                state: Some("streaming".into()),
                sync_state: Some("quorum".into()),
            }],
            nodes: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn each_setting_that_can_cost_data_has_a_warning() {
        type Change = fn(&mut DatabaseReport);
        use DatabaseWarning as Warning;
        let cases: [(Change, &[DatabaseWarning]); 8] = [
            (|_| {}, &[]),
            (|it| it.version_number = 140_011, &[Warning::OldVersion]),
            (|it| it.fsync = false, &[Warning::NoFsync]),
            (
                |it| it.full_page_writes = false,
                &[Warning::NoFullPageWrites],
            ),
            (|it| it.standbys.clear(), &[Warning::NoStandby]),
            (
                |it| it.synchronous_standby_names.clear(),
                &[Warning::AsynchronousStandbys],
            ),
            (
                |it| it.synchronous_commit = "local".into(),
                &[Warning::AsynchronousStandbys],
            ),
            (
                |it| it.synchronous_commit = "off".into(),
                &[Warning::NoSynchronousCommit, Warning::AsynchronousStandbys],
            ),
        ];
        for (change, expected) in cases {
            let mut report = safe();
            change(&mut report);
            assert_eq!(warnings(&report), expected, "{report:?}");
        }
    }
}

//! Deletes the threads whose time is over, and returns the space of what was deleted.

use crate::app::App;
use crate::error::render_error;
use crate::threads::key_of;
use jiff::{SignedDuration, Timestamp};
use runtime::{RuntimeError, StoreError, TenantId};
use std::time::Duration;
use tokio::task::JoinSet;

/// The pause between two sweeps.
const PAUSE: Duration = Duration::from_mins(1);
/// Threads that are looked at together.
const PAGE: usize = 100;
/// Maximum number of threads that one sweep deletes for a tenant. The next one continues.
const DELETED: usize = 1000;

/// Sweeps until the set is dropped.
pub(crate) fn start(app: &App) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let app = app.clone();
    tasks.spawn(async move {
        loop {
            tokio::time::sleep(PAUSE).await;
            sweep(&app, Timestamp::now()).await;
        }
    });
    tasks
}

/// One sweep, as of this instant.
pub(crate) async fn sweep(app: &App, now: Timestamp) {
    for (name, tenant) in &app.config().tenants {
        let Some(after) = tenant.delete_threads_after else {
            continue;
        };
        if app.is_paused(&name.as_str().into()) {
            continue;
        }
        let after = SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX);
        // A time that is longer than all of history: no thread can be that old.
        let Ok(since) = now.checked_sub(after) else {
            continue;
        };
        match delete(app, &name.as_str().into(), since).await {
            Ok(0) => {}
            Ok(n_threads) => tracing::info!(tenant = name, n_threads, "old threads are deleted"),
            Err(error) => {
                let error = render_error(&error);
                tracing::warn!(tenant = name, error, "old threads can't be deleted");
            }
        }
    }
    for database in app.databases() {
        if database.store.has_deleted()
            && let Err(error) = database.store.reclaim_at_once().await
        {
            let (shard, error) = (&database.name, render_error(&error));
            tracing::warn!(
                shard,
                error,
                "the space of what was deleted is not returned"
            );
        }
    }
}

/// Deletes the threads at rest of a tenant that have not changed since. Returns how many.
async fn delete(app: &App, tenant: &TenantId, since: Timestamp) -> Result<usize, RuntimeError> {
    let (mut n_deleted, mut after) = (0, 0);
    loop {
        let rows = app
            .store(tenant)
            .oldest_threads(tenant, after, PAGE)
            .await?;
        let Some(last) = rows.last() else {
            return Ok(n_deleted);
        };
        after = last.change;
        for row in &rows {
            if row.thread.updated_at.unwrap_or(row.thread.created_at) >= since {
                return Ok(n_deleted);
            }
            // A sub-agent's thread goes with its parent.
            let deleted = async {
                if app.runtime(tenant).has_parent(row).await? {
                    return Ok(false);
                }
                let runtime = app.runtime(tenant);
                runtime.delete_at_rest(tenant, key_of(row), row.tail).await
            };
            match deleted.await {
                Ok(is_deleted) => n_deleted += usize::from(is_deleted),
                // The fork is newer. The next sweep deletes the parent.
                Err(RuntimeError::Store(StoreError::HasForks { .. } | StoreError::NotFound)) => {}
                // The other threads are deleted nevertheless.
                Err(error @ RuntimeError::Store(StoreError::Damaged(_))) => {
                    let (thread, error) = (key_of(row), render_error(&error));
                    tracing::warn!(thread, error, "a damaged thread is not deleted");
                }
                Err(error) => return Err(error),
            }
        }
        if n_deleted >= DELETED {
            return Ok(n_deleted);
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests act as operators")]
mod tests {
    use super::*;
    use crate::config::Config;
    use runtime::NewThreadRequest;
    use stores::OpenMode;

    const CONFIG: &str = r"
        [tenants.acme]
        key_hashes = []
        delete_threads_after_days = 30

        [tenants.globex]
        key_hashes = []
    ";

    async fn keys(app: &App, tenant: &str) -> Vec<String> {
        let rows = app
            .default_store()
            .oldest_threads(&tenant.into(), 0, 100)
            .await;
        let key = |row: &runtime::ThreadRow| key_of(row).to_owned();
        rows.unwrap().iter().map(key).collect()
    }

    async fn make(app: &App, tenant: &str, key: &str) {
        let new = NewThreadRequest {
            key: Some(key.to_owned()),
            ..NewThreadRequest::default()
        };
        let made = app
            .default_runtime()
            .get_or_create(&tenant.into(), new)
            .await;
        made.unwrap();
    }

    #[tokio::test]
    async fn threads_are_deleted_after_the_time_of_their_tenant_alone() {
        let directory = tempfile::tempdir().unwrap();
        let config = Config::parse(CONFIG, &|_| None).unwrap();
        let app = App::open(config, directory.path(), OpenMode::ReadWrite)
            .await
            .unwrap();
        for tenant in ["acme", "globex"] {
            make(&app, tenant, "one").await;
            make(&app, tenant, "two").await;
        }
        let days = |n: i64| Timestamp::now() + SignedDuration::from_hours(24 * n);
        sweep(&app, days(29)).await;
        assert_eq!(keys(&app, "acme").await, ["one", "two"]);

        sweep(&app, days(31)).await;

        assert_eq!(keys(&app, "acme").await, Vec::<String>::new());
        assert_eq!(keys(&app, "globex").await, ["one", "two"]);
        assert!(!app.default_store().has_deleted());
        assert_eq!(app.default_store().activity().wal_bytes, 0);
    }

    #[tokio::test]
    async fn a_thread_with_forks_stays_until_they_are_gone() {
        let directory = tempfile::tempdir().unwrap();
        let config = Config::parse(CONFIG, &|_| None).unwrap();
        let app = App::open(config, directory.path(), OpenMode::ReadWrite)
            .await
            .unwrap();
        make(&app, "acme", "parent").await;
        let fork = Some("fork".to_owned());
        let forked = app
            .default_runtime()
            .fork(&"acme".into(), "parent", fork, None)
            .await;
        forked.unwrap();
        let later = Timestamp::now() + SignedDuration::from_hours(24 * 31);
        sweep(&app, later).await;
        assert_eq!(keys(&app, "acme").await, ["parent"]);
        sweep(&app, later).await;
        assert_eq!(keys(&app, "acme").await, Vec::<String>::new());
    }

    #[tokio::test]
    async fn a_thread_that_has_grown_is_not_deleted() {
        let directory = tempfile::tempdir().unwrap();
        let config = Config::parse(CONFIG, &|_| None).unwrap();
        let app = App::open(config, directory.path(), OpenMode::ReadWrite)
            .await
            .unwrap();
        make(&app, "acme", "one").await;
        let tenant = TenantId::from("acme");
        let row = app.default_runtime().find(&tenant, "one").await.unwrap();
        let update = timeline::ThreadUpdate {
            title: Some(Some("new".to_owned())),
            metadata: None,
        };
        app.default_runtime()
            .update_thread(&tenant, "one", update)
            .await
            .unwrap();
        let deleted = app
            .default_runtime()
            .delete_at_rest(&tenant, "one", row.tail)
            .await;
        assert!(!deleted.unwrap());
        let row = app.default_runtime().find(&tenant, "one").await.unwrap();
        let deleted = app
            .default_runtime()
            .delete_at_rest(&tenant, "one", row.tail)
            .await;
        assert!(deleted.unwrap());
    }
}

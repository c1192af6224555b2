//! The databases of a deployment, and the one of each tenant.

use super::{App, OpenError};
use crate::aitp::states::AitpStates;
use crate::config::TenantConfig;
use crate::error::render_error;
use futures_util::future::join_all;
use runtime::{Runtime, RuntimeError, StorageUsage, StoreError, TenantId};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use stores::{Activity, DurableStore, StoreHealth};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Maximum time that the figures of a shard are waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// A database: its store, and the runtime of the tenants whose data it has.
#[derive(Clone)]
pub(crate) struct Database {
    /// The name of its shard.
    pub(crate) name: String,
    pub(crate) store: Arc<dyn DurableStore>,
    pub(crate) runtime: Runtime,
    pub(super) aitp_states: Arc<AitpStates>,
    recovery: Arc<Recovery>,
}

/// The recovery of a database.
#[derive(Default)]
struct Recovery {
    /// The number of unfinished threads, once it has succeeded.
    done: OnceCell<usize>,
    /// Number of failed attempts.
    n_failed: AtomicU64,
}

/// The runs of a database are not resumed yet.
#[derive(Debug, thiserror::Error)]
#[error("the runs of the database could not be resumed yet")]
struct NotRecovered;

impl Database {
    pub(super) fn new(name: String, store: Arc<dyn DurableStore>, runtime: Runtime) -> Self {
        Self {
            name,
            aitp_states: Arc::new(AitpStates::new(runtime.clone(), true)),
            store,
            runtime,
            recovery: Arc::default(),
        }
    }

    pub(crate) fn is_recovered(&self) -> bool {
        self.recovery.done.initialized()
    }

    /// Resumes the unfinished threads once. Returns their number. Callers that wait for an attempt fail with it.
    pub(super) async fn recover(&self) -> Result<usize, RuntimeError> {
        let n_failed = &self.recovery.n_failed;
        let n_before = n_failed.load(Ordering::Relaxed);
        let recovered = self.recovery.done.get_or_try_init(|| async {
            if n_failed.load(Ordering::Relaxed) != n_before {
                return Err(StoreError::Failed(Box::new(NotRecovered)).into());
            }
            let recovered = self.runtime.recover().await;
            match &recovered {
                Ok(0) => {}
                Ok(n_threads) => tracing::info!(n_threads, "unfinished threads are resumed"),
                Err(_) => drop(n_failed.fetch_add(1, Ordering::Relaxed)),
            }
            recovered
        });
        recovered.await.copied()
    }
}

/// The place of a tenant's data.
struct Place {
    shard: Option<String>,
    is_paused: bool,
    /// Cancelled while the tenant is paused: its open streams end.
    paused: CancellationToken,
}

/// Why a changed configuration of tenants is refused.
#[derive(Debug, thiserror::Error)]
pub enum TenantsRefused {
    /// The process has not opened the database.
    #[error(
        "the tenant {tenant:?} is in the shard {shard:?}, which this process has not opened; restart it"
    )]
    UnknownShard {
        /// The tenant.
        tenant: String,
        /// Its shard.
        shard: String,
    },
    /// Requests of the tenant may be using its former database.
    #[error(
        "the tenant {tenant:?} changes its shard, and was not paused; pause it and reload, then move its data"
    )]
    NotPaused {
        /// The tenant.
        tenant: String,
    },
}

/// The databases. The first is that of `[store]`, or the file.
pub(super) struct Databases {
    pub(super) default: Database,
    shards: BTreeMap<String, Database>,
    tenants: RwLock<BTreeMap<TenantId, Place>>,
}

impl Databases {
    pub(super) fn new(
        default: Database,
        shards: BTreeMap<String, Database>,
        tenants: &BTreeMap<String, TenantConfig>,
    ) -> Self {
        Self {
            default,
            shards,
            tenants: RwLock::new(places(tenants)),
        }
    }

    /// All databases. The first is the default one.
    pub(super) fn all(&self) -> impl Iterator<Item = &Database> {
        std::iter::once(&self.default).chain(self.shards.values())
    }

    /// The database of a tenant.
    pub(super) fn of(&self, tenant: &TenantId) -> &Database {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        let place = tenants.get(tenant);
        let shard = place.and_then(|place| place.shard.as_ref());
        let shard = shard.and_then(|name| self.shards.get(name));
        shard.unwrap_or(&self.default)
    }

    pub(super) fn is_paused(&self, tenant: &TenantId) -> bool {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        tenants.get(tenant).is_some_and(|place| place.is_paused)
    }

    /// Replaces the places of the tenants, or changes nothing. A tenant changes its database only while it is paused.
    pub(super) fn replace(
        &self,
        tenants: &BTreeMap<String, TenantConfig>,
    ) -> Result<(), TenantsRefused> {
        let mut next = places(tenants);
        let mut current = self.tenants.write().unwrap_or_else(PoisonError::into_inner);
        for (tenant, place) in &next {
            let unknown = place.shard.as_ref();
            if let Some(shard) = unknown.filter(|name| !self.shards.contains_key(*name)) {
                let (tenant, shard) = (tenant.to_string(), shard.clone());
                return Err(TenantsRefused::UnknownShard { tenant, shard });
            }
            if current
                .get(tenant)
                .is_some_and(|former| former.shard != place.shard && !former.is_paused)
            {
                let tenant = tenant.to_string();
                return Err(TenantsRefused::NotPaused { tenant });
            }
        }
        for (tenant, place) in &mut next {
            let former = current.get(tenant);
            if let Some(former) = former.filter(|former| former.is_paused == place.is_paused) {
                place.paused = former.paused.clone();
            } else if let Some(former) = former.filter(|_| place.is_paused) {
                former.paused.cancel();
            }
        }
        *current = next;
        Ok(())
    }

    /// Cancelled while the tenant is paused.
    fn paused(&self, tenant: &TenantId) -> CancellationToken {
        let tenants = self.tenants.read().unwrap_or_else(PoisonError::into_inner);
        let place = tenants.get(tenant);
        place.map(|place| place.paused.clone()).unwrap_or_default()
    }
}

fn places(tenants: &BTreeMap<String, TenantConfig>) -> BTreeMap<TenantId, Place> {
    let places = tenants.iter().map(|(name, tenant)| {
        let paused = CancellationToken::new();
        if tenant.is_paused {
            paused.cancel();
        }
        let place = Place {
            shard: tenant.shard.clone(),
            is_paused: tenant.is_paused,
            paused,
        };
        (TenantId::from(name.as_str()), place)
    });
    places.collect()
}

impl App {
    /// The runtime of a tenant: that of its database.
    pub fn runtime(&self, tenant: &TenantId) -> &Runtime {
        &self.databases.of(tenant).runtime
    }

    /// The store of a tenant, for the work of an operator.
    pub fn store(&self, tenant: &TenantId) -> &dyn DurableStore {
        &*self.databases.of(tenant).store
    }

    /// The runtime of the default database: the file, or that of `[store]`.
    pub fn default_runtime(&self) -> &Runtime {
        &self.databases.default.runtime
    }

    /// The default database, for the work of an operator.
    pub fn default_store(&self) -> &dyn DurableStore {
        &*self.databases.default.store
    }

    /// The AITP states of a tenant's threads.
    pub(crate) fn aitp_states(&self, tenant: &TenantId) -> &Arc<AitpStates> {
        &self.databases.of(tenant).aitp_states
    }

    /// All databases. The first is the default one.
    pub(crate) fn databases(&self) -> impl Iterator<Item = &Database> {
        self.databases.all()
    }

    /// The names of all databases. The first is the default one.
    pub fn shards(&self) -> Vec<String> {
        self.databases.all().map(|it| it.name.clone()).collect()
    }

    /// The name of a tenant's shard.
    pub fn shard(&self, tenant: &TenantId) -> &str {
        &self.databases.of(tenant).name
    }

    /// This deployment with one database alone, for every tenant; none if there is no such shard. Call
    /// [`App::shutdown`] on the whole one.
    #[must_use]
    pub fn with_only(&self, shard: &str) -> Option<Self> {
        let mut all = self.databases.all();
        let database = all.find(|it| it.name == shard)?;
        let only = Databases::new(database.clone(), BTreeMap::new(), &BTreeMap::new());
        Some(Self {
            databases: Arc::new(only),
            ..self.clone()
        })
    }

    /// Whether the requests of a tenant are refused.
    pub(crate) fn is_paused(&self, tenant: &TenantId) -> bool {
        self.databases.is_paused(tenant)
    }

    /// Cancelled while a tenant is paused.
    pub(crate) fn paused(&self, tenant: &TenantId) -> CancellationToken {
        self.databases.paused(tenant)
    }

    /// The work of all stores together. The health is the worst one.
    pub(crate) fn activity(&self) -> Activity {
        let all = self.databases.all();
        let each = all.map(|database| database.store.activity());
        let sum = each.reduce(|sum, one| Activity {
            file_bytes: sum.file_bytes + one.file_bytes,
            wal_bytes: sum.wal_bytes + one.wal_bytes,
            n_commits: sum.n_commits + one.n_commits,
            n_requests: sum.n_requests + one.n_requests,
            n_failures: sum.n_failures + one.n_failures,
            n_damaged: sum.n_damaged + one.n_damaged,
            health: match (sum.health, one.health) {
                (StoreHealth::Damaged, _) | (_, StoreHealth::Damaged) => StoreHealth::Damaged,
                (StoreHealth::CommitsFail, _) | (_, StoreHealth::CommitsFail) => {
                    StoreHealth::CommitsFail
                }
                (StoreHealth::Healthy, StoreHealth::Healthy) => StoreHealth::Healthy,
            },
        });
        sum.unwrap_or_default()
    }

    /// Number of threads that this process works on.
    pub(crate) fn n_running(&self) -> usize {
        let all = self.databases.all();
        all.map(|database| database.runtime.running()).sum()
    }

    /// Number of unfinished threads that are not recovered yet.
    pub(crate) fn n_unrecovered(&self) -> usize {
        let all = self.databases.all();
        all.map(|database| database.runtime.unrecovered()).sum()
    }

    /// The usage of each tenant in its database. The tenants of a database that does not answer are left out.
    pub(crate) async fn usage(&self) -> BTreeMap<TenantId, StorageUsage> {
        let reads = self.databases.all().map(async |database| {
            let read = timeout(PATIENCE, database.store.usage()).await;
            let late = |_| StoreError::Failed("the database does not answer".into());
            (database, read.map_err(late).flatten())
        });
        let mut usage = BTreeMap::new();
        for (database, read) in join_all(reads).await {
            match read {
                Ok(read) => usage.extend(
                    // What a moved tenant has left in its former database is not in use.
                    read.into_iter()
                        .filter(|(tenant, _)| std::ptr::eq(self.databases.of(tenant), database)),
                ),
                Err(error) => {
                    let (shard, error) = (&database.name, render_error(&error));
                    tracing::debug!(shard, error, "a database has no figures");
                }
            }
        }
        usage
    }
}

impl OpenError {
    /// The error as one of a shard.
    #[cfg(feature = "postgres")]
    pub(super) fn of_shard(self, name: &str) -> Self {
        let Self::Database(source) = self else {
            return self;
        };
        let name = name.to_owned();
        Self::Shard { name, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use stores::OpenMode;

    fn tenants(text: &str) -> BTreeMap<String, TenantConfig> {
        let store = "[store]\nurl = \"postgres://a@db/x\"\n[store.shards.east]\nurl = \"postgres://a@db/y\"\n";
        let config = Config::parse(&format!("{store}{text}"), &|_| None);
        config.unwrap().tenants
    }

    /// A deployment with a second file in place of a shard's database.
    async fn app(directory: &std::path::Path) -> App {
        let config = Config::parse("[tenants.acme]\nkey_hashes = []\n", &|_| None).unwrap();
        let (one, two) = (directory.join("one"), directory.join("two"));
        let app = App::open(config.clone(), &one, OpenMode::ReadWrite).await;
        let (app, other) = (
            app.unwrap(),
            App::open(config, &two, OpenMode::ReadWrite).await,
        );
        let east = Database {
            name: "east".to_owned(),
            ..other.unwrap().databases.default.clone()
        };
        let shards = BTreeMap::from([("east".to_owned(), east)]);
        let acme = tenants("[tenants.acme]\n");
        let databases = Databases::new(app.databases.default.clone(), shards, &acme);
        App {
            databases: Arc::new(databases),
            ..app
        }
    }

    #[tokio::test]
    async fn a_tenant_changes_its_database_only_while_it_is_paused() {
        let directory = tempfile::tempdir().unwrap();
        let app = app(directory.path()).await;
        let acme = TenantId::from("acme");
        let moved = tenants("[tenants.acme]\nshard = \"east\"\n");
        let refused = app.replace_tenants(&moved).unwrap_err();
        assert!(matches!(refused, TenantsRefused::NotPaused { .. }));
        assert_eq!((app.shard(&acme), app.is_paused(&acme)), ("default", false));

        let streams = app.paused(&acme);
        let paused = tenants("[tenants.acme]\npaused = true\n");
        app.replace_tenants(&paused).unwrap();
        assert!(app.is_paused(&acme) && streams.is_cancelled());
        app.replace_tenants(&moved).unwrap();
        assert_eq!((app.shard(&acme), app.is_paused(&acme)), ("east", false));
        assert!(!app.paused(&acme).is_cancelled());
    }

    #[tokio::test]
    async fn a_database_that_is_not_open_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let app = app(directory.path()).await;
        let only = app.with_only("default").unwrap();
        let paused = tenants("[tenants.acme]\npaused = true\n");
        only.replace_tenants(&paused).unwrap();
        let moved = tenants("[tenants.acme]\nshard = \"east\"\n");
        let refused = only.replace_tenants(&moved).unwrap_err();
        assert!(matches!(refused, TenantsRefused::UnknownShard { .. }));
        assert!(app.with_only("west").is_none());
    }
}

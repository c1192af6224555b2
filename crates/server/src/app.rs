//! The composition root: the parts of a deployment, put together.

mod compare;
mod databases;
mod durable;
mod exchange;
mod source_archive;

pub(crate) use compare::CheckedDocument;
pub(crate) use databases::Database;
pub use databases::TenantsRefused;
pub use exchange::{Exported, ImportSource};

use crate::auth::{Keys, TokenKeysError, Tokens};
use crate::body::budget::BodyLease;
use crate::budgets::Budgets;
use crate::config::{Config, DEFAULT_SHARD, TenantConfig, TenantLimits};
use crate::error::render_error;
use crate::metrics::Metrics;
use crate::outbound::{Outbound, OutboundError};
use crate::reactors::{AgentSummary, AgentsError, ConfiguredAgents, ToolSummary};
use databases::Databases;
use futures_util::future::join_all;
use jiff::Timestamp;
use runtime::{
    MemoryStore, OptionsRefused, RunLimits, RunSlots, Runtime, RuntimeError, RuntimeOptions,
    Sources, Store, StoreError, TenantId, TenantRunLimits,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use stores::private;
use stores::{DurableStore, OpenMode, SqliteStore, StoreKey};
use tokio::sync::OnceCell;
use tokio_util::task::TaskTracker;

/// The file in the data directory with the address of the running server, for commands on the same
/// machine.
pub(crate) const LOCAL_SERVER_FILE: &str = "server.json";
/// The store's file in the data directory.
const STORE_FILE: &str = "loomline.db";
/// The default directory of the tool `read_file`, in the data directory.
const FILES: &str = "files";
/// The directory of the stored tool lists of MCP servers, in the data directory.
const MCP: &str = "mcp";

/// Why a deployment can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data directory can't be created.
    #[error("the directory {path} can't be made")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The data directory has no store.
    #[error("there is no store at {path}")]
    NoStore {
        /// The file.
        path: PathBuf,
    },
    /// The store can't be opened.
    #[error("the store {path} can't be opened")]
    Store {
        /// The file.
        path: PathBuf,
        /// Why.
        source: StoreError,
    },
    /// The PostgreSQL database can't be used.
    #[error("the database of [store] can't be used")]
    Database(#[source] StoreError),
    /// The database of a shard can't be used.
    #[error("the database of the shard {name:?} can't be used")]
    Shard {
        /// The shard.
        name: String,
        /// Why.
        source: StoreError,
    },
    /// The configuration names a database, and the program can't use one.
    #[error(
        "[store] names a PostgreSQL database, and this build can't use one: build with the feature \"postgres\""
    )]
    NoPostgres,
    /// A file of certificates can't be read, or the name of this node can't be stored.
    #[error("{path} can't be read or written")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The agents can't be made.
    #[error(transparent)]
    Agents(#[from] AgentsError),
    /// The issuer's token keys can't be used.
    #[error("the keys in [auth.jwt] can't be used")]
    Tokens(#[from] TokenKeysError),
    /// The keys of the token issuer can't be fetched.
    #[error("the keys in [auth.jwt] can't be fetched")]
    Outbound(#[from] OutboundError),
}

/// A deployment: its databases, its agents and a runtime for each database. Clones share it.
#[derive(Clone)]
pub struct App {
    config: Arc<Config>,
    databases: Arc<Databases>,
    /// Prevents another server from using the data directory.
    _lock: Option<Arc<File>>,
    /// The runtime over a store in memory.
    ephemeral: Runtime,
    opened_at: Timestamp,
    agents: ConfiguredAgents,
    metrics: Metrics,
    budgets: Arc<Budgets>,
    /// The tasks of open `WebSocket` connections.
    sockets: TaskTracker,
    keys: Arc<RwLock<Arc<Keys>>>,
    tokens: Option<Arc<Tokens>>,
    /// Whether the MCP servers are connected.
    connected: Arc<OnceCell<()>>,
}

impl App {
    /// Opens the store in a directory and builds the configured agents. Nothing runs yet: call
    /// [`App::recover`], or [`serve`](crate::serve), which calls it.
    ///
    /// With [`OpenMode::ReadOnly`] nothing is created and nothing can be written; another process may
    /// serve the store at the same time.
    pub async fn open(config: Config, data_dir: &Path, mode: OpenMode) -> Result<Self, OpenError> {
        let config = Arc::new(config);
        let own_files = data_dir.join(FILES);
        let files = config.tools.read_file_root.as_deref();
        if mode == OpenMode::ReadWrite {
            make_directory(data_dir)?;
            if files.is_none() {
                make_directory(&own_files)?;
            }
        }
        let lists = Some(data_dir.join(MCP));
        let files = files.unwrap_or(&own_files);
        let metrics = Metrics::default();
        let agents = ConfiguredAgents::new(Arc::clone(&config), files, lists, &metrics)?;
        let budgets = Arc::new(Budgets::new(&config));
        let durable::Opened { store, lock, node } =
            durable::open(&config, data_dir, mode, budgets.durable().clone()).await?;
        let shards = durable::open_shards(&config, mode, budgets.durable()).await?;
        if mode == OpenMode::ReadWrite {
            for path in open_to_others(data_dir) {
                tracing::warn!(path = %path.display(), "users other than the owner can read this path; run chmod go= on it");
            }
        }
        let options = RuntimeOptions {
            run_timeout: config.server.run_timeout,
            thread_cache_bytes: config.limits.thread_cache_bytes,
            message_bytes: config.limits.message_bytes,
            restart_pause: config.limits.restart_pause,
            ..RuntimeOptions::default()
        };
        let runs = RunSlots::new(run_limits(&config));
        let over = |store: Arc<dyn Store>, node: Option<&String>| {
            let mut sources = Sources {
                observer: metrics.of_runs(&config.default_agent),
                runs: Arc::clone(&runs),
                ..Sources::default()
            };
            if let Some(node) = node {
                sources.node.clone_from(node);
            }
            Runtime::with_sources(store, Arc::new(agents.clone()), options, sources)
        };
        let database = |name: String, store: Arc<dyn DurableStore>| {
            let runtime = over(store.clone(), node.as_ref());
            Database::new(name, store, runtime)
        };
        let shards = shards.into_iter();
        let shards = shards.map(|(name, store)| (name.clone(), database(name, store)));
        let default = database(DEFAULT_SHARD.to_owned(), store);
        let databases = Databases::new(default, shards.collect(), &config.tenants);
        let memory = MemoryStore::with_limits(
            budgets.ephemeral().clone(),
            config.limits.ephemeral_bytes as u64,
        );
        let passing = over(Arc::new(memory), None);
        let keys = Arc::new(RwLock::new(Arc::new(Keys::new(&config.tenants))));
        let tokens = tokens(&config)?.map(Arc::new);
        Ok(Self {
            config,
            databases: Arc::new(databases),
            _lock: lock.map(Arc::new),
            ephemeral: passing,
            opened_at: Timestamp::now(),
            agents,
            metrics,
            budgets,
            sockets: TaskTracker::new(),
            keys,
            tokens,
            connected: Arc::default(),
        })
    }

    /// Encrypts the store in a directory with another key, or decrypts it; see [`stores::rekey`].
    /// Blocks. Returns the paths of the store's copies, which are not changed.
    pub fn rekey(
        config: &Config,
        data_dir: &Path,
        key: Option<&StoreKey>,
    ) -> Result<Vec<PathBuf>, OpenError> {
        let path = store_file(data_dir);
        match SqliteStore::exists(&path) {
            Ok(true) => stores::rekey(&path, config.store.key.as_ref(), key)
                .map_err(|source| OpenError::Store { path, source }),
            Ok(false) => Err(OpenError::NoStore { path }),
            Err(source) => Err(OpenError::Store { path, source }),
        }
    }

    /// The configuration that it was opened with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The runtime with the same agents over a store in memory, for conversations that must not be
    /// stored. The caller deletes the threads that it makes there.
    pub fn ephemeral(&self) -> &Runtime {
        &self.ephemeral
    }

    /// When it was opened.
    pub(crate) fn opened_at(&self) -> Timestamp {
        self.opened_at
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The share of the budgets for one request body of a tenant.
    pub(crate) fn body_lease(&self, tenant: &TenantId) -> BodyLease {
        self.budgets.body_lease(tenant)
    }

    /// The size of all request bodies in memory, with their parsed values, in bytes.
    pub fn body_bytes_in_flight(&self) -> usize {
        self.budgets.bodies().in_flight()
    }

    /// The tasks of open `WebSocket` connections.
    pub(crate) fn sockets(&self) -> &TaskTracker {
        &self.sockets
    }

    pub(crate) fn budgets(&self) -> &Budgets {
        &self.budgets
    }

    /// The agents, by name.
    pub fn agents(&self) -> Vec<AgentSummary> {
        self.agents.list()
    }

    /// The tool of an agent; the default agent if none is named.
    pub(crate) fn tool_of(&self, agent: Option<&str>, tool: &str) -> Option<ToolSummary> {
        self.agents.tool(agent, tool)
    }

    /// Passes each tool of each agent to `see`.
    #[cfg(feature = "web")]
    pub(crate) fn each_tool(&self, mut see: impl FnMut(&str, &upp::Tool)) {
        for (name, agent) in self.agents.agents().iter() {
            for tool in agent.tools() {
                see(name, tool);
            }
        }
    }

    /// The names of the agents, in order.
    #[cfg(feature = "web")]
    pub(crate) fn agent_names(&self) -> Vec<String> {
        self.agents.agents().keys().cloned().collect()
    }

    /// Whether an agent has this name.
    pub(crate) fn has_agent(&self, name: &str) -> bool {
        self.agents.agents().contains_key(name)
    }

    /// The names of the configured models, each with its provider's.
    pub(crate) fn models(&self) -> Vec<(String, String)> {
        self.agents.models()
    }

    /// Checks that an agent can run with these parameters; the default agent if none is named.
    pub(crate) fn check_params(
        &self,
        agent: Option<&str>,
        params: Option<&Value>,
    ) -> Result<(), OptionsRefused> {
        self.agents.check_params(agent, params)
    }

    /// Replaces all keys, limits and places of the tenants at once, without a restart, and returns the number of keys.
    /// Open streams continue if their key is unchanged and their tenant is not paused; all others end. Used rate and
    /// tenant budgets remain used. Other parts of the configuration can't be changed this way.
    ///
    /// # Errors
    ///
    /// A tenant that was not paused changes its shard, or its shard was not there at the start. Nothing is changed then.
    pub fn replace_tenants(
        &self,
        tenants: &BTreeMap<String, TenantConfig>,
    ) -> Result<usize, TenantsRefused> {
        // The lock orders two calls.
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        self.databases.replace(tenants)?;
        let next = Arc::new(keys.replaced_by(tenants));
        let former = std::mem::replace(&mut *keys, Arc::clone(&next));
        drop(keys);
        self.budgets.replace(tenants);
        former.revoke_all_but(&next);
        Ok(next.len())
    }

    /// The current keys.
    pub(crate) fn keys(&self) -> Arc<Keys> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&keys)
    }

    /// The verifier of tokens, if the configuration accepts tokens.
    pub(crate) fn tokens(&self) -> Option<&Tokens> {
        self.tokens.as_deref()
    }

    /// Connects to the MCP servers, then continues unfinished runs in the background. Returns the number
    /// of unfinished threads. Only the first call does anything; a second one would mistake running
    /// threads for unfinished ones. Logs servers that can't be reached, and waits at most ten seconds
    /// for them. A database that fails is logged, and the next call tries it again.
    ///
    /// # Errors
    ///
    /// The default database fails.
    pub async fn recover(&self) -> Result<usize, RuntimeError> {
        self.connect().await;
        let each = self.databases().map(|database| async move {
            let recovered = database.recover().await;
            if let Err(error) = &recovered {
                let (shard, error) = (&database.name, render_error(error));
                tracing::warn!(shard, error, "the runs of a database are not resumed");
            }
            match recovered {
                Err(_) if database.name != DEFAULT_SHARD => Ok(0),
                recovered => recovered,
            }
        });
        join_all(each).await.into_iter().sum()
    }

    /// Continues the unfinished runs in the database of a tenant alone, unless it was done.
    pub(crate) async fn recover_for(&self, tenant: &TenantId) -> Result<(), RuntimeError> {
        let database = self.databases.of(tenant);
        if !database.is_recovered() {
            self.connect().await;
            database.recover().await?;
        }
        Ok(())
    }

    async fn connect(&self) {
        let connect = self.connected.get_or_init(|| self.agents.connect());
        connect.await;
    }

    /// Whether recovery has read the list of unfinished threads in the default database.
    pub fn is_recovered(&self) -> bool {
        self.databases.default.is_recovered()
    }

    /// Whether it has read the list in all databases.
    pub(crate) fn is_all_recovered(&self) -> bool {
        self.databases().all(Database::is_recovered)
    }

    /// Stops all work, closes the stores and ends the MCP servers that are child processes. Unfinished
    /// runs continue at the next [`App::recover`].
    pub async fn shutdown(&self) -> Result<(), RuntimeError> {
        let databases = self.databases().map(|database| &database.runtime);
        let each = databases.chain([&self.ephemeral]).map(Runtime::shutdown);
        let stopped = join_all(each).await.into_iter().collect::<Result<(), _>>();
        self.agents.close().await;
        stopped
    }
}

/// The limits of concurrent runs, in the runtime's form.
fn run_limits(config: &Config) -> RunLimits {
    let of = |limits: &TenantLimits| TenantRunLimits {
        concurrent_runs: limits.concurrent_runs,
        queued_triggers: limits.queued_triggers,
    };
    let tenants = config.tenants.iter();
    RunLimits {
        concurrent_runs: config.limits.concurrent_runs,
        tenant: of(&config.limits.tenant),
        tenants: tenants
            .map(|(name, tenant)| (TenantId::from(name.as_str()), of(&tenant.limits)))
            .collect(),
        models: config.limits.model_runs.clone(),
    }
}

/// The verifier of tokens; none if the configuration accepts no tokens.
pub(crate) fn tokens(config: &Config) -> Result<Option<Tokens>, OpenError> {
    let Some(tokens) = &config.tokens else {
        return Ok(None);
    };
    let outbound = Outbound::new(config.outbound.clone())?;
    Ok(Some(Tokens::new(tokens.clone(), outbound)?))
}

/// The store's file in a data directory.
pub fn store_file(data_dir: &Path) -> PathBuf {
    data_dir.join(STORE_FILE)
}

/// The paths of the store's files in a data directory, whether or not they exist.
pub fn store_files(data_dir: &Path) -> Vec<PathBuf> {
    SqliteStore::files(&store_file(data_dir))
}

/// The paths in a data directory that other users may read or write: the directory itself, and the files
/// with conversations.
pub fn open_to_others(data_dir: &Path) -> Vec<PathBuf> {
    let mut paths = vec![data_dir.to_owned()];
    paths.extend(store_files(data_dir));
    paths.push(data_dir.join(LOCAL_SERVER_FILE));
    private::open_to_others(paths)
}

/// Creates a directory that only its owner can open.
fn make_directory(path: &Path) -> Result<(), OpenError> {
    private::make_directory(path).map_err(|source| OpenError::Directory {
        path: path.to_owned(),
        source,
    })
}

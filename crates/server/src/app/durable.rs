//! Opens the store that the configuration names.

use super::{OpenError, store_file};
use crate::config::Config;
#[cfg(feature = "postgres")]
use crate::config::PostgresConfig;
#[cfg(feature = "postgres")]
use futures_util::future::try_join_all;
use runtime::Quotas;
#[cfg(feature = "postgres")]
use secrecy::ExposeSecret as _;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use stores::{DurableStore, OpenMode, SqliteOptions, SqliteStore};
#[cfg(feature = "postgres")]
use stores::{PostgresOptions, PostgresStore};

/// The file in the data directory with the name of this node among those that share the store.
#[cfg(feature = "postgres")]
const NODE_FILE: &str = "node";

/// An open store.
pub(super) struct Opened {
    pub(super) store: Arc<dyn DurableStore>,
    /// Prevents another server from using the data directory, if the store does not.
    pub(super) lock: Option<File>,
    /// The name of this node of a shared store.
    pub(super) node: Option<String>,
}

#[cfg_attr(
    not(feature = "postgres"),
    expect(clippy::unused_async, reason = "a file is opened at once")
)]
pub(super) async fn open(
    config: &Config,
    data_dir: &Path,
    mode: OpenMode,
    quotas: Quotas,
) -> Result<Opened, OpenError> {
    match &config.store.postgres {
        None => open_file(config, data_dir, mode, quotas),
        #[cfg(feature = "postgres")]
        Some(database) => open_database(config, database, data_dir, mode, quotas).await,
        #[cfg(not(feature = "postgres"))]
        Some(_) => Err(OpenError::NoPostgres),
    }
}

/// The databases of the shards, by name.
#[cfg_attr(
    not(feature = "postgres"),
    expect(clippy::unused_async, reason = "there is no database")
)]
pub(super) async fn open_shards(
    config: &Config,
    mode: OpenMode,
    quotas: &Quotas,
) -> Result<BTreeMap<String, Arc<dyn DurableStore>>, OpenError> {
    #[cfg(feature = "postgres")]
    {
        let shards = config.store.shards.iter();
        let each = shards.map(|(name, database)| async move {
            let store = database.open(mode, quotas.clone()).await;
            let store = store.map_err(|error| error.of_shard(name))?;
            let store: Arc<dyn DurableStore> = Arc::new(store);
            Ok::<_, OpenError>((name.clone(), store))
        });
        Ok(try_join_all(each).await?.into_iter().collect())
    }
    #[cfg(not(feature = "postgres"))]
    {
        let _ = (config, mode, quotas);
        Ok(BTreeMap::new())
    }
}

fn open_file(
    config: &Config,
    data_dir: &Path,
    mode: OpenMode,
    quotas: Quotas,
) -> Result<Opened, OpenError> {
    let path = store_file(data_dir);
    if mode == OpenMode::ReadOnly {
        match SqliteStore::exists(&path) {
            Ok(true) => {}
            Ok(false) => return Err(OpenError::NoStore { path }),
            Err(source) => return Err(OpenError::Store { path, source }),
        }
    }
    let options = SqliteOptions {
        mode,
        key: config.store.key.clone(),
        quotas,
        ..SqliteOptions::default()
    };
    match SqliteStore::open(&path, &options) {
        Ok(store) => Ok(Opened {
            store: Arc::new(store),
            lock: None,
            node: None,
        }),
        Err(source) => Err(OpenError::Store { path, source }),
    }
}

#[cfg(feature = "postgres")]
async fn open_database(
    config: &Config,
    database: &PostgresConfig,
    data_dir: &Path,
    mode: OpenMode,
    quotas: Quotas,
) -> Result<Opened, OpenError> {
    let (mut lock, mut node) = (None, None);
    if mode == OpenMode::ReadWrite {
        let path = store_file(data_dir);
        if path.exists() {
            tracing::warn!(path = %path.display(), "this store is not used: the configuration names a database");
        }
        let locked = SqliteStore::lock(&path);
        lock = Some(locked.map_err(|source| OpenError::Store { path, source })?);
        node = Some(match &config.server.node {
            Some(name) => name.clone(),
            None => stored_name(data_dir)?,
        });
    }
    let store = database.open(mode, quotas).await?;
    Ok(Opened {
        store: Arc::new(store),
        lock,
        node,
    })
}

/// The name of the node that uses a data directory. It is made at the first start: a server that starts again takes up
/// its own runs at once.
#[cfg(feature = "postgres")]
fn stored_name(data_dir: &Path) -> Result<String, OpenError> {
    use runtime::{Ids as _, SystemIds};
    use std::io::Write as _;
    use stores::private;
    let path = data_dir.join(NODE_FILE);
    let name = || -> std::io::Result<String> {
        match std::fs::read_to_string(&path) {
            Ok(text) if !text.trim().is_empty() => return Ok(text.trim().to_owned()),
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            Ok(_) | Err(_) => {}
        }
        let name = SystemIds.mint();
        let mut file = private::options()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)?;
        writeln!(file, "{name}")?;
        Ok(name)
    };
    name().map_err(|source| OpenError::File {
        path: path.clone(),
        source,
    })
}

#[cfg(feature = "postgres")]
impl PostgresConfig {
    /// Connects to the database. With [`OpenMode::ReadWrite`] the tables are created or brought up to date.
    pub async fn open(&self, mode: OpenMode, quotas: Quotas) -> Result<PostgresStore, OpenError> {
        let authorities = match &self.ca {
            Some(path) => Some(std::fs::read(path).map_err(|source| {
                let path = path.clone();
                OpenError::File { path, source }
            })?),
            None => None,
        };
        let listen_url = self.listen_url.as_ref();
        let options = PostgresOptions {
            mode,
            listen_url: listen_url.map(|url| url.expose_secret().to_owned()),
            prepared: self.prepared,
            lanes: self.writers,
            readers: self.readers,
            authorities,
            quotas,
            ..PostgresOptions::new(self.url.expose_secret())
        };
        let store = PostgresStore::open(&options).await;
        store.map_err(OpenError::Database)
    }
}

//! Finds the data directory and opens its store.

use crate::args::{Command, Whose};
use crate::client::Client;
use crate::environment::environment;
use crate::error::CliError;
use crate::setup::ModelChoice;
#[cfg(feature = "postgres")]
use runtime::Quotas;
use runtime::{Ids as _, SystemIds, TenantId};
use server::auth::tenant_of;
use server::config::{Checked, DEFAULT_SHARD};
use server::telemetry::{self, TelemetryConfig, TelemetryGuard};
use server::{App, Config, LocalServer, OpenError, OpenMode, StoreKey};
use std::path::PathBuf;

/// The paths of the data and the configuration.
pub(crate) struct StoreLocation {
    pub(crate) data: Option<PathBuf>,
    pub(crate) config: Option<PathBuf>,
    /// The model that replaces a configuration.
    pub(crate) model: Option<ModelChoice>,
}

/// The variable with the key of the server that `--server` names.
const SERVER_KEY: &str = "LOOMLINE_KEY";

/// How threads are reached.
pub(crate) enum Reach {
    /// In the store, by this process.
    Store(Box<App>, TenantId),
    /// In a server.
    Server(Client),
}

impl Reach {
    /// Closes the store, if it was opened.
    pub(crate) async fn close(self) -> Result<(), CliError> {
        match self {
            Self::Store(app, _) => Ok(app.shutdown().await?),
            Self::Server(_) => Ok(()),
        }
    }
}

/// The export of spans, for the commands that run agents; off unless OpenTelemetry's variables or the
/// configuration name a collector. The variables win.
pub(crate) fn telemetry(
    place: &StoreLocation,
    command: &Command,
) -> Result<Option<TelemetryGuard>, CliError> {
    if !matches!(command, Command::Serve { .. } | Command::Run(_)) {
        return Ok(None);
    }
    let config = match TelemetryConfig::from_env(&environment)? {
        None if place.config.is_some() => place.checked()?.config.telemetry,
        config => config,
    };
    Ok(match config {
        Some(config) => Some(telemetry::install(&config)?),
        None => None,
    })
}

impl StoreLocation {
    /// The configuration, or development mode.
    pub(crate) fn config(&self) -> Result<Config, CliError> {
        let (name, text) = self.text()?;
        Config::parse(&text, &environment).map_err(|error| CliError::Config(name, error))
    }

    /// The configuration and its findings. A missing provider key is not an error.
    pub(crate) fn checked(&self) -> Result<Checked, CliError> {
        let (name, text) = self.text()?;
        Config::check(&text, &environment).map_err(|error| CliError::Config(name, error))
    }

    /// The file's name and text; an empty text is development mode.
    fn text(&self) -> Result<(String, String), CliError> {
        if let Some(model) = &self.model {
            return Ok(("of --model".to_owned(), model.configuration()));
        }
        let Some(file) = &self.config else {
            return Ok((String::new(), String::new()));
        };
        let name = file.display().to_string();
        let mut text =
            std::fs::read_to_string(file).map_err(CliError::io(format!("read {name}")))?;
        // What some editors begin a file with is no part of it.
        if text.starts_with('\u{feff}') {
            text.remove(0);
        }
        Ok((name, text))
    }

    /// The directory of the data.
    pub(crate) fn directory(&self, config: &Config) -> Result<PathBuf, CliError> {
        if let Some(directory) = self.data.clone().or_else(|| config.server.data.clone()) {
            return Ok(directory);
        }
        let base = environment("XDG_DATA_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        let base = base
            .or_else(|| environment("HOME").map(|home| PathBuf::from(home).join(".local/share")));
        base.map(|base| base.join("loomline"))
            .ok_or_else(|| CliError::Usage {
                what: "there is no home directory for the data, because HOME is not set; give a directory with --data or LOOMLINE_DATA".to_owned(),
            })
    }

    /// Opens access to the threads of a tenant: the named one, or the only one. The access is through
    /// the named server, else the server of the data directory, else the store itself.
    pub(crate) async fn reach(&self, whose: &Whose, mode: OpenMode) -> Result<Reach, CliError> {
        if let Some(url) = &whose.server {
            if self.model.is_some() {
                return Err(CliError::Usage {
                    what: format!("the server at {url} has its own models; leave out --model"),
                });
            }
            let key = environment(SERVER_KEY).map(Into::into);
            return Client::at(url, key).map(Reach::Server);
        }
        // The keys of providers may be missing here: only the server needs them.
        let directory = self.directory(&self.checked()?.config)?;
        if let Some(server) = LocalServer::find(&directory) {
            if self.model.is_some() {
                return Err(CliError::Usage {
                    what: format!(
                        "a server uses {} and has its own models; leave out --model, or choose another directory with --data",
                        directory.display()
                    ),
                });
            }
            return Client::local(server, whose.tenant.clone()).map(Reach::Server);
        }
        let mut config = self.config()?;
        let tenants = config.tenants.keys().map(String::as_str);
        let tenant =
            tenant_of(tenants, whose.tenant.as_deref()).map_err(|error| CliError::Usage {
                what: error.to_string(),
            })?;
        // A command is no server: under the name of one, it would take that one's runs.
        config.server.node = Some(SystemIds.mint());
        let app = App::open(config, &directory, mode).await;
        let app = app.map_err(|error| unopened(error, directory))?;
        Ok(Reach::Store(Box::new(app), tenant))
    }

    /// Opens the store for reading only.
    pub(crate) async fn look(&self) -> Result<App, CliError> {
        let config = self.config()?;
        let directory = self.directory(&config)?;
        let app = App::open(config, &directory, OpenMode::ReadOnly).await;
        app.map_err(|error| unopened(error, directory))
    }

    /// The database of a shard; none if the default one is a file. A server may use it.
    #[cfg(feature = "postgres")]
    pub(crate) async fn database(
        &self,
        shard: &str,
        mode: OpenMode,
    ) -> Result<Option<server::PostgresStore>, CliError> {
        // The keys of providers may be missing here: only the server needs them.
        let store = self.checked()?.config.store;
        let database = if shard == DEFAULT_SHARD {
            store.postgres
        } else {
            let unknown = || no_shard(shard, store.shards.keys());
            Some(store.shards.get(shard).cloned().ok_or_else(unknown)?)
        };
        match database {
            None => Ok(None),
            Some(database) => {
                let opened = Box::pin(database.open(mode, Quotas::default())).await;
                opened.map(Some).map_err(CliError::Open)
            }
        }
    }

    /// The named shard, else that of a tenant.
    pub(crate) fn shard(&self, named: Option<String>, tenant: &str) -> Result<String, CliError> {
        if let Some(named) = named {
            return Ok(named);
        }
        let tenants = self.checked()?.config.tenants;
        let shard = tenants.get(tenant).and_then(|it| it.shard.clone());
        Ok(shard.unwrap_or_else(|| DEFAULT_SHARD.to_owned()))
    }

    /// The store's file, which exists, and its key.
    pub(crate) fn store_file(&self) -> Result<(PathBuf, Option<StoreKey>), CliError> {
        // The keys of providers may be missing here: only the server needs them.
        let config = self.checked()?.config;
        let directory = self.directory(&config)?;
        let file = server::store_file(&directory);
        if file.exists() {
            Ok((file, config.store.key))
        } else {
            Err(CliError::NoStore { directory })
        }
    }

    /// Rewrites the store with another key, or with none.
    pub(crate) async fn rekey(&self, key: Option<StoreKey>) -> Result<Vec<PathBuf>, CliError> {
        let config = self.config()?;
        let directory = self.directory(&config)?;
        let work = tokio::task::spawn_blocking(move || {
            App::rekey(&config, &directory, key.as_ref())
                .map_err(|error| unopened(error, directory))
        });
        work.await.map_err(|_| CliError::WorkerStopped)?
    }

    /// Refuses the shard of a tenant that is in a database, which this build can't use.
    #[cfg(not(feature = "postgres"))]
    pub(crate) fn refuse_build_without_database(&self, shard: &str) -> Result<(), CliError> {
        let is_database = self.checked()?.config.store.postgres.is_some();
        if is_database || shard != DEFAULT_SHARD {
            return Err(CliError::Open(OpenError::NoPostgres));
        }
        Ok(())
    }

    /// Refuses a command that works on a store in a file, if the configuration names a database.
    pub(crate) fn refuse_database(&self, instead: &'static str) -> Result<(), CliError> {
        match self.checked()?.config.store.postgres {
            Some(_) => Err(CliError::StoreIsDatabase { instead }),
            None => Ok(()),
        }
    }
}

/// The named tenant, or the only one.
pub(crate) fn tenant(app: &App, name: Option<&str>) -> Result<TenantId, CliError> {
    let tenants = app.config().tenants.keys().map(String::as_str);
    tenant_of(tenants, name).map_err(|error| CliError::Usage {
        what: error.to_string(),
    })
}

/// The deployment with one database alone.
pub(crate) fn only(app: &App, shard: &str) -> Result<App, CliError> {
    let unknown = || no_shard(shard, app.shards().iter());
    app.with_only(shard).ok_or_else(unknown)
}

/// The deployment with the database of a shard alone, else with that of the named tenant or of the only one, else with the
/// default database.
pub(crate) fn chosen(
    app: &App,
    shard: Option<&str>,
    tenant: Option<&str>,
) -> Result<App, CliError> {
    match (shard, tenant) {
        (Some(shard), _) => only(app, shard),
        (None, Some(tenant)) => only(app, app.shard(&tenant.into())),
        (None, None) => {
            let mut tenants = app.config().tenants.keys();
            match (tenants.next(), tenants.next()) {
                (Some(tenant), None) => only(app, app.shard(&tenant.as_str().into())),
                _ => only(app, DEFAULT_SHARD),
            }
        }
    }
}

fn no_shard<'a>(shard: &str, known: impl Iterator<Item = &'a String>) -> CliError {
    let known: Vec<_> = known.map(String::as_str).collect();
    CliError::Usage {
        what: format!(
            "there is no shard {shard:?}, expected one of: {}",
            known.join(", ")
        ),
    }
}

/// Checks the thread key, if one is named.
pub(crate) fn checked(key: Option<&str>) -> Result<(), CliError> {
    let checked = key.map_or(Ok(()), server::check_key);
    checked.map_err(|invalid| CliError::Usage {
        what: format!("the key can't be used: {invalid}"),
    })
}

fn unopened(error: OpenError, directory: PathBuf) -> CliError {
    if matches!(error, OpenError::NoStore { .. }) {
        CliError::NoStore { directory }
    } else {
        CliError::Open(error)
    }
}

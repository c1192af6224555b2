//! Where the threads are kept, and opening it.

use crate::args::{Command, Whose};
use crate::error::CliError;
use runtime::TenantId;
use server::config::Checked;
use server::telemetry::{self, TelemetryConfig, TelemetryGuard};
use server::{App, Config, DEV_TENANT, OpenError, OpenMode, StoreKey};
use std::ffi::OsStr;
use std::path::PathBuf;

/// Where the data and the configuration are.
pub(crate) struct Place {
    pub(crate) data: Option<PathBuf>,
    pub(crate) config: Option<PathBuf>,
}

/// What a variable holds; nothing, if it is empty.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whether a variable is there, and empty.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
pub(crate) fn is_empty_variable(name: &OsStr) -> bool {
    std::env::var_os(name).is_some_and(|value| value.is_empty())
}

/// The export of spans, for the commands that run agents; off unless OpenTelemetry's variables or the
/// configuration name a collector. The variables win.
pub(crate) fn telemetry(
    place: &Place,
    command: &Command,
) -> Result<Option<TelemetryGuard>, CliError> {
    if !matches!(command, Command::Serve { .. } | Command::Run(_)) {
        return Ok(None);
    }
    let config = match TelemetryConfig::from_env(&environment)? {
        None if place.config.is_some() => place.config()?.telemetry,
        config => config,
    };
    Ok(match config {
        Some(config) => Some(telemetry::install(&config)?),
        None => None,
    })
}

impl Place {
    /// The configuration, or development mode.
    pub(crate) fn config(&self) -> Result<Config, CliError> {
        let (name, text) = self.text()?;
        Config::parse(&text, &environment).map_err(|error| CliError::Config(name, error))
    }

    /// The same with what may be wrong with it; a key that is missing is no failure.
    pub(crate) fn checked(&self) -> Result<Checked, CliError> {
        let (name, text) = self.text()?;
        Config::check(&text, &environment).map_err(|error| CliError::Config(name, error))
    }

    /// The file's name and text; an empty text is development mode.
    fn text(&self) -> Result<(String, String), CliError> {
        let Some(file) = &self.config else {
            return Ok((String::new(), String::new()));
        };
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(CliError::io(format!("read {name}")))?;
        Ok((name, text))
    }

    /// The directory of the data.
    pub(crate) fn directory(&self, config: &Config) -> PathBuf {
        if let Some(directory) = self.data.clone().or_else(|| config.server.data.clone()) {
            return directory;
        }
        let base = environment("XDG_DATA_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        base.or_else(|| environment("HOME").map(|home| PathBuf::from(home).join(".local/share")))
            .map_or_else(
                || PathBuf::from("loomline-data"),
                |base| base.join("loomline"),
            )
    }

    /// Opens the store, for a tenant: the one that is named, else the only one there is.
    pub(crate) fn open(&self, whose: &Whose, mode: OpenMode) -> Result<(App, TenantId), CliError> {
        let config = self.config()?;
        let tenant = tenant(&config, whose)?;
        let directory = self.directory(&config);
        let app = App::open(config, &directory, mode);
        let app = app.map_err(|error| unopened(error, directory))?;
        Ok((app, tenant))
    }

    /// Writes the store anew with another key, or with none.
    pub(crate) async fn rekey(&self, key: Option<StoreKey>) -> Result<Vec<PathBuf>, CliError> {
        let config = self.config()?;
        let directory = self.directory(&config);
        let work = tokio::task::spawn_blocking(move || {
            App::rekey(&config, &directory, key.as_ref())
                .map_err(|error| unopened(error, directory))
        });
        work.await.map_err(|_| CliError::WorkerStopped)?
    }
}

/// Whether a thread may be made under this key, where one is named.
pub(crate) fn checked(key: Option<&str>) -> Result<(), CliError> {
    let checked = key.map_or(Ok(()), server::check_key);
    checked.map_err(|invalid| CliError::Usage {
        what: format!("the key can't be used: {invalid}"),
    })
}

/// Without tenants the store may have been another configuration's, so any name is taken; and it may have threads from
/// before there were tenants.
fn tenant(config: &Config, Whose { tenant }: &Whose) -> Result<TenantId, CliError> {
    let mut names = config.tenants.keys().map(String::as_str);
    let known = || {
        config
            .tenants
            .keys()
            .cloned()
            .collect::<Vec<_>>()
            .join(", ")
    };
    let what = match (tenant.as_deref(), config.tenants.len()) {
        (Some(""), _) => "a tenant has a name, and this one is empty".to_owned(),
        (Some(name), 0) => return Ok(name.into()),
        (Some(name), _) if name == DEV_TENANT || config.tenants.contains_key(name) => {
            return Ok(name.into());
        }
        (Some(name), _) => format!("there is no tenant {name:?}; there are: {}", known()),
        (None, 0 | 1) => return Ok(names.next().unwrap_or(DEV_TENANT).into()),
        (None, _) => format!("say whose threads with --tenant; there are: {}", known()),
    };
    Err(CliError::Usage { what })
}

fn unopened(error: OpenError, directory: PathBuf) -> CliError {
    if matches!(error, OpenError::NoStore { .. }) {
        CliError::NoStore { directory }
    } else {
        CliError::Open(error)
    }
}

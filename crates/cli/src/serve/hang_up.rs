//! `SIGHUP`: the keys of the configuration are read again.

use crate::error::CliError;
use crate::output::{Output, json_line};
use crate::store::StoreLocation;
use serde_json::json;
use server::App;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Receives the hang-up signal; never, on systems without it.
pub(super) struct HangUp {
    #[cfg(unix)]
    signal: Signal,
}

impl HangUp {
    /// From now on the signal does not end the process.
    #[cfg(unix)]
    pub(super) fn install() -> Result<Self, CliError> {
        let signal = signal(SignalKind::hangup()).map_err(CliError::io("listen for SIGHUP"))?;
        Ok(Self { signal })
    }

    #[cfg(not(unix))]
    #[expect(clippy::unnecessary_wraps, reason = "as where there is the signal")]
    pub(super) fn install() -> Result<Self, CliError> {
        Ok(Self {})
    }

    /// Reads the keys again at each signal. Never ends.
    pub(super) async fn reload(mut self, place: &StoreLocation, app: &App, output: &Output) {
        while self.next().await.is_some() {
            reload(place, app, output);
        }
        std::future::pending::<()>().await;
    }

    #[cfg(unix)]
    async fn next(&mut self) -> Option<()> {
        self.signal.recv().await
    }

    #[cfg(not(unix))]
    async fn next(&mut self) -> Option<()> {
        None
    }
}

fn reload(place: &StoreLocation, app: &App, output: &Output) {
    if app.config().is_development() {
        let why = if place.config.is_none() {
            "there is no configuration, so there are no keys to read again"
        } else {
            "in development mode no key is asked for; a start with tenants is needed before keys can be read again"
        };
        tell(output, why, None);
        return;
    }
    match place.config() {
        Ok(config) => {
            let n_keys = match app.replace_tenants(&config.tenants) {
                Ok(n_keys) => n_keys,
                Err(error) => {
                    return output.error(&CliError::Reload(Box::new(CliError::Tenants(error))));
                }
            };
            let text = format!("the keys of the configuration were read again; there are {n_keys}");
            tell(output, &text, Some(n_keys));
        }
        Err(error) => output.error(&CliError::Reload(Box::new(error))),
    }
}

fn tell(output: &Output, text: &str, n_keys: Option<usize>) {
    if output.is_json() {
        output.write_stderr(&json_line(
            json!({"reloaded": n_keys.is_some(), "keys": n_keys, "message": text}),
        ));
    } else {
        output.print(text);
    }
}

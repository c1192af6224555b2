//! `serve` and `key`.

mod hang_up;
mod signals;

use crate::args::{Listen, LogFormat};
use crate::environment::environment;
use crate::error::CliError;
use crate::output::{BOLD, DIM, Output};
use crate::store::{StoreLocation, checked};
use anstream::{AutoStream, ColorChoice};
use hang_up::HangUp;
use reqwest::Url;
use secrecy::ExposeSecret;
use serde_json::json;
use server::telemetry::TelemetryGuard;
use server::{App, LocalListener, LocalServer, OpenMode, ServeError, Sockets};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

/// How long the last spans may take when the program ends.
const LAST_SPANS: Duration = Duration::from_secs(5);

/// The log level. Terminal commands log only errors unless `verbose`.
pub(crate) fn level(verbose: u8, quiet: bool, serving: bool) -> &'static str {
    match (verbose, serving) {
        (0, false) => "error",
        (0, true) if quiet => "warn",
        (0, true) => "info",
        (1, _) => "debug",
        _ => "trace",
    }
}

/// Structured logs on standard error. Spans of agent runs go to `telemetry`.
pub(crate) fn log(level: &str, format: LogFormat, telemetry: Option<&TelemetryGuard>) {
    let wanted = environment("LOOMLINE_LOG").and_then(|text| EnvFilter::try_new(text).ok());
    let filter = wanted.unwrap_or_else(|| {
        EnvFilter::new(format!(
            "warn,rmcp=warn,loomline={level},server={level},audit={level}"
        ))
    });
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match format {
        LogFormat::Text => lines
            .with_ansi(AutoStream::choice(&std::io::stderr()) != ColorChoice::Never)
            .with_target(false)
            .boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let lines = lines.with_filter(filter);
    tracing_subscriber::registry()
        .with(telemetry.map(TelemetryGuard::layer))
        .with(lines)
        .init();
}

/// Sends the last spans. A failure does not change the command's result.
pub(crate) fn end(telemetry: Option<TelemetryGuard>) {
    let Some(telemetry) = telemetry else {
        return;
    };
    if let Err(error) = telemetry.shutdown(LAST_SPANS) {
        tracing::warn!(%error, "some spans are lost");
    }
}

pub(crate) async fn serve(
    place: &StoreLocation,
    listen: Option<Listen>,
    opens_page: bool,
    output: &Output,
) -> Result<(), CliError> {
    // Before anything that takes long: the signal ends a process that does not listen for it.
    let hang_up = HangUp::install()?;
    let config = place.config()?;
    let development = config.is_development();
    let directory = place.directory(&config)?;
    let listen = listen.or(config.server.listen.map(Into::into));
    let listen = listen.unwrap_or_default();
    let address = listen
        .address()
        .map_err(CliError::io(format!("find the address of {listen}")))?;
    // A start that is refused has touched nothing.
    let sockets = Sockets::bind(&config, address).map_err(|error| match error {
        ServeError::Socket(error) if error.kind() == ErrorKind::AddrInUse => {
            CliError::AddressInUse { address }
        }
        ServeError::Socket(error) => CliError::io(format!("listen on {address}"))(error),
        error @ (ServeError::Exposed { .. } | ServeError::Tls(_) | ServeError::Runtime(_)) => {
            CliError::Serve(error)
        }
    })?;
    let address = sockets
        .local_addr()
        .map_err(CliError::io("read the listener's address"))?;
    let shutdown = CancellationToken::new();
    let stopped = signals::install(shutdown.clone(), config.limits.shutdown_grace)?;
    let opening = Box::pin(App::open(config, &directory, OpenMode::ReadWrite));
    let Some(opened) = shutdown.run_until_cancelled(opening).await else {
        stopped.note();
        return Ok(());
    };
    let app = opened.map_err(CliError::Open)?;
    let scheme = if sockets.is_tls() { "https" } else { "http" };
    let url = format!("{scheme}://{address}");
    let page = page_url(scheme, address);
    let has_pages = cfg!(feature = "web") && app.config().web.is_enabled;
    let sockets = with_local(sockets, &directory, has_pages.then_some(page.as_str()));
    output.value(&json!({"listening": url, "data": directory, "development": development}))?;
    output.line(&format!("listening on {url}"))?;
    if has_pages && !output.is_quiet() {
        output.line(&format!("open {BOLD}{page}{BOLD:#} in a browser"))?;
    }
    if opens_page && let Err(error) = open::that_detached(&page) {
        tracing::warn!(%error, "the browser can't be opened");
    }
    if development && !output.is_quiet() {
        output.line(&welcome(&url, &directory.display().to_string(), place))?;
    }
    let stop = async {
        shutdown.cancelled().await;
        output.print("stopping; unfinished runs continue at the next start");
        std::future::pending::<()>().await;
    };
    let keys = app.clone();
    let served = tokio::select! {
        // The user sees that the server is stopping before it has stopped.
        biased;
        () = stop => Ok(()),
        () = hang_up.reload(place, &keys, output) => Ok(()),
        result = server::serve(app, sockets, shutdown.clone()) => result.map_err(CliError::Serve),
    };
    if served.is_ok() {
        stopped.note();
    }
    served
}

/// The address of the pages for a browser on this machine.
fn page_url(scheme: &str, address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        format!("{scheme}://localhost:{}", address.port())
    } else {
        format!("{scheme}://{address}")
    }
}

/// Publishes a local socket for commands on this machine. If that fails, the server serves all other
/// clients.
fn with_local(sockets: Sockets, directory: &Path, page: Option<&str>) -> Sockets {
    match LocalListener::publish(directory, page) {
        Ok(local) => sockets.with_local(local),
        Err(error) => {
            let error = server::render_error(&error);
            tracing::warn!(error, "commands on this machine can't reach this server");
            sockets
        }
    }
}

/// Opens the page of the server that uses the data directory: a thread, or a new chat.
pub(crate) fn open_page(
    place: &StoreLocation,
    key: Option<&str>,
    output: &Output,
) -> Result<(), CliError> {
    checked(key)?;
    let directory = place.directory(&place.checked()?.config)?;
    let server = LocalServer::find(&directory);
    let server = server.ok_or(CliError::NoServer { directory })?;
    let base = server.page.ok_or(CliError::NoPages)?;
    let mut url: Url = base.parse().map_err(|_| CliError::Usage {
        what: format!("the running server has published {base:?}, which is not a URL"),
    })?;
    if let (Some(key), Ok(mut segments)) = (key, url.path_segments_mut()) {
        segments.pop_if_empty().extend(["chat", key]);
    }
    output.value(&json!({"url": url.as_str()}))?;
    output.line(&format!("open {BOLD}{url}{BOLD:#} in a browser"))?;
    let opened = open::that_detached(url.as_str());
    opened.map_err(|source| CliError::NoBrowser {
        url: url.into(),
        source,
    })
}

fn welcome(base: &str, data: &str, place: &StoreLocation) -> String {
    let (agents, hint, message) = match (&place.model, &place.config) {
        (Some(model), _) => (
            format!("The agent assistant uses the model {}. ", model.name()),
            "Send the agent a message, and watch",
            "What is 2+3*4?",
        ),
        (None, Some(_)) => (
            String::new(),
            "Send the default agent a message, and watch",
            "What is 2+3*4?",
        ),
        (None, None) => (
            "The agents use a scripted model, which needs no network and no key. ".to_owned(),
            "Let the demo agent call a tool, and watch",
            "compute 2+3*4",
        ),
    };
    format!(
        "{DIM}Development mode: the server asks for no key and accepts only this machine.
{agents}The threads are in {data}.{DIM:#}

{BOLD}Three things to try without a browser{BOLD:#}

1. {hint}:
   curl -N {base}/api/v1/threads/hello/messages -H 'content-type: application/json' \\
     -d '{{\"content\": \"{message}\", \"stream\": true}}'

2. Read the events of the thread again from any point:
   curl -N '{base}/api/v1/threads/hello/events?until=rest' -H 'last-event-id: 10'

3. Export the thread as a ThreadProtocol document:
   curl {base}/api/v1/threads/hello/document
"
    )
}

pub(crate) fn key(store: bool, output: &Output) -> Result<(), CliError> {
    if store {
        return store_key(output);
    }
    let key = server::auth::new_key()?;
    let key = key.expose_secret();
    let hash = server::auth::hash_text(key);
    output.value(&json!({"key": key, "hash": hash}))?;
    output.line(&format!(
        "{key}\n{DIM}Give this key to the client; it is shown once. Put its hash into the configuration:{DIM:#}\n\
         [tenants.NAME]\nkey_hashes = [\"{hash}\"]"
    ))
}

fn store_key(output: &Output) -> Result<(), CliError> {
    let key = server::auth::new_store_key()?;
    let key = key.expose_secret();
    output.value(&json!({"key": key}))?;
    output.line(&format!(
        "{key}\n{DIM}Put it into a variable of the server's environment and keep a copy: without it the store is lost. \
         Name the variable in the configuration:{DIM:#}\n[store]\nkey_env = \"LOOMLINE_STORE_KEY\""
    ))
}

//! The second listener: metrics and health of the process, for operators.

use crate::app::App;
use crate::routes::health;
use crate::state::Api;
use axum::Router;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Listens on `metrics_listen`, if configured, until `shutdown` is cancelled or the tasks are dropped.
/// Needs no key.
pub(crate) async fn listen(
    app: &App,
    shutdown: &CancellationToken,
) -> std::io::Result<JoinSet<()>> {
    let mut tasks = JoinSet::new();
    let Some(address) = app.config().server.metrics_listen else {
        return Ok(tasks);
    };
    let listener = TcpListener::bind(address).await?;
    tracing::info!(addr = %listener.local_addr()?, "serving figures");
    let stop = shutdown.clone().cancelled_owned();
    let served = axum::serve(listener, router(app.clone(), shutdown.clone()));
    tasks.spawn(async move {
        if let Err(error) = served.with_graceful_shutdown(stop).await {
            tracing::error!(%error, "the listener for figures failed");
        }
    });
    Ok(tasks)
}

/// The routes of the second listener.
fn router(app: App, shutdown: CancellationToken) -> Router {
    Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics))
        .with_state(Api::new(app, shutdown))
}

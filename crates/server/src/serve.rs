//! The router with its layers, and the server that runs it.

mod request_id;

use crate::app::App;
use crate::audit::Audit;
use crate::auth::DEV_TENANT;
use crate::config::{Config, LimitsConfig};
use crate::connections::listen::listen;
use crate::connections::{self, Overflow};
use crate::error::{ApiError, Failure};
use crate::guard::{self, Guard};
use crate::local::LocalListener;
use crate::openapi::{Description, Document};
use crate::operator;
use crate::protocol::{Protocol, RouteTable, Rules};
use crate::purge;
use crate::retention;
use crate::routes::PROTOCOLS;
use crate::state::Api;
use crate::tls::{TlsError, TlsListener};
use crate::watchdog::Watchdog;
use axum::Extension;
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, header};
use runtime::{RuntimeError, StoreError};
use std::any::Any;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};
use tower_http::request_id::{
    MakeRequestUuid, PropagateRequestIdLayer, RequestId, SetRequestIdLayer,
};
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::trace::TraceLayer;
use utoipa::OpenApi as _;

/// Maximum number of connections for commands on this machine.
const LOCAL_CONNECTIONS: usize = 64;
/// The pause before the runs of a database that failed are looked for again.
const RECOVERY_PAUSE: Duration = Duration::from_secs(5);

/// Why the server stopped, or did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is not loopback, and the server needs no key.
    #[error(
        "{addr} can be reached by others, and no tenant is configured; add [tenants.NAME] with key_hashes, or listen on 127.0.0.1"
    )]
    Exposed {
        /// The address.
        addr: SocketAddr,
    },
    /// The socket failed.
    #[error("the socket failed")]
    Socket(#[from] std::io::Error),
    /// The certificate can't be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Unfinished runs could not be resumed, or the store could not be closed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

/// The server's listening sockets.
pub struct Sockets {
    inner: Inner,
    local: Option<LocalListener>,
}

enum Inner {
    Plain(TcpListener),
    Tls(TlsListener),
}

impl Sockets {
    /// Listens on an address; with TLS if the configuration has a certificate, which is read now.
    /// Refuses an address that is not loopback if the configuration has no tenants.
    pub fn bind(config: &Config, address: SocketAddr) -> Result<Self, ServeError> {
        check_exposed(config, address)?;
        let sockets = listen(address)?;
        match &config.server.tls {
            None => Ok(sockets.into()),
            Some(files) => Ok(Self {
                inner: Inner::Tls(TlsListener::new(sockets, files.clone())?),
                local: None,
            }),
        }
    }

    /// Listens for commands on this machine as well.
    #[must_use]
    pub fn with_local(self, local: LocalListener) -> Self {
        Self {
            local: Some(local),
            ..self
        }
    }

    /// The address. If the configuration has port 0, with the port that the system chose.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        match &self.inner {
            Inner::Plain(sockets) => sockets.local_addr(),
            Inner::Tls(listener) => listener.sockets.local_addr(),
        }
    }

    /// Whether clients need TLS.
    pub fn is_tls(&self) -> bool {
        matches!(self.inner, Inner::Tls(_))
    }

    /// Serves until `shutdown` is cancelled and all requests are answered.
    async fn answer(self, app: &App, router: Router, shutdown: &CancellationToken) {
        // The certificate is watched as long as it is served.
        let (sockets, tls, _watch) = match self.inner {
            Inner::Plain(sockets) => (sockets, None, None),
            Inner::Tls(listener) => {
                let TlsListener {
                    sockets,
                    acceptor,
                    watch,
                } = listener;
                (sockets, Some(acceptor), Some(watch))
            }
        };
        let limits = &app.config().limits;
        let figures = || app.metrics().connections().clone();
        let commands = async {
            let Some(local) = self.local else { return };
            let router = router.clone().layer(Extension(local.key.clone()));
            let limits = LimitsConfig {
                connections: Some(LOCAL_CONNECTIONS),
                connections_per_address: Some(LOCAL_CONNECTIONS),
                ..limits.clone()
            };
            connections::serve(local.sockets, None, router, &limits, figures(), shutdown).await;
        };
        let served = connections::serve(sockets, tls, router.clone(), limits, figures(), shutdown);
        tokio::join!(served, commands);
    }
}

impl From<TcpListener> for Sockets {
    /// Without TLS.
    fn from(sockets: TcpListener) -> Self {
        Self {
            inner: Inner::Plain(sockets),
            local: None,
        }
    }
}

/// Refuses an address that is not loopback if the server needs no key.
pub(crate) fn check_exposed(config: &Config, addr: SocketAddr) -> Result<(), ServeError> {
    if config.is_development() && !addr.ip().is_loopback() {
        return Err(ServeError::Exposed { addr });
    }
    Ok(())
}

/// Serves until `shutdown` is cancelled, then ends streams, lets requests finish and closes the store,
/// all within `limits.shutdown_grace`. Unfinished runs continue at the next start.
///
/// Listens first, then resumes unfinished runs in the background. Requests with a key wait until the MCP
/// servers are connected. Refuses an address that is not loopback if the configuration has no tenants.
pub async fn serve(
    app: App,
    sockets: impl Into<Sockets>,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let sockets = sockets.into();
    let addr = sockets.local_addr()?;
    check_exposed(app.config(), addr)?;
    if app.config().is_development() {
        tracing::warn!(%addr, tenant = DEV_TENANT, "development mode: no tenants are configured, so no key is asked for");
    }
    let _watchdog = Watchdog::start(Handle::current())?;
    tracing::info!(%addr, tls = sockets.is_tls(), "serving");
    let grace = app.config().limits.shutdown_grace;
    let _figures = operator::listen(&app, &shutdown).await?;
    let _retention = retention::start(&app);
    let router = router(app.clone(), shutdown.clone());
    let served = async {
        sockets.answer(&app, router, &shutdown).await;
        // WebSockets tell their clients why they end.
        app.sockets().close();
        app.sockets().wait().await;
    };
    let since = OnceLock::new();
    let late = async {
        shutdown.cancelled().await;
        let since = *since.get_or_init(Instant::now);
        tokio::time::sleep_until(since + grace * 3 / 4).await;
    };
    let served = tokio::select! {
        () = served => Ok(()),
        error = unrecovered(&app) => Err(error),
        () = late => {
            tracing::warn!("some requests did not end in time and are cut off");
            Ok(())
        }
    };
    let stop_by = since.get().copied().unwrap_or_else(Instant::now) + grace * 19 / 20;
    match tokio::time::timeout_at(stop_by, app.shutdown()).await {
        Ok(stopped) => stopped?,
        Err(_) => {
            tracing::warn!(
                ?grace,
                "some runs did not stop in time and are cut off; what they have written is kept"
            );
        }
    }
    served
}

/// Runs recovery, and repeats it for databases that fail. Returns only if repeating can't help the default database,
/// with the error.
async fn unrecovered(app: &App) -> ServeError {
    loop {
        match app.recover().await {
            // A failover can lose the name of a node that has joined.
            Err(RuntimeError::Store(StoreError::Failed(_) | StoreError::DeadNode))
                if app.default_runtime().store().is_shared() => {}
            Err(error) => return error.into(),
            Ok(_) if app.is_all_recovered() => return std::future::pending().await,
            Ok(_) => {}
        }
        tokio::time::sleep(RECOVERY_PAUSE).await;
    }
}

/// The routes of these protocols, and their description.
fn assemble(protocols: &[&Protocol]) -> (Router<Api>, Description) {
    let (router, table) = RouteTable::assemble(protocols, Document::openapi());
    let (router, openapi) = router.split_for_parts();
    let links = protocols.iter().flat_map(|protocol| protocol.links);
    let description = Description {
        openapi,
        table: Arc::new(table),
        links: links.copied().collect(),
    };
    (router, description)
}

/// The description of all routes.
pub(crate) fn description() -> Description {
    assemble(PROTOCOLS).1
}

/// The `OpenAPI` document (3.1) of all routes, as JSON.
pub fn openapi() -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&description().document()?)
}

/// The complete router, for a server of your own or for tests. [`serve`] also refuses addresses that are
/// not loopback without tenants.
///
/// Streams end when `shutdown` is cancelled.
pub fn router(app: App, shutdown: CancellationToken) -> Router {
    let has_pages = app.config().web.is_enabled;
    let protocols = PROTOCOLS.iter().copied();
    let served: Vec<_> = protocols
        .filter(|protocol| has_pages || !protocol.rules.own_pages)
        .collect();
    let (router, description) = assemble(&served);
    let table = Arc::clone(&description.table);
    let cors = cors(app.config(), Arc::clone(&table));
    let api = Api::new(app, shutdown);
    let guard = Guard {
        api: api.clone(),
        table,
    };
    let x_request_id = HeaderName::from_static("x-request-id");
    let layers = ServiceBuilder::new()
        .map_request(request_id::bounded)
        .layer(SetRequestIdLayer::new(
            x_request_id.clone(),
            MakeRequestUuid,
        ))
        .layer(PropagateRequestIdLayer::new(x_request_id))
        .layer(
            // Failures are logged where they are answered, and those of the store once per second.
            TraceLayer::new_for_http()
                .make_span_with(span)
                .on_failure(()),
        )
        .layer(fixed_header(header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .layer(fixed_header(
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'",
        ))
        .layer(cors)
        .layer(from_fn(crate::drain_body::close))
        .layer(from_fn_with_state(guard.clone(), answer))
        .layer(CatchPanicLayer::custom(|_: Box<dyn Any + Send>| {
            ApiError::Panicked.into_response()
        }))
        .layer(from_fn_with_state(api.clone(), guard::check_host));
    router
        .route_layer(Extension(Arc::new(description)))
        .route_layer(from_fn_with_state(guard, guard::check_policy))
        // It checks by itself that the local listener has the request.
        .route(purge::PURGE_PATH, post(purge::purge))
        .fallback(|| async { ApiError::UnknownRoute })
        .method_not_allowed_fallback(|| async { ApiError::UnknownMethod })
        .layer(layers)
        .with_state(api)
}

/// The rules for a request, by its path.
fn rules(table: &RouteTable, request: &Parts) -> Rules {
    let template = request.extensions.get().map(MatchedPath::as_str);
    table.rules(template, request.uri.path())
}

fn fixed_header(name: HeaderName, value: &'static str) -> SetResponseHeaderLayer<HeaderValue> {
    SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value))
}

/// CORS: allows the listed origins, and in development mode the origins of this machine.
fn cors(config: &Config, table: Arc<RouteTable>) -> CorsLayer {
    let (listed, is_development) = (config.server.cors_origins.clone(), config.is_development());
    let origin = if listed.iter().any(|origin| origin == "*") {
        AllowOrigin::any()
    } else {
        AllowOrigin::predicate(move |origin, request| {
            let origin = origin.to_str().unwrap_or_default();
            let is_local = || guard::is_local(origin) && rules(&table, request).local_pages;
            listed.iter().any(|listed| listed == origin) || (is_development && is_local())
        })
    };
    let name = HeaderName::from_static;
    CorsLayer::new()
        .allow_origin(origin)
        .allow_methods([
            Method::GET,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
        ])
        // Whatever a page of these origins sends: clients have headers of their own (`x-stainless-…`),
        // and some that no list could name (`mcp-param-…`).
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([
            header::CONTENT_DISPOSITION,
            header::CONTENT_LOCATION,
            header::LOCATION,
            header::RETRY_AFTER,
            header::WWW_AUTHENTICATE,
            name("x-request-id"),
            name("idempotent-replayed"),
            name("loomline-content-hash"),
            name("loomline-hash-warning"),
            name("loomline-loss"),
            name("loomline-losses"),
            name("mcp-session-id"),
            name("openai-processing-ms"),
            name("openai-version"),
            name("x-pagination-next"),
            name("x-pagination-total"),
            name("x-vercel-ai-ui-message-stream"),
        ])
        .max_age(Duration::from_mins(10))
}

// Without the query: it is long where it matters, and says nothing the log needs.
fn span(request: &Request) -> tracing::Span {
    let id = request_id(request).unwrap_or_default();
    tracing::info_span!("request", method = %request.method(), path = request.uri().path(), id)
}

fn request_id(request: &Request) -> Option<String> {
    request
        .extensions()
        .get::<RequestId>()?
        .header_value()
        .to_str()
        .ok()
        .map(str::to_owned)
}

/// Whether a connection beyond the cap may request this path.
fn asks_for_health(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz")
}

/// Counts the response, and writes the body of an error.
async fn answer(
    State(Guard { api, table }): State<Guard>,
    mut request: Request,
    next: Next,
) -> Response {
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let request_id = request_id(&request);
    #[cfg(feature = "web")]
    let wants_json = crate::sse::wants_json(request.headers());
    let audit = Audit::begin(&mut request, request_id.clone());
    let start = Instant::now();
    let view = api.views().view();
    let mut response =
        if request.extensions().get::<Overflow>().is_some() && !asks_for_health(&path) {
            ApiError::NoConnectionLeft.into_response()
        } else {
            view.scope(next.run(request)).await
        };
    let template = route.as_ref().map(MatchedPath::as_str);
    let status = response.status();
    audit.answered(status);
    api.metrics().answered(
        &method,
        template.unwrap_or("none"),
        status.as_u16(),
        start.elapsed(),
    );
    let Some(failure) = response.extensions_mut().remove::<Failure>() else {
        return crate::held::until_sent(response, view);
    };
    let errors = table.errors(template, &path);
    #[cfg(feature = "web")]
    let errors = errors.for_script(wants_json);
    let body = errors.body(status, failure, request_id);
    let (parts, body) = body.into_parts();
    response.headers_mut().extend(parts.headers);
    response.headers_mut().remove(header::CONTENT_LENGTH);
    *response.body_mut() = body;
    response
}

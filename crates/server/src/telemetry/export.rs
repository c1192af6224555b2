//! The export itself.

use super::reporting::Reporting;
use super::{TelemetryConfig, TelemetryError};
use http::{HeaderName, HeaderValue};
use opentelemetry::InstrumentationScope;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use secrecy::ExposeSecret;
use std::time::Duration;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;
use upp::telemetry::TARGET;

/// Time limit for one request to the collector.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit for the last spans when the guard is dropped.
const LAST: Duration = Duration::from_secs(5);

/// Runs the export until it is dropped. The drop sends the remaining spans and waits up to five seconds.
#[derive(Debug)]
#[must_use = "dropped, it ends the export"]
pub struct TelemetryGuard {
    provider: SdkTracerProvider,
    is_over: bool,
}

impl TelemetryGuard {
    pub(super) fn start(config: &TelemetryConfig) -> Result<Self, TelemetryError> {
        let sampler = Sampler::TraceIdRatioBased(config.sample_ratio);
        let resource = Resource::builder()
            .with_service_name(config.service_name.clone())
            .build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(Reporting::new(exporter(config)?))
            .with_sampler(Sampler::ParentBased(Box::new(sampler)))
            .with_resource(resource)
            .build();
        Ok(Self {
            provider,
            is_over: false,
        })
    }

    /// The layer for the subscriber. It enables only the spans of the conventions, whatever the other
    /// layers log.
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let scope = InstrumentationScope::builder("loomline")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build();
        let ours = filter_fn(|metadata| metadata.is_span() && metadata.target() == TARGET);
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer_with_scope(scope))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_context_activation(false)
            .with_filter(ours.with_max_level_hint(LevelFilter::INFO))
    }

    /// Sends the remaining spans, and waits for it. Blocks the thread for up to five seconds.
    pub fn flush(&self) -> Result<(), TelemetryError> {
        export_result(self.provider.force_flush())
    }

    /// Sends the remaining spans and stops. Blocks the thread for up to `limit`.
    pub fn shutdown(mut self, limit: Duration) -> Result<(), TelemetryError> {
        self.stop(limit)
    }

    fn stop(&mut self, limit: Duration) -> Result<(), TelemetryError> {
        self.is_over = true;
        export_result(self.provider.shutdown_with_timeout(limit))
    }
}

impl Drop for TelemetryGuard {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        if let Err(error) = self.stop(LAST) {
            tracing::warn!(
                error = crate::error::causes::render_error(&error),
                "telemetry ended early"
            );
        }
    }
}

fn export_result(result: OTelSdkResult) -> Result<(), TelemetryError> {
    result.map_err(|error| TelemetryError::Flush(error.into()))
}

fn exporter(config: &TelemetryConfig) -> Result<SpanExporter, TelemetryError> {
    let mut headers = Vec::with_capacity(config.headers.len());
    for (name, value) in &config.headers {
        let value = value.expose_secret();
        // The exporter leaves out what it can't send and does not say so.
        if name.parse::<HeaderName>().is_err() || value.parse::<HeaderValue>().is_err() {
            return Err(TelemetryError::Header { name: name.clone() });
        }
        headers.push((name.clone(), value.to_owned()));
    }
    SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(config.traces_endpoint()?)
        .with_timeout(TIMEOUT)
        .with_headers(headers.into_iter().collect())
        .with_http_client(client()?)
        .build()
        .map_err(|error| TelemetryError::Exporter(error.into()))
}

/// Makes a blocking HTTP client, because the exporter's thread has no async runtime. Such a client must
/// be made outside of a runtime too.
fn client() -> Result<reqwest::blocking::Client, TelemetryError> {
    let made = std::thread::Builder::new()
        .name("telemetry".to_owned())
        .spawn(|| {
            let tls = upp::tls_config().map_err(|error| TelemetryError::Exporter(error.into()))?;
            reqwest::blocking::Client::builder()
                .tls_backend_preconfigured(tls)
                .redirect(reqwest::redirect::Policy::none())
                .timeout(TIMEOUT)
                .user_agent(concat!("loomline/", env!("CARGO_PKG_VERSION")))
                .build()
                .map_err(|error| TelemetryError::Exporter(error.into()))
        })
        .map_err(|error| TelemetryError::Exporter(error.into()))?
        .join();
    made.unwrap_or_else(|_| {
        Err(TelemetryError::Exporter(
            "the thread that makes the HTTP client panicked".into(),
        ))
    })
}

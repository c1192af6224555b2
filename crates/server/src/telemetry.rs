//! Export of spans to an OpenTelemetry collector; off unless configured.
//!
//! Only the spans of `upp::telemetry` and `agents::telemetry` are exported: agent runs, model calls and
//! tool executions. A run has one `invoke_agent` span for each step. Each is the root of its own trace,
//! because a run may outlive the process. All spans of a thread have the thread's key as
//! `gen_ai.conversation.id`.
//!
//! [`install`] starts the export; add the guard's layer to the subscriber. A separate thread sends the
//! spans. If the collector can't be reached, spans are dropped and the server continues.

#[cfg(not(feature = "otel"))]
#[path = "telemetry/absent.rs"]
mod export;
#[cfg(feature = "otel")]
mod export;
#[cfg(feature = "otel")]
mod reporting;

pub use export::TelemetryGuard;

use http::Uri;
use secrecy::SecretString;
use std::collections::BTreeMap;

/// The path of traces below a collector's address.
const TRACES: &str = "/v1/traces";

/// Where spans go, and which.
#[derive(Clone, Debug)]
pub struct TelemetryConfig {
    /// The collector's address, `http` or `https`, for OTLP over HTTP with Protocol Buffers, such as
    /// `http://localhost:4318`. `/v1/traces` is appended unless the path ends with it.
    pub endpoint: String,
    /// The headers of each request, such as a key.
    pub headers: BTreeMap<String, SecretString>,
    /// The name of this server at the collector (`service.name`).
    pub service_name: String,
    /// The share of traces to send, from 0 to 1.
    pub sample_ratio: f64,
    /// Whether spans contain messages, system prompts, and the arguments and results of tools. All of it
    /// may be personal or secret.
    pub capture_content: bool,
}

impl TelemetryConfig {
    /// All spans, without content, to this collector.
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            headers: BTreeMap::new(),
            service_name: "loomline".to_owned(),
            sample_ratio: 1.0,
            capture_content: false,
        }
    }

    /// Reads OpenTelemetry's own variables. `None` if neither `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` nor
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` names a collector, or if `OTEL_SDK_DISABLED` is `true`.
    ///
    /// Also reads `OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER_ARG` (the ratio) and
    /// `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`. The exporter itself reads
    /// `OTEL_EXPORTER_OTLP_HEADERS`.
    pub fn from_env(env: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, TelemetryError> {
        let value = |name| env(name).filter(|value| !value.is_empty());
        let is_true = |name| value(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let endpoint = value("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
            .or_else(|| value("OTEL_EXPORTER_OTLP_ENDPOINT"));
        let Some(endpoint) = endpoint.filter(|_| !is_true("OTEL_SDK_DISABLED")) else {
            return Ok(None);
        };
        let mut config = Self::new(endpoint);
        if let Some(name) = value("OTEL_SERVICE_NAME") {
            config.service_name = name;
        }
        if let Some(ratio) = value("OTEL_TRACES_SAMPLER_ARG") {
            config.sample_ratio = ratio
                .parse()
                .map_err(|_| TelemetryError::SampleRatio { found: ratio })?;
        }
        config.capture_content = is_true("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT");
        Ok(Some(config))
    }

    /// The URL for spans.
    fn traces_endpoint(&self) -> Result<String, TelemetryError> {
        let wrong = || TelemetryError::Endpoint {
            found: self.endpoint.clone(),
        };
        let uri: Uri = self.endpoint.parse().map_err(|_| wrong())?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.query().is_some() {
            return Err(wrong());
        }
        let base = self.endpoint.trim_end_matches('/');
        if base.ends_with(TRACES) {
            return Ok(base.to_owned());
        }
        Ok(format!("{base}{TRACES}"))
    }

    fn check(&self) -> Result<(), TelemetryError> {
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            let found = self.sample_ratio.to_string();
            return Err(TelemetryError::SampleRatio { found });
        }
        self.traces_endpoint().map(|_| ())
    }
}

/// Why spans can't be sent.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The address is none.
    #[error(
        "the telemetry endpoint {found:?} is not an http or https address such as http://localhost:4318"
    )]
    Endpoint {
        /// The value found.
        found: String,
    },
    /// The ratio is none.
    #[error("the telemetry sample ratio is {found:?}, expected a number from 0 to 1")]
    SampleRatio {
        /// The value found.
        found: String,
    },
    /// The header can't be sent. The error hides its value, which may be a key.
    #[error(
        "the telemetry header {name:?} can't be sent: its name or its value has characters that headers can't have"
    )]
    Header {
        /// Its name.
        name: String,
    },
    /// This program was built without the cargo feature `otel`.
    #[error(
        "telemetry is configured, and this program was built without it (the cargo feature otel)"
    )]
    NotBuilt,
    /// The exporter can't be made.
    #[error("the telemetry exporter can't be made")]
    Exporter(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Some spans were not sent.
    #[error("the last spans could not be sent")]
    Flush(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Starts the export. Add the guard's layer to the subscriber; nothing is recorded before. Dropping the
/// guard sends the remaining spans, within five seconds.
///
/// Opens no connection: an unreachable collector shows up in the log later.
pub fn install(config: &TelemetryConfig) -> Result<TelemetryGuard, TelemetryError> {
    config.check()?;
    let guard = TelemetryGuard::start(config)?;
    upp::telemetry::capture_content(config.capture_content);
    Ok(guard)
}

#[cfg(test)]
mod tests;

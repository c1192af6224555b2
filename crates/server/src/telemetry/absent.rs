//! A build without OpenTelemetry.

use super::{TelemetryConfig, TelemetryError};
use std::convert::Infallible;
use std::time::Duration;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Identity;

/// The guard of the export; without the feature `otel` it does nothing.
#[derive(Debug)]
pub struct TelemetryGuard {
    never: Infallible,
}

impl TelemetryGuard {
    pub(super) fn start(_config: &TelemetryConfig) -> Result<Self, TelemetryError> {
        Err(TelemetryError::NotBuilt)
    }

    /// The layer for the subscriber.
    pub fn layer<S: Subscriber>(&self) -> impl Layer<S> + use<S> {
        match self.never {}
        #[expect(unreachable_code, reason = "gives the type")]
        Identity::new()
    }

    /// Sends what is left.
    pub fn flush(&self) -> Result<(), TelemetryError> {
        match self.never {}
    }

    /// Sends the remaining spans and stops; here there are none.
    pub fn shutdown(self, _limit: Duration) -> Result<(), TelemetryError> {
        match self.never {}
    }
}

//! The work around each export.

use opentelemetry::{Array, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use upp::telemetry::names::RESPONSE_FINISH_REASONS;

/// An exporter that logs once when the collector becomes unreachable, and once when it works again.
#[derive(Debug)]
pub(super) struct Reporting<E> {
    exporter: E,
    is_failing: AtomicBool,
}

impl<E> Reporting<E> {
    pub(super) fn new(exporter: E) -> Self {
        Self {
            exporter,
            is_failing: AtomicBool::new(false),
        }
    }

    fn report(&self, n_spans: usize, result: &OTelSdkResult) {
        let was_failing = self.is_failing.swap(result.is_err(), Ordering::Relaxed);
        match (result, was_failing) {
            (Err(error), false) => {
                tracing::warn!(%error, n_spans, "spans could not be sent and are dropped; this is said once");
            }
            (Err(error), true) => tracing::debug!(%error, n_spans, "spans are dropped"),
            (Ok(()), true) => tracing::info!("spans are sent again"),
            (Ok(()), false) => {}
        }
    }
}

impl<E: SpanExporter> SpanExporter for Reporting<E> {
    fn export(&self, mut batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        let n_spans = batch.len();
        batch.iter_mut().for_each(list_reasons);
        async move {
            let result = self.exporter.export(batch).await;
            self.report(n_spans, &result);
            result
        }
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// Makes the stop reasons a list, as the conventions require; `tracing` has no list values.
fn list_reasons(span: &mut SpanData) {
    let mut attributes = span.attributes.iter_mut();
    if let Some(reasons) = attributes.find(|it| it.key.as_str() == RESPONSE_FINISH_REASONS)
        && let Value::String(reason) = &reasons.value
    {
        reasons.value = Value::Array(Array::String(vec![reason.clone()]));
    }
}

#[cfg(test)]
mod tests;

//! The budgets.

use super::super::file::{Limits, TenantTable};
use super::super::{AddressRange, LimitsConfig, TenantLimits};
use super::{Checker, ConfigError};
use std::num::NonZeroU64;
use std::time::Duration;

impl Checker<'_> {
    pub(super) fn limits(&self, file: &Limits) -> Result<LimitsConfig, ConfigError> {
        let default = LimitsConfig::default();
        let ranges = file.trusted_proxies.iter().map(|text| {
            AddressRange::parse(text.get_ref()).ok_or_else(|| {
                let expected = "expected an address or a range such as \"10.0.0.0/8\"";
                let what = text.get_ref();
                self.wrong(
                    text,
                    format!("{what:?} is no range of addresses, {expected}"),
                )
            })
        });
        let trusted_proxies = ranges.collect::<Result<_, _>>()?;
        Ok(LimitsConfig {
            connections: file.connections.map(Into::into),
            connections_per_address: file.connections_per_address.map(Into::into),
            trusted_proxies,
            header_timeout: seconds(file.header_timeout_s, default.header_timeout),
            idle_timeout: seconds(file.idle_timeout_s, default.idle_timeout),
            tls_timeout: seconds(file.tls_timeout_s, default.tls_timeout),
            http2_streams: file.http2_streams.map_or(default.http2_streams, Into::into),
            body_bytes_in_flight: file
                .body_bytes_in_flight
                .map_or(default.body_bytes_in_flight, Into::into),
            body_bytes_per_second: file
                .body_bytes_per_second
                .map_or(default.body_bytes_per_second, Into::into),
            message_bytes: file.message_bytes.map_or(default.message_bytes, Into::into),
            streams: file.streams.map_or(default.streams, Into::into),
            requests_in_flight: file
                .requests_in_flight
                .map_or(default.requests_in_flight, Into::into),
            ephemeral_bytes: file
                .ephemeral_bytes
                .map_or(default.ephemeral_bytes, Into::into),
            stalled_reader: seconds(file.stalled_reader_s, default.stalled_reader),
            concurrent_runs: file
                .concurrent_runs
                .map_or(default.concurrent_runs, Into::into),
            restart_pause: file
                .restart_pause_ms
                .map_or(default.restart_pause, |it| Duration::from_millis(it.get())),
            model_runs: default.model_runs,
            thread_view_bytes: file
                .thread_view_bytes
                .map_or(default.thread_view_bytes, Into::into),
            thread_cache_bytes: file
                .thread_cache_bytes
                .map_or(default.thread_cache_bytes, Into::into),
            shutdown_grace: seconds(file.shutdown_grace_s, default.shutdown_grace),
            tenant: tenant_limits(&file.tenant, default.tenant),
        })
    }
}

/// A tenant's own limits, completed with `default`.
pub(super) fn tenant_limits(file: &TenantTable, default: TenantLimits) -> TenantLimits {
    TenantLimits {
        requests_per_minute: file.requests_per_minute.or(default.requests_per_minute),
        requests_in_flight: file
            .requests_in_flight
            .map_or(default.requests_in_flight, Into::into),
        streams: file.streams.map_or(default.streams, Into::into),
        streams_per_key: file
            .streams_per_key
            .map_or(default.streams_per_key, Into::into),
        concurrent_runs: file
            .concurrent_runs
            .map_or(default.concurrent_runs, Into::into),
        queued_triggers: file
            .queued_triggers
            .map_or(default.queued_triggers, Into::into),
        threads: file.threads.map_or(default.threads, Into::into),
        ephemeral_threads: file
            .ephemeral_threads
            .map_or(default.ephemeral_threads, Into::into),
        ephemeral_bytes: file
            .ephemeral_bytes
            .map_or(default.ephemeral_bytes, Into::into),
        stored_bytes: file.stored_bytes.map_or(default.stored_bytes, Into::into),
        files: file.files.map_or(default.files, Into::into),
        body_bytes_in_flight: file
            .body_bytes_in_flight
            .map_or(default.body_bytes_in_flight, Into::into),
    }
}

fn seconds(file: Option<NonZeroU64>, default: Duration) -> Duration {
    file.map_or(default, |seconds| Duration::from_secs(seconds.get()))
}

//! The budgets of the process, of each tenant and of each connection: `[limits]`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

/// The budgets of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitsConfig {
    /// Maximum number of open connections; derived from the descriptor limit when absent.
    pub connections: Option<usize>,
    /// Maximum number of open connections of one client address; derived from `connections` when absent.
    pub connections_per_address: Option<usize>,
    /// The proxies that `connections_per_address` does not apply to.
    pub trusted_proxies: Vec<AddressRange>,
    /// Time limit for the head of a request to arrive.
    pub header_timeout: Duration,
    /// Time that a connection without a request stays open.
    pub idle_timeout: Duration,
    /// Time limit for a TLS handshake.
    pub tls_timeout: Duration,
    /// Maximum number of concurrent HTTP/2 streams of one connection.
    pub http2_streams: u32,
    /// Maximum size of all request bodies that are in memory at once, in bytes.
    pub body_bytes_in_flight: usize,
    /// Minimum rate at which a request body arrives, in bytes per second.
    pub body_bytes_per_second: usize,
    /// Maximum size of one message as JSON, in bytes.
    pub message_bytes: usize,
    /// Maximum number of open event streams.
    pub streams: usize,
    /// Maximum number of requests that wait for their response at once.
    pub requests_in_flight: usize,
    /// Maximum size of the threads without storage, in bytes.
    pub ephemeral_bytes: usize,
    /// After this time without reading, a stream's client is disconnected.
    pub stalled_reader: Duration,
    /// Maximum number of runs that execute at once.
    pub concurrent_runs: usize,
    /// Pause before the second start of a step after a process died in it. Each further pause is four
    /// times as long, at most a minute.
    pub restart_pause: Duration,
    /// Maximum number of concurrent runs with a model, by the model's name. A model without an entry has
    /// no limit of its own.
    pub model_runs: BTreeMap<String, usize>,
    /// Maximum size of the threads in memory for followers and later requests, in bytes.
    pub thread_cache_bytes: usize,
    /// Maximum memory of requests that read threads as a whole, in bytes. Larger threads can only be
    /// read in pages.
    pub thread_view_bytes: usize,
    /// Time limit for requests to end after the shutdown signal.
    pub shutdown_grace: Duration,
    /// The budgets of a tenant that has no `[tenants.NAME.limits]`.
    pub tenant: TenantLimits,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            connections: None,
            connections_per_address: None,
            trusted_proxies: Vec::new(),
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(75),
            tls_timeout: Duration::from_secs(10),
            http2_streams: 100,
            body_bytes_in_flight: 128 << 20,
            body_bytes_per_second: 1 << 10,
            message_bytes: 4 << 20,
            streams: 10_000,
            requests_in_flight: 10_000,
            ephemeral_bytes: 64 << 20,
            stalled_reader: Duration::from_secs(30),
            concurrent_runs: 512,
            restart_pause: Duration::from_secs(1),
            model_runs: BTreeMap::new(),
            thread_cache_bytes: 64 << 20,
            thread_view_bytes: 32 << 20,
            shutdown_grace: Duration::from_secs(10),
            tenant: TenantLimits::default(),
        }
    }
}

/// The budgets of one tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TenantLimits {
    /// Maximum number of requests per minute, of all its keys together; see [`TenantLimits::rate`] when
    /// absent.
    pub requests_per_minute: Option<NonZeroU32>,
    /// Maximum number of requests that wait for their response at once.
    pub requests_in_flight: usize,
    /// Maximum number of open event streams.
    pub streams: usize,
    /// Maximum number of open event streams of one key.
    pub streams_per_key: usize,
    /// Maximum number of runs that execute at once.
    pub concurrent_runs: usize,
    /// Maximum number of triggers that wait in the queues of its threads.
    pub queued_triggers: usize,
    /// Maximum number of threads.
    pub threads: u64,
    /// Maximum number of threads without storage that exist at once.
    pub ephemeral_threads: usize,
    /// Maximum size of its threads without storage, in bytes.
    pub ephemeral_bytes: usize,
    /// Maximum size of its events and files in the store, in bytes.
    pub stored_bytes: u64,
    /// Maximum number of files.
    pub files: u64,
    /// Maximum size of its request bodies that are in memory at once, in bytes.
    pub body_bytes_in_flight: usize,
}

impl Default for TenantLimits {
    fn default() -> Self {
        Self {
            requests_per_minute: None,
            requests_in_flight: 5_000,
            streams: 5_000,
            streams_per_key: 1_000,
            concurrent_runs: 256,
            queued_triggers: 10_000,
            threads: 1_000_000,
            ephemeral_threads: 1_000,
            ephemeral_bytes: 32 << 20,
            stored_bytes: 64 << 30,
            files: 100_000,
            body_bytes_in_flight: 64 << 20,
        }
    }
}

impl TenantLimits {
    /// Maximum number of requests per minute. 60,000 by default, and no maximum in development mode.
    pub fn rate(&self, is_development: bool) -> Option<NonZeroU32> {
        if is_development {
            return self.requests_per_minute;
        }
        self.requests_per_minute.or(NonZeroU32::new(60_000))
    }
}

/// The addresses that share a prefix, such as `10.0.0.0/8`; or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    address: IpAddr,
    prefix: u32,
}

impl AddressRange {
    /// Reads `10.0.0.0/8`, `fd00::/8` or one address.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Some(longest), |it| it.parse().ok())?;
        (prefix <= longest).then_some(Self { address, prefix })
    }

    /// Whether an address is in the range. An IPv4 address written as IPv6 counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let rest = 32 - self.prefix;
                let cut = |it: u32| it.checked_shr(rest).unwrap_or_default();
                cut(own.to_bits()) == cut(other.to_bits())
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let rest = 128 - self.prefix;
                let cut = |it: u128| it.checked_shr(rest).unwrap_or_default();
                cut(own.to_bits()) == cut(other.to_bits())
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_range_contains_the_addresses_of_its_prefix() {
        let has = |range: &str, address: &str| {
            let range = AddressRange::parse(range).unwrap();
            range.contains(address.parse().unwrap())
        };
        assert!(has("10.0.0.0/8", "10.255.0.1") && has("10.0.0.0/8", "::ffff:10.1.2.3"));
        assert!(has("0.0.0.0/0", "192.0.2.1") && has("fd00::/8", "fd12::1"));
        assert!(has("192.0.2.1", "192.0.2.1") && !has("192.0.2.1", "192.0.2.2"));
        assert!(!has("10.0.0.0/8", "11.0.0.1") && !has("0.0.0.0/0", "fd00::1"));
    }

    #[test]
    fn a_range_with_a_prefix_that_is_too_long_is_refused() {
        for text in [
            "10.0.0.0/33",
            "fd00::/129",
            "10.0.0.0/",
            "10.0.0",
            "",
            "host/8",
        ] {
            assert_eq!(AddressRange::parse(text), None, "{text}");
        }
    }
}

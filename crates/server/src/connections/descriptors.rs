//! File descriptors: the limit of the process, and the spare ones that are held open.

use crate::config::LimitsConfig;
use std::fs::File;
use std::time::Duration;
use tokio::time::Instant;

/// The assumed limit if the system reports none.
const FALLBACK: usize = 1_024;
/// Maximum number of descriptors that client connections leave free; otherwise a quarter of all. The
/// store, files, outbound connections and health checks need them.
const MAX_RESERVE: usize = 2_048;
/// Default of `limits.connections` if the descriptors suffice. At 40 KB each they take 640 MB.
const MAX_CONNECTIONS: usize = 16_384;
/// Number of spare descriptors, one of which is closed for a health check when no other is free.
const SPARE: usize = 8;
/// Minimum time between two log lines about exhausted descriptors.
const LOG_EVERY: Duration = Duration::from_secs(1);

/// Raises the soft limit of descriptors to the hard limit, and returns the resulting limit.
pub(crate) fn raise_limit() -> usize {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        Err(error) => {
            tracing::warn!(%error, "the limit of file descriptors can't be raised");
            FALLBACK
        }
    }
}

fn open_any() -> std::io::Result<File> {
    File::open("/dev/null")
}

/// Maximum numbers of open connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Caps {
    /// Of all clients.
    pub(super) total: usize,
    /// Of one client address.
    pub(super) per_address: usize,
}

impl Caps {
    /// The configured limits, or those derived from the number of descriptors of the process.
    pub(super) fn new(limits: &LimitsConfig, descriptors: usize) -> Self {
        let reserve = (descriptors / 4).min(MAX_RESERVE);
        let possible = descriptors.saturating_sub(reserve).max(1);
        if let Some(wanted) = limits.connections
            && wanted > possible
        {
            tracing::warn!(
                wanted,
                possible,
                descriptors,
                "limits.connections is more than the descriptors allow; raise the hard limit (LimitNOFILE)"
            );
        }
        let total = limits.connections.unwrap_or(MAX_CONNECTIONS).min(possible);
        let per_address = limits.connections_per_address;
        let per_address = per_address.unwrap_or(total / 4).clamp(1, total);
        Self { total, per_address }
    }
}

/// Spare descriptors: closing one makes room when the system has no other free.
#[derive(Default)]
pub(super) struct Spare {
    held: Vec<File>,
    logged_at: Option<Instant>,
}

impl Spare {
    /// Opens the missing spare descriptors, as far as the system allows.
    pub(super) fn refill(&mut self) {
        while self.held.len() < SPARE
            && let Ok(file) = open_any()
        {
            self.held.push(file);
        }
    }

    /// Closes one spare descriptor. Returns whether there was one.
    pub(super) fn release(&mut self) -> bool {
        self.held.pop().is_some()
    }

    /// Logs that no connection can be accepted, at most once a second.
    pub(super) fn log(&mut self, error: &std::io::Error, now: Instant) {
        if self.logged_at.is_some_and(|at| now - at < LOG_EVERY) {
            return;
        }
        self.logged_at = Some(now);
        tracing::error!(%error, "no connection can be accepted; idle ones are closed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caps(limits: &LimitsConfig, descriptors: usize) -> (usize, usize) {
        let caps = Caps::new(limits, descriptors);
        (caps.total, caps.per_address)
    }

    #[test]
    fn caps_of_connections_follow_from_the_descriptor_limit() {
        let limits = LimitsConfig::default();
        assert_eq!(caps(&limits, 1_024), (768, 192));
        assert_eq!(caps(&limits, 4_096), (3_072, 768));
        assert_eq!(caps(&limits, 20_000), (16_384, 4_096));
        assert_eq!(caps(&limits, 1 << 20), (16_384, 4_096));
        assert_eq!(caps(&limits, 0), (1, 1));
    }

    #[test]
    fn configured_caps_of_connections_leave_the_reserve() {
        let limits = LimitsConfig {
            connections: Some(1_000),
            connections_per_address: Some(3),
            ..LimitsConfig::default()
        };
        assert_eq!(caps(&limits, 20_000), (1_000, 3));
        assert_eq!(caps(&limits, 1_024), (768, 3));
    }

    #[test]
    fn spare_descriptors_are_given_up_and_opened_again() {
        let mut spare = Spare::default();
        assert!(!spare.release());
        spare.refill();
        for _ in 0..SPARE {
            assert!(spare.release());
        }
        assert!(!spare.release());
        spare.refill();
        assert!(spare.release());
    }
}

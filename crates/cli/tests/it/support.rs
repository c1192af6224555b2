//! What the tests of the binary share.

pub(crate) mod cli;
pub(crate) mod http;
pub(crate) mod server;

/// How often tests with kills repeat them: once, or as often as `scripts/soak` says.
pub(crate) fn soak_repeats() -> u32 {
    #[allow(clippy::disallowed_methods, reason = "a soak sets it")]
    let repeats = std::env::var("LOOMLINE_SOAK_REPEATS");
    repeats.map_or(1, |repeats| repeats.parse().unwrap())
}

/// The seed that the caller chose, or else this one.
pub(crate) fn seed_or(seed: u64) -> u64 {
    #[allow(clippy::disallowed_methods, reason = "a failed test is run again")]
    let chosen = std::env::var("LOOMLINE_SEED");
    chosen.map_or(seed, |chosen| chosen.parse().unwrap())
}

//! Sources of time and ids, which tests can replace.

use jiff::Timestamp;

/// A source of the current time.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;
}

/// Makes ids.
pub trait Ids: Send + Sync {
    /// A new id; later ones sort after earlier ones (ruling 12).
    fn mint(&self) -> String;
}

/// The system's clock, with a resolution of one microsecond for compatibility with other systems.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
    }
}

/// UUIDs of version 7.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemIds;

impl Ids for SystemIds {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place of this crate that mints ids"
    )]
    fn mint(&self) -> String {
        uuid::Uuid::now_v7().to_string()
    }
}

//! Time and ids, so that tests can give their own.

use jiff::Timestamp;

/// A source of the current time.
pub trait Clock: Send + Sync {
    /// The present instant.
    fn now(&self) -> Timestamp;
}

/// Makes ids.
pub trait Ids: Send + Sync {
    /// A new id; later ones sort after earlier ones (ruling 12).
    fn mint(&self) -> String;
}

/// The system's clock, to the microsecond: what every other library of the field can hold.
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

//! Bugs that the simulation of several nodes must find. Only a build with the feature `planted-bugs` has them, and
//! only where a test plants one.

/// A bug that a test can plant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "planted-bugs"),
    expect(unreachable_pub, reason = "a build with the feature shows it")
)]
pub enum Bug {
    /// A worker takes a run again after another node has taken it.
    RetakesWhenFenced,
    /// A node works on a run that another living node owns.
    WorksOnOwnedRuns,
    /// A parent falls asleep over a child that may have continued since.
    SleepsUnguarded,
    /// A writer drops what a conflict has refused.
    DropsRefusedWrites,
    /// A thread with work is left as one without work.
    RestsWithWork,
    /// A tool with effects runs again after a takeover.
    RepeatsEffects,
    /// A run is resumed without a reset of its step.
    ResumesWithoutReset,
    /// An append with an unknown result is taken as refused.
    TakesUnknownAsRefused,
    /// A run that an append with an unknown result has started gets no worker, and its node never looks for it.
    ForgetsUnknownStarts,
    /// A child whose node died is left to its parent on another node.
    LeavesChildToParent,
    /// A search for due threads takes those of living nodes.
    TakesThreadsOfLiving,
    /// A follower learns of the changes of other nodes by hints alone.
    TrustsHints,
    /// A node whose lease has ended continues.
    GoesOnWhenDead,
}

#[cfg(feature = "planted-bugs")]
mod bugs {
    use super::Bug;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    impl Bug {
        /// All of them.
        pub const ALL: [Self; 13] = [
            Self::RetakesWhenFenced,
            Self::WorksOnOwnedRuns,
            Self::SleepsUnguarded,
            Self::DropsRefusedWrites,
            Self::RestsWithWork,
            Self::RepeatsEffects,
            Self::ResumesWithoutReset,
            Self::TakesUnknownAsRefused,
            Self::ForgetsUnknownStarts,
            Self::LeavesChildToParent,
            Self::TakesThreadsOfLiving,
            Self::TrustsHints,
            Self::GoesOnWhenDead,
        ];
    }

    /// Plants a bug in this thread, or removes the one that is planted.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.set(bug);
    }

    pub(crate) fn has(bug: Bug) -> bool {
        PLANTED.get() == Some(bug)
    }
}

#[cfg(feature = "planted-bugs")]
pub(crate) use bugs::has;
#[cfg(feature = "planted-bugs")]
pub use bugs::plant;

/// Whether this bug is planted.
#[cfg(not(feature = "planted-bugs"))]
pub(crate) const fn has(_: Bug) -> bool {
    false
}

//! Why the server is not ready.

/// Why the server is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotReady {
    /// Unfinished runs of the last process are being resumed.
    Starting,
    /// The process is about to end.
    ShuttingDown,
    /// The last commit failed: the disk is full, or writing to it fails.
    CommitsFail,
    /// Damage was found in the store since the process started.
    StoreDamaged,
    /// The store can't be read.
    StoreFailed,
    /// This node of a shared store has no valid lease: the database can't be reached.
    NotLeased,
    /// The clock of this node differs from the database's.
    ClockDiffers,
    /// The process has no file descriptors left for connections.
    DescriptorsExhausted,
}

impl NotReady {
    /// Stable, for programs.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::ShuttingDown => "shutting_down",
            Self::CommitsFail => "commits_fail",
            Self::StoreDamaged => "store_damaged",
            Self::StoreFailed => "store_failed",
            Self::NotLeased => "not_leased",
            Self::ClockDiffers => "clock_differs",
            Self::DescriptorsExhausted => "descriptors_exhausted",
        }
    }

    /// The reason, for people.
    pub(crate) const fn advice(self) -> &'static str {
        match self {
            Self::Starting => "it has not finished starting",
            Self::ShuttingDown => "it is shutting down",
            Self::CommitsFail => "commits fail; see whether its disk is full",
            Self::StoreDamaged => "its store is damaged; run `loomline doctor`",
            Self::StoreFailed => "its store can't be read",
            Self::NotLeased => {
                "its lease in the database has ended; see whether the database can be reached"
            }
            Self::ClockDiffers => {
                "its clock differs from the database's by more than 5 s; synchronize the clocks"
            }
            Self::DescriptorsExhausted => "it has no file descriptors left",
        }
    }
}

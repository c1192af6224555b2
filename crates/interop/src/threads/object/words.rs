//! The protocol's status words.

use serde::{Serialize, Serializer};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$vdoc])* $variant,)*
        }

        impl $name {
            /// The protocol's word.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }
    };
}

words! {
    /// The state of a run.
    RunStatus {
        /// It waits to start or to continue.
        Queued = "queued",
        /// It runs, or waits for an answer that this API has no status for.
        InProgress = "in_progress",
        /// It waits for the outputs of client tools.
        RequiresAction = "requires_action",
        /// It is being stopped.
        Cancelling = "cancelling",
        /// It was stopped.
        Cancelled = "cancelled",
        /// It went wrong.
        Failed = "failed",
        /// It ended as it should.
        Completed = "completed",
        /// Its answer was cut off.
        Incomplete = "incomplete",
        /// It exceeded its time.
        Expired = "expired",
    }
}

words! {
    /// The state of a message.
    MessageStatus {
        /// It is being written.
        InProgress = "in_progress",
        /// It was cut off.
        Incomplete = "incomplete",
        /// It is whole.
        Completed = "completed",
    }
}

words! {
    /// The state of a run step.
    StepStatus {
        /// It is under way.
        InProgress = "in_progress",
        /// It was stopped.
        Cancelled = "cancelled",
        /// It went wrong.
        Failed = "failed",
        /// It is done.
        Completed = "completed",
        /// Its run exceeded its time.
        Expired = "expired",
    }
}

words! {
    /// Why a message is incomplete.
    Reason {
        /// The provider's policy stopped it.
        ContentFilter = "content_filter",
        /// The model had written as much as it may.
        MaxTokens = "max_tokens",
        /// The run was stopped.
        RunCancelled = "run_cancelled",
        /// The run's time was up.
        RunExpired = "run_expired",
        /// The run went wrong.
        RunFailed = "run_failed",
    }
}

impl RunStatus {
    /// Whether the run locks its thread.
    pub const fn is_active(self) -> bool {
        match self {
            Self::Queued | Self::InProgress | Self::RequiresAction | Self::Cancelling => true,
            Self::Cancelled | Self::Failed | Self::Completed | Self::Incomplete | Self::Expired => {
                false
            }
        }
    }
}

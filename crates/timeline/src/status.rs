//! The five state machines (EK §5), as tables.

use serde::{Deserialize, Serialize};

/// A kind of thing that has a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Entity {
    /// A thread.
    Thread,
    /// A context.
    Context,
    /// An execution.
    Execution,
    /// A step.
    Step,
    /// An item.
    Item,
}

impl std::fmt::Display for Entity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Thread => "thread",
            Self::Context => "context",
            Self::Execution => "execution",
            Self::Step => "step",
            Self::Item => "item",
        })
    }
}

/// A transition that no row of the table allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {entity} is {from}{}", outcome(from, to))]
pub struct IllegalTransition {
    /// The entity whose status was to change.
    pub entity: Entity,
    /// Its current status.
    pub from: &'static str,
    /// The requested status.
    pub to: &'static str,
}

fn outcome(from: &str, to: &str) -> String {
    if from == to {
        " already".to_owned()
    } else {
        format!(", and can't become {to}")
    }
}

/// A status whose transitions are listed in one table.
pub trait Machine: Copy + PartialEq + Sized + 'static {
    /// The entity that has this status.
    const ENTITY: Entity;
    /// All legal transitions.
    const TRANSITIONS: &'static [(Self, Self)];

    /// The status as the specification spells it.
    fn name(self) -> &'static str;

    /// Whether this is the last status a thing can have.
    fn is_final(self) -> bool {
        !Self::TRANSITIONS.iter().any(|(from, _)| *from == self)
    }

    /// Allows the transition, or returns the reason against it.
    fn transition(self, to: Self) -> Result<(), IllegalTransition> {
        if Self::TRANSITIONS.contains(&(self, to)) {
            Ok(())
        } else {
            Err(IllegalTransition {
                entity: Self::ENTITY,
                from: self.name(),
                to: to.name(),
            })
        }
    }
}

macro_rules! status {
    ($(#[$doc:meta])* $name:ident for $entity:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* } $transitions:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// Every status, in the order of the specification.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
        }

        #[cfg(feature = "openapi")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .enum_values(Some(Self::ALL.iter().map(|status| status.name())))
                    .into()
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::ToSchema for $name {}

        impl Machine for $name {
            const ENTITY: Entity = Entity::$entity;
            const TRANSITIONS: &'static [(Self, Self)] = $transitions;

            fn name(self) -> &'static str {
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
    };
}

status! {
    /// Whether a thread is at rest, being answered, over or broken (EK §5.1).
    ThreadStatus for Thread {
        /// At rest.
        Open = "open",
        /// Being answered.
        Streaming = "streaming",
        /// Over.
        Closed = "closed",
        /// The last execution failed.
        Failed = "failed",
    }
    &[
        (Self::Open, Self::Streaming),
        (Self::Streaming, Self::Open),
        (Self::Streaming, Self::Closed),
        (Self::Streaming, Self::Failed),
        (Self::Failed, Self::Open),
    ]
}

status! {
    /// Whether a context is in use (EK §5.2).
    ContextStatus for Context {
        /// At rest.
        Open = "open",
        /// In use.
        Streaming = "streaming",
        /// Over.
        Closed = "closed",
    }
    &[
        (Self::Open, Self::Streaming),
        (Self::Streaming, Self::Open),
        (Self::Open, Self::Closed),
        (Self::Streaming, Self::Closed),
    ]
}

status! {
    /// The status of an execution (EK §5.3).
    ExecutionStatus for Execution {
        /// Running, or to be resumed after a crash.
        Executing = "executing",
        /// Ended as it should.
        Completed = "completed",
        /// Ended otherwise: an error, a cancel, a timeout.
        Failed = "failed",
    }
    &[(Self::Executing, Self::Completed), (Self::Executing, Self::Failed)]
}

status! {
    /// The status of a step (EK §5.4).
    StepStatus for Step {
        /// Running, or to be resumed after a crash.
        Running = "running",
        /// The model has answered and every tool call has its result.
        Completed = "completed",
        /// The step failed before that.
        Failed = "failed",
    }
    &[(Self::Running, Self::Completed), (Self::Running, Self::Failed)]
}

status! {
    /// The status of an item (EK §5.5).
    ItemStatus for Item {
        /// In the log.
        Stored = "stored",
        /// Being written by an execution.
        Pending = "pending",
        /// Complete.
        Completed = "completed",
    }
    &[
        (Self::Stored, Self::Pending),
        (Self::Stored, Self::Completed),
        (Self::Pending, Self::Completed),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed<S: Machine>() -> Vec<String> {
        S::TRANSITIONS
            .iter()
            .map(|(from, to)| format!("{} -> {}", from.name(), to.name()))
            .collect()
    }

    #[test]
    fn thread_status_moves_as_section_5_1_lists() {
        let rows = [
            "open -> streaming",
            "streaming -> open",
            "streaming -> closed",
            "streaming -> failed",
            "failed -> open",
        ];
        assert_eq!(listed::<ThreadStatus>(), rows);
    }

    #[test]
    fn context_status_moves_as_section_5_2_lists() {
        let rows = [
            "open -> streaming",
            "streaming -> open",
            "open -> closed",
            "streaming -> closed",
        ];
        assert_eq!(listed::<ContextStatus>(), rows);
    }

    #[test]
    fn execution_and_step_status_move_as_sections_5_3_and_5_4_list() {
        assert_eq!(
            listed::<ExecutionStatus>(),
            ["executing -> completed", "executing -> failed"]
        );
        assert_eq!(
            listed::<StepStatus>(),
            ["running -> completed", "running -> failed"]
        );
    }

    #[test]
    fn item_status_moves_as_section_5_5_lists() {
        assert_eq!(
            listed::<ItemStatus>(),
            [
                "stored -> pending",
                "stored -> completed",
                "pending -> completed"
            ]
        );
    }

    #[test]
    fn every_move_that_is_not_listed_is_refused_by_name() {
        for from in ThreadStatus::ALL {
            for to in ThreadStatus::ALL {
                let legal = ThreadStatus::TRANSITIONS.contains(&(*from, *to));
                let answer = from.transition(*to);
                assert_eq!(answer.is_ok(), legal);
                if let Err(error) = answer {
                    assert_eq!(
                        error,
                        IllegalTransition {
                            entity: Entity::Thread,
                            from: from.name(),
                            to: to.name()
                        }
                    );
                }
            }
        }
    }
}

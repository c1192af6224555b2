//! Ids that only this view has.

use crate::ids::{IdForm, STEP};

/// An assistant that was made through this API. A configured agent's id is its name.
pub const ASSISTANT: IdForm = IdForm::new("asst_");
/// A file.
pub const FILE: IdForm = IdForm::new("file-");

/// What the id of a run step begins with that is about calls.
const CALLS: &str = "step_calls_";

/// Which run step of one of our steps: a step has at most one of either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunStepId {
    /// The one that wrote the message; the message's id is the step's, too.
    Message(String),
    /// The one that called tools.
    Calls(String),
}

impl RunStepId {
    /// As the protocol spells it.
    pub fn write(&self) -> String {
        match self {
            Self::Message(step) => STEP.write(step),
            Self::Calls(step) => {
                let plain = STEP.write(step);
                let rest = plain.strip_prefix(STEP.prefix());
                match rest.filter(|_| STEP.read(&plain) == step.as_str() && plain != *step) {
                    Some(rest) => format!("{CALLS}{rest}"),
                    None => format!("{CALLS}.{step}"),
                }
            }
        }
    }

    /// Reads the protocol's spelling.
    pub fn read(text: &str) -> Self {
        let Some(rest) = text.strip_prefix(CALLS) else {
            return Self::Message(STEP.read(text).into_owned());
        };
        let plain = format!("{}{rest}", STEP.prefix());
        Self::Calls(STEP.read(&plain).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use uuid::Uuid;

    proptest! {
        #[test]
        fn both_run_steps_of_a_step_have_their_own_id(step in prop_oneof![
            any::<u128>().prop_map(|id| Uuid::from_u128(id).to_string()),
            "[a-z]{1,8}(_[0-9])?",
        ]) {
            let (message, calls) = (RunStepId::Message(step.clone()), RunStepId::Calls(step));
            prop_assert_ne!(message.write(), calls.write());
            prop_assert_eq!(RunStepId::read(&message.write()), message);
            prop_assert_eq!(RunStepId::read(&calls.write()), calls);
        }
    }
}

//! Ids that only this view has.

use crate::ids::{IdForm, MESSAGE, STEP};

/// An assistant that was made through this API. A configured agent's id is its name.
pub const ASSISTANT: IdForm = IdForm::new("asst_");
/// A file.
pub const FILE: IdForm = IdForm::new("file-");

/// The protocol's id of a message, from our id of its item or step. A message that accompanies answers
/// has its place after its item's id, in both spellings: `msg_…:1`.
pub fn message_id(own: &str) -> String {
    match split_attached(own) {
        Some((item, place)) => format!("{}:{place}", written(MESSAGE, item)),
        None => written(MESSAGE, own),
    }
}

/// Reads the protocol's id of a message: our id of its item or step, without the number of an attempt.
pub fn read_message_id(text: &str) -> String {
    match split_attached(text) {
        Some((item, place)) => format!("{}:{place}", read(MESSAGE, item)),
        None => read(MESSAGE, text),
    }
}

/// Separator between the id of a step's output and the number of the attempt.
const ATTEMPT: char = '~';

/// The id of an attempt's output, from the first attempt's id. Each attempt has its own ids, because a
/// client must not receive an id twice.
pub(in crate::threads) fn of_attempt(id: String, attempt: usize) -> String {
    match attempt {
        0 => id,
        _ => format!("{id}{ATTEMPT}{attempt}"),
    }
}

/// The first attempt's id, if `text` is the id of a later attempt.
fn first_attempt(form: IdForm, text: &str) -> Option<&str> {
    let (id, attempt) = text.rsplit_once(ATTEMPT)?;
    let is_number = !attempt.is_empty() && attempt.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && form.is_own(id)).then_some(id)
}

/// The first attempt's id of a message or run step, from the id of any attempt. Metadata is stored
/// under it and so applies to all attempts.
pub fn without_attempt(text: &str) -> &str {
    let mut forms = [MESSAGE, STEP, IdForm::new(CALLS)].into_iter();
    forms
        .find_map(|form| first_attempt(form, text))
        .unwrap_or(text)
}

fn read(form: IdForm, text: &str) -> String {
    let text = first_attempt(form, text).unwrap_or(text);
    form.read(text).into_owned()
}

fn written(form: IdForm, own: &str) -> String {
    if first_attempt(form, own).is_some() {
        return form.as_is(own);
    }
    form.write(own)
}

/// Splits the id of a message that accompanies answers into the answers' item and the message's place.
/// Ids from outside may have this form by chance.
pub fn split_attached(id: &str) -> Option<(&str, &str)> {
    let (item, place) = id.rsplit_once(':')?;
    let is_place = !place.is_empty() && place.bytes().all(|byte| byte.is_ascii_digit());
    is_place.then_some((item, place))
}

/// Prefix of the id of a run step for calls.
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
            Self::Message(step) => written(STEP, step),
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
            return Self::Message(read(STEP, text));
        };
        let plain = format!("{}{rest}", STEP.prefix());
        Self::Calls(read(STEP, &plain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use uuid::Uuid;

    #[test]
    fn what_was_said_beside_answers_is_a_message_by_its_id() {
        let own = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5061:1";
        let id = message_id(own);
        assert_eq!(id, "msg_0190a3c45b6d7e8f9a0b1c2d3e4f5061:1");
        assert_eq!(read_message_id(&id), own);
        assert_eq!(split_attached("a:b:12"), Some(("a:b", "12")));
        for other in ["a", "a:", "a:b", ""] {
            assert_eq!(split_attached(other), None);
        }
    }

    proptest! {
        #[test]
        fn whatever_message_id_was_written_is_read_back(id in "(msg_)?[.:]{0,2}(msg_)?([a-f0-9-]{0,36}|[a-f0-9]{32})[~:]{0,2}[0-9]{0,2}") {
            prop_assert_eq!(read_message_id(&message_id(&id)), id);
        }

        #[test]
        fn both_run_steps_of_a_step_have_their_own_id(step in prop_oneof![
            any::<u128>().prop_map(|id| Uuid::from_u128(id).to_string()),
            "[a-z]{1,8}(_[0-9])?",
            "step_[a-f0-9]{32}~[0-9]",
        ], attempt in 0..3usize) {
            let (message, calls) = (RunStepId::Message(step.clone()), RunStepId::Calls(step.clone()));
            prop_assert_ne!(message.write(), calls.write());
            prop_assert_eq!(RunStepId::read(&message.write()), message.clone());
            prop_assert_eq!(RunStepId::read(&calls.write()), calls.clone());
            if Uuid::try_parse(&step).is_ok() {
                prop_assert_eq!(RunStepId::read(&of_attempt(message.write(), attempt)), message.clone());
                prop_assert_eq!(RunStepId::read(&of_attempt(calls.write(), attempt)), calls.clone());
                prop_assert_eq!(read_message_id(&of_attempt(message_id(&step), attempt)), step.clone());
                for id in [message_id(&step), message.write(), calls.write()] {
                    let later = of_attempt(id.clone(), attempt);
                    prop_assert_eq!(without_attempt(&later), id);
                }
            }
        }
    }
}

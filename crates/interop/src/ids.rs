//! The spelling of this server's ids in protocols.
//!
//! Each protocol expects prefixes: `thread_…`, `run_…`, `resp_…`. A UUID becomes the prefix and its
//! 32 hexadecimal digits, so that reading it needs no lookup. Ids of other systems (an AI SDK
//! client names its own messages) stay unchanged.
//!
//! ```
//! use loomline_interop::ids::THREAD;
//!
//! let id = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5061";
//! assert_eq!(THREAD.write(id), "thread_0190a3c45b6d7e8f9a0b1c2d3e4f5061");
//! assert_eq!(THREAD.read("thread_0190a3c45b6d7e8f9a0b1c2d3e4f5061"), id);
//! assert_eq!(THREAD.read(&THREAD.write("from-elsewhere")), "from-elsewhere");
//! ```

use std::borrow::Cow;
use uuid::Uuid;

/// A thread of the Threads API (AITP-T01).
pub const THREAD: IdForm = IdForm::new("thread_");
/// A thread as `OpenAI`'s Conversations see it.
pub const CONVERSATION: IdForm = IdForm::new("conv_");
/// An execution as a run of the Threads API.
pub const RUN: IdForm = IdForm::new("run_");
/// A step of an execution as a run step.
pub const STEP: IdForm = IdForm::new("step_");
/// An item or a part as a message.
pub const MESSAGE: IdForm = IdForm::new("msg_");
/// Reasoning as an item of Open Responses.
pub const REASONING: IdForm = IdForm::new("rs_");
/// A call as an item of Open Responses.
pub const FUNCTION_CALL: IdForm = IdForm::new("fc_");
/// A call's result as an item of Open Responses.
pub const FUNCTION_OUTPUT: IdForm = IdForm::new("fco_");
/// A summary of a conversation as an item of Open Responses.
pub const COMPACTION: IdForm = IdForm::new("cmp_");

/// The prefix of a response's id.
const RESPONSE: &str = "resp_";
/// The prefix of an A2A task's id.
const TASK: &str = "task_";
/// Precedes the digits of an id that is not a UUID.
const FROM_OUTSIDE: &str = "-";
/// The number of hexadecimal digits of a UUID.
const DIGITS: usize = 32;
/// Separates the prefix from an id that would otherwise be read as another one.
const AS_IS: &str = ".";

/// A spelling of ids. `read` returns exactly the id that was passed to `write`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdForm {
    prefix: &'static str,
}

impl IdForm {
    pub(crate) const fn new(prefix: &'static str) -> Self {
        Self { prefix }
    }

    /// The prefix of the ids.
    pub const fn prefix(self) -> &'static str {
        self.prefix
    }

    /// Our id in this spelling.
    pub fn write(self, id: &str) -> String {
        let prefix = self.prefix;
        if let Some(digits) = digits(id) {
            return format!("{prefix}{digits}");
        }
        if matches!(self.read(id), Cow::Borrowed(same) if same == id) {
            return id.to_owned();
        }
        self.as_is(id)
    }

    /// An id that is read back as it is, whatever it looks like.
    pub(crate) fn as_is(self, id: &str) -> String {
        format!("{}{AS_IS}{id}", self.prefix)
    }

    /// Whether this is one of our ids in this spelling.
    pub(crate) fn is_own(self, text: &str) -> bool {
        let digits = text.strip_prefix(self.prefix);
        digits.is_some_and(|digits| hyphenated(digits).is_some())
    }

    /// The server's id behind this text. A text in another spelling is an id of another system.
    pub fn read(self, text: &str) -> Cow<'_, str> {
        let Some(rest) = text.strip_prefix(self.prefix) else {
            return text.into();
        };
        if let Some(as_is) = rest.strip_prefix(AS_IS) {
            return as_is.into();
        }
        hyphenated(rest).map_or(text.into(), Cow::Owned)
    }
}

/// A response's id: the ids of thread and execution, so that both are found without a search.
pub fn response_id(thread: &str, execution: &str) -> Option<String> {
    Some(format!(
        "{RESPONSE}{}{}",
        digits(thread)?,
        digits(execution)?
    ))
}

/// The thread and the execution of a response's id.
pub fn read_response_id(text: &str) -> Option<(String, String)> {
    let (thread, execution) = text.strip_prefix(RESPONSE)?.split_at_checked(DIGITS)?;
    Some((hyphenated(thread)?, hyphenated(execution)?))
}

/// The thread and the execution of a run's id in the Agent Protocol of earlier versions: the digits
/// of both.
pub fn read_run_of_thread_id(text: &str) -> Option<(String, String)> {
    let (thread, execution) = text.split_at_checked(DIGITS)?;
    Some((hyphenated(thread)?, hyphenated(execution)?))
}

/// An A2A task's id: the ids of the thread and of the item it answers, so that both are found
/// without a search. `None` if the thread's id is not a UUID; this server makes only UUIDs.
pub fn task_id(thread: &str, item: &str) -> Option<String> {
    let thread = digits(thread)?;
    let item = digits(item).unwrap_or_else(|| {
        // From outside, so anything: spelled as digits too, for ids stand in paths.
        let hex = item.bytes().map(|byte| format!("{byte:02x}"));
        format!("{FROM_OUTSIDE}{}", hex.collect::<String>())
    });
    Some(format!("{TASK}{thread}{item}"))
}

/// The thread and the item of a task's id.
pub fn read_task_id(text: &str) -> Option<(String, String)> {
    let (thread, item) = text.strip_prefix(TASK)?.split_at_checked(DIGITS)?;
    let thread = hyphenated(thread)?;
    let item = match item.strip_prefix(FROM_OUTSIDE) {
        Some(hex) => {
            let pairs = hex.as_bytes().chunks(2);
            let bytes = pairs.map(|pair| {
                let pair = std::str::from_utf8(pair).ok().filter(|it| it.len() == 2)?;
                u8::from_str_radix(pair, 16).ok()
            });
            String::from_utf8(bytes.collect::<Option<_>>()?).ok()?
        }
        None => hyphenated(item)?,
    };
    // One spelling a task: what reads the same and is written otherwise is no id.
    (task_id(&thread, &item)? == text).then_some((thread, item))
}

/// The digits of a UUID in its canonical spelling, the only one that can be restored from them.
fn digits(id: &str) -> Option<String> {
    let uuid = Uuid::try_parse(id).ok()?;
    (uuid.hyphenated().to_string() == id).then(|| uuid.simple().to_string())
}

fn hyphenated(digits: &str) -> Option<String> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
    if digits.len() != DIGITS || !digits.bytes().all(is_digit) {
        return None;
    }
    Some(Uuid::try_parse(digits).ok()?.hyphenated().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_response_id_names_its_thread_and_its_execution() {
        let (thread, execution) = (
            "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5061",
            "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5062",
        );
        let id = response_id(thread, execution).unwrap();
        let read = read_response_id(&id).unwrap();
        assert_eq!((read.0.as_str(), read.1.as_str()), (thread, execution));
        let longer = format!("{id}0");
        for wrong in ["resp_", "resp_12", "run_x", &id[1..], &longer, "resp_é"] {
            assert_eq!(read_response_id(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_older_runs_id_has_its_threads_in_it() {
        let (thread, execution) = (
            "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5061",
            "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5062",
        );
        let id = format!("{thread}{execution}").replace('-', "");
        let read = read_run_of_thread_id(&id).unwrap();
        assert_eq!((read.0.as_str(), read.1.as_str()), (thread, execution));
        for wrong in ["", execution, &id[1..], "é"] {
            assert_eq!(read_run_of_thread_id(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_task_id_names_its_thread_and_its_item(
            thread in any::<u128>(),
            item in prop_oneof![any::<u128>().prop_map(|id| Uuid::from_u128(id).to_string()), ".{0,12}"],
        ) {
            let thread = Uuid::from_u128(thread).to_string();
            let id = task_id(&thread, &item).unwrap();
            prop_assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)), "{}", id);
            prop_assert_eq!(read_task_id(&id), Some((thread, item)));
        }

        #[test]
        fn no_two_task_ids_are_read_as_the_same(text in "task_[0-9a-f]{32}-?[0-9a-fA-F+]{0,6}") {
            if let Some((thread, item)) = read_task_id(&text) {
                prop_assert_eq!(task_id(&thread, &item), Some(text));
            }
        }

        #[test]
        fn whatever_id_was_written_is_read_back(id in prop_oneof![
            any::<u128>().prop_map(|id| Uuid::from_u128(id).to_string()),
            any::<u128>().prop_map(|id| format!("msg_{}", Uuid::from_u128(id).simple())),
            any::<u128>().prop_map(|id| Uuid::from_u128(id).simple().to_string()),
            "(msg_)?[.]{0,2}(msg_)?.{0,8}",
        ]) {
            let written = MESSAGE.write(&id);
            prop_assert_eq!(MESSAGE.read(&written), id);
        }
    }
}

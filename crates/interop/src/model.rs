//! The log's parts ⇄ models' input and output (`upp`).

mod answer;
mod history;
mod prompt;
mod recorded_calls;
mod result;
mod user;

pub use answer::{answer, assistant_message, recorded};
pub use history::{
    Marked, RemovedMessages, UnansweredCall, history, item_message, marked_history, superseded,
};
pub use prompt::{prompt_message, prompt_part};
pub use result::{result_of, with_result, with_unknown_outcome};
pub use user::{item_content, linked_files, part_without_text, unreadable_part, user_message};

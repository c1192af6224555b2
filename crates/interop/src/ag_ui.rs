//! AG-UI 1.0 (Agent User Interaction Protocol): clients' requests, and the events and messages for
//! them.
//!
//! An AG-UI thread is a thread, a run is one execution. The client names its runs; the server owns
//! the history, so it reads only the new messages of a request. A call that waits for an approval
//! is an interrupt. A call of a client-side tool is left pending, and its result arrives as a tool
//! message.

mod messages;
mod request;
mod stream;

pub use messages::{is_known_message, is_sent_with_answers, to_messages, was_cut_off};
pub(crate) use request::MESSAGE_ID;
pub use request::{
    InterruptAnswer, NewMessage, RunInput, RunInputError, ToolAnswer, from_run_input,
};
pub use stream::{RunView, interrupt_id};

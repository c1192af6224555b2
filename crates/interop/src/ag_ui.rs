//! AG-UI 1.0: what a client that speaks the Agent User Interaction Protocol posts, and what it is shown.
//!
//! An AG-UI thread is a thread, a run is one execution. The client names its runs; the server owns the
//! history, so of the messages a client sends only what it adds is read. A call that waits for a person
//! is an interrupt; a call of a tool that the client runs is left pending, and its result comes as a
//! tool message.

mod messages;
mod request;
mod stream;

pub use messages::{is_known_message, is_sent_with_answers, to_messages, was_cut_off};
pub(crate) use request::MESSAGE_ID;
pub use request::{
    InterruptAnswer, NewMessage, RunInput, RunInputError, ToolAnswer, from_run_input,
};
pub use stream::{RunView, interrupt_id};

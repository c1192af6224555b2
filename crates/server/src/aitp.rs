//! AITP: who takes part in a thread, and what waits for an answer there.
//!
//! What a message means is `interop::aitp`'s. Here are the [`Desks`] of the threads, folded from their
//! logs; the [`Speech`] that every way in goes through by which somebody says something; and the
//! documents that forms lead to.

mod asked;
mod begun;
mod desks;
mod filled;
mod forms;
mod gate;
mod past;
mod refused;
mod speech;

pub(crate) use asked::open_questions;
pub(crate) use desks::Desks;
pub(crate) use filled::{asking, filled, over};
pub(crate) use forms::Forms;
pub(crate) use refused::{Place, Refused, Why};
pub(crate) use speech::Speech;

//! AITP: who takes part in a thread, and what waits for an answer there.
//!
//! What a message means is `interop::aitp`'s. Here are the [`Desks`](desks::Desks) of the threads, folded from their
//! logs; the [`Speech`] that every way in goes through by which somebody says something; and the
//! documents that forms lead to.

mod asked;
mod begun;
pub(crate) mod desks;
mod filled;
pub(crate) mod forms;
mod gate;
mod past;
pub(crate) mod refused;
mod speech;

pub(crate) use asked::open_questions;
pub(crate) use filled::{asking, filled, over};
pub(crate) use refused::Place;
pub(crate) use speech::Speech;

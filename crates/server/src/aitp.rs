//! AITP: who takes part in a thread, and what waits for an answer there.
//!
//! What a message means is `interop::aitp`'s. Here are the [`AitpStates`](states::AitpStates) of the threads, folded from their
//! logs; the [`MessagePost`](post::MessagePost) that every way in goes through by which somebody says something; and the
//! documents that forms lead to.

mod filled;
pub(crate) mod forms;
mod gate;
mod past;
mod pending;
mod post;
pub(crate) mod refused;
mod started;
pub(crate) mod states;

pub(crate) use filled::{asking, filled, over};
pub(crate) use pending::open_questions;
pub(crate) use post::MessagePost;
pub(crate) use refused::BodyPointers;

//! AITP: the participants of a thread, and its open requests.
//!
//! `interop::aitp` defines the messages. This module has the [`AitpStates`](states::AitpStates) of the
//! threads, folded from their logs; the [`MessagePost`](post::MessagePost), which every protocol uses to
//! post messages; and the documents of forms.

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

//! An agent elsewhere, as its client sees it: what is sent to an agent that speaks A2A or the Threads API, and
//! what its answers come to. Responses is a provider's format and read by [`upp::Responses`]; only what an agent
//! has beyond a model is here.
//!
//! What an answer was in the other's words, such as the ids of its task and of its context, is kept in the
//! metadata of the message that it became ([`Place`]). So the next message finds where the conversation stands
//! there, from the last such message on, and sends only what came after it ([`News`]). What it has refused for good
//! is not sent again ([`Refused`]).

pub mod a2a;
mod news;
mod place;
mod refused;
pub mod responses;
mod said;
pub mod threads;

pub use news::News;
pub use place::{Address, Ask, AskKind, Place};
pub use refused::Refused;
pub use said::Said;

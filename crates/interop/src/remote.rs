//! An agent elsewhere, as its client sees it: what is sent to an agent that speaks A2A or the Threads API, and
//! what its answers come to. Responses is a provider's format and read by [`upp::Responses`]; only what an agent
//! has beyond a model is here.
//!
//! What an answer was in the other's words, such as the ids of its task and of its context, is kept in the
//! metadata of the message that it became ([`RemotePosition`]). So the next message finds where the conversation stands
//! there, from the last such message on, and sends only what came after it ([`News`]). What it has refused for good
//! is not sent again ([`RemoteRefusal`]).

pub mod a2a;
mod delta;
mod position;
mod refused;
pub mod responses;
mod text_pieces;
pub mod threads;

pub use delta::News;
pub use position::{Address, AskKind, RemotePosition, RemoteQuestion};
pub use refused::RemoteRefusal;
pub use text_pieces::TextPieces;

//! The client side of remote agents: requests to agents that speak A2A or the Threads API, and
//! their answers. Responses is a provider's format and read by [`upp::Responses`]; this module has
//! only the features of an agent that a model lacks.
//!
//! The metadata of a message from a remote agent holds the remote ids, such as those of the task
//! and of the context ([`RemotePosition`]). The next request finds the position of the remote
//! conversation in the last such message and sends only what came after it ([`News`]). Messages
//! that the agent refused for good are not sent again ([`RemoteRefusal`]).

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

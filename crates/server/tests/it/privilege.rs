//! What requests may not do: the least that a caller needs is all that it gets.

mod cards;
mod hosts;
mod request_ids;

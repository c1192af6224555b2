//! What a turn must and must not do (UPP §2–§4, §10), with a model that answers from a list.

mod asking;
mod cancelling;
mod rounds;
mod support;

//! The server as its clients see it.

mod bad_input;
mod chat;
mod documents;
mod events;
mod harness;
mod messages;
mod openapi;
mod operation;
mod tenants;

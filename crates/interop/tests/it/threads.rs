//! The Threads API: requests, objects, pages, and the events of streams.

mod client;
pub(crate) mod logs;
mod objects;
mod pages;
mod requests;
mod runs;
mod schema;
mod streams;

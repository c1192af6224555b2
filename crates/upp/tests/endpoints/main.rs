//! The providers' embeddings and images, against a local server that speaks their formats.
#![cfg(feature = "http")]
#![expect(clippy::unwrap_used, reason = "all of this is tests, helpers included")]

mod embeddings;
mod images;
mod server;

//! What the tests of the binary share.

pub(crate) mod cli;
pub(crate) mod http;
pub(crate) mod server;

//! Tests of the writer and of the stream.

mod cost;
mod documents;
mod hostile;
mod model;
mod scan;
mod streams;
mod written;

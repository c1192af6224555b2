//! What vendors refuse, misread, or count in a way of their own.
#![cfg(feature = "http")]

mod after;
mod answers;
mod failures;
mod ids;
mod moves;
mod requests;
mod support;

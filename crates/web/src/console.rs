//! The console: what agents did, and why.

mod frame;

pub use frame::{ConsoleFrame, ConsolePlace, ThreadSection};

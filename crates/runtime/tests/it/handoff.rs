//! Agents that hand over to each other on one thread.

mod limits;
mod transfers;

//! Sub-agents on threads of their own (UAP §8).

mod crash;
mod memory;
pub(crate) mod rig;
mod runs;
mod stop;
mod watch;

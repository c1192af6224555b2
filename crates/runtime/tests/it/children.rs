//! Sub-agents on threads of their own (UAP §8).

mod crash;
mod delete;
mod foreign;
mod late;
mod memory;
pub(crate) mod rig;
mod runs;
mod stop;
mod waits;
mod waits_crash;
mod waits_end;
mod waits_heard;
mod waits_race;
mod waits_stop;
mod watch;

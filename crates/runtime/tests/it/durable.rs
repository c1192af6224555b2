//! Every strategy under the runtime: what is kept, what a crash leaves, and answers from outside.

mod answers;
mod commits;
mod compaction;
mod crash_points;
mod crashes;
mod limits;
mod middleware;
mod model;
mod options;
mod prepared;
mod reconcile;
mod rewind;
pub(crate) mod rig;
mod strategies;
mod tools;

//! The tools of an agent: checked when it is built, run concurrently (UAP §8.5, §8.6).

mod phase;
mod round;
mod schedule;
mod toolbox;

pub(crate) use phase::answer;
pub(crate) use round::Round;
pub(crate) use schedule::topological;
pub(crate) use toolbox::Toolbox;

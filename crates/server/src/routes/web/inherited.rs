//! The events that a fork shares with the threads that it was forked from.

use runtime::Position;

/// The number of an event in the thread's own log; none if an ancestor has it. A fork's own log begins with
/// 1, after the events that it inherits.
pub(super) fn own_seq(position: Position, inherited: u64) -> Option<u64> {
    position.0.checked_sub(inherited).filter(|seq| *seq > 0)
}

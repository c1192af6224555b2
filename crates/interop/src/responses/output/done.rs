//! Finished items and their positions.

/// Whether an item comes directly before an index, or has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Order {
    Before,
    At,
}

/// An item that is over.
#[derive(Clone, Debug)]
pub(in crate::responses) struct Done {
    /// The final position of the item: its `output_index` in events. An item that could not be
    /// streamed at its position comes directly before this index.
    pub(super) order: (usize, Order),
    /// Of which execution and which of its steps it is.
    pub(super) step: (u32, u32),
    pub(in crate::responses) id: String,
    pub(in crate::responses) json: String,
}

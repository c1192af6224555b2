//! Items that are over, and where they stand.

/// Whether an item stands right before an index, or has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Order {
    Before,
    At,
}

/// An item that is over.
#[derive(Clone, Debug)]
pub(in crate::responses) struct Done {
    /// Where it stands in the end: by its `output_index` in events. What could not be told in its place
    /// stands right before this index.
    pub(super) order: (usize, Order),
    /// Of which execution and which of its steps it is.
    pub(super) step: (u32, u32),
    pub(in crate::responses) id: String,
    pub(in crate::responses) json: String,
}

//! The limits on the size of a text.

/// The limits on the size of a JSON text.
///
/// The limit on nesting makes it safe to clone, compare and drop a parsed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Levels of arrays and objects; more than [`Limits::DEEPEST`] counts as that.
    pub max_depth: usize,
    /// Bytes of text.
    pub max_bytes: usize,
    /// Values of any type, keys not counted.
    pub max_nodes: usize,
}

impl Limits {
    /// The highest limit on nesting that can be set.
    pub const DEEPEST: usize = 1024;
}

impl Default for Limits {
    /// 128 levels, 256 MiB, sixteen million values.
    fn default() -> Self {
        Self {
            max_depth: 128,
            max_bytes: 256 << 20,
            max_nodes: 16 << 20,
        }
    }
}

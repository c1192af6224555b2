//! How large a text may be.

/// How large a JSON text may be.
///
/// The limit on nesting is what makes it safe to clone, compare and drop what was parsed.
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
    /// The deepest nesting that can be asked for.
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

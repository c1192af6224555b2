//! Limits for JSON Schemas that come from outside: clients, MCP servers, configuration files.
//!
//! [`check`] reads a schema once, without recursion and without compiling it. A schema that passes
//! can be compiled and used in bounded time, memory and stack. See `docs/reference/security.md`.

mod cost;
mod graph;
mod locations;
mod pattern;

use graph::Graph;
use locations::{Locations, pointer_of};
use serde_json::Value;

/// Maximum size of a schema, in bytes of its keys, texts and values.
pub const MAX_BYTES: usize = 256 << 10;
/// Maximum number of JSON values in a schema.
pub const MAX_VALUES: usize = 20_000;
/// Maximum nesting of arrays and objects in a schema.
pub const MAX_NESTING: usize = 64;
/// Maximum length of the JSON pointers to all values of a schema together, in bytes. A compiled
/// schema holds several copies of each.
pub const MAX_POINTER_BYTES: usize = 2 << 20;
/// Maximum number of references (`$ref`, `$dynamicRef`, `$recursiveRef`).
pub const MAX_REFERENCES: usize = 2_000;
/// Maximum number of subschemas on the longest path that enters no subschema twice. References
/// are followed.
pub const MAX_PATH: usize = 100;
/// Maximum number of subschemas that apply to the same value one inside the other, through
/// references and combinators such as `allOf`.
pub const MAX_CHAIN: usize = 32;
/// Maximum number of evaluations of subschemas for one value, with references written out.
pub const MAX_PATHS: u64 = 100_000;
/// Maximum number of values of one `enum`.
pub const MAX_ENUM: usize = 2_000;
/// Maximum length of one regular expression, in bytes.
pub const MAX_PATTERN_BYTES: usize = 1_000;
/// Maximum size of one regular expression with bounded repetitions written out, in characters.
pub const MAX_PATTERN_SIZE: u64 = 4_000;
/// Maximum number of regular expressions (`pattern`, `patternProperties`).
pub const MAX_PATTERNS: usize = 200;
/// Maximum size of all regular expressions together, written out, in characters.
pub const MAX_PATTERNS_SIZE: u64 = 40_000;

/// Why a schema is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaFault {
    /// It exceeds [`MAX_BYTES`].
    Bytes,
    /// It exceeds [`MAX_VALUES`].
    Values,
    /// It exceeds [`MAX_NESTING`].
    Nesting,
    /// It exceeds [`MAX_POINTER_BYTES`].
    Pointers,
    /// It exceeds [`MAX_REFERENCES`].
    References,
    /// A reference has no target in the schema.
    Unresolved,
    /// A subschema below the root changes the base of references with `$id`.
    EmbeddedId,
    /// An anchor exists twice.
    RepeatedAnchor,
    /// A subschema applies itself to the same value.
    Endless,
    /// It exceeds [`MAX_CHAIN`].
    Chain,
    /// It exceeds [`MAX_PATH`].
    Path,
    /// It exceeds [`MAX_PATHS`].
    Paths,
    /// It exceeds [`MAX_ENUM`].
    Enum,
    /// It exceeds [`MAX_PATTERN_BYTES`] or [`MAX_PATTERN_SIZE`].
    Pattern,
    /// It exceeds [`MAX_PATTERNS`] or [`MAX_PATTERNS_SIZE`].
    Patterns,
}

impl SchemaFault {
    /// The expected form, as the end of a sentence that begins with "expected".
    pub const fn expected(self) -> &'static str {
        match self {
            Self::Bytes => "a JSON Schema of at most 256 KiB",
            Self::Values => "a JSON Schema of at most 20000 JSON values",
            Self::Nesting => "a JSON Schema with at most 64 levels of nesting",
            Self::Pointers => "a JSON Schema with shorter names or less nesting",
            Self::References => "a JSON Schema with at most 2000 references",
            Self::Unresolved => "a reference to a place in this JSON Schema",
            Self::EmbeddedId => "no $id below the root of a JSON Schema",
            Self::RepeatedAnchor => "an anchor that exists once in the JSON Schema",
            Self::Endless => "a JSON Schema whose references end, or descend into the value",
            Self::Chain => {
                "at most 32 subschemas that apply to one value inside each other, with references followed"
            }
            Self::Path => "at most 100 subschemas inside each other, with references followed",
            Self::Paths => {
                "a JSON Schema that needs at most 100000 evaluations per value, with references followed"
            }
            Self::Enum => "an enum of at most 2000 values",
            Self::Pattern => {
                "a regular expression of at most 1000 bytes, and 4000 characters with repetitions written out"
            }
            Self::Patterns => "a JSON Schema with fewer or shorter regular expressions",
        }
    }
}

/// A schema that exceeds a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at {pointer:?}, expected {}", fault.expected())]
pub struct RefusedSchema {
    /// The place in the schema, as a JSON pointer.
    pub pointer: String,
    /// Which limit.
    pub fault: SchemaFault,
}

/// The size of a schema that [`check`] accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Number of JSON values.
    pub values: usize,
    /// Number of subschemas on the longest path from the root, with references followed.
    pub depth: usize,
}

/// Checks a schema against all limits of this module. Time and memory are proportional to its size, up
/// to the limits.
///
/// # Errors
///
/// The first limit that the schema exceeds, and its place.
pub fn check(schema: &Value) -> Result<Cost, RefusedSchema> {
    let places = Locations::of(schema)?;
    let graph = Graph::of(&places)?;
    cost::of(&places, &graph)
}

#[cfg(test)]
mod tests;

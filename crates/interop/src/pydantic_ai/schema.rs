//! The schema of a history in the library's types, for versions 1.0 to 2.68 together.
//!
//! A member may have any type that one of the versions allows. It may be absent if one of them
//! fills it in. The order of a table is the order in which 2.68 writes. Members that no table has
//! are copied unchanged.

mod parts;

pub(super) use parts::{NAMED_BY_KIND, Side, content, part};

use thread::json::Shape;

const NULL: u8 = 1;
const BOOL: u8 = 2;
const NUMBER: u8 = 4;
const STRING: u8 = 8;
const ARRAY: u8 = 16;
const OBJECT: u8 = 32;

/// The type of a value.
#[derive(Clone, Copy)]
pub(super) struct Type {
    shapes: u8,
    /// The further check of a value of the checked shape.
    pub(super) then: Then,
}

/// A further check of a value that has the right shape.
#[derive(Clone, Copy)]
pub(super) enum Then {
    Nothing,
    /// A string out of a closed set.
    OneOf(&'static [&'static str]),
    /// A string that is a date and a time.
    Instant,
    /// An integer.
    Whole,
    /// A string of base64 in either alphabet.
    Base64,
    /// An object with these members.
    Members(&'static Table),
    /// An object of which each member is of this type.
    Each(&'static Type),
    /// An array of which each element is of this type.
    List(&'static Type),
    /// An object that is content of its `kind`.
    Content,
}

impl Type {
    const fn new(shapes: u8, then: Then) -> Self {
        Self { shapes, then }
    }

    const fn or_null(self) -> Self {
        Self::new(self.shapes | NULL, self.then)
    }

    /// Whether the type allows this shape.
    pub(super) fn takes(self, shape: Shape) -> bool {
        self.shapes & bit(shape) != 0
    }

    /// A description for messages.
    pub(super) fn words(self) -> String {
        let shapes = [
            Shape::String,
            Shape::Number,
            Shape::Bool,
            Shape::Object,
            Shape::Array,
            Shape::Null,
        ];
        let takes: Vec<&str> = shapes
            .into_iter()
            .filter(|shape| self.takes(*shape))
            .map(Shape::name)
            .collect();
        takes.join(" or ")
    }
}

fn bit(shape: Shape) -> u8 {
    match shape {
        Shape::Null => NULL,
        Shape::Bool => BOOL,
        Shape::Number => NUMBER,
        Shape::String => STRING,
        Shape::Array => ARRAY,
        Shape::Object => OBJECT,
    }
}

/// A member in the library's types.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) is_required: bool,
    pub(super) of: Type,
}

/// The members of one kind of object.
pub(super) struct Table {
    pub(super) fields: &'static [Field],
    /// One bit for each field that must be there.
    pub(super) required: u64,
}

impl Table {
    const fn new(fields: &'static [Field]) -> Self {
        let mut required = 0;
        let mut rest = fields;
        let mut place = 0;
        while let [first, others @ ..] = rest {
            if first.is_required {
                required |= 1 << place;
            }
            place += 1;
            rest = others;
        }
        Self { fields, required }
    }

    /// The index of a member in the table. Searches from `from` on, then from the front.
    pub(super) fn index_of(&self, key: &str, from: usize) -> Option<usize> {
        let named = |field: &Field| field.name == key;
        let (before, after) = self.fields.split_at_checked(from)?;
        let found = after.iter().position(named).map(|place| place + from);
        found.or_else(|| before.iter().position(named))
    }
}

const fn must(name: &'static str, of: Type) -> Field {
    Field {
        name,
        is_required: true,
        of,
    }
}

const fn may(name: &'static str, of: Type) -> Field {
    Field {
        name,
        is_required: false,
        of,
    }
}

const ANY: Type = Type::new(u8::MAX, Then::Nothing);
const TEXT: Type = Type::new(STRING, Then::Nothing);
const TEXT_: Type = TEXT.or_null();
const TEXTS: Type = Type::new(ARRAY, Then::List(&TEXT));
const FLAG: Type = Type::new(BOOL, Then::Nothing);
const WHOLE: Type = Type::new(NUMBER, Then::Whole);
const WHOLE_: Type = WHOLE.or_null();
const REAL: Type = Type::new(NUMBER, Then::Nothing);
const DICT_: Type = Type::new(OBJECT | NULL, Then::Nothing);
const INSTANT: Type = Type::new(STRING | NUMBER, Then::Instant);
const ARGS: Type = Type::new(STRING | OBJECT | NULL, Then::Nothing);
const LOADED_FROM: Type = Type::new(BOOL | STRING, Then::OneOf(&["allow-local"]));
const OUTCOME: Type = one_of(&["success", "failed", "denied", "interrupted", "retried"]);

const fn one_of(names: &'static [&'static str]) -> Type {
    Type::new(STRING, Then::OneOf(names))
}

const fn object(table: &'static Table) -> Type {
    Type::new(OBJECT, Then::Members(table))
}

const fn list(of: &'static Type) -> Type {
    Type::new(ARRAY, Then::List(of))
}

/// A message of either kind, in an order that fits both.
pub(super) const MESSAGE: Table = Table::new(&[
    must("parts", Type::new(ARRAY, Then::Nothing)),
    may("usage", object(&USAGE)),
    may("model_name", TEXT_),
    may("model_id", TEXT_),
    may("timestamp", INSTANT.or_null()),
    may("instructions", TEXT_),
    must("kind", TEXT),
    may("provider_name", TEXT_),
    may("provider_url", TEXT_),
    may("canonical_system", TEXT_),
    may("provider_details", DICT_),
    may("provider_response_id", TEXT_),
    may(
        "finish_reason",
        one_of(&["stop", "length", "content_filter", "tool_call", "error"]).or_null(),
    ),
    may("run_id", TEXT_),
    may("conversation_id", TEXT_),
    may("metadata", DICT_),
    may("workspace_ref", object(&WORKSPACE).or_null()),
    may("history_digest", TEXT_),
    may("failed_attempts", list(&ATTEMPT).or_null()),
    may(
        "state",
        one_of(&["complete", "incomplete", "suspended", "interrupted"]),
    ),
]);

/// Members of responses only; in a request they are unknown.
pub(super) const OF_RESPONSES: [&str; 12] = [
    "usage",
    "model_name",
    "model_id",
    "provider_name",
    "provider_url",
    "canonical_system",
    "provider_details",
    "provider_response_id",
    "finish_reason",
    "workspace_ref",
    "history_digest",
    "failed_attempts",
];
/// Members that only a request has.
pub(super) const OF_REQUESTS: [&str; 1] = ["instructions"];

/// The usage of a response.
pub(super) const USAGE: Table = Table::new(&[
    may("input_tokens", WHOLE),
    may("cache_write_tokens", WHOLE),
    may("cache_write_1h_tokens", WHOLE),
    may("cache_read_tokens", WHOLE),
    may("output_tokens", WHOLE),
    may("unmeasured_requests", WHOLE),
    may("output_reasoning_tokens", WHOLE),
    may("input_audio_tokens", WHOLE),
    may("cache_audio_read_tokens", WHOLE),
    may("output_audio_tokens", WHOLE),
    may("audio_seconds", REAL),
    may("details", Type::new(OBJECT, Then::Each(&WHOLE))),
    may("cost", Type::new(NUMBER | STRING | NULL, Then::Nothing)),
]);

const WORKSPACE: Table = Table::new(&[must("provider", TEXT), must("id", TEXT)]);

const ATTEMPT: Type = object(&Table::new(&[
    must("model_name", TEXT),
    may("provider_name", TEXT_),
    must("outcome", one_of(&["error", "rejected"])),
    may("error", TEXT_),
    must("timestamp", INSTANT),
    must("duration", Type::new(STRING | NUMBER, Then::Nothing)),
    may("usage", object(&USAGE).or_null()),
]));

//! JSON values that count each visit, so that a comparison with a schema ends.
//!
//! A JSON Schema validator can't be interrupted from outside. It reads these wrapped values. When
//! the budget is spent, the next read unwinds the validator, and [`within`] returns `None`.

use jsonschema::JsonType;
use jsonschema::json::{self, Json, NodeIdentity, unique};
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// Maximum number of value visits on the caller's thread.
const SMALL_STEPS: u64 = 50_000;
/// Maximum number of value visits to find all mismatches.
const PLACES_STEPS: u64 = 20_000;
/// Maximum size of the stack that a comparison uses on the caller's thread, in bytes.
const SMALL_STACK: usize = 256 << 10;
/// Maximum number of value visits on a separate thread.
const LARGE_STEPS: u64 = 20_000_000;
/// Maximum size of the stack on a thread of its own, in bytes.
const LARGE_STACK: usize = super::apart::STACK / 2;
/// Number of value visits between two reads of the clock.
const STEPS_PER_CLOCK: u64 = 256;

/// The maximum cost of one comparison.
#[derive(Clone, Copy)]
pub(super) struct Budget {
    steps: u64,
    stack: usize,
    time: Duration,
}

impl Budget {
    /// The budget on the caller's thread.
    pub(super) fn small() -> Self {
        Self {
            steps: SMALL_STEPS,
            stack: SMALL_STACK,
            time: super::apart::TIME,
        }
    }

    /// The budget to find all mismatches; each of them costs some hundred bytes.
    pub(super) fn locations() -> Self {
        Self {
            steps: PLACES_STEPS,
            ..Self::small()
        }
    }

    /// The budget on a thread of its own.
    pub(super) fn large() -> Self {
        Self {
            steps: LARGE_STEPS,
            stack: LARGE_STACK,
            time: super::apart::TIME,
        }
    }
}

#[derive(Clone, Copy)]
struct Meter {
    steps: u64,
    until: Instant,
    base: usize,
    stack: usize,
}

thread_local! {
    static METER: Cell<Option<Meter>> = const { Cell::new(None) };
}

struct Exceeded;

/// Runs a comparison; nothing if it exceeds the budget.
pub(super) fn within<T>(budget: Budget, compare: impl FnOnce() -> T) -> Option<T> {
    let meter = Meter {
        steps: budget.steps,
        until: Instant::now() + budget.time,
        base: stack_address(),
        stack: budget.stack,
    };
    let outer = METER.replace(Some(meter));
    let compared = catch_unwind(AssertUnwindSafe(compare));
    METER.set(outer);
    match compared {
        Ok(compared) => Some(compared),
        Err(cause) if cause.is::<Exceeded>() => None,
        Err(cause) => resume_unwind(cause),
    }
}

/// The current position of the stack.
fn stack_address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(&here).addr()
}

/// Counts one look.
fn step() {
    let Some(mut meter) = METER.get() else {
        return;
    };
    meter.steps -= 1;
    let is_late = meter.steps.is_multiple_of(STEPS_PER_CLOCK) && Instant::now() > meter.until;
    let is_deep = stack_address().abs_diff(meter.base) > meter.stack;
    if meter.steps == 0 || is_late || is_deep {
        METER.set(None);
        resume_unwind(Box::new(Exceeded));
    }
    METER.set(Some(meter));
}

/// The kind of JSON that is counted.
pub(super) struct Metered;

/// A value whose visits are counted.
#[derive(Clone, Copy)]
pub(super) struct Node<'a>(pub(super) &'a Value);

/// An object whose visits are counted.
pub(super) struct Object<'a>(&'a Map<String, Value>);

/// An array whose visits are counted.
pub(super) struct Array<'a>(&'a [Value]);

impl Json for Metered {
    type Node<'a> = Node<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(buffer: &mut Value, string: &str, f: impl FnOnce(Node<'_>) -> T) -> T {
        *buffer = Value::from(string);
        f(Node(buffer))
    }
}

impl<'a> json::Node<'a, Metered> for Node<'a> {
    type Object = Object<'a>;
    type Array = Array<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<Object<'a>> {
        step();
        self.0.as_object().map(Object)
    }

    fn as_array(&self) -> Option<Array<'a>> {
        step();
        self.0.as_array().map(|items| Array(items))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        step();
        self.0.as_str().map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        step();
        self.0.as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        step();
        self.0.as_bool()
    }

    fn is_null(&self) -> bool {
        step();
        self.0.is_null()
    }

    fn json_type(&self) -> JsonType {
        step();
        match self.0 {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        step();
        json::cmp::equal(self.0, expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        step();
        Cow::Borrowed(self.0)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        step();
        Some(NodeIdentity::new(std::ptr::from_ref(self.0).addr()))
    }
}

impl<'a> json::Object<'a, Metered> for Object<'a> {
    type Node = Node<'a>;
    type MemberName = &'a str;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<Node<'a>> {
        step();
        self.0.get(key).map(Node)
    }

    fn members(&self) -> Members<'a> {
        Members(self.0.iter())
    }
}

/// The members of an object, whose visits are counted.
pub(super) struct Members<'a>(serde_json::map::Iter<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, Node<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        step();
        let (name, value) = self.0.next()?;
        Some((name, Node(value)))
    }
}

impl<'a> json::Array<'a, Metered> for Array<'a> {
    type Node = Node<'a>;
    type ElementsIter = Elements<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> Elements<'a> {
        Elements(self.0.iter())
    }

    fn is_unique(&self) -> bool {
        step();
        unique::is_unique(self.0)
    }
}

/// The elements of an array, whose visits are counted.
pub(super) struct Elements<'a>(std::slice::Iter<'a, Value>);

impl<'a> Iterator for Elements<'a> {
    type Item = Node<'a>;

    fn next(&mut self) -> Option<Node<'a>> {
        step();
        self.0.next().map(Node)
    }
}

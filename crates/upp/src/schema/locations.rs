//! All values of a schema as a list, with the place of each.

use super::{MAX_BYTES, MAX_NESTING, MAX_POINTER_BYTES, MAX_VALUES, RefusedSchema, SchemaFault};
use serde_json::Value;

/// The number of a value in the list.
pub(super) type Id = u32;

#[derive(Clone, Copy)]
enum Key<'a> {
    Root,
    Name(&'a str),
    Index(usize),
}

struct Place<'a> {
    value: &'a Value,
    parent: Id,
    key: Key<'a>,
    nesting: usize,
    pointer_bytes: usize,
}

/// All values of a schema, parents first.
pub(super) struct Locations<'a> {
    list: Vec<Place<'a>>,
    /// The numbers of the values by their addresses, sorted.
    by_address: Vec<(usize, Id)>,
}

impl<'a> Locations<'a> {
    /// Lists the values. Stops at the first limit of size that the schema exceeds.
    pub(super) fn of(root: &'a Value) -> Result<Self, RefusedSchema> {
        let mut places = Self {
            list: Vec::new(),
            by_address: Vec::new(),
        };
        let mut size = Size::default();
        places.add(root, 0, Key::Root, &mut size)?;
        let mut next: Id = 0;
        while let Some(place) = places.list.get(next as usize) {
            match place.value {
                Value::Object(members) => {
                    for (name, value) in members {
                        places.add(value, next, Key::Name(name), &mut size)?;
                    }
                }
                Value::Array(items) => {
                    for (index, value) in items.iter().enumerate() {
                        places.add(value, next, Key::Index(index), &mut size)?;
                    }
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
            next += 1;
        }
        places.by_address.sort_unstable();
        Ok(places)
    }

    fn add(
        &mut self,
        value: &'a Value,
        parent: Id,
        key: Key<'a>,
        size: &mut Size,
    ) -> Result<(), RefusedSchema> {
        let above = self.list.get(parent as usize);
        let place = Place {
            value,
            parent,
            key,
            nesting: above.map_or(0, |it| it.nesting) + 1,
            pointer_bytes: above.map_or(0, |it| it.pointer_bytes) + key.bytes(),
        };
        let is_nested = matches!(value, Value::Array(_) | Value::Object(_));
        size.bytes += 1 + key.bytes() + text_bytes(value);
        size.pointer_bytes += place.pointer_bytes;
        let fault = if size.bytes > MAX_BYTES {
            Some(SchemaFault::Bytes)
        } else if self.list.len() >= MAX_VALUES {
            Some(SchemaFault::Values)
        } else if is_nested && place.nesting > MAX_NESTING {
            Some(SchemaFault::Nesting)
        } else if size.pointer_bytes > MAX_POINTER_BYTES {
            Some(SchemaFault::Pointers)
        } else {
            None
        };
        if let Some(fault) = fault {
            // Limits of the whole are reported for the whole.
            let is_local = fault == SchemaFault::Nesting;
            let pointer = is_local.then(|| self.pointer(parent));
            let pointer = pointer.unwrap_or_default();
            return Err(RefusedSchema { pointer, fault });
        }
        let id = Id::try_from(self.list.len()).unwrap_or(Id::MAX);
        self.by_address.push((address(value), id));
        self.list.push(place);
        Ok(())
    }

    /// The number of values.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// The value of this number.
    pub(super) fn value(&self, id: Id) -> &'a Value {
        self.list
            .get(id as usize)
            .map_or(&Value::Null, |it| it.value)
    }

    /// All values with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Id, &'a Value)> {
        (0..).zip(self.list.iter().map(|it| it.value))
    }

    /// The number of a value that is part of the schema.
    pub(super) fn id(&self, value: &Value) -> Option<Id> {
        let wanted = address(value);
        let at = self.by_address.binary_search_by_key(&wanted, |it| it.0);
        at.ok()
            .and_then(|at| self.by_address.get(at))
            .map(|it| it.1)
    }

    /// The JSON pointer of a value.
    pub(super) fn pointer(&self, id: Id) -> String {
        let mut keys = Vec::new();
        let mut at = id;
        while let Some(place) = self.list.get(at as usize) {
            match place.key {
                Key::Root => break,
                Key::Name(name) => keys.push(pointer_of(name)),
                Key::Index(index) => keys.push(format!("/{index}")),
            }
            at = place.parent;
        }
        keys.reverse();
        keys.concat()
    }
}

#[derive(Default)]
struct Size {
    bytes: usize,
    pointer_bytes: usize,
}

impl Key<'_> {
    fn bytes(self) -> usize {
        match self {
            Self::Root => 0,
            Self::Name(name) => name.len() + 1,
            Self::Index(_) => 4,
        }
    }
}

/// The part of a JSON pointer that names this member.
pub(super) fn pointer_of(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Number(_) => 8,
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => 4,
    }
}

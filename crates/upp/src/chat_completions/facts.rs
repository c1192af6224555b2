//! The fields of a provider's answer other than its content.

use crate::codec::fields::Field;
use crate::metadata::Fact;
use serde_json::Value;
use std::sync::Arc;

/// The fields of the metadata, in the order they were first set, each once.
#[derive(Debug, Default)]
pub(super) struct Facts(pub(super) Vec<(&'static str, Fact)>);

impl Facts {
    /// The field of this name.
    pub(super) fn get(&self, key: &str) -> Option<&Fact> {
        let field = self.0.iter().find(|(known, _)| *known == key);
        field.map(|(_, fact)| fact)
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut Fact> {
        let field = self.0.iter_mut().find(|(known, _)| *known == key);
        field.map(|(_, fact)| fact)
    }

    /// Sets a field.
    pub(super) fn set(&mut self, key: &'static str, fact: Fact) {
        match self.get_mut(key) {
            Some(known) => *known = fact,
            None => self.0.push((key, fact)),
        }
    }

    /// Sets a field to a chunk's value; each chunk of a stream repeats it. A text that equals `common`
    /// is shared.
    pub(super) fn note(&mut self, key: &'static str, field: &Field<'_>, common: &Arc<str>) {
        match field {
            Field::Nothing => {}
            Field::Text(text) if self.get(key).and_then(Fact::as_str) == Some(text) => {}
            Field::Text(text) if **text == **common => {
                self.set(key, Fact::Text(Arc::clone(common)));
            }
            Field::Text(text) => self.set(key, Fact::Text((&**text).into())),
            Field::Other(value) => self.set(key, Fact::Value(value.clone())),
        }
    }

    /// Appends to a field that is a list.
    pub(super) fn append(&mut self, key: &'static str, more: &[Value]) {
        let list = match self.get_mut(key) {
            Some(Fact::Value(value)) => value.as_array_mut(),
            Some(Fact::Word(_) | Fact::Text(_)) | None => None,
        };
        match list {
            Some(list) => list.extend_from_slice(more),
            None => self.set(key, Fact::Value(Box::new(Value::from(more)))),
        }
    }
}

//! Which members of an object a request wants to see.

use super::error::RequestError;
use super::fields::Fields;
use serde_json::{Map, Value};

/// The most names of a request.
const MAX_NAMES: usize = 32;

/// The members of an object to return; all if none is named. `values.messages` selects one of its
/// values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Select(Vec<String>);

impl Select {
    /// The members of these names.
    pub(super) fn new(names: Vec<String>) -> Self {
        Self(names)
    }

    /// Reads the member `select` of a body.
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self, RequestError> {
        Ok(Self(fields.texts("select", MAX_NAMES)?))
    }

    /// Whether a member is shown.
    pub fn shows(&self, key: &str) -> bool {
        let mut names = self.0.iter();
        self.0.is_empty() || names.any(|name| name.split('.').next() == Some(key))
    }

    /// The selected members of an object.
    pub fn of(&self, object: Value) -> Value {
        let Value::Object(members) = object else {
            return object;
        };
        let members = members.into_iter();
        let shown: Map<String, Value> = members.filter(|(key, _)| self.shows(key)).collect();
        Value::Object(shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_member_is_shown_that_is_named_itself_or_by_what_is_in_it() {
        let object = json!({"thread_id": "t", "values": {"messages": []}, "status": "idle"});
        assert_eq!(Select::default().of(object.clone()), object);
        let select = Select::new(vec!["thread_id".to_owned(), "values.messages".to_owned()]);
        assert!(select.shows("values") && !select.shows("status"));
        let shown = json!({"thread_id": "t", "values": {"messages": []}});
        assert_eq!(select.of(object), shown);
    }
}

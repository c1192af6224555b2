//! Provider-namespaced extras of a message.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, LazyLock, OnceLock};

/// Provider-namespaced extras: `{"openai": {…}}`. Unknown namespaces and fields are preserved.
///
/// It reads and changes like a map; cloning shares. A codec's metadata is converted to a map on first
/// access.
#[derive(Clone, Default)]
pub struct Metadata(Form);

#[derive(Clone, Default)]
enum Form {
    #[default]
    Nothing,
    Map(Arc<Map<String, Value>>),
    /// A codec's metadata, not yet converted to a map.
    Native(Arc<Native>),
}

/// The map of empty metadata.
static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// The fields in one provider's namespace.
struct Native {
    provider: Arc<str>,
    fields: Vec<(&'static str, Fact)>,
    map: OnceLock<Map<String, Value>>,
}

/// The value of a field.
#[derive(Clone, Debug)]
pub(crate) enum Fact {
    /// One of few words.
    Word(&'static str),
    /// A text that others have, too.
    Text(Arc<str>),
    /// Any other value.
    Value(Box<Value>),
}

impl Fact {
    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            Self::Text(text) => Some(text),
            Self::Value(value) => value.as_str(),
        }
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Word(word) => Value::from(*word),
            Self::Text(text) => Value::from(&**text),
            Self::Value(value) => Value::clone(value),
        }
    }
}

impl Native {
    fn map(&self) -> &Map<String, Value> {
        self.map.get_or_init(|| {
            let fields = self.fields.iter();
            let fields = fields.map(|(key, fact)| ((*key).to_owned(), fact.to_value()));
            let fields = Value::Object(fields.collect());
            Map::from_iter([(self.provider.to_string(), fields)])
        })
    }
}

impl Metadata {
    /// No extras.
    pub fn new() -> Self {
        Self::default()
    }

    /// The fields of one provider, each key once.
    pub(crate) fn native(provider: Arc<str>, fields: Vec<(&'static str, Fact)>) -> Self {
        let native = Native {
            provider,
            fields,
            map: OnceLock::new(),
        };
        Self(Form::Native(Arc::new(native)))
    }

    /// A text in the namespace of a provider; makes no map.
    pub(crate) fn text(&self, provider: &str, key: &str) -> Option<&str> {
        match &self.0 {
            Form::Map(map) => map.get(provider)?.get(key)?.as_str(),
            Form::Native(native) if *native.provider == *provider => {
                let mut fields = native.fields.iter();
                fields.find(|(name, _)| *name == key)?.1.as_str()
            }
            Form::Nothing | Form::Native(_) => None,
        }
    }

    /// Whether the metadata is empty.
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Form::Nothing => true,
            Form::Map(map) => map.is_empty(),
            Form::Native(_) => false,
        }
    }
}

impl Deref for Metadata {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Self::Target {
        match &self.0 {
            Form::Nothing => &EMPTY,
            Form::Map(map) => map,
            Form::Native(native) => native.map(),
        }
    }
}

impl DerefMut for Metadata {
    fn deref_mut(&mut self) -> &mut Self::Target {
        loop {
            match self.0 {
                Form::Map(ref mut map) => return Arc::make_mut(map),
                Form::Nothing => self.0 = Form::Map(Arc::default()),
                Form::Native(ref native) => self.0 = Form::Map(Arc::new(native.map().clone())),
            }
        }
    }
}

impl From<Map<String, Value>> for Metadata {
    fn from(map: Map<String, Value>) -> Self {
        if map.is_empty() {
            return Self::new();
        }
        Self(Form::Map(Arc::new(map)))
    }
}

impl From<Metadata> for Map<String, Value> {
    fn from(metadata: Metadata) -> Self {
        match metadata.0 {
            Form::Nothing => Map::new(),
            Form::Map(map) => Arc::unwrap_or_clone(map),
            Form::Native(native) => native.map().clone(),
        }
    }
}

impl FromIterator<(String, Value)> for Metadata {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(fields: I) -> Self {
        Map::from_iter(fields).into()
    }
}

impl<'a> IntoIterator for &'a Metadata {
    type Item = (&'a String, &'a Value);
    type IntoIter = serde_json::map::Iter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for Metadata {
    type Item = (String, Value);
    type IntoIter = serde_json::map::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        Map::from(self).into_iter()
    }
}

impl PartialEq for Metadata {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl PartialEq<Map<String, Value>> for Metadata {
    fn eq(&self, other: &Map<String, Value>) -> bool {
        **self == *other
    }
}

impl std::fmt::Debug for Metadata {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn native() -> Metadata {
        let fields = vec![
            ("model", Fact::Text("m".into())),
            ("finish_reason", Fact::Word("stop")),
            ("citations", Fact::Value(Box::new(json!(["c"])))),
        ];
        Metadata::native("p".into(), fields)
    }

    #[test]
    fn what_a_codec_says_reads_is_written_and_changes_as_a_map() {
        let expected = json!({"p": {"model": "m", "finish_reason": "stop", "citations": ["c"]}});
        let metadata = native();
        assert!(!metadata.is_empty());
        assert_eq!(metadata.text("p", "model"), Some("m"));
        assert_eq!(metadata.text("p", "citations"), None);
        assert_eq!(metadata.text("q", "model"), None);
        assert_eq!(serde_json::to_value(&metadata).unwrap(), expected);
        assert_eq!(metadata["p"]["finish_reason"], "stop");
        let mut changed = metadata.clone();
        changed.insert("app".into(), json!(1));
        assert_eq!(changed.len(), 2);
        assert_eq!(changed.text("p", "model"), Some("m"));
        assert_eq!(
            metadata,
            native(),
            "a copy is changed, not what it was copied from"
        );
        let read: Metadata = serde_json::from_value(expected).unwrap();
        assert_eq!(read, metadata);
    }

    #[test]
    fn no_extras_take_no_map() {
        let mut metadata: Metadata = serde_json::from_str("{}").unwrap();
        assert!(metadata.is_empty() && matches!(metadata.0, Form::Nothing));
        assert_eq!(metadata.len(), 0);
        metadata.insert("a".into(), json!(1));
        metadata.shift_remove("a");
        assert!(metadata.is_empty());
        assert_eq!(metadata, Metadata::new());
    }
}

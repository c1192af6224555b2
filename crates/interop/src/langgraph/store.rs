//! The item store, which is separate from the threads: JSON objects, each under a namespace and a key.

use super::error::{ErrorKind, RequestError};
use super::fields::{Fields, MAX_ID};
use super::thread::instant;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The most labels of a namespace.
const MAX_LABELS: usize = 32;
/// The most bytes of a value.
const MAX_VALUE: usize = 1 << 18;
/// The most entries of a page.
const MAX_LIMIT: u64 = 1_000;
/// Maximum offset of a page.
const MAX_OFFSET: u64 = 10_000;

/// The pairs of a query.
type Pairs<'a> = &'a [(String, String)];

/// A stored item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoreItem {
    /// The labels of its namespace.
    pub namespace: Vec<String>,
    /// Its key, unique in the namespace.
    pub key: String,
    /// Its value.
    pub value: Map<String, Value>,
    /// When it was first stored.
    pub created_at: Timestamp,
    /// When it was last stored.
    pub updated_at: Timestamp,
}

impl StoreItem {
    /// The id of the item of a key in a namespace: no two have the same.
    pub fn id(namespace: &[String], key: &str) -> String {
        json!([namespace, key]).to_string()
    }

    /// As both protocols have it.
    pub fn to_json(&self) -> Value {
        json!({
            "namespace": self.namespace, "key": self.key, "value": self.value,
            "created_at": instant(self.created_at), "updated_at": instant(self.updated_at),
        })
    }

    /// The error for an item that does not exist.
    pub fn missing(key: &str) -> RequestError {
        RequestError::new(ErrorKind::NotFound, format!("Item {key:?} not found"))
    }
}

/// A request to store an item.
#[derive(Clone, Debug, PartialEq)]
pub struct StorePut {
    /// The labels of its namespace.
    pub namespace: Vec<String>,
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: Map<String, Value>,
}

impl StorePut {
    /// The fields that a body may have.
    pub const KNOWN: &'static [&'static str] = &["namespace", "key", "value", "index", "ttl"];

    /// Reads a body.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let fields = Fields::closed(body, "", Self::KNOWN)?;
        fields.refuse("ttl", "items do not end by themselves here")?;
        fields.refuse("index", "items are not found by their meaning here")?;
        let value = fields.read("value", "an object", |it| it.as_object().cloned())?;
        let value = value.ok_or_else(|| fields.wrong("value", "expected an object"))?;
        if Value::Object(value.clone()).to_string().len() > MAX_VALUE {
            return Err(fields.wrong("value", format!("expected at most {MAX_VALUE} bytes")));
        }
        Ok(Self {
            namespace: named(&fields)?,
            key: key(&fields)?,
            value,
        })
    }
}

/// A request to delete an item.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreDelete {
    /// The labels of its namespace.
    pub namespace: Vec<String>,
    /// Its key.
    pub key: String,
}

impl StoreDelete {
    /// The fields that a body may have.
    pub const KNOWN: &'static [&'static str] = &["namespace", "key"];

    /// Reads a body.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let fields = Fields::closed(body, "", Self::KNOWN)?;
        Ok(Self {
            namespace: named(&fields)?,
            key: key(&fields)?,
        })
    }
}

/// A request for one item.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreGet {
    /// The labels of its namespace.
    pub namespace: Vec<String>,
    /// Its key.
    pub key: String,
    /// Whether a missing item is returned as null, as `LangGraph` does. The Agent Protocol, which
    /// repeats the member for each label, returns 404.
    pub is_null_if_missing: bool,
}

impl StoreGet {
    /// Reads a query.
    pub fn read(pairs: Pairs<'_>) -> Result<Self, RequestError> {
        let all = |name: &str| {
            let found = pairs.iter().filter(|(known, _)| known == name);
            found.map(|(_, value)| value.clone()).collect::<Vec<_>>()
        };
        let mut namespace = all("namespace");
        let is_dotted = namespace.len() <= 1;
        if is_dotted {
            let whole = namespace.pop().unwrap_or_default();
            namespace = whole.split('.').map(str::to_owned).collect();
        }
        let wrong = || RequestError::at("/key", "expected the key of an item");
        Ok(Self {
            namespace: checked(namespace, "/namespace")?,
            key: all("key").pop().ok_or_else(wrong)?,
            is_null_if_missing: is_dotted,
        })
    }
}

/// Items that are looked for.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreSearch {
    prefix: Vec<String>,
    filter: Map<String, Value>,
    /// The maximum number of results.
    pub limit: usize,
    /// The number of results to skip.
    pub offset: usize,
}

impl StoreSearch {
    /// The fields that a body may have.
    pub const KNOWN: &'static [&'static str] = &[
        "namespace_prefix",
        "filter",
        "limit",
        "offset",
        "query",
        "refresh_ttl",
    ];

    /// Reads a body.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let fields = Fields::closed(body, "", Self::KNOWN)?;
        fields.refuse(
            "query",
            "items are not found by their meaning here: expected filter",
        )?;
        let filter = fields.noted("filter")?.unwrap_or_default();
        let mut operators = filter
            .iter()
            .filter_map(|(key, it)| Some((key, it.as_object()?)));
        if let Some((key, _)) = operators.find(|(_, it)| it.keys().any(|it| it.starts_with('$'))) {
            let what = "expected the value that the member has";
            return Err(RequestError::at(format!("/filter/{key}"), what));
        }
        let (limit, offset) = bounds(&fields, 10)?;
        Ok(Self {
            prefix: fields.texts("namespace_prefix", MAX_LABELS)?,
            filter,
            limit,
            offset,
        })
    }

    /// Whether an item is looked for.
    pub fn wants(&self, item: &StoreItem) -> bool {
        let mut filter = self.filter.iter();
        item.namespace.starts_with(&self.prefix)
            && filter.all(|(key, value)| item.value.get(key) == Some(value))
    }
}

/// Namespaces that are looked for.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreNamespaces {
    prefix: Vec<String>,
    suffix: Vec<String>,
    max_depth: Option<usize>,
    /// The maximum number of results.
    pub limit: usize,
    /// The number of results to skip.
    pub offset: usize,
}

impl StoreNamespaces {
    /// The fields that a body may have.
    pub const KNOWN: &'static [&'static str] =
        &["prefix", "suffix", "max_depth", "limit", "offset"];

    /// Reads a body.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let fields = Fields::closed(body, "", Self::KNOWN)?;
        let depth = fields.whole("max_depth", 1, MAX_OFFSET)?;
        let (limit, offset) = bounds(&fields, 100)?;
        Ok(Self {
            prefix: fields.texts("prefix", MAX_LABELS)?,
            suffix: fields.texts("suffix", MAX_LABELS)?,
            max_depth: depth.map(|depth| usize::try_from(depth).unwrap_or(usize::MAX)),
            limit,
            offset,
        })
    }

    /// The item's namespace, cut to `max_depth` labels, if it matches the request. `*` matches any
    /// label.
    pub fn of(&self, item: &StoreItem) -> Option<Vec<String>> {
        let fits = |wanted: &[String], labels: &[String]| {
            let mut pairs = wanted.iter().zip(labels);
            pairs.all(|(wanted, label)| wanted == "*" || wanted == label)
        };
        let labels = item.namespace.as_slice();
        let end = labels.len().checked_sub(self.suffix.len())?;
        let is_wanted = labels.len() >= self.prefix.len()
            && fits(&self.prefix, labels)
            && fits(&self.suffix, labels.get(end..)?);
        let depth = self.max_depth.unwrap_or(usize::MAX).min(labels.len());
        is_wanted.then(|| labels.iter().take(depth).cloned().collect())
    }
}

fn bounds(fields: &Fields<'_>, default: u64) -> Result<(usize, usize), RequestError> {
    let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let limit = fields.whole("limit", 1, MAX_LIMIT)?.unwrap_or(default);
    let offset = fields.whole("offset", 0, MAX_OFFSET)?.unwrap_or_default();
    Ok((whole(limit), whole(offset)))
}

fn key(fields: &Fields<'_>) -> Result<String, RequestError> {
    let key = fields.text("key", MAX_ID)?.filter(|key| !key.is_empty());
    let wrong = || fields.wrong("key", "expected a string that is not empty");
    Ok(key.ok_or_else(wrong)?.to_owned())
}

fn named(fields: &Fields<'_>) -> Result<Vec<String>, RequestError> {
    checked(
        fields.texts("namespace", MAX_LABELS)?,
        &fields.at("namespace"),
    )
}

/// The labels of a namespace, none of which is empty or has a dot: clients join them with dots.
fn checked(labels: Vec<String>, pointer: &str) -> Result<Vec<String>, RequestError> {
    let is_label = |label: &String| !label.is_empty() && !label.contains('.');
    if labels.is_empty() || labels.len() > MAX_LABELS || !labels.iter().all(is_label) {
        let what = format!("expected 1 to {MAX_LABELS} labels, none empty or with a dot");
        return Err(RequestError::at(pointer, what));
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(namespace: &[&str], value: Value) -> StoreItem {
        let Value::Object(value) = value else {
            panic!("{value}");
        };
        StoreItem {
            namespace: namespace.iter().map(|&label| label.to_owned()).collect(),
            key: "k".to_owned(),
            value,
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_search_finds_items_by_prefix_and_by_members() {
        let found = item(&["users", "ada"], json!({"color": "green", "n": 1}));
        for (search, wants) in [
            (json!({}), true),
            (json!({"namespace_prefix": ["users"]}), true),
            (json!({"namespace_prefix": ["users", "bob"]}), false),
            (json!({"filter": {"color": "green"}}), true),
            (json!({"filter": {"color": "red"}}), false),
            (json!({"filter": {"size": 1}}), false),
        ] {
            let read = StoreSearch::read(&search).unwrap();
            assert_eq!(read.wants(&found), wants, "{search}");
        }
    }

    #[test]
    fn namespaces_are_found_by_prefix_suffix_and_depth() {
        let found = item(&["users", "ada", "notes"], json!({}));
        for (search, shown) in [
            (json!({}), Some(3)),
            (json!({"prefix": ["users"], "max_depth": 2}), Some(2)),
            (json!({"prefix": ["*", "ada"]}), Some(3)),
            (json!({"suffix": ["notes"]}), Some(3)),
            (json!({"suffix": ["ada"]}), None),
            (json!({"suffix": ["a", "b", "c", "d"]}), None),
            (json!({"prefix": ["ada"]}), None),
        ] {
            let read = StoreNamespaces::read(&search).unwrap();
            assert_eq!(read.of(&found).map(|it| it.len()), shown, "{search}");
        }
    }

    #[test]
    fn what_is_no_item_is_refused_where_it_stands() {
        for (body, place) in [
            (json!({"key": "k", "value": {}}), "/namespace"),
            (
                json!({"namespace": [], "key": "k", "value": {}}),
                "/namespace",
            ),
            (
                json!({"namespace": ["a.b"], "key": "k", "value": {}}),
                "/namespace",
            ),
            (json!({"namespace": ["a"], "value": {}}), "/key"),
            (
                json!({"namespace": ["a"], "key": "k", "value": 1}),
                "/value",
            ),
            (json!({"namespace": ["a"], "key": "k"}), "/value"),
            (
                json!({"namespace": ["a"], "key": "k", "value": {}, "ttl": 5}),
                "/ttl",
            ),
        ] {
            let error = StorePut::read(&body).unwrap_err();
            assert_eq!(error.pointer.as_deref(), Some(place), "{body}");
        }
        for (body, place) in [
            (json!({"query": "green"}), "/query"),
            (json!({"filter": {"n": {"$gt": 1}}}), "/filter/n"),
            (json!({"limit": 0}), "/limit"),
        ] {
            let error = StoreSearch::read(&body).unwrap_err();
            assert_eq!(error.pointer.as_deref(), Some(place), "{body}");
        }
    }

    #[test]
    fn a_namespace_is_dotted_or_repeated_in_a_query() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let dotted = StoreGet::read(&[pair("namespace", "a.b"), pair("key", "k")]).unwrap();
        assert_eq!(
            (dotted.namespace.len(), dotted.is_null_if_missing),
            (2, true)
        );
        let pairs = [
            pair("namespace", "a"),
            pair("namespace", "b"),
            pair("key", "k"),
        ];
        let repeated = StoreGet::read(&pairs).unwrap();
        assert_eq!(repeated.namespace, dotted.namespace);
        assert!(!repeated.is_null_if_missing);
        assert!(StoreGet::read(&[pair("namespace", "a")]).is_err());
    }
}

//! Which subschemas of a schema apply which others.

use super::locations::{Id, Locations};
use super::{
    MAX_ENUM, MAX_PATTERN_BYTES, MAX_PATTERN_SIZE, MAX_PATTERNS, MAX_PATTERNS_SIZE, MAX_REFERENCES,
    RefusedSchema, SchemaFault, pattern, pointer_of,
};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How a subschema applies another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    /// To the same value.
    Same,
    /// To some values inside it. One value inside gets this and every other such subschema.
    Inner,
    /// To one property, which gets no other subschema of this kind.
    Property,
    /// To one element of an array, which gets no other subschema of this kind.
    Item,
}

/// A subschema and those it applies.
#[derive(Default)]
pub(super) struct Node {
    /// Its value.
    pub(super) location: Id,
    /// The subschemas it applies, as numbers of nodes.
    pub(super) edges: Vec<(usize, Edge)>,
    /// The cost of its own keywords; a simple keyword costs 1.
    pub(super) weight: u64,
    /// Whether it evaluates the other keywords' subschemas a second time.
    pub(super) asks_twice: bool,
}

/// All subschemas that the root reaches, and all definitions; the root first.
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
}

impl Graph {
    pub(super) fn of(places: &Locations<'_>) -> Result<Self, RefusedSchema> {
        let mut builder = Builder {
            anchors: anchors(places)?,
            base: base(places.value(0)),
            has_old_ids: has_old_ids(places),
            places,
            nodes: Vec::new(),
            by_place: vec![None; places.len()],
            references: 0,
            patterns: 0,
            patterns_size: 0,
        };
        builder.node(0);
        let mut next = 0;
        while next < builder.nodes.len() {
            builder.read(next)?;
            next += 1;
        }
        let nodes = builder.nodes;
        Ok(Self { nodes })
    }
}

struct Builder<'p, 'a> {
    places: &'p Locations<'a>,
    anchors: BTreeMap<&'a str, Id>,
    base: Option<&'a str>,
    has_old_ids: bool,
    nodes: Vec<Node>,
    /// The nodes by the numbers of their values.
    by_place: Vec<Option<usize>>,
    references: usize,
    patterns: usize,
    patterns_size: u64,
}

impl<'a> Builder<'_, 'a> {
    /// The node of a value, made when it is first named.
    fn node(&mut self, place: Id) -> usize {
        let next = self.nodes.len();
        let Some(known) = self.by_place.get_mut(place as usize) else {
            return 0;
        };
        *known.get_or_insert_with(|| {
            self.nodes.push(Node {
                location: place,
                ..Node::default()
            });
            next
        })
    }

    fn refused(&self, node: usize, keyword: &str, fault: SchemaFault) -> RefusedSchema {
        let place = self.nodes.get(node).map_or(0, |it| it.location);
        let pointer = format!("{}{}", self.places.pointer(place), pointer_of(keyword));
        RefusedSchema { pointer, fault }
    }

    fn read(&mut self, node: usize) -> Result<(), RefusedSchema> {
        let place = self.nodes.get(node).map_or(0, |it| it.location);
        let Value::Object(schema) = self.places.value(place) else {
            return Ok(());
        };
        let mut weight = 1;
        for (keyword, value) in schema {
            weight += self.keyword(node, keyword, value)?;
        }
        let asks_twice = ["unevaluatedProperties", "unevaluatedItems"]
            .iter()
            .any(|it| schema.contains_key(*it));
        if let Some(node) = self.nodes.get_mut(node) {
            (node.weight, node.asks_twice) = (weight, asks_twice);
        }
        Ok(())
    }

    /// Adds the subschemas of a keyword, and returns its own cost.
    fn keyword(
        &mut self,
        node: usize,
        keyword: &str,
        value: &'a Value,
    ) -> Result<u64, RefusedSchema> {
        match keyword {
            "$ref" | "$dynamicRef" | "$recursiveRef" => self.reference(node, keyword, value)?,
            "allOf" | "anyOf" | "oneOf" => self.list(node, value, Edge::Same),
            "not" | "if" | "then" | "else" => self.one(node, value, Edge::Same),
            "dependentSchemas" | "dependencies" => self.map(node, value, Edge::Same),
            "properties" => self.map(node, value, Edge::Property),
            "prefixItems" => self.list(node, value, Edge::Item),
            "items" if value.is_array() => self.list(node, value, Edge::Item),
            "items"
            | "additionalItems"
            | "unevaluatedItems"
            | "contains"
            | "propertyNames"
            | "additionalProperties"
            | "unevaluatedProperties" => {
                self.one(node, value, Edge::Inner);
            }
            "patternProperties" => {
                let patterns = value.as_object().into_iter().flat_map(Map::keys);
                for text in patterns {
                    let at = format!("patternProperties{}", pointer_of(text));
                    self.pattern(text)
                        .map_err(|fault| self.at(node, &at, fault))?;
                }
                self.map(node, value, Edge::Inner);
            }
            "pattern" => {
                let text = value.as_str().unwrap_or_default();
                self.pattern(text)
                    .map_err(|fault| self.refused(node, keyword, fault))?;
            }
            "$defs" | "definitions" => {
                for value in value.as_object().into_iter().flat_map(Map::values) {
                    if let Some(place) = self.places.id(value) {
                        self.node(place);
                    }
                }
            }
            "enum" => {
                let n_values = value.as_array().map_or(0, Vec::len);
                if n_values > MAX_ENUM {
                    return Err(self.refused(node, keyword, SchemaFault::Enum));
                }
                return Ok(n_values as u64 / 16);
            }
            "required" | "dependentRequired" => {
                let n_values = value.as_array().map_or(0, Vec::len);
                return Ok(n_values as u64 / 16);
            }
            "$id" => self.identifier(node, keyword, value)?,
            "id" if self.has_old_ids => self.identifier(node, keyword, value)?,
            _ => {}
        }
        Ok(0)
    }

    /// A refusal at a place that several keys lead to.
    fn at(&self, node: usize, keys: &str, fault: SchemaFault) -> RefusedSchema {
        let place = self.nodes.get(node).map_or(0, |it| it.location);
        let pointer = format!("{}/{keys}", self.places.pointer(place));
        RefusedSchema { pointer, fault }
    }

    fn one(&mut self, node: usize, value: &Value, edge: Edge) {
        // `dependencies` has lists of names, too.
        if !matches!(value, Value::Object(_) | Value::Bool(_)) {
            return;
        }
        if let Some(place) = self.places.id(value) {
            let target = self.node(place);
            self.edge(node, target, edge);
        }
    }

    fn list(&mut self, node: usize, value: &Value, edge: Edge) {
        for value in value.as_array().into_iter().flatten() {
            self.one(node, value, edge);
        }
    }

    fn map(&mut self, node: usize, value: &Value, edge: Edge) {
        for value in value.as_object().into_iter().flat_map(Map::values) {
            self.one(node, value, edge);
        }
    }

    fn edge(&mut self, node: usize, target: usize, edge: Edge) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.edges.push((target, edge));
        }
    }

    fn reference(
        &mut self,
        node: usize,
        keyword: &str,
        value: &Value,
    ) -> Result<(), RefusedSchema> {
        let Some(reference) = value.as_str() else {
            return Ok(());
        };
        self.references += 1;
        if self.references > MAX_REFERENCES {
            return Err(self.refused(node, keyword, SchemaFault::References));
        }
        if is_of_meta_schema(reference) {
            return Ok(());
        }
        let target = self.target(reference);
        let target = target.ok_or_else(|| self.refused(node, keyword, SchemaFault::Unresolved))?;
        let target = self.node(target);
        self.edge(node, target, Edge::Same);
        Ok(())
    }

    /// The value that a reference of this document leads to.
    fn target(&self, reference: &str) -> Option<Id> {
        let fragment = match (reference.strip_prefix('#'), self.base) {
            (Some(fragment), _) => fragment,
            (None, Some(base)) => {
                let fragment = reference.strip_prefix(base)?;
                fragment
                    .strip_prefix('#')
                    .or(fragment.is_empty().then_some(""))?
            }
            (None, None) => return None,
        };
        if fragment.is_empty() {
            return Some(0);
        }
        if !fragment.starts_with('/') {
            return self.anchors.get(fragment).copied();
        }
        let pointer = percent_decoded(fragment)?;
        let value = self.places.value(0).pointer(&pointer)?;
        self.places.id(value)
    }

    fn pattern(&mut self, text: &str) -> Result<(), SchemaFault> {
        let size = pattern::size(text);
        if text.len() > MAX_PATTERN_BYTES || size > MAX_PATTERN_SIZE {
            return Err(SchemaFault::Pattern);
        }
        self.patterns += 1;
        self.patterns_size = self.patterns_size.saturating_add(size);
        if self.patterns > MAX_PATTERNS || self.patterns_size > MAX_PATTERNS_SIZE {
            return Err(SchemaFault::Patterns);
        }
        Ok(())
    }

    /// Only the root has an identifier: below it, one would change what references mean.
    fn identifier(&self, node: usize, keyword: &str, value: &Value) -> Result<(), RefusedSchema> {
        let is_anchor = value.as_str().is_none_or(|it| it.starts_with('#'));
        if node == 0 || is_anchor {
            return Ok(());
        }
        Err(self.refused(node, keyword, SchemaFault::EmbeddedId))
    }
}

/// The identifier of the root, without a fragment.
fn base(root: &Value) -> Option<&str> {
    let id = root.get("$id").or_else(|| root.get("id"))?.as_str()?;
    let base = id.split('#').next().unwrap_or_default();
    (!base.is_empty()).then_some(base)
}

/// Whether some part is of a draft whose identifiers are `id`.
fn has_old_ids(places: &Locations<'_>) -> bool {
    let is_old = |schema: &Value| {
        let draft = schema.get("$schema").and_then(Value::as_str);
        draft.is_some_and(|draft| draft.contains("draft-04") || draft.contains("draft-03"))
    };
    places.iter().any(|(_, value)| is_old(value))
}

/// The names that references can use instead of pointers.
fn anchors<'a>(places: &Locations<'a>) -> Result<BTreeMap<&'a str, Id>, RefusedSchema> {
    let mut anchors = BTreeMap::new();
    for (id, value) in places.iter() {
        let Value::Object(schema) = value else {
            continue;
        };
        let text = |keyword: &str| schema.get(keyword).and_then(Value::as_str);
        let own = [text("$anchor"), text("$dynamicAnchor")];
        let old = [text("$id"), text("id")].map(|it| it.and_then(|id| id.strip_prefix('#')));
        for name in own.into_iter().chain(old).flatten() {
            if anchors.insert(name, id).is_some_and(|known| known != id) {
                let pointer = places.pointer(id);
                let fault = SchemaFault::RepeatedAnchor;
                return Err(RefusedSchema { pointer, fault });
            }
        }
    }
    Ok(anchors)
}

/// Whether this is a schema of JSON Schema itself, which validators have.
fn is_of_meta_schema(reference: &str) -> bool {
    let known = [
        "https://json-schema.org/draft/",
        "http://json-schema.org/draft-",
    ];
    known.iter().any(|it| reference.starts_with(it))
}

fn percent_decoded(fragment: &str) -> Option<String> {
    let mut bytes = fragment.bytes();
    let mut decoded = Vec::with_capacity(fragment.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let code = digit()? * 16 + digit()?;
        decoded.push(u8::try_from(code).ok()?);
    }
    String::from_utf8(decoded).ok()
}

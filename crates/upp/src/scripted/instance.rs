//! Makes a value that is valid against a JSON Schema.

use super::check::{accepts, bound, count, target};
use super::strings;
use super::work::{WorkBudget, size};
use serde_json::{Map, Number, Value};

/// Nesting at most.
const DEPTH: usize = 24;
/// Above this depth an array of objects gets one optional item.
const EAGER_DEPTH: usize = 3;

/// Makes values for the schemas inside one root schema.
pub(super) struct Instances<'a> {
    root: &'a Value,
    work: &'a WorkBudget,
}

impl<'a> Instances<'a> {
    /// Values beyond the budget of `work` become null.
    pub(super) fn of(work: &'a WorkBudget, root: &'a Value) -> Self {
        Self { root, work }
    }

    /// The schema with `$ref` followed, `allOf` and the first branch of `anyOf` and `oneOf` merged in.
    pub(super) fn flat(&self, schema: &Value) -> Map<String, Value> {
        let mut flat = Map::new();
        let mut open = vec![schema];
        // Bounded, because references may go round in circles.
        for _ in 0..64 {
            let Some(next) = open.pop() else {
                break;
            };
            let Some(schema) = next.as_object().filter(|_| self.work.spend(size(next))) else {
                break;
            };
            merge(&mut flat, schema);
            for keyword in ["anyOf", "oneOf"] {
                open.extend(schema.get(keyword).and_then(|branches| branches.get(0)));
            }
            if let Some(Value::Array(all)) = schema.get("allOf") {
                open.extend(all);
            }
            open.extend(target(self.root, schema));
        }
        flat
    }

    /// A value for `schema`; a string without constraints becomes `name`.
    pub(super) fn value(&self, schema: &Value, name: &str, depth: usize) -> Value {
        if depth > DEPTH || !self.work.spend(1) {
            return Value::Null;
        }
        let flat = self.flat(schema);
        if let Some(value) = self.listed(schema, &flat) {
            return value;
        }
        match type_of(&flat) {
            "object" => self.object(&flat, depth),
            "array" => self.array(&flat, name, depth),
            "integer" => number(self.work, &flat, true),
            "number" => number(self.work, &flat, false),
            "boolean" => Value::Bool(true),
            "null" => Value::Null,
            _ => {
                let text = strings::text(&flat, name);
                let fits = self.work.spend(text.len());
                Value::String(if fits { text } else { name.to_owned() })
            }
        }
    }

    fn listed(&self, schema: &Value, flat: &Map<String, Value>) -> Option<Value> {
        let fits = |value: &&Value| accepts(self.work, self.root, schema, value);
        if let Some(value) = flat.get("const") {
            return Some(value.clone());
        }
        if let Some(Value::Array(allowed)) = flat.get("enum") {
            return allowed.iter().find(fits).or(allowed.first()).cloned();
        }
        flat.get("default").filter(fits).cloned()
    }

    fn object(&self, flat: &Map<String, Value>, depth: usize) -> Value {
        let mut fields = Map::new();
        for name in required(flat) {
            let schema = property(flat, name).cloned().unwrap_or(Value::Bool(true));
            let value = self.value(&schema, name, depth + 1);
            fields.insert(name.to_owned(), value);
        }
        Value::Object(fields)
    }

    fn array(&self, flat: &Map<String, Value>, name: &str, depth: usize) -> Value {
        let items = flat.get("items").cloned().unwrap_or(Value::Bool(true));
        let eager = depth < EAGER_DEPTH && type_of(&self.flat(&items)) == "object";
        let most = count(flat, "maxItems").unwrap_or(usize::MAX);
        let wanted = count(flat, "minItems")
            .unwrap_or(0)
            .max(usize::from(eager))
            .min(most);
        let mut made = Vec::new();
        let unique = flat.get("uniqueItems") == Some(&Value::Bool(true));
        while made.len() < wanted && self.work.spend(1) {
            let mut item = self.value(&items, name, depth + 1);
            if unique && self.work.spend(made.len()) && made.contains(&item) {
                item = self.another(&items, &item, &made);
            }
            made.push(item);
        }
        Value::Array(made)
    }

    /// A value that is not in `made`, close to `item`; `item` itself if none is found.
    fn another(&self, schema: &Value, item: &Value, made: &[Value]) -> Value {
        let flat = self.flat(schema);
        let allowed = flat.get("enum").and_then(Value::as_array);
        let step = bound(&flat, "multipleOf").unwrap_or(1.0);
        (1..=made.len() + 1)
            .flat_map(|n| neighbours(item, n, step))
            .chain([Value::Bool(false)])
            .chain(allowed.into_iter().flatten().cloned())
            .take_while(|_| self.work.spend(made.len()))
            .find(|value| accepts(self.work, self.root, schema, value) && !made.contains(value))
            .unwrap_or_else(|| item.clone())
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "n counts the items of one array, at most some thousands"
)]
fn neighbours(item: &Value, n: usize, step: f64) -> Vec<Value> {
    match item {
        Value::String(text) => {
            let suffix = n.to_string();
            let kept: String = text
                .chars()
                .take(text.chars().count().saturating_sub(suffix.len()))
                .collect();
            vec![
                Value::String(format!("{text}{suffix}")),
                Value::String(kept + &suffix),
            ]
        }
        Value::Number(number) => {
            let at = number.as_f64().unwrap_or(0.0);
            vec![
                as_number(at + n as f64 * step),
                as_number(at - n as f64 * step),
            ]
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => Vec::new(),
    }
}

/// The names that must be there.
pub(super) fn required(flat: &Map<String, Value>) -> impl Iterator<Item = &str> {
    flat.get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// The schema of a property.
pub(super) fn property<'m>(flat: &'m Map<String, Value>, name: &str) -> Option<&'m Value> {
    flat.get("properties")?.get(name)
}

/// The first type the schema names, or the one its other keywords hint at.
pub(super) fn type_of(flat: &Map<String, Value>) -> &str {
    match flat.get("type") {
        Some(Value::String(name)) => name,
        Some(Value::Array(names)) => names.first().and_then(Value::as_str).unwrap_or("string"),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            let has = |keywords: &[&str]| keywords.iter().any(|word| flat.contains_key(*word));
            if has(&["properties", "required"]) {
                "object"
            } else if has(&["items", "minItems"]) {
                "array"
            } else if has(&["minimum", "maximum", "exclusiveMinimum", "multipleOf"]) {
                "number"
            } else {
                "string"
            }
        }
    }
}

fn merge(flat: &mut Map<String, Value>, schema: &Map<String, Value>) {
    for (keyword, value) in schema {
        match (flat.get_mut(keyword), value) {
            (Some(Value::Object(known)), Value::Object(more)) if keyword == "properties" => {
                for (name, schema) in more {
                    known.entry(name).or_insert_with(|| schema.clone());
                }
            }
            (Some(Value::Array(known)), Value::Array(more)) if keyword == "required" => {
                let fresh: Vec<Value> = more
                    .iter()
                    .filter(|name| !known.contains(name))
                    .cloned()
                    .collect();
                known.extend(fresh);
            }
            (Some(known), value) => {
                let (old, new) = (known.as_f64(), value.as_f64());
                let tighter = match keyword.as_str() {
                    "minimum" | "exclusiveMinimum" | "minLength" | "minItems" => new > old,
                    "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" => new < old,
                    _ => false,
                };
                if tighter {
                    *known = value.clone();
                }
            }
            (None, value) => {
                flat.insert(keyword.clone(), value.clone());
            }
        }
    }
}

/// Tries the plain numbers first, then the bounds and the numbers next to them.
fn number(work: &WorkBudget, flat: &Map<String, Value>, whole: bool) -> Value {
    let low = [bound(flat, "minimum"), bound(flat, "exclusiveMinimum")];
    let high = [bound(flat, "maximum"), bound(flat, "exclusiveMaximum")];
    let low = low.into_iter().flatten().reduce(f64::max);
    let high = high.into_iter().flatten().reduce(f64::min);
    let step = bound(flat, "multipleOf").filter(|step| *step > 0.0);
    let mut tried = vec![1.0, 0.0];
    for edge in [low, high].into_iter().flatten() {
        let unit = step.unwrap_or(1.0);
        let floor = (edge / unit).floor() * unit;
        tried.extend([edge, floor, floor + unit, floor - unit, floor + unit + unit]);
        // A step such as 0.4 is whole only every few times.
        tried.extend(
            (1..200).flat_map(|n| [floor + f64::from(n) * unit, floor - f64::from(n) * unit]),
        );
    }
    if let (Some(low), Some(high)) = (low, high) {
        tried.push(f64::midpoint(low, high));
    }
    let mut schema = flat.clone();
    schema.retain(|keyword, _| {
        !matches!(
            keyword.as_str(),
            "$ref" | "allOf" | "anyOf" | "oneOf" | "type"
        )
    });
    let schema = Value::Object(schema);
    tried
        .into_iter()
        .filter(|number| !whole || number.fract() == 0.0)
        .map(as_number)
        .find(|number| accepts(work, &schema, &schema, number))
        .unwrap_or_else(|| as_number(low.or(high).unwrap_or(1.0)))
}

/// Whole numbers are written without a fraction.
fn as_number(number: f64) -> Value {
    // Beyond 2^53 a float is no exact count any more.
    if number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0 {
        #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
        return Value::from(number as i64);
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn made(schema: &Value) -> Value {
        Instances::of(&WorkBudget::new(), schema).value(schema, "", 0)
    }

    #[test]
    fn an_object_has_its_required_properties_only() {
        let schema = json!({"type": "object", "required": ["city", "days"], "properties": {
            "city": {"type": "string"}, "days": {"type": "integer", "minimum": 3}, "unit": {"type": "string"}}});
        assert_eq!(made(&schema), json!({"city": "city", "days": 3}));
    }

    #[test]
    fn references_and_branches_are_followed() {
        let schema = json!({"$defs": {"n": {"anyOf": [{"const": 7}, {"type": "null"}]}},
            "allOf": [{"type": "object", "required": ["a"]}, {"properties": {"a": {"$ref": "#/$defs/n"}}}]});
        assert_eq!(made(&schema), json!({"a": 7}));
    }

    #[test]
    fn a_schema_that_asks_for_itself_ends() {
        let schema = json!({"type": "object", "required": ["l", "r"],
            "properties": {"l": {"$ref": "#"}, "r": {"$ref": "#"}}});
        assert!(made(&schema).is_object());
    }

    #[test]
    fn a_schema_that_asks_for_very_much_gets_little() {
        let item = json!({"type": "string", "minLength": 65_536, "pattern": "^a{4000}b{4000}$"});
        let many = json!({"type": "array", "minItems": 9_999, "uniqueItems": true, "items": {"enum": [1]}});
        let deep = json!({"type": "array", "minItems": 99, "items": {"$ref": "#"}});
        let wide = json!({"type": "array", "minItems": 9_999, "items": item});
        for schema in [many, deep, wide] {
            let length = made(&schema).to_string().len();
            assert!(length < 1 << 20, "{length}");
        }
    }

    #[test]
    fn numbers_keep_their_bounds() {
        assert_eq!(
            made(&json!({"type": "integer", "exclusiveMinimum": 4, "multipleOf": 5})),
            json!(5)
        );
        assert_eq!(
            made(&json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5})),
            json!(0.25)
        );
        assert_eq!(made(&json!({"type": "integer", "maximum": -3})), json!(-3));
    }
}

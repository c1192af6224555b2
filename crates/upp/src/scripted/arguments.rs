//! Reads a tool's arguments from the prompt.

use super::check::accepts;
use super::instance::{Instances, property, required, type_of};
use super::prompt::object_at;
use super::work::WorkBudget;
use serde_json::{Map, Value};

/// Arguments for a tool with this schema: what `text` offers, and made-up values for the rest.
pub(super) fn from_text(schema: &Value, text: &str) -> Value {
    let budget = &WorkBudget::new();
    let instances = Instances::of(budget, schema);
    let flat = instances.flat(schema);
    let mut offered = offered(budget, schema, &flat, text);
    let made = instances.value(schema, "", 0);
    let Value::Object(made) = made else {
        return made;
    };
    let mut fields = Map::new();
    for name in required(&flat) {
        let value = offered.remove(name).or_else(|| made.get(name).cloned());
        fields.insert(name.to_owned(), value.unwrap_or(Value::Null));
    }
    fields.extend(offered);
    // Offered values may be valid one by one and not together.
    let fields = Value::Object(fields);
    if accepts(budget, schema, schema, &fields) {
        fields
    } else {
        Value::Object(made)
    }
}

fn offered(
    budget: &WorkBudget,
    root: &Value,
    flat: &Map<String, Value>,
    text: &str,
) -> Map<String, Value> {
    if let Some(object) = object_in(flat, text) {
        return object
            .into_iter()
            .filter(|(name, value)| {
                property(flat, name).map_or_else(
                    || flat.get("additionalProperties") != Some(&Value::Bool(false)),
                    |schema| accepts(budget, root, schema, value),
                )
            })
            .collect();
    }
    let named = named(budget, root, flat, text);
    if named.is_empty() {
        in_order(budget, root, flat, text)
    } else {
        named
    }
}

/// The first JSON object in the text that has one of the properties.
fn object_in(flat: &Map<String, Value>, text: &str) -> Option<Map<String, Value>> {
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        rest = rest.get(at..)?;
        match object_at(rest) {
            Some((object, _)) if object.keys().any(|name| property(flat, name).is_some()) => {
                return Some(object);
            }
            Some((_, length)) => rest = rest.get(length..)?,
            None => rest = rest.get(1..)?,
        }
    }
    None
}

/// `name=value` and `name: value`.
fn named(
    budget: &WorkBudget,
    root: &Value,
    flat: &Map<String, Value>,
    text: &str,
) -> Map<String, Value> {
    let known = flat.get("properties").and_then(Value::as_object);
    let mut places: Vec<(usize, usize, &String)> = Vec::new();
    for name in known.into_iter().flat_map(Map::keys) {
        if let Some(place) = place_of(name, text) {
            places.push((place.0, place.1, name));
        }
    }
    places.sort_unstable();
    let ends: Vec<usize> = places.iter().map(|place| place.0).skip(1).collect();
    let mut found = Map::new();
    for (i, (start, from, name)) in places.into_iter().enumerate() {
        let until = ends.get(i).copied().unwrap_or(text.len());
        let Some(rest) = text.get(from..until) else {
            continue;
        };
        let colon = text.get(start..from).is_some_and(|sign| sign.contains(':'));
        let value =
            property(flat, name).and_then(|schema| value_in(budget, root, schema, rest, colon));
        if let Some(value) = value {
            found.insert(name.clone(), value);
        }
    }
    found
}

/// The place of `name=` or `name:`: its start and the start of the value.
fn place_of(name: &str, text: &str) -> Option<(usize, usize)> {
    text.match_indices(name).find_map(|(at, _)| {
        let before = text.get(..at)?.chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-') {
            return None;
        }
        let after = text.get(at + name.len()..)?;
        let sign = after.trim_start();
        let value = sign.strip_prefix(['=', ':'])?.trim_start();
        Some((at, text.len() - value.len()))
    })
}

fn value_in(
    budget: &WorkBudget,
    root: &Value,
    schema: &Value,
    rest: &str,
    colon: bool,
) -> Option<Value> {
    if let Some(quoted) = quoted(rest) {
        return read(budget, root, schema, quoted);
    }
    // An array or object may hold spaces and commas.
    let json = serde_json::Deserializer::from_str(rest).into_iter().next();
    if let Some(Ok(value @ (Value::Array(_) | Value::Object(_)))) = json {
        return accepts(budget, root, schema, &value).then_some(value);
    }
    let word = if colon {
        rest.split([',', ';', '\n']).next()
    } else {
        rest.split(|c: char| c.is_whitespace() || c == ',').next()
    };
    read(budget, root, schema, word?.trim())
}

/// The quoted text at the start.
fn quoted(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let quote = text.chars().next().filter(|c| "\"'`".contains(*c))?;
    text.get(1..)?.split_once(quote).map(|(inside, _)| inside)
}

/// Reads a word as a value of the property's schema.
fn read(budget: &WorkBudget, root: &Value, schema: &Value, word: &str) -> Option<Value> {
    let flat = Instances::of(budget, root).flat(schema);
    let value = match type_of(&flat) {
        "string" => Value::String(word.to_owned()),
        "boolean" => match word.to_ascii_lowercase().as_str() {
            "true" | "yes" => Value::Bool(true),
            "false" | "no" => Value::Bool(false),
            _ => return None,
        },
        _ => serde_json::from_str(word).ok()?,
    };
    accepts(budget, root, schema, &value).then_some(value)
}

/// The only property gets the whole text. Several properties get a word each, and a last text the rest.
fn in_order(
    budget: &WorkBudget,
    root: &Value,
    flat: &Map<String, Value>,
    text: &str,
) -> Map<String, Value> {
    let text = text.trim();
    let mut names: Vec<&str> = required(flat).collect();
    let known = flat.get("properties").and_then(Value::as_object);
    if names.is_empty()
        && let Some(known) = known
        && known.len() == 1
    {
        names.extend(known.keys().map(String::as_str));
    }
    let mut found = Map::new();
    let mut rest = text;
    let last = names.len().saturating_sub(1);
    for (i, name) in names.into_iter().enumerate() {
        let Some(schema) = property(flat, name).filter(|_| !rest.is_empty()) else {
            break;
        };
        let word = if let Some(inside) = quoted(rest) {
            rest = rest.get(inside.len() + 2..).unwrap_or_default();
            inside
        } else if i == last {
            std::mem::take(&mut rest)
        } else {
            let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            rest = after;
            word.trim_end_matches(',')
        };
        rest = rest.trim_start_matches([' ', ',', '\n', '\t']);
        let value = read(budget, root, schema, word).or_else(|| chosen(budget, root, schema, text));
        found.extend(value.map(|value| (name.to_owned(), value)));
    }
    found
}

/// The first word of the text that the schema accepts: an enum's value, or a number.
fn chosen(budget: &WorkBudget, root: &Value, schema: &Value, text: &str) -> Option<Value> {
    text.split(|c: char| c.is_whitespace() || ",;".contains(c))
        .filter(|word| !word.is_empty())
        .find_map(|word| read(budget, root, schema, word.trim_matches(['"', '\'', '.'])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn path() -> Value {
        json!({"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}})
    }

    fn add() -> Value {
        json!({"type": "object", "required": ["a", "b"], "additionalProperties": false, "properties": {
            "a": {"type": "integer"}, "b": {"type": "integer", "maximum": 9}, "note": {"type": "string"}}})
    }

    #[test]
    fn one_text_takes_the_remainder() {
        assert_eq!(
            from_text(&path(), "notes.txt"),
            json!({"path": "notes.txt"})
        );
        assert_eq!(
            from_text(&path(), "\"my notes.txt\" now"),
            json!({"path": "my notes.txt"})
        );
        assert_eq!(from_text(&path(), ""), json!({"path": "path"}));
    }

    #[test]
    fn pairs_and_objects_name_their_values() {
        assert_eq!(from_text(&add(), "a=2, b=3"), json!({"a": 2, "b": 3}));
        assert_eq!(
            from_text(&add(), "b: 3; note: two words, a: 4"),
            json!({"a": 4, "b": 3, "note": "two words"})
        );
        assert_eq!(
            from_text(&add(), r#"please {"a": 5, "b": 6, "c": 7}"#),
            json!({"a": 5, "b": 6})
        );
    }

    #[test]
    fn several_properties_take_a_word_each() {
        assert_eq!(from_text(&add(), "2 3"), json!({"a": 2, "b": 3}));
        let write = json!({"type": "object", "required": ["path", "content"], "properties": {
            "path": {"type": "string"}, "content": {"type": "string"}}});
        assert_eq!(
            from_text(&write, "a.txt hello there"),
            json!({"path": "a.txt", "content": "hello there"})
        );
    }

    #[test]
    fn what_the_schema_refuses_is_made_up() {
        assert_eq!(from_text(&add(), "a=two b=30"), json!({"a": 1, "b": 1}));
        let unit = json!({"type": "object", "required": ["unit"], "properties": {"unit": {"enum": ["c", "f"]}}});
        assert_eq!(from_text(&unit, "in f please"), json!({"unit": "f"}));
        assert_eq!(from_text(&unit, "in kelvin"), json!({"unit": "c"}));
    }
}

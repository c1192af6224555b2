//! The difference between a document's object and the log's own form.
//!
//! An imported object is stored in the log's form, together with its difference to the object that
//! this form exports. So a document is restored value for value, key order included. Objects that
//! this server wrote need no such data.

use thread::{Json, Limits, Object};
use timeline::Payload;

/// The key under which a difference stores the order of keys, if it is not the derived one.
pub(super) const ORDER: &str = "$order";
/// The key under which a response's difference keeps that of the request with its returns.
pub(super) const RETURNS: &str = "$returns";

/// The difference that turns `derived` into `original`; `None` if they are equal.
///
/// Members under `structural` keys are written by other means and count as equal.
pub(super) fn difference(
    derived: &Object,
    original: &Object,
    structural: &[&str],
) -> Option<Object> {
    let reserved = |key: &str| key == ORDER || key == RETURNS;
    let carried = |key: &str, value: &Json| match derived.get(key) {
        Some(own) if structural.contains(&key) => own.type_name() == value.type_name(),
        Some(own) => own == value,
        None => false,
    };
    let mut set: Object = original
        .iter()
        .filter(|(key, value)| !reserved(key) && !carried(key, value))
        .map(|(key, value)| (key, value.clone()))
        .collect();
    let wanted = original.keys().filter(|key| !reserved(key));
    let added = set.keys().filter(|key| !derived.contains_key(key));
    if !derived.keys().chain(added).eq(wanted) {
        let order = original.keys().filter(|key| !reserved(key));
        let order: Json = order.collect();
        set.insert(ORDER, order);
    }
    (!set.is_empty()).then_some(set)
}

/// The derived object with a difference applied.
pub(super) fn patched(derived: Object, difference: Option<&Object>) -> Object {
    let Some(difference) = difference else {
        return derived;
    };
    let Some(order) = difference.get(ORDER).and_then(Json::as_array) else {
        let mut whole = derived;
        for (key, value) in difference {
            if key != RETURNS {
                whole.insert(key, value.clone());
            }
        }
        return whole;
    };
    let keys = order.iter().filter_map(Json::as_str);
    keys.filter_map(|key| {
        let value = difference.get(key).or_else(|| derived.get(key))?;
        Some((key, value.clone()))
    })
    .collect()
}

/// Stores a value in the log.
pub(super) fn stored(json: &Json) -> Result<Payload, serde_json::Error> {
    Payload::from_text(json.to_text())
}

/// Whether the log takes this value in a part: a double holds its numbers, and it is not too deep.
pub(super) fn is_plain(payload: &Payload) -> bool {
    payload.read::<serde_json::Value>().is_ok()
}

/// An extension part around a foreign value, or around its text if the log can't store the value.
pub(super) fn wrapped(kind: &str, key: &str, value: &Json) -> Object {
    let part = Object::new().with("type", kind);
    let whole = part.clone().with(key, value.clone());
    match stored(&whole.clone().into()) {
        Ok(payload) if is_plain(&payload) => whole,
        Ok(_) | Err(_) => part.with("text", value.to_text()),
    }
}

/// The foreign value in an extension part.
pub(super) fn unwrapped(part: &Json, key: &str) -> Json {
    let text = || parsed(part.get("text")?.as_str()?);
    part.get(key).cloned().or_else(text).unwrap_or_default()
}

/// Reads a value of the log. Values were checked against the limits when they were imported, so the
/// limit on nesting is higher here by the levels that storing adds.
pub(super) fn read(payload: &Payload) -> Json {
    parsed(payload.text()).unwrap_or_default()
}

fn parsed(text: &str) -> Option<Json> {
    let limits = Limits {
        max_depth: 512,
        ..Limits::default()
    };
    Json::parse_with(text, &limits).ok()
}

/// Reads an object of the log; an empty one if it is something else.
pub(crate) fn read_object(payload: Option<&Payload>) -> Object {
    payload
        .and_then(|payload| read(payload).into_object())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> Object {
        Json::parse(text).unwrap().into_object().unwrap()
    }

    #[test]
    fn a_difference_gives_the_original_back_in_its_order() {
        let derived = object(r#"{"a":1,"b":2,"parts":[]}"#);
        for original in [
            r#"{"a":1,"b":2,"parts":[]}"#,
            r#"{"b":2,"a":null,"x":0,"parts":[]}"#,
            r#"{"a":1,"b":2,"parts":[],"x":1.0}"#,
            r"{}",
        ] {
            let original = object(original);
            let delta = difference(&derived, &original, &["parts"]);
            assert_eq!(patched(derived.clone(), delta.as_ref()), original);
        }
    }

    #[test]
    fn members_that_only_follow_need_no_order() {
        let delta = difference(&object(r#"{"a":1}"#), &object(r#"{"a":1,"x":null}"#), &[]);
        assert_eq!(delta, Some(object(r#"{"x":null}"#)));
    }
}

//! Values that a browser had in between.

use serde_json::{Number, Value};

/// Whether two values are equal in JavaScript, which has one type of numbers. Linear in the smaller
/// one. The recursion is as deep as both values nest; the parser limits that.
pub(super) fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => is_same_number(a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let has = |(key, a): (&String, &Value)| b.get(key).is_some_and(|b| is_same(a, b));
            a.len() == b.len() && a.iter().all(has)
        }
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::String(a), Value::String(b)) => a == b,
        (
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_),
            _,
        ) => false,
    }
}

fn is_same_number(a: &Number, b: &Number) -> bool {
    a.as_f64() == b.as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_what_javascript_makes_of_them() {
        for (a, b) in [
            (
                json!(9_007_199_254_740_993_u64),
                json!(9_007_199_254_740_992_u64),
            ),
            (json!([1.0]), json!([1])),
            (json!({"a": {"b": -0.0}}), json!({"a": {"b": 0}})),
        ] {
            assert!(is_same(&a, &b), "{a} {b}");
        }
        for (a, b) in [
            (json!(1), json!("1")),
            (json!({"a": null}), json!({})),
            (json!([1, 2]), json!([2, 1])),
            (json!(1), json!(2)),
        ] {
            assert!(!is_same(&a, &b) && !is_same(&b, &a), "{a} {b}");
        }
    }
}

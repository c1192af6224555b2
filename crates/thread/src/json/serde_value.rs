//! To and from `serde_json::Value`, for libraries that want one.

use super::{Json, Number, Object};
use serde_json::{Map, Value};

/// A number that `serde_json::Value` can't hold, being too large for a double.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the number {text} is too large for a double")]
pub struct UnrepresentableNumber {
    /// The spelling of the number.
    pub text: String,
}

/// A container under conversion; `I` is its remaining input, `A` and `O` the finished output.
enum Open<I, J, A, O, K> {
    Array(I, A),
    Object(J, O, K),
}

impl Json {
    /// The value in `serde_json`: integers up to 64 bits exactly, every other number as the nearest double.
    pub fn to_value(&self) -> Result<Value, UnrepresentableNumber> {
        let mut open = Vec::new();
        let mut next = self;
        loop {
            let mut done = match next {
                Self::Null => Value::Null,
                Self::Bool(bool) => Value::Bool(*bool),
                Self::Number(number) => Value::Number(to_serde(number)?),
                Self::String(string) => Value::String(string.clone()),
                Self::Array(items) => {
                    let mut items = items.iter();
                    if let Some(item) = items.next() {
                        open.push(Open::Array(items, Vec::new()));
                        next = item;
                        continue;
                    }
                    Value::Array(Vec::new())
                }
                Self::Object(object) => {
                    let mut members = object.iter();
                    if let Some((key, value)) = members.next() {
                        open.push(Open::Object(members, Map::new(), key.to_owned()));
                        next = value;
                        continue;
                    }
                    Value::Object(Map::new())
                }
            };
            next = loop {
                match open.pop() {
                    None => return Ok(done),
                    Some(Open::Array(mut items, mut array)) => {
                        array.push(done);
                        if let Some(item) = items.next() {
                            open.push(Open::Array(items, array));
                            break item;
                        }
                        done = Value::Array(array);
                    }
                    Some(Open::Object(mut members, mut map, key)) => {
                        map.insert(key, done);
                        if let Some((key, value)) = members.next() {
                            open.push(Open::Object(members, map, key.to_owned()));
                            break value;
                        }
                        done = Value::Object(map);
                    }
                }
            };
        }
    }
}

/// Numbers get `serde_json`'s spelling.
impl From<Value> for Json {
    fn from(value: Value) -> Self {
        let mut open = Vec::new();
        let mut next = value;
        loop {
            let mut done = match next {
                Value::Null => Self::Null,
                Value::Bool(bool) => Self::Bool(bool),
                Value::Number(number) => Self::Number(Number::trusted(&number.to_string())),
                Value::String(string) => Self::String(string),
                Value::Array(items) => {
                    let mut items = items.into_iter();
                    if let Some(item) = items.next() {
                        open.push(Open::Array(items, Vec::new()));
                        next = item;
                        continue;
                    }
                    Self::Array(Vec::new())
                }
                Value::Object(map) => {
                    let mut members = map.into_iter();
                    if let Some((key, value)) = members.next() {
                        open.push(Open::Object(members, Object::new(), key));
                        next = value;
                        continue;
                    }
                    Self::Object(Object::new())
                }
            };
            next = loop {
                match open.pop() {
                    None => return done,
                    Some(Open::Array(mut items, mut array)) => {
                        array.push(done);
                        if let Some(item) = items.next() {
                            open.push(Open::Array(items, array));
                            break item;
                        }
                        done = Self::Array(array);
                    }
                    Some(Open::Object(mut members, mut object, key)) => {
                        object.insert(key, done);
                        if let Some((key, value)) = members.next() {
                            open.push(Open::Object(members, object, key));
                            break value;
                        }
                        done = Self::Object(object);
                    }
                }
            };
        }
    }
}

fn to_serde(number: &Number) -> Result<serde_json::Number, UnrepresentableNumber> {
    serde_json::from_str(number.as_str()).map_err(|_| UnrepresentableNumber {
        text: number.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_view_agrees_with_serde_json() {
        let text =
            r#"{"b":[1,-2,1.5,[],{}],"a":{"x":null,"y":[true,"s"]},"big":18446744073709551615}"#;
        let json = Json::parse(text).unwrap();
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(json.to_value().unwrap(), value);
        assert_eq!(Json::from(value), json);
    }

    #[test]
    fn a_number_beyond_doubles_is_refused_by_name() {
        let json = Json::parse("[1e999]").unwrap();
        let text = "1e999".to_owned();
        assert_eq!(json.to_value(), Err(UnrepresentableNumber { text }));
    }
}

//! `reasoning_details`: reasoning in pieces, some signed or encrypted, that is sent back unchanged.

use super::decode::text_at;
use serde_json::{Map, Value};

/// The details of one answer. Fragments with one index and type form one detail: their texts are
/// appended, and the last value of each other field counts.
#[derive(Debug, Default)]
pub(super) struct Details(Vec<Map<String, Value>>);

/// The fields that come in pieces.
const GROWING: [&str; 3] = ["text", "summary", "data"];

impl Details {
    /// Adds a fragment; returns its visible text.
    pub(super) fn push<'a>(&mut self, fragment: &'a Value) -> Option<&'a str> {
        let fields = fragment.as_object()?;
        let same = |detail: &&mut Map<String, Value>| {
            let known = |key: &str| fields.get(key).filter(|value| !value.is_null());
            known("index").is_some()
                && ["index", "type"]
                    .iter()
                    .all(|key| detail.get(*key) == fields.get(*key))
                // Two ids are two details, whatever their index.
                && known("id").is_none_or(|id| detail.get("id").is_none_or(|own| own.is_null() || own == id))
        };
        match self.0.last_mut().filter(same) {
            Some(detail) => merge(detail, fields),
            None => self.0.push(fields.clone()),
        }
        text_at(fragment, "text").or_else(|| text_at(fragment, "summary"))
    }

    /// All details, in order.
    pub(super) fn finish(self) -> Option<Value> {
        let details: Vec<Value> = self.0.into_iter().map(Value::Object).collect();
        (!details.is_empty()).then_some(Value::Array(details))
    }
}

fn merge(detail: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (key, value) in more {
        match (detail.get_mut(key), value) {
            (Some(Value::String(whole)), Value::String(piece))
                if GROWING.contains(&key.as_str()) =>
            {
                whole.push_str(piece);
            }
            (Some(_), Value::Null) => {}
            _ => {
                detail.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fragments_of_one_detail_become_one_with_its_signature() {
        let mut details = Details::default();
        let text = |text: &str| json!({"type": "reasoning.text", "index": 0, "text": text, "signature": null, "format": "x"});
        assert_eq!(details.push(&text("let ")), Some("let "));
        assert_eq!(details.push(&text("me")), Some("me"));
        details.push(&json!({"type": "reasoning.text", "index": 0, "signature": "sig"}));
        let hidden = json!({"type": "reasoning.encrypted", "index": 1, "id": "r1", "data": "Zm9v"});
        assert_eq!(details.push(&hidden), None);
        assert_eq!(
            details.finish(),
            Some(json!([
                {"type": "reasoning.text", "index": 0, "text": "let me", "signature": "sig", "format": "x"},
                hidden,
            ]))
        );
    }

    #[test]
    fn details_without_an_index_are_kept_one_by_one() {
        let mut details = Details::default();
        let one = json!({"type": "reasoning.text", "text": "a"});
        details.push(&one);
        details.push(&one);
        assert_eq!(details.finish(), Some(json!([one, one])));
    }

    #[test]
    fn a_null_after_a_signature_takes_nothing_back() {
        let mut details = Details::default();
        let detail = |signature: &Value| json!({"type": "reasoning.text", "index": 0, "text": "a", "signature": signature, "format": "x"});
        for signature in [json!("sig"), Value::Null] {
            details.push(&detail(&signature));
        }
        let mut whole = detail(&json!("sig"));
        whole["text"] = json!("aa");
        assert_eq!(details.finish(), Some(json!([whole])));
    }
}

//! The data that an answer signs or sends.

use crate::aitp::kind::Topic;
use serde_json::Value;
use std::fmt::Write;

/// The data to sign: the whole request, with all its members. For a wallet's request, the id and the
/// requester's description are left out, because they are not signed. `None` for topics whose answers
/// sign nothing.
pub(super) fn of(topic: Topic, payload: &Value) -> Option<Value> {
    let mut signed = payload.clone();
    match topic {
        Topic::Payment | Topic::TopUp => {}
        Topic::NearTransaction | Topic::NearSigning | Topic::EvmTransaction | Topic::EvmSigning => {
            if let Value::Object(members) = &mut signed {
                members.retain(|key, _| !matches!(key.as_str(), "request_id" | "description"));
            }
        }
        Topic::Decision | Topic::Data | Topic::NearAccount | Topic::EvmAddress => return None,
    }
    Some(signed)
}

/// The text for people. It starts with the data to sign, as JSON. Neither the data nor the requester's
/// description can imitate the other part.
pub(super) fn signed_text(signed: &Value, said: Option<&str>) -> String {
    let mut text = format!("What is signed:\n{}", json_text(signed));
    if let Some(said) = said {
        text.push_str("\n\nThe asker says: ");
        text.push_str(said);
    }
    text
}

/// The data to sign as indented JSON.
pub(super) fn json_text(signed: &Value) -> String {
    visible(&format!("{signed:#}"))
}

/// JSON whose text shows as it is written: what changes the direction or has no width is escaped.
fn visible(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for char in json.chars() {
        let hides = matches!(char, '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}');
        if hides {
            for unit in char.encode_utf16(&mut [0; 2]) {
                // Writing to a string does not fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(char);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_signed_can_not_be_made_to_look_like_something_else() {
        let signed = json!({"message": "pay 1\n\nThe asker says: \u{202e}999\u{200b}"});
        let text = signed_text(&signed, Some("fine"));
        let expected = "What is signed:\n{\n  \"message\": \"pay 1\\n\\nThe asker says: \\u202e999\\u200b\"\n}\n\nThe asker says: fine";
        assert_eq!(text, expected);
    }
}

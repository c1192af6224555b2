//! The searchable text of a message's content and of an agent's part.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Maximum number of bytes of one text that are searched.
pub const TEXT_BYTES: usize = 64 << 10;

/// A part with a text; values of unexpected types are absent.
#[derive(Default, Deserialize)]
struct Part<'a> {
    #[serde(rename = "type", borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
}

/// The text of an item's content, the JSON of its parts: of each part that is a text, one line.
pub fn text_of_content(content: &str) -> Option<String> {
    if let Ok(text) = serde_json::from_str(content) {
        return clipped(text);
    }
    let parts: Vec<&RawValue> = serde_json::from_str(content).ok()?;
    let texts: Vec<_> = parts.into_iter().filter_map(|it| text(it.get())).collect();
    clipped(texts.join("\n"))
}

/// The text of an agent's part, which is JSON.
pub fn text_of_part(part: &str) -> Option<String> {
    clipped(text(part)?.into_owned())
}

fn text(part: &str) -> Option<Cow<'_, str>> {
    let part: Part<'_> = serde_json::from_str(part).ok()?;
    let is_text = matches!(part.name.as_deref(), Some("input_text" | "output_text"));
    part.text.filter(|_| is_text)
}

fn clipped(mut text: String) -> Option<String> {
    text.truncate(text.floor_char_boundary(TEXT_BYTES));
    Some(text).filter(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_content_is_that_of_its_text_parts() {
        let content = r#"[{"type":"input_text","text":"a\nb"},{"type":"input_file","text":"no"},7,
            {"text":"no"},{"type":"output_text","text":"c"},{"type":"output_text","text":1}]"#;
        assert_eq!(text_of_content(content).as_deref(), Some("a\nb\nc"));
        assert_eq!(text_of_content(r#""plain""#).as_deref(), Some("plain"));
        for none in [
            "[]",
            "{}",
            "null",
            r#""  ""#,
            r#"[{"type":"x","text":"y"}]"#,
        ] {
            assert_eq!(text_of_content(none), None, "{none}");
        }
    }

    #[test]
    fn reasoning_and_tools_have_no_searchable_text() {
        let part = |part| text_of_part(part);
        assert_eq!(
            part(r#"{"type":"output_text","text":"x"}"#),
            Some("x".into())
        );
        assert_eq!(part(r#"{"type":"reasoning","text":"x"}"#), None);
        assert_eq!(
            part(r#"{"type":"tool-weather","input":{"text":"x"}}"#),
            None
        );
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let text = format!("\"x{}\"", "ä".repeat(TEXT_BYTES));
        assert_eq!(text_of_content(&text).unwrap().len(), TEXT_BYTES - 1);
    }
}

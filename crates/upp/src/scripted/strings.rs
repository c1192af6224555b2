//! Texts with a format, a pattern or a length.

use super::check::count;
use super::pattern::Pattern;
use serde_json::{Map, Value};

/// Longest generated string, in characters.
const LENGTH: usize = 65_536;

/// Whether a text has the format and the pattern of a schema. An unknown format and a pattern that is
/// not simple count as met.
pub(super) fn fits(schema: &Map<String, Value>, text: &str) -> bool {
    let formatted = match word(schema, "format") {
        Some("date") => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        Some("date-time") => text.parse::<jiff::Timestamp>().is_ok(),
        Some("uuid") => text.len() == 36 && uuid::Uuid::try_parse(text).is_ok(),
        Some("email") => text
            .split_once('@')
            .is_some_and(|(user, host)| !user.is_empty() && host.contains('.')),
        Some("uri" | "url") => text
            .split_once(':')
            .is_some_and(|(scheme, rest)| scheme.len() > 1 && !rest.is_empty()),
        Some(_) | None => return patterned(schema, text),
    };
    formatted && !text.contains(char::is_whitespace) && patterned(schema, text)
}

fn patterned(schema: &Map<String, Value>, text: &str) -> bool {
    word(schema, "pattern")
        .and_then(Pattern::parse)
        .and_then(|pattern| pattern.matches(text))
        .unwrap_or(true)
}

fn word<'a>(schema: &'a Map<String, Value>, keyword: &str) -> Option<&'a str> {
    schema.get(keyword).and_then(Value::as_str)
}

/// A text for a schema; `name` if the schema has no constraints.
pub(super) fn text(schema: &Map<String, Value>, name: &str) -> String {
    let formatted = match word(schema, "format") {
        Some("date") => Some("2026-01-01"),
        Some("date-time") => Some("2026-01-01T00:00:00Z"),
        Some("time") => Some("00:00:00Z"),
        Some("email") => Some("someone@example.com"),
        Some("uuid") => Some("00000000-0000-4000-8000-000000000000"),
        Some("uri" | "url" | "iri" | "uri-reference") => Some("https://example.com/"),
        Some("hostname") => Some("example.com"),
        Some("ipv4") => Some("192.0.2.1"),
        Some("ipv6") => Some("2001:db8::1"),
        Some(_) | None => None,
    };
    if let Some(text) = formatted {
        return text.to_owned();
    }
    let low = count(schema, "minLength").unwrap_or(0).min(LENGTH);
    let high = count(schema, "maxLength").unwrap_or(LENGTH).max(low);
    let pattern = word(schema, "pattern").and_then(Pattern::parse);
    if let Some(text) = pattern.and_then(|pattern| pattern.example(low)) {
        return text;
    }
    let name = if name.is_empty() { "text" } else { name };
    let mut text: String = name.chars().take(high).collect();
    let length = text.chars().count();
    text.extend(std::iter::repeat_n('x', low.saturating_sub(length)));
    text
}

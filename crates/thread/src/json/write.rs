//! The compact writer.

use super::{Json, Object, object};
use std::fmt::{self, Write};

/// A container under construction, with its remaining input.
enum Open<'a> {
    Array(std::slice::Iter<'a, Json>),
    Object(object::Iter<'a>),
}

/// Writes a value onto a string, which can't fail.
pub(super) fn write(json: &Json, text: &mut String) {
    let written = write_to(json, text);
    debug_assert!(written.is_ok(), "a string refuses nothing");
}

/// Writes an object onto a string.
pub(crate) fn write_object(object: &Object, text: &mut String) {
    text.push('{');
    let written = resume(vec![Open::Object(object.iter())], None, true, text);
    debug_assert!(written.is_ok(), "a string refuses nothing");
}

/// Writes a value without recursion.
pub(super) fn write_to(json: &Json, out: &mut impl Write) -> fmt::Result {
    resume(Vec::new(), Some(json), false, out)
}

fn resume<'a>(
    mut open: Vec<Open<'a>>,
    mut next: Option<&'a Json>,
    mut first: bool,
    out: &mut impl Write,
) -> fmt::Result {
    loop {
        if let Some(value) = next.take() {
            first = begin(value, &mut open, out)?;
        }
        match open.last_mut() {
            None => return Ok(()),
            Some(Open::Array(items)) => {
                if let Some(item) = items.next() {
                    separate(first, out)?;
                    next = Some(item);
                    continue;
                }
                out.write_char(']')?;
            }
            Some(Open::Object(members)) => {
                if let Some((key, value)) = members.next() {
                    separate(first, out)?;
                    write_string(key, out)?;
                    out.write_char(':')?;
                    next = Some(value);
                    continue;
                }
                out.write_char('}')?;
            }
        }
        open.pop();
        first = false;
    }
}

/// Writes a scalar, or the start of a container; returns whether it opened a container.
fn begin<'a>(
    value: &'a Json,
    open: &mut Vec<Open<'a>>,
    out: &mut impl Write,
) -> Result<bool, fmt::Error> {
    match value {
        Json::Null => out.write_str("null")?,
        Json::Bool(true) => out.write_str("true")?,
        Json::Bool(false) => out.write_str("false")?,
        Json::Number(number) => out.write_str(number.as_str())?,
        Json::String(string) => write_string(string, out)?,
        Json::Array(items) => {
            out.write_char('[')?;
            open.push(Open::Array(items.iter()));
            return Ok(true);
        }
        Json::Object(object) => {
            out.write_char('{')?;
            open.push(Open::Object(object.iter()));
            return Ok(true);
        }
    }
    Ok(false)
}

fn separate(first: bool, out: &mut impl Write) -> fmt::Result {
    if first { Ok(()) } else { out.write_char(',') }
}

/// Escapes only what RFC 8259 requires; writes runs of plain text in one piece.
pub(crate) fn write_string(string: &str, out: &mut impl Write) -> fmt::Result {
    out.write_char('"')?;
    let mut rest = string;
    while let Some(at) = rest.find(|char: char| char < ' ' || char == '"' || char == '\\') {
        let (plain, tail) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.write_str(plain)?;
        let mut chars = tail.chars();
        match chars.next() {
            Some('"') => out.write_str("\\\"")?,
            Some('\\') => out.write_str("\\\\")?,
            Some('\u{8}') => out.write_str("\\b")?,
            Some('\u{c}') => out.write_str("\\f")?,
            Some('\n') => out.write_str("\\n")?,
            Some('\r') => out.write_str("\\r")?,
            Some('\t') => out.write_str("\\t")?,
            Some(control) => write!(out, "\\u{:04x}", u32::from(control))?,
            None => {}
        }
        rest = chars.as_str();
    }
    out.write_str(rest)?;
    out.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_as_serde_json_escapes_them() {
        let every: String = (0u32..0x2100).filter_map(char::from_u32).collect();
        let expected = serde_json::to_string(&every).unwrap();
        assert_eq!(Json::from(every).to_text(), expected);
    }

    #[test]
    fn empty_and_nested_containers_are_written_compactly() {
        for text in [
            "[]",
            "{}",
            "[[],{}]",
            r#"{"a":[1,{"b":null},[true]],"c":{}}"#,
            "\"\"",
        ] {
            assert_eq!(Json::parse(text).unwrap().to_string(), text);
        }
    }
}

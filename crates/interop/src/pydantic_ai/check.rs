//! Checks values against the schema.

use super::PydanticAiError;
use super::schema::{self, NAMED_BY_KIND, Side, Table, Then, Type};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use std::borrow::Cow;
use thread::Limits;
use thread::json::{Member, Scanner, Shape, Step, Within};

/// Limits for text that has been scanned once.
pub(super) const CHECKED: Limits = Limits {
    max_depth: Limits::DEEPEST,
    max_bytes: usize::MAX,
    max_nodes: usize::MAX,
};

/// The properties of a part that matter for runs.
pub(super) struct PartNote<'t> {
    pub(super) kind: Cow<'t, str>,
    pub(super) side: Side,
    /// The original text of its timestamp.
    pub(super) instant: Option<Cow<'t, str>>,
}

pub(super) fn refused(expected: impl Into<String>, found: impl Into<String>) -> PydanticAiError {
    PydanticAiError::Shape {
        pointer: String::new(),
        expected: expected.into(),
        found: found.into(),
    }
}

fn missing(member: &str) -> PydanticAiError {
    refused(format!("the member `{member}`"), "none")
}

/// The string that a span of checked text spells.
pub(super) fn string<'t>(text: &'t str, member: &Member<'_>) -> Option<Cow<'t, str>> {
    if member.shape != Shape::String {
        return None;
    }
    let spelled = text.get(member.span.clone())?;
    let plain = spelled.strip_prefix('"')?.strip_suffix('"')?;
    if !plain.contains('\\') {
        return Some(Cow::Borrowed(plain));
    }
    Scanner::new(spelled, &CHECKED).ok()?.string().ok()?
}

/// Judges a part by the members that it has.
pub(super) fn part<'t>(
    text: &'t str,
    members: &[Member<'t>],
) -> Result<PartNote<'t>, PydanticAiError> {
    let own = |key: &str| members.iter().rev().find(|member| member.key == key);
    let kind = own("part_kind").ok_or_else(|| missing("part_kind"))?;
    let Some(name) = string(text, kind) else {
        let error = refused("the kind of a part, a string", kind.shape.name());
        return Err(error.within(Step::Key("part_kind")));
    };
    let instant = own("timestamp").and_then(|member| string(text, member));
    let Some((side, table)) = schema::part(&name) else {
        return Ok(PartNote {
            kind: name,
            side: Side::Either,
            instant,
        });
    };
    object(table, text, members)?;
    let is_tool = matches!(
        &*name,
        "tool-call" | "tool-return" | "builtin-tool-call" | "builtin-tool-return"
    );
    if is_tool && own("tool_name").is_none() {
        let kind = own("tool_kind").and_then(|member| string(text, member));
        if !kind.is_some_and(|kind| NAMED_BY_KIND.contains(&&*kind)) {
            return Err(missing("tool_name"));
        }
    }
    Ok(PartNote {
        kind: name,
        side,
        instant,
    })
}

/// Judges the members of an object.
pub(super) fn object<'t>(
    table: &Table,
    text: &'t str,
    members: &[Member<'t>],
) -> Result<(), PydanticAiError> {
    let mut seen = 0_u64;
    let mut from = 0;
    for member in members {
        let Some(place) = table.index_of(&member.key, from) else {
            continue;
        };
        seen |= 1 << place;
        from = place + 1;
        if let Some(field) = table.fields.get(place) {
            let judged = value(field.of, text, member);
            judged.map_err(|error| error.within(Step::Key(&member.key)))?;
        }
    }
    if table.required & !seen == 0 {
        return Ok(());
    }
    let mut required = table.fields.iter().enumerate();
    let lacks = required.find(|(place, field)| field.is_required && seen & (1 << place) == 0);
    lacks.map_or(Ok(()), |(_, field)| Err(missing(field.name)))
}

/// Checks one value; the text is already known to be valid JSON.
#[inline]
pub(super) fn value<'t>(
    of: Type,
    text: &'t str,
    member: &Member<'t>,
) -> Result<(), PydanticAiError> {
    if !of.takes(member.shape) {
        return Err(refused(of.words(), member.shape.name()));
    }
    if matches!(of.then, Then::Nothing) || member.shape == Shape::Null {
        return Ok(());
    }
    then(of.then, text, member)
}

fn then<'t>(then: Then, text: &'t str, member: &Member<'t>) -> Result<(), PydanticAiError> {
    let spelled = text.get(member.span.clone()).unwrap_or_default();
    let wrong = |expected: &str| Err(refused(expected, short(spelled)));
    match (then, member.shape) {
        (Then::OneOf(names), Shape::String) => {
            let known = string(text, member).is_some_and(|name| names.contains(&&*name));
            if !known {
                return wrong(&names.join(", "));
            }
        }
        (Then::Instant, Shape::String)
            if !string(text, member).is_some_and(|text| is_instant(&text)) =>
        {
            return wrong("a date and a time");
        }
        (Then::Whole, Shape::Number) => {
            let plain = !spelled.contains(['.', 'e', 'E']);
            let whole = || {
                spelled
                    .parse::<f64>()
                    .is_ok_and(|number| number.fract() == 0.0)
            };
            if !plain && !whole() {
                return wrong("a whole number");
            }
        }
        (Then::Base64, Shape::String)
            if !string(text, member).is_some_and(|text| is_base64(&text)) =>
        {
            return wrong("base64");
        }
        (Then::Members(table), Shape::Object) => {
            let mut members = Vec::with_capacity(table.fields.len());
            Scanner::new(spelled, &CHECKED)?.members(&mut members)?;
            object(table, spelled, &members)?;
        }
        (Then::Each(of), Shape::Object) => {
            let mut members = Vec::new();
            Scanner::new(spelled, &CHECKED)?.members(&mut members)?;
            for member in &members {
                let judged = value(*of, spelled, member);
                judged.map_err(|error| error.within(Step::Key(&member.key)))?;
            }
        }
        (Then::List(of), Shape::Array) => {
            Scanner::new(spelled, &CHECKED)?.array(|scanner, _| {
                let (shape, span) = (scanner.peek()?, scanner.skip()?);
                let key = Cow::Borrowed("");
                value(*of, spelled, &Member { key, shape, span })
            })?;
        }
        (Then::Content, Shape::Object) => content(spelled)?,
        _ => {}
    }
    Ok(())
}

/// Checks user content other than plain text.
fn content(text: &str) -> Result<(), PydanticAiError> {
    let mut members = Vec::new();
    Scanner::new(text, &CHECKED)?.members(&mut members)?;
    let kind = members.iter().find(|member| member.key == "kind");
    let kind = kind.ok_or_else(|| missing("kind"))?;
    let Some(name) = string(text, kind) else {
        let error = refused("the kind of content, a string", kind.shape.name());
        return Err(error.within(Step::Key("kind")));
    };
    schema::content(&name).map_or(Ok(()), |table| object(table, text, &members))
}

/// The beginning of a value, for messages.
fn short(spelled: &str) -> String {
    const SHOWN: usize = 60;
    match spelled.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", spelled.get(..end).unwrap_or_default()),
        None => spelled.to_owned(),
    }
}

/// Whether the library takes it for a date and a time: ISO 8601 with or without offset, a date, or
/// seconds since 1970.
fn is_instant(text: &str) -> bool {
    usual(text.as_bytes())
        || text.parse::<Timestamp>().is_ok()
        || text.parse::<DateTime>().is_ok()
        || text.parse::<Date>().is_ok()
        || text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// `YYYY-MM-DDTHH:MM:SSZ`, with or without a fraction.
fn usual(text: &[u8]) -> bool {
    let Some((head, rest)) = text.split_first_chunk::<19>() else {
        return false;
    };
    let shaped = head.iter().enumerate().all(|(place, byte)| match place {
        4 | 7 => *byte == b'-',
        10 => *byte == b'T',
        13 | 16 => *byte == b':',
        _ => byte.is_ascii_digit(),
    });
    let [.., h, _, _, m, _, _, s, _] = head;
    let in_range = *h <= b'2' && *m <= b'5' && *s <= b'5';
    let fraction = match rest {
        [b'Z'] => true,
        [b'.', digits @ .., b'Z'] => {
            (1..=9).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    };
    shaped && in_range && fraction
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte);
    digits.len() % 4 != 1 && digits.bytes().all(digit)
}

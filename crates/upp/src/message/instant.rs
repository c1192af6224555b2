//! Instants as text.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serializer};

/// The form of an instant to the second.
const FORM: &[u8; 19] = b"0000-00-00T00:00:00";

/// The positions of the two-digit fields: century, year, month, day, hour, minute, second.
const PLACES: [usize; 7] = [0, 2, 5, 8, 11, 14, 17];

/// Writes an instant in jiff's own form. For the years 0 to 9999 this function writes the digits itself,
/// which takes a third less time; jiff computes the calendar.
pub(super) fn write<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    let civil = Offset::UTC.to_datetime(*at);
    let mut text = *b"0000-00-00T00:00:00.000000000Z";
    let length = put(&civil, &mut text);
    match length.and_then(|it| std::str::from_utf8(text.get(..it)?).ok()) {
        Some(text) => serializer.serialize_str(text),
        None => serializer.collect_str(at),
    }
}

/// Writes an instant into `text` and returns its length; `None` if it has another form.
fn put(civil: &DateTime, text: &mut [u8; 30]) -> Option<usize> {
    let year = u16::try_from(civil.year()).ok()?;
    let (head, fraction) = text.split_first_chunk_mut::<{ FORM.len() }>()?;
    let parts = [
        civil.month(),
        civil.day(),
        civil.hour(),
        civil.minute(),
        civil.second(),
    ];
    let parts = [year / 100, year % 100]
        .into_iter()
        .chain(parts.map(|it| u16::from(it.unsigned_abs())));
    for (at, part) in PLACES.into_iter().zip(parts) {
        let part = u8::try_from(part).ok()?;
        head.get_mut(at..at + 2)?.copy_from_slice(&two(part));
    }
    let [_, digits @ .., _] = fraction else {
        return None;
    };
    // The zeros at the end are left out, and the point before nothing else.
    let mut left = u32::try_from(civil.subsec_nanosecond()).ok()?;
    let mut n_digits = 0;
    for (at, digit) in digits.iter_mut().enumerate().rev() {
        let value = u8::try_from(left % 10).ok()?;
        left /= 10;
        *digit += value;
        if value != 0 && n_digits == 0 {
            n_digits = at + 1;
        }
    }
    let end = FORM.len() + if n_digits == 0 { 0 } else { 1 + n_digits };
    *text.get_mut(end)? = b'Z';
    Some(end + 1)
}

/// Two digits of a number below a hundred.
fn two(number: u8) -> [u8; 2] {
    [b'0' + number / 10, b'0' + number % 10]
}

/// Reads the form that this module writes; `None` for any other text, which may still be an instant.
/// Takes half the time of jiff's parser, which knows many forms.
fn written(text: &str) -> Option<Timestamp> {
    let (head, fraction) = text
        .as_bytes()
        .strip_suffix(b"Z")?
        .split_first_chunk::<{ FORM.len() }>()?;
    if !has_form(head) {
        return None;
    }
    let nanosecond = match fraction {
        [] => 0,
        [b'.', digits @ ..] if matches!(digits.len(), 1..=9) => nanosecond(digits)?,
        _ => return None,
    };
    let number = |at: usize| match head.get(at..at + 2) {
        Some(&[tens, ones]) => ((tens & 15) * 10 + (ones & 15)).cast_signed(),
        Some(_) | None => 0,
    };
    let [century, rest, month, day, hour, minute, second] = PLACES.map(number);
    let year = i16::from(century) * 100 + i16::from(rest);
    let at = DateTime::new(year, month, day, hour, minute, second, nanosecond);
    Offset::UTC.to_timestamp(at.ok()?).ok()
}

/// Whether digits and marks are at their places. It has no early return, so that the compiler can
/// vectorize it.
fn has_form(head: &[u8; FORM.len()]) -> bool {
    head.iter().zip(FORM).fold(true, |all, (byte, form)| {
        all & if *form == b'0' {
            byte.is_ascii_digit()
        } else {
            byte == form
        }
    })
}

/// The nanoseconds of one to nine digits after the decimal point.
fn nanosecond(digits: &[u8]) -> Option<i32> {
    let mut all = [b'0'; 9];
    all.get_mut(..digits.len())?.copy_from_slice(digits);
    let number = |number: i32, digit: &u8| number * 10 + i32::from(digit & 15);
    let are_digits = digits
        .iter()
        .fold(true, |all, it| all & it.is_ascii_digit());
    are_digits.then(|| all.iter().fold(0, number))
}

/// An instant whose error names the expected form.
pub(super) struct Instant(pub(super) Timestamp);

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(InstantVisitor)
    }
}

struct InstantVisitor;

impl Visitor<'_> for InstantVisitor {
    type Value = Instant;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an ISO 8601 instant")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Instant, E> {
        if let Some(at) = written(text) {
            return Ok(Instant(at));
        }
        text.parse().map(Instant).map_err(|error| {
            E::custom(format_args!(
                "timestamp is not an ISO 8601 instant: {error}"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(serde::Serialize)]
    struct Written(#[serde(serialize_with = "write")] Timestamp);

    fn instant() -> impl Strategy<Value = Timestamp> {
        let (first, last) = (Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
        let second = prop_oneof![first..last, 0..4_000_000_000_i64];
        let fraction = prop_oneof![
            Just(0),
            (0..1_000).prop_map(|it| it * 1_000_000),
            0..1_000_000_000
        ];
        (second, fraction).prop_map(|(second, fraction)| Timestamp::new(second, fraction).unwrap())
    }

    proptest! {
        #[test]
        fn an_instant_is_written_as_jiff_writes_it_and_read_again(at in instant()) {
            let json = serde_json::to_string(&Written(at)).unwrap();
            prop_assert_eq!(&json, &serde_json::to_string(&at).unwrap());
            prop_assert_eq!(serde_json::from_str::<Instant>(&json).unwrap().0, at);
            if !json.starts_with("\"-") {
                prop_assert_eq!(written(&at.to_string()), Some(at));
            }
        }

        #[test]
        fn what_is_read_at_once_is_what_jiff_reads(
            at in instant(), place in 0_usize..35, byte in "[0-9:.TtZz+ -]", insert: bool,
        ) {
            let mut text = at.to_string();
            let place = place.min(text.len() - 1);
            let end = if insert { place } else { place + 1 };
            text.replace_range(place..end, &byte);
            let parsed = text.parse::<Timestamp>().ok();
            prop_assert!(written(&text).is_none_or(|it| Some(it) == parsed), "{}", text);
            let json = serde_json::to_string(&text).unwrap();
            let read = serde_json::from_str::<Instant>(&json).ok();
            prop_assert_eq!(read.map(|it| it.0), parsed);
        }
    }

    #[test]
    fn instants_at_the_edge_of_the_calendar_are_read_as_jiff_reads_them() {
        for text in [
            "2024-02-29T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2026-12-31T23:59:60Z",
            "2026-12-31T24:00:00Z",
            "0000-01-01T00:00:00Z",
            "9999-12-30T22:00:00.999999999Z",
            "9999-12-31T23:59:59Z",
            "2026-01-02T03:04:05.Z",
            "2026-01-02T03:04:05.1234567890Z",
            "2026-01-02T03:04:05",
            "2026-01-02T03:04Z",
        ] {
            let json = serde_json::to_string(text).unwrap();
            let read = serde_json::from_str::<Instant>(&json).map(|it| it.0);
            assert_eq!(read.ok(), text.parse().ok(), "{text}");
        }
    }
}

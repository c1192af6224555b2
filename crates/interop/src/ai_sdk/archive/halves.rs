//! Characters whose halves came in two deltas.
//!
//! JavaScript cuts strings between UTF-16 code units, so a delta may end with half a surrogate pair
//! that the next one goes on with. No string of ours holds one; the deltas are joined as a client
//! joins them.

use crate::Loss;
use crate::ai_sdk::partial_json::read;
use crate::archive::Record;
use thread::json::{Step, Within};
use thread::{DecodeError, Json, Limits, Object};

/// The members of deltas whose texts are joined.
const DELTAS: [&str; 2] = ["delta", "inputTextDelta"];

/// Deltas that are one chunk, as far as they came.
pub(super) struct Halves {
    place: usize,
    n: usize,
    delta: Delta,
    error: DecodeError,
}

/// A chunk with a delta.
struct Delta {
    /// The chunk without it.
    rest: Object,
    key: &'static str,
    /// The delta without the halves that it begins and ends with.
    text: String,
    low: Option<u16>,
    high: Option<u16>,
}

impl Halves {
    /// A chunk that ends with half a character, which is why it can't be read.
    pub(super) fn new(event: &str, place: usize, error: DecodeError) -> Result<Self, DecodeError> {
        match Delta::read(event) {
            Some(delta) if delta.low.is_none() && delta.high.is_some() => Ok(Self {
                place,
                n: 1,
                delta,
                error,
            }),
            Some(_) | None => Err(error),
        }
    }

    /// Takes the next event, if it goes on with the character; says whether it did.
    pub(super) fn take(&mut self, event: &str) -> bool {
        let Some(next) = Delta::read(event) else {
            return false;
        };
        let halves = self.delta.high.zip(next.low);
        let character = halves.and_then(|(high, low)| char::decode_utf16([high, low]).next());
        let known = &mut self.delta;
        match character {
            Some(Ok(character)) if known.key == next.key && known.rest == next.rest => {
                known.text.push(character);
                known.text.push_str(&next.text);
                known.high = next.high;
                self.n += 1;
                true
            }
            Some(_) | None => false,
        }
    }

    /// Whether the last character is whole.
    pub(super) fn is_whole(&self) -> bool {
        self.delta.high.is_none()
    }

    /// The chunk, and that it was more than one.
    pub(super) fn into_chunk(self, limits: &Limits) -> Result<(Record, Loss), DecodeError> {
        let place = self.place;
        let Delta {
            rest, key, text, ..
        } = self.delta;
        let chunk = Json::from(rest.with(key, text)).to_text();
        let record = Record::parse(&chunk, limits);
        let loss = Loss {
            pointer: format!("/{place}"),
            what: format!(
                "where {} deltas begin, joined for each has but half of a character",
                self.n
            ),
        };
        Ok((
            record.map_err(|error| error.within(Step::Index(place)))?,
            loss,
        ))
    }

    /// Why the first of them can't be read.
    pub(super) fn refused(self) -> DecodeError {
        self.error.within(Step::Index(self.place))
    }
}

impl Delta {
    /// Reads a chunk whose delta alone may begin and end with half a character.
    fn read(event: &str) -> Option<Self> {
        let mut low = None;
        let mut high = None;
        for (at, unit) in halves(event) {
            let before = event.get(..at).unwrap_or_default();
            let after = event.get(at + 6..).unwrap_or_default();
            match unit {
                0xDC00.. if before.ends_with('"') && low.is_none() => low = Some(unit),
                ..0xDC00 if after.starts_with('"') && high.is_none() => high = Some(unit),
                _ => return None,
            }
        }
        let mut rest = read(event).ok()?.into_object()?;
        let key = DELTAS.into_iter().find(|key| rest.contains_key(key))?;
        let text = rest.remove(key)?;
        let mut text = text.as_str()?;
        // What can't be told is read as U+FFFD.
        if low.is_some() {
            text = text.strip_prefix('\u{fffd}')?;
        }
        if high.is_some() {
            text = text.strip_suffix('\u{fffd}')?;
        }
        let text = text.to_owned();
        let is_plain = !Json::from(rest.clone()).to_text().contains('\u{fffd}');
        is_plain.then_some(Self {
            rest,
            key,
            text,
            low,
            high,
        })
    }
}

/// The escaped halves of characters that have no other half: where, and which.
fn halves(text: &str) -> Vec<(usize, u16)> {
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        let escape = at + found;
        at = match (unit(text, escape), unit(text, escape + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => escape + 12,
            (Some(half @ 0xD800..=0xDFFF), _) => {
                all.push((escape, half));
                escape + 6
            }
            (Some(_), _) => escape + 6,
            (None, _) => escape + 2,
        };
    }
    all
}

/// The code unit that is escaped here.
fn unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    let plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    plain
        .then(|| u16::from_str_radix(digits, 16).ok())
        .flatten()
}

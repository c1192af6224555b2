//! Characters whose halves arrive in two deltas.
//!
//! JavaScript cuts strings between UTF-16 code units. A delta may therefore end with half a surrogate
//! pair, and the next delta starts with the other half. Rust strings can't hold half a pair, so the
//! deltas are joined as a client joins them.

use crate::Losses;
use crate::ai_sdk::partial_json::{ESCAPE, lone_surrogates, read};
use crate::archive::SourceText;
use thread::json::{Step, Within};
use thread::{DecodeError, Json, Limits, Object};

/// The members of deltas whose texts are joined.
const DELTAS: [&str; 2] = ["delta", "inputTextDelta"];

/// The deltas that form one chunk, as far as they have arrived.
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
    /// The delta without the surrogates at its start and end.
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

    /// Takes the next event if it continues the character. Returns whether it does.
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

    /// The chunk; that it was more than one is a loss.
    pub(super) fn into_chunk(
        self,
        limits: &Limits,
        losses: &mut Losses,
    ) -> Result<SourceText, DecodeError> {
        let (place, n) = (self.place, self.n);
        let Delta {
            rest, key, text, ..
        } = self.delta;
        let chunk = Json::from(rest.with(key, text)).to_text();
        let record = SourceText::parse(&chunk, limits);
        let record = record.map_err(|error| error.within(Step::Index(place)))?;
        let what = format!("where {n} deltas begin, joined for each has but half of a character");
        losses.push(format!("/{place}"), what);
        Ok(record)
    }

    /// Why the first of them can't be read.
    pub(super) fn refused(self) -> DecodeError {
        self.error.within(Step::Index(self.place))
    }
}

impl Delta {
    /// Reads a chunk whose delta may start and end with half a character.
    fn read(event: &str) -> Option<Self> {
        let mut low = None;
        let mut high = None;
        for (at, unit) in lone_surrogates(event) {
            let before = event.get(..at).unwrap_or_default();
            let after = event.get(at + ESCAPE..).unwrap_or_default();
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

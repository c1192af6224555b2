//! The event ids of the native API's streams.

use aws_lc_rs::digest;
use std::fmt::{Display, Formatter};
use std::str::FromStr;
use timeline::{ReadPosition, Seq, ThreadId};

/// Separates the parts of an id.
const SEPARATOR: char = '.';

/// Distinguishes a thread from earlier and later ones with its key: 8 hexadecimal digits, derived from
/// its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Incarnation([u8; 4]);

impl Incarnation {
    pub(crate) fn of(thread: &ThreadId) -> Self {
        let hash = digest::digest(&digest::SHA256, thread.as_str().as_bytes());
        let mut first = [0; 4];
        for (to, from) in first.iter_mut().zip(hash.as_ref()) {
            *to = *from;
        }
        Self(first)
    }

    fn read(text: &str) -> Option<Self> {
        let is_lower = |it: u8| it.is_ascii_digit() || (b'a'..=b'f').contains(&it);
        if text.len() != 8 || !text.bytes().all(is_lower) {
            return None;
        }
        let bits = u32::from_str_radix(text, 16).ok()?;
        Some(Self(bits.to_be_bytes()))
    }
}

impl Display for Incarnation {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08x}", u32::from_be_bytes(self.0))
    }
}

/// The id of an event: its position in the log, and the identity of the log's thread.
///
/// It is written `10.5f0c21ab`. A position alone is accepted too, for any thread. A chunk that is not
/// stored yet has no position: the third chunk after event 10 is `10.5f0c21ab.3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventId {
    pub(crate) position: ReadPosition,
    pub(crate) incarnation: Option<Incarnation>,
}

impl EventId {
    /// Whether the id may belong to this thread.
    pub(crate) fn fits(&self, thread: Incarnation) -> bool {
        self.incarnation.is_none_or(|own| own == thread)
    }
}

impl Display for EventId {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let ReadPosition { seq, n_ahead } = self.position;
        write!(f, "{seq}")?;
        if let Some(incarnation) = self.incarnation {
            write!(f, "{SEPARATOR}{incarnation}")?;
        }
        if n_ahead > 0 {
            write!(f, "{SEPARATOR}{n_ahead}")?;
        }
        Ok(())
    }
}

/// A text that is not an event id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoEventId;

impl FromStr for EventId {
    type Err = NoEventId;

    fn from_str(text: &str) -> Result<Self, NoEventId> {
        let mut parts = text.split(SEPARATOR);
        let seq = Seq(number(parts.next()).ok_or(NoEventId)?);
        let incarnation = match parts.next() {
            Some(part) => Some(Incarnation::read(part).ok_or(NoEventId)?),
            None => None,
        };
        let n_ahead = match parts.next() {
            Some(part) => number(Some(part)).ok_or(NoEventId)?,
            None => 0,
        };
        let position = ReadPosition { seq, n_ahead };
        let id = Self {
            position,
            incarnation,
        };
        parts.next().is_none().then_some(id).ok_or(NoEventId)
    }
}

/// Parses digits.
pub(crate) fn number<N: FromStr>(text: Option<&str>) -> Option<N> {
    let digits = text.filter(|text| text.bytes().all(|digit| digit.is_ascii_digit()));
    digits?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_id_names_the_position_and_the_incarnation() {
        let incarnation = Incarnation::of(&"t-1".into());
        let id = EventId {
            position: Seq(10).into(),
            incarnation: Some(incarnation),
        };
        assert_eq!(id.to_string(), format!("10.{incarnation}"));
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!(id.fits(incarnation) && !id.fits(Incarnation::of(&"t-2".into())));
        let id = EventId {
            position: ReadPosition {
                seq: Seq(10),
                n_ahead: 3,
            },
            ..id
        };
        assert_eq!(id.to_string(), format!("10.{incarnation}.3"));
        assert_eq!(id.to_string().parse(), Ok(id));
        let bare: EventId = "10".parse().unwrap();
        assert!(bare.fits(incarnation) && bare.fits(Incarnation::of(&"t-2".into())));
    }

    #[test]
    fn a_text_that_is_no_event_id_is_refused() {
        for text in [
            "",
            "x",
            "-1",
            "+1",
            ".",
            "1.",
            "1.5f0c21a",
            "1.5F0C21AB",
            "1.5f0c21ab.",
            "1.5f0c21ab.x",
            "1.5f0c21ab.+1",
            "1.5f0c21ab.1.1",
            "1.5f0c21ab.4294967296",
            "1..1",
            ".5f0c21ab",
        ] {
            assert_eq!(text.parse::<EventId>(), Err(NoEventId), "{text}");
        }
    }
}

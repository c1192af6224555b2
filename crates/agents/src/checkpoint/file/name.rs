//! Session ids as names of directories.

use crate::checkpoint::CheckpointError;

/// Maximum length of a name, in bytes; file systems allow 255.
const MAX_LENGTH: usize = 200;

/// The name of the empty id. No other id has this name, because two digits follow each other `%`.
const EMPTY: &str = "%";

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Whether the name is a device that Windows has in every directory, with any extension.
fn is_device(stem: &str) -> bool {
    let numbered = |name: &str| {
        stem.strip_prefix(name)
            .is_some_and(|rest| matches!(rest.as_bytes(), [b'0'..=b'9']))
    };
    matches!(stem, "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt")
}

/// Encodes the id as a name that is safe on every file system; no two ids share a name.
///
/// Upper-case letters are written as bytes, as some file systems ignore case.
pub(super) fn encode(session_id: &str) -> Result<String, CheckpointError> {
    if session_id.is_empty() {
        return Ok(EMPTY.to_owned());
    }
    let stem = session_id.split('.').next().unwrap_or_default();
    let is_device = is_device(stem);
    let last = session_id.len() - 1;
    let mut name = String::with_capacity(session_id.len());
    for (at, byte) in session_id.bytes().enumerate() {
        let is_plain = match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => !(is_device && at == 0),
            b'.' => at > 0 && at < last,
            _ => false,
        };
        if is_plain {
            name.push(char::from(byte));
        } else {
            let digit = |n: u8| DIGITS.get(usize::from(n)).map_or('0', |d| char::from(*d));
            name.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    if name.len() > MAX_LENGTH {
        return Err(CheckpointError::SessionIdTooLong {
            length: name.len(),
            limit: MAX_LENGTH,
        });
    }
    Ok(name)
}

/// The id of a name; none if [`encode`] can't produce the name.
pub(super) fn decode(name: &str) -> Option<String> {
    if name == EMPTY {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let ([high, low], after) = rest.split_first_chunk()?;
        bytes.push(value(*high)? << 4 | value(*low)?);
        rest = after;
    }
    let id = String::from_utf8(bytes).ok()?;
    encode(&id).is_ok_and(|again| again == name).then_some(id)
}

fn value(digit: u8) -> Option<u8> {
    let at = DIGITS.iter().position(|d| *d == digit)?;
    u8::try_from(at).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::{Component, Path};

    #[test]
    fn common_ids_are_their_own_names() {
        for id in [
            "my-session",
            "user_1.2",
            "f47ac10b-58cc-4372-a567-0e02b2c3d479",
        ] {
            assert_eq!(encode(id).unwrap(), id);
        }
    }

    #[test]
    fn ids_that_would_be_dangerous_are_written_as_bytes() {
        for (id, name) in [
            ("", "%"),
            (".", "%2e"),
            ("..", "%2e%2e"),
            ("../escape", "%2e.%2fescape"),
            ("/etc", "%2fetc"),
            ("a\\b", "a%5cb"),
            ("a\0b", "a%00b"),
            ("A", "%41"),
            ("CON", "%43%4f%4e"),
            ("con", "%63on"),
            ("nul.txt", "%6eul.txt"),
            ("lpt1", "%6cpt1"),
            ("console", "console"),
            ("%41", "%2541"),
            ("é", "%c3%a9"),
            ("x.", "x%2e"),
        ] {
            assert_eq!(encode(id).unwrap(), name, "{id:?}");
        }
    }

    #[test]
    fn an_id_that_makes_too_long_a_name_is_refused() {
        assert_eq!(encode(&"a".repeat(200)).unwrap().len(), 200);
        assert!(matches!(
            encode(&"é".repeat(34)),
            Err(CheckpointError::SessionIdTooLong {
                length: 204,
                limit: 200
            })
        ));
    }

    #[test]
    fn other_names_are_no_ids() {
        for name in [".new-x", "%4", "%zz", "A", "%61", "con", "%2E", "é", "%c3"] {
            assert_eq!(decode(name), None, "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn any_id_has_one_plain_name_that_gives_it_back(id in "(\\PC|[./%\\\\\0aA]){0,20}") {
            let name = encode(&id);
            prop_assume!(name.is_ok());
            let name = name.unwrap();
            prop_assert_eq!(Path::new(&name).components().collect::<Vec<_>>(), [Component::Normal(name.as_ref())]);
            prop_assert!(!name.starts_with('.') && name.is_ascii());
            prop_assert_eq!(decode(&name), Some(id));
        }
    }
}

//! The id of a message.

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use uuid::fmt::Hyphenated;

/// A message's id: the provider's if it sends one, else a UUID.
#[derive(Clone)]
pub struct MessageId(Text);

/// How many bytes lie in place: a UUID, and `chatcmpl-` with the 29 letters after it.
const IN_PLACE: usize = 38;

const _: () = assert!(IN_PLACE >= Hyphenated::LENGTH);

/// A text, stored inline if it is short: a long history has thousands of ids, and few are ever shared.
#[derive(Clone)]
enum Text {
    /// The first `length` bytes, which are UTF-8.
    Short { length: u8, bytes: [u8; IN_PLACE] },
    /// A longer text.
    Long(Arc<str>),
}

impl MessageId {
    /// A new random id (`UUIDv4`, as UAP §3.4 requires).
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place of this crate that mints ids"
    )]
    pub fn random() -> Self {
        let mut text = uuid::Uuid::encode_buffer();
        let text: &str = uuid::Uuid::new_v4().hyphenated().encode_lower(&mut text);
        text.into()
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Text::Short { .. } => std::str::from_utf8(self.bytes()).unwrap_or_default(),
            Text::Long(text) => text,
        }
    }

    /// The bytes of the text, which are in the order of texts.
    fn bytes(&self) -> &[u8] {
        match &self.0 {
            Text::Short { length, bytes } => bytes.get(..usize::from(*length)).unwrap_or_default(),
            Text::Long(text) => text.as_bytes(),
        }
    }
}

impl From<&str> for MessageId {
    fn from(id: &str) -> Self {
        let mut bytes = [0; IN_PLACE];
        match (bytes.get_mut(..id.len()), u8::try_from(id.len())) {
            (Some(place), Ok(length)) => {
                place.copy_from_slice(id.as_bytes());
                Self(Text::Short { length, bytes })
            }
            _ => Self(Text::Long(id.into())),
        }
    }
}

impl PartialEq for MessageId {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for MessageId {}

impl PartialOrd for MessageId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for MessageId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes().cmp(other.bytes())
    }
}

impl Hash for MessageId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MessageId").field(&self.as_str()).finish()
    }
}

impl Serialize for MessageId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for MessageId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(IdVisitor)
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = MessageId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, id: &str) -> Result<MessageId, E> {
        Ok(id.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_id_of_any_length_is_kept_compared_and_written_as_its_text(
            one in ".{0,50}", other in ".{0,50}",
        ) {
            let (id, second) = (MessageId::from(one.as_str()), MessageId::from(other.as_str()));
            prop_assert_eq!(id.as_str(), &one);
            prop_assert_eq!(id.cmp(&second), one.cmp(&other));
            prop_assert_eq!(id == second, one == other);
            let json = serde_json::to_string(&id).unwrap();
            prop_assert_eq!(&json, &serde_json::to_string(&one).unwrap());
            prop_assert_eq!(serde_json::from_str::<MessageId>(&json).unwrap(), id);
        }
    }

    #[test]
    fn a_random_id_lies_in_place() {
        assert!(matches!(
            MessageId::random().0,
            Text::Short { length: 36, .. }
        ));
    }
}

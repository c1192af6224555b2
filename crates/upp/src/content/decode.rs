//! Reads blocks without buffering them.
//!
//! A derived internally tagged enum buffers all fields until it has seen the tag. Here the fields are
//! read directly if the tag comes first, as it does in everything that this crate writes.

use super::json::{audio, binary, document, image, video};
use super::{AssistantContent, UserContent};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A block that is known by its tag.
pub(crate) trait Block<'de>: Sized {
    /// The tag.
    type Kind: serde::de::DeserializeOwned;

    /// Reads the fields of a block of this kind.
    fn read<D: Deserializer<'de>>(kind: Self::Kind, fields: D) -> Result<Self, D::Error>;
}

#[derive(Deserialize)]
struct Text {
    text: String,
}

#[derive(Deserialize)]
struct Reasoning {
    text: String,
    #[serde(default)]
    signature: Option<String>,
}

#[derive(Deserialize)]
#[serde(variant_identifier, rename_all = "lowercase")]
pub(crate) enum UserKind {
    Text,
    Image,
    Document,
    Audio,
    Video,
    Binary,
}

impl<'de> Block<'de> for UserContent {
    type Kind = UserKind;

    fn read<D: Deserializer<'de>>(kind: UserKind, fields: D) -> Result<Self, D::Error> {
        Ok(match kind {
            UserKind::Text => {
                let Text { text } = Text::deserialize(fields)?;
                Self::Text { text }
            }
            UserKind::Image => Self::Image(image::deserialize(fields)?),
            UserKind::Document => Self::Document(document::deserialize(fields)?),
            UserKind::Audio => Self::Audio(audio::deserialize(fields)?),
            UserKind::Video => Self::Video(video::deserialize(fields)?),
            UserKind::Binary => Self::Binary(binary::deserialize(fields)?),
        })
    }
}

#[derive(Deserialize)]
#[serde(variant_identifier, rename_all = "lowercase")]
pub(crate) enum AssistantKind {
    Text,
    Reasoning,
    Image,
    Audio,
    Video,
}

impl<'de> Block<'de> for AssistantContent {
    type Kind = AssistantKind;

    fn read<D: Deserializer<'de>>(kind: AssistantKind, fields: D) -> Result<Self, D::Error> {
        Ok(match kind {
            AssistantKind::Text => {
                let Text { text } = Text::deserialize(fields)?;
                Self::Text { text }
            }
            AssistantKind::Reasoning => {
                let Reasoning { text, signature } = Reasoning::deserialize(fields)?;
                Self::Reasoning { text, signature }
            }
            AssistantKind::Image => Self::Image(image::deserialize(fields)?),
            AssistantKind::Audio => Self::Audio(audio::deserialize(fields)?),
            AssistantKind::Video => Self::Video(video::deserialize(fields)?),
        })
    }
}

impl<'de> Deserialize<'de> for UserContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        one(deserializer)
    }
}

impl<'de> Deserialize<'de> for AssistantContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        one(deserializer)
    }
}

fn one<'de, T: Block<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let mut blocks = Vec::new();
    Push(&mut blocks).deserialize(deserializer)?;
    blocks.pop().ok_or_else(|| D::Error::missing_field(TAG))
}

/// Reads a block directly into its list: a block is large, and would be moved several times.
pub(crate) struct Push<'a, T>(pub(crate) &'a mut Vec<T>);

impl<T> Push<'_, T> {
    fn push(self, block: T) {
        // Most messages have one block, and a list would make room for four at once.
        if self.0.is_empty() {
            self.0.reserve_exact(1);
        }
        self.0.push(block);
    }
}

impl<'de, T: Block<'de>> DeserializeSeed<'de> for Push<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

/// The name of the tag.
const TAG: &str = "type";

impl<'de, T: Block<'de>> Visitor<'de> for Push<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a content block")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some(key) = map.next_key_seed(Key)? else {
            return Err(A::Error::missing_field(TAG));
        };
        let Some(key) = key else {
            let kind = map.next_value()?;
            self.push(T::read(kind, MapAccessDeserializer::new(map))?);
            return Ok(());
        };
        // Fields stand before the tag.
        let mut fields = Map::new();
        fields.insert(key, map.next_value()?);
        while let Some((key, value)) = map.next_entry::<String, Value>()? {
            fields.insert(key, value);
        }
        let kind = fields
            .shift_remove(TAG)
            .ok_or_else(|| A::Error::missing_field(TAG))?;
        let kind = T::Kind::deserialize(kind).map_err(A::Error::custom)?;
        let fields = Value::Object(fields);
        self.push(T::read(kind, fields).map_err(A::Error::custom)?);
        Ok(())
    }
}

/// A key; `None` for the tag.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key {
    type Value = Option<String>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok((key != TAG).then(|| key.to_owned()))
    }
}

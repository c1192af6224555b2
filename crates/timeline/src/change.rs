//! Later changes of a thread: its title and metadata, and removals.
//!
//! EK §8.2 has no event for either, so they are markers among the chunks. They are as durable as
//! events.

use crate::entity::Thread;
use crate::ids::{CompactionId, ItemId, StepId};
use crate::payload::Payload;
use serde::{Deserialize, Deserializer, Serialize};

/// A change of a thread's title and metadata: absent members stay, null members are removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUpdate {
    /// The title.
    #[serde(
        default,
        deserialize_with = "there",
        skip_serializing_if = "Option::is_none"
    )]
    pub title: Option<Option<String>>,
    /// The application's metadata; it is replaced, not merged.
    #[serde(
        default,
        deserialize_with = "there",
        skip_serializing_if = "Option::is_none"
    )]
    pub metadata: Option<Option<Payload>>,
}

// A field that is there, be it null.
#[expect(clippy::option_option, reason = "absent and null are not the same")]
fn there<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(from).map(Some)
}

impl ThreadUpdate {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.title.is_none() && self.metadata.is_none()
    }

    /// Applies the change.
    pub fn apply(self, thread: &mut Thread) {
        if let Some(title) = self.title {
            thread.title = title;
        }
        if let Some(metadata) = self.metadata {
            thread.metadata = metadata;
        }
    }
}

/// An item, a step or a compaction that readers of a conversation omit from now on. Its events stay in
/// the log, until the thread is deleted. A purge erases what they say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Removed {
    /// An item posted to the agents.
    #[serde(rename = "itemId")]
    Item(ItemId),
    /// The output and the calls of an agent in one step.
    #[serde(rename = "stepId")]
    Step(StepId),
    /// A compaction: a model reads the runs again that it replaced.
    #[serde(rename = "compactionId")]
    Compaction(CompactionId),
}

impl std::fmt::Display for Removed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Item(id) => write!(f, "item {id}"),
            Self::Step(id) => write!(f, "step {id}"),
            Self::Compaction(id) => write!(f, "compaction {id}"),
        }
    }
}

/// A text that names no item, step or compaction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no item, step or compaction")]
pub struct UnknownTarget(String);

impl std::str::FromStr for Removed {
    type Err = UnknownTarget;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(' ') {
            Some(("item", id)) => Ok(Self::Item(id.into())),
            Some(("step", id)) => Ok(Self::Step(id.into())),
            Some(("compaction", id)) => Ok(Self::Compaction(id.into())),
            _ => Err(UnknownTarget(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_removed_is_read_from_its_text() {
        for what in [
            Removed::Item("an item".into()),
            Removed::Step("s".into()),
            Removed::Compaction("c".into()),
        ] {
            assert_eq!(what.to_string().parse(), Ok(what));
        }
        for text in ["compacted 00000000000000000007", "item", ""] {
            assert!(text.parse::<Removed>().is_err());
        }
    }

    #[test]
    fn absent_and_null_are_told_apart() {
        for (text, title) in [
            ("{}", None),
            (r#"{"title":null}"#, Some(None)),
            (r#"{"title":"t"}"#, Some(Some("t".to_owned()))),
        ] {
            let update: ThreadUpdate = serde_json::from_str(text).unwrap();
            assert_eq!(update.title, title);
            assert_eq!(serde_json::to_string(&update).unwrap(), text);
        }
    }

    #[test]
    fn metadata_keeps_its_spelling() {
        let text = r#"{"metadata":{"z":1.0,  "a":null}}"#;
        let update: ThreadUpdate = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&update).unwrap(), text);
    }
}

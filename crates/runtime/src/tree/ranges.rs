//! Describes one list of messages by ranges of another.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use upp::{Message, MessageId, Messages, Metadata};

/// A piece of a list, expressed by another list from its start. Elements after the last piece are
/// omitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum MessageRange {
    /// Copies the next messages unchanged.
    Keep(usize),
    /// Skips the next messages.
    Skip(usize),
    /// Copies the next message with other fields.
    As(Face),
    /// A message that the other list does not have.
    Put(Message),
}

/// The fields of a message other than its content; an absent field does not change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Face {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<MessageId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<jiff::Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata>,
}

impl Face {
    /// The fields of `want` that differ from `have`; none if the content differs.
    fn between(have: &Message, want: &Message) -> Option<Self> {
        let face = Self {
            id: (have.id() != want.id()).then(|| want.id().clone()),
            timestamp: (have.timestamp() != want.timestamp()).then(|| want.timestamp()),
            metadata: (have.metadata() != want.metadata()).then(|| want.metadata().clone()),
        };
        (face.clone().of(have) == *want).then_some(face)
    }

    fn of(self, message: &Message) -> Message {
        macro_rules! with {
            ($message:expr) => {{
                let mut message = $message.as_ref().clone();
                message.id = self.id.unwrap_or(message.id);
                message.timestamp = self.timestamp.unwrap_or(message.timestamp);
                message.metadata = self.metadata.unwrap_or(message.metadata);
                message.into()
            }};
        }
        match message {
            Message::User(message) => with!(message),
            Message::Assistant(message) => with!(message),
            Message::ToolResult(message) => with!(message),
        }
    }
}

/// The pieces of `have` that form `want`. The time is linear, apart from look-ups of messages by
/// their ids.
pub(super) fn split(have: &[Message], want: &[Message]) -> Vec<MessageRange> {
    let mut places: BTreeMap<&MessageId, Vec<usize>> = BTreeMap::new();
    for (place, message) in have.iter().enumerate() {
        places.entry(message.id()).or_default().push(place);
    }
    let mut pieces = Vec::new();
    let mut next = 0;
    for message in want {
        let same = places.get(message.id()).and_then(|places| {
            let passed = places.partition_point(|place| *place < next);
            let mut later = places.iter().skip(passed).copied();
            later.find(|it| have.get(*it).is_some_and(|it| is_same(it, message)))
        });
        if let Some(place) = same {
            skip(&mut pieces, place - next);
            keep(&mut pieces);
            next = place + 1;
            continue;
        }
        // Of a message that stands elsewhere, another one may stand in between.
        let faced = (next..have.len()).take(2).find_map(|place| {
            let face = Face::between(have.get(place)?, message)?;
            Some((place, face))
        });
        if let Some((place, face)) = faced {
            skip(&mut pieces, place - next);
            pieces.push(MessageRange::As(face));
            next = place + 1;
        } else {
            pieces.push(MessageRange::Put(message.clone()));
        }
    }
    pieces
}

/// Equality; messages that share memory are equal without a comparison.
pub(super) fn is_same(a: &Message, b: &Message) -> bool {
    let is_shared = match (a, b) {
        (Message::User(a), Message::User(b)) => Arc::ptr_eq(a, b),
        (Message::Assistant(a), Message::Assistant(b)) => Arc::ptr_eq(a, b),
        (Message::ToolResult(a), Message::ToolResult(b)) => Arc::ptr_eq(a, b),
        (Message::User(_) | Message::Assistant(_) | Message::ToolResult(_), _) => false,
    };
    is_shared || a == b
}

/// The indexes, in `have` and in `want`, of the last message of `want` that `have` also has. All
/// later messages of `want` are new.
pub(super) fn last_shared(have: &Messages, want: &Messages) -> Option<(usize, usize)> {
    let pairs = have.iter().zip(want);
    let n_common = pairs.take_while(|(a, b)| is_same(a, b)).count();
    if n_common == have.len() {
        let last = n_common.checked_sub(1)?;
        return Some((last, last));
    }
    let mut places: BTreeMap<&MessageId, Vec<usize>> = BTreeMap::new();
    for (place, message) in have.iter().enumerate() {
        places.entry(message.id()).or_default().push(place);
    }
    (0..want.len()).rev().find_map(|at| {
        let message = want.get(at)?;
        let mut places = places.get(message.id())?.iter().rev().copied();
        let place = places.find(|it| have.get(*it).is_some_and(|it| is_same(it, message)))?;
        Some((place, at))
    })
}

fn skip(pieces: &mut Vec<MessageRange>, n: usize) {
    if n > 0 {
        pieces.push(MessageRange::Skip(n));
    }
}

fn keep(pieces: &mut Vec<MessageRange>) {
    if let Some(MessageRange::Keep(n)) = pieces.last_mut() {
        *n += 1;
    } else {
        pieces.push(MessageRange::Keep(1));
    }
}

/// Whether the pieces are the unchanged list of `n` messages.
pub(super) fn is_whole(pieces: &[MessageRange], n: usize) -> bool {
    match pieces {
        [] => n == 0,
        [MessageRange::Keep(kept)] => *kept == n,
        _ => false,
    }
}

/// The list that the pieces form from `have`; none if `have` is too short for them.
pub(super) fn apply(pieces: &[MessageRange], have: &[Message]) -> Option<Vec<Message>> {
    let mut made = Vec::new();
    let mut rest = have;
    for piece in pieces {
        let n = match piece {
            MessageRange::Keep(n) | MessageRange::Skip(n) => *n,
            MessageRange::As(_) => 1,
            MessageRange::Put(_) => 0,
        };
        let (taken, left) = rest.split_at_checked(n)?;
        rest = left;
        match piece {
            MessageRange::Keep(_) => made.extend_from_slice(taken),
            MessageRange::Skip(_) => {}
            MessageRange::As(face) => made.extend(taken.iter().map(|it| face.clone().of(it))),
            MessageRange::Put(message) => made.push(message.clone()),
        }
    }
    Some(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use upp::{MessageOptions, UserMessage};

    fn message((id, text): (u8, u8)) -> Message {
        let mut message = UserMessage::text(format!("text {text}"));
        message = UserMessage::new(
            message.content,
            MessageOptions {
                id: Some(format!("m{id}").as_str().into()),
                timestamp: Some(jiff::Timestamp::UNIX_EPOCH),
                metadata: None,
            },
        );
        message.into()
    }

    fn list() -> impl Strategy<Value = Vec<Message>> {
        let pairs = prop::collection::vec((0_u8..6, 0_u8..3), 0..12);
        pairs.prop_map(|pairs| pairs.into_iter().map(message).collect())
    }

    proptest! {
        #[test]
        fn any_list_comes_back_from_its_pieces_of_any_other(have in list(), want in list()) {
            let pieces = split(&have, &want);
            let text = serde_json::to_string(&pieces).unwrap();
            let read: Vec<MessageRange> = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(apply(&read, &have), Some(want));
        }

        #[test]
        fn a_part_of_a_list_repeats_none_of_its_messages(have in list(), from in 0_usize..12) {
            let want = have.get(from..).unwrap_or_default();
            let pieces = split(&have, want);
            prop_assert!(!pieces.iter().any(|piece| matches!(piece, MessageRange::Put(_))));
        }
    }

    #[test]
    fn pieces_of_a_longer_list_make_nothing() {
        let have = [message((0, 0))];
        assert_eq!(apply(&[MessageRange::Keep(2)], &have), None);
        assert_eq!(apply(&[MessageRange::Skip(usize::MAX)], &have), None);
    }
}

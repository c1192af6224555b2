//! The prefix that a request shares with the previous one.
//!
//! Prompt caches of providers match prefixes, and cached tokens cost less. So each request of a
//! conversation should begin with the bytes of the previous one. Each request reports whether it does,
//! and where it first differs.

use crate::codec::{Encoded, Omission};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The fingerprint of a request: of its head, and of each message. It has sixteen bytes per message and
/// none of the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prefix {
    head: Piece,
    messages: Vec<Piece>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Piece {
    digest: [u8; 8],
    length: u64,
}

impl Piece {
    fn of(text: &str) -> Self {
        let mut digest = [0; 8];
        for (to, from) in digest.iter_mut().zip(Sha256::digest(text)) {
            *to = from;
        }
        Self {
            digest,
            length: length(text.len()),
        }
    }
}

impl Prefix {
    /// The fingerprint of a request.
    pub fn of(encoded: &Encoded) -> Self {
        let head = encoded
            .messages
            .first()
            .map_or(encoded.body.len(), |range| range.start);
        let piece = |range| Piece::of(encoded.body.get(range).unwrap_or_default());
        Self {
            head: piece(0..head),
            messages: encoded.messages.iter().cloned().map(piece).collect(),
        }
    }

    /// The length of the prefix that this request shares with `earlier`, in bytes of whole pieces, and
    /// the place of the first difference. `None` if it has all of `earlier`.
    fn common(&self, earlier: &Self) -> (u64, Option<Break>) {
        if self.head != earlier.head {
            return (0, Some(Break::Head));
        }
        let mut bytes = self.head.length;
        for (at, piece) in earlier.messages.iter().enumerate() {
            if self.messages.get(at) != Some(piece) {
                return (bytes, Some(Break::Message(at)));
            }
            bytes = bytes.saturating_add(piece.length);
        }
        (bytes, None)
    }
}

/// The place where a request first differs from the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Break {
    /// In the body before the conversation: parameters, tools, instructions.
    Head,
    /// In the message at this index of the conversation as it was sent.
    Message(usize),
}

/// A report of the request sent for one model call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestReport {
    /// The length of the body, in bytes.
    pub bytes: u64,
    /// The number of bytes that the body shares with the start of the previous request; absent for the
    /// first request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub common_prefix_bytes: Option<u64>,
    /// The place where the request first differs from the previous one; the provider's cache misses from
    /// here on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_break: Option<Break>,
    /// The parts of the history that were not sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<Omission>,
}

impl RequestReport {
    /// The report of a request that follows another.
    pub fn new(encoded: &Encoded, own: &Prefix, previous: Option<&Prefix>) -> Self {
        let common = previous.map(|previous| own.common(previous));
        Self {
            bytes: length(encoded.body.len()),
            common_prefix_bytes: common.map(|(bytes, _)| bytes),
            cache_break: common.and_then(|(_, at)| at),
            omitted: encoded.omitted.clone(),
        }
    }
}

fn length(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Conversation;
    use serde_json::{Map, json};

    fn encoded(model: &str, messages: &[&str]) -> Encoded {
        let mut conversation = Conversation::default();
        for message in messages {
            conversation.push(&json!(message));
        }
        conversation.encode(&Map::from_iter([("model".into(), json!(model))]), "m")
    }

    fn report(earlier: &Encoded, later: &Encoded) -> RequestReport {
        RequestReport::new(later, &Prefix::of(later), Some(&Prefix::of(earlier)))
    }

    #[test]
    fn a_request_that_only_grew_has_all_of_the_one_before_it() {
        let (one, two) = (encoded("x", &["a", "b"]), encoded("x", &["a", "b", "c"]));
        let report = report(&one, &two);
        let whole = u64::try_from(one.conversation().len()).unwrap();
        assert_eq!(report.common_prefix_bytes, Some(whole));
        assert_eq!(report.cache_break, None);
    }

    #[test]
    fn a_rewritten_message_is_named_and_so_is_a_changed_head() {
        let before = encoded("x", &["a", "b", "c"]);
        let changed = |later| report(&before, &later).cache_break;
        assert_eq!(
            changed(encoded("x", &["a", "B", "c", "d"])),
            Some(Break::Message(1))
        );
        assert_eq!(changed(encoded("x", &["a"])), Some(Break::Message(1)));
        assert_eq!(changed(encoded("y", &["a", "b", "c"])), Some(Break::Head));
    }

    #[test]
    fn the_first_request_has_none_before_it() {
        let first = encoded("x", &["a"]);
        let report = RequestReport::new(&first, &Prefix::of(&first), None);
        assert_eq!(report.common_prefix_bytes, None);
        assert_eq!(report.bytes, u64::try_from(first.body.len()).unwrap());
    }
}

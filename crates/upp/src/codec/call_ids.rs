//! The ids of calls, as a provider takes them.

use crate::tool::ToolCallId;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Gives each call of a conversation an id that its provider takes, and each result the id of its
/// call.
///
/// A model's own id goes back to it as it is, and so does any other id that the provider takes. One
/// of another provider that is too long or has other characters goes as a digest of itself; one that
/// a later call uses again gets a number. Both follow from what came before only, so that what was
/// sent once is sent the same again.
#[derive(Debug)]
pub(crate) struct CallIds {
    longest: usize,
    sent: BTreeSet<String>,
    /// The last number that each id got, so that one that is used again and again costs no more
    /// each time.
    numbers: BTreeMap<String, u64>,
    current: BTreeMap<ToolCallId, String>,
}

impl CallIds {
    /// Ids of ASCII letters, digits, `_` and `-`, of at most `longest` bytes.
    pub(crate) fn new(longest: usize) -> Self {
        Self {
            longest,
            sent: BTreeSet::new(),
            numbers: BTreeMap::new(),
            current: BTreeMap::new(),
        }
    }

    /// The id of a call; each call is asked for once, in order. `own` is whether the call is this
    /// model's own: some read their ids again, and write worse calls where they are others.
    pub(crate) fn call(&mut self, id: &ToolCallId, own: bool) -> String {
        let (longest, own) = (self.longest, own && !id.as_str().is_empty());
        let fitting = |text: String| {
            if own {
                text
            } else {
                portable(longest, &text).into_owned()
            }
        };
        let plain = fitting(id.as_str().to_owned());
        let mut sent = plain.clone();
        if self.sent.contains(&sent) {
            let n = self.numbers.entry(plain.clone()).or_insert(1);
            while self.sent.contains(&sent) {
                *n += 1;
                sent = fitting(format!("{plain}_{n}"));
            }
        }
        self.sent.insert(sent.clone());
        self.current.insert(id.clone(), sent.clone());
        sent
    }

    /// The id of the result of the latest call with this id.
    pub(crate) fn result(&self, id: &ToolCallId) -> String {
        self.current
            .get(id)
            .cloned()
            .unwrap_or_else(|| portable(self.longest, id.as_str()).into_owned())
    }
}

/// The id, or its digest where it is too long or has other characters.
fn portable(longest: usize, id: &str) -> Cow<'_, str> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !id.is_empty() && id.len() <= longest && id.bytes().all(allowed) {
        return Cow::Borrowed(id);
    }
    let mut text = String::from("call_");
    for byte in Sha256::digest(id) {
        let _ = write!(text, "{byte:02x}");
    }
    text.truncate(longest.min(29));
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_fits_goes_as_it_is_and_its_result_with_it() {
        let mut ids = CallIds::new(40);
        assert_eq!(ids.call(&"toolu_01-A".into(), false), "toolu_01-A");
        assert_eq!(ids.result(&"toolu_01-A".into()), "toolu_01-A");
    }

    #[test]
    fn a_repeated_id_gets_a_number_and_results_follow_the_latest_call() {
        let mut ids = CallIds::new(40);
        let id = ToolCallId::from("call-1");
        assert_eq!(ids.call(&id, false), "call-1");
        assert_eq!(ids.result(&id), "call-1");
        assert_eq!(ids.call(&id, false), "call-1_2");
        assert_eq!(ids.result(&id), "call-1_2");
        assert_eq!(ids.call(&id, false), "call-1_3");
    }

    #[test]
    fn a_foreign_id_goes_as_a_digest_that_is_always_the_same() {
        let long = "x".repeat(500);
        for id in ["a b", "", "日", &long] {
            let sent = CallIds::new(40).call(&id.into(), false);
            assert!(sent.len() <= 40 && sent.starts_with("call_"), "{sent}");
            assert_eq!(CallIds::new(40).call(&id.into(), false), sent);
            assert_eq!(CallIds::new(40).result(&id.into()), sent);
        }
        assert_eq!(CallIds::new(9).call(&"a b".into(), false).len(), 9);
    }

    #[test]
    fn an_id_that_is_used_again_and_again_costs_no_more_each_time() {
        let mut ids = CallIds::new(40);
        let id = ToolCallId::from("call_0");
        ids.call(&"call_0_3".into(), false);
        for _ in 0..100_000 {
            ids.call(&id, false);
        }
        assert_eq!(ids.result(&id), "call_0_100001");
    }
}

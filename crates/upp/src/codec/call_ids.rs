//! The ids of calls, as a provider takes them.

use crate::tool::ToolCallId;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Gives each call of a conversation an id that its provider takes, and each result the id of its
/// call.
///
/// An id that the provider takes goes as it is. One of another provider that is too long or has
/// other characters goes as a digest of itself; one that a later call uses again gets a number. Both
/// follow from what came before only, so that what was sent once is sent the same again.
#[derive(Debug)]
pub(crate) struct CallIds {
    longest: usize,
    sent: BTreeSet<String>,
    current: BTreeMap<ToolCallId, String>,
}

impl CallIds {
    /// Ids of ASCII letters, digits, `_` and `-`, of at most `longest` bytes.
    pub(crate) fn new(longest: usize) -> Self {
        Self {
            longest,
            sent: BTreeSet::new(),
            current: BTreeMap::new(),
        }
    }

    /// The id of a call; each call is asked for once, in order.
    pub(crate) fn call(&mut self, id: &ToolCallId) -> String {
        let plain = self.portable(id.as_str());
        let mut sent = plain.clone().into_owned();
        let mut n = 1_u64;
        while !self.sent.insert(sent.clone()) {
            n += 1;
            sent = self.portable(&format!("{plain}_{n}")).into_owned();
        }
        self.current.insert(id.clone(), sent.clone());
        sent
    }

    /// The id of the result of the latest call with this id.
    pub(crate) fn result(&self, id: &ToolCallId) -> String {
        self.current
            .get(id)
            .cloned()
            .unwrap_or_else(|| self.portable(id.as_str()).into_owned())
    }

    fn portable<'a>(&self, id: &'a str) -> Cow<'a, str> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if !id.is_empty() && id.len() <= self.longest && id.bytes().all(allowed) {
            return Cow::Borrowed(id);
        }
        let mut text = String::from("call_");
        for byte in Sha256::digest(id) {
            let _ = write!(text, "{byte:02x}");
        }
        text.truncate(self.longest.min(29));
        Cow::Owned(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_fits_goes_as_it_is_and_its_result_with_it() {
        let mut ids = CallIds::new(40);
        assert_eq!(ids.call(&"toolu_01-A".into()), "toolu_01-A");
        assert_eq!(ids.result(&"toolu_01-A".into()), "toolu_01-A");
    }

    #[test]
    fn a_repeated_id_gets_a_number_and_results_follow_the_latest_call() {
        let mut ids = CallIds::new(40);
        let id = ToolCallId::from("call-1");
        assert_eq!(ids.call(&id), "call-1");
        assert_eq!(ids.result(&id), "call-1");
        assert_eq!(ids.call(&id), "call-1_2");
        assert_eq!(ids.result(&id), "call-1_2");
        assert_eq!(ids.call(&id), "call-1_3");
    }

    #[test]
    fn a_foreign_id_goes_as_a_digest_that_is_always_the_same() {
        let long = "x".repeat(500);
        for id in ["a b", "", "日", &long] {
            let sent = CallIds::new(40).call(&id.into());
            assert!(sent.len() <= 40 && sent.starts_with("call_"), "{sent}");
            assert_eq!(CallIds::new(40).call(&id.into()), sent);
            assert_eq!(CallIds::new(40).result(&id.into()), sent);
        }
        assert_eq!(CallIds::new(9).call(&"a b".into()).len(), 9);
    }
}

//! Call ids in the form that a provider accepts.

use crate::tool::ToolCallId;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Maps each call of a conversation to an id that its provider accepts, and each result to the id of its
/// call.
///
/// A model's own id is sent back unchanged, and so is any other id that the provider accepts. An id of
/// another form is sent as its digest. An id that a later call uses again gets a number. Both depend
/// only on the preceding messages, so the same history is always sent with the same ids.
#[derive(Debug)]
pub(crate) struct CallIds {
    form: CallIdForm,
    sent: BTreeSet<String>,
    /// The last number of each id, so that repeated uses of an id cost the same each time.
    numbers: BTreeMap<String, u64>,
    current: BTreeMap<ToolCallId, String>,
}

impl CallIds {
    /// Ids of this form.
    pub(crate) fn new(form: CallIdForm) -> Self {
        Self {
            form,
            sent: BTreeSet::new(),
            numbers: BTreeMap::new(),
            current: BTreeMap::new(),
        }
    }

    /// The id to send for a call; request each call once, in order. `own` says whether the call is this
    /// model's own. Some models read their ids again and write worse calls if the ids were changed.
    pub(crate) fn call(&mut self, id: &ToolCallId, own: bool) -> String {
        let form = self.form;
        // An id of exactly one length is one that the provider checks, even of its own.
        let own = own && !id.as_str().is_empty() && form != CallIdForm::NineAlphanumerics;
        let fitting = |text: String| {
            if own {
                text
            } else {
                form.fit(&text).into_owned()
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
            .unwrap_or_else(|| self.form.fit(id.as_str()).into_owned())
    }
}

/// The form of call ids that a provider accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallIdForm {
    /// At most 40 ASCII letters, digits, `_` and `-`, as Chat Completions has it.
    #[default]
    UpTo40,
    /// At most 64 of them, as Responses and the Messages format have it.
    UpTo64,
    /// Exactly nine ASCII letters and digits, as Mistral requires. An id of another form is sent as a
    /// digest; the thread stores the original.
    NineAlphanumerics,
}

impl CallIdForm {
    fn takes(self, id: &str) -> bool {
        let alphanumeric = |byte: u8| byte.is_ascii_alphanumeric();
        let usual = |byte: u8| alphanumeric(byte) || byte == b'_' || byte == b'-';
        match self {
            Self::UpTo40 => (1..=40).contains(&id.len()) && id.bytes().all(usual),
            Self::UpTo64 => (1..=64).contains(&id.len()) && id.bytes().all(usual),
            Self::NineAlphanumerics => id.len() == 9 && id.bytes().all(alphanumeric),
        }
    }

    /// The id, or its digest if it has another form.
    fn fit(self, id: &str) -> Cow<'_, str> {
        if self.takes(id) {
            return Cow::Borrowed(id);
        }
        let mut text = String::new();
        for byte in Sha256::digest(id) {
            let _ = write!(text, "{byte:02x}");
        }
        match self {
            Self::UpTo40 | Self::UpTo64 => {
                text.truncate(24);
                text.insert_str(0, "call_");
            }
            Self::NineAlphanumerics => text.truncate(9),
        }
        Cow::Owned(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_fits_goes_as_it_is_and_its_result_with_it() {
        let mut ids = CallIds::new(CallIdForm::UpTo40);
        assert_eq!(ids.call(&"toolu_01-A".into(), false), "toolu_01-A");
        assert_eq!(ids.result(&"toolu_01-A".into()), "toolu_01-A");
    }

    #[test]
    fn a_repeated_id_gets_a_number_and_results_follow_the_latest_call() {
        let mut ids = CallIds::new(CallIdForm::UpTo40);
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
            let sent = CallIds::new(CallIdForm::UpTo40).call(&id.into(), false);
            assert!(sent.len() <= 40 && sent.starts_with("call_"), "{sent}");
            assert_eq!(
                CallIds::new(CallIdForm::UpTo40).call(&id.into(), false),
                sent
            );
            assert_eq!(CallIds::new(CallIdForm::UpTo40).result(&id.into()), sent);
        }
    }

    #[test]
    fn nine_letters_and_digits_are_nine_whoever_the_id_is_from() {
        let mut ids = CallIds::new(CallIdForm::NineAlphanumerics);
        let fits = ToolCallId::from("D681PevKs");
        assert_eq!(ids.call(&fits, true), "D681PevKs");
        assert_eq!(ids.result(&fits), "D681PevKs");
        let mut sent = BTreeSet::from(["D681PevKs".to_owned()]);
        for (id, own) in [
            ("D681PevKs", true),
            ("D681PevKs", false),
            ("toolu_01-A", false),
            ("call_0", true),
            ("", true),
            ("too_short", false),
        ] {
            let id = ToolCallId::from(id);
            let new = ids.call(&id, own);
            assert!(CallIdForm::NineAlphanumerics.takes(&new), "{new}");
            assert_eq!(ids.result(&id), new);
            assert!(sent.insert(new), "an id twice");
        }
        let again = |id: &str| CallIds::new(CallIdForm::NineAlphanumerics).call(&id.into(), false);
        assert_eq!(again("toolu_01-A"), again("toolu_01-A"));
    }

    #[test]
    fn an_id_that_is_used_again_and_again_costs_no_more_each_time() {
        let mut ids = CallIds::new(CallIdForm::UpTo40);
        let id = ToolCallId::from("call_0");
        ids.call(&"call_0_3".into(), false);
        for _ in 0..100_000 {
            ids.call(&id, false);
        }
        assert_eq!(ids.result(&id), "call_0_100001");
    }
}

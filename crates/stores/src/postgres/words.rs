//! The words of texts in the full-text index.
//!
//! The words are those of [`store::search`], not those of PostgreSQL's parsers. The index has no positions: a text that
//! was found is read and looked at once more.

use std::fmt::Write as _;
use store::TenantId;
use store::objects::sha256;
use store::search::{SearchWords, distinct_words};

/// The number of a title is that of its thread and this; that of a text is the one of its event.
pub(super) const TITLES: i64 = 1 << 62;

/// The index has this many bytes of a word at most. PostgreSQL refuses words of more than 2,046.
const MAX_BYTES: usize = 512;

/// The word of a tenant. Words of texts are in lower case.
pub(super) fn tenant_word(tenant: &TenantId) -> String {
    let hash = sha256(tenant.as_str().as_bytes());
    let mut word = String::from("T");
    for byte in hash.iter().take(8) {
        // Writing to a string can't fail.
        let _ = write!(word, "{byte:02x}");
    }
    word
}

/// The word of a thread.
pub(super) fn thread_word(no: i64) -> String {
    format!("H{no}")
}

fn clipped(word: &str) -> &str {
    &word[..word.floor_char_boundary(MAX_BYTES)]
}

/// The words of a text, its tenant and its thread, with spaces between them.
pub(super) fn word_array(text: &str, tenant: &TenantId, no: i64) -> String {
    let mut words = format!("{} {}", tenant_word(tenant), thread_word(no));
    for word in distinct_words(text) {
        words.push(' ');
        words.push_str(clipped(&word));
    }
    words
}

/// The query for texts with all words. They are letters and digits, so quotes make them plain text.
pub(super) fn query(words: &SearchWords) -> String {
    let pieces: Vec<_> = words.phrases().iter().flatten().collect();
    let quoted = pieces
        .iter()
        .map(|piece| format!("'{}'", clipped(piece)))
        .collect::<Vec<_>>();
    format!("{}:*", quoted.join(" & "))
}

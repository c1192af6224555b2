//! The keys of children's threads.

use uuid::Uuid;

/// The namespace of the unique part of children's keys; it never changes.
const NAMESPACE: Uuid = Uuid::from_u128(0x2b6a_41f0_9d1c_4e57_8f3a_c05e_7714_d2a9);
/// Maximum length of a key, in bytes.
const MAX_KEY_BYTES: usize = 512;
/// Maximum number of characters of a call's id in the key.
const MAX_CALL_CHARS: usize = 64;

/// The key of the thread of a call's sub-agent: `<parent key>/<call id>-<digits>`. The digits are
/// derived from the token, as providers may use one id for calls of two responses. If the parent's
/// key is too long, the key is derived from the token alone.
pub(super) fn of(parent: &str, call: &str, token: &str) -> String {
    let id = Uuid::new_v5(&NAMESPACE, token.as_bytes())
        .simple()
        .to_string();
    let call: String = call
        .chars()
        .take(MAX_CALL_CHARS)
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => c,
            _ => '_',
        })
        .collect();
    let digits = id.get(..12).unwrap_or(&id);
    let key = format!("{parent}/{call}-{digits}");
    if key.len() <= MAX_KEY_BYTES {
        key
    } else {
        format!("subagents/{id}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_childs_key_follows_from_its_parent_and_its_call() {
        let key = of("k", "call_1", "t:s:call_1");
        assert_eq!(key, of("k", "call_1", "t:s:call_1"));
        assert!(key.starts_with("k/call_1-"));
        assert_ne!(key, of("k", "call_1", "t:s2:call_1"));
    }

    #[test]
    fn a_childs_key_is_bounded_and_safe_however_long_and_odd_its_parents_and_calls_are() {
        let mut key = "k".to_owned();
        for depth in 0..100 {
            key = of(&key, "a/b\n\u{e9}", &depth.to_string());
            assert!(key.len() <= MAX_KEY_BYTES);
        }
        assert!(of("k", "a/b\n\u{e9}", "t").starts_with("k/a_b__-"));
    }
}

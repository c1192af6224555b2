//! Sessions: names that a client repeats, so that it can name its calls.
//!
//! The server stores no sessions. A session's name is a random text and a digest of that text with the
//! caller. So the server can check whether a session belongs to a key, even after a restart. No key can
//! use another's session. A session grants no access; the key does.

use super::header;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::hex::hex;
use aws_lc_rs::{digest, rand};
use http::HeaderValue;
use std::fmt::Write as _;

/// How many bytes are random.
const N_RANDOM: usize = 16;

/// A new session of a caller.
pub(super) fn new(caller: &Caller) -> Result<HeaderValue, ApiError> {
    let mut bytes = [0u8; N_RANDOM];
    rand::fill(&mut bytes).map_err(|_| ApiError::Panicked)?;
    let random = hex(&bytes);
    let name = format!("{random}{}", mark(&random, caller));
    header(&name).ok_or(ApiError::Panicked)
}

/// Whether a session belongs to this caller.
pub(super) fn is_of(name: &str, caller: &Caller) -> bool {
    let (random, marked) = name.split_at_checked(2 * N_RANDOM).unwrap_or_default();
    !random.is_empty() && marked == mark(random, caller)
}

/// The digest that binds a session to its caller.
fn mark(random: &str, caller: &Caller) -> String {
    // No part can be taken for another: a length stands before each.
    let mut of = String::new();
    for part in [random, caller.tenant.as_str(), &caller.name] {
        // Writing to a string can't fail.
        let _ = write!(of, "{}:{part}", part.len());
    }
    hex(digest::digest(&digest::SHA256, of.as_bytes()).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_the_callers_and_nobody_elses() {
        let (one, other) = (Caller::local("a"), Caller::local("b"));
        let first = new(&one).unwrap();
        let first = first.to_str().unwrap();
        assert!(is_of(first, &one) && !is_of(first, &other));
        assert_ne!(new(&one).unwrap().to_str().unwrap(), first);
        for broken in [
            "",
            "x",
            &first[..40],
            &format!("{first}0"),
            "ä".repeat(60).as_str(),
        ] {
            assert!(!is_of(broken, &one), "{broken}");
        }
    }
}

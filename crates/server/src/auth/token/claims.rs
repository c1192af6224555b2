//! What a token says of who has it.

use super::TokenRefused;
use crate::auth::budget::Budget;
use crate::auth::{Rights, Scope, ThreadPattern};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::time::Duration;

/// The longest subject, in bytes: it is written to the audit log with every change.
const MAX_SUBJECT_BYTES: usize = 255;
/// How many threads or actors a token may name.
const MAX_NAMED: usize = 256;

/// The names of the claims that say what a token may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenClaims {
    /// The tenant: a string. It must be there.
    pub tenant: String,
    /// `read`, `write`, `delete`: a list, or words in one string. Other words mean nothing here. None without it.
    pub scopes: String,
    /// What stands before each of our scopes.
    pub scope_prefix: String,
    /// The threads: a list, as a key's are. All without it.
    pub threads: String,
    /// The actors: a list, as a key's are. Any without it.
    pub actors: String,
}

impl Default for TokenClaims {
    fn default() -> Self {
        Self {
            tenant: "tenant".into(),
            scopes: "scope".into(),
            scope_prefix: String::new(),
            threads: "threads".into(),
            actors: "actors".into(),
        }
    }
}

/// What a token says.
#[derive(Clone, Debug)]
pub(crate) struct Claimed {
    /// Whose threads it can see, if there is such a tenant.
    pub(crate) tenant: String,
    /// Who has it.
    pub(crate) subject: String,
    /// What it may do.
    pub(crate) rights: Rights,
    /// From when on it opens nothing.
    pub(crate) expires: Timestamp,
    /// How many requests its subject still has; as many as it likes when absent.
    pub(in crate::auth) budget: Option<Budget>,
}

impl TokenClaims {
    pub(super) fn read(
        &self,
        claims: &Map<String, Value>,
        leeway: Duration,
    ) -> Result<Claimed, TokenRefused> {
        let text = |name: &str, expected| {
            let text = claims.get(name).and_then(Value::as_str);
            let text = text.filter(|text| {
                (1..=MAX_SUBJECT_BYTES).contains(&text.len()) && !text.contains(char::is_control)
            });
            text.map(str::to_owned).ok_or_else(|| wrong(name, expected))
        };
        let threads = named(claims, &self.threads)?.map(|threads| {
            let read = threads.iter().map(|text| ThreadPattern::parse(text));
            let read: Option<Vec<_>> = read.collect();
            read.ok_or_else(|| wrong(&self.threads, "keys, or how keys begin and a star"))
        });
        Ok(Claimed {
            tenant: text(&self.tenant, "the name of a tenant")?,
            subject: text("sub", "1 to 255 bytes without control characters")?,
            rights: Rights {
                scopes: self.scopes(claims)?,
                threads: threads.transpose()?,
                actors: named(claims, &self.actors)?.map(|actors| actors.into_iter().collect()),
            },
            expires: expires(claims, leeway)?,
            budget: None,
        })
    }

    fn scopes(&self, claims: &Map<String, Value>) -> Result<BTreeSet<Scope>, TokenRefused> {
        let words = match claims.get(&self.scopes) {
            Some(Value::String(words)) => words.split_ascii_whitespace().map(Into::into).collect(),
            _ => named(claims, &self.scopes)?.unwrap_or_default(),
        };
        let own = words.iter().filter_map(|word| {
            let word = word.strip_prefix(&self.scope_prefix)?;
            Scope::ALL.into_iter().find(|scope| scope.name() == word)
        });
        Ok(own.collect())
    }
}

fn wrong(name: &str, expected: &'static str) -> TokenRefused {
    TokenRefused::Claim {
        name: name.to_owned(),
        expected,
    }
}

/// A claim that is a list of strings; a claim of another shape restricts to nobody knows what, so it is refused.
fn named(claims: &Map<String, Value>, name: &str) -> Result<Option<Vec<String>>, TokenRefused> {
    let Some(claim) = claims.get(name) else {
        return Ok(None);
    };
    let list = claim.as_array().filter(|list| list.len() <= MAX_NAMED);
    let list = list.and_then(|list| {
        let texts = list.iter().map(|text| text.as_str().map(str::to_owned));
        texts.collect::<Option<Vec<_>>>()
    });
    let list = list.ok_or_else(|| wrong(name, "a list of at most 256 strings"));
    list.map(Some)
}

/// When it opens nothing any more: the clock that says so may be behind the issuer's.
fn expires(claims: &Map<String, Value>, leeway: Duration) -> Result<Timestamp, TokenRefused> {
    let expected = "seconds since 1970";
    let seconds = claims.get("exp").and_then(Value::as_f64);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "what is beyond all instants is refused by the instant"
    )]
    let seconds = seconds.ok_or_else(|| wrong("exp", expected))?.floor() as i64;
    let instant = Timestamp::from_second(seconds).ok();
    let leeway = SignedDuration::try_from(leeway).unwrap_or_default();
    let expires = instant.and_then(|instant| instant.checked_add(leeway).ok());
    expires.ok_or_else(|| wrong("exp", expected))
}

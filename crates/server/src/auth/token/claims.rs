//! The claims of a token.

use super::TokenRefused;
use crate::auth::budget::Budget;
use crate::auth::{Rights, Scope, ThreadPattern};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum length of a subject, in bytes: the audit log has it in every line.
const MAX_SUBJECT_BYTES: usize = 255;
/// Maximum number of threads or actors in a token.
const MAX_NAMED: usize = 256;

/// The names of the claims with a token's rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenClaims {
    /// The claim with the tenant, a string; required.
    pub tenant: String,
    /// The claim with the scopes `read`, `write`, `delete`: a list, or words in one string. Other words
    /// are ignored. Without the claim a token has no scopes.
    pub scopes: String,
    /// The prefix of the server's scopes in the claim.
    pub scope_prefix: String,
    /// The claim with the threads: a list of patterns, as for keys. All threads without it.
    pub threads: String,
    /// The claim with the actors: a list, as for keys. All actors without it.
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

/// The claims of a token.
#[derive(Clone, Debug)]
pub(crate) struct Claimed {
    /// Its tenant, which may not be configured.
    pub(crate) tenant: String,
    /// The subject.
    pub(crate) subject: String,
    /// Its rights.
    pub(crate) rights: Rights,
    /// When the token expires.
    pub(crate) expires: Timestamp,
    /// The remaining requests of its subject; unlimited when absent.
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

/// A claim that is a list of strings. Any other type is an error, because the restriction that it means
/// is unknown.
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

/// The time when the token expires, plus the leeway for clocks that differ.
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

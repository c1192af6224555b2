//! Keys: who may speak for a tenant, and what they may do.

mod rights;

pub use rights::{Rights, Scope, ThreadPattern};

use crate::config::TenantConfig;
use aws_lc_rs::{constant_time, digest, rand};
use governor::clock::{Clock as _, MonotonicClock};
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use jiff::Timestamp;
use runtime::TenantId;
use secrecy::SecretString;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

/// What a key begins with, so that one that was leaked is found by a search.
const PREFIX: &str = "llk_";
/// What a key hash begins with.
const HASH_PREFIX: &str = "sha256:";

/// The system gave no random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes")]
pub struct NoRandomness;

/// A new key: 256 random bits as text. Only its hash is kept anywhere.
pub fn new_key() -> Result<SecretString, NoRandomness> {
    let mut bytes = [0u8; 32];
    rand::fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(format!("{PREFIX}{}", hex(&bytes)).into())
}

/// A key's hash as the configuration has it: `sha256:` and 64 hexadecimal digits.
pub fn hash_text(key: &str) -> String {
    format!("{HASH_PREFIX}{}", hex(&hash(key)))
}

/// Reads what [`hash_text`] writes.
pub(crate) fn parse_hash(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix(HASH_PREFIX)?.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let mut bytes = [0u8; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let pair = std::str::from_utf8(pair)
            .ok()
            .filter(|pair| pair.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(bytes)
}

fn hash(key: &str) -> [u8; 32] {
    let mut bytes = [0u8; 32];
    for (byte, hashed) in bytes
        .iter_mut()
        .zip(digest::digest(&digest::SHA256, key.as_bytes()).as_ref())
    {
        *byte = *hashed;
    }
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a string can't fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// A key as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyConfig {
    /// What the audit log calls it.
    pub name: String,
    /// Its SHA-256.
    pub hash: [u8; 32],
    /// What it may do.
    pub rights: Rights,
    /// From when on it opens nothing.
    pub expires: Option<Timestamp>,
    /// How many requests it has in a minute: so many at once, and then one after the other.
    pub requests_per_minute: Option<NonZeroU32>,
}

/// A bucket of requests that is filled again evenly.
type Budget = RateLimiter<NotKeyed, InMemoryState, MonotonicClock>;

fn budget(requests_per_minute: NonZeroU32) -> Arc<Budget> {
    let quota = Quota::per_minute(requests_per_minute);
    Arc::new(RateLimiter::direct_with_clock(quota, MonotonicClock))
}

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// Whose threads it can see.
    pub(crate) tenant: TenantId,
    /// What the audit log calls it: unique within the tenant.
    pub(crate) name: Arc<str>,
    /// What it may do.
    pub(crate) rights: Arc<Rights>,
    /// From when on it may do nothing.
    expires: Option<Timestamp>,
    /// How many requests it still has; as many as it likes when absent.
    budget: Option<Arc<Budget>>,
}

impl Caller {
    /// Counts one request. When there were too many: after how long there may be another.
    pub(crate) fn spend(&self) -> Result<(), Duration> {
        let Some(budget) = &self.budget else {
            return Ok(());
        };
        let clock = MonotonicClock;
        budget
            .check()
            .map_err(|refused| refused.wait_time_from(clock.now()))
    }

    /// Who asks where no key is needed: may do everything.
    pub(crate) fn local(tenant: &str) -> Self {
        Self {
            tenant: tenant.into(),
            name: "local".into(),
            rights: Arc::default(),
            expires: None,
            budget: None,
        }
    }

    /// Whether its time is over.
    pub(crate) fn has_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

/// The keys of all tenants.
#[derive(Default)]
pub(crate) struct Keys {
    keys: Vec<([u8; 32], Caller)>,
}

impl Keys {
    pub(crate) fn new(tenants: &BTreeMap<String, TenantConfig>) -> Self {
        let keys = tenants.iter().flat_map(|(tenant, config)| {
            let tenant = TenantId::from(tenant.as_str());
            config.keys.iter().map(move |key| {
                let caller = Caller {
                    tenant: tenant.clone(),
                    name: key.name.as_str().into(),
                    rights: Arc::new(key.rights.clone()),
                    expires: key.expires,
                    budget: key.requests_per_minute.map(budget),
                };
                (key.hash, caller)
            })
        });
        Self {
            keys: keys.collect(),
        }
    }

    /// Who has this key. Every hash is compared, each in constant time.
    pub(crate) fn caller(&self, key: &str) -> Option<&Caller> {
        let given = hash(key);
        let mut found = None;
        for (hash, caller) in &self.keys {
            if constant_time::verify_slices_are_equal(hash, &given).is_ok() {
                found = Some(caller);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;

    fn key_of(text: &str) -> KeyConfig {
        KeyConfig {
            name: "only".into(),
            hash: parse_hash(&hash_text(text)).unwrap(),
            rights: Rights::default(),
            expires: None,
            requests_per_minute: None,
        }
    }

    fn tenant(keys: Vec<KeyConfig>) -> TenantConfig {
        TenantConfig { keys }
    }

    #[test]
    fn a_key_opens_its_own_tenant_and_no_other() {
        let key = new_key().unwrap();
        let keys = Keys::new(&BTreeMap::from([
            ("a".to_owned(), tenant(vec![key_of(key.expose_secret())])),
            ("b".to_owned(), tenant(vec![key_of("llk_other")])),
        ]));
        let caller = keys.caller(key.expose_secret()).unwrap();
        assert_eq!(caller.tenant, TenantId::from("a"));
        assert!(keys.caller("llk_none").is_none() && keys.caller("").is_none());
    }

    #[test]
    fn a_key_opens_nothing_from_the_instant_it_expires() {
        let end: Timestamp = "2027-01-01T00:00:00Z".parse().unwrap();
        let key = KeyConfig {
            expires: Some(end),
            ..key_of("llk_x")
        };
        let keys = Keys::new(&BTreeMap::from([("a".to_owned(), tenant(vec![key]))]));
        let caller = keys.caller("llk_x").unwrap();
        assert!(!caller.has_expired(end - jiff::SignedDuration::from_nanos(1)));
        assert!(caller.has_expired(end));
    }

    #[test]
    fn two_keys_differ_and_are_long() {
        let (one, two) = (new_key().unwrap(), new_key().unwrap());
        assert_eq!(one.expose_secret().len(), 68);
        assert_ne!(one.expose_secret(), two.expose_secret());
    }
}

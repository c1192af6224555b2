//! Keys: who may speak for a tenant.

use crate::config::TenantConfig;
use aws_lc_rs::{constant_time, digest, rand};
use runtime::TenantId;
use secrecy::SecretString;
use std::collections::BTreeMap;
use std::fmt::Write as _;

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

/// The keys of all tenants.
pub(crate) struct Keys {
    keys: Vec<([u8; 32], TenantId)>,
}

impl Keys {
    pub(crate) fn new(tenants: &BTreeMap<String, TenantConfig>) -> Self {
        let keys = tenants.iter().flat_map(|(name, tenant)| {
            let id = TenantId::from(name.as_str());
            tenant
                .key_hashes
                .iter()
                .map(move |hash| (*hash, id.clone()))
        });
        Self {
            keys: keys.collect(),
        }
    }

    /// The tenant this key speaks for. Every hash is compared, each in constant time.
    pub(crate) fn tenant(&self, key: &str) -> Option<&TenantId> {
        let given = hash(key);
        let mut found = None;
        for (hash, tenant) in &self.keys {
            if constant_time::verify_slices_are_equal(hash, &given).is_ok() {
                found = Some(tenant);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret;

    #[test]
    fn a_key_opens_its_own_tenant_and_no_other() {
        let key = new_key().unwrap();
        let hash = parse_hash(&hash_text(key.expose_secret())).unwrap();
        let other = parse_hash(&hash_text("llk_other")).unwrap();
        let keys = Keys::new(&BTreeMap::from([
            (
                "a".to_owned(),
                TenantConfig {
                    key_hashes: vec![hash],
                },
            ),
            (
                "b".to_owned(),
                TenantConfig {
                    key_hashes: vec![other],
                },
            ),
        ]));
        assert_eq!(keys.tenant(key.expose_secret()), Some(&TenantId::from("a")));
        assert_eq!(keys.tenant("llk_none"), None);
        assert_eq!(keys.tenant(""), None);
    }

    #[test]
    fn two_keys_differ_and_are_long() {
        let (one, two) = (new_key().unwrap(), new_key().unwrap());
        assert_eq!(one.expose_secret().len(), 68);
        assert_ne!(one.expose_secret(), two.expose_secret());
    }
}

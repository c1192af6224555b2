//! Keys and tokens: which tenant a caller belongs to, and its rights.

mod budget;
mod rights;
#[cfg(feature = "web")]
mod session;
mod tenant;
mod token;

pub(crate) use budget::Budget;
#[cfg(feature = "web")]
pub(crate) use budget::SubjectBudgets;
pub use rights::{Rights, Scope, ThreadPattern};
#[cfg(feature = "web")]
pub(crate) use session::{SessionCredential, TokenLimits};
pub use tenant::{DEV_TENANT, TenantUnclear, tenant_of};
pub(crate) use token::{Claimed, TokenRefused, Tokens, parse_keys};
pub use token::{KeySource, TokenClaims, TokenConfig, TokenKeysError};

use crate::hex::hex;
use aws_lc_rs::{constant_time, digest, rand};
use jiff::Timestamp;
use runtime::TenantId;
use secrecy::SecretString;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Maximum time to sleep before the clock is read again, because the clock may be set.
const LOOK_AT_CLOCK: Duration = Duration::from_mins(10);

/// The prefix of all keys, so that a search finds leaked ones.
const PREFIX: &str = "llk_";
/// The prefix of a caller's name if it has a token.
const TOKEN: &str = "jwt:";
/// The prefix of a key hash as text.
const HASH_PREFIX: &str = "sha256:";

/// The operating system returned no random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes")]
pub struct NoRandomness;

/// Makes a key: 256 random bits as text. The server stores only its hash.
pub fn new_key() -> Result<SecretString, NoRandomness> {
    Ok(format!("{PREFIX}{}", random()?).into())
}

/// Makes a key for a store: 256 random bits, as [`StoreKey`](crate::StoreKey) reads them.
pub fn new_store_key() -> Result<SecretString, NoRandomness> {
    Ok(random()?.into())
}

/// 256 random bits as hexadecimal digits.
pub(crate) fn random() -> Result<String, NoRandomness> {
    let mut bytes = [0u8; 32];
    rand::fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(hex(&bytes))
}

/// A key's hash as text, for the configuration: `sha256:` and 64 hexadecimal digits.
pub fn hash_text(key: &str) -> String {
    format!("{HASH_PREFIX}{}", hex(&hash(key)))
}

/// Parses the text that [`hash_text`] writes.
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

/// Whether this is the hash of a key; compared in constant time.
pub(crate) fn is_hash_of(expected: &[u8; 32], key: &str) -> bool {
    constant_time::verify_slices_are_equal(expected, &hash(key)).is_ok()
}

pub(crate) fn hash(key: &str) -> [u8; 32] {
    let mut bytes = [0u8; 32];
    for (byte, hashed) in bytes
        .iter_mut()
        .zip(digest::digest(&digest::SHA256, key.as_bytes()).as_ref())
    {
        *byte = *hashed;
    }
    bytes
}

/// A key in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyConfig {
    /// Its name in the audit log.
    pub name: String,
    /// Whether the name is only its index in a list.
    pub is_unnamed: bool,
    /// Its SHA-256 hash.
    pub hash: [u8; 32],
    /// Its rights.
    pub rights: Rights,
    /// When it expires.
    pub expires: Option<Timestamp>,
    /// Maximum number of requests per minute. This many may come at once; after that they are spaced
    /// evenly.
    pub requests_per_minute: Option<NonZeroU32>,
}

impl KeyConfig {
    /// The identity that actors are bound to: the key's name, so that a replaced key of that name keeps
    /// its actors. A key without a name is identified by its hash, because its index in a list can
    /// change.
    fn principal(&self) -> String {
        if self.is_unnamed {
            format!("{HASH_PREFIX}{}", hex(&self.hash))
        } else {
            format!("key:{}", self.name)
        }
    }
}

/// How a caller was authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Credential {
    /// No key is needed.
    None,
    /// The key of the local listener.
    Local,
    Key,
    Token,
}

/// The caller of a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The tenant whose threads it can see.
    pub(crate) tenant: TenantId,
    /// Its name in the audit log, unique within the tenant.
    pub(crate) name: Arc<str>,
    /// The identity that actors are bound to.
    principal: Arc<str>,
    /// Its rights.
    pub(crate) rights: Arc<Rights>,
    credential: Credential,
    /// When the credential expires.
    expires: Option<Timestamp>,
    /// The remaining requests; unlimited when absent.
    budget: Option<Budget>,
    /// Cancelled when the key is removed or its rights change.
    revoked: CancellationToken,
    /// The session that the caller has in place of the key itself.
    #[cfg(feature = "web")]
    session: Option<session::SessionLife>,
    /// The limits of a token of the widget.
    #[cfg(feature = "web")]
    limits: Option<Arc<TokenLimits>>,
}

impl Caller {
    /// Counts one request. If the rate is exceeded, the error is the time until the next one is allowed.
    pub(crate) fn spend(&self, n_servers: NonZeroU32) -> Result<(), Duration> {
        let budget = self.budget.as_ref();
        budget.map_or(Ok(()), |budget| budget.spend(n_servers))
    }

    /// Whether it may answer calls that wait. A token of the widget may if its site allows that.
    #[cfg_attr(
        not(feature = "web"),
        allow(clippy::unused_self, reason = "only pages have tokens")
    )]
    pub(crate) fn may_answer_calls(&self) -> bool {
        #[cfg(feature = "web")]
        let may_answer = self.limits.as_ref().is_none_or(|limits| limits.may_answer);
        #[cfg(not(feature = "web"))]
        let may_answer = true;
        may_answer
    }

    /// The caller when the server needs no key: it may do everything.
    pub(crate) fn local(tenant: &str) -> Self {
        Self {
            tenant: tenant.into(),
            name: "local".into(),
            principal: "local".into(),
            rights: Arc::default(),
            credential: Credential::None,
            expires: None,
            budget: None,
            revoked: CancellationToken::new(),
            #[cfg(feature = "web")]
            session: None,
            #[cfg(feature = "web")]
            limits: None,
        }
    }

    /// The operator, who sends requests from the server's own machine: may do everything.
    pub(crate) fn operator(tenant: &TenantId) -> Self {
        Self {
            credential: Credential::Local,
            ..Self::local(tenant.as_str())
        }
    }

    /// Whether it is the operator.
    pub(crate) fn is_operator(&self) -> bool {
        self.credential == Credential::Local
    }

    /// The identity that actors are bound to; a successor with the same name has it too.
    pub(crate) fn principal(&self) -> &str {
        &self.principal
    }

    /// Whether its time is over.
    pub(crate) fn has_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Waits until the credential expires.
    pub(crate) async fn expired(&self) {
        match self.expires {
            Some(expires) => reached(expires).await,
            None => std::future::pending().await,
        }
    }

    /// Waits until the key is removed or its rights change.
    pub(crate) async fn revoked(&self) {
        self.revoked.cancelled().await;
    }
}

/// Waits until an instant.
async fn reached(instant: Timestamp) {
    loop {
        let left = instant.duration_since(Timestamp::now());
        if !left.is_positive() {
            return;
        }
        tokio::time::sleep(left.unsigned_abs().min(LOOK_AT_CLOCK)).await;
    }
}

/// A key and its caller.
struct Key {
    hash: [u8; 32],
    requests_per_minute: Option<NonZeroU32>,
    caller: Caller,
}

impl Key {
    /// Makes a key from its configuration. If the former configuration has the same key, its used budget
    /// and its open streams remain.
    fn new(tenant: &TenantId, config: &KeyConfig, former: Option<&Self>) -> Self {
        let former = former.filter(|it| it.caller.tenant == *tenant);
        let as_before = former.filter(|it| it.requests_per_minute == config.requests_per_minute);
        let budget = match as_before {
            Some(former) => former.caller.budget.clone(),
            None => config.requests_per_minute.map(Budget::new),
        };
        let mut caller = Caller {
            tenant: tenant.clone(),
            name: config.name.as_str().into(),
            principal: config.principal().into(),
            rights: Arc::new(config.rights.clone()),
            credential: Credential::Key,
            expires: config.expires,
            budget,
            revoked: CancellationToken::new(),
            #[cfg(feature = "web")]
            session: None,
            #[cfg(feature = "web")]
            limits: None,
        };
        if let Some(former) = former.filter(|it| it.opens_the_same(&caller)) {
            caller.revoked = former.caller.revoked.clone();
        }
        Self {
            hash: config.hash,
            requests_per_minute: config.requests_per_minute,
            caller,
        }
    }

    fn opens_the_same(&self, other: &Caller) -> bool {
        let own = &self.caller;
        own.tenant == other.tenant && own.rights == other.rights && own.expires == other.expires
    }
}

/// The keys of all tenants, and the tenants themselves.
#[derive(Default)]
pub(crate) struct Keys {
    keys: Vec<Key>,
    /// Tokens that are cancelled when their tenant is removed; this ends the tenant's open streams.
    tenants: BTreeMap<TenantId, CancellationToken>,
}

impl Keys {
    pub(crate) fn new(tenants: &BTreeMap<String, impl AsRef<[KeyConfig]>>) -> Self {
        Self::default().replaced_by(tenants)
    }

    /// The keys of a new configuration. Keys that remain keep their used budgets.
    pub(crate) fn replaced_by(&self, tenants: &BTreeMap<String, impl AsRef<[KeyConfig]>>) -> Self {
        let keys = tenants.iter().flat_map(|(tenant, config)| {
            let tenant = TenantId::from(tenant.as_str());
            let keys = config.as_ref().iter();
            keys.map(move |key| Key::new(&tenant, key, self.known(&key.hash)))
        });
        let tenants = tenants.keys().map(|tenant| {
            let tenant = TenantId::from(tenant.as_str());
            let former = self.tenants.get(&tenant).cloned();
            (tenant, former.unwrap_or_default())
        });
        Self {
            keys: keys.collect(),
            tenants: tenants.collect(),
        }
    }

    /// The caller of a verified token; an error if its tenant is not configured.
    pub(crate) fn token_caller(&self, claimed: Claimed) -> Result<Caller, TokenRefused> {
        let tenant = TenantId::from(claimed.tenant.as_str());
        let revoked = self.tenants.get(&tenant).ok_or(TokenRefused::Tenant)?;
        let name: Arc<str> = format!("{TOKEN}{}", claimed.subject).into();
        Ok(Caller {
            tenant,
            principal: Arc::clone(&name),
            name,
            rights: Arc::new(claimed.rights),
            credential: Credential::Token,
            expires: Some(claimed.expires),
            budget: claimed.budget,
            revoked: revoked.clone(),
            #[cfg(feature = "web")]
            session: None,
            #[cfg(feature = "web")]
            limits: None,
        })
    }

    /// Whether a caller's credential is still valid.
    pub(crate) fn has(&self, caller: &Caller) -> bool {
        match caller.credential {
            Credential::None | Credential::Local => true,
            Credential::Token => self.tenants.contains_key(&caller.tenant),
            Credential::Key => {
                let mut callers = self.keys.iter().map(|key| &key.caller);
                callers.any(|it| it.tenant == caller.tenant && it.name == caller.name)
            }
        }
    }

    /// Ends the open streams of keys that are not in `kept`, or that have other rights there.
    pub(crate) fn revoke_all_but(&self, kept: &Self) {
        for key in &self.keys {
            let stays = kept.known(&key.hash);
            if !stays.is_some_and(|stays| key.opens_the_same(&stays.caller)) {
                key.caller.revoked.cancel();
            }
        }
        for (tenant, revoked) in &self.tenants {
            if !kept.tenants.contains_key(tenant) {
                revoked.cancel();
            }
        }
    }

    /// The names of the tenants.
    pub(crate) fn tenants(&self) -> impl Iterator<Item = &str> {
        self.tenants.keys().map(TenantId::as_str)
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    fn known(&self, hash: &[u8; 32]) -> Option<&Key> {
        self.keys.iter().find(|key| key.hash == *hash)
    }

    /// The caller with this key. Compares every hash, each in constant time.
    pub(crate) fn caller(&self, key: &str) -> Option<&Caller> {
        let given = hash(key);
        let mut found = None;
        for key in &self.keys {
            if constant_time::verify_slices_are_equal(&key.hash, &given).is_ok() {
                found = Some(&key.caller);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TenantConfig;
    use secrecy::ExposeSecret;

    fn key_of(text: &str) -> KeyConfig {
        KeyConfig {
            name: "only".into(),
            is_unnamed: false,
            hash: parse_hash(&hash_text(text)).unwrap(),
            rights: Rights::default(),
            expires: None,
            requests_per_minute: None,
        }
    }

    fn tenant(keys: Vec<KeyConfig>) -> TenantConfig {
        TenantConfig {
            keys,
            ..TenantConfig::default()
        }
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

    fn tenants(key: KeyConfig) -> BTreeMap<String, TenantConfig> {
        BTreeMap::from([("a".to_owned(), tenant(vec![key]))])
    }

    #[test]
    fn a_key_that_stays_has_spent_what_it_has_spent() {
        let key = |name: &str, per_minute| KeyConfig {
            name: name.into(),
            requests_per_minute: NonZeroU32::new(per_minute),
            ..key_of("llk_x")
        };
        let spend = |keys: &Keys| keys.caller("llk_x").unwrap().spend(NonZeroU32::MIN);
        let keys = Keys::new(&tenants(key("one", 1)));
        assert_eq!(spend(&keys), Ok(()));
        let same = keys.replaced_by(&tenants(key("renamed", 1)));
        assert!(spend(&same).is_err());
        let other = same.replaced_by(&tenants(key("one", 2)));
        assert_eq!(spend(&other), Ok(()));
    }

    #[tokio::test]
    async fn a_key_that_is_taken_away_or_may_do_less_ends_and_one_that_stays_does_not() {
        let key = key_of("llk_x");
        let less = KeyConfig {
            rights: Rights {
                threads: Some(Vec::new()),
                ..Rights::default()
            },
            ..key.clone()
        };
        let renamed = KeyConfig {
            name: "renamed".into(),
            ..key.clone()
        };
        for (after, ends) in [
            (tenants(renamed), false),
            (tenants(less), true),
            (tenants(key_of("llk_y")), true),
            (BTreeMap::new(), true),
            (
                BTreeMap::from([("b".to_owned(), tenant(vec![key.clone()]))]),
                true,
            ),
        ] {
            let keys = Keys::new(&tenants(key.clone()));
            let caller = keys.caller("llk_x").unwrap();
            let next = keys.replaced_by(&after);
            keys.revoke_all_but(&next);
            assert_eq!(caller.revoked.is_cancelled(), ends, "{after:?}");
            if let Some(caller) = next.caller("llk_x") {
                assert!(!caller.revoked.is_cancelled());
            }
        }
    }

    #[tokio::test]
    async fn the_end_of_a_key_is_waited_for() {
        let soon = Timestamp::now() + jiff::SignedDuration::from_millis(20);
        let key = KeyConfig {
            expires: Some(soon),
            ..key_of("llk_x")
        };
        let keys = Keys::new(&tenants(key));
        let caller = keys.caller("llk_x").unwrap();
        caller.expired().await;
        assert!(caller.has_expired(Timestamp::now()));
    }

    #[test]
    fn two_keys_differ_and_are_long() {
        let (one, two) = (new_key().unwrap(), new_key().unwrap());
        assert_eq!(one.expose_secret().len(), 68);
        assert_ne!(one.expose_secret(), two.expose_secret());
    }
}

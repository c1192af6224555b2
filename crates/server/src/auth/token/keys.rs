//! The public keys of an issuer (JWKS, RFC 7517): inline, in a file, or at a URL.

use super::TokenRefused;
use crate::error::causes::render_error;
use crate::outbound::{Outbound, OutboundError, OutboundRequest};
use http::StatusCode;
use jsonwebtoken::jwk::{Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Age at which keys are read again.
const MAX_AGE: Duration = Duration::from_mins(10);
/// Age at which keys that can't be read again are no longer used.
const MAX_STALE: Duration = Duration::from_hours(24);
/// Minimum pause between two attempts to read the keys.
const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(30);
/// Time limit for the issuer's response.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a key set, in bytes.
const MAX_BYTES: usize = 256 << 10;
/// Maximum number of keys read from a set.
const MAX_KEYS: usize = 64;
/// How many redirects are followed.
const MAX_REDIRECTS: usize = 2;

/// Where the keys are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// The key set as JSON.
    Inline(String),
    /// The path of a file, which may change.
    File(PathBuf),
    /// A URL, which the outbound guard checks.
    Url(String),
}

/// Why keys can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenKeysError {
    /// The text is not a key set.
    #[error("this is no JWKS, expected {{\"keys\": […]}}")]
    Malformed,
    /// No key of the set can be used.
    #[error(
        "the set has no key that tokens can be signed with, expected RSA, EC (P-256, P-384) or OKP (Ed25519)"
    )]
    None,
    /// The set is too long.
    #[error("the set is longer than {limit} bytes")]
    TooLong {
        /// The maximum size.
        limit: usize,
    },
    /// The file can't be read.
    #[error("the file {path} can't be read")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The keys can't be fetched.
    #[error("the issuer's keys can't be fetched")]
    Fetch(#[from] OutboundError),
    /// The address has another answer.
    #[error("the issuer's keys can't be fetched: the answer has status {status}")]
    Status {
        /// The status.
        status: StatusCode,
    },
}

/// A key of the set.
#[derive(Clone)]
pub(crate) struct Key {
    id: Option<String>,
    /// The only algorithm of the key, if it names one.
    algorithm: Option<Algorithm>,
    verifies: DecodingKey,
}

/// The current keys, and when they were read.
#[derive(Clone, Default)]
struct Known {
    keys: Vec<Key>,
    read_at: Option<Instant>,
    tried_at: Option<Instant>,
}

impl Known {
    /// Whether the keys should be read again and the pause since the last attempt is over.
    fn wants_reading(&self) -> bool {
        let age = self.read_at.map(|at| at.elapsed());
        age.is_none_or(|age| age > MAX_AGE) && self.may_be_read()
    }

    fn may_be_read(&self) -> bool {
        let since = self.tried_at.map(|at| at.elapsed());
        since.is_none_or(|since| since > BETWEEN_ATTEMPTS)
    }

    /// The key with this id. An error if the key set is too old.
    fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Result<DecodingKey, TokenRefused> {
        if self.read_at.is_none_or(|at| at.elapsed() > MAX_STALE) {
            return Err(TokenRefused::NoKeys);
        }
        self.named(id, algorithm)
    }

    /// The key with this id; without an id, the only one that fits.
    fn named(&self, id: Option<&str>, algorithm: Algorithm) -> Result<DecodingKey, TokenRefused> {
        let named = self.keys.iter();
        let named: Vec<&Key> = named
            .filter(|key| id.is_none() || key.id.as_deref() == id)
            .collect();
        let mut fitting = named.iter().filter(|key| key.fits(algorithm));
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Ok(key.verifies.clone()),
            // The key is for something else than the token says.
            (None, _) if id.is_some() && !named.is_empty() => Err(TokenRefused::Algorithm),
            (None, _) | (Some(_), Some(_)) => Err(TokenRefused::UnknownKey),
        }
    }
}

impl Key {
    fn read(jwk: &Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(jwk.clone()).ok()?;
        let is_for_signatures = jwk
            .common
            .public_key_use
            .as_ref()
            .is_none_or(|it| *it == PublicKeyUse::Signature);
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        if !is_for_signatures || key.family() == AlgorithmFamily::Hmac {
            return None;
        }
        let algorithm = match jwk.common.key_algorithm {
            None => None,
            // One that nobody can sign with here.
            Some(named) => Some(named.to_string().parse().ok()?),
        };
        Some(Self {
            id: jwk.common.key_id,
            algorithm,
            verifies: key,
        })
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        let family = self.verifies.family();
        family.algorithms().contains(&algorithm)
            && self.algorithm.is_none_or(|own| own == algorithm)
    }
}

/// Parses a key set; leaves out keys of unsupported types.
pub(crate) fn parse(text: &str) -> Result<Vec<Key>, TokenKeysError> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<Value>,
    }
    if text.len() > MAX_BYTES {
        return Err(TokenKeysError::TooLong { limit: MAX_BYTES });
    }
    let set: Set = serde_json::from_str(text).map_err(|_| TokenKeysError::Malformed)?;
    let keys: Vec<Key> = set
        .keys
        .iter()
        .take(MAX_KEYS)
        .filter_map(Key::read)
        .collect();
    if keys.is_empty() {
        return Err(TokenKeysError::None);
    }
    Ok(keys)
}

/// The keys of an issuer. They are read again when they are old, or when a token names an unknown key.
pub(super) struct KeySet {
    source: KeySource,
    outbound: Outbound,
    known: RwLock<Arc<Known>>,
    /// Locked while the keys are read, so that only one request reads them.
    reading: Mutex<()>,
}

impl KeySet {
    pub(super) fn new(source: KeySource, outbound: Outbound) -> Result<Self, TokenKeysError> {
        let keys = match &source {
            KeySource::Inline(text) => parse(text)?,
            KeySource::File(path) => parse(&of_file(path)?)?,
            KeySource::Url(_) => Vec::new(),
        };
        let read_at = (!keys.is_empty()).then(Instant::now);
        let known = Known {
            keys,
            read_at,
            tried_at: None,
        };
        Ok(Self {
            source,
            outbound,
            known: RwLock::new(Arc::new(known)),
            reading: Mutex::default(),
        })
    }

    /// The key that a token names; reads the keys again if needed.
    pub(super) async fn find(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<DecodingKey, TokenRefused> {
        if let KeySource::Inline(_) = self.source {
            // They don't get old.
            return self.known().named(id, algorithm);
        }
        let known = self.known();
        if known.read_at.is_none() || known.wants_reading() {
            self.read(Known::wants_reading).await;
        }
        match self.known().find(id, algorithm) {
            Err(TokenRefused::UnknownKey) if self.known().may_be_read() => {
                self.read(Known::may_be_read).await;
                self.known().find(id, algorithm)
            }
            found => found,
        }
    }

    fn known(&self) -> Arc<Known> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&known)
    }

    fn set(&self, next: Known) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
    }

    /// Reads the keys again, unless another request has done so meanwhile. If this fails, the old keys
    /// remain.
    async fn read(&self, is_wanted: impl Fn(&Known) -> bool) {
        let _reading = self.reading.lock().await;
        let known = self.known();
        if !is_wanted(&known) {
            return;
        }
        let tried_at = Some(Instant::now());
        self.set(Known {
            tried_at,
            ..known.as_ref().clone()
        });
        match self.fetch().await {
            Ok(keys) => self.set(Known {
                keys,
                read_at: tried_at,
                tried_at,
            }),
            Err(error) => {
                tracing::warn!(
                    error = render_error(&error),
                    "the keys of the issuer of tokens can't be had"
                );
            }
        }
    }

    async fn fetch(&self) -> Result<Vec<Key>, TokenKeysError> {
        match &self.source {
            KeySource::Inline(text) => parse(text),
            KeySource::File(path) => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || of_file(&path)).await;
                parse(&read.unwrap_or(Err(TokenKeysError::Malformed))?)
            }
            KeySource::Url(url) => {
                let request = OutboundRequest {
                    max_bytes: MAX_BYTES,
                    timeout: TIMEOUT,
                    max_redirects: MAX_REDIRECTS,
                    ..OutboundRequest::get(url)
                };
                let answer = self.outbound.send(request).await?;
                if answer.status != StatusCode::OK {
                    let status = answer.status;
                    return Err(TokenKeysError::Status { status });
                }
                let text =
                    std::str::from_utf8(&answer.body).map_err(|_| TokenKeysError::Malformed)?;
                parse(text)
            }
        }
    }
}

fn of_file(path: &PathBuf) -> Result<String, TokenKeysError> {
    std::fs::read_to_string(path).map_err(|source| TokenKeysError::File {
        path: path.clone(),
        source,
    })
}

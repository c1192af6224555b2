//! Strategies that choose the key of a request (UPP §13).

use crate::error::Error;
use crate::retry::{Random, random};
use futures_util::future::BoxFuture;
use secrecy::SecretString;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Chooses the API key of a request. Called once per request, not once per attempt.
pub trait KeyStrategy: Send + Sync {
    /// The key.
    fn key(&self) -> BoxFuture<'_, Result<SecretString, Error>>;
}

/// Why a key strategy can't be made.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ApiKeyError {
    /// The list of keys is empty.
    #[error("there is no key; at least one is needed")]
    Empty,
    /// A weight is not a number above zero.
    #[error("keys[{at}].weight is {weight}; it is a number above 0")]
    Weight {
        /// The key, from 0.
        at: usize,
        /// The refused weight.
        weight: f64,
    },
}

fn ready(key: &SecretString) -> BoxFuture<'static, Result<SecretString, Error>> {
    Box::pin(std::future::ready(Ok(key.clone())))
}

/// Always the same key.
#[derive(Clone, Debug)]
pub struct StaticKey(pub SecretString);

impl KeyStrategy for StaticKey {
    fn key(&self) -> BoxFuture<'_, Result<SecretString, Error>> {
        ready(&self.0)
    }
}

/// Each key in turn (UPP §13).
#[derive(Debug)]
pub struct RoundRobinKeys {
    first: SecretString,
    others: Vec<SecretString>,
    asked: AtomicUsize,
}

impl RoundRobinKeys {
    /// Starts with the first key.
    pub fn new(keys: Vec<SecretString>) -> Result<Self, ApiKeyError> {
        let mut keys = keys.into_iter();
        Ok(Self {
            first: keys.next().ok_or(ApiKeyError::Empty)?,
            others: keys.collect(),
            asked: AtomicUsize::new(0),
        })
    }
}

impl KeyStrategy for RoundRobinKeys {
    fn key(&self) -> BoxFuture<'_, Result<SecretString, Error>> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let at = asked % (self.others.len() + 1);
        let other = at.checked_sub(1).and_then(|at| self.others.get(at));
        ready(other.unwrap_or(&self.first))
    }
}

/// A random key, chosen in proportion to the weights (UPP §13).
pub struct WeightedKeys {
    /// Each key but the last, with the sum of the weights up to it.
    keys: Vec<(SecretString, f64)>,
    last: SecretString,
    sum: f64,
    random: Random,
}

impl WeightedKeys {
    /// Keys with weights above zero.
    pub fn new(keys: Vec<(SecretString, f64)>) -> Result<Self, ApiKeyError> {
        Self::with_random(keys, random())
    }

    /// Like [`WeightedKeys::new`], with random numbers from `random`.
    pub fn with_random(
        mut keys: Vec<(SecretString, f64)>,
        random: Random,
    ) -> Result<Self, ApiKeyError> {
        let mut sum: f64 = 0.0;
        for (at, (_, weight)) in keys.iter_mut().enumerate() {
            let given = *weight;
            sum += given;
            if given <= 0.0 || !sum.is_finite() {
                return Err(ApiKeyError::Weight { at, weight: given });
            }
            *weight = sum;
        }
        let (last, sum) = keys.pop().ok_or(ApiKeyError::Empty)?;
        Ok(Self {
            keys,
            last,
            sum,
            random,
        })
    }
}

impl std::fmt::Debug for WeightedKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WeightedKeys")
            .field("count", &(self.keys.len() + 1))
            .finish_non_exhaustive()
    }
}

impl KeyStrategy for WeightedKeys {
    fn key(&self) -> BoxFuture<'_, Result<SecretString, Error>> {
        let drawn = (self.random)() * self.sum;
        let found = self.keys.iter().find(|(_, upto)| drawn < *upto);
        ready(found.map_or(&self.last, |(key, _)| key))
    }
}

/// A function that makes a key.
type MakeKey = dyn Fn() -> BoxFuture<'static, Result<SecretString, Error>> + Send + Sync;

/// A key that a function makes for each request (UPP §13).
#[derive(Clone)]
pub struct DynamicKey(Arc<MakeKey>);

impl DynamicKey {
    /// Calls `make` for each request.
    pub fn new(
        make: impl Fn() -> BoxFuture<'static, Result<SecretString, Error>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(make))
    }
}

impl std::fmt::Debug for DynamicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DynamicKey")
    }
}

impl KeyStrategy for DynamicKey {
    fn key(&self) -> BoxFuture<'_, Result<SecretString, Error>> {
        (self.0)()
    }
}

/// Maximum length of a key that is masked completely, in characters.
const SHORT: usize = 8;

/// Masks a key for display: its first four and last four characters, or `***` for a short key (UPP §21).
pub fn mask_key(key: &str) -> String {
    let chars: Vec<char> = key.chars().collect();
    if chars.len() <= SHORT {
        return "***".to_owned();
    }
    let first: String = chars.iter().take(4).collect();
    let last: String = chars.iter().skip(chars.len() - 4).collect();
    format!("{first}...{last}")
}

#[cfg(test)]
mod tests;

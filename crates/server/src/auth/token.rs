//! Tokens of an identity provider (JWT, RFC 7519), as an alternative to the server's own keys.
//!
//! A token must be signed for one of the provider's public keys, with an allowed algorithm. Shared
//! secrets are not supported, so that a public key can't be used as one. The claims name the tenant, the
//! subject and the rights.

mod claims;
mod keys;

pub(crate) use claims::Claimed;
pub use claims::TokenClaims;
pub(crate) use keys::parse as parse_keys;
pub use keys::{KeySource, TokenKeysError};

use super::budget::{Budget, SubjectBudgets};
use crate::outbound::Outbound;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use keys::KeySet;
use serde_json::{Map, Value};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

/// The longest token, in bytes.
const MAX_TOKEN_BYTES: usize = 16 << 10;

/// The issuer of accepted tokens, and their checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenConfig {
    /// The issuer (`iss`).
    pub issuer: String,
    /// The accepted audiences (`aud`).
    pub audience: Vec<String>,
    /// The accepted signature algorithms.
    pub algorithms: Vec<Algorithm>,
    /// Where the keys are.
    pub keys: KeySource,
    /// Tolerance for differing clocks.
    pub leeway: Duration,
    /// The names of the claims with a token's rights.
    pub claims: TokenClaims,
    /// Maximum number of requests per minute of each subject, over all its tokens. This many may come at
    /// once; after that they are spaced evenly.
    pub requests_per_minute: Option<NonZeroU32>,
}

impl TokenConfig {
    /// The supported signature algorithms; all of them use public keys.
    pub const ALGORITHMS: [Algorithm; 9] = [
        Algorithm::RS256,
        Algorithm::RS384,
        Algorithm::RS512,
        Algorithm::PS256,
        Algorithm::PS384,
        Algorithm::PS512,
        Algorithm::ES256,
        Algorithm::ES384,
        Algorithm::EdDSA,
    ];
}

/// Why a token opens nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenRefused {
    #[error("the token is malformed")]
    Malformed,
    #[error("the token is not signed as it must be")]
    Algorithm,
    #[error("the token is signed with a key that its issuer does not name")]
    UnknownKey,
    #[error("the token's signature is wrong")]
    Signature,
    #[error("the token has expired")]
    Expired,
    #[error("the token is not valid yet")]
    NotYetValid,
    #[error("the token is of another issuer")]
    Issuer,
    #[error("the token is for another audience")]
    Audience,
    #[error("the token's claim {name:?} is missing or wrong, expected {expected}")]
    Claim {
        name: String,
        expected: &'static str,
    },
    #[error("the token's tenant is not known here")]
    Tenant,
    #[error("the issuer's keys can't be had at the moment")]
    NoKeys,
}

impl TokenRefused {
    /// Stable, for programs.
    pub(crate) const fn reason(&self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Algorithm => "algorithm",
            Self::UnknownKey => "unknown_key",
            Self::Signature => "signature",
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
            Self::Issuer => "issuer",
            Self::Audience => "audience",
            Self::Claim { .. } => "claim",
            Self::Tenant => "tenant",
            Self::NoKeys => "no_keys",
        }
    }
}

/// Judges tokens.
pub(crate) struct Tokens {
    config: TokenConfig,
    keys: KeySet,
    /// The used rates of the subjects; there is one issuer.
    budgets: Option<Arc<SubjectBudgets>>,
}

impl Tokens {
    /// Uses the configured keys at once; a remote key set is fetched for the first token.
    pub(crate) fn new(config: TokenConfig, outbound: Outbound) -> Result<Self, TokenKeysError> {
        let keys = KeySet::new(config.keys.clone(), outbound)?;
        let budgets = config.requests_per_minute.map(SubjectBudgets::new);
        Ok(Self {
            config,
            keys,
            budgets: budgets.map(Arc::new),
        })
    }

    /// The issuer of accepted tokens.
    #[cfg(feature = "web")]
    pub(super) fn issuer(&self) -> &str {
        &self.config.issuer
    }

    /// The remaining requests of a subject; unlimited when absent.
    pub(super) fn budget(&self, subject: &str) -> Option<Budget> {
        let budgets = self.budgets.as_ref();
        budgets.map(|budgets| budgets.of(subject))
    }

    /// Whether a text has the form of a token: three parts in base64.
    pub(crate) fn looks_like(text: &str) -> bool {
        let is_part = |part: &str| {
            let mut bytes = part.bytes();
            bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        text.split('.').count() == 3 && text.split('.').all(is_part)
    }

    /// The claims of a token, after checking its signature, issuer, audience and validity period.
    pub(crate) async fn verify(&self, token: &str) -> Result<Claimed, TokenRefused> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenRefused::Malformed);
        }
        let header = decode_header(token).map_err(|error| {
            // An algorithm that is none, or one that is not known.
            if matches!(error.kind(), ErrorKind::Json(_)) {
                TokenRefused::Algorithm
            } else {
                TokenRefused::Malformed
            }
        })?;
        if !self.config.algorithms.contains(&header.alg) {
            return Err(TokenRefused::Algorithm);
        }
        // What must be understood is not.
        if header.crit.is_some() {
            return Err(TokenRefused::Malformed);
        }
        let key = self.keys.find(header.kid.as_deref(), header.alg).await?;
        let mut validation = Validation::new(header.alg);
        validation.set_issuer(&[&self.config.issuer]);
        validation.set_audience(&self.config.audience);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.validate_nbf = true;
        validation.leeway = self.config.leeway.as_secs();
        let decoded = decode::<Map<String, Value>>(token, &key, &validation);
        let claims = decoded.map_err(|error| refused(error.kind()))?.claims;
        // One issuer, not one among others.
        if claims.get("iss").and_then(Value::as_str) != Some(self.config.issuer.as_str()) {
            return Err(TokenRefused::Issuer);
        }
        let claimed = self.config.claims.read(&claims, self.config.leeway)?;
        Ok(Claimed {
            budget: self.budget(&claimed.subject),
            ..claimed
        })
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library's errors, of which only these say something to a caller"
)]
fn refused(kind: &ErrorKind) -> TokenRefused {
    match kind {
        ErrorKind::InvalidSignature => TokenRefused::Signature,
        ErrorKind::ExpiredSignature => TokenRefused::Expired,
        ErrorKind::ImmatureSignature => TokenRefused::NotYetValid,
        ErrorKind::InvalidIssuer => TokenRefused::Issuer,
        ErrorKind::InvalidAudience => TokenRefused::Audience,
        ErrorKind::InvalidAlgorithm | ErrorKind::MissingAlgorithm => TokenRefused::Algorithm,
        ErrorKind::MissingRequiredClaim(name) | ErrorKind::InvalidClaimFormat(name) => {
            TokenRefused::Claim {
                name: name.clone(),
                expected: "what RFC 7519 says",
            }
        }
        _ => TokenRefused::Malformed,
    }
}

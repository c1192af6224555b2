//! Whose tokens are taken.

use super::super::file::{Claims, Jwt};
use super::{Checker, ConfigError};
use crate::auth::{KeySource, TokenClaims, TokenConfig, parse_keys};
use crate::error::render_error;
use std::time::Duration;
use toml::Spanned;

/// Tolerance for differing clocks in seconds: default and maximum.
const LEEWAY_S: (u64, u64) = (30, 300);

impl Checker<'_> {
    pub(super) fn tokens(&self, jwt: Spanned<Jwt>) -> Result<TokenConfig, ConfigError> {
        let place = Spanned::new(jwt.span(), ());
        let jwt = jwt.into_inner();
        self.not_empty(&jwt.issuer)?;
        for audience in &jwt.audience {
            self.not_empty(audience)?;
        }
        if jwt.audience.is_empty() {
            let message = "audience is empty, expected what tokens for this server name as \"aud\"";
            return Err(self.wrong(&place, message));
        }
        let keys = match (&jwt.jwks, jwt.jwks_file, jwt.jwks_url) {
            (Some(text), None, None) => {
                parse_keys(text.get_ref())
                    .map_err(|error| self.wrong(text, render_error(&error)))?;
                KeySource::Inline(text.get_ref().clone())
            }
            (None, Some(path), None) => KeySource::File(path),
            (None, None, Some(url)) => {
                self.address(&url)?;
                KeySource::Url(url.into_inner())
            }
            _ => {
                let message =
                    "expected the issuer's keys in exactly one of jwks, jwks_file and jwks_url";
                return Err(self.wrong(&place, message));
            }
        };
        let leeway = match &jwt.leeway_s {
            None => LEEWAY_S.0,
            Some(leeway) if *leeway.get_ref() > LEEWAY_S.1 => {
                let message = format!("expected at most {} seconds", LEEWAY_S.1);
                return Err(self.wrong(leeway, message));
            }
            Some(leeway) => *leeway.get_ref(),
        };
        let texts = jwt.audience.into_iter();
        Ok(TokenConfig {
            issuer: jwt.issuer.into_inner(),
            audience: texts.map(Spanned::into_inner).collect(),
            algorithms: self.algorithms(jwt.algorithms.as_deref(), &place)?,
            keys,
            leeway: Duration::from_secs(leeway),
            claims: claims(jwt.claims),
            requests_per_minute: jwt.requests_per_minute,
        })
    }

    /// The named algorithms, or all supported ones.
    fn algorithms(
        &self,
        named: Option<&[Spanned<String>]>,
        place: &Spanned<()>,
    ) -> Result<Vec<jsonwebtoken::Algorithm>, ConfigError> {
        let all = TokenConfig::ALGORITHMS;
        let Some(named) = named else {
            return Ok(all.to_vec());
        };
        if named.is_empty() {
            return Err(self.wrong(place, "algorithms is empty, so no token could be taken"));
        }
        let read = named.iter().map(|name| {
            let known = all.into_iter();
            let mut known = known.filter(|it| format!("{it:?}") == *name.get_ref());
            known.next().ok_or_else(|| {
                let known: Vec<String> = all.iter().map(|it| format!("{it:?}")).collect();
                let message = format!(
                    "tokens can't be signed with {:?} here, expected one of: {}",
                    name.get_ref(),
                    known.join(", ")
                );
                self.wrong(name, message)
            })
        });
        read.collect()
    }

    fn not_empty(&self, text: &Spanned<String>) -> Result<(), ConfigError> {
        if text.get_ref().is_empty() {
            return Err(self.wrong(text, "expected a text that is not empty"));
        }
        Ok(())
    }
}

fn claims(named: Claims) -> TokenClaims {
    let usual = TokenClaims::default();
    TokenClaims {
        tenant: named.tenant.unwrap_or(usual.tenant),
        scopes: named.scopes.unwrap_or(usual.scopes),
        scope_prefix: named.scope_prefix.unwrap_or(usual.scope_prefix),
        threads: named.threads.unwrap_or(usual.threads),
        actors: named.actors.unwrap_or(usual.actors),
    }
}

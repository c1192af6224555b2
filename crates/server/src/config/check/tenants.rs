//! Tenants and their keys.

use super::super::file::{Key, Tenant};
use super::super::{DEFAULT_SHARD, TenantConfig, TenantLimits};
use super::limits::tenant_limits;
use super::{Checker, ConfigError};
use crate::auth::{self, KeyConfig, Rights, ThreadPattern};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;
use toml::Spanned;

impl Checker<'_> {
    /// Refuses a key that is in the file twice: its tenant would be ambiguous.
    pub(super) fn distinct_keys(
        &self,
        tenants: &BTreeMap<Spanned<String>, Tenant>,
    ) -> Result<(), ConfigError> {
        let named = tenants.iter().flat_map(|(tenant, it)| {
            let tenant = tenant.get_ref();
            let plain = it.key_hashes.iter().zip(0..);
            let plain = plain.map(move |(hash, at): (_, usize)| {
                (hash, format!("tenants.{tenant}.key_hashes[{at}]"))
            });
            let keys = it.keys.iter();
            let keys =
                keys.map(move |(name, key)| (&key.hash, format!("tenants.{tenant}.keys.{name}")));
            plain.chain(keys)
        });
        let mut in_order: Vec<_> = named.collect();
        in_order.sort_by_key(|(hash, _)| hash.span().start);
        let mut known = BTreeMap::new();
        for (hash, name) in in_order {
            // What is no hash is refused where it is read.
            let Some(read) = auth::parse_hash(hash.get_ref()) else {
                continue;
            };
            if let Some((first, first_name)) = known.insert(read, (hash, name)) {
                let first = self.wrong(first, "");
                let message = format!(
                    "this is the key of {first_name}, too (line {}, column {}), expected each key once",
                    first.line, first.column
                );
                return Err(self.wrong(hash, message));
            }
        }
        Ok(())
    }

    pub(super) fn tenant(
        &self,
        tenant: &Tenant,
        default: TenantLimits,
        shards: &[String],
    ) -> Result<TenantConfig, ConfigError> {
        let mut keys = Vec::new();
        for (place, hash) in tenant.key_hashes.iter().enumerate() {
            keys.push(KeyConfig {
                name: format!("key_hashes[{place}]"),
                is_unnamed: true,
                hash: self.key_hash(hash)?,
                rights: Rights::default(),
                expires: None,
                requests_per_minute: None,
            });
        }
        for (name, key) in &tenant.keys {
            keys.push(self.key(name, key)?);
        }
        let shard = tenant.shard.as_ref();
        let shard = shard.filter(|name| name.get_ref() != DEFAULT_SHARD);
        if let Some(name) = shard {
            self.known("shard", name, shards)?;
        }
        let limits = tenant_limits(&tenant.limits, default);
        let days = tenant.delete_threads_after_days.map(NonZeroU64::from);
        let hours = days.map(|days| days.get() * 24);
        Ok(TenantConfig {
            keys,
            limits,
            delete_threads_after: hours.map(Duration::from_hours),
            shard: shard.map(|name| name.get_ref().clone()),
            is_paused: tenant.paused,
        })
    }

    fn key(&self, name: &str, key: &Key) -> Result<KeyConfig, ConfigError> {
        let mut rights = Rights::default();
        if let Some(scopes) = &key.scopes {
            rights.scopes = scopes.iter().copied().collect();
        }
        if let Some(threads) = &key.threads {
            let patterns = threads.iter().map(|text| self.pattern(text));
            rights.threads = Some(patterns.collect::<Result<_, _>>()?);
        }
        rights.actors = key.actors.as_ref().map(|ids| ids.iter().cloned().collect());
        Ok(KeyConfig {
            name: name.to_owned(),
            is_unnamed: false,
            hash: self.key_hash(&key.hash)?,
            rights,
            expires: key
                .expires
                .as_ref()
                .map(|at| self.instant(at))
                .transpose()?,
            requests_per_minute: key.requests_per_minute,
        })
    }

    fn key_hash(&self, text: &Spanned<String>) -> Result<[u8; 32], ConfigError> {
        let expected = "this is no key hash, expected \"sha256:\" and 64 hexadecimal digits, as \"loomline key\" prints";
        auth::parse_hash(text.get_ref()).ok_or_else(|| self.wrong(text, expected))
    }

    fn pattern(&self, text: &Spanned<String>) -> Result<ThreadPattern, ConfigError> {
        let expected =
            "these are no threads, expected a key, or how keys begin and a star: \"support-*\"";
        ThreadPattern::parse(text.get_ref()).ok_or_else(|| self.wrong(text, expected))
    }

    fn instant(&self, text: &Spanned<toml::value::Datetime>) -> Result<Timestamp, ConfigError> {
        let read = text.get_ref().to_string().parse();
        let expected =
            "this is no instant, expected a date, a time and an offset: 2027-01-01T00:00:00Z";
        read.map_err(|_| self.wrong(text, expected))
    }
}

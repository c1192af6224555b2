//! Checks of the allowed destinations for requests to user-supplied URLs.

use super::super::OutboundConfig;
use super::super::file::Outbound;
use super::{Checker, ConfigError};
use crate::outbound::Allowed;

impl Checker<'_> {
    pub(super) fn outbound(&self, file: &Outbound) -> Result<OutboundConfig, ConfigError> {
        let allow = file.allow.iter().map(|text| {
            let expected = "this can't be allowed, expected a network or a port of a host: \"10.0.0.0/8\", \"hooks.internal:8443\"";
            Allowed::parse(text.get_ref()).ok_or_else(|| self.wrong(text, expected))
        });
        Ok(OutboundConfig {
            allow: allow.collect::<Result<_, _>>()?,
            http: file.http,
        })
    }
}

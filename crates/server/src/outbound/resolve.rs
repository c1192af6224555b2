//! Resolution of names to allowed addresses.

use super::allow::OutboundConfig;
use super::error::{NotPublic, OutboundError};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::SocketAddr;
use std::sync::Arc;

/// Resolves names through the system, and refuses a name if any of its addresses is not allowed. The
/// connection uses the checked addresses, so a later change of the name has no effect.
pub(super) struct PublicNames {
    config: Arc<OutboundConfig>,
}

impl PublicNames {
    pub(super) fn new(config: OutboundConfig) -> Self {
        let config = Arc::new(config);
        Self { config }
    }
}

impl Resolve for PublicNames {
    fn resolve(&self, name: Name) -> Resolving {
        let config = Arc::clone(&self.config);
        Box::pin(async move {
            // The port is put in by who connects.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            for address in &found {
                if let Err(OutboundError::Refused { host, kind }) =
                    config.check(name.as_str(), address.ip())
                {
                    return Err(NotPublic { host, kind }.into());
                }
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

//! Names, resolved to addresses that may be connected to.

use super::allow::OutboundConfig;
use super::error::{NotPublic, OutboundError};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::SocketAddr;
use std::sync::Arc;

/// Resolves names as the system does, and refuses one of whose addresses any may not be connected to:
/// the connection is made to what was judged, whatever the name is resolved to a moment later.
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

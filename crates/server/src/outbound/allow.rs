//! What a deployment allows beside what is public.

use super::address::{kind_of, literal};
use super::error::OutboundError;
use ipnet::IpNet;
use std::net::IpAddr;

/// Where requests may go whose address a user chose. By default to public addresses, by HTTPS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboundConfig {
    /// Where else.
    pub allow: Vec<Allowed>,
    /// Whether without encryption, too.
    pub http: bool,
}

/// Something that is allowed though it is not public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// All addresses of a network, on any port, by whatever name.
    Network(IpNet),
    /// One port of a host, wherever that is.
    Host {
        /// Its name in lower case, or its address.
        host: String,
        /// The port.
        port: u16,
    },
}

impl Allowed {
    /// Reads `10.0.0.0/8` or `hooks.internal:8443`, `10.1.2.3:80`, `[fd00::1]:80`.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(network) = text.parse::<IpNet>() {
            return Some(Self::Network(network.trunc()));
        }
        // As a URL has it, for so it is compared.
        let url = reqwest::Url::parse(&format!("http://{text}/")).ok()?;
        let (_, port) = text.rsplit_once(':')?;
        let host = url.host_str()?.to_owned();
        let is_plain = url.username().is_empty() && url.password().is_none();
        let whole = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let port = port.parse().ok()?;
        (is_plain && whole).then_some(Self::Host { host, port })
    }
}

impl OutboundConfig {
    /// Whether this port of a host is allowed, wherever the host is.
    pub(super) fn allows_host(&self, host: &str, port: u16) -> bool {
        let is_meant = |allowed: &Allowed| match allowed {
            Allowed::Network(_) => false,
            Allowed::Host {
                host: name,
                port: on,
            } => name == host && *on == port,
        };
        self.allow.iter().any(is_meant)
    }

    /// Refuses an address that is neither public nor in a network that is allowed.
    pub(super) fn check(&self, host: &str, address: IpAddr) -> Result<(), OutboundError> {
        let Some(kind) = kind_of(address) else {
            return Ok(());
        };
        let has = |allowed: &Allowed| match allowed {
            Allowed::Network(network) => network.contains(&address),
            Allowed::Host { .. } => false,
        };
        if self.allow.iter().any(has) {
            return Ok(());
        }
        let name = match literal(host) {
            Some(_) => host.to_owned(),
            None => format!("{host} ({address})"),
        };
        Err(OutboundError::Refused { host: name, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_or_a_port_of_a_host_can_be_allowed_and_nothing_else() {
        let host = |host: &str, port| {
            let host = host.to_owned();
            Some(Allowed::Host { host, port })
        };
        let network = |text: &str| Some(Allowed::Network(text.parse().unwrap()));
        for (text, read) in [
            ("10.1.2.3/8", network("10.0.0.0/8")),
            ("fd00::/8", network("fd00::/8")),
            ("Hooks.Internal:8443", host("hooks.internal", 8443)),
            ("hooks.internal:80", host("hooks.internal", 80)),
            ("127.0.0.1:9", host("127.0.0.1", 9)),
            ("[::1]:9", host("[::1]", 9)),
        ] {
            assert_eq!(Allowed::parse(text), read, "{text}");
        }
        for wrong in [
            "",
            "*",
            "hooks.internal",
            "10.0.0.1",
            "10.0.0.0/33",
            "::1:9",
            "a:99999",
            "a:80/path",
            "https://a:80",
            "me@a:80",
        ] {
            assert_eq!(Allowed::parse(wrong), None, "{wrong}");
        }
    }
}

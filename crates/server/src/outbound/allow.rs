//! The destinations that a configuration allows besides public ones.

use super::address::{AddressKind, kind_of, literal};
use super::error::OutboundError;
use ipnet::IpNet;
use reqwest::Url;
use std::net::IpAddr;

/// Allowed destinations for requests to user-supplied URLs. Default: public addresses over HTTPS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboundConfig {
    /// Further destinations.
    pub allow: Vec<Allowed>,
    /// Whether without encryption, too.
    pub http: bool,
}

/// An allowed destination that is not public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// All addresses of a network, on any port and under any name.
    Network(IpNet),
    /// One port of a host, whatever its address.
    Host {
        /// Its lower-case name, or its address.
        host: String,
        /// The port.
        port: u16,
    },
}

impl Allowed {
    /// Parses `10.0.0.0/8` or `hooks.internal:8443`, `10.1.2.3:80`, `[fd00::1]:80`.
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
    /// Whether this port of a host is allowed, whatever its address.
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

    /// Checks the URL of a file that others will fetch. Refuses credentials, and a host that is private
    /// without a DNS look-up and is not allowed.
    ///
    /// # Errors
    ///
    /// [`OutboundError::Address`], [`OutboundError::Credentials`] or [`OutboundError::Refused`].
    pub fn check_link(&self, text: &str) -> Result<(), OutboundError> {
        let url = Url::parse(text).map_err(|_| OutboundError::Address)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(OutboundError::Credentials);
        }
        // `file:` leads to this machine.
        let host = url.host_str().ok_or(OutboundError::Address)?;
        let port = url.port_or_known_default();
        if port.is_some_and(|port| self.allows_host(host, port)) {
            return Ok(());
        }
        if let Some(address) = literal(host) {
            return self.check(host, address);
        }
        match private_name(host) {
            Some(kind) => Err(OutboundError::Refused {
                host: host.to_owned(),
                kind,
            }),
            None => Ok(()),
        }
    }

    /// Refuses an address that is neither public nor in an allowed network.
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

/// Top-level domains that are never public: RFC 6761, RFC 6762, RFC 8375, and those that ICANN reserves.
const PRIVATE_NAMES: [(&str, AddressKind); 5] = [
    ("localhost", AddressKind::Loopback),
    ("localdomain", AddressKind::Loopback),
    ("local", AddressKind::Private),
    ("internal", AddressKind::Private),
    ("home.arpa", AddressKind::Private),
];

/// The address kind of a host name that is known to be private without DNS.
fn private_name(host: &str) -> Option<AddressKind> {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    let is_below = |end: &str| {
        let rest = name.strip_suffix(end);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let found = PRIVATE_NAMES.iter().find(|(end, _)| is_below(end));
    found.map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_a_private_host_is_refused_however_it_is_spelled() {
        let config = OutboundConfig::default();
        for link in [
            "https://127.0.0.1/a.png",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.0.0.1/",
            "http:/10.0.0.1/",
            "http:\\\\10.0.0.1\\a.png",
            "HTTPS://[::1]:8443/",
            "http://[::ffff:169.254.169.254]/latest/meta-data",
            "http://169.254.169.254./",
            "https://LOCALHOST/",
            "https://localhost./",
            "https://a.localhost/",
            "https://metadata.google.internal/",
            "https://printer.local/",
            "gs://192.168.1.1/bucket",
        ] {
            let refused = config.check_link(link);
            assert!(
                matches!(refused, Err(OutboundError::Refused { .. })),
                "{link}: {refused:?}"
            );
        }
        for link in [
            "https://me:secret@example.org/",
            "https://me@example.org/",
            "http://:x@10.0.0.1/",
        ] {
            let refused = config.check_link(link);
            assert!(matches!(refused, Err(OutboundError::Credentials)), "{link}");
        }
        for link in ["file:///etc/passwd", "http://", "https://a b/", "://"] {
            let refused = config.check_link(link);
            assert!(
                matches!(refused, Err(OutboundError::Address)),
                "{link}: {refused:?}"
            );
        }
        for link in [
            "https://example.org/a.png",
            "http://8.8.8.8/",
            "gs://bucket/a",
            "https://internal.example.org/",
        ] {
            assert!(config.check_link(link).is_ok(), "{link}");
        }
    }

    #[test]
    fn a_link_may_lead_where_outbound_allows() {
        let allow = ["10.0.0.0/8", "media.internal:8443"].map(|text| Allowed::parse(text).unwrap());
        let config = OutboundConfig {
            allow: allow.into(),
            http: false,
        };
        for link in ["http://10.1.2.3/", "https://media.internal:8443/a.png"] {
            assert!(config.check_link(link).is_ok(), "{link}");
        }
        for link in [
            "http://192.168.0.1/",
            "https://media.internal/a.png",
            "https://a:b@10.1.2.3/",
        ] {
            assert!(config.check_link(link).is_err(), "{link}");
        }
    }

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

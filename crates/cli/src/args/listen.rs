//! The address that a server listens on.

use std::fmt::{Display, Formatter};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// The default port.
pub(crate) const DEFAULT_PORT: u16 = 8787;
/// The default host.
const DEFAULT_HOST: &str = "127.0.0.1";

/// A host and a port. The host is an address or a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listen {
    host: String,
    port: u16,
}

/// The text is not a listen address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected an address or a name, a port, or both, such as 127.0.0.1:8787, localhost, 8787 or [::1]:8787"
)]
pub(crate) struct NoListen;

impl Default for Listen {
    fn default() -> Self {
        Self::new(DEFAULT_HOST, DEFAULT_PORT)
    }
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Self {
        Self::new(&address.ip().to_string(), address.port())
    }
}

impl FromStr for Listen {
    type Err = NoListen;

    fn from_str(text: &str) -> Result<Self, NoListen> {
        if text.is_empty() {
            return Err(NoListen);
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(address.into());
        }
        if let Ok(port) = text.parse() {
            return Ok(Self::new(DEFAULT_HOST, port));
        }
        let bare = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'));
        if bare.unwrap_or(text).parse::<std::net::IpAddr>().is_ok() {
            return Ok(Self::new(bare.unwrap_or(text), DEFAULT_PORT));
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| NoListen)?),
            None => (text, DEFAULT_PORT),
        };
        let host = if host.is_empty() { DEFAULT_HOST } else { host };
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        if host.chars().all(is_name) {
            Ok(Self::new(host, port))
        } else {
            Err(NoListen)
        }
    }
}

impl Display for Listen {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl Listen {
    fn new(host: &str, port: u16) -> Self {
        Self {
            host: host.to_owned(),
            port,
        }
    }

    /// The address, of a name the first that is IPv4, else the first.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        let found: Vec<_> = (self.host.as_str(), self.port).to_socket_addrs()?.collect();
        let address = found.iter().find(|it| it.is_ipv4()).or(found.first());
        address
            .copied()
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_to_listen_is_an_address_a_name_a_port_or_both() {
        for (text, expected) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
            ("::1", "[::1]:8787"),
            ("[::1]", "[::1]:8787"),
            ("10.0.0.1", "10.0.0.1:8787"),
            ("9000", "127.0.0.1:9000"),
            (":9000", "127.0.0.1:9000"),
            ("localhost", "localhost:8787"),
            ("my-host.example:0", "my-host.example:0"),
        ] {
            let listen: Listen = text.parse().unwrap();
            assert_eq!(listen.to_string(), expected, "{text}");
        }
    }

    #[test]
    fn a_text_with_a_wrong_port_or_name_is_no_place_to_listen() {
        for text in [
            "",
            "a:b",
            "localhost:65536",
            "http://localhost:80",
            "a b:1",
            "[::1",
        ] {
            assert_eq!(text.parse::<Listen>(), Err(NoListen), "{text}");
        }
    }
}

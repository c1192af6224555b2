//! The address of a request's client.

#[cfg(feature = "web")]
use super::addresses::network;
#[cfg(feature = "web")]
use http::{Extensions, HeaderMap};
use std::net::IpAddr;

/// The address of a connection's client, or its network: limits count by it. Connections of trusted
/// proxies have none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientAddress(
    #[cfg_attr(not(feature = "web"), expect(dead_code, reason = "only pages read it"))]
    pub(super)  IpAddr,
);

#[cfg(feature = "web")]
impl ClientAddress {
    /// The address of a request's client as text. A trusted proxy names it: the last address in
    /// `X-Forwarded-For`. Clients that it does not name share one text.
    pub(crate) fn text(extensions: &Extensions, headers: &HeaderMap) -> String {
        let own = extensions.get::<Self>().map(|own| own.0);
        let address = own.or_else(|| forwarded(headers));
        address.map_or_else(|| "unknown".to_owned(), |address| address.to_string())
    }
}

/// The address that the last proxy has seen.
#[cfg(feature = "web")]
fn forwarded(headers: &HeaderMap) -> Option<IpAddr> {
    let mut lines = headers.get_all("x-forwarded-for").iter();
    let last = lines.next_back()?.to_str().ok()?.rsplit(',').next()?;
    Some(network(last.trim().parse().ok()?))
}

#[cfg(all(test, feature = "web"))]
mod tests {
    use super::*;

    #[test]
    fn only_the_address_of_a_proxy_is_read_from_a_header() {
        let mut headers = HeaderMap::new();
        let mut extensions = Extensions::new();
        assert_eq!(ClientAddress::text(&extensions, &headers), "unknown");
        let value = "203.0.113.9, 192.0.2.7".parse().unwrap();
        headers.insert("x-forwarded-for", value);
        assert_eq!(ClientAddress::text(&extensions, &headers), "192.0.2.7");
        extensions.insert(ClientAddress("198.51.100.1".parse().unwrap()));
        assert_eq!(ClientAddress::text(&extensions, &headers), "198.51.100.1");
    }
}

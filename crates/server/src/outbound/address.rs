//! Public and other addresses (the special-purpose registries of IANA, RFC 6890).

use ipnet::{Ipv4Net, Ipv6Net};
use std::fmt::{Display, Formatter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of an address that is not public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressKind {
    /// This machine itself.
    Loopback,
    /// A private network.
    Private,
    /// Link-local: clouds have services with credentials there.
    LinkLocal,
    /// A private network of IPv6.
    UniqueLocal,
    /// Behind a carrier's NAT.
    CarrierNat,
    /// Many at once.
    Multicast,
    /// A cloud's metadata service at an address that looks public.
    Metadata,
    /// For documentation, tests, or former or future use.
    Reserved,
}

impl Display for AddressKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::LinkLocal => "link-local",
            Self::UniqueLocal => "unique-local",
            Self::CarrierNat => "carrier-grade NAT",
            Self::Multicast => "multicast",
            Self::Metadata => "cloud metadata",
            Self::Reserved => "reserved",
        })
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(a: u16, b: u16, c: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix)
}

const IPV4: [(Ipv4Net, AddressKind); 18] = [
    (v4(0, 0, 0, 0, 8), AddressKind::Reserved),
    (v4(10, 0, 0, 0, 8), AddressKind::Private),
    // Alibaba's, within that of carriers.
    (v4(100, 100, 100, 200, 32), AddressKind::Metadata),
    (v4(100, 64, 0, 0, 10), AddressKind::CarrierNat),
    (v4(127, 0, 0, 0, 8), AddressKind::Loopback),
    (v4(169, 254, 169, 254, 32), AddressKind::Metadata),
    (v4(169, 254, 0, 0, 16), AddressKind::LinkLocal),
    // Azure's, in a public network.
    (v4(168, 63, 129, 16, 32), AddressKind::Metadata),
    (v4(172, 16, 0, 0, 12), AddressKind::Private),
    (v4(192, 0, 0, 0, 24), AddressKind::Reserved),
    (v4(192, 0, 2, 0, 24), AddressKind::Reserved),
    (v4(192, 88, 99, 0, 24), AddressKind::Reserved),
    (v4(192, 168, 0, 0, 16), AddressKind::Private),
    (v4(198, 18, 0, 0, 15), AddressKind::Reserved),
    (v4(198, 51, 100, 0, 24), AddressKind::Reserved),
    (v4(203, 0, 113, 0, 24), AddressKind::Reserved),
    (v4(224, 0, 0, 0, 4), AddressKind::Multicast),
    (v4(240, 0, 0, 0, 4), AddressKind::Reserved),
];

const IPV6: [(Ipv6Net, AddressKind); 6] = [
    (v6(0xfc00, 0, 0, 7), AddressKind::UniqueLocal),
    (v6(0xfe80, 0, 0, 10), AddressKind::LinkLocal),
    (v6(0xff00, 0, 0, 8), AddressKind::Multicast),
    // Teredo, benchmarks and what else is for protocols.
    (v6(0x2001, 0, 0, 23), AddressKind::Reserved),
    (v6(0x2001, 0xdb8, 0, 32), AddressKind::Reserved),
    (v6(0x3fff, 0, 0, 20), AddressKind::Reserved),
];

/// The global unicast range of IPv6; all other ranges have special uses.
const GLOBAL: Ipv6Net = v6(0x2000, 0, 0, 3);
/// The NAT64 prefix: IPv4 addresses for hosts with only IPv6.
const NAT64: Ipv6Net = v6(0x64, 0xff9b, 0, 96);
/// The 6to4 prefix: IPv4 networks that are reached through IPv6.
const SIX_TO_FOUR: Ipv6Net = v6(0x2002, 0, 0, 16);

/// The kind of an address; none if it is public. An IPv6 address that embeds an IPv4 address has the
/// kind of that address.
pub fn kind_of(address: IpAddr) -> Option<AddressKind> {
    match address {
        IpAddr::V4(address) => kind_of_v4(address),
        IpAddr::V6(address) => match stands_for(address) {
            Some(address) => kind_of_v4(address),
            None => kind_of_v6(address),
        },
    }
}

fn kind_of_v4(address: Ipv4Addr) -> Option<AddressKind> {
    let found = IPV4.iter().find(|(network, _)| network.contains(&address));
    found.map(|(_, kind)| *kind)
}

fn kind_of_v6(address: Ipv6Addr) -> Option<AddressKind> {
    if address.is_loopback() {
        return Some(AddressKind::Loopback);
    }
    let found = IPV6.iter().find(|(network, _)| network.contains(&address));
    let other = (!GLOBAL.contains(&address)).then_some(AddressKind::Reserved);
    found.map(|(_, kind)| *kind).or(other)
}

fn stands_for(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [.., a, b, c, d] = address.octets();
    let last = Ipv4Addr::new(a, b, c, d);
    if SIX_TO_FOUR.contains(&address) {
        let [_, _, a, b, c, d, ..] = address.octets();
        return Some(Ipv4Addr::new(a, b, c, d));
    }
    if NAT64.contains(&address) {
        return Some(last);
    }
    address.to_ipv4_mapped()
}

/// The address in a URL's host, if it is not a name.
pub(super) fn literal(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    bare.unwrap_or(host).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_public_or_what_the_registries_say() {
        use AddressKind as K;
        for (address, kind) in [
            ("8.8.8.8", None),
            ("1.1.1.1", None),
            ("100.63.255.255", None),
            ("172.32.0.1", None),
            ("0.0.0.0", Some(K::Reserved)),
            ("10.1.2.3", Some(K::Private)),
            ("100.64.0.1", Some(K::CarrierNat)),
            ("100.100.100.200", Some(K::Metadata)),
            ("127.0.0.1", Some(K::Loopback)),
            ("127.255.255.254", Some(K::Loopback)),
            ("168.63.129.16", Some(K::Metadata)),
            ("169.254.169.254", Some(K::Metadata)),
            ("169.254.170.2", Some(K::LinkLocal)),
            ("172.16.0.1", Some(K::Private)),
            ("172.31.255.255", Some(K::Private)),
            ("192.0.0.192", Some(K::Reserved)),
            ("192.168.1.1", Some(K::Private)),
            ("198.19.0.1", Some(K::Reserved)),
            ("224.0.0.1", Some(K::Multicast)),
            ("255.255.255.255", Some(K::Reserved)),
            ("2606:4700:4700::1111", None),
            ("::", Some(K::Reserved)),
            ("::1", Some(K::Loopback)),
            ("::127.0.0.1", Some(K::Reserved)),
            ("::ffff:127.0.0.1", Some(K::Loopback)),
            ("::ffff:8.8.8.8", None),
            ("64:ff9b::10.0.0.1", Some(K::Private)),
            ("64:ff9b::8.8.8.8", None),
            ("64:ff9b:1::8.8.8.8", Some(K::Reserved)),
            ("2002:7f00:1::1", Some(K::Loopback)),
            ("2002:808:808::1", None),
            ("2001:0:808:808::1", Some(K::Reserved)),
            ("2001:db8::1", Some(K::Reserved)),
            ("fd00:ec2::254", Some(K::UniqueLocal)),
            ("fe80::1", Some(K::LinkLocal)),
            ("fec0::1", Some(K::Reserved)),
            ("ff02::1", Some(K::Multicast)),
            ("100::1", Some(K::Reserved)),
        ] {
            assert_eq!(kind_of(address.parse().unwrap()), kind, "{address}");
        }
    }
}

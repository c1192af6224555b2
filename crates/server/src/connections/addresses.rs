//! The connections of each client address.

use super::group::Group;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The groups of connections, by client address.
pub(super) struct Addresses {
    max: usize,
    groups: Mutex<BTreeMap<IpAddr, Arc<Group>>>,
}

impl Addresses {
    /// Makes groups with this cap for each address.
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            groups: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpAddr, Arc<Group>>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The group of a client: that of its IPv4 address, or of its IPv6 network (the first 64 bits).
    pub(super) fn of(&self, client: IpAddr) -> (IpAddr, Arc<Group>) {
        let address = network(client);
        let known = self.lock().get(&address).cloned();
        let group = known.unwrap_or_else(|| Arc::new(Group::new(self.max)));
        (address, group)
    }

    /// Adds a connection to a group that [`Addresses::of`] returned. Both have one caller, so that an
    /// address never has two groups.
    pub(super) fn join(&self, address: IpAddr, group: &Arc<Group>) {
        let mut groups = self.lock();
        groups.insert(address, Arc::clone(group));
        group.join();
    }

    /// Removes a connection, and the group with its last connection.
    pub(super) fn release(&self, address: IpAddr, group: &Group) {
        let mut groups = self.lock();
        if group.release() == 0 {
            groups.remove(&address);
        }
    }

    /// Number of addresses with connections.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }
}

/// An IPv4 address, or the network of an IPv6 address (its first 64 bits).
pub(super) fn network(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_ipv6_network_share_a_group() {
        let addresses = Addresses::new(1);
        let of = |text: &str| addresses.of(text.parse().unwrap()).0;
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }

    #[test]
    fn an_address_without_connections_is_forgotten() {
        let addresses = Addresses::new(1);
        let (address, group) = addresses.of("192.0.2.1".parse().unwrap());
        addresses.join(address, &group);
        addresses.join(address, &group);
        addresses.release(address, &group);
        assert_eq!(addresses.len(), 1);
        addresses.release(address, &group);
        assert_eq!(addresses.len(), 0);
    }
}

//! Figures of connections.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// Metrics of connections. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct ConnectionFigures {
    /// Open connections.
    pub(crate) open: Gauge,
    /// Connections refused because the limit was reached and none was idle.
    pub(crate) refused: Counter,
    /// Idle ones that were closed because another one came.
    pub(crate) closed_for_room: Counter,
    /// Connections closed after a timeout.
    pub(crate) timed_out: Counter,
}

impl ConnectionFigures {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let own = Self::default();
        registry.register(
            "open_connections",
            "Connections that are open",
            own.open.clone(),
        );
        let counts = [
            (
                "connections_refused",
                "Connections refused because the cap was reached and none was idle",
                &own.refused,
            ),
            (
                "connections_closed_for_room",
                "Idle connections closed because another one came",
                &own.closed_for_room,
            ),
            (
                "connections_timed_out",
                "Connections closed by a timeout of request heads, idle time, handshakes or stalled readers",
                &own.timed_out,
            ),
        ];
        for (name, help, count) in counts {
            registry.register(name, help, count.clone());
        }
        own
    }
}

//! One event of a thread.

use crate::langgraph::stream::FrameId;
use crate::sse;
use serde_json::{Value, json};

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub struct ProtocolEvent {
    /// Its place: `seq`, after which a client begins again.
    pub place: FrameId,
    /// What it is about.
    pub method: &'static str,
    /// When it happened, in milliseconds since 1970.
    pub at_ms: i64,
    /// What it says.
    pub data: Value,
}

impl ProtocolEvent {
    /// As the protocol has it.
    pub fn to_json(&self) -> Value {
        json!({
            "type": "event", "event_id": self.place.to_string(), "seq": self.place.number(), "method": self.method,
            "params": {"namespace": [], "timestamp": self.at_ms, "data": self.data},
        })
    }

    /// Writes it as a server-sent event.
    pub fn write(&self, out: &mut String) {
        sse::write_id(self.place.number(), out);
        sse::write_named(self.method, self.to_json(), out);
    }
}

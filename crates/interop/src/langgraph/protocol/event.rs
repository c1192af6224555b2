//! One event of a thread.

use crate::langgraph::stream::FrameId;
use crate::sse;
use serde_json::{Value, json};

/// One event of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ProtocolEvent {
    /// The event's id. Its number is `seq`, after which a client continues.
    pub id: FrameId,
    /// Its name.
    pub method: &'static str,
    /// When it happened, in milliseconds since 1970.
    pub at_ms: i64,
    /// Its content.
    pub data: Value,
}

impl ProtocolEvent {
    /// The event in the protocol's form.
    pub fn to_json(&self) -> Value {
        json!({
            "type": "event", "event_id": self.id.to_string(), "seq": self.id.number(), "method": self.method,
            "params": {"namespace": [], "timestamp": self.at_ms, "data": self.data},
        })
    }

    /// Writes the event as a server-sent event.
    pub fn write(&self, out: &mut String) {
        sse::write_id(self.id.number(), out);
        sse::write_named(self.method, self.to_json(), out);
    }
}

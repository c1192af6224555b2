//! What happens in the thread beside its runs, for those who watch one.
//!
//! It is transient: it belongs to no answer, and whoever loads the messages anew finds what came of it
//! there.

use super::StreamView;
use crate::metadata::is_own;
use crate::parts::ThreadEvent;
use serde_json::{Value, json};
use timeline::{Item, Payload, chunk_type};

impl StreamView {
    /// A marker of the thread: its title or metadata changed, or something is read no more.
    pub(super) fn marked(&mut self, kind: &str, data: Option<&Payload>) {
        if kind != chunk_type::THREAD_UPDATED && kind != chunk_type::ITEM_REMOVED {
            return;
        }
        let mut data = data.map(Payload::value).unwrap_or_default();
        if let Some(Value::Object(metadata)) = data.get_mut("metadata") {
            metadata.retain(|key, _| !is_own(key));
        }
        self.push(json!({"type": kind, "data": data, "transient": true}));
    }

    /// An event of the thread, such as an actor that joins.
    pub(super) fn happened(&mut self, item: &Item) {
        if let Some(event) = ThreadEvent::of_item(item) {
            self.push(json!({
                "type": event.part_type, "id": event.id, "data": event.data.value(), "transient": true,
            }));
        }
    }
}

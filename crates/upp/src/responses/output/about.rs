//! Which item an event is about.

use crate::codec::fields::{Count, Field};
use serde_json::Value;

/// Which item an event is about, and which part of it.
#[derive(Debug, Default)]
pub(in crate::responses) struct About<'a> {
    pub(in crate::responses) output_index: Count,
    pub(in crate::responses) item_id: Field<'a>,
    pub(in crate::responses) content_index: Count,
    pub(in crate::responses) summary_index: Count,
    /// Whether the event has the item itself.
    pub(super) has_item: bool,
}

impl<'a> About<'a> {
    pub(super) fn of(event: &'a Value) -> Self {
        let count = |key| Count(event.get(key).and_then(Value::as_u64));
        let item = event.get("item");
        let id = event.get("item_id").or_else(|| item?.get("id"));
        Self {
            output_index: count("output_index"),
            item_id: id.map(Field::from).unwrap_or_default(),
            content_index: count("content_index"),
            summary_index: count("summary_index"),
            has_item: item.is_some(),
        }
    }
}

//! A bound of what one answer may cost.

use serde_json::Value;
use std::cell::Cell;

/// The budget of one answer: about one unit for each value, keyword and character that is examined.
const BUDGET: usize = 200_000;

/// The rest of the budget of one answer.
pub(super) struct WorkBudget(Cell<usize>);

impl WorkBudget {
    pub(super) fn new() -> Self {
        Self(Cell::new(BUDGET))
    }

    /// Subtracts a cost from the budget; returns whether the budget was large enough.
    pub(super) fn spend(&self, cost: usize) -> bool {
        let left = self.0.get().checked_sub(cost);
        self.0.set(left.unwrap_or_default());
        left.is_some()
    }
}

/// How many values there are inside a value, itself included.
pub(super) fn size(value: &Value) -> usize {
    let mut open = vec![value];
    let mut size = 0;
    while let Some(value) = open.pop() {
        size += 1;
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => open.extend(fields.values()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    size
}

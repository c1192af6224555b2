//! The size limit of messages.

use crate::error::RuntimeError;
use store::NewRecord;
use timeline::Event;

/// Refuses a message, or a part of an answer, that is too large.
pub(crate) fn check_size(record: &NewRecord, max: usize) -> Result<(), RuntimeError> {
    let bytes = record.text().len();
    let is_message = matches!(
        record.event(),
        Event::ItemCreated { .. } | Event::PartCreated { .. } | Event::PartUpdated { .. }
    );
    if is_message && bytes > max {
        return Err(RuntimeError::MessageTooLarge { bytes, max });
    }
    Ok(())
}

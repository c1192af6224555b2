//! The place of an error in a message's content.

use timeline::ContentError;

/// The JSON pointer of the error, relative to the content.
pub(super) fn content_pointer(error: &ContentError) -> String {
    match error {
        ContentError::NotAPart { pointer } => pointer.clone(),
        ContentError::NotAList | ContentError::NotContent { .. } => String::new(),
        ContentError::NotNamespaced { pointer, .. } => format!("{pointer}/type"),
        ContentError::Reinterpreted { pointer, field, .. } => format!("{pointer}/{field}"),
    }
}

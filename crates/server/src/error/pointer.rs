//! Where in a message's content an error is.

use timeline::ContentError;

/// The JSON pointer of what is wrong, from the content on.
pub(super) fn content_pointer(error: &ContentError) -> String {
    match error {
        ContentError::NotAPart { pointer } => pointer.clone(),
        ContentError::NotAList | ContentError::NotContent { .. } => String::new(),
        ContentError::NotNamespaced { pointer, .. } => format!("{pointer}/type"),
        ContentError::Reinterpreted { pointer, field, .. } => format!("{pointer}/{field}"),
    }
}

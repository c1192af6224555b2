//! The ids of messages that were changed after they were posted.
//!
//! A client of the AI SDK reuses the id of a message whose text it changes, but a log has every id only once. The
//! first replacement of `m1` is therefore the item `m1~2`, the second is `m1~3`. Such a client
//! sees each of them as `m1`; the native API shows the items' ids. The mapping is computed from the id; there is no lookup.

/// Separator between an id and the number of its revision.
const MARK: char = '~';

/// The number of a message's revision; the original is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(pub u32);

impl Revision {
    /// The original.
    pub const FIRST: Self = Self(1);

    /// The one that follows.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The item's id for this revision.
    pub fn of(self, id: &str) -> String {
        if self == Self::FIRST {
            return id.to_owned();
        }
        format!("{id}{MARK}{}", self.0)
    }
}

/// Whether a client may give this id to a message: it does not read as a revision of another one.
pub fn is_free(id: &str) -> bool {
    message_id(id) == id
}

/// The id that clients know a message by.
pub fn message_id(item: &str) -> &str {
    match item.rsplit_once(MARK) {
        Some((id, number)) if !id.is_empty() && is_number(number) => id,
        Some(_) | None => item,
    }
}

/// As a revision after the first is written.
fn is_number(text: &str) -> bool {
    let number: Option<u32> = text.parse().ok();
    number.is_some_and(|number| number > 1 && number.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_revision_is_shown_under_the_id_that_the_message_was_said_under(
            id in "[a-zA-Z0-9~-]{1,8}", n in 1u32..,
        ) {
            prop_assume!(is_free(&id));
            let item = Revision(n).of(&id);
            prop_assert_eq!(message_id(&item), id.as_str());
            prop_assert_eq!(is_free(&item), n == 1);
        }
    }
}

//! The context in which a schema is built.

use crate::document::Version;
use crate::validate::Profile;
use crate::validate::fields::Need;

/// The version and the profile of the schema.
#[derive(Clone, Copy)]
pub(super) struct Context<'v> {
    pub(super) version: &'v Version,
    pub(super) profile: Profile,
}

impl Context<'_> {
    /// Whether the schema is for writing.
    pub(super) fn is_strict(self) -> bool {
        self.profile == Profile::Strict
    }

    /// Whether a member must be there, and not be `null`.
    pub(super) fn requires(self, need: Need) -> bool {
        match need {
            Need::Required => true,
            Need::Expected => self.is_strict(),
            Need::Optional => false,
        }
    }
}

//! The kinds of entries.

/// The kind of answer that an entry waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InboxKind {
    /// An approval of a call.
    Approval,
    /// The result of a call.
    External,
    /// The answer to a request.
    Request,
}

impl InboxKind {
    pub(super) const ALL: [Self; 3] = [Self::Approval, Self::External, Self::Request];

    /// The kind with this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Its name in the address of the page.
    pub fn name(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::External => "external",
            Self::Request => "request",
        }
    }

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Approval => "approval of a call",
            Self::External => "result of a call",
            Self::Request => "request",
        }
    }

    /// The kind in a sentence about a new entry.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::External => "call",
            Self::Request => "request",
        }
    }
}

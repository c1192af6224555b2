//! A client's wishes for the form of the output.

use super::super::echo::Echo;
use super::super::slot::Block;

/// A client's wishes for the form of the output.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::responses) struct Shows {
    pub(in crate::responses) summary: bool,
    pub(in crate::responses) sealed: Sealed,
    pub(in crate::responses) extensions: bool,
}

/// Whether reasoning includes the encrypted content that its provider needs to accept it as input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::responses) enum Sealed {
    #[default]
    No,
    /// Included if it is known when the reasoning is emitted. Later readers change nothing in the
    /// events.
    IfKnown,
    /// The events of reasoning wait for it.
    Always,
}

impl Sealed {
    /// As the response's own client asks for it.
    pub(in crate::responses) fn own(is_wanted: bool) -> Self {
        if is_wanted { Self::Always } else { Self::No }
    }

    /// With the wish of a later reader added.
    pub(in crate::responses) fn or_later(self, is_wanted: bool) -> Self {
        match self {
            Self::No if is_wanted => Self::IfKnown,
            Self::No | Self::IfKnown | Self::Always => self,
        }
    }
}

impl From<&Echo> for Shows {
    fn from(echo: &Echo) -> Self {
        Self {
            summary: echo.summary,
            sealed: Sealed::own(echo.encrypted_reasoning),
            extensions: echo.extensions,
        }
    }
}

impl Shows {
    pub(super) fn reasoning(self) -> Block {
        if self.summary {
            Block::Summary
        } else {
            Block::Reasoning
        }
    }
}

//! The view of message parts.

use crate::json::{Json, Object};

/// The smallest piece of a message (2.0.0 "Message Parts").
#[derive(Clone, Copy, Debug)]
pub struct Part<'a>(&'a Json);

/// The kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartKind<'a> {
    /// Input of a user.
    UserPrompt,
    /// Text of a model.
    Text,
    /// Reasoning of a model.
    Thinking,
    /// A tool that a model wants called.
    ToolCall,
    /// The result of a tool call.
    ToolReturn,
    /// A request to the model to correct its output.
    RetryPrompt,
    /// A file that a model made.
    File,
    /// A system prompt, which does not belong into a document.
    SystemPrompt,
    /// Any other kind, carried untouched.
    Other(&'a str),
    /// The part has no kind.
    Missing,
}

impl<'a> PartKind<'a> {
    /// The kind as spelled in a document; empty if it is missing.
    #[must_use]
    pub fn as_str(self) -> &'a str {
        match self {
            Self::UserPrompt => "user-prompt",
            Self::Text => "text",
            Self::Thinking => "thinking",
            Self::ToolCall => "tool-call",
            Self::ToolReturn => "tool-return",
            Self::RetryPrompt => "retry-prompt",
            Self::File => "file",
            Self::SystemPrompt => "system-prompt",
            Self::Other(kind) => kind,
            Self::Missing => "",
        }
    }
}

impl<'a> From<&'a str> for PartKind<'a> {
    fn from(kind: &'a str) -> Self {
        match kind {
            "user-prompt" => Self::UserPrompt,
            "text" => Self::Text,
            "thinking" => Self::Thinking,
            "tool-call" => Self::ToolCall,
            "tool-return" => Self::ToolReturn,
            "retry-prompt" => Self::RetryPrompt,
            "file" => Self::File,
            "system-prompt" => Self::SystemPrompt,
            _ => Self::Other(kind),
        }
    }
}

impl<'a> Part<'a> {
    /// Looks at a part.
    #[must_use]
    pub fn new(json: &'a Json) -> Self {
        Self(json)
    }

    /// The JSON value.
    #[must_use]
    pub fn json(self) -> &'a Json {
        self.0
    }

    /// The JSON object, if the part is one.
    #[must_use]
    pub fn object(self) -> Option<&'a Object> {
        self.0.as_object()
    }

    /// The kind of the part.
    #[must_use]
    pub fn kind(self) -> PartKind<'a> {
        self.text("part_kind")
            .map_or(PartKind::Missing, PartKind::from)
    }

    /// The content, of whatever type.
    #[must_use]
    pub fn content(self) -> Option<&'a Json> {
        self.0.get("content")
    }

    /// The content, if it is a string.
    #[must_use]
    pub fn content_str(self) -> Option<&'a str> {
        self.text("content")
    }

    /// The tool of a call, a return or a retry.
    #[must_use]
    pub fn tool_name(self) -> Option<&'a str> {
        self.text("tool_name")
    }

    /// The id that a call and its return share.
    #[must_use]
    pub fn tool_call_id(self) -> Option<&'a str> {
        self.text("tool_call_id")
    }

    /// The arguments of a call; text that may be malformed, or an object.
    #[must_use]
    pub fn args(self) -> Option<&'a Json> {
        self.0.get("args")
    }

    /// The outcome of a tool.
    #[must_use]
    pub fn status(self) -> Option<&'a str> {
        self.text("status")
    }

    /// Data of the tool for the application.
    #[must_use]
    pub fn metadata(self) -> Option<&'a Json> {
        self.0.get("metadata")
    }

    /// A reference to the stored content of a return; replaces `content` (0.0.3).
    #[must_use]
    pub fn content_ref(self) -> Option<&'a Object> {
        self.0.get("content_ref")?.as_object()
    }

    /// The provider's id of a text or file.
    #[must_use]
    pub fn id(self) -> Option<&'a str> {
        self.text("id")
    }

    /// The provider's signature of a thought.
    #[must_use]
    pub fn signature(self) -> Option<&'a str> {
        self.text("signature")
    }

    /// The provider of a thought.
    #[must_use]
    pub fn provider_name(self) -> Option<&'a str> {
        self.text("provider_name")
    }

    /// The provider's id of a thought.
    #[must_use]
    pub fn thinking_id(self) -> Option<&'a str> {
        self.text("thinking_id")
    }

    /// The id of the call that this part answers: a tool return or a retry with an id (ruling 3).
    #[must_use]
    pub fn answers(self) -> Option<&'a str> {
        if matches!(self.kind(), PartKind::ToolReturn | PartKind::RetryPrompt) {
            return self.tool_call_id();
        }
        None
    }

    fn text(self, key: &str) -> Option<&'a str> {
        self.0.get(key)?.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_an_unknown_kind_still_shows_its_members() {
        let json = Json::parse(r#"{"part_kind":"custom:x","tool_call_id":"c"}"#).unwrap();
        let part = Part::new(&json);
        assert_eq!(part.kind(), PartKind::Other("custom:x"));
        assert_eq!((part.tool_call_id(), part.answers()), (Some("c"), None));
        assert_eq!(Part::new(&Json::Null).kind(), PartKind::Missing);
    }
}

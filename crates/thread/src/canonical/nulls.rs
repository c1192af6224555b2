//! The explicit nulls that the canonical form omits: those of optional members.

use crate::json::Object;

const ROOT: &[&str] = &["title", "metadata", "relationships"];
const LINK: &[&str] = &["metadata"];
const AGENT: &[&str] = &["model_name", "provider_name", "config_ref"];
const USER_TURN: &[&str] = &["client_metadata"];
const AGENT_TURN: &[&str] = &["completed_at", "total_usage", "interruption"];
const MESSAGE: &[&str] = &[
    "model_name",
    "provider_name",
    "provider_response_id",
    "usage",
    "finish_reason",
];
const SYSTEM: &[&str] = &["source_agent", "target_agents"];
const USAGE: &[&str] = &[
    "input_tokens",
    "output_tokens",
    "thinking_tokens",
    "total_tokens",
];
const CONTENT_REF: &[&str] = &["size_bytes", "hash", "media_type"];

/// The optional members of each part kind. `provider_name` of a thought counts (ruling 7);
/// `content` and `args` never do, since `null` is a legal value of both.
fn optional_in_part(kind: &str) -> &'static [&'static str] {
    match kind {
        "text" | "file" => &["id"],
        "thinking" => &["content", "signature", "provider_name", "thinking_id"],
        "tool-return" => &["metadata", "content_ref"],
        "retry-prompt" => &["tool_name", "tool_call_id"],
        _ => &[],
    }
}

/// The role of a value in the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    Root,
    Relationships,
    Links,
    Link,
    Agents,
    Agent,
    Turns,
    Turn,
    Messages,
    /// The messages of a turn of an unknown type: free data, with or without telemetry.
    ForeignMessages,
    Message,
    Parts,
    Part,
    Usage,
    ContentRef,
    /// Data in which every null has a meaning.
    Free,
}

impl At {
    /// The role of the elements of a list with this role.
    pub(super) fn element(self) -> Self {
        match self {
            Self::Links => Self::Link,
            Self::Turns => Self::Turn,
            Self::Messages => Self::Message,
            Self::Parts => Self::Part,
            Self::Root
            | Self::Relationships
            | Self::Link
            | Self::Agents
            | Self::Agent
            | Self::Turn
            | Self::ForeignMessages
            | Self::Message
            | Self::Part
            | Self::Usage
            | Self::ContentRef
            | Self::Free => Self::Free,
        }
    }

    /// The role of a member of an object with this role.
    pub(super) fn member(self, object: &Object, key: &str) -> Self {
        let tag = |key: &str| object.get_str(key).unwrap_or_default();
        match (self, key) {
            (Self::Root, "relationships") => Self::Relationships,
            (Self::Root, "agents") => Self::Agents,
            (Self::Root, "turns") => Self::Turns,
            (Self::Relationships, "links") => Self::Links,
            (Self::Agents, _) => Self::Agent,
            (Self::Turn, "parts") if tag("turn_type") == "user" => Self::Parts,
            (Self::Turn, "messages") if tag("turn_type") == "agent" => Self::Messages,
            (Self::Turn, "messages") => Self::ForeignMessages,
            (Self::Turn, "total_usage") if tag("turn_type") == "agent" => Self::Usage,
            (Self::Message, "parts") if has_content(object) => Self::Parts,
            (Self::Message, "usage") if has_content(object) => Self::Usage,
            (Self::Part, "content_ref") if tag("part_kind") == "tool-return" => Self::ContentRef,
            _ => Self::Free,
        }
    }

    /// The members of an object with this role for which null and absence mean the same.
    pub(super) fn optional(self, object: &Object) -> &'static [&'static str] {
        let tag = |key: &str| object.get_str(key).unwrap_or_default();
        match self {
            Self::Root => ROOT,
            Self::Relationships => &["links"],
            Self::Link => LINK,
            Self::Agent => AGENT,
            Self::Turn => match tag("turn_type") {
                "user" => USER_TURN,
                "agent" => AGENT_TURN,
                _ => &[],
            },
            Self::Message if has_content(object) => MESSAGE,
            Self::Message if tag("message_type") == "system" => SYSTEM,
            Self::Part => optional_in_part(tag("part_kind")),
            Self::Usage => USAGE,
            Self::ContentRef => CONTENT_REF,
            Self::Links
            | Self::Agents
            | Self::Turns
            | Self::Messages
            | Self::ForeignMessages
            | Self::Message
            | Self::Parts
            | Self::Free => &[],
        }
    }
}

fn has_content(message: &Object) -> bool {
    matches!(
        message.get_str("message_type"),
        Some("request" | "response")
    )
}

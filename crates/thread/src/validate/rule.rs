//! The rules by name.

use super::{Profile, Rules, Severity};

/// A rule of the protocol; [`Rule::id`] stays the same for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// The text is not JSON that can be read: an object with each key once, within the limits.
    Json,
    /// A member has the wrong type, or a value outside a closed set.
    Shape,
    /// A member is missing that nothing can be done without.
    Required,
    /// A required member is missing that real documents often omit.
    Expected,
    /// The version is unknown, or 1.0.0, which is only read.
    Version,
    /// A turn, message or part has an unknown kind where the set is closed.
    UnknownKind,
    /// Rule 1: an instant is not ISO 8601.
    Timestamp,
    /// Rule 1: a timestamp has no offset and is therefore not an instant.
    TimestampOffset,
    /// Rule 2: at its position, an answer matches no open call.
    ToolCallId,
    /// Rule 2: a cycle calls or answers the same id twice.
    ToolCallIdRepeated,
    /// Rule 2: a call is outside of a response, or an answer is inside one.
    ToolPosition,
    /// Rule 2: an answer names another tool than its call.
    ToolName,
    /// Rule 2: a call has no answer, in a document from before 0.0.4.
    CallUnanswered,
    /// Rule 3: an agent is not in the registry.
    AgentId,
    /// Rule 3: an agent is registered under another key than its id.
    AgentKey,
    /// Two agents have the same `agent_identifier` (1.0.0).
    AgentIdentifier,
    /// The numbers of the actions repeat or have a gap (1.0.0).
    Sequence,
    /// Rule 3: an event concerns an agent that is not in the registry.
    AgentRef,
    /// Rule 3: a message names another agent than its run does.
    MessageAgent,
    /// Rule 4: a turn starts before the former ended.
    TurnOverlap,
    /// Rule 5: a message is older than the one before it.
    MessageOrder,
    /// Rule 6: a key of `client_metadata` has no namespace (0.0.3).
    ClientMetadataKey,
    /// Rule 7: `content_ref.uri` is not a URI (0.0.3).
    ContentRefUri,
    /// Rule 7: `content_ref.uri` has a scheme that is not recognised (0.0.3).
    ContentRefScheme,
    /// Rule 7: `content_ref.hash` is not a SHA-256 in hexadecimal (0.0.3).
    ContentRefHash,
    /// Rule 7: a tool return has both a `content` and a `content_ref` (0.0.3).
    ContentAndRef,
    /// A tool return has neither a `content` nor a `content_ref` (0.0.3).
    ToolReturnContent,
    /// The data of a file is not base64.
    Base64,
    /// Rule 8: a link's thread id is not a UUID (0.0.3).
    LinkThreadId,
    /// An id that should be a UUID is another string (ruling 5).
    Uuid,
    /// A thought does not name its provider (ruling 7).
    ThinkingProviderName,
    /// The document contains a system prompt (2.0.0 "`SystemPromptPart` Handling").
    SystemPrompt,
    /// `completion_status` is missing or not legal (0.0.4).
    CompletionStatus,
    /// `completion_status` is present before 0.0.4, where every turn is complete.
    EarlyCompletion,
    /// `interruption` is missing from an interrupted turn, or present in another (0.0.4).
    Interruption,
    /// `completed_at` is present in an interrupted turn (0.0.4).
    CompletedAt,
    /// A cycle is not complete (0.0.4, rulings 2 and 3).
    CompleteCycle,
    /// A response in a complete turn has no parts, as occurs in real runs (0.0.4).
    EmptyResponse,
    /// An interrupted turn has no complete cycle (0.0.4).
    NoCycle,
    /// The payload of a `data-tp-*` event is wrong (0.0.4).
    EventPayload,
    /// The payload of a `data-tp-*` event lacks the member that identifies the fact (0.0.4).
    EventPayloadField,
    /// A `data-tp-agent_handoff` names no target agent (0.0.4).
    HandoffTarget,
    /// A `data-tp-*` event has a name that the protocol has not (0.0.4).
    EventName,
    /// A number is not an I-JSON number, so its canonical form is another number (RFC 7493).
    IJsonNumber,
}

impl Rule {
    /// Every rule.
    pub const ALL: &[Self] = &[
        Self::Json,
        Self::Shape,
        Self::Required,
        Self::Expected,
        Self::Version,
        Self::UnknownKind,
        Self::Timestamp,
        Self::TimestampOffset,
        Self::ToolCallId,
        Self::ToolCallIdRepeated,
        Self::ToolPosition,
        Self::ToolName,
        Self::CallUnanswered,
        Self::AgentId,
        Self::AgentKey,
        Self::AgentIdentifier,
        Self::Sequence,
        Self::AgentRef,
        Self::MessageAgent,
        Self::TurnOverlap,
        Self::MessageOrder,
        Self::ClientMetadataKey,
        Self::ContentRefUri,
        Self::ContentRefScheme,
        Self::ContentRefHash,
        Self::ContentAndRef,
        Self::ToolReturnContent,
        Self::Base64,
        Self::LinkThreadId,
        Self::Uuid,
        Self::ThinkingProviderName,
        Self::SystemPrompt,
        Self::CompletionStatus,
        Self::EarlyCompletion,
        Self::Interruption,
        Self::CompletedAt,
        Self::CompleteCycle,
        Self::EmptyResponse,
        Self::NoCycle,
        Self::EventPayload,
        Self::EventPayloadField,
        Self::HandoffTarget,
        Self::EventName,
        Self::IJsonNumber,
    ];

    /// The stable id of the rule.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Json => "tp-json",
            Self::Shape => "tp-shape",
            Self::Required => "tp-required",
            Self::Expected => "tp-expected",
            Self::Version => "tp-version",
            Self::UnknownKind => "tp-unknown-kind",
            Self::Timestamp => "tp-1-timestamp",
            Self::TimestampOffset => "tp-1-timestamp-offset",
            Self::ToolCallId => "tp-2-tool-call-id",
            Self::ToolCallIdRepeated => "tp-2-tool-call-id-repeated",
            Self::ToolPosition => "tp-2-tool-place",
            Self::ToolName => "tp-2-tool-name",
            Self::CallUnanswered => "tp-2-call-unanswered",
            Self::AgentId => "tp-3-agent-id",
            Self::AgentKey => "tp-3-agent-key",
            Self::AgentIdentifier => "tp-agent-identifier",
            Self::Sequence => "tp-sequence",
            Self::AgentRef => "tp-3-agent-ref",
            Self::MessageAgent => "tp-3-message-agent",
            Self::TurnOverlap => "tp-4-turn-overlap",
            Self::MessageOrder => "tp-5-message-order",
            Self::ClientMetadataKey => "tp-6-client-metadata-key",
            Self::ContentRefUri => "tp-7-content-ref-uri",
            Self::ContentRefScheme => "tp-7-content-ref-scheme",
            Self::ContentRefHash => "tp-7-content-ref-hash",
            Self::ContentAndRef => "tp-7-content-beside-ref",
            Self::ToolReturnContent => "tp-tool-return-content",
            Self::Base64 => "tp-base64",
            Self::LinkThreadId => "tp-8-link-thread-id",
            Self::Uuid => "tp-uuid",
            Self::ThinkingProviderName => "tp-thinking-provider-name",
            Self::SystemPrompt => "tp-system-prompt",
            Self::CompletionStatus => "tp-completion-status",
            Self::EarlyCompletion => "tp-early-completion",
            Self::Interruption => "tp-interruption",
            Self::CompletedAt => "tp-completed-at",
            Self::CompleteCycle => "tp-complete-cycle",
            Self::EmptyResponse => "tp-empty-response",
            Self::NoCycle => "tp-no-cycle",
            Self::EventPayload => "tp-event-payload",
            Self::EventPayloadField => "tp-event-payload-field",
            Self::HandoffTarget => "tp-handoff-target",
            Self::EventName => "tp-event-name",
            Self::IJsonNumber => "tp-i-json-number",
        }
    }

    /// The severity of a breach under these rules.
    #[must_use]
    pub fn severity(self, rules: &Rules) -> Severity {
        match self {
            Self::Json
            | Self::Shape
            | Self::Required
            | Self::Timestamp
            | Self::ToolCallId
            | Self::AgentId
            | Self::ContentRefUri
            | Self::CompletionStatus
            | Self::Interruption
            | Self::CompleteCycle
            | Self::EventPayload => Severity::Error,
            Self::Expected
            | Self::Version
            | Self::UnknownKind
            | Self::TimestampOffset
            | Self::ToolCallIdRepeated
            | Self::ToolPosition
            | Self::ToolName
            | Self::CallUnanswered
            | Self::AgentKey
            | Self::AgentRef
            | Self::MessageAgent
            | Self::AgentIdentifier
            | Self::Sequence
            | Self::ClientMetadataKey
            | Self::ContentRefScheme
            | Self::ContentRefHash
            | Self::ContentAndRef
            | Self::ToolReturnContent
            | Self::Base64
            | Self::LinkThreadId
            | Self::SystemPrompt
            | Self::EarlyCompletion
            | Self::HandoffTarget
            | Self::CompletedAt => match rules.profile {
                Profile::Lenient => Severity::Warning,
                Profile::Strict => Severity::Error,
            },
            Self::TurnOverlap | Self::MessageOrder if rules.deny_timestamps => Severity::Error,
            Self::TurnOverlap
            | Self::MessageOrder
            | Self::Uuid
            | Self::ThinkingProviderName
            | Self::EmptyResponse
            | Self::NoCycle
            | Self::EventPayloadField
            | Self::EventName
            | Self::IJsonNumber => Severity::Warning,
        }
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_has_an_id_of_its_own() {
        let ids: std::collections::BTreeSet<_> = Rule::ALL.iter().map(|rule| rule.id()).collect();
        assert_eq!(ids.len(), Rule::ALL.len());
        assert_eq!(Rule::IJsonNumber as usize + 1, Rule::ALL.len());
    }

    #[test]
    fn nothing_is_worse_for_reading_than_for_writing() {
        let severity = |rule: &Rule, profile: Profile| rule.severity(&profile.into());
        for rule in Rule::ALL {
            assert!(
                severity(rule, Profile::Lenient) <= severity(rule, Profile::Strict),
                "{rule}"
            );
        }
    }
}

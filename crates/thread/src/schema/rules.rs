//! The rules that a schema can't express.

use super::context::Context;
use crate::document::Version;
use crate::validate::{Profile, Rule, Severity};

/// The description of a schema's root: its subject, and the rules that it can't express.
pub(super) fn describe(context: Context<'_>, about: &str) -> String {
    let mut text = format!("{about}\n\nTP is the specification of ThreadProtocol. ");
    text.push_str(match context.profile {
        Profile::Lenient => {
            "What can be read is valid here; what should not be written, the strict schema refuses. "
        }
        Profile::Strict => "What may be written is valid here. ",
    });
    text.push_str(
        "A member that may be missing may be `null`. Members and kinds that are not named here \
         may have any form. What validation only warns of is not refused here.\n\n\
         What a schema can't say, and `loomline validate` does:",
    );
    let rules = context.profile.into();
    let lines = Rule::ALL.iter().filter_map(|rule| {
        let unsaid = missing_rule(*rule, context)?;
        let severity = match rule.severity(&rules) {
            Severity::Warning => " (a warning)",
            Severity::Error => "",
        };
        Some(format!("\n- {rule}{severity}: {unsaid}."))
    });
    text.extend(lines);
    text
}

/// The part of a rule that the schema does not cover. `None` if the schema covers all of it, if the
/// rule is about one value and never more than a warning, or if it does not apply to the version.
fn missing_rule(rule: Rule, context: Context<'_>) -> Option<&'static str> {
    let version = context.version;
    let has_actions = *version == Version::V1_0_0;
    let has_references = *version >= Version::V0_0_3;
    let has_cycles = *version >= Version::V0_0_4;
    Some(match rule {
        Rule::Version if has_actions => "1.0.0 is only read; it is upgraded to be written",
        Rule::Shape => "a count is spelled as an integer: `1`, not `1.0` or `-0`",
        Rule::Timestamp => "an instant is one: its month has the day, and there is no year -0",
        Rule::ToolCallId => "the `tool_call_id` of an answer is that of a call that is open there",
        Rule::ToolCallIdRepeated => "a `tool_call_id` comes once in a cycle of calls and answers",
        Rule::ToolPosition if !has_actions => {
            "a `tool-call` stands in a response, and what answers one in a request or a user's turn"
        }
        Rule::ToolName => "the `tool_name` of an answer is that of the call",
        Rule::CallUnanswered if !has_cycles => {
            "only the calls of the last response of the last run may be open"
        }
        Rule::AgentId => "an `agent_id` is a key of `agents`",
        Rule::AgentKey => "the `agent_id` of an agent is its key in `agents`",
        Rule::AgentIdentifier if has_actions => "an `agent_identifier` comes once",
        Rule::Sequence if has_actions => {
            "the `sequence` of the actions is 1, 2, 3 and so on, in any order"
        }
        Rule::AgentRef if !has_actions => "`source_agent` and `target_agents` are keys of `agents`",
        Rule::MessageAgent if !has_actions => "the `agent_id` of a message is that of its turn",
        Rule::ContentAndRef if has_references => {
            "a `tool-return` with a `content_ref` has no `content`"
        }
        Rule::ToolReturnContent if has_references => {
            "a `tool-return` has a `content` or a `content_ref`"
        }
        Rule::Base64 => "the data of files and attachments is base64",
        Rule::EarlyCompletion if !has_actions && !has_cycles => "a turn has no `completion_status`",
        Rule::HandoffTarget if has_cycles => {
            "a `data-tp-agent_handoff` has a `to`, or its message `target_agents`"
        }
        Rule::TurnOverlap if !has_actions => {
            "a turn starts when the former has ended, and ends after it started"
        }
        Rule::MessageOrder => "instants follow one another as what they belong to does",
        Rule::ContentRefScheme if has_references && context.is_strict() => {
            "a caller may recognise schemes beside those of the schema"
        }
        Rule::CompleteCycle if has_cycles => {
            "every call is answered, but those of the last response of the last turn of an agent, \
             if that turn is complete"
        }
        Rule::NoCycle if has_cycles => "an interrupted turn has a response",
        Rule::Json
        | Rule::Version
        | Rule::ToolPosition
        | Rule::CallUnanswered
        | Rule::AgentIdentifier
        | Rule::Sequence
        | Rule::AgentRef
        | Rule::MessageAgent
        | Rule::ContentAndRef
        | Rule::ToolReturnContent
        | Rule::EarlyCompletion
        | Rule::HandoffTarget
        | Rule::TurnOverlap
        | Rule::CompleteCycle
        | Rule::NoCycle
        | Rule::Required
        | Rule::Expected
        | Rule::UnknownKind
        | Rule::TimestampOffset
        | Rule::ClientMetadataKey
        | Rule::ContentRefUri
        | Rule::ContentRefScheme
        | Rule::ContentRefHash
        | Rule::LinkThreadId
        | Rule::Uuid
        | Rule::ThinkingProviderName
        | Rule::SystemPrompt
        | Rule::CompletionStatus
        | Rule::Interruption
        | Rule::CompletedAt
        | Rule::EmptyResponse
        | Rule::EventPayload
        | Rule::EventPayloadField
        | Rule::EventName
        | Rule::IJsonNumber => return None,
    })
}

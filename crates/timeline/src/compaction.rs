//! Compactions: summaries that replace older runs when a model reads a thread.
//!
//! EK §8.2 has no event for them, so they are markers among the chunks, as other later changes are.

use crate::ids::{CompactionId, ExecutionId, Seq};
use crate::payload::Payload;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A summary that replaces the oldest runs of a thread when a model reads it. The runs stay in the
/// log and in every other reading.
///
/// The newest compaction counts, unless it is [withdrawn](crate::Removed::Compaction). Then the one
/// before it counts, or the runs themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    /// Its id.
    pub id: CompactionId,
    /// The last execution that it replaces. No later one continues it, and none of its calls waits.
    pub execution_id: ExecutionId,
    /// The number of the last event that it replaces. The events of a fork's ancestors count.
    pub through: Seq,
    /// The text for the model.
    pub summary: String,
    /// The author of the text.
    #[serde(default)]
    pub author: SummaryAuthor,
    /// The size of what it replaces.
    pub replaced: Replaced,
    /// The state of each agent after these runs, without messages, by the agents' names. The name
    /// of the default agent may be empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agent_states: BTreeMap<String, Payload>,
}

/// The author of a summary; a field is absent if it does not apply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SummaryAuthor {
    /// The name of the client's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The agent whose configuration requested the summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model that wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tokens of the model's call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<SummaryTokens>,
}

/// The tokens of a call that wrote a summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SummaryTokens {
    /// Tokens that the model read.
    pub input: u64,
    /// Tokens that it wrote.
    pub output: u64,
}

/// The size of what a compaction replaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct Replaced {
    /// Number of executions.
    pub executions: u64,
    /// Number of messages that a model would read.
    pub messages: u64,
    /// The size of these messages as JSON, in bytes.
    pub bytes: u64,
}

impl std::ops::Add for Replaced {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            executions: self.executions.saturating_add(more.executions),
            messages: self.messages.saturating_add(more.messages),
            bytes: self.bytes.saturating_add(more.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compaction_survives_its_text() {
        let state = Payload::from_text(r#"{"step":1.0,  "x":null}"#.to_owned()).unwrap();
        let compaction = Compaction {
            id: "co_1".into(),
            execution_id: "ex_1".into(),
            through: Seq(17),
            summary: "They count to 1.0.".into(),
            author: SummaryAuthor {
                agent: Some("assistant".into()),
                tokens: Some(SummaryTokens::default()),
                ..SummaryAuthor::default()
            },
            replaced: Replaced {
                executions: 2,
                messages: 4,
                bytes: 100,
            },
            agent_states: BTreeMap::from([(String::new(), state)]),
        };
        let text = serde_json::to_string(&compaction).unwrap();
        assert!(text.contains(r#"{"step":1.0,  "x":null}"#));
        assert_eq!(
            serde_json::from_str::<Compaction>(&text).unwrap(),
            compaction
        );
    }
}

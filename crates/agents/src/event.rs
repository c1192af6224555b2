//! The events of a running agent (UAP §11.2).

mod data;

pub use data::EventData;

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use upp::StreamEvent;

/// One event of a run: the agent's own, or an unchanged one of the model (UAP §11.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "lowercase")]
pub enum AgentStreamEvent {
    /// From the agent.
    Uap {
        /// The event.
        uap: UapEvent,
    },
    /// From the model, or from a tool it called.
    Upp {
        /// The event, untouched.
        upp: StreamEvent,
    },
}

/// An event of the agent itself (UAP §11.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UapEvent {
    /// The type of the event.
    #[serde(rename = "type")]
    pub kind: UapEventType,
    /// The step it belongs to.
    pub step: u64,
    /// The agent.
    pub agent_id: Arc<str>,
    /// The fields of the event; they depend on the type.
    pub data: EventData,
}

/// The types of an agent's events (`UAPEventType`, UAP §11.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UapEventType {
    /// A step starts.
    StepStart,
    /// A step is complete. Not emitted for a step that waits for outside answers; the run with the
    /// answers starts that step again.
    StepEnd,
    /// The model has reasoned (`ReAct`): `{reasoning}`.
    Reasoning,
    /// The model has called tools, none of which has started: `{toolCalls}`. Emitted once for each
    /// response, and again only if a step is repeated after a crash.
    Action,
    /// All calls of a response have results: `{observations}`, in call order. Once for each response.
    Observation,
    /// A sub-agent starts (UAP §8.7); [`UapEvent::subagent`] parses the data.
    SubagentStart,
    /// A sub-agent's own event (UAP §8.7).
    SubagentEvent,
    /// A sub-agent has ended (UAP §8.7).
    SubagentEnd,
}

impl From<StreamEvent> for AgentStreamEvent {
    fn from(upp: StreamEvent) -> Self {
        Self::Upp { upp }
    }
}

impl From<UapEvent> for AgentStreamEvent {
    fn from(uap: UapEvent) -> Self {
        Self::Uap { uap }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_have_the_shape_of_section_11_2() {
        let uap = AgentStreamEvent::from(UapEvent {
            kind: UapEventType::StepStart,
            step: 3,
            agent_id: "a".into(),
            data: EventData::default(),
        });
        let upp = AgentStreamEvent::from(StreamEvent::TextDelta {
            index: 0,
            text: "hi".to_owned(),
        });
        let written = serde_json::to_value([&uap, &upp]).unwrap();
        assert_eq!(
            written,
            json!([
                {"source": "uap", "uap": {"type": "step_start", "step": 3, "agentId": "a", "data": {}}},
                {"source": "upp", "upp": {"type": "text_delta", "index": 0, "delta": {"text": "hi"}}},
            ])
        );
        let read: Vec<AgentStreamEvent> = serde_json::from_value(written).unwrap();
        assert_eq!(read, [uap, upp]);
    }
}

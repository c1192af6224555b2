//! Views of messages.

use super::{Part, Version, items};
use crate::json::{Json, Object};

/// A message of an agent's turn (2.0.0 "`ThreadMessage`", "`SystemMessage`").
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// To the model.
    Request(Request<'a>),
    /// From the model.
    Response(Response<'a>),
    /// An event that no model received.
    System(System<'a>),
    /// A value of an unknown type, unchanged.
    Unknown(&'a Json),
}

impl<'a> Message<'a> {
    /// Looks at the tag of a message.
    #[must_use]
    pub fn new(json: &'a Json) -> Self {
        let tagged = json
            .as_object()
            .map(|object| (object, object.get_str("message_type")));
        match tagged {
            Some((object, Some("request"))) => Self::Request(Request(object)),
            Some((object, Some("response"))) => Self::Response(Response(object)),
            Some((object, Some("system"))) => Self::System(System(object)),
            _ => Self::Unknown(json),
        }
    }
}

/// A message to the model (2.0.0 "`ThreadMessage`").
#[derive(Clone, Copy, Debug)]
pub struct Request<'a>(&'a Object);

impl<'a> Request<'a> {
    /// The JSON object.
    #[must_use]
    pub fn object(self) -> &'a Object {
        self.0
    }

    /// When it was sent.
    #[must_use]
    pub fn timestamp(self) -> Option<&'a str> {
        self.0.get_str("timestamp")
    }

    /// The agent of the message.
    #[must_use]
    pub fn agent_id(self) -> Option<&'a str> {
        self.0.get_str("agent_id")
    }

    /// The parts of the message.
    pub fn parts(self) -> impl DoubleEndedIterator<Item = Part<'a>> + ExactSizeIterator {
        items(self.0, "parts").iter().map(Part::new)
    }
}

/// A message from the model (2.0.0 "`ThreadMessage`").
#[derive(Clone, Copy, Debug)]
pub struct Response<'a>(&'a Object);

impl<'a> Response<'a> {
    /// The JSON object.
    #[must_use]
    pub fn object(self) -> &'a Object {
        self.0
    }

    /// The time of the response.
    #[must_use]
    pub fn timestamp(self) -> Option<&'a str> {
        self.0.get_str("timestamp")
    }

    /// The agent of the message.
    #[must_use]
    pub fn agent_id(self) -> Option<&'a str> {
        self.0.get_str("agent_id")
    }

    /// The parts of the message.
    pub fn parts(self) -> impl DoubleEndedIterator<Item = Part<'a>> + ExactSizeIterator {
        items(self.0, "parts").iter().map(Part::new)
    }

    /// The model that answered.
    #[must_use]
    pub fn model_name(self) -> Option<&'a str> {
        self.0.get_str("model_name")
    }

    /// The model's provider.
    #[must_use]
    pub fn provider_name(self) -> Option<&'a str> {
        self.0.get_str("provider_name")
    }

    /// The provider's name for this response.
    #[must_use]
    pub fn provider_response_id(self) -> Option<&'a str> {
        self.0.get_str("provider_response_id")
    }

    /// The tokens it took.
    #[must_use]
    pub fn usage(self) -> Option<&'a Object> {
        self.0.get("usage")?.as_object()
    }

    /// The model's stop reason.
    #[must_use]
    pub fn finish_reason(self) -> Option<&'a str> {
        self.0.get_str("finish_reason")
    }
}

/// An event that no model received (2.0.0 "`SystemMessage`").
#[derive(Clone, Copy, Debug)]
pub struct System<'a>(&'a Object);

impl<'a> System<'a> {
    /// The JSON object.
    #[must_use]
    pub fn object(self) -> &'a Object {
        self.0
    }

    /// When it happened.
    #[must_use]
    pub fn timestamp(self) -> Option<&'a str> {
        self.0.get_str("timestamp")
    }

    /// The type of the event, from an open set.
    #[must_use]
    pub fn event_type(self) -> Option<&'a str> {
        self.0.get_str("event_type")
    }

    /// The event's payload.
    #[must_use]
    pub fn event_data(self) -> Option<&'a Json> {
        self.0.get("event_data")
    }

    /// The agent that triggered it.
    #[must_use]
    pub fn source_agent(self) -> Option<&'a str> {
        self.0.get_str("source_agent")
    }

    /// The agents it concerns.
    pub fn target_agents(self) -> impl Iterator<Item = &'a str> {
        items(self.0, "target_agents")
            .iter()
            .filter_map(Json::as_str)
    }
}

/// The owner of an event's meaning (0.0.4 "Namespace Taxonomy").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// An event of the protocol: stored and interpreted.
    Canonical,
    /// Telemetry: the canonical form may omit it.
    System,
    /// An event of an application: stored, not interpreted. Every name without another tier is
    /// here.
    Application,
}

impl Tier {
    /// The tier of an event name in a document of this version. Before 0.0.4 the protocol's names
    /// had no prefix and telemetry began with `meta:`.
    #[must_use]
    pub fn of(event_type: &str, version: &Version) -> Self {
        let canonical = [
            "agent.handoff",
            "thread.spawn",
            "thread.merge",
            "thread.end",
            "error",
        ];
        let (is_canonical, is_system) = match version {
            Version::V1_0_0 | Version::V2_0_0 | Version::V0_0_3 => (
                canonical.contains(&event_type),
                event_type.starts_with("meta:"),
            ),
            Version::V0_0_4 | Version::Other(_) => (
                event_type.starts_with("data-tp-"),
                event_type.starts_with("data-sys-"),
            ),
        };
        match (is_canonical, is_system) {
            (true, _) => Self::Canonical,
            (false, true) => Self::System,
            (false, false) => Self::Application,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_follows_from_name_and_version() {
        let newest = |name| Tier::of(name, &Version::V0_0_4);
        assert_eq!(newest("data-tp-error"), Tier::Canonical);
        assert_eq!(newest("data-sys-latency_ms"), Tier::System);
        assert_eq!(newest("data-other"), Tier::Application);
        assert_eq!(newest("thread.end"), Tier::Application);
        assert_eq!(Tier::of("thread.end", &Version::V0_0_3), Tier::Canonical);
        assert_eq!(Tier::of("meta:cache", &Version::V0_0_3), Tier::System);
    }
}

//! Views of turns.

use super::{Message, Part, items};
use crate::json::{Json, Object};

/// A turn (2.0.0 "Turns").
#[derive(Clone, Copy, Debug)]
pub enum Turn<'a> {
    /// A user's input.
    User(UserTurn<'a>),
    /// One run of an agent.
    Agent(AgentTurn<'a>),
    /// A value of an unknown type, unchanged.
    Unknown(&'a Json),
}

impl<'a> Turn<'a> {
    /// Looks at the tag of a turn.
    #[must_use]
    pub fn new(json: &'a Json) -> Self {
        let tagged = json
            .as_object()
            .map(|object| (object, object.get_str("turn_type")));
        match tagged {
            Some((object, Some("user"))) => Self::User(UserTurn(object)),
            Some((object, Some("agent"))) => Self::Agent(AgentTurn(object)),
            _ => Self::Unknown(json),
        }
    }
}

/// A user's input: the request that starts the following turns (2.0.0 "Turns").
#[derive(Clone, Copy, Debug)]
pub struct UserTurn<'a>(&'a Object);

impl<'a> UserTurn<'a> {
    /// The JSON object.
    #[must_use]
    pub fn object(self) -> &'a Object {
        self.0
    }

    /// When the user submitted it.
    #[must_use]
    pub fn submitted_at(self) -> Option<&'a str> {
        self.0.get_str("submitted_at")
    }

    /// The parts of the input.
    pub fn parts(self) -> impl DoubleEndedIterator<Item = Part<'a>> + ExactSizeIterator {
        items(self.0, "parts").iter().map(Part::new)
    }

    /// Metadata of the client for itself, never sent to a model (0.0.3).
    #[must_use]
    pub fn client_metadata(self) -> Option<&'a Object> {
        self.0.get("client_metadata")?.as_object()
    }
}

/// One run of an agent (2.0.0 "Turns", 0.0.4 "Updated `AgentTurn`").
#[derive(Clone, Copy, Debug)]
pub struct AgentTurn<'a>(&'a Object);

impl<'a> AgentTurn<'a> {
    /// The JSON object.
    #[must_use]
    pub fn object(self) -> &'a Object {
        self.0
    }

    /// The agent of the run.
    #[must_use]
    pub fn agent_id(self) -> Option<&'a str> {
        self.0.get_str("agent_id")
    }

    /// When the run started.
    #[must_use]
    pub fn started_at(self) -> Option<&'a str> {
        self.0.get_str("started_at")
    }

    /// When the run completed, if it did.
    #[must_use]
    pub fn completed_at(self) -> Option<&'a str> {
        self.0.get_str("completed_at")
    }

    /// How the run ended, if the document records it (0.0.4).
    #[must_use]
    pub fn completion_status(self) -> Option<CompletionStatus> {
        match self.0.get_str("completion_status")? {
            "complete" => Some(CompletionStatus::Complete),
            "interrupted" => Some(CompletionStatus::Interrupted),
            _ => None,
        }
    }

    /// The interruption of the run, if it was interrupted (0.0.4).
    #[must_use]
    pub fn interruption(self) -> Option<Interruption<'a>> {
        self.0.get("interruption")?.as_object().map(Interruption)
    }

    /// All messages of the run: its requests, responses and events.
    pub fn messages(self) -> impl DoubleEndedIterator<Item = Message<'a>> + ExactSizeIterator {
        items(self.0, "messages").iter().map(Message::new)
    }

    /// The usage of the whole run, including dropped messages.
    #[must_use]
    pub fn total_usage(self) -> Option<&'a Object> {
        self.0.get("total_usage")?.as_object()
    }
}

/// How a run ended (0.0.4 "Updated `AgentTurn`").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CompletionStatus {
    /// By itself.
    Complete,
    /// From outside.
    Interrupted,
}

impl CompletionStatus {
    /// The status as a document spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The record of an interruption: a fact, not an instruction (0.0.4 "Updated `AgentTurn`").
#[derive(Clone, Copy, Debug)]
pub struct Interruption<'a>(&'a Object);

impl<'a> Interruption<'a> {
    /// The JSON object.
    #[must_use]
    pub fn object(self) -> &'a Object {
        self.0
    }

    /// The reason, from an open set: `user_cancelled`, `timeout`, `error`, …
    #[must_use]
    pub fn reason(self) -> Option<&'a str> {
        self.0.get_str("reason")
    }

    /// When.
    #[must_use]
    pub fn interrupted_at(self) -> Option<&'a str> {
        self.0.get_str("interrupted_at")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_turn_is_handed_over_untouched() {
        let json = Json::parse(r#"{"turn_type":"robot","x":1}"#).unwrap();
        assert!(matches!(Turn::new(&json), Turn::Unknown(same) if *same == json));
        assert!(matches!(Turn::new(&Json::Null), Turn::Unknown(Json::Null)));
    }

    #[test]
    fn an_interrupted_turn_says_why_and_when() {
        let json = Json::parse(
            r#"{"turn_type":"agent","completion_status":"interrupted",
                "interruption":{"reason":"timeout","interrupted_at":"2026-01-05T08:00:00Z"}}"#,
        )
        .unwrap();
        let Turn::Agent(turn) = Turn::new(&json) else {
            panic!("no agent turn")
        };
        assert_eq!(
            turn.completion_status(),
            Some(CompletionStatus::Interrupted)
        );
        assert_eq!(
            turn.interruption().and_then(Interruption::reason),
            Some("timeout")
        );
    }
}

//! Messages on their way to the model.

use super::author::Authors;
use super::pairs::{At, Link, Pairs};
use super::{RenderChange, What};
use crate::document::{AgentTurn, Message, Thread, Turn, UserTurn, items};
use crate::json::{Json, Object};
use crate::path::{Path, Step, pointer};

/// The two kinds of model messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Request,
    Response,
}

/// A part, its source position, and its relation to another part.
#[derive(Clone, Debug)]
pub(super) struct DraftPart<'a> {
    pub(super) json: Json,
    pub(super) at: At,
    pub(super) link: Option<Link<'a>>,
}

/// A message on its way to the model.
#[derive(Clone, Debug)]
pub(super) struct Draft<'a> {
    pub(super) kind: Kind,
    /// The name of the agent that wrote it, if it was neither a user nor the viewing agent.
    pub(super) foreign: Option<&'a str>,
    /// Its turn, and its message if the turn is an agent's.
    pub(super) location: (usize, Option<usize>),
    pub(super) timestamp: Option<Json>,
    pub(super) parts: Vec<DraftPart<'a>>,
    /// Every other member.
    pub(super) rest: Object,
}

impl<'a> Draft<'a> {
    /// A request without an author.
    pub(super) fn request(
        place: (usize, Option<usize>),
        timestamp: Option<Json>,
        parts: Vec<DraftPart<'a>>,
    ) -> Self {
        Self {
            kind: Kind::Request,
            foreign: None,
            location: place,
            timestamp,
            parts,
            rest: Object::new(),
        }
    }

    /// The JSON Pointer of the message in the thread.
    pub(super) fn pointer(&self) -> String {
        pointer_of(self.location)
    }

    /// The message in the model's form.
    pub(super) fn into_json(self) -> Json {
        let kind = match self.kind {
            Kind::Request => "request",
            Kind::Response => "response",
        };
        let parts = self.parts.into_iter().map(|piece| piece.json).collect();
        let mut message = Object::new()
            .with("parts", Json::Array(parts))
            .with_some("timestamp", self.timestamp)
            .with("kind", kind);
        for (key, value) in self.rest {
            message.insert(key, value);
        }
        message.into()
    }
}

/// The JSON Pointer of a turn or of a message in it.
fn pointer_of((turn, message): (usize, Option<usize>)) -> String {
    let turn = [Step::Key("turns"), Step::Index(turn)];
    let message = message.map(|message| [Step::Key("messages"), Step::Index(message)]);
    pointer(turn.into_iter().chain(message.into_iter().flatten()))
}

/// The JSON Pointer of a part.
pub(super) fn pointer_at((turn, message, part): At) -> String {
    format!("{}/parts/{part}", pointer_of((turn, message)))
}

/// Every message a model may see, in order.
pub(super) fn drafts<'a>(
    thread: &'a Thread,
    authors: &Authors<'a>,
    pairs: &Pairs<'a>,
    changes: &mut Vec<RenderChange>,
) -> Vec<Draft<'a>> {
    let mut drafts = Vec::new();
    for (place, turn) in thread.turns().enumerate() {
        match turn {
            Turn::User(user) => drafts.push(from_user(user, place, pairs, changes)),
            Turn::Agent(agent) => {
                let collector = Collector {
                    agent,
                    place,
                    authors,
                    pairs,
                };
                collector.collect(&mut drafts, changes);
            }
            Turn::Unknown(_) => {
                changes.push(RenderChange::new(
                    pointer_of((place, None)),
                    What::UnknownTurn,
                ));
            }
        }
    }
    drafts
}

/// A user's turn as the request that starts the following messages (2.0.0 "`UserTurn` = Initial
/// `ModelRequest`").
fn from_user<'a>(
    user: UserTurn<'a>,
    turn: usize,
    pairs: &Pairs<'a>,
    changes: &mut Vec<RenderChange>,
) -> Draft<'a> {
    let place = (turn, None);
    if user.object().contains_key("client_metadata") {
        let turns = Path::ROOT.key("turns");
        let pointer = turns.index(turn).key("client_metadata").to_pointer();
        changes.push(RenderChange::new(pointer, What::ClientMetadata));
    }
    let own = [
        "turn_type",
        "submitted_at",
        "client_metadata",
        "parts",
        "kind",
        "timestamp",
    ];
    Draft {
        kind: Kind::Request,
        foreign: None,
        location: place,
        timestamp: user.object().get("submitted_at").cloned(),
        parts: pieces(user.object(), place, pairs),
        rest: rest(user.object(), &own),
    }
}

fn pieces<'a>(
    message: &'a Object,
    place: (usize, Option<usize>),
    pairs: &Pairs<'a>,
) -> Vec<DraftPart<'a>> {
    let parts = items(message, "parts").iter().enumerate();
    let piece = |(part, json): (usize, &Json)| {
        let at = (place.0, place.1, part);
        let link = pairs.link(at);
        let json = json.clone();
        DraftPart { json, at, link }
    };
    parts.map(piece).collect()
}

/// The members that are not named.
fn rest(message: &Object, named: &[&str]) -> Object {
    let members = message.iter().filter(|(key, _)| !named.contains(key));
    members.map(|(key, value)| (key, value.clone())).collect()
}

/// The messages of one agent's turn.
struct Collector<'a, 'r> {
    agent: AgentTurn<'a>,
    place: usize,
    authors: &'r Authors<'a>,
    pairs: &'r Pairs<'a>,
}

impl<'a> Collector<'a, '_> {
    fn collect(&self, drafts: &mut Vec<Draft<'a>>, changes: &mut Vec<RenderChange>) {
        for (message, view) in self.agent.messages().enumerate() {
            let place = (self.place, Some(message));
            match view {
                Message::Request(request) => {
                    drafts.push(self.draft(Kind::Request, place, request.object()));
                }
                Message::Response(response) => {
                    drafts.push(self.draft(Kind::Response, place, response.object()));
                }
                Message::System(_) => {
                    changes.push(RenderChange::new(pointer_of(place), What::SystemMessage));
                }
                Message::Unknown(_) => {
                    changes.push(RenderChange::new(pointer_of(place), What::UnknownMessage));
                }
            }
        }
    }

    fn draft(&self, kind: Kind, place: (usize, Option<usize>), message: &'a Object) -> Draft<'a> {
        let agent_id = message.get_str("agent_id").or(self.agent.agent_id());
        let own = [
            "message_type",
            "agent_id",
            "client_metadata",
            "parts",
            "kind",
            "timestamp",
        ];
        Draft {
            kind,
            foreign: self.authors.foreign_name(agent_id),
            location: place,
            timestamp: message.get("timestamp").cloned(),
            parts: pieces(message, place, self.pairs),
            rest: rest(message, &own),
        }
    }
}

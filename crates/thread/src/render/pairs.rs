//! Matches answers to calls, independent of the answer's position.

use super::author::Authors;
use crate::cycles::is_call;
use crate::document::{AgentTurn, Message, Part, PartKind, Thread, Turn};
use std::collections::BTreeMap;

/// The position of a part: turn, message (`None` in a user's turn), part.
pub(super) type At = (usize, Option<usize>, usize);

/// The relation of a part to another one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Link<'a> {
    /// A call; the name of the foreign agent that made it, if one did.
    Call(Option<&'a str>),
    /// A call with the id of an earlier call of its response.
    RepeatedCall,
    /// The answer to a call, and the name of the foreign agent that made the call, if one did.
    Answer(At, Option<&'a str>),
    /// Another answer to a call that has one.
    RepeatedAnswer,
    /// An answer that matches no call.
    Orphan,
}

/// The calls and answers of a thread.
#[derive(Default)]
pub(super) struct Pairs<'a> {
    links: BTreeMap<At, Link<'a>>,
    answers: BTreeMap<At, Part<'a>>,
}

impl<'a> Pairs<'a> {
    /// Matches every answer of the thread, by position and then by id, as the cycles do.
    pub(super) fn read(thread: &'a Thread, authors: &Authors<'a>) -> Self {
        let mut reader = Reader {
            authors,
            pairs: Self::default(),
            waiting: BTreeMap::new(),
            by_id: BTreeMap::new(),
        };
        for (turn, view) in thread.turns().enumerate() {
            match view {
                Turn::User(user) => {
                    for (part, view) in user.parts().enumerate() {
                        reader.answer_from_user((turn, None, part), view);
                    }
                }
                Turn::Agent(agent) => reader.agent_turn(turn, agent),
                Turn::Unknown(_) => {}
            }
        }
        reader.pairs
    }

    /// The relation of the part at a position to another one.
    pub(super) fn link(&self, at: At) -> Option<Link<'a>> {
        self.links.get(&at).copied()
    }

    /// The answer to the call at a place.
    pub(super) fn answer(&self, call: At) -> Option<Part<'a>> {
        self.answers.get(&call).copied()
    }
}

/// The calls of one response by id, with the foreign agents that made them.
type Open<'a> = BTreeMap<&'a str, (At, Option<&'a str>)>;

struct Reader<'a, 'r> {
    authors: &'r Authors<'a>,
    pairs: Pairs<'a>,
    /// The calls of the last response of each agent whose turn has ended.
    waiting: BTreeMap<Option<&'a str>, Open<'a>>,
    /// The open calls by id and turn, to find a user's answer without a search.
    by_id: BTreeMap<(&'a str, At), Option<&'a str>>,
}

impl<'a> Reader<'a, '_> {
    fn agent_turn(&mut self, turn: usize, agent: AgentTurn<'a>) {
        let mut open = self.waiting.remove(&agent.agent_id()).unwrap_or_default();
        for (id, (at, _)) in &open {
            self.by_id.remove(&(*id, *at));
        }
        for (message, view) in agent.messages().enumerate() {
            match view {
                Message::Response(response) => {
                    let agent_id = response.agent_id().or(agent.agent_id());
                    let foreign = self.authors.foreign_name(agent_id);
                    open.clear();
                    for (part, view) in response.parts().enumerate() {
                        self.call(&mut open, (turn, Some(message), part), view, foreign);
                    }
                }
                Message::Request(request) => {
                    for (part, view) in request.parts().enumerate() {
                        let call = view.answers().and_then(|id| open.get(id)).copied();
                        self.answer((turn, Some(message), part), view, call);
                    }
                }
                Message::System(_) | Message::Unknown(_) => {}
            }
        }
        let calls = open
            .iter()
            .map(|(id, (at, foreign))| ((*id, *at), *foreign));
        self.by_id.extend(calls);
        self.waiting.insert(agent.agent_id(), open);
    }

    fn call(&mut self, open: &mut Open<'a>, at: At, part: Part<'a>, foreign: Option<&'a str>) {
        if !is_call(part) {
            return;
        }
        let link = match part.tool_call_id() {
            Some(id) if open.contains_key(id) => Link::RepeatedCall,
            Some(id) => {
                open.insert(id, (at, foreign));
                Link::Call(foreign)
            }
            None => Link::Call(foreign),
        };
        self.pairs.links.insert(at, link);
    }

    /// A user may answer the calls of the turns before, the latest first.
    fn answer_from_user(&mut self, at: At, part: Part<'a>) {
        let call = part.answers().and_then(|id| {
            let last = (usize::MAX, Some(usize::MAX), usize::MAX);
            let mut calls = self.by_id.range((id, (0, None, 0))..=(id, last));
            calls.next_back().map(|((_, at), foreign)| (*at, *foreign))
        });
        self.answer(at, part, call);
    }

    fn answer(&mut self, at: At, part: Part<'a>, call: Option<(At, Option<&'a str>)>) {
        let link = match call {
            Some((call, _)) if self.pairs.answers.contains_key(&call) => Link::RepeatedAnswer,
            Some((call, foreign)) => {
                self.pairs.answers.insert(call, part);
                Link::Answer(call, foreign)
            }
            None if is_orphan(part) => Link::Orphan,
            None => return,
        };
        self.pairs.links.insert(at, link);
    }
}

/// Whether an answer without a call is an error. A retry without a tool name asks for another
/// output and answers nothing.
fn is_orphan(part: Part<'_>) -> bool {
    let names_tool = part.tool_name().is_some();
    part.kind() == PartKind::ToolReturn || (part.kind() == PartKind::RetryPrompt && names_tool)
}

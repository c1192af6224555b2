//! Matches answers to calls, turn by turn.

use super::{OpenToolCall, is_call};
use crate::document::{AgentTurn, CompletionStatus, Message, Part, PartKind, Thread, Turn};
use std::collections::BTreeMap;

/// The reason why a call has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It is pending, which the protocol allows.
    Pending,
    /// The agent answered again without one.
    Overtaken,
    /// The turn was interrupted.
    Interrupted,
    /// Another agent's turn followed, so it can't be answered any more.
    NotLast,
}

/// A mismatch between calls and answers.
#[derive(Clone, Debug)]
pub(crate) enum Finding<'a> {
    /// A call without an answer.
    Unanswered {
        /// The call.
        call: OpenToolCall<'a>,
        /// The reason why it has none.
        reason: Reason,
    },
    /// An answer that matches no open call.
    Orphan { place: CallSite, id: &'a str },
    /// An id that is called or answered twice in one cycle.
    Repeated { place: CallSite, id: &'a str },
    /// A call or answer at a position that does not allow it.
    Misplaced { place: CallSite, is_call: bool },
    /// An answer that names another tool than its call.
    Renamed { place: CallSite, name: &'a str },
}

/// The position of a part; `message` is `None` in a user's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallSite {
    pub(crate) turn: usize,
    pub(crate) message: Option<usize>,
    pub(crate) part: usize,
}

/// The calls of one response and which of them were answered.
#[derive(Default)]
struct Open<'a> {
    calls: Vec<(OpenToolCall<'a>, bool)>,
    /// The first call of each id.
    by_id: BTreeMap<&'a str, usize>,
}

/// Reads a thread from front to back and collects mismatches.
#[derive(Default)]
pub(crate) struct Ledger<'a> {
    /// The calls left open by each agent's last turn, in the order of those turns.
    waiting: BTreeMap<Option<&'a str>, Open<'a>>,
    findings: Vec<Finding<'a>>,
}

impl<'a> Ledger<'a> {
    /// Matches every answer of the thread.
    pub(crate) fn read(thread: &'a Thread) -> Vec<Finding<'a>> {
        let mut ledger = Self::default();
        let mut last = None;
        for (place, turn) in thread.turns().enumerate() {
            match turn {
                Turn::User(user) => {
                    for (part, view) in user.parts().enumerate() {
                        let place = CallSite {
                            turn: place,
                            message: None,
                            part,
                        };
                        ledger.no_call(place, view);
                        ledger.answer_from_user(place, view);
                    }
                }
                Turn::Agent(agent) => {
                    ledger.agent_turn(place, agent);
                    last = Some(place);
                }
                Turn::Unknown(_) => {}
            }
        }
        for open in std::mem::take(&mut ledger.waiting).into_values() {
            let is_last = open.calls.first().map(|(call, _)| call.turn) == last;
            ledger.close_calls(
                &open,
                if is_last {
                    Reason::Pending
                } else {
                    Reason::NotLast
                },
            );
        }
        ledger.findings
    }

    fn agent_turn(&mut self, turn: usize, agent: AgentTurn<'a>) {
        let agent_id = agent.agent_id();
        let interrupted = agent.completion_status() == Some(CompletionStatus::Interrupted);
        let mut open = self.waiting.remove(&agent_id).unwrap_or_default();
        let mut responded = false;
        for (message, view) in agent.messages().enumerate() {
            match view {
                Message::Response(response) => {
                    self.close_calls(&std::mem::take(&mut open), Reason::Overtaken);
                    responded = true;
                    for (part, view) in response.parts().enumerate() {
                        if is_call(view) {
                            let call = OpenToolCall {
                                turn,
                                message,
                                part,
                                agent_id,
                                call: view,
                            };
                            self.call(&mut open, call);
                        } else {
                            self.no_answer(turn, message, part, view);
                        }
                    }
                }
                Message::Request(request) => {
                    for (part, view) in request.parts().enumerate() {
                        let place = CallSite {
                            turn,
                            message: Some(message),
                            part,
                        };
                        self.no_call(place, view);
                        if !self.answer(&mut open, place, view) {
                            self.orphan(place, view);
                        }
                    }
                }
                Message::System(_) | Message::Unknown(_) => {}
            }
        }
        if responded && interrupted {
            self.close_calls(&open, Reason::Interrupted);
        } else if open.calls.iter().any(|(_, answered)| !answered) {
            self.waiting.insert(agent_id, open);
        }
    }

    fn call(&mut self, open: &mut Open<'a>, call: OpenToolCall<'a>) {
        let place = open.calls.len();
        open.calls.push((call, false));
        let Some(id) = call.call.tool_call_id() else {
            return;
        };
        if open.by_id.contains_key(id) {
            let place = CallSite {
                turn: call.turn,
                message: Some(call.message),
                part: call.part,
            };
            self.findings.push(Finding::Repeated { place, id });
        } else {
            open.by_id.insert(id, place);
        }
    }

    /// Marks the call that a part answers; returns whether the part is settled.
    fn answer(&mut self, open: &mut Open<'a>, place: CallSite, part: Part<'a>) -> bool {
        let Some(id) = part.answers() else {
            return true;
        };
        let first = open
            .by_id
            .get(id)
            .and_then(|first| open.calls.get_mut(*first));
        let Some((call, answered)) = first else {
            return false;
        };
        if std::mem::replace(answered, true) {
            self.findings.push(Finding::Repeated { place, id });
        }
        if let Some(name) = part
            .tool_name()
            .filter(|name| call.call.tool_name() != Some(name))
        {
            self.findings.push(Finding::Renamed { place, name });
        }
        true
    }

    /// A user's turn may carry the answers to the turn before it, latest agent first.
    fn answer_from_user(&mut self, place: CallSite, part: Part<'a>) {
        let mut waiting: Vec<_> = std::mem::take(&mut self.waiting).into_iter().collect();
        waiting.sort_by_key(|(_, open)| {
            std::cmp::Reverse(open.calls.first().map(|(call, _)| call.turn))
        });
        let settled = waiting
            .iter_mut()
            .any(|(_, open)| self.answer(open, place, part));
        self.waiting.extend(waiting);
        if !settled {
            self.orphan(place, part);
        }
    }

    /// Reports a call outside of a response: only models make calls, so nothing can answer it.
    fn no_call(&mut self, place: CallSite, part: Part<'a>) {
        if is_call(part) {
            let is_call = true;
            self.findings.push(Finding::Misplaced { place, is_call });
        }
    }

    /// Reports an answer in a response: a model does not answer its own calls. Provider-side tools
    /// use other kinds.
    fn no_answer(&mut self, turn: usize, message: usize, part: usize, view: Part<'a>) {
        let answers = match view.kind() {
            PartKind::ToolReturn => true,
            PartKind::RetryPrompt => view.tool_call_id().is_some() && view.tool_name().is_some(),
            PartKind::UserPrompt
            | PartKind::Text
            | PartKind::Thinking
            | PartKind::ToolCall
            | PartKind::File
            | PartKind::SystemPrompt
            | PartKind::Other(_)
            | PartKind::Missing => false,
        };
        if answers {
            let place = CallSite {
                turn,
                message: Some(message),
                part,
            };
            let is_call = false;
            self.findings.push(Finding::Misplaced { place, is_call });
        }
    }

    /// Reports an answer without a call. A retry without a tool name asks for another output and
    /// answers nothing.
    fn orphan(&mut self, place: CallSite, part: Part<'a>) {
        if let (Some(id), Some(_)) = (part.answers(), part.tool_name()) {
            self.findings.push(Finding::Orphan { place, id });
        }
    }

    /// Records the unanswered calls. The answer to the first call with an id counts for its
    /// repetitions.
    fn close_calls(&mut self, open: &Open<'a>, reason: Reason) {
        let answered = |call: &OpenToolCall<'a>| {
            let first = call.call.tool_call_id().and_then(|id| open.by_id.get(id));
            first
                .and_then(|first| open.calls.get(*first))
                .is_some_and(|(_, answered)| *answered)
        };
        for (call, _) in &open.calls {
            if !answered(call) {
                self.findings.push(Finding::Unanswered {
                    call: *call,
                    reason,
                });
            }
        }
    }
}

//! Cycles of request, response and tool answers (0.0.4 "The Core Invariant").
//!
//! Calls and answers are matched by position and then by id: an answer belongs to the response
//! before it, so a later cycle may use the id again. A `tool-return` or a `retry-prompt` with the
//! id of a call answers it. A response is complete when all of its calls are answered (ruling 3).

mod ledger;

pub(crate) use ledger::{CallSite, Finding, Ledger, Reason};

use crate::document::{CompletionStatus, Message, Part, PartKind, Thread};
use crate::json::Json;
use crate::path::Path;
use std::collections::BTreeSet;

/// Removes the messages that a turn with this `ending` must not contain.
///
/// Requests, system messages and unknown messages stay. A response stays if it has a part and each
/// of its tool calls is answered before the next response. Otherwise it is removed with its
/// answers, and so is a request that becomes empty. In a complete turn, empty responses stay, and
/// so does the last response: its unanswered calls are pending (ruling 2).
#[must_use]
pub fn complete_cycles(messages: Vec<Json>, ending: CompletionStatus) -> Vec<Json> {
    let verdicts = verdicts(&messages, ending);
    let mut kept = Vec::with_capacity(messages.len());
    for (mut message, verdict) in messages.into_iter().zip(verdicts) {
        match verdict {
            Verdict::Keep => kept.push(message),
            Verdict::Drop => {}
            Verdict::KeepWithout(answers) => {
                if strip(&mut message, &answers) {
                    kept.push(message);
                }
            }
        }
    }
    kept
}

/// The decision about a message.
enum Verdict {
    Keep,
    Drop,
    /// Keep it without the parts at these places.
    KeepWithout(BTreeSet<usize>),
}

fn verdicts(messages: &[Json], ending: CompletionStatus) -> Vec<Verdict> {
    let complete = ending == CompletionStatus::Complete;
    let last = messages
        .iter()
        .rposition(|json| matches!(Message::new(json), Message::Response(_)));
    let mut dropped = BTreeSet::new();
    let mut verdicts = Vec::with_capacity(messages.len());
    for (place, json) in messages.iter().enumerate() {
        let verdict = match Message::new(json) {
            Message::Response(response) => {
                let calls: BTreeSet<&str> = response.parts().filter_map(call_id).collect();
                let unnamed = response
                    .parts()
                    .any(|part| is_call(part) && part.tool_call_id().is_none());
                let answered = !unnamed && {
                    let after = messages.get(place + 1..).unwrap_or_default();
                    let answers = answers_until_response(after);
                    calls.is_subset(&answers)
                };
                let pending = complete && last == Some(place);
                let said = complete || response.parts().len() > 0;
                if pending || (answered && said) {
                    dropped.retain(|id| !calls.contains(id));
                    Verdict::Keep
                } else {
                    dropped.extend(calls);
                    Verdict::Drop
                }
            }
            Message::Request(request) => {
                let parts = request.parts().enumerate();
                let gone = |part: Part<'_>| part.answers().is_some_and(|id| dropped.contains(id));
                let gone: BTreeSet<usize> = parts
                    .filter(|(_, part)| gone(*part))
                    .map(|(n, _)| n)
                    .collect();
                if gone.is_empty() {
                    Verdict::Keep
                } else {
                    Verdict::KeepWithout(gone)
                }
            }
            Message::System(_) | Message::Unknown(_) => Verdict::Keep,
        };
        verdicts.push(verdict);
    }
    verdicts
}

/// The ids answered before the next response.
fn answers_until_response(messages: &[Json]) -> BTreeSet<&str> {
    let mut ids = BTreeSet::new();
    for json in messages {
        match Message::new(json) {
            Message::Response(_) => break,
            Message::Request(request) => ids.extend(request.parts().filter_map(Part::answers)),
            Message::System(_) | Message::Unknown(_) => {}
        }
    }
    ids
}

/// Removes parts from a request; returns whether any remain.
fn strip(request: &mut Json, answers: &BTreeSet<usize>) -> bool {
    let parts = request
        .as_object_mut()
        .and_then(|object| object.get_mut("parts"));
    let Some(parts) = parts.and_then(Json::as_array_mut) else {
        return true;
    };
    let mut place = 0;
    parts.retain(|_| {
        place += 1;
        !answers.contains(&(place - 1))
    });
    !parts.is_empty()
}

pub(crate) fn is_call(part: Part<'_>) -> bool {
    part.kind() == PartKind::ToolCall
}

fn call_id(part: Part<'_>) -> Option<&str> {
    if is_call(part) {
        part.tool_call_id()
    } else {
        None
    }
}

/// A tool call without an answer.
#[derive(Clone, Copy, Debug)]
pub struct OpenToolCall<'a> {
    /// The place of its turn.
    pub turn: usize,
    /// The place of its message in the turn.
    pub message: usize,
    /// The place of its part in the message.
    pub part: usize,
    /// The agent of the turn.
    pub agent_id: Option<&'a str>,
    /// The call itself.
    pub call: Part<'a>,
}

impl OpenToolCall<'_> {
    /// The JSON Pointer of the call.
    #[must_use]
    pub fn pointer(&self) -> String {
        Path::ROOT
            .key("turns")
            .index(self.turn)
            .key("messages")
            .index(self.message)
            .key("parts")
            .index(self.part)
            .to_pointer()
    }
}

/// The tool calls without an answer at the end of the thread (2.0.0 "Pending Tool States Are
/// Implicit"): those of the last response of the last agent turn, unless it was interrupted.
#[must_use]
pub fn pending_tool_calls(thread: &Thread) -> Vec<OpenToolCall<'_>> {
    let findings = Ledger::read(thread).into_iter();
    let pending = findings.filter_map(|finding| match finding {
        Finding::Unanswered {
            call,
            reason: Reason::Pending,
        } => Some(call),
        Finding::Unanswered { .. }
        | Finding::Orphan { .. }
        | Finding::Repeated { .. }
        | Finding::Misplaced { .. }
        | Finding::Renamed { .. } => None,
    });
    let mut pending: Vec<_> = pending.collect();
    pending.sort_by_key(|call| (call.turn, call.message, call.part));
    pending
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(calls: &str) -> String {
        let parts = calls.split_whitespace().map(|id| {
            format!(
                r#"{{"part_kind":"tool-call","tool_name":"t","tool_call_id":"{id}","args":{{}}}}"#
            )
        });
        let text = std::iter::once(r#"{"part_kind":"text","content":"x"}"#.to_owned());
        let parts: Vec<_> = text.chain(parts).collect();
        format!(
            r#"{{"message_type":"response","parts":[{}]}}"#,
            parts.join(",")
        )
    }

    fn answers(ids: &str) -> String {
        let parts: Vec<_> = ids
            .split_whitespace()
            .map(|id| {
                format!(r#"{{"part_kind":"tool-return","tool_name":"t","tool_call_id":"{id}"}}"#)
            })
            .collect();
        format!(
            r#"{{"message_type":"request","parts":[{}]}}"#,
            parts.join(",")
        )
    }

    fn kept(messages: &[String], ending: CompletionStatus) -> Vec<String> {
        let messages = messages
            .iter()
            .map(|text| Json::parse(text).unwrap())
            .collect();
        complete_cycles(messages, ending)
            .iter()
            .map(Json::to_text)
            .collect()
    }

    #[test]
    fn an_interrupted_turn_keeps_only_complete_cycles() {
        let run = [
            response("a b"),
            answers("a b"),
            response("c d"),
            answers("c"),
        ];
        assert_eq!(kept(&run, CompletionStatus::Interrupted), run[..2]);
    }

    #[test]
    fn a_pending_last_response_stays_in_a_complete_turn() {
        let run = [response("a"), answers("a"), response("c d"), answers("c")];
        assert_eq!(kept(&run, CompletionStatus::Complete), run);
    }

    #[test]
    fn an_answer_that_comes_after_the_next_response_is_dropped_with_its_call() {
        let run = [response("a"), response("b"), answers("a b")];
        let expected = [response("b"), answers("b")];
        assert_eq!(kept(&run, CompletionStatus::Interrupted), expected);
    }

    #[test]
    fn an_id_may_be_used_again_in_a_later_cycle() {
        let run = [response("a"), response("a"), answers("a")];
        assert_eq!(kept(&run, CompletionStatus::Interrupted), run[1..]);
    }

    #[test]
    fn an_empty_response_is_dropped_and_an_empty_request_is_kept() {
        let empty = r#"{"message_type":"response","parts":[]}"#.to_owned();
        let run = [answers(""), empty];
        assert_eq!(kept(&run, CompletionStatus::Interrupted), run[..1]);
    }

    #[test]
    fn answers_to_an_earlier_turn_are_kept() {
        let run = [answers("z"), response("")];
        assert_eq!(kept(&run, CompletionStatus::Interrupted), run);
    }

    fn turn(agent: &str, status: &str, messages: &[String]) -> String {
        let messages = messages.join(",");
        format!(
            r#"{{"turn_type":"agent","agent_id":"{agent}","completion_status":"{status}","messages":[{messages}]}}"#
        )
    }

    fn pending(turns: &[String]) -> Vec<String> {
        let thread = Thread::decode(&format!(r#"{{"turns":[{}]}}"#, turns.join(","))).unwrap();
        let calls = pending_tool_calls(&thread);
        calls.iter().map(OpenToolCall::pointer).collect()
    }

    #[test]
    fn calls_without_an_answer_at_the_end_are_pending() {
        let first = turn("a", "complete", &[response("x y"), answers("x")]);
        let at_y = "/turns/0/messages/0/parts/2".to_owned();
        assert_eq!(
            pending(std::slice::from_ref(&first)),
            std::slice::from_ref(&at_y)
        );
        let resumed = turn("a", "complete", &[answers("y"), response("")]);
        assert_eq!(pending(&[first.clone(), resumed]), [""; 0]);
        let user = r#"{"turn_type":"user","parts":[]}"#.to_owned();
        assert_eq!(pending(&[first, user]), [at_y]);
    }

    #[test]
    fn nothing_is_pending_after_an_interruption_or_another_agents_turn() {
        assert_eq!(
            pending(&[turn("a", "interrupted", &[response("x")])]),
            [""; 0]
        );
        let other = turn("b", "complete", &[response("")]);
        assert_eq!(
            pending(&[turn("a", "complete", &[response("x")]), other]),
            [""; 0]
        );
    }
}

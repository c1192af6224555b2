//! Removes and reports the data that a written document must not have.

use super::turns::{complete, interrupted};
use crate::Losses;
use std::collections::{BTreeMap, BTreeSet};
use thread::document::CompletionStatus;
use thread::validate::{Rule, Severity};
use thread::{Json, Object, Profile, Thread, complete_cycles, validate};

/// Maximum number of rounds. Each round removes something, which may reveal further breaches.
const ROUNDS: usize = 32;

/// Makes the turns valid under the rules for writing. It repairs cycles whose calls can't be
/// answered any more (rulings 2 and 15), answers to no call, repeated ids, and members that the
/// protocol does not allow. `places` has the position in the archive of each message of each turn;
/// turns without positions stay unchanged.
pub(super) fn repair(thread: &mut Thread, places: &mut [Option<Vec<String>>], losses: &mut Losses) {
    for _ in 0..ROUNDS {
        let mut found: BTreeMap<usize, Breaches> = BTreeMap::new();
        for violation in validate(thread, Profile::Strict) {
            if violation.severity != Severity::Error {
                continue;
            }
            let mut steps = violation.pointer.split('/').skip(1);
            if steps.next() != Some("turns") {
                continue;
            }
            let turn = steps.next().and_then(|turn| turn.parse().ok());
            let Some(turn) = turn.filter(|turn| matches!(places.get(*turn), Some(Some(_)))) else {
                continue;
            };
            let steps: Vec<&str> = steps.collect();
            found.entry(turn).or_default().note(violation.rule, &steps);
        }
        let turns = thread.root_mut().get_mut("turns");
        let Some(turns) = turns.and_then(Json::as_array_mut) else {
            return;
        };
        if found.is_empty() {
            return;
        }
        for (turn, breaches) in found {
            let turn_object = turns.get_mut(turn).and_then(Json::as_object_mut);
            let places = places.get_mut(turn).and_then(Option::as_mut);
            if let (Some(turn), Some(places)) = (turn_object, places) {
                breaches.mend(turn, places, losses);
            }
        }
    }
}

/// The breaches of one turn.
#[derive(Default)]
struct Breaches {
    /// Some cycle is not complete.
    cycle: bool,
    /// The faulty parts, by message; `None` in a user's turn.
    parts: BTreeMap<Option<usize>, BTreeSet<usize>>,
    /// Members of messages.
    members: BTreeSet<(usize, String)>,
    messages: BTreeSet<usize>,
    /// Members of the turn.
    own: BTreeSet<String>,
}

impl Breaches {
    fn note(&mut self, rule: Rule, steps: &[&str]) {
        let number = |step: &str| step.parse::<usize>().ok();
        match steps {
            _ if rule == Rule::CompleteCycle => self.cycle = true,
            ["messages", message, "parts", part, ..] => {
                if let Some(part) = number(part) {
                    self.parts.entry(number(message)).or_default().insert(part);
                }
            }
            ["messages", message, member, ..] => {
                if let Some(message) = number(message) {
                    self.members.insert((message, (*member).to_owned()));
                }
            }
            ["messages", message] => self.messages.extend(number(message)),
            ["parts", part, ..] => {
                if let Some(part) = number(part) {
                    self.parts.entry(None).or_default().insert(part);
                }
            }
            [member, ..] => {
                self.own.insert((*member).to_owned());
            }
            [] => {}
        }
    }

    fn mend(self, turn: &mut Object, places: &mut Vec<String>, losses: &mut Losses) {
        let place = |places: &[String], message: Option<usize>| {
            places
                .get(message.unwrap_or_default())
                .cloned()
                .unwrap_or_default()
        };
        let mut empty = self.messages;
        for (message, gone) in self.parts.into_iter().rev() {
            let holder = match message {
                Some(message) => message_mut(turn, message),
                None => Some(&mut *turn),
            };
            let parts = holder.and_then(|holder| holder.get_mut("parts"));
            let Some(parts) = parts.and_then(Json::as_array_mut) else {
                continue;
            };
            for _ in gone.range(..parts.len()) {
                losses.push(
                    place(places, message),
                    "a part that fits nothing where it stands",
                );
            }
            take_out(parts, &gone);
            if parts.is_empty() {
                empty.extend(message);
            }
        }
        for (message, member) in self.members {
            let holder = message_mut(turn, message);
            if holder.and_then(|holder| holder.remove(&member)).is_some() {
                let at = place(places, Some(message));
                losses.push(
                    format!("{at}/{member}"),
                    "a value that the protocol does not take",
                );
            }
        }
        for member in self.own {
            if turn.remove(&member).is_some() {
                let at = place(places, None);
                losses.push(
                    format!("{at}/{member}"),
                    "a value that the protocol does not take",
                );
            }
        }
        let is_complete = turn.get_str("completion_status") == Some("complete");
        let messages = turn.get_mut("messages").and_then(Json::as_array_mut);
        let Some(messages) = messages else {
            return;
        };
        let n_placed = messages.len().min(places.len());
        empty.split_off(&n_placed);
        for message in empty.iter().rev() {
            let at = place(places, Some(*message));
            losses.push(at, "a message of which nothing is left");
        }
        take_out(messages, &empty);
        take_out(places, &empty);
        if self.cycle {
            let all = std::mem::take(messages);
            let ended_at = all.last().and_then(|end| end.get("timestamp")?.as_str());
            let ended_at = ended_at.map(str::to_owned);
            let answer = last_response(&all);
            let was_complete = is_complete && has_broken(&all);
            let ending = if was_complete {
                CompletionStatus::Complete
            } else {
                CompletionStatus::Interrupted
            };
            let kept = complete(all, ending, places, losses);
            // What came of the run's last answer decides how the run ended.
            let is_cut = answer.is_some_and(|answer| kept.stays.get(answer) == Some(&false));
            *messages = kept.messages;
            if is_cut && is_complete {
                *turn = cut_short(std::mem::take(turn), ended_at);
            }
        }
    }
}

/// Removes the items at these indexes, in one pass.
fn take_out<T>(items: &mut Vec<T>, gone: &BTreeSet<usize>) {
    let mut place = 0..;
    items.retain(|_| place.next().is_none_or(|place| !gone.contains(&place)));
}

fn message_mut(turn: &mut Object, message: usize) -> Option<&mut Object> {
    let messages = turn.get_mut("messages")?.as_array_mut()?;
    messages.get_mut(message)?.as_object_mut()
}

/// Whether a cycle before the last one is incomplete. Those are removed first: the answers to the
/// last one may still arrive (ruling 2).
fn has_broken(messages: &[Json]) -> bool {
    let kept = complete_cycles(messages.to_vec(), CompletionStatus::Complete);
    kept != messages
}

fn last_response(messages: &[Json]) -> Option<usize> {
    messages
        .iter()
        .rposition(|message| message.get("message_type").and_then(Json::as_str) == Some("response"))
}

/// Marks a turn that counted as complete as interrupted.
fn cut_short(turn: Object, ended_at: Option<String>) -> Object {
    let ended = turn.get_str("completed_at").map(str::to_owned);
    let mut head = Object::new();
    let mut rest = Object::new();
    for (key, value) in turn {
        match &*key {
            "completed_at" | "completion_status" => {}
            "turn_type" | "agent_id" | "started_at" => {
                head.insert(key, value);
            }
            _ => {
                rest.insert(key, value);
            }
        }
    }
    let mut turn = interrupted(head, None, ended.or(ended_at));
    for (key, value) in rest {
        turn.insert(key, value);
    }
    turn
}

//! The step 1.0.0 → 2.0.0: a flat list of actions becomes turns.

use super::draft::TurnDraft;
use super::origin::{Origin, TurnOrigin};
use super::{content, members};
use crate::document::Thread;
use crate::json::{Json, Object};
use crate::versioned::{ChangeKind, Changes, rebuild};
use std::collections::BTreeMap;

/// Replaces the actions by turns, and returns the origin of each turn.
pub(crate) fn to_turns(thread: &mut Thread, changes: &mut Changes) -> Origin {
    let root = thread.root_mut();
    let spare = members::spare(root, "turns");
    let actions = root.get_mut("actions").and_then(Json::as_array_mut);
    let found = actions.is_some();
    let actions = actions.map(std::mem::take).unwrap_or_default();
    let mut builder = Builder::default();
    for (place, action) in ordered(actions, changes) {
        builder.action(place, action);
    }
    let (turns, origins, rest) = builder.finish(changes);
    let mut turns = Some(Json::Array(turns));
    let rest = (!rest.is_empty()).then_some(rest);
    let mut rest = rest.map(|rest| ("actions".into(), Json::Array(rest)));
    rebuild(root, |key, value| match &*key {
        "actions" if found => {
            let turns = turns.take().map(|turns| ("turns".into(), turns));
            [turns, rest.take()]
        }
        "turns" => [Some((spare.clone(), value)), None],
        _ => [Some((key, value)), None],
    });
    if let Some(turns) = turns {
        root.insert("turns", turns);
        if root.contains_key("actions") {
            let what = "it is no list of actions";
            changes.add(ChangeKind::Unchanged, "/actions".to_owned(), what);
        }
    }
    Origin::Actions(origins)
}

/// The actions by `sequence`, with their places; one without a number counts by its position.
pub(crate) fn in_sequence(actions: &[Json]) -> Vec<(usize, &Json)> {
    let mut actions: Vec<_> = actions.iter().enumerate().collect();
    actions.sort_by_key(|(place, action)| number(action).unwrap_or_else(|| position(*place)));
    actions
}

fn number(action: &Json) -> Option<i64> {
    action.get("sequence")?.as_i64()
}

fn position(place: usize) -> i64 {
    i64::try_from(place).unwrap_or(i64::MAX).saturating_add(1)
}

/// The actions by `sequence`, with their indexes in the source; records faults of `sequence`.
fn ordered(actions: Vec<Json>, changes: &mut Changes) -> Vec<(usize, Json)> {
    let mut numbered = Vec::with_capacity(actions.len());
    for (place, action) in actions.into_iter().enumerate() {
        let sequence = action.get("sequence");
        let own = number(&action);
        if own.is_none() && sequence.is_some_and(|sequence| !sequence.is_null()) {
            let what = "`sequence` is no whole number, so the position counts";
            changes.add(ChangeKind::Dropped, pointer(place, "/sequence"), what);
        }
        let key = own.unwrap_or_else(|| position(place));
        numbered.push((key, own.is_some(), place, action));
    }
    numbered.sort_by_key(|(number, ..)| *number);
    let mut former = 0;
    for (number, is_own, place, _) in &numbered {
        if *is_own && *number != former + i64::from(former < i64::MAX) {
            let what = if *number == former {
                format!("`sequence` repeats {number}")
            } else {
                format!("`sequence` goes on with {number} after {former}")
            };
            changes.add(ChangeKind::Dropped, pointer(*place, "/sequence"), what);
        }
        former = *number;
    }
    let places = numbered.into_iter();
    places
        .map(|(_, _, place, action)| (place, action))
        .collect()
}

fn pointer(place: usize, member: &str) -> String {
    format!("/actions/{place}{member}")
}

/// The turns so far.
#[derive(Default)]
struct Builder {
    turns: Vec<Slot>,
    open: Option<TurnDraft>,
    /// Events outside of turns.
    waiting: Vec<(usize, Object)>,
    /// The agent of each call.
    callers: BTreeMap<String, String>,
    last_agent: Option<String>,
    rest: Vec<(usize, Json)>,
}

enum Slot {
    User(usize, Object),
    Agent(TurnDraft),
}

impl Builder {
    fn action(&mut self, place: usize, action: Json) {
        let Json::Object(action) = action else {
            return self.rest.push((place, action));
        };
        let action_type = action.get_str("action_type").map(str::to_owned);
        match action_type.as_deref() {
            Some("user_message") => {
                self.close();
                self.turns.push(Slot::User(place, user_turn(action)));
            }
            Some("assistant_message") => {
                self.spoken(place, action, |turn, action| {
                    turn.push_action(place, action);
                });
            }
            Some("thinking") => self.spoken(place, action, |turn, action| {
                turn.part(place, action, "thinking");
            }),
            Some("tool_call") => self.call(place, action),
            Some("tool_return") => {
                let id = action.get_str("tool_call_id").unwrap_or_default();
                let caller = self.callers.remove(id);
                self.in_turn(place, action, caller, |turn, action| {
                    turn.part(place, action, "tool-return");
                });
            }
            Some(name) if name.starts_with("system.") || action.get_str("agent_id").is_none() => {
                self.event(place, action);
            }
            Some(_) => self.spoken(place, action, |turn, action| turn.whole(place, action)),
            None => self.rest.push((place, action.into())),
        }
    }

    fn call(&mut self, place: usize, action: Object) {
        let id = action.get_str("tool_call_id").map(str::to_owned);
        self.spoken(place, action, |turn, action| {
            turn.part(place, action, "tool-call");
        });
        if let (Some(id), Some(turn)) = (id, &self.open) {
            self.callers.insert(id, turn.agent_id.clone());
        }
    }

    fn spoken(&mut self, place: usize, action: Object, put: impl FnOnce(&mut TurnDraft, Object)) {
        self.in_turn(place, action, None, put);
    }

    /// Adds an action to a turn of its agent: the one it names, the caller, or the last.
    fn in_turn(
        &mut self,
        place: usize,
        action: Object,
        caller: Option<String>,
        put: impl FnOnce(&mut TurnDraft, Object),
    ) {
        let named = action.get_str("agent_id").map(str::to_owned);
        let Some(agent) = named.or(caller).or_else(|| self.last_agent.clone()) else {
            return self.rest.push((place, action.into()));
        };
        if self
            .open
            .as_ref()
            .is_some_and(|open| open.agent_id != agent)
        {
            self.close();
        }
        let timestamp = action.get("timestamp").cloned();
        let waiting = &mut self.waiting;
        let turn = self.open.get_or_insert_with(|| {
            let first = waiting.first().map_or(place, |(first, _)| *first);
            let mut turn = TurnDraft::new(first, &agent, timestamp.as_ref());
            for (place, event) in waiting.drain(..) {
                turn.whole(place, event);
            }
            turn
        });
        put(turn, action);
        turn.until(timestamp.as_ref());
        self.last_agent = Some(agent);
    }

    fn event(&mut self, place: usize, action: Object) {
        match &mut self.open {
            Some(turn) => {
                turn.until(action.get("timestamp"));
                turn.whole(place, action);
            }
            None => self.waiting.push((place, action)),
        }
    }

    fn close(&mut self) {
        self.turns.extend(self.open.take().map(Slot::Agent));
    }

    /// The turns, their origins, and the actions that no turn can hold.
    fn finish(mut self, changes: &mut Changes) -> (Vec<Json>, Vec<TurnOrigin>, Vec<Json>) {
        self.close();
        let last = self.turns.iter_mut().rev().find_map(|slot| match slot {
            Slot::Agent(turn) => Some(turn),
            Slot::User(..) => None,
        });
        if let Some(last) = last {
            for (place, event) in std::mem::take(&mut self.waiting) {
                last.whole(place, event);
            }
        }
        let mut turns = Vec::with_capacity(self.turns.len());
        let mut origins = Vec::with_capacity(self.turns.len());
        for slot in self.turns {
            let (turn, origin) = match slot {
                Slot::User(first, turn) => {
                    let messages = Vec::new();
                    (turn.into(), TurnOrigin { first, messages })
                }
                Slot::Agent(turn) => turn.finish(),
            };
            report(&origin, turns.len(), changes);
            turns.push(turn);
            origins.push(origin);
        }
        let waiting = self.waiting.into_iter();
        self.rest
            .extend(waiting.map(|(place, event)| (place, event.into())));
        for (place, _) in &self.rest {
            let what = "no turn can hold it";
            changes.add(ChangeKind::Unchanged, pointer(*place, ""), what);
        }
        let rest = self.rest.into_iter().map(|(_, action)| action).collect();
        (turns, origins, rest)
    }
}

/// Reports the new positions of a turn's actions, once for each action.
fn report(origin: &TurnOrigin, turn: usize, changes: &mut Changes) {
    let mut moved = |place: usize, to: String| {
        changes.add(
            ChangeKind::Moved,
            pointer(place, ""),
            format!("it is {to} now"),
        );
    };
    if origin.messages.is_empty() {
        moved(origin.first, format!("/turns/{turn}"));
    }
    for (message, places) in origin.messages.iter().enumerate() {
        let mut former = None;
        for (part, place) in places.iter().enumerate() {
            if former.replace(*place) != Some(*place) {
                moved(
                    *place,
                    format!("/turns/{turn}/messages/{message}, part {part},"),
                );
            }
        }
    }
}

/// A user's message as a turn with one prompt.
fn user_turn(mut action: Object) -> Object {
    let attached = action.get("attachments").and_then(Json::as_array);
    let attachments = attached.map(<[Json]>::to_vec).unwrap_or_default();
    if attached.is_some() {
        action.remove("attachments");
    }
    let is_empty = attachments.is_empty() && !action.contains_key("content");
    let renamed = [
        ("action_type", "turn_type"),
        ("timestamp", "submitted_at"),
        ("content", "parts"),
    ];
    let content = action.get("content").cloned();
    let mut turn = members::rewrite(action, &["sequence"], &renamed, &[]);
    turn.insert("turn_type", "user");
    let prompt = Object::new()
        .with("part_kind", "user-prompt")
        .with("content", content::user_content(content, attachments));
    let parts = if is_empty {
        Vec::new()
    } else {
        vec![Json::from(prompt)]
    };
    turn.insert("parts", parts);
    turn
}

//! Turns and messages while actions are put into them.

use super::content;
use super::members::{self, rewrite, spare};
use super::origin::TurnOrigin;
use crate::json::{Json, Object};

/// A turn of an agent.
pub(super) struct TurnDraft {
    first: usize,
    pub(super) agent_id: String,
    started_at: Option<Json>,
    completed_at: Option<Json>,
    messages: Vec<Draft>,
    /// The place of the message that the next part may go into.
    open: Option<usize>,
}

enum Draft {
    Model(ModelDraft),
    /// A message that is one action.
    Whole(usize, Object),
}

/// A message from or to the model.
struct ModelDraft {
    is_response: bool,
    timestamp: Option<Json>,
    members: Object,
    parts: Vec<(usize, Object)>,
    /// Whether a message of the agent is in it.
    said: bool,
    /// Whether a call is in it, which nothing that follows can have answered.
    called: bool,
}

impl ModelDraft {
    fn new(is_response: bool, timestamp: Option<Json>) -> Self {
        Self {
            is_response,
            timestamp,
            members: Object::new(),
            parts: Vec::new(),
            said: false,
            called: false,
        }
    }
}

impl TurnDraft {
    pub(super) fn new(first: usize, agent_id: &str, started_at: Option<&Json>) -> Self {
        Self {
            first,
            agent_id: agent_id.to_owned(),
            started_at: started_at.cloned(),
            completed_at: None,
            messages: Vec::new(),
            open: None,
        }
    }

    /// Adds a message that is one action.
    pub(super) fn whole(&mut self, place: usize, action: Object) {
        let message = members::message(action);
        self.messages.push(Draft::Whole(place, message));
    }

    /// Extends the run's duration to the time of an action.
    pub(super) fn until(&mut self, timestamp: Option<&Json>) {
        if timestamp.is_some() {
            self.completed_at = timestamp.cloned();
        }
    }

    /// Adds a thought, a call or a return.
    pub(super) fn part(&mut self, place: usize, action: Object, kind: &str) {
        let (is_call, is_return) = (kind == "tool-call", kind == "tool-return");
        let timestamp = action.get("timestamp").cloned();
        let Some(message) = self.message(!is_return, is_call, timestamp) else {
            return;
        };
        message.called |= is_call;
        let part = members::part(action, kind, message.timestamp.as_ref());
        message.parts.push((place, part));
    }

    /// Adds an agent's message.
    pub(super) fn push_action(&mut self, place: usize, mut action: Object) {
        let timestamp = action.get("timestamp").cloned();
        let Some(message) = self.message(true, false, timestamp) else {
            return;
        };
        message.said = true;
        let mut parts = content::parts(action.remove("content"));
        let mut dropped = vec!["action_type", "sequence"];
        if action.get_str("agent_id").is_some() {
            dropped.push("agent_id");
        }
        if action.get("timestamp") == message.timestamp.as_ref() {
            dropped.push("timestamp");
        }
        let reserved = ["message_type", "agent_id", "parts"];
        for (key, value) in rewrite(action, &dropped, &[], &reserved) {
            let taken = *key == *"timestamp" || message.members.contains_key(&key);
            match parts.first_mut() {
                _ if !taken => message.members.insert(key, value),
                Some(part) if !part.contains_key(&key) => part.insert(key, value),
                _ => message.members.insert(spare(&message.members, &key), value),
            };
        }
        message
            .parts
            .extend(parts.into_iter().map(|part| (place, part)));
    }

    /// The message for the next part; starts a new one if needed.
    fn message(
        &mut self,
        is_response: bool,
        is_call: bool,
        timestamp: Option<Json>,
    ) -> Option<&mut ModelDraft> {
        let open = self.open.and_then(|open| self.messages.get(open));
        let goes_on = match open {
            Some(Draft::Model(open)) => {
                open.is_response == is_response && (is_call || open.called || !open.said)
            }
            Some(Draft::Whole(..)) | None => false,
        };
        if !goes_on {
            self.open = Some(self.messages.len());
            let message = ModelDraft::new(is_response, timestamp);
            self.messages.push(Draft::Model(message));
        }
        match self.open.and_then(|open| self.messages.get_mut(open)) {
            Some(Draft::Model(message)) => Some(message),
            Some(Draft::Whole(..)) | None => None,
        }
    }

    /// The turn, and its origin.
    pub(super) fn finish(self) -> (Json, TurnOrigin) {
        let mut origin = TurnOrigin {
            first: self.first,
            messages: Vec::with_capacity(self.messages.len()),
        };
        let mut messages = Vec::with_capacity(self.messages.len());
        for draft in self.messages {
            let (message, places) = match draft {
                Draft::Whole(place, message) => (message, vec![place]),
                Draft::Model(message) => message.finish(&self.agent_id),
            };
            messages.push(Json::Object(message));
            origin.messages.push(places);
        }
        let turn = Object::new()
            .with("turn_type", "agent")
            .with("agent_id", self.agent_id)
            .with_some("started_at", self.started_at)
            .with_some("completed_at", self.completed_at)
            .with("messages", messages);
        (turn.into(), origin)
    }
}

impl ModelDraft {
    fn finish(mut self, agent_id: &str) -> (Object, Vec<usize>) {
        self.settle_usage();
        let kind = if self.is_response {
            "response"
        } else {
            "request"
        };
        let mut message = Object::new()
            .with("message_type", kind)
            .with_some("timestamp", self.timestamp)
            .with("agent_id", agent_id);
        for (key, value) in self.members {
            message.insert(key, value);
        }
        let mut places = Vec::with_capacity(self.parts.len());
        let mut parts = Vec::with_capacity(self.parts.len());
        for (place, part) in self.parts {
            places.push(place);
            parts.push(Json::Object(part));
        }
        (message.with("parts", parts), places)
    }

    /// Moves the usage of a single thought to the response if the response has none. The usage of
    /// several thoughts stays on them.
    fn settle_usage(&mut self) {
        let usages = self.parts.iter_mut().filter(|(_, part)| {
            part.get_str("part_kind") == Some("thinking")
                && part.get("usage").and_then(Json::as_object).is_some()
        });
        let mut usages: Vec<_> = usages.map(|(_, part)| part).collect();
        let [part] = usages.as_mut_slice() else {
            return;
        };
        let whole = match self.members.get("usage") {
            None => Object::new(),
            Some(Json::Object(usage)) => usage.clone(),
            Some(_) => return,
        };
        let thought = part.get("usage").and_then(Json::as_object);
        if thought.is_none_or(|thought| thought.keys().any(|key| whole.contains_key(key))) {
            return;
        }
        let thought = part.remove("usage").and_then(Json::into_object);
        let usage: Object = whole
            .into_iter()
            .chain(thought.into_iter().flatten())
            .collect();
        self.members.insert("usage", usage);
    }
}

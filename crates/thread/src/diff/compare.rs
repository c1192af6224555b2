//! Comparison: walks two documents in parallel and records the differences.

use super::location::{Location, MeaningHash};
use super::sequence::{Pairing, pairings};
use super::values::{object, reordered, value};
use super::{DiffChange, DiffKind, Level, MemberChange};
use crate::canonical::CanonicalOptions;
use crate::document::{AgentConfig, Message, Part, Thread, Tier, Turn, Version};
use crate::json::{Json, Object};
use crate::path::{Step, pointer};

/// Everything that is different between two documents.
pub(super) fn compare(from: &Thread, to: &Thread, options: CanonicalOptions) -> Vec<DiffChange> {
    if from == to {
        return Vec::new();
    }
    let from = Document::new(from, options);
    let to = Document::new(to, options);
    Compare { from, to }.root()
}

/// One of the documents.
struct Document<'d> {
    thread: &'d Thread,
    version: Version,
    options: CanonicalOptions,
}

/// Both documents.
struct Compare<'d> {
    from: Document<'d>,
    to: Document<'d>,
}

impl<'d> Document<'d> {
    fn new(thread: &'d Thread, options: CanonicalOptions) -> Self {
        let version = thread.version();
        Self {
            thread,
            version,
            options,
        }
    }

    /// Whether an item is telemetry that the canonical form omits.
    fn leaves_out(&self, level: Level, item: &Json) -> bool {
        level == Level::Message
            && !self.options.keep_sys
            && matches!(Message::new(item), Message::System(event)
                if event.event_type().is_some_and(|name| Tier::of(name, &self.version) == Tier::System))
    }

    fn meaning(&self, level: Level, place: &Location<'_>, item: &Json) -> Option<MeaningHash> {
        if self.leaves_out(level, item) {
            return None;
        }
        let mut item = item.clone();
        if level == Level::Turn
            && let Some(turn) = item.as_object_mut()
            && let Some(messages) = turn.get_mut("messages").and_then(Json::as_array_mut)
        {
            messages.retain(|message| !self.leaves_out(Level::Message, message));
        }
        place.meaning(Some(item))
    }

    fn removed(&self, level: Level, pointer: String, at: usize, item: &Json) -> DiffChange {
        DiffChange {
            level,
            label: self.label(level, item),
            from: Some(pointer),
            to: None,
            semantic: !self.leaves_out(level, item),
            kind: DiffKind::Removed {
                at,
                value: item.clone(),
            },
        }
    }

    fn added(&self, level: Level, pointer: String, at: usize, item: &Json) -> DiffChange {
        DiffChange {
            level,
            label: self.label(level, item),
            from: None,
            to: Some(pointer),
            semantic: !self.leaves_out(level, item),
            kind: DiffKind::Added {
                at,
                value: item.clone(),
            },
        }
    }

    /// The label of an item for people.
    fn label(&self, level: Level, item: &Json) -> String {
        match level {
            Level::Root => String::new(),
            Level::Agent => {
                let name = item.get("agent_name").and_then(Json::as_str);
                name.unwrap_or_default().to_owned()
            }
            Level::Turn => match Turn::new(item) {
                Turn::User(_) => "user".to_owned(),
                Turn::Agent(turn) => {
                    let id = turn.agent_id().unwrap_or_default();
                    let config = self.thread.agent(id);
                    let name = config.and_then(AgentConfig::agent_name);
                    format!("agent {}", name.unwrap_or(id))
                }
                Turn::Unknown(json) => tag(json, "turn_type"),
            },
            Level::Message => match Message::new(item) {
                Message::System(event) => {
                    format!("system {}", event.event_type().unwrap_or_default())
                }
                Message::Request(_) | Message::Response(_) | Message::Unknown(_) => {
                    tag(item, "message_type")
                }
            },
            Level::Part => {
                let kind = tag(item, "part_kind");
                match Part::new(item).tool_name() {
                    Some(tool) => format!("{kind} {tool}"),
                    None => kind,
                }
            }
        }
    }
}

fn tag(item: &Json, key: &str) -> String {
    let tag = item.get(key).and_then(Json::as_str);
    tag.unwrap_or(item.type_name()).to_owned()
}

impl Compare<'_> {
    fn root(&self) -> Vec<DiffChange> {
        let (from, to) = (self.from.thread.root(), self.to.thread.root());
        let mut members = Vec::new();
        let mut changes = self.agents(from, to, &mut members);
        changes.extend(self.sequences(Level::Root, &Location::ROOT, ["", ""], from, to));
        let apart =
            |key: &str| is_registry(from, to, key) || is_sequence(Level::Root, from, to, key);
        object(&Location::ROOT, "", from, to, &apart, &mut members);
        if !members.is_empty() {
            let root = DiffChange {
                level: Level::Root,
                label: String::new(),
                from: Some(String::new()),
                to: Some(String::new()),
                semantic: members.iter().any(|member| member.semantic),
                kind: DiffKind::Changed {
                    members,
                    inner: Vec::new(),
                },
            };
            changes.insert(0, root);
        }
        changes
    }

    /// Compares the registries; their order of keys goes with the members of the root.
    fn agents(
        &self,
        from: &Object,
        to: &Object,
        members: &mut Vec<MemberChange>,
    ) -> Vec<DiffChange> {
        let registry = |root| Object::get(root, "agents").and_then(Json::as_object);
        let (Some(from), Some(to)) = (registry(from), registry(to)) else {
            return Vec::new();
        };
        let above = Object::new();
        let place = Location::ROOT.key(&above, "agents");
        let mut changes = Vec::new();
        for (at, (id, config)) in from.iter().enumerate() {
            let pointer = pointer([Step::Key("agents"), Step::Key(id)]);
            match to.get(id) {
                Some(other) => {
                    let pointers = [pointer.clone(), pointer];
                    let place = place.key(&above, id);
                    changes.extend(self.pair(Level::Agent, &place, pointers, config, other));
                }
                None => changes.push(self.from.removed(Level::Agent, pointer, at, config)),
            }
        }
        for (at, (id, config)) in to.iter().enumerate() {
            if !from.contains_key(id) {
                let pointer = pointer([Step::Key("agents"), Step::Key(id)]);
                changes.push(self.to.added(Level::Agent, pointer, at, config));
            }
        }
        reordered("/agents", from, to, members);
        changes
    }

    /// Compares the sequences that something of a level holds.
    fn sequences(
        &self,
        level: Level,
        place: &Location<'_>,
        pointers: [&str; 2],
        from: &Object,
        to: &Object,
    ) -> Vec<DiffChange> {
        let mut changes = Vec::new();
        for (key, level) in level.sequences() {
            let items = |object| Object::get(object, key).and_then(Json::as_array);
            if let (Some(one), Some(other)) = (items(from), items(to)) {
                let pointers = pointers.map(|above| format!("{above}/{key}"));
                let place = place.key(from, key);
                self.sequence(*level, &place, &pointers, [one, other], &mut changes);
            }
        }
        changes
    }

    fn sequence(
        &self,
        level: Level,
        place: &Location<'_>,
        [above_from, above_to]: &[String; 2],
        [from, to]: [&[Json]; 2],
        changes: &mut Vec<DiffChange>,
    ) {
        if from == to {
            return;
        }
        let item = place.index(0);
        let of_from = |json: &Json| self.from.meaning(level, &item, json);
        let of_to = |json: &Json| self.to.meaning(level, &item, json);
        for pairing in pairings(from, to, [&of_from, &of_to]) {
            match pairing {
                Pairing::From(at) => {
                    let removed = |item| {
                        let pointer = format!("{above_from}/{at}");
                        self.from.removed(level, pointer, at, item)
                    };
                    changes.extend(from.get(at).map(removed));
                }
                Pairing::To(at) => {
                    let added = |item| {
                        let pointer = format!("{above_to}/{at}");
                        self.to.added(level, pointer, at, item)
                    };
                    changes.extend(to.get(at).map(added));
                }
                Pairing::Both(i, j) => {
                    if let (Some(one), Some(other)) = (from.get(i), to.get(j))
                        && one != other
                    {
                        let pointers = [format!("{above_from}/{i}"), format!("{above_to}/{j}")];
                        changes.extend(self.pair(level, &item, pointers, one, other));
                    }
                }
            }
        }
    }

    /// Compares an agent, turn, message or part with its new version.
    fn pair(
        &self,
        level: Level,
        place: &Location<'_>,
        pointers: [String; 2],
        from: &Json,
        to: &Json,
    ) -> Option<DiffChange> {
        let mut members = Vec::new();
        let mut inner = Vec::new();
        if let (Some(from), Some(to)) = (from.as_object(), to.as_object()) {
            let [above_from, above_to] = &pointers;
            inner = self.sequences(level, place, [above_from, above_to], from, to);
            let apart = |key: &str| is_sequence(level, from, to, key);
            object(place, "", from, to, &apart, &mut members);
        } else {
            value(place, "", from, to, &mut members);
        }
        if members.is_empty() && inner.is_empty() {
            return None;
        }
        if self.from.leaves_out(level, from) && self.to.leaves_out(level, to) {
            for member in &mut members {
                member.semantic = false;
            }
            inner.iter_mut().for_each(mean_nothing);
        }
        let [pointer_from, pointer_to] = pointers;
        let semantic = members.iter().any(|member| member.semantic)
            || inner.iter().any(|change| change.semantic);
        Some(DiffChange {
            level,
            label: self.to.label(level, to),
            from: Some(pointer_from),
            to: Some(pointer_to),
            semantic,
            kind: DiffKind::Changed { members, inner },
        })
    }
}

/// Marks the change of a part as not semantic, because the canonical form omits its message.
fn mean_nothing(change: &mut DiffChange) {
    change.semantic = false;
    if let DiffKind::Changed { members, .. } = &mut change.kind {
        for member in members {
            member.semantic = false;
        }
    }
}

fn is_registry(from: &Object, to: &Object, key: &str) -> bool {
    let is_object = |root: &Object| root.get(key).is_some_and(|json| json.as_object().is_some());
    key == "agents" && is_object(from) && is_object(to)
}

fn is_sequence(level: Level, from: &Object, to: &Object, key: &str) -> bool {
    let is_array = |object: &Object| {
        object
            .get(key)
            .is_some_and(|json| json.as_array().is_some())
    };
    level.sequences().iter().any(|(name, _)| *name == key) && is_array(from) && is_array(to)
}

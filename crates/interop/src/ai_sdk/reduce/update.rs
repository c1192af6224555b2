//! The effect of one chunk on the part of a call.

use super::parts::{CallKind, Parts};
use crate::ai_sdk::chunk::{Major, some, text};
use thread::{Json, Object};

/// The change of a field.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// It stays.
    Keep,
    /// It is set, or removed.
    To(Option<Json>),
}

/// The effect of one chunk on the part of a call. A field that it does not name is removed, or stays
/// if clients retain it.
#[derive(Clone, Debug)]
pub(super) struct Update {
    pub(super) state: &'static str,
    /// The tool's name, where it may be another than before.
    pub(super) name: Option<String>,
    pub(super) input: Change,
    pub(super) raw_input: Change,
    pub(super) encoding: Option<Json>,
    pub(super) output: Option<Json>,
    pub(super) error: Option<Json>,
    pub(super) preliminary: Option<Json>,
    pub(super) executed: Option<Json>,
    pub(super) title: Option<Json>,
    pub(super) tool_metadata: Option<Json>,
    pub(super) metadata: Option<Json>,
}

impl Update {
    /// An update to `state`, with the fields that nearly all chunks may have.
    pub(super) fn to(state: &'static str, chunk: &Json, major: Major) -> Self {
        let from_6 = |key| some(chunk, key).filter(|_| major > Major::V5).cloned();
        let name = some(chunk, "toolName").and_then(Json::as_str);
        Self {
            state,
            name: name.map(str::to_owned),
            input: Change::To(None),
            raw_input: Change::To(None),
            encoding: None,
            output: None,
            error: None,
            preliminary: None,
            executed: some(chunk, "providerExecuted").cloned(),
            title: from_6("title"),
            tool_metadata: from_6("toolMetadata"),
            metadata: some(chunk, "providerMetadata").cloned(),
        }
    }

    /// Updates the part of a call in this step, or adds one. Returns the part's index.
    pub(super) fn apply_in_step(
        self,
        parts: &mut Parts,
        id: &str,
        dynamic: bool,
        major: Major,
    ) -> usize {
        let kind = if dynamic {
            CallKind::Dynamic
        } else {
            CallKind::Static
        };
        match parts.call_in_step(id, kind) {
            Some(place) => {
                self.apply(parts, place, major);
                place
            }
            None => parts.push(self.into_part(id, dynamic, major)),
        }
    }

    /// Updates a part.
    pub(super) fn apply(self, parts: &mut Parts, place: usize, major: Major) {
        let Some(part) = parts.get_mut(place) else {
            return;
        };
        let metadata_key = self.metadata_key(major, true);
        if let Some(name) = self.name {
            if part.get_str("type") == Some("dynamic-tool") {
                part.insert("toolName", name);
            } else if major > Major::V5 {
                part.insert("type", format!("tool-{name}"));
            }
        }
        part.insert("state", self.state);
        change(part, "input", self.input);
        change(part, "rawInput", self.raw_input);
        if major > Major::V5 {
            put(part, "inputEncoding", self.encoding);
        }
        put(part, "output", self.output);
        put(part, "errorText", self.error);
        put(part, "preliminary", self.preliminary);
        for (key, value) in [
            ("providerExecuted", self.executed),
            ("title", self.title),
            ("toolMetadata", self.tool_metadata),
        ] {
            if value.is_some() {
                put(part, key, value);
            }
        }
        if let (Some(key), Some(metadata)) = (metadata_key, self.metadata) {
            part.insert(key, metadata);
        }
    }

    fn into_part(self, id: &str, dynamic: bool, major: Major) -> Object {
        let metadata_key = self.metadata_key(major, false);
        let name = self.name.unwrap_or_default();
        let mut part = if dynamic {
            Object::new()
                .with("type", "dynamic-tool")
                .with("toolName", name)
        } else {
            Object::new().with("type", format!("tool-{name}"))
        };
        part.insert("toolCallId", id);
        part.insert("state", self.state);
        put(&mut part, "title", self.title);
        put(&mut part, "toolMetadata", self.tool_metadata);
        change(&mut part, "input", self.input);
        put(&mut part, "inputEncoding", self.encoding);
        // No client gives one to a dynamic call where it begins.
        if !dynamic {
            change(&mut part, "rawInput", self.raw_input);
        }
        put(&mut part, "output", self.output);
        put(&mut part, "errorText", self.error);
        put(&mut part, "providerExecuted", self.executed);
        put(&mut part, "preliminary", self.preliminary);
        if let Some(key) = metadata_key {
            put(&mut part, key, self.metadata);
        }
        part
    }

    /// Whose metadata the chunk's is. `ai` 5 has none of results, and changes that of a call once.
    fn metadata_key(&self, major: Major, known: bool) -> Option<&'static str> {
        let result = matches!(self.state, "output-available" | "output-error");
        match major {
            Major::V5 if known && self.state != "input-available" => None,
            Major::V6 | Major::V7 if result => Some("resultProviderMetadata"),
            Major::V5 | Major::V6 | Major::V7 => Some("callProviderMetadata"),
        }
    }
}

fn change(part: &mut Object, key: &str, change: Change) {
    match change {
        Change::Keep => {}
        Change::To(value) => put(part, key, value),
    }
}

/// Sets a field, or removes it.
pub(super) fn put(part: &mut Object, key: &str, value: Option<Json>) {
    match value {
        Some(value) => {
            part.insert(key, value);
        }
        None => {
            part.remove(key);
        }
    }
}

/// The tool of a part, by its name.
pub(super) fn tool_name(part: &Json) -> &str {
    match text(part, "type") {
        "dynamic-tool" => text(part, "toolName"),
        kind => kind.strip_prefix("tool-").unwrap_or_default(),
    }
}

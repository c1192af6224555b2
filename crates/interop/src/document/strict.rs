//! A document that satisfies the rules for writing: breaches are repaired or removed, and reported.
//!
//! An import validates with the lenient rules, an export with the strict ones: [`Profile::Strict`]
//! finds no error in it. A repair never invents text.

use super::clock::rfc3339;
use super::content::identifier;
use super::export::to_document;
use super::resolve_open_calls::resolve_open_calls;
use super::turns::SEPARATORS;
use crate::{Converted, Losses};
use thread::document::CompletionStatus;
use thread::validate::{Rule, Severity};
use thread::{Json, Object, Profile, Thread, Version, Violation, validate};
use timeline::Transcript;

/// Maximum number of rounds. Each round repairs or removes something, which may reveal further
/// breaches.
const ROUNDS: usize = 32;

/// The canonical document of a thread as [`to_document`] makes it, without errors under the rules
/// for writing, and the losses.
pub fn to_strict_document(transcript: &Transcript) -> Converted<Thread> {
    let Converted { value, losses } = to_document(transcript);
    let (mut document, mut all) = (value, Losses::default());
    all.extend(losses);
    let Some(thread) = &transcript.thread else {
        return all.with(document);
    };
    let created_at = rfc3339(thread.created_at);
    let defaults = Object::new()
        .with("version", Version::NEWEST.as_str())
        .with("thread_id", thread.id.as_str())
        .with("created_at", created_at.as_str())
        .with("updated_at", created_at)
        .with("agents", Object::new())
        .with("turns", Json::Array(Vec::new()));
    for _ in 0..ROUNDS {
        if !mend(&mut document, &defaults, &mut all) {
            break;
        }
    }
    all.with(document)
}

/// Repairs breaches of the rules; returns whether anything changed.
fn mend(document: &mut Thread, defaults: &Object, losses: &mut Losses) -> bool {
    let mut errors = validate(document, Profile::Strict);
    errors.retain(|it| it.severity == Severity::Error);
    let is_of_cycle = |it: &Violation| matches!(it.rule, Rule::CompleteCycle | Rule::ToolCallId);
    if !errors.is_empty() && errors.iter().all(is_of_cycle) {
        resolve_open_calls(document, losses);
        return true;
    }
    let mut is_changed = false;
    // From the back, so that the places before stay what they are.
    for error in errors.iter().rev().filter(|it| !is_of_cycle(it)) {
        if let Some(what) = repair(document.root_mut(), defaults, error) {
            losses.push(error.pointer.as_str(), what);
            is_changed = true;
        }
    }
    is_changed
}

/// Repairs one breach, unless an earlier repair removed it; returns a description of the cost.
fn repair(root: &mut Object, defaults: &Object, error: &Violation) -> Option<String> {
    let path = Path::of(&error.pointer);
    let message = &error.message;
    let done = match error.rule {
        Rule::Expected | Rule::Required => {
            let name = message.strip_prefix('`')?.strip_suffix("` is missing")?;
            match default_of(root, defaults, &path, name) {
                Some(value) => set(root, &path, name, value).map(|()| "a value is filled in"),
                None => path.take_element(root),
            }
        }
        Rule::AgentId | Rule::AgentRef => register(root, &path),
        Rule::AgentKey => {
            let (config, key) = path.parent()?;
            let id = config.last()?;
            set(root, &config, key, id.into()).map(|()| "the key in `agents` is the id")
        }
        Rule::TimestampOffset => {
            let (holder, name) = path.parent()?;
            let text = format!("{}Z", path.find(root)?.as_str()?);
            set(root, &holder, name, text.into()).map(|()| "taken for UTC")
        }
        Rule::ClientMetadataKey => rename(root, &path),
        Rule::CompletionStatus | Rule::Interruption => ended(root, &path),
        Rule::ToolReturnContent => {
            set(root, &path, "content", Json::Null).map(|()| "the content is `null`")
        }
        Rule::ContentRefUri | Rule::ContentRefScheme | Rule::ContentRefHash => {
            unreferred(root, &path)
        }
        Rule::HandoffTarget | Rule::EventPayload => path.take_element(root),
        Rule::Json
        | Rule::Shape
        | Rule::Version
        | Rule::UnknownKind
        | Rule::Timestamp
        | Rule::ToolCallId
        | Rule::ToolCallIdRepeated
        | Rule::ToolPosition
        | Rule::ToolName
        | Rule::CallUnanswered
        | Rule::AgentIdentifier
        | Rule::Sequence
        | Rule::MessageAgent
        | Rule::TurnOverlap
        | Rule::MessageOrder
        | Rule::ContentAndRef
        | Rule::Base64
        | Rule::LinkThreadId
        | Rule::Uuid
        | Rule::ThinkingProviderName
        | Rule::SystemPrompt
        | Rule::EarlyCompletion
        | Rule::CompletedAt
        | Rule::CompleteCycle
        | Rule::EmptyResponse
        | Rule::NoCycle
        | Rule::EventPayloadField
        | Rule::EventName
        | Rule::IJsonNumber => path.take(root),
    };
    done.map(|done| format!("{message}: {done}"))
}

/// A JSON pointer, token by token.
#[derive(Clone)]
struct Path(Vec<String>);

impl Path {
    fn of(pointer: &str) -> Self {
        let tokens = pointer.split('/').skip(1);
        Self(
            tokens
                .map(|token| token.replace("~1", "/").replace("~0", "~"))
                .collect(),
        )
    }

    fn last(&self) -> Option<&str> {
        self.0.last().map(String::as_str)
    }

    /// The path of the container, and the key or index in it.
    fn parent(&self) -> Option<(Self, &str)> {
        let (last, holder) = self.0.split_last()?;
        Some((Self(holder.to_vec()), last))
    }

    fn find<'a>(&self, root: &'a Object) -> Option<&'a Json> {
        let (first, rest) = self.0.split_first()?;
        rest.iter()
            .try_fold(root.get(first)?, |json, token| match json.as_array() {
                Some(items) => items.get(token.parse::<usize>().ok()?),
                None => json.get(token),
            })
    }

    fn find_mut<'a>(&self, root: &'a mut Object) -> Option<&'a mut Json> {
        let (first, rest) = self.0.split_first()?;
        rest.iter()
            .try_fold(root.get_mut(first)?, |json, token| match json {
                Json::Array(items) => items.get_mut(token.parse::<usize>().ok()?),
                Json::Object(object) => object.get_mut(token),
                Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => None,
            })
    }

    /// Removes the value at this path.
    fn take(&self, root: &mut Object) -> Option<&'static str> {
        let (holder, last) = self.parent()?;
        if holder.0.is_empty() {
            return root.remove(last).map(|_| "left out");
        }
        match holder.find_mut(root)? {
            Json::Array(items) => {
                let place = last
                    .parse::<usize>()
                    .ok()
                    .filter(|place| *place < items.len())?;
                items.remove(place);
            }
            Json::Object(object) => drop(object.remove(last)?),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => return None,
        }
        Some("left out")
    }

    /// Removes the innermost list element that is, or contains, the value at this path.
    fn take_element(&self, root: &mut Object) -> Option<&'static str> {
        let mut path = self.clone();
        while let Some((holder, _)) = path.parent() {
            if matches!(holder.find(root), Some(Json::Array(_))) {
                return path.take(root).map(|_| "what it stands in is left out");
            }
            path = holder;
        }
        self.take(root)
    }
}

fn set(root: &mut Object, holder: &Path, name: &str, value: Json) -> Option<()> {
    let object = if holder.0.is_empty() {
        root
    } else {
        holder.find_mut(root)?.as_object_mut()?
    };
    object.insert(name, value);
    Some(())
}

/// The default of a missing member, if there is one that adds no information.
fn default_of(root: &Object, defaults: &Object, holder: &Path, name: &str) -> Option<Json> {
    if holder.0.is_empty() {
        return defaults.get(name).cloned();
    }
    let text = |path: &Path, key: &str| path.find(root)?.get(key)?.as_str().map(str::to_owned);
    let created_at = || defaults.get_str("created_at").map(str::to_owned);
    let value = match (holder.0.first().map(String::as_str), name) {
        (Some("agents"), "agent_id" | "agent_name") => holder.last()?.to_owned(),
        (_, "created_at" | "updated_at" | "submitted_at" | "started_at") => created_at()?,
        (Some("turns"), "timestamp" | "interrupted_at") => {
            text(&turn_of(holder), "started_at").or_else(created_at)?
        }
        (Some("turns"), "agent_id") if holder.0.len() > 2 => text(&turn_of(holder), "agent_id")?,
        (_, "reason") => "error".to_owned(),
        (_, "status") => "success".to_owned(),
        (_, "identifier") => identifier(&text(holder, "url").or_else(|| text(holder, "data"))?),
        (_, "args") => return Some(Object::new().into()),
        (_, "event_data") => return Some(Json::Null),
        _ => return None,
    };
    Some(value.into())
}

/// The turn that a place is in.
fn turn_of(path: &Path) -> Path {
    Path(path.0.iter().take(2).cloned().collect())
}

/// Registers an agent that is named but not registered.
fn register(root: &mut Object, path: &Path) -> Option<&'static str> {
    let id = path.find(root)?.as_str()?.to_owned();
    let config = Object::new()
        .with("agent_id", id.as_str())
        .with("agent_name", id.as_str())
        .with_some("created_at", root.get_str("created_at").map(str::to_owned));
    let agents = root.get_mut("agents")?.as_object_mut()?;
    if agents.contains_key(&id) {
        return None;
    }
    agents.insert(id, config);
    Some("it is registered by its id")
}

/// Adds a namespace to a key of the application.
fn rename(root: &mut Object, path: &Path) -> Option<&'static str> {
    let (holder, key) = path.parent()?;
    let object = holder.find_mut(root)?.as_object_mut()?;
    let namespaced = |key: &str| {
        if key.contains(SEPARATORS) {
            key.to_owned()
        } else {
            format!("app:{key}")
        }
    };
    if object.contains_key(&namespaced(key)) {
        return path.take(root);
    }
    let members = std::mem::take(object);
    *object = members
        .into_iter()
        .map(|(key, value)| (namespaced(&key), value))
        .collect();
    Some("the key begins with `app:`")
}

/// Sets how a turn ended, from the data it has.
fn ended(root: &mut Object, path: &Path) -> Option<&'static str> {
    let turn = turn_of(path).find_mut(root)?.as_object_mut()?;
    let why = turn.get("interruption").is_some_and(|why| !why.is_null());
    let is_interrupted = turn.get_str("completion_status") == Some("interrupted");
    let at = turn
        .get_str("completed_at")
        .or_else(|| turn.get_str("started_at"));
    match (is_interrupted, why) {
        (true, false) => {
            let why = Object::new()
                .with("reason", "error")
                .with_some("interrupted_at", at.map(str::to_owned));
            turn.insert("interruption", why);
            Some("the reason is `error`")
        }
        (_, true) => {
            turn.insert("completion_status", CompletionStatus::Interrupted.as_str());
            Some("the turn is `interrupted`")
        }
        (false, false) => {
            turn.insert("completion_status", CompletionStatus::Complete.as_str());
            Some("the turn is `complete`")
        }
    }
}

/// Replaces a reference that the protocol does not allow by the content itself.
fn unreferred(root: &mut Object, path: &Path) -> Option<&'static str> {
    let depth = path.0.iter().position(|token| token == "content_ref")?;
    let part = Path(path.0.iter().take(depth).cloned().collect());
    let part = part.find_mut(root)?.as_object_mut()?;
    let reference = part.remove("content_ref")?;
    part.insert("content", reference);
    Some("the reference is the content")
}

//! Changes to a single message that need no other message.

use super::draft::{Draft, DraftPart, Kind, pointer_at};
use super::marker::marker;
use super::pairs::Link;
use super::{RenderChange, TargetModel, What};
use crate::document::{Part, PartKind};
use crate::json::{Json, Object};

/// Removes answers to no call, calls without an id, and calls and answers with an id that a cycle
/// repeats. Providers refuse them.
pub(super) fn drop_unpaired(draft: &mut Draft<'_>, changes: &mut Vec<RenderChange>) {
    draft.parts.retain(|piece| {
        let what = match piece.link {
            Some(Link::Orphan) => What::OrphanAnswer,
            Some(Link::RepeatedCall) => What::RepeatedCall,
            Some(Link::RepeatedAnswer) => What::RepeatedAnswer,
            Some(Link::Call(_)) if Part::new(&piece.json).tool_call_id().is_none() => {
                What::CallWithoutId
            }
            Some(Link::Call(_) | Link::Answer(..)) | None => return true,
        };
        changes.push(RenderChange::new(pointer_at(piece.at), what));
        false
    });
}

/// Removes thoughts that the target model can't read: those of other agents, and those of another
/// provider or model. A thought is one unit with its signature, so it is removed or stays as a
/// whole. The ids of the parts after it are removed too, since a provider refuses one without the
/// other.
pub(super) fn drop_thoughts(
    draft: &mut Draft<'_>,
    asked: Option<&TargetModel>,
    changes: &mut Vec<RenderChange>,
) {
    if draft.kind != Kind::Response {
        return;
    }
    let readable = draft.foreign.is_none();
    let model = draft.rest.get_str("model_name").map(str::to_owned);
    let before = draft.parts.len();
    draft.parts.retain(|piece| {
        let part = Part::new(&piece.json);
        if part.kind() != PartKind::Thinking {
            return true;
        }
        let by_asked =
            asked.is_none_or(|asked| asked.may_read(part.provider_name(), model.as_deref()));
        if readable && by_asked {
            return true;
        }
        changes.push(RenderChange::new(
            pointer_at(piece.at),
            What::ThoughtOmitted,
        ));
        false
    });
    if draft.parts.len() == before {
        return;
    }
    for piece in &mut draft.parts {
        let removed = piece
            .json
            .as_object_mut()
            .and_then(|part| part.remove("id"));
        if removed.is_some() {
            changes.push(RenderChange::new(pointer_at(piece.at), What::IdOmitted));
        }
    }
}

/// Replaces content that is stored outside of the document by a short text.
pub(super) fn name_content(draft: &mut Draft<'_>, changes: &mut Vec<RenderChange>) {
    for piece in &mut draft.parts {
        let part = Part::new(&piece.json);
        let placed = match part.kind() {
            PartKind::ToolReturn => return_elsewhere(part),
            PartKind::File => file_elsewhere(part),
            PartKind::UserPrompt => prompt_elsewhere(part),
            PartKind::Text
            | PartKind::Thinking
            | PartKind::ToolCall
            | PartKind::RetryPrompt
            | PartKind::SystemPrompt
            | PartKind::Other(_)
            | PartKind::Missing => None,
        };
        if let Some(json) = placed {
            changes.push(RenderChange::new(
                pointer_at(piece.at),
                What::ExternalContent,
            ));
            piece.json = json;
        }
    }
}

/// The reference of an object without content under `key`.
fn elsewhere<'a>(object: &'a Object, key: &str) -> Option<&'a Object> {
    let missing = object.get(key).is_none_or(Json::is_null);
    object.get("content_ref")?.as_object().filter(|_| missing)
}

fn placeholder(reference: &Object) -> String {
    let uri = reference.get_str("uri").unwrap_or("an unknown place");
    let size = reference.get("size_bytes").and_then(Json::as_u64);
    let size = size
        .map(|size| format!(", {size} bytes"))
        .unwrap_or_default();
    format!("[content kept at {uri}{size}]")
}

fn return_elsewhere(part: Part<'_>) -> Option<Json> {
    let object = part.object()?;
    let text = placeholder(elsewhere(object, "content")?);
    let mut object = object.clone();
    object.remove("content_ref");
    Some(object.with("content", text).into())
}

fn file_elsewhere(part: Part<'_>) -> Option<Json> {
    let text = placeholder(elsewhere(part.content()?.as_object()?, "data")?);
    Some(text_part(&text))
}

fn prompt_elsewhere(part: Part<'_>) -> Option<Json> {
    let missing = |item: &Json| Some(placeholder(elsewhere(item.as_object()?, "data")?));
    let items = part.content()?.as_array()?;
    let placed: Vec<_> = items.iter().map(missing).collect();
    placed.iter().find(|text| text.is_some())?;
    let items = items.iter().zip(placed);
    let items = items.map(|(item, text)| text.map_or_else(|| item.clone(), Json::from));
    let content: Vec<Json> = items.collect();
    Some(part.object()?.clone().with("content", content).into())
}

pub(super) fn text_part(text: &str) -> Json {
    Json::object([("part_kind", "text".into()), ("content", text.into())])
}

/// Writes the marker of the author before each text of a foreign message.
pub(super) fn prefix_texts(draft: &mut Draft<'_>, changes: &mut Vec<RenderChange>) {
    let Some(marker) = draft.foreign.map(marker) else {
        return;
    };
    for DraftPart { json, at, .. } in &mut draft.parts {
        let part = Part::new(json);
        if part.kind() != PartKind::Text {
            continue;
        }
        let Some(text) = part.content_str() else {
            continue;
        };
        let text = format!("{marker}{text}");
        if let Some(object) = json.as_object_mut() {
            object.insert("content", text);
            changes.push(RenderChange::new(pointer_at(*at), What::Attributed));
        }
    }
}

/// Adds the author of a foreign response as its member `name`.
pub(super) fn name_author(draft: &mut Draft<'_>, changes: &mut Vec<RenderChange>) {
    if let (Kind::Response, Some(name)) = (draft.kind, draft.foreign) {
        draft.rest.insert("name", name);
        changes.push(RenderChange::new(draft.pointer(), What::Attributed));
    }
}

//! Users' content: items of the log ⇄ parts of a user's turn.

use super::delta::{difference, is_plain, patched, stored, unwrapped, wrapped};
use crate::parts::EventPart;
use thread::{Json, Object};
use timeline::{MessagePartKind, part_kind};
use uuid::Uuid;

/// The type of a part of a foreign kind, stored whole.
pub(super) const PART: &str = "threadprotocol-part";
/// The type of a part for a content item of a kind that the log lacks.
const CONTENT: &str = "threadprotocol-content";
/// The prefix of the kind of a part that the protocol does not know.
pub(super) const CUSTOM: &str = "custom:";

/// The parts of a user's turn. `groups` has the grouping of the log's parts, if they are not the
/// content of one prompt.
pub(super) fn exported(content: &[Json], groups: Option<&[Json]>) -> Vec<Json> {
    let sizes = |groups: &[Json]| -> usize { groups.iter().map(size).sum() };
    match groups.filter(|groups| sizes(groups) == content.len()) {
        Some(groups) => exported_groups(content, groups),
        None => content
            .chunk_by(|a, b| !is_whole(a) && !is_whole(b))
            .map(|group| exported_part(group, false, None))
            .collect(),
    }
}

fn exported_groups(content: &[Json], groups: &[Json]) -> Vec<Json> {
    let mut rest = content;
    let mut parts = Vec::with_capacity(groups.len());
    for group in groups {
        let Some((own, after)) = rest.split_at_checked(size(group)) else {
            break;
        };
        let list = group.get("list").and_then(Json::as_bool) == Some(true);
        let extra = group.get("extra").and_then(Json::as_object);
        parts.push(exported_part(own, list, extra));
        rest = after;
    }
    parts
}

fn size(group: &Json) -> usize {
    let size = group.get("n").and_then(Json::as_u64).unwrap_or(1);
    usize::try_from(size).unwrap_or(usize::MAX)
}

fn is_whole(part: &Json) -> bool {
    part.get("type").and_then(Json::as_str) == Some(PART)
}

fn exported_part(group: &[Json], list: bool, extra: Option<&Object>) -> Json {
    if let [part] = group
        && is_whole(part)
    {
        return unwrapped(part, "part");
    }
    patched(prompt(group, list), extra).into()
}

fn prompt(group: &[Json], list: bool) -> Object {
    let mut items: Vec<Json> = group.iter().map(exported_content).collect();
    let bare = !list && items.len() == 1 && items.iter().all(|item| item.as_str().is_some());
    let content = match items.pop() {
        Some(text) if bare => text,
        popped => {
            items.extend(popped);
            Json::Array(items)
        }
    };
    Object::new()
        .with("part_kind", "user-prompt")
        .with("content", content)
}

/// The log's parts for the parts of a user's turn, and how they belong together.
pub(super) fn imported(parts: &[Json]) -> (Vec<Json>, Vec<Json>) {
    let mut content = Vec::new();
    let mut groups = Vec::with_capacity(parts.len());
    for part in parts {
        let (own, list) = imported_part(part);
        let mut group = Object::new().with("n", own.len() as u64);
        if !own.iter().any(is_whole) {
            if list {
                group.insert("list", true);
            }
            let extra = part
                .as_object()
                .and_then(|part| difference(&prompt(&own, list), part, &[]));
            group = group.with_some("extra", extra);
        }
        groups.push(group.into());
        content.extend(own);
    }
    (content, groups)
}

fn imported_part(part: &Json) -> (Vec<Json>, bool) {
    let whole = || (vec![wrapped(PART, "part", part).into()], false);
    if part.get("part_kind").and_then(Json::as_str) != Some("user-prompt") {
        return whole();
    }
    match part.get("content") {
        Some(text @ Json::String(_)) => (vec![imported_content(text)], false),
        Some(Json::Array(items)) => {
            let parts: Vec<Json> = items.iter().map(imported_content).collect();
            let list = items.len() != 1 || items.iter().any(|item| item.as_str().is_some());
            (parts, list)
        }
        Some(Json::Null | Json::Bool(_) | Json::Number(_) | Json::Object(_)) | None => whole(),
    }
}

/// A content item of a prompt, from a part of the log.
fn exported_content(part: &Json) -> Json {
    let text = |key: &str| part.get(key).and_then(Json::as_str);
    let extra = part.get("extra").and_then(Json::as_object);
    let derived = match text("type") {
        Some("input_text" | "output_text") => {
            let said = text("text").unwrap_or_default();
            if extra.is_none() {
                return said.into();
            }
            Object::new()
                .with("content", said)
                .with("kind", "text-content")
        }
        Some(CONTENT) => return unwrapped(part, "value"),
        Some("input_image") => image(part),
        Some("input_file") => file(part),
        Some(name) => Object::new()
            .with("kind", format!("{CUSTOM}{name}"))
            .with("value", part.clone()),
        None => return part.clone(),
    };
    patched(derived, extra).into()
}

fn image(part: &Json) -> Object {
    let text = |key: &str| part.get(key).and_then(Json::as_str);
    let detail = text("detail").map(|detail| Json::object([("detail", detail.into())]));
    let image = match text("image_url") {
        Some(url) => match data_url(url) {
            Some((media_type, data)) => binary(part, media_type, data),
            None => linked("image-url", url),
        },
        None => uploaded(text("file_id").unwrap_or_default()),
    };
    image.with_some("vendor_metadata", detail)
}

fn file(part: &Json) -> Object {
    let text = |key: &str| part.get(key).and_then(Json::as_str);
    let media_type = text("media_type");
    let file = if let Some(data) = text("file_data") {
        let plain = (media_type.unwrap_or("application/octet-stream"), data);
        let (media_type, data) = data_url(data).unwrap_or(plain);
        binary(part, media_type, data)
    } else if let Some(url) = text("file_url") {
        let kind = match media_type.and_then(|media_type| media_type.split('/').next()) {
            Some("image") => "image-url",
            Some("audio") => "audio-url",
            Some("video") => "video-url",
            _ => "document-url",
        };
        linked(kind, url).with_some("media_type", media_type)
    } else {
        uploaded(text("file_id").unwrap_or_default()).with_some("media_type", media_type)
    };
    file.with_some("filename", text("filename"))
}

fn linked(kind: &str, url: &str) -> Object {
    Object::new()
        .with("kind", kind)
        .with("url", url)
        .with("identifier", identifier(url))
}

fn uploaded(file_id: &str) -> Object {
    Object::new()
        .with("kind", "uploaded-file")
        .with("file_id", file_id)
        .with("identifier", identifier(file_id))
}

/// Bytes in the document's form; `alphabet` marks that the source used the URL-safe one.
pub(super) fn binary(part: &Json, media_type: &str, data: &str) -> Object {
    let data = if part.get("alphabet").and_then(Json::as_str) == Some("urlsafe") {
        data.replace('+', "-").replace('/', "_")
    } else {
        data.to_owned()
    };
    let identifier = identifier(&data);
    Object::new()
        .with("kind", "binary")
        .with("data", data)
        .with("media_type", media_type)
        .with("identifier", identifier)
}

/// A short name for tools to refer to; it follows from the content.
pub(super) fn identifier(content: &str) -> String {
    let hash = Uuid::new_v5(&Uuid::NAMESPACE_URL, content.as_bytes());
    hash.simple().to_string().chars().take(6).collect()
}

/// The media type and the base64 text of a `data:` URL.
pub(crate) fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// A `data:` URL of bytes, and whether their text was in the URL-safe alphabet.
pub(super) fn to_data_url(media_type: &str, data: &str) -> (String, bool) {
    let plain = data.replace('-', "+").replace('_', "/");
    let changed = plain != data;
    (format!("data:{media_type};base64,{plain}"), changed)
}

/// A part of the log for a content item of a prompt.
fn imported_content(item: &Json) -> Json {
    let text = |key: &str| item.get(key).and_then(Json::as_str);
    let part = |kind: &str| Object::new().with("type", kind);
    let kept = || wrapped(CONTENT, "value", item).into();
    let own = match (item, text("kind")) {
        (Json::String(said), _) => return part("input_text").with("text", said.as_str()).into(),
        (_, Some("text-content")) => text("content").map(|said| {
            part("input_text")
                .with("text", said)
                .with("extra", Object::new())
        }),
        (_, Some("image-url")) => text("url").map(|url| part("input_image").with("image_url", url)),
        (_, Some("binary")) => text("data")
            .zip(text("media_type"))
            .map(|(data, media_type)| {
                let (url, changed) = to_data_url(media_type, data);
                let own = if media_type.starts_with("image/") {
                    part("input_image").with("image_url", url)
                } else {
                    part("input_file")
                        .with("file_data", url)
                        .with("media_type", media_type)
                };
                own.with_some("alphabet", changed.then_some("urlsafe"))
            }),
        (_, Some("audio-url" | "video-url" | "document-url")) => text("url").map(|url| {
            part("input_file")
                .with("file_url", url)
                .with_some("media_type", text("media_type"))
        }),
        (_, Some("uploaded-file")) => text("file_id").map(|file_id| {
            part("input_file")
                .with("file_id", file_id)
                .with_some("media_type", text("media_type"))
        }),
        _ => match own_extension(item, "kind") {
            Some(own) => return own,
            None => None,
        },
    };
    let Some((mut own, original)) = own.zip(item.as_object()) else {
        return kept();
    };
    if let Json::Object(derived) = exported_content(&own.clone().into())
        && let Some(extra) = difference(&derived, original, &[])
    {
        own.insert("extra", extra);
    }
    let own = own.into();
    if stored(&own).is_ok_and(|own| is_plain(&own)) {
        own
    } else {
        kept()
    }
}

/// The extension part from which a `custom:` part was exported; `tag` names its kind. `None` for
/// types that only the runtime writes: such a part stays a document's part.
pub(super) fn own_extension(object: &Json, tag: &str) -> Option<Json> {
    let value = object.get("value")?;
    let name = value.get("type")?.as_str()?;
    let same = object.get(tag)?.as_str()?.strip_prefix(CUSTOM) == Some(name);
    let extension = matches!(part_kind(name), Some(MessagePartKind::Extension(_)));
    let alone = object.as_object()?.keys().eq([tag, "value"]);
    let own = name.starts_with("threadprotocol-") || EventPart::NAMES.contains(&name);
    (same && extension && alone && !own).then(|| value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(parts: &str) -> (String, String) {
        let parts = Json::parse(parts).unwrap();
        let (content, groups) = imported(parts.as_array().unwrap());
        let back = Json::Array(exported(&content, Some(&groups)));
        (parts.to_text(), back.to_text())
    }

    #[test]
    fn every_kind_of_user_content_comes_back() {
        for parts in [
            r#"[{"part_kind":"user-prompt","content":"hi"}]"#,
            r#"[{"part_kind":"user-prompt","content":[]}]"#,
            r#"[{"part_kind":"user-prompt","content":["hi"],"timestamp":null}]"#,
            r#"[{"content":"a","part_kind":"user-prompt"},{"part_kind":"user-prompt","content":["b","c"]}]"#,
            r#"[{"part_kind":"tool-return","tool_name":"t","tool_call_id":"1","content":1.0}]"#,
            r#"[{"part_kind":"user-prompt","content":[{"kind":"image-url","url":"https://a/b","identifier":"x"},
                {"kind":"binary","data":"_-8=","media_type":"image/png","identifier":"y"},
                {"kind":"binary","data":"AA==","media_type":"application/pdf","identifier":"z"},
                {"kind":"audio-url","url":"https://a/c","media_type":null},
                {"kind":"text-content","content":"t","metadata":{"a":1}},
                {"content":"t","kind":"text-content"},
                {"kind":"cache-point","ttl":"5m"},{"kind":"uploaded-file","file_id":"f"}, "x"]}]"#,
        ] {
            let (original, back) = round(parts);
            assert_eq!(back, original);
        }
    }

    #[test]
    fn an_own_item_is_one_prompt() {
        let content = Json::parse(
            r#"[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"},
                {"type":"app-poll","value":1}]"#,
        )
        .unwrap();
        let parts = Json::Array(exported(content.as_array().unwrap(), None));
        assert_eq!(parts.as_array().map(<[Json]>::len), Some(1));
        assert_eq!(parts.pointer("/0/content/1/data"), Some(&"AAAA".into()));
        assert_eq!(
            parts.pointer("/0/content/2/kind"),
            Some(&"custom:app-poll".into())
        );
    }

    #[test]
    fn the_identifier_of_a_file_is_short_and_follows_from_its_content() {
        let named = |data: &str| {
            let file = json_of(&binary(&Json::Null, "image/png", data));
            file.pointer("/identifier")
                .and_then(Json::as_str)
                .unwrap()
                .to_owned()
        };
        let name = named("AAAA");
        assert_eq!(name.len(), 6);
        assert!(name.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
        assert_eq!(name, named("AAAA"));
        assert_ne!(name, named("AAAB"));
    }

    fn json_of(object: &Object) -> Json {
        object.clone().into()
    }
}

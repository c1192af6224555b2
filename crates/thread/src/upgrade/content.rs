//! Contents and attachments of 1.0.0 in the forms of 2.0.0 (its "Supporting Types").

use super::members::rewrite;
use crate::json::{Json, Object};
use crate::versioned::rebuild;

/// A user's text and attachments, as the content of a `user-prompt`.
pub(super) fn user_content(content: Option<Json>, attachments: Vec<Json>) -> Json {
    let mut items = match content {
        Some(Json::Array(items)) => items.into_iter().map(user_item).collect(),
        Some(content) if attachments.is_empty() => return content,
        Some(content) => vec![content],
        None => Vec::new(),
    };
    items.extend(attachments.into_iter().map(attachment));
    Json::Array(items)
}

fn user_item(item: Json) -> Json {
    let item = match item {
        Json::Object(item) => item,
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
            return item;
        }
    };
    let kind = item.get_str("type").unwrap_or_default().to_owned();
    if kind == "text" && item.len() == 2 && item.get_str("text").is_some() {
        return item.get("text").cloned().unwrap_or(Json::Null);
    }
    media(item, &kind).into()
}

/// Media as user content: bytes, a URL, or neither, with its kind at the original position.
fn media(item: Object, kind: &str) -> Object {
    let item = unwrapped(item, kind);
    let (target, kind) = match (data_key(&item, kind), url_key(&item, kind)) {
        (Some(key), _) => (Some((key, "data")), "binary".to_owned()),
        (None, Some(key)) => {
            let kind = match kind {
                "image" | "audio" | "video" => format!("{kind}-url"),
                _ => "document-url".to_owned(),
            };
            (Some((key, "url")), kind)
        }
        (None, None) => (None, kind.to_owned()),
    };
    if kind.is_empty() {
        return item;
    }
    let mut renamed = vec![("type", "kind")];
    renamed.extend(target.as_ref().map(|(key, new)| (key.as_str(), *new)));
    let mut media = rewrite(item, &[], &renamed, &[]);
    media.insert("kind", kind.as_str());
    let is_bytes = kind == "binary";
    complete(&mut media, is_bytes);
    media
}

/// Replaces an object around a URL by the URL itself: `{"image_url": {"url": …}}`. Other members of
/// that object stay in it.
fn unwrapped(mut item: Object, kind: &str) -> Object {
    let key = format!("{kind}_url");
    let inner = item.get(&key).and_then(Json::as_object);
    let has_url = inner.is_some_and(|inner| inner.get_str("url").is_some());
    if !has_url || item.contains_key("url") {
        return item;
    }
    rebuild(&mut item, |name, value| {
        if *name != *key {
            return [Some((name, value)), None];
        }
        let mut inner = value.into_object().unwrap_or_default();
        let url = inner.remove("url").map(|url| ("url".into(), url));
        let rest = (!inner.is_empty()).then(|| (name, inner.into()));
        [url, rest]
    });
    item
}

/// The member that holds bytes: `data`, or `image_base64` and the like.
fn data_key(item: &Object, kind: &str) -> Option<String> {
    text_member(item, ["data".to_owned(), format!("{kind}_base64")])
}

/// The member that holds a place: `url`, or `image_url` and the like.
fn url_key(item: &Object, kind: &str) -> Option<String> {
    text_member(item, ["url".to_owned(), format!("{kind}_url")])
}

fn text_member(item: &Object, keys: [String; 2]) -> Option<String> {
    keys.into_iter().find(|key| item.get_str(key).is_some())
}

/// Adds members that 2.0.0 requires and the source names differently: the name as identifier, and
/// the type of bytes, which is optional in 1.0.0.
fn complete(media: &mut Object, is_bytes: bool) {
    if !media.contains_key("identifier")
        && let Some(name) = media.get_str("name").map(str::to_owned)
    {
        media.insert("identifier", name);
    }
    if is_bytes && media.get("media_type").is_none_or(Json::is_null) {
        let media_type = sniff(media.get_str("data").unwrap_or_default());
        media.insert("media_type", media_type);
    }
}

/// The type of base64 by the first bytes of common image formats.
fn sniff(data: &str) -> &'static str {
    let known = [
        ("iVBORw0KGgo", "image/png"),
        ("/9j/", "image/jpeg"),
        ("R0lGOD", "image/gif"),
        ("JVBERi", "application/pdf"),
    ];
    let found = known.iter().find(|(start, _)| data.starts_with(start));
    found.map_or("application/octet-stream", |(_, media_type)| media_type)
}

fn attachment(attachment: Json) -> Json {
    let mut object = match attachment {
        Json::Object(object) => object,
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
            return attachment;
        }
    };
    let media_type = object.get_str("media_type").unwrap_or_default();
    let main = media_type.split('/').next().unwrap_or_default();
    let kind = match main {
        "image" | "audio" | "video" => main.to_owned(),
        _ => "file".to_owned(),
    };
    if object.contains_key("type") {
        object = rewrite(object, &[], &[], &["type"]);
    }
    let tagged = std::iter::once(("type".into(), kind.as_str().into())).chain(object);
    media(tagged.collect(), &kind).into()
}

/// An agent's content, as parts of a response.
pub(super) fn parts(content: Option<Json>) -> Vec<Object> {
    match content {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::Array(items)) => items.into_iter().map(agent_item).collect(),
        Some(content) => vec![text(content)],
    }
}

fn text(content: Json) -> Object {
    Object::new()
        .with("part_kind", "text")
        .with("content", content)
}

fn agent_item(item: Json) -> Object {
    let item = match item {
        Json::Object(item) => item,
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
            return text(item);
        }
    };
    let kind = item.get_str("type").unwrap_or_default().to_owned();
    if kind == "text" {
        let renamed = [("type", "part_kind"), ("text", "content")];
        return rewrite(item, &[], &renamed, &[]);
    }
    if data_key(&item, &kind).is_some() {
        let content = media(item, &kind);
        return Object::new()
            .with("part_kind", "file")
            .with("content", content);
    }
    // A response of 2.0.0 holds bytes only; other files are parts of a kind of their own.
    let mut part = rewrite(item, &[], &[("type", "part_kind")], &[]);
    part.insert("part_kind", format!("custom:{kind}"));
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str, attachments: &str) -> String {
        let attachments = Json::parse(attachments).unwrap().into_array().unwrap();
        user_content(Some(Json::parse(text).unwrap()), attachments).to_text()
    }

    #[test]
    fn what_a_user_wrote_keeps_its_form() {
        assert_eq!(content(r#""hi""#, "[]"), r#""hi""#);
        let items = r#"[{"type":"text","text":"hi"},{"type":"text","text":"ho","x":1},
            {"type":"image","image_url":"https://i.example/a"},{"x":1,"type":"audio","data":"YQ=="},
            {"type":"file","file_id":"f"},{"type":"image","image_base64":"/9j/a"}]"#;
        let expected = concat!(
            r#"["hi",{"kind":"text","text":"ho","x":1},"#,
            r#"{"kind":"image-url","url":"https://i.example/a"},"#,
            r#"{"x":1,"kind":"binary","data":"YQ==","media_type":"application/octet-stream"},"#,
            r#"{"kind":"file","file_id":"f"},{"kind":"binary","data":"/9j/a","media_type":"image/jpeg"}]"#
        );
        assert_eq!(content(items, "[]"), expected);
    }

    #[test]
    fn a_place_inside_of_an_object_is_a_place() {
        let items = r#"[{"type":"image","image_url":{"url":"https://i.example/a"}},
            {"x":1,"type":"image","image_url":{"detail":"low","url":"https://i.example/b"}},
            {"type":"image","image_url":{"detail":"low"}}]"#;
        let expected = concat!(
            r#"[{"kind":"image-url","url":"https://i.example/a"},"#,
            r#"{"x":1,"kind":"image-url","url":"https://i.example/b","image_url":{"detail":"low"}},"#,
            r#"{"kind":"image","image_url":{"detail":"low"}}]"#
        );
        assert_eq!(content(items, "[]"), expected);
    }

    #[test]
    fn what_a_user_attached_follows_what_the_user_wrote() {
        let attached = r#"[{"name":"plan","media_type":"video/mp4","url":"https://v.example/p","size_bytes":7}]"#;
        assert_eq!(
            content(r#""see""#, attached),
            r#"["see",{"kind":"video-url","name":"plan","media_type":"video/mp4","url":"https://v.example/p","size_bytes":7,"identifier":"plan"}]"#
        );
    }

    #[test]
    fn files_of_an_agent_are_bytes_or_a_kind_of_their_own() {
        let items = r#"["a",{"type":"text","text":"b"},{"type":"image","image_base64":"YQ==","media_type":"image/png"},{"type":"image","image_url":"u"}]"#;
        let parts = parts(Some(Json::parse(items).unwrap()));
        let parts: Vec<_> = parts
            .into_iter()
            .map(|part| Json::from(part).to_text())
            .collect();
        assert_eq!(
            parts,
            [
                r#"{"part_kind":"text","content":"a"}"#,
                r#"{"part_kind":"text","content":"b"}"#,
                r#"{"part_kind":"file","content":{"kind":"binary","data":"YQ==","media_type":"image/png"}}"#,
                r#"{"part_kind":"custom:image","image_url":"u"}"#,
            ]
        );
    }
}

//! Documents for formats that accept text or files.

use crate::content::Media;
use std::borrow::Cow;

/// The text of a document: text, or the bytes of a `text/…` type. `None` for a URL, another type, or
/// bytes that are not UTF-8.
pub(crate) fn document_text(media: &Media) -> Option<Cow<'_, str>> {
    if let Some(text) = media.text() {
        return Some(Cow::Borrowed(text));
    }
    if !media.mime_type.starts_with("text/") {
        return None;
    }
    let bytes = media.to_bytes().ok()?;
    String::from_utf8(bytes.into()).ok().map(Cow::Owned)
}

/// A file name for media without a title; providers read the kind from its ending.
pub(crate) fn file_name(media: &Media, stem: &str) -> String {
    let ending = media.mime_type.split_once('/').map(|(_, ending)| ending);
    match ending.filter(|ending| ending.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
        Some(ending) => format!("{stem}.{ending}"),
        None => stem.to_owned(),
    }
}

//! The bytes of a message's file.

use super::view::MessageView;
use crate::body::PathOf;
use crate::error::{ApiError, ErrorBody};
use crate::threads::ThreadKey;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, header};
use interop::parts::InlineFile;
use runtime::{Filter, PageRequest};
use timeline::{Entry, ItemId, Payload};

/// Only an image of this page; nothing that a browser would run.
const POLICY: &str = "sandbox; default-src 'none'";
const BYTES: &str = "application/octet-stream";

/// Reads the bytes of a file or an image in a message: a part with a `data:` URL or base64.
///
/// The index is that of the part in the message's `content`.
#[utoipa::path(get, path = "/threads/{key}/messages/{id}/parts/{index}/content", operation_id = "readPartContent", tag = "messages", security(("key" = [])),
    params(("key" = String, Path), ("id" = String, Path), ("index" = usize, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream", description = "The bytes, with their media type"),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn read(
    thread: ThreadKey,
    PathOf((_thread, id, index)): PathOf<(String, String, usize)>,
) -> Result<Response, ApiError> {
    let file = file_of(&thread, &id.as_str().into(), index).await?;
    let none = || ApiError::InvalidPath {
        what: format!("part {index} of the message {id:?} has no bytes in the message"),
    };
    file_response(file.ok_or_else(none)?).ok_or_else(none)
}

/// The response with the bytes of a file; none if they are not base64.
pub(crate) fn file_response(file: InlineFile) -> Option<Response> {
    let InlineFile { media_type, data } = file;
    let bytes = STANDARD.decode(data).ok()?;
    let media_type = HeaderValue::try_from(media_type);
    let headers = [
        (
            header::CONTENT_TYPE,
            media_type.unwrap_or(HeaderValue::from_static(BYTES)),
        ),
        (
            header::CONTENT_DISPOSITION,
            HeaderValue::from_static("attachment"),
        ),
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(POLICY),
        ),
        (
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
    ];
    Some((headers, bytes).into_response())
}

/// The file in a part of a message or an answer.
pub(crate) async fn file_of(
    thread: &ThreadKey,
    id: &ItemId,
    index: usize,
) -> Result<Option<InlineFile>, ApiError> {
    let item = thread.item(id).await?;
    let parts: Vec<Payload> = match &item.execution_id {
        None => {
            let content = item.content.as_ref();
            content
                .and_then(|content| content.read().ok())
                .unwrap_or_default()
        }
        Some(execution) => {
            let page = PageRequest::Execution(execution.clone());
            let page = thread.page(page, Filter::Facts).await?;
            let mut entries = page.transcript.entries.into_iter();
            let own = entries.find(|entry| match entry {
                Entry::Reaction(reaction) => reaction.execution.id == *execution,
                Entry::Item(_) => false,
            });
            let message = own.and_then(|entry| MessageView::of_entry(entry, true));
            message.map(MessageView::into_content).unwrap_or_default()
        }
    };
    Ok(parts.get(index).and_then(InlineFile::read))
}

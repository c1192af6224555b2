//! What messages say by naming files: the files' contents are put beside their names, so that models
//! and other protocols have them, also when the files are deleted.

use super::files::{self, Kept};
use super::not_found;
use crate::error::ApiError;
use crate::error::openai::Worded;
use crate::state::Api;
use interop::threads::{CreateMessage, ObjectKind};
use runtime::TenantId;
use serde_json::{Map, Value};
use std::sync::Arc;
use upp::{Media, MediaSource};

/// The most bytes of files that the messages of one request bring into a thread.
const MAX_BYTES: u64 = 8 << 20;

/// Puts the contents of files into the messages that name them. A model is given images, PDF and
/// text; other attachments are kept by name alone. To a key for some threads there are no files.
pub(super) async fn attach(
    api: &Api,
    tenant: &TenantId,
    is_restricted: bool,
    messages: &mut [CreateMessage],
) -> Result<(), ApiError> {
    let mut left = MAX_BYTES;
    for part in messages.iter_mut().flat_map(|message| &mut message.content) {
        let Value::Object(part) = part else {
            continue;
        };
        let Some(id) = part.get("file_id").and_then(Value::as_str) else {
            continue;
        };
        if is_restricted {
            return Err(not_found(ObjectKind::File, id));
        }
        let kept = files::find(api, tenant, id).await?;
        let is_image = part.get("type").and_then(Value::as_str) == Some("input_image");
        if is_image && !kept.is_image() {
            let id = &kept.file.id;
            let message = format!(
                "The file '{id}' is {}, and not an image that can be shown to a model.",
                kept.media_type
            );
            return Err(Worded::invalid(None, Some("invalid_image"), message).into());
        }
        if !kept.is_for_models() {
            continue;
        }
        left = left.checked_sub(kept.file.bytes).ok_or_else(too_much)?;
        let content = files::content_of(api, tenant, &kept).await?;
        put(part, &kept, &content, is_image);
    }
    Ok(())
}

fn too_much() -> ApiError {
    let message = format!("The files of the messages have more than {MAX_BYTES} bytes together.");
    Worded::invalid(None, Some("invalid_value"), message).into()
}

fn put(part: &mut Map<String, Value>, kept: &Kept, content: &Arc<[u8]>, is_image: bool) {
    let data = content.to_vec().into();
    let media = Media::new(MediaSource::Bytes { data }, kept.media_type.as_str());
    let url = media.data_url().map(Value::String);
    if is_image {
        part.extend(url.map(|url| ("image_url".to_owned(), url)));
        return;
    }
    part.extend(url.map(|url| ("file_data".to_owned(), url)));
    let named = [
        ("filename", &kept.file.filename),
        ("media_type", &kept.media_type),
    ];
    part.extend(named.map(|(key, value)| (key.to_owned(), Value::from(value.as_str()))));
}

//! Attachments: the contents of files are copied into the messages that name them. Models and other
//! protocols can read them there, even after the files are deleted.

use super::files::{self, StoredFile};
use super::not_found;
use crate::error::ApiError;
use crate::error::openai::Worded;
use crate::state::Api;
use interop::threads::{CreateMessage, ObjectKind};
use jiff::Timestamp;
use runtime::objects::{NewObject, ObjectPage};
use runtime::{RuntimeError, TenantId};
use serde_json::{Map, Value};
use std::sync::Arc;
use timeline::{Seq, ThreadId};
use upp::{Media, MediaSource};

/// Maximum bytes of files in the messages of one request.
const MAX_BYTES: u64 = 8 << 20;
/// Maximum bytes of all attachments of a thread, since reading the messages reads the attachments too.
const MAX_THREAD_BYTES: u64 = 32 << 20;

/// Copies the contents of files into the messages that name them, and returns the number of bytes
/// copied. Only images, PDF and text are copied; other attachments remain names. A key that is
/// restricted to some threads finds no files.
pub(super) async fn attach(
    api: &Api,
    tenant: &TenantId,
    is_restricted: bool,
    messages: &mut [CreateMessage],
) -> Result<u64, ApiError> {
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
    Ok(MAX_BYTES - left)
}

/// The kind of the sidecar objects with a thread's byte counts. Each object belongs to a position of the
/// thread's log and has the total up to there. A fork continues from its parent's count at the fork's
/// position.
fn kind_of(thread: &str) -> String {
    format!("threads.attached:{thread}")
}

/// The attachments of new messages that fit into the thread's limit. They count once the messages are
/// stored.
#[must_use]
pub(super) struct Brought {
    thread: ThreadId,
    /// Total bytes of the thread's attachments with these messages.
    n_bytes: u64,
    /// Where was counted last.
    last: Seq,
}

/// A byte count of a thread.
#[derive(Default)]
struct Counted {
    n_bytes: u64,
    /// The position of the count. It is before the thread's own log if only a parent of the fork has a
    /// count.
    place: Seq,
}

/// The latest count of a thread, or of its parent up to the fork. Costs one look-up for the thread and
/// one for each ancestor until one has a count.
async fn counted(api: &Api, tenant: &TenantId, thread: &ThreadId) -> Result<Counted, ApiError> {
    let (objects, store) = (api.runtime(tenant).objects(), api.runtime(tenant).store());
    let (mut thread, mut end) = (thread.clone(), None);
    loop {
        let page = ObjectPage {
            beyond: end.map(|end: Seq| (instant(end.next()), String::new())),
            newest_first: true,
            limit: 1,
            ..ObjectPage::default()
        };
        let kind = kind_of(thread.as_str());
        let found = objects.list(tenant, &kind, page).await?;
        if let Some(object) = found.first() {
            let n_bytes = serde_json::from_str(&object.json).map_err(RuntimeError::from)?;
            let own = object.id.parse().ok().filter(|_| end.is_none());
            let place = own.map(Seq).unwrap_or_default();
            return Ok(Counted { n_bytes, place });
        }
        let Some(fork) = store.row(&thread).await?.thread.fork else {
            return Ok(Counted::default());
        };
        (thread, end) = (fork.thread_id, Some(fork.seq));
    }
}

/// A position as a timestamp, since objects are listed by time.
fn instant(place: Seq) -> Timestamp {
    Timestamp::from_nanosecond(place.0.into()).unwrap_or(Timestamp::MAX)
}

/// Refuses attachments that exceed the thread's limit; returns none if there are no attachments. The
/// caller must hold the thread's turn until [`Brought::count`] has run, inside
/// [`owned`](runtime::Runtime::owned). Otherwise a client that disconnects in between would add bytes
/// without a count.
pub(super) async fn check(
    api: &Api,
    tenant: &TenantId,
    thread: &ThreadId,
    n_bytes: u64,
) -> Result<Option<Brought>, ApiError> {
    if n_bytes == 0 {
        return Ok(None);
    }
    let before = counted(api, tenant, thread).await?;
    let n_bytes = before.n_bytes.saturating_add(n_bytes);
    if n_bytes > MAX_THREAD_BYTES {
        let message = format!(
            "The files of the thread's messages would have more than {MAX_THREAD_BYTES} bytes together."
        );
        return Err(Worded::invalid(None, Some("invalid_value"), message).into());
    }
    Ok(Some(Brought {
        thread: thread.clone(),
        n_bytes,
        last: before.place,
    }))
}

impl Brought {
    /// Stores the count at this position of the log, once the messages are stored. Does nothing if the
    /// thread has been deleted.
    pub(super) async fn count(
        self,
        api: &Api,
        tenant: &TenantId,
        place: Seq,
    ) -> Result<(), ApiError> {
        // Where somebody has counted further on, it has all.
        let place = place.max(self.last);
        let object = NewObject {
            kind: kind_of(self.thread.as_str()),
            id: place.0.to_string(),
            created_at: instant(place),
            json: self.n_bytes.to_string(),
            content: None,
            thread: Some(self.thread),
            is_limited: false,
        };
        Ok(api.runtime(tenant).objects().put(tenant, object).await?)
    }
}

fn too_much() -> ApiError {
    let message = format!("The files of the messages have more than {MAX_BYTES} bytes together.");
    Worded::invalid(None, Some("invalid_value"), message).into()
}

fn put(part: &mut Map<String, Value>, kept: &StoredFile, content: &Arc<[u8]>, is_image: bool) {
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

//! Contents out of the document.

use super::{ContentStore, ExternaliseError, Holder, SCHEME, each_holder, hash_of, put_in_place};
use crate::document::{Thread, Version};
use crate::json::{Json, Object};
use crate::path::Path;
use std::collections::BTreeSet;

/// Options for the contents to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternaliseOptions {
    /// The size in bytes that a content must exceed; 100 KB (102 400 bytes) by default, as 0.0.3
    /// advises.
    pub threshold_bytes: usize,
    /// Whether the data of files goes too.
    pub files: Files,
}

impl Default for ExternaliseOptions {
    fn default() -> Self {
        Self {
            threshold_bytes: 100 * 1024,
            files: Files::Keep,
        }
    }
}

/// The treatment of the base64 data of `binary` files, in prompts and in `file` parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Files {
    /// The data stays: the protocol allows references only on tool returns.
    #[default]
    Keep,
    /// Moved, and a `content_ref` replaces `data`. This is an extension of this crate. Other
    /// readers miss the required `data`, and validation reports it.
    Move,
}

/// A document without its large contents.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Externalised {
    /// The document.
    pub thread: Thread,
    /// The moved contents, in document order.
    pub moved: Vec<Moved>,
}

/// A content that was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The JSON Pointer of the new `content_ref`.
    pub pointer: String,
    /// The hash of the content, `sha256:` and 64 hexadecimal digits.
    pub hash: String,
    /// The size of its text in bytes.
    pub size_bytes: usize,
}

/// Moves large contents of a document into a store.
///
/// A content that already has a `content_ref` stays. References exist since 0.0.3; older documents
/// stay unchanged, so upgrade them first.
///
/// ```
/// use loomline_thread::Thread;
/// use loomline_thread::content::{ExternaliseOptions, MemoryContents, externalise, inline};
///
/// let thread = Thread::decode(
///     r#"{"version":"0.0.4","turns":[{"turn_type":"agent","messages":[
///     {"message_type":"request","parts":[{"part_kind":"tool-return","tool_name":"t",
///     "tool_call_id":"c","content":{"b":1.0,"a":[]},"status":"success"}]}]}]}"#,
/// )?;
/// let mut store = MemoryContents::new();
/// let threshold_bytes = 10;
/// let options = ExternaliseOptions { threshold_bytes, ..Default::default() };
/// let out = externalise(&thread, &mut store, options)?;
/// assert_eq!(out.moved[0].pointer, "/turns/0/messages/0/parts/0/content_ref");
/// assert_eq!(inline(&out.thread, &store)?, thread);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn externalise<S: ContentStore>(
    thread: &Thread,
    store: &mut S,
    options: ExternaliseOptions,
) -> Result<Externalised, ExternaliseError<S::Error>> {
    let mut thread = thread.clone();
    let mut moved = Vec::new();
    if thread.version() < Version::V0_0_3 {
        return Ok(Externalised { thread, moved });
    }
    let mut stored = BTreeSet::new();
    each_holder(&mut thread, |holder, path, object| {
        if let Some(found) = large(holder, object, options) {
            let pointer = path.key("content_ref").to_pointer();
            let hash = hash_of(&found);
            if stored.insert(hash.clone()) {
                let put = store.put(&hash, &found);
                put.map_err(|source| ExternaliseError::Store {
                    pointer: pointer_of(path, holder),
                    source,
                })?;
            }
            let size_bytes = found.len();
            put_in_place(
                object,
                holder.key(),
                "content_ref",
                reference(&hash, size_bytes),
            );
            moved.push(Moved {
                pointer,
                hash,
                size_bytes,
            });
        }
        Ok(())
    })?;
    Ok(Externalised { thread, moved })
}

fn pointer_of(path: Path<'_>, holder: Holder) -> String {
    path.key(holder.key()).to_pointer()
}

/// The text of a content that is to move.
fn large(holder: Holder, object: &Object, options: ExternaliseOptions) -> Option<String> {
    if object.contains_key("content_ref") || (holder, options.files) == (Holder::File, Files::Keep)
    {
        return None;
    }
    let content = object.get(holder.key())?;
    if holder == Holder::File && content.as_str().is_none() {
        return None;
    }
    let text = content.to_text();
    (text.len() > options.threshold_bytes).then_some(text)
}

/// The reference that replaces a content. Its media type is that of the stored bytes, which are
/// JSON whatever the type of the file.
fn reference(hash: &str, size_bytes: usize) -> Json {
    let digits = hash.strip_prefix("sha256:").unwrap_or(hash);
    Object::new()
        .with("uri", format!("{SCHEME}:{digits}"))
        .with("size_bytes", size_bytes as u64)
        .with("hash", hash)
        .with("media_type", "application/json")
        .into()
}

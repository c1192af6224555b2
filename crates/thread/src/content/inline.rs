//! Contents back into the document.

use super::{ContentStore, InlineError, SCHEME, each_holder, hash_of, put_in_place};
use crate::document::Thread;
use crate::json::{Json, Object};
use std::collections::BTreeMap;

/// Restores the contents behind references of [`SCHEME`].
///
/// Each content is checked against the hash in its URI. References of other schemes stay, and so do
/// those next to an existing content.
pub fn inline<S: ContentStore>(
    thread: &Thread,
    store: &S,
) -> Result<Thread, InlineError<S::Error>> {
    let mut thread = thread.clone();
    let mut read: BTreeMap<String, Json> = BTreeMap::new();
    each_holder(&mut thread, |holder, path, object| {
        let key = holder.key();
        let Some(reference) = object.get("content_ref").and_then(Json::as_object) else {
            return Ok(());
        };
        let Some(hash) = hash_in(reference).filter(|_| !object.contains_key(key)) else {
            return Ok(());
        };
        let pointer = || path.key("content_ref").to_pointer();
        if let Some(found) = reference.get_str("hash").filter(|found| *found != hash) {
            let found = found.to_owned();
            return Err(InlineError::HashMismatch {
                pointer: pointer(),
                expected: hash,
                found,
            });
        }
        let content = if let Some(content) = read.get(&hash) {
            content.clone()
        } else {
            let content = fetch(store, &hash, pointer)?;
            read.insert(hash, content.clone());
            content
        };
        put_in_place(object, "content_ref", key, content);
        Ok(())
    })?;
    Ok(thread)
}

/// The hash that a reference of our scheme names.
fn hash_in(reference: &Object) -> Option<String> {
    let uri = reference.get_str("uri")?;
    let digits = uri.strip_prefix(SCHEME)?.strip_prefix(':')?;
    Some(format!("sha256:{digits}"))
}

fn fetch<S: ContentStore>(
    store: &S,
    hash: &str,
    pointer: impl Fn() -> String,
) -> Result<Json, InlineError<S::Error>> {
    let text = match store.get(hash) {
        Ok(Some(text)) => text,
        Ok(None) => {
            let hash = hash.to_owned();
            return Err(InlineError::Missing {
                pointer: pointer(),
                hash,
            });
        }
        Err(source) => {
            return Err(InlineError::Store {
                pointer: pointer(),
                source,
            });
        }
    };
    let found = hash_of(&text);
    if found != hash {
        let expected = hash.to_owned();
        return Err(InlineError::HashMismatch {
            pointer: pointer(),
            expected,
            found,
        });
    }
    Json::parse(&text).map_err(|source| InlineError::Decode {
        pointer: pointer(),
        source,
    })
}

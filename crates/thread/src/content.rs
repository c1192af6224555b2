//! Large contents, each stored once outside of the document (TP-6 `content_ref`, TP-17).
//!
//! [`externalise`] moves contents above a threshold into a [`ContentStore`] and leaves a
//! `content_ref` in their place; [`inline`] puts them back. A content is addressed by the SHA-256
//! of its text, so that equal contents are stored once.
//!
//! The text that is stored, measured and hashed is the compact JSON of the value as spelled in the
//! document, not its canonical form (RFC 8785): `1.0` and `1`, and keys in another order, are other
//! texts. Canonical text would join a few more contents, but the original document could not be
//! restored. The guarantee is `inline(externalise(t)) == t`, to the byte.

mod error;
mod externalise;
mod inline;
mod store;

pub use error::{ExternaliseError, InlineError};
pub use externalise::{ExternaliseOptions, Externalised, Files, Moved, externalise};
pub use inline::inline;
pub use store::{ContentStore, MemoryContents};

use crate::document::Thread;
use crate::json::{Json, Object};
use crate::path::Path;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The scheme of our references: `loomline+sha256:` and 64 hexadecimal digits. It is one of the
/// documented custom schemes of 0.0.3; name it in [`Rules::schemes`](crate::Rules) to have it
/// recognised.
pub const SCHEME: &str = "loomline+sha256";

/// The hash of a text: `sha256:` and 64 hexadecimal digits.
fn hash_of(text: &str) -> String {
    let mut hash = "sha256:".to_owned();
    for byte in Sha256::digest(text) {
        let written = write!(hash, "{byte:02x}");
        debug_assert!(written.is_ok(), "a string refuses nothing");
    }
    hash
}

/// The member in which a value of some kind has its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    /// `content` of a tool return.
    Return,
    /// `data` of a binary file.
    File,
}

impl Holder {
    fn key(self) -> &'static str {
        match self {
            Self::Return => "content",
            Self::File => "data",
        }
    }
}

/// Calls `visit` for every object that may hold a large content, with its path; stops at an error.
fn each_holder<E>(
    thread: &mut Thread,
    mut visit: impl FnMut(Holder, Path<'_>, &mut Object) -> Result<(), E>,
) -> Result<(), E> {
    let turns_path = Path::ROOT.key("turns");
    let turns = thread
        .root_mut()
        .get_mut("turns")
        .and_then(Json::as_array_mut);
    for (place, turn) in turns.into_iter().flatten().enumerate() {
        let path = turns_path.index(place);
        let Some(turn) = turn.as_object_mut() else {
            continue;
        };
        each_in_parts(turn, path, &mut visit)?;
        let path = path.key("messages");
        let messages = turn.get_mut("messages").and_then(Json::as_array_mut);
        for (place, message) in messages.into_iter().flatten().enumerate() {
            if let Some(message) = message.as_object_mut() {
                each_in_parts(message, path.index(place), &mut visit)?;
            }
        }
    }
    Ok(())
}

fn each_in_parts<E>(
    object: &mut Object,
    path: Path<'_>,
    visit: &mut impl FnMut(Holder, Path<'_>, &mut Object) -> Result<(), E>,
) -> Result<(), E> {
    let path = path.key("parts");
    let parts = object.get_mut("parts").and_then(Json::as_array_mut);
    for (place, part) in parts.into_iter().flatten().enumerate() {
        let path = path.index(place);
        let Some(part) = part.as_object_mut() else {
            continue;
        };
        let kind = part.get_str("part_kind").map(str::to_owned);
        match kind.as_deref() {
            Some("tool-return") => visit(Holder::Return, path, part)?,
            Some("file") => {
                if let Some(file) = part.get_mut("content").and_then(binary) {
                    visit(Holder::File, path.key("content"), file)?;
                }
            }
            Some("user-prompt") => {
                let path = path.key("content");
                let items = part.get_mut("content").and_then(Json::as_array_mut);
                for (place, item) in items.into_iter().flatten().enumerate() {
                    if let Some(file) = binary(item) {
                        visit(Holder::File, path.index(place), file)?;
                    }
                }
            }
            Some(_) | None => {}
        }
    }
    Ok(())
}

fn binary(json: &mut Json) -> Option<&mut Object> {
    let object = json.as_object_mut()?;
    (object.get_str("kind") == Some("binary")).then_some(object)
}

/// Replaces a member by another at the same position, so that the order of keys is restored.
fn put_in_place(object: &mut Object, old: &str, new: &str, value: Json) {
    let mut value = Some(value);
    let members = std::mem::take(object).into_iter();
    *object = members
        .filter_map(|(key, member)| {
            if *key == *old {
                value.take().map(|value| (new.into(), value))
            } else {
                Some((key, member))
            }
        })
        .collect();
}

//! Documents of earlier versions, read as the newest.

use super::import::ImportError;
use std::borrow::Cow;
use thread::{Thread, Version, upgrade};

/// The document in the newest version.
pub(super) fn newest(thread: &Thread) -> Result<Cow<'_, Thread>, ImportError> {
    if thread.version() == Version::NEWEST {
        return Ok(Cow::Borrowed(thread));
    }
    match upgrade(thread) {
        Ok(upgraded) => Ok(Cow::Owned(upgraded.thread)),
        Err(_) => Err(ImportError::Version(thread.version().as_str().to_owned())),
    }
}

//! Makes and reads media blocks (UPP §6): [`Image`], [`Document`], [`Audio`], [`Video`].

mod helper;
mod mime;

pub use helper::{Audio, Document, Image, Video};

use crate::content::{BASE64, Media, MediaSource};
use base64::Engine;
use bytes::Bytes;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The largest file that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// Why media can't be made or read.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    /// The file can't be read; it may be missing.
    #[error("'{path}' can't be read")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// The file has no bytes.
    #[error("'{path}' is empty")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file is larger than [`MAX_FILE_BYTES`].
    #[error("'{path}' has more than {MAX_FILE_BYTES} bytes")]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The text is not base64.
    #[error("the data is not base64")]
    NotBase64(#[source] base64::DecodeError),
    /// The source has another form. URLs are never fetched, and text is not base64.
    #[error("the source is {found}, not {expected}")]
    Source {
        /// The requested form.
        expected: &'static str,
        /// The form found.
        found: &'static str,
    },
    /// The block has another type.
    #[error("the block is {found}, not {expected}")]
    Block {
        /// The requested type.
        expected: &'static str,
        /// The type found.
        found: &'static str,
    },
}

fn kind_of(source: &MediaSource) -> &'static str {
    match source {
        MediaSource::Base64 { .. } => "base64",
        MediaSource::Url { .. } => "an address",
        MediaSource::Text { .. } => "text",
        MediaSource::Bytes { .. } => "bytes",
    }
}

impl Media {
    /// The bytes, if the message has them: decoded, or a text's UTF-8.
    pub fn to_bytes(&self) -> Result<Bytes, MediaError> {
        match &self.source {
            MediaSource::Bytes { data } => Ok(data.clone()),
            MediaSource::Text { data } => Ok(Bytes::copy_from_slice(data.as_bytes())),
            MediaSource::Base64 { data } => BASE64
                .decode(data)
                .map(Bytes::from)
                .map_err(MediaError::NotBase64),
            MediaSource::Url { .. } => Err(self.has_no("bytes")),
        }
    }

    /// How many bytes there are in the message; `None` for an address.
    pub fn size(&self) -> Option<usize> {
        match &self.source {
            MediaSource::Bytes { data } => Some(data.len()),
            MediaSource::Text { data } => Some(data.len()),
            MediaSource::Base64 { data } => {
                let digits = data.trim_end_matches('=').len();
                Some(digits / 4 * 3 + (digits % 4).saturating_sub(1))
            }
            MediaSource::Url { .. } => None,
        }
    }

    fn has_no(&self, expected: &'static str) -> MediaError {
        let found = kind_of(&self.source);
        MediaError::Source { expected, found }
    }
}

/// Reads a file that has bytes, but not too many.
fn read(path: &Path) -> Result<Bytes, MediaError> {
    let unreadable = |cause| MediaError::Unreadable {
        path: path.to_owned(),
        cause,
    };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut data = Vec::new();
    // One byte more tells whether there is more.
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut data)
        .map_err(unreadable)?;
    if data.is_empty() {
        return Err(MediaError::Empty {
            path: path.to_owned(),
        });
    }
    if u64::try_from(data.len()).is_ok_and(|size| size > MAX_FILE_BYTES) {
        return Err(MediaError::TooLarge {
            path: path.to_owned(),
        });
    }
    Ok(data.into())
}

#[cfg(test)]
mod tests;

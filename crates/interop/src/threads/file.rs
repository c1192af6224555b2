//! Files: the fields of an upload, and the object.

use super::error::RequestError;
use super::object::Named;
use crate::fields::check_length;
use serde::{Deserialize, Serialize};

/// The most bytes of one file.
pub const MAX_FILE_BYTES: u64 = 512 << 20;
const MAX_FILENAME: usize = 512;

/// The purposes that an upload may name.
pub(super) const PURPOSES: &[&str] = &[
    "assistants",
    "batch",
    "fine-tune",
    "vision",
    "user_data",
    "evals",
];

/// All purposes of files, including those that only `OpenAI`'s server sets.
pub(super) const ALL_PURPOSES: &[&str] = &[
    "assistants",
    "assistants_output",
    "batch",
    "batch_output",
    "fine-tune",
    "fine-tune-results",
    "vision",
    "user_data",
    "evals",
];

/// The form fields of `POST /files` except the file itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileUpload {
    /// `assistants`, `vision`, …
    pub purpose: String,
    /// Seconds after creation at which the server deletes the file.
    pub expires_after: Option<i64>,
}

impl FileUpload {
    /// Reads the text fields of the form, by name. Unknown ones are ignored.
    pub fn read<'a>(
        fields: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, RequestError> {
        let (mut purpose, mut anchor, mut seconds) = (None, None, None);
        for (name, value) in fields {
            match name {
                "purpose" => purpose = Some(value),
                "expires_after[anchor]" => anchor = Some(value),
                "expires_after[seconds]" => seconds = Some(value),
                _ => {}
            }
        }
        let missing = |pointer: &str| RequestError::Missing {
            pointer: pointer.to_owned(),
        };
        let purpose = purpose.ok_or_else(|| missing("/purpose"))?;
        super::fields::check_word("/purpose".to_owned(), purpose, PURPOSES)?;
        let expires_after = match (anchor, seconds) {
            (None, None) => None,
            (None, Some(_)) => return Err(missing("/expires_after/anchor")),
            (Some(_), None) => return Err(missing("/expires_after/seconds")),
            (Some(anchor), Some(seconds)) => {
                let pointer = "/expires_after/anchor".to_owned();
                super::fields::check_word(pointer, anchor, &["created_at"])?;
                let seconds = seconds.parse::<i64>().ok();
                let seconds = seconds.filter(|seconds| (3_600..=2_592_000).contains(seconds));
                Some(seconds.ok_or_else(|| RequestError::Outside {
                    pointer: "/expires_after/seconds".to_owned(),
                    expected: "a number of seconds from 3600 to 2592000",
                })?)
            }
        };
        Ok(Self {
            purpose: purpose.to_owned(),
            expires_after,
        })
    }

    /// The file's object; `id` is our id of it, which becomes `file-…`.
    pub fn file(
        self,
        id: &str,
        filename: &str,
        bytes: u64,
        created_at: jiff::Timestamp,
    ) -> Result<FileObject, RequestError> {
        check_length("/file", filename, MAX_FILENAME)?;
        if bytes > MAX_FILE_BYTES {
            return Err(RequestError::Outside {
                pointer: "/file".to_owned(),
                expected: "a file of at most 512 MB",
            });
        }
        let created_at = created_at.as_second();
        Ok(FileObject {
            id: super::ids::FILE.write(id),
            object: "file".to_owned(),
            bytes,
            created_at,
            expires_at: self
                .expires_after
                .map(|seconds| created_at.saturating_add(seconds)),
            filename: filename.to_owned(),
            purpose: self.purpose,
            status: "processed".to_owned(),
        })
    }
}

/// `file`. The server also stores this JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileObject {
    /// `file-…`.
    pub id: String,
    /// `file`.
    pub object: String,
    /// Its size.
    pub bytes: u64,
    /// Unix seconds.
    pub created_at: i64,
    /// When it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
    /// Its name.
    pub filename: String,
    /// The file's purpose.
    pub purpose: String,
    /// `processed`: there is nothing to be done to it.
    pub status: String,
}

impl Named for FileObject {
    fn id(&self) -> &str {
        &self.id
    }
}

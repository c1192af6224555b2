//! Checkpoints in files (UAP §12.4.3).

mod disk;
mod name;

use super::{CheckpointError, CheckpointMetadata, CheckpointStore};
use disk::Session;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::Handle;

/// How checkpoints are compressed (UAP §12.4.8, 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// As `checkpoint.json.gz`.
    Gzip,
}

/// The directory and the format of checkpoints (UAP §12.4.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileCheckpointOptions {
    /// The directory. Default: `.checkpoints`. It is created when first needed.
    pub dir: PathBuf,
    /// The compression of saved states. Default: none. Both formats are read, whatever is set here.
    pub compression: Option<Compression>,
    /// Maximum size of a state's JSON, in bytes, to save or read. Default: 1 GiB.
    pub max_bytes: u64,
}

impl Default for FileCheckpointOptions {
    fn default() -> Self {
        Self {
            dir: PathBuf::from(".checkpoints"),
            compression: None,
            max_bytes: 1 << 30,
        }
    }
}

/// Checkpoints in files: `<dir>/<session>/checkpoint.json` and `<dir>/<session>/metadata.json` (UAP
/// §12.4.3).
///
/// If a session id has only lower-case letters, digits, `-`, `_` and inner dots, like a UUID, it is
/// the directory's name. Any other byte is written as `%` and two hexadecimal digits. So no id
/// leads out of the directory, and no two ids share a name, on any file system. An id with an
/// encoded length above 200 bytes is refused.
///
/// A file is written under a temporary name, synced, and renamed over the old one. So after a
/// crash, and at any moment for another process, there is either the old or the new checkpoint,
/// complete. The metadata is written after the checkpoint; briefly, or after a crash, it may be
/// that of the previous one.
///
/// Several processes may use one directory; of two simultaneous saves, the later one wins. A crash
/// may leave a file named `.new-…`, which is never read and may be deleted. Only the owner may read
/// the files, but they are not encrypted (UAP §15.3).
///
/// File operations run on Tokio's blocking threads, or inline without Tokio.
#[derive(Clone, Debug)]
pub struct FileCheckpoints {
    options: Arc<FileCheckpointOptions>,
}

impl FileCheckpoints {
    /// A store with these options (`fileCheckpoints()`, UAP §12.4.3). No file is accessed yet.
    pub fn new(options: FileCheckpointOptions) -> Self {
        Self {
            options: Arc::new(options),
        }
    }

    /// A store in this directory, without compression.
    pub fn in_dir(dir: impl Into<PathBuf>) -> Self {
        Self::new(FileCheckpointOptions {
            dir: dir.into(),
            ..FileCheckpointOptions::default()
        })
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.options.dir
    }

    fn on_session<T: Send + 'static>(
        &self,
        session_id: &str,
        work: impl FnOnce(&Session) -> Result<T, CheckpointError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, CheckpointError>> {
        let session = Session::new(Arc::clone(&self.options), session_id);
        blocking(move || work(&session?))
    }
}

impl CheckpointStore for FileCheckpoints {
    fn save<'a>(
        &'a self,
        session_id: &'a str,
        state: String,
    ) -> BoxFuture<'a, Result<(), CheckpointError>> {
        self.on_session(session_id, move |session| session.save(&state))
    }

    fn load<'a>(
        &'a self,
        session_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, CheckpointError>> {
        self.on_session(session_id, Session::load)
    }

    fn load_metadata<'a>(
        &'a self,
        session_id: &'a str,
    ) -> BoxFuture<'a, Result<Option<CheckpointMetadata>, CheckpointError>> {
        self.on_session(session_id, Session::load_metadata)
    }

    fn delete<'a>(&'a self, session_id: &'a str) -> BoxFuture<'a, Result<(), CheckpointError>> {
        self.on_session(session_id, Session::delete)
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<String>, CheckpointError>> {
        let options = Arc::clone(&self.options);
        blocking(move || disk::list(&options.dir))
    }
}

fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CheckpointError> + Send + 'static,
) -> BoxFuture<'static, Result<T, CheckpointError>> {
    async move {
        match Handle::try_current() {
            Ok(runtime) => runtime
                .spawn_blocking(work)
                .await
                .unwrap_or_else(|error| Err(CheckpointError::store(error))),
            Err(_) => work(),
        }
    }
    .boxed()
}

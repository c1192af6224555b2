//! Files that are there completely or not at all.

use super::BackupError;
use crate::private;
use crate::value::hex;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

/// The suffix of a file that is not finished.
pub(super) const PARTIAL: &str = "partial";

pub(super) fn io(
    what: &'static str,
    path: &Path,
) -> impl FnOnce(std::io::Error) -> BackupError + use<> {
    let path = path.to_owned();
    move |source| BackupError::Io { what, path, source }
}

/// The name of a file until it is finished.
pub(super) fn partial(path: &Path) -> PathBuf {
    super::super::connection::sibling(path, PARTIAL)
}

/// Creates an empty file that only its owner can read.
pub(super) fn create(path: &Path) -> Result<File, BackupError> {
    let options = private::options().write(true).create_new(true).open(path);
    options.map_err(io("create", path))
}

/// Deletes a file, if there is one.
pub(super) fn remove(path: &Path) -> Result<(), BackupError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io("delete", path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Gives a finished file its name. Both outlive a power failure.
pub(super) fn publish(from: &Path, to: &Path) -> Result<(), BackupError> {
    sync(from)?;
    std::fs::rename(from, to).map_err(io("rename", from))?;
    sync(to.parent().unwrap_or(Path::new(".")))
}

/// Waits until a file or a directory is on the disk.
pub(super) fn sync(path: &Path) -> Result<(), BackupError> {
    let file = File::open(path).map_err(io("open", path))?;
    file.sync_all().map_err(io("write", path))
}

/// The size and the SHA-256 of a file, in hexadecimal digits.
pub(super) fn sum(path: &Path) -> Result<(u64, String), BackupError> {
    let mut file = File::open(path).map_err(io("open", path))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut size = 0;
    loop {
        let n = file.read(&mut buffer).map_err(io("read", path))?;
        let read = buffer.get(..n).unwrap_or_default();
        if read.is_empty() {
            return Ok((size, hex(&hash.finalize())));
        }
        hash.update(read);
        size += read.len() as u64;
    }
}

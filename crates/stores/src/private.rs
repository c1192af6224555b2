//! Files and directories that only their owner may read and write. On systems other than Unix they have
//! the system's default permissions.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// Options that create a file with mode 0600, so that no other user can ever open it. The mode of an
/// existing file does not change.
pub fn options() -> OpenOptions {
    #[allow(unused_mut, reason = "only Unix has modes")]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates a directory with mode 0700; missing parents get the system's default mode. An existing
/// directory is not changed.
pub fn make_directory(path: &Path) -> Result<(), Error> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    #[allow(unused_mut, reason = "only Unix has modes")]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Makes an empty file with mode 0600, unless there is a file already.
pub(crate) fn make_file(path: &Path) -> Result<(), Error> {
    match options().write(true).create_new(true).open(path) {
        // A file that is there is not opened: closing it would end this process's locks on it.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop),
    }
}

/// Removes all permissions of other users from a file. A file of another owner is not changed; see
/// [`open_to_others`].
pub(crate) fn tighten(path: &Path) {
    let Some(own) = own_rights_alone(path) else {
        return;
    };
    match std::fs::set_permissions(path, own) {
        Ok(()) => tracing::info!(file = %path.display(), "others may not read this file any more"),
        Err(error) => {
            tracing::debug!(file = %path.display(), %error, "the rights of a file stay as they are");
        }
    }
}

/// Those of the paths that others than their owner have any rights on.
pub fn open_to_others(paths: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let paths = paths.into_iter();
    paths
        .filter(|path| own_rights_alone(path).is_some())
        .collect()
}

/// The file's permissions without those of other users. `None` if others have none, or the file does not
/// exist.
#[cfg(unix)]
fn own_rights_alone(path: &Path) -> Option<Permissions> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).ok()?.permissions().mode();
    (mode & 0o077 != 0).then(|| Permissions::from_mode(mode & 0o700))
}

#[cfg(not(unix))]
fn own_rights_alone(_: &Path) -> Option<Permissions> {
    None
}

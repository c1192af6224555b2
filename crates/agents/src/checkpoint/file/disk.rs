//! Operations on the files of a session.

use super::{Compression, FileCheckpointOptions, name};
use crate::checkpoint::{CheckpointError, CheckpointMetadata};
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PLAIN: &str = "checkpoint.json";
const GZIP: &str = "checkpoint.json.gz";
/// The first bytes of every gzip file; no JSON starts with them.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// The decoder's errors for a damaged or incomplete gzip file.
const DAMAGES: [ErrorKind; 3] = [
    ErrorKind::InvalidInput,
    ErrorKind::InvalidData,
    ErrorKind::UnexpectedEof,
];
const METADATA: &str = "metadata.json";
/// The prefix of a file's name until it is renamed; no session has such a name.
const NEW: &str = ".new-";

/// Number of attempts at an operation that another process may disturb.
const N_TRIES: u32 = 10;

/// The files of one session.
pub(super) struct Session {
    options: Arc<FileCheckpointOptions>,
    id: String,
    dir: PathBuf,
}

impl Session {
    pub(super) fn new(
        options: Arc<FileCheckpointOptions>,
        session_id: &str,
    ) -> Result<Self, CheckpointError> {
        Ok(Self {
            dir: options.dir.join(name::encode(session_id)?),
            id: session_id.to_owned(),
            options,
        })
    }

    pub(super) fn save(&self, state: &str) -> Result<(), CheckpointError> {
        let metadata = CheckpointMetadata::of(&self.id, state)?;
        if u64::try_from(state.len()).unwrap_or(u64::MAX) > self.options.max_bytes {
            return Err(self.too_large());
        }
        let (file, other) = match self.options.compression {
            None => (PLAIN, GZIP),
            Some(Compression::Gzip) => (GZIP, PLAIN),
        };
        self.write(file, Some(other), state.as_bytes())?;
        let metadata = serde_json::to_vec_pretty(&metadata).map_err(CheckpointError::store)?;
        self.write(METADATA, None, &metadata)
    }

    pub(super) fn load(&self) -> Result<Option<String>, CheckpointError> {
        for _ in 0..N_TRIES {
            let Some(path) = self.latest()? else {
                return Ok(None);
            };
            match File::open(&path) {
                Ok(file) => return self.read(&path, file).map(Some),
                // Another process has just replaced it by the other form, or deleted it.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(failed("read", &path, error)),
            }
        }
        Ok(None)
    }

    pub(super) fn load_metadata(&self) -> Result<Option<CheckpointMetadata>, CheckpointError> {
        let path = self.dir.join(METADATA);
        let json = match fs::read(&path) {
            Ok(json) => json,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("read", &path, error)),
        };
        let metadata = serde_json::from_slice(&json).map_err(|error| corrupt(&path, error))?;
        Ok(Some(metadata))
    }

    /// Renames the directory first, so that no reader sees a partly deleted one.
    pub(super) fn delete(&self) -> Result<(), CheckpointError> {
        let doomed = match tempfile::Builder::new()
            .prefix(NEW)
            .tempdir_in(&self.options.dir)
        {
            Ok(doomed) => doomed,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed("write to", &self.options.dir, error)),
        };
        ignore_missing(fs::rename(&self.dir, doomed.path().join("session")))
            .map_err(|error| failed("delete", &self.dir, error))?;
        sync(&self.options.dir)?;
        doomed
            .close()
            .map_err(|error| failed("delete", &self.dir, error))
    }

    /// The checkpoint's file. Both formats exist only if two processes with different settings
    /// saved at once; then the newer file counts.
    fn latest(&self) -> Result<Option<PathBuf>, CheckpointError> {
        // Between two looks another process may replace one form by the other.
        for _ in 0..N_TRIES {
            let mut found = Vec::new();
            for file in [GZIP, PLAIN] {
                let path = self.dir.join(file);
                match fs::metadata(&path).and_then(|file| file.modified()) {
                    Ok(modified) => found.push((modified, path)),
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => return Err(failed("read", &path, error)),
                }
            }
            if let Some((_, path)) = found.into_iter().max() {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    fn read(&self, path: &Path, file: File) -> Result<String, CheckpointError> {
        let json = self.unpacked(file).map_err(|error| {
            if DAMAGES.contains(&error.kind()) {
                corrupt(path, error)
            } else {
                failed("read", path, error)
            }
        })?;
        if u64::try_from(json.len()).unwrap_or(u64::MAX) > self.options.max_bytes {
            return Err(self.too_large());
        }
        let json = String::from_utf8(json).map_err(|error| corrupt(path, error))?;
        CheckpointMetadata::of(&self.id, &json).map_err(|error| corrupt(path, error))?;
        Ok(json)
    }

    /// Reads the content. Its first bytes decide the format, as a crash may leave one format under
    /// the other's name.
    fn unpacked(&self, file: File) -> io::Result<Vec<u8>> {
        // One byte more than is allowed, so that a small file can't unpack to fill the memory.
        let limit = self.options.max_bytes.saturating_add(1);
        let mut file = BufReader::new(file);
        let mut json = Vec::new();
        if file.fill_buf()?.starts_with(&GZIP_MAGIC) {
            GzDecoder::new(file).take(limit).read_to_end(&mut json)?;
        } else {
            file.take(limit).read_to_end(&mut json)?;
        }
        Ok(json)
    }

    /// Writes a new file, syncs it, and renames it over the old one. Retries if the session was
    /// just deleted. `other` is the file in the other format, which is removed.
    fn write(
        &self,
        file: &str,
        other: Option<&str>,
        content: &[u8],
    ) -> Result<(), CheckpointError> {
        let path = self.dir.join(file);
        let mut outcome = Ok(());
        for _ in 0..N_TRIES {
            outcome = self.try_write(&path, other, content);
            let kind = outcome.as_ref().err().map(io::Error::kind);
            // `AlreadyExists`: the directory was deleted while it was made.
            if !matches!(kind, Some(ErrorKind::NotFound | ErrorKind::AlreadyExists)) {
                break;
            }
        }
        outcome.map_err(|error| failed("write", &path, error))
    }

    fn try_write(&self, path: &Path, other: Option<&str>, content: &[u8]) -> io::Result<()> {
        make_dir(&self.dir)?;
        let mut new = tempfile::Builder::new()
            .prefix(NEW)
            .tempfile_in(&self.dir)?;
        if path.ends_with(GZIP) {
            let mut encoder = GzEncoder::new(&mut new, flate2::Compression::default());
            encoder.write_all(content)?;
            encoder.finish()?;
        } else {
            new.write_all(content)?;
        }
        new.as_file().sync_all()?;
        if let Some(other) = other {
            // Renamed and not removed: if another process did the same the other way round, two
            // removals would leave nothing.
            ignore_missing(fs::rename(self.dir.join(other), path))?;
        }
        new.persist(path).map_err(|error| error.error)?;
        sync_dir(&self.dir)?;
        sync_dir(&self.options.dir)
    }

    fn too_large(&self) -> CheckpointError {
        CheckpointError::TooLarge {
            session_id: self.id.clone(),
            limit: self.options.max_bytes,
        }
    }
}

/// The sessions that have a checkpoint, sorted.
pub(super) fn list(dir: &Path) -> Result<Vec<String>, CheckpointError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed("list", dir, error)),
    };
    let mut sessions = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| failed("list", dir, error))?;
        let Some(session) = entry.file_name().to_str().and_then(name::decode) else {
            continue;
        };
        let path = entry.path();
        if path.join(PLAIN).is_file() || path.join(GZIP).is_file() {
            sessions.push(session);
        }
    }
    sessions.sort();
    Ok(sessions)
}

fn make_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

fn ignore_missing(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn sync(dir: &Path) -> Result<(), CheckpointError> {
    sync_dir(dir).map_err(|error| failed("write to", dir, error))
}

/// Makes the names in a directory durable, on systems that need an explicit sync.
fn sync_dir(dir: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(dir)?.sync_all()?;
    }
    Ok(())
}

fn failed(doing: &'static str, path: &Path, source: io::Error) -> CheckpointError {
    CheckpointError::Io {
        doing,
        path: path.to_owned(),
        source,
    }
}

fn corrupt(
    path: &Path,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> CheckpointError {
    CheckpointError::Corrupt {
        path: path.to_owned(),
        source: source.into(),
    }
}

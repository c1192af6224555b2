//! `read_file`: reads text files below one directory.

use cap_fs_ext::OpenOptionsSyncExt;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use futures_util::FutureExt;
use serde_json::{Value, json};
use std::io::{Error, ErrorKind, Read};
use std::path::{Component, Path};
use upp::{Effect, Tool, ToolContext, ToolFailure, ToolOutput};

const MAX_BYTES: u64 = 256 * 1024;

pub(super) fn tool(root: &Path) -> Tool {
    let root = root.to_owned();
    let parameters = json!({
        "type": "object",
        "properties": { "path": { "type": "string", "description": "Relative to the root directory, such as notes/today.txt" } },
        "required": ["path"],
        "additionalProperties": false
    });
    let run = move |arguments: Value, _: ToolContext| {
        let root = root.clone();
        let path = arguments
            .get("path")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        async move {
            tokio::task::spawn_blocking(move || read(&root, &path))
                .await
                .unwrap_or_else(|_| Err(ToolFailure::new("The file could not be read.")))
        }
        .boxed()
    };
    Tool::new(
        super::READ_FILE,
        "Reads a UTF-8 text file below the root directory.",
        parameters,
        run,
    )
    .with_effect(Effect::Pure)
}

fn read(root: &Path, path: &str) -> ToolOutput {
    let refuse = |text: String| Err(ToolFailure::new(text));
    if path.is_empty() || path.contains('\0') {
        return refuse(
            "The path is empty or malformed. Give a path relative to the root directory.".into(),
        );
    }
    if !Path::new(path)
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
    {
        return refuse(format!(
            "The path {path:?} is absolute or has \"..\" in it. Give a path below the root directory."
        ));
    }
    let Ok(root) = Dir::open_ambient_dir(root, ambient_authority()) else {
        return refuse("There is no root directory on this server, so no file can be read.".into());
    };
    text(&root, path)
}

/// Reads a file below an open directory. No part of the path can lead out of the directory, not even
/// symbolic links or concurrent renames.
fn text(root: &Dir, path: &str) -> ToolOutput {
    let refuse = |text: String| Err(ToolFailure::new(text));
    let irregular = || refuse(format!("{path:?} is no regular file."));
    // Opening a device may do something.
    match root.metadata(path) {
        Ok(meta) if !meta.is_file() => return irregular(),
        Ok(_) => {}
        Err(error) => return refuse(unreadable(path, &error)),
    }
    // A pipe that has come in its place is not waited for.
    let mut options = OpenOptions::new();
    options.read(true).nonblock(true);
    let opened = root.open_with(path, &options);
    let (file, meta) = match opened.and_then(|file| Ok((file.metadata()?, file))) {
        Ok((meta, file)) => (file, meta),
        Err(error) => return refuse(unreadable(path, &error)),
    };
    if !meta.is_file() {
        return irregular();
    }
    if meta.len() > MAX_BYTES {
        return refuse(format!(
            "{path:?} has {} bytes; at most {MAX_BYTES} can be read.",
            meta.len()
        ));
    }
    let mut bytes = Vec::new();
    if let Err(error) = file.take(MAX_BYTES + 1).read_to_end(&mut bytes) {
        return refuse(unreadable(path, &error));
    }
    if bytes.len() as u64 > MAX_BYTES {
        return refuse(format!(
            "{path:?} is too long; at most {MAX_BYTES} bytes can be read."
        ));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Value::String(text)),
        Err(_) => refuse(format!("{path:?} is no UTF-8 text.")),
    }
}

fn unreadable(path: &str, error: &Error) -> String {
    let kind = error.kind();
    // Not by the system, so by what keeps the path below the root.
    if kind == ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
        format!("The path {path:?} leads out of the root directory, which is not allowed.")
    } else if matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory) {
        format!("There is no file {path:?}.")
    } else {
        format!("The file {path:?} can't be read: {kind}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(root: &Path, path: &str) -> String {
        read(root, path).unwrap_err().message
    }

    #[test]
    fn a_file_below_the_root_is_read() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("a")).unwrap();
        std::fs::write(root.path().join("a/b.txt"), "héllo").unwrap();
        assert_eq!(read(root.path(), "a/b.txt"), Ok(json!("héllo")));
        assert_eq!(read(root.path(), "./a/b.txt"), Ok(json!("héllo")));
    }

    #[cfg(unix)]
    #[test]
    fn nothing_outside_the_root_is_read() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "s").unwrap();
        let root = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("link")).unwrap();
        let absolute = outside.path().join("secret").display().to_string();
        assert!(said(root.path(), &absolute).contains("absolute"));
        assert!(said(root.path(), "../secret").contains("\"..\""));
        assert!(said(root.path(), "link/secret").contains("leads out"));
        assert!(said(root.path(), "link").contains("leads out"));
        assert!(said(root.path(), "a\0b").contains("malformed"));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_within_the_root_is_followed() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("a")).unwrap();
        std::fs::write(root.path().join("b.txt"), "b").unwrap();
        std::os::unix::fs::symlink("../b.txt", root.path().join("a/link")).unwrap();
        assert_eq!(read(root.path(), "a/link"), Ok(json!("b")));
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_that_becomes_a_link_is_never_left() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("text"), "outside").unwrap();
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        std::fs::create_dir(at("a")).unwrap();
        std::fs::write(at("a/text"), "inside").unwrap();
        std::os::unix::fs::symlink(outside.path(), at("link")).unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        let mut n_read = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    for (from, to) in [("a", "b"), ("link", "a"), ("a", "link"), ("b", "a")] {
                        std::fs::rename(at(from), at(to)).unwrap();
                    }
                }
            });
            for _ in 0..20_000 {
                if let Ok(text) = read(root.path(), "a/text") {
                    assert_eq!(text, json!("inside"));
                    n_read += 1;
                }
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert!(n_read > 0, "some are read");
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_refused_and_not_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(root.path().join("pipe"))
            .status();
        assert!(made.unwrap().success());
        assert!(said(root.path(), "pipe").contains("no regular file"));
        let dir = Dir::open_ambient_dir(root.path(), ambient_authority()).unwrap();
        let mut options = OpenOptions::new();
        options.read(true).nonblock(true);
        assert!(dir.open_with("pipe", &options).is_ok(), "also in a race");
    }

    #[test]
    fn what_is_no_short_text_file_is_refused() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("long"), vec![b'a'; 256 * 1024 + 1]).unwrap();
        std::fs::write(root.path().join("binary"), [0xff, 0xfe]).unwrap();
        assert!(said(root.path(), "long").contains("262145 bytes"));
        assert!(said(root.path(), "binary").contains("UTF-8"));
        assert!(said(root.path(), ".").contains("no regular file"));
        assert_eq!(said(root.path(), "none"), "There is no file \"none\".");
        assert!(said(&root.path().join("gone"), "none").contains("no root directory"));
    }
}

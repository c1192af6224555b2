//! `read_file`: text files below one directory, and nothing else.

use futures_util::FutureExt;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};
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
    let Ok(root) = root.canonicalize() else {
        return refuse("There is no root directory on this server, so no file can be read.".into());
    };
    let found = match root.join(path).canonicalize() {
        Ok(found) => found,
        Err(error) => return refuse(unreadable(path, error.kind())),
    };
    if !found.starts_with(&root) {
        return refuse(format!(
            "The path {path:?} leads out of the root directory, which is not allowed."
        ));
    }
    text(&found, path)
}

fn text(found: &PathBuf, path: &str) -> ToolOutput {
    let refuse = |text: String| Err(ToolFailure::new(text));
    // Before it is opened: opening a pipe would wait for its writer.
    match found.symlink_metadata() {
        Ok(meta) if !meta.is_file() => return refuse(format!("{path:?} is no regular file.")),
        Ok(meta) if meta.len() > MAX_BYTES => {
            return refuse(format!(
                "{path:?} has {} bytes; at most {MAX_BYTES} can be read.",
                meta.len()
            ));
        }
        Ok(_) => {}
        Err(error) => return refuse(unreadable(path, error.kind())),
    }
    let mut bytes = Vec::new();
    let read = File::open(found).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    if let Err(error) = read {
        return refuse(unreadable(path, error.kind()));
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

fn unreadable(path: &str, kind: ErrorKind) -> String {
    if matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory) {
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
        assert!(said(root.path(), "a\0b").contains("malformed"));
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

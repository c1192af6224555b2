//! The files of the repository, and Rust source without what is not code.

use anyhow::{Context as _, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Folders that hold nothing of ours.
const FOREIGN: &[&str] = &[
    "target",
    ".git",
    "node_modules",
    "corpus",
    "artifacts",
    ".venv",
    "__pycache__",
    "dist",
];

/// A text file of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Its path from the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// Whether its name ends so.
    pub(crate) fn is(&self, ending: &str) -> bool {
        self.path
            .rsplit_once('.')
            .is_some_and(|(_, found)| found == ending)
    }

    /// Whether it is only compiled for tests.
    pub(crate) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs")
            || self.path.contains("/tests/")
            || self.path.contains("/benches/")
    }

    /// The crate under `crates/` it belongs to.
    pub(crate) fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }
}

/// The text files under `root/below`, in order of their paths; none if there is no such folder.
pub(crate) fn under(root: &Path, below: &str) -> Result<Vec<Source>> {
    let mut found = Vec::new();
    let mut folders = vec![root.join(below)];
    while let Some(folder) = folders.pop() {
        if !folder.is_dir() {
            continue;
        }
        let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() && !FOREIGN.contains(&entry.file_name().to_string_lossy().as_ref()) {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.extend(read(root, &entry.path())?);
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// A file that is not UTF-8 is no text and none of ours to judge.
fn read(root: &Path, path: &Path) -> Result<Option<Source>> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    let path = path.strip_prefix(root).unwrap_or(path);
    let path = path.to_string_lossy().replace('\\', "/");
    Ok(String::from_utf8(bytes)
        .ok()
        .map(|text| Source { path, text }))
}

/// The files that only tests compile: `tests.rs`, `tests/`, `benches/`, and modules under `#[cfg(test)]`.
pub(crate) fn test_files(sources: &[Source]) -> BTreeSet<&str> {
    let mut modules = BTreeSet::new();
    for source in sources.iter().filter(|source| source.is("rs")) {
        let mut lines = source.text.lines().map(str::trim);
        while let Some(line) = lines.next() {
            if line == "#[cfg(test)]"
                && let Some(name) = lines.next().and_then(module_of)
            {
                modules.insert(format!("{}/{name}", folder_of_children(&source.path)));
            }
        }
    }
    let below = |path: &str, module: &str| {
        path.strip_prefix(module)
            .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    };
    sources
        .iter()
        .filter(|it| it.is_test() || modules.iter().any(|module| below(&it.path, module)))
        .map(|it| it.path.as_str())
        .collect()
}

/// The name in `mod name;`.
fn module_of(line: &str) -> Option<&str> {
    line.rsplit_once("mod ")?.1.strip_suffix(';')
}

/// The folder of the modules that a file declares.
fn folder_of_children(path: &str) -> &str {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let is_root = ["lib.rs", "main.rs"].iter().any(|it| path.ends_with(it));
    if is_root {
        folder
    } else {
        path.strip_suffix(".rs").unwrap_or(path)
    }
}

/// The source with comments and the insides of literals blanked, line by line as it was.
pub(crate) fn code(text: &str) -> String {
    blanked(text, true)
}

/// The source with comments blanked, line by line as it was.
pub(crate) fn without_comments(text: &str) -> String {
    blanked(text, false)
}

fn blanked(text: &str, literals: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => end_of_line(bytes, at),
            b'/' if bytes[at..].starts_with(b"/*") => end_of_block(bytes, at),
            b'r' if is_raw(bytes, at) => end_of_raw(bytes, at),
            b'"' => end_of_string(bytes, at),
            b'\'' => end_of_char(bytes, at),
            byte if is_word(byte) => {
                at += bytes[at..]
                    .iter()
                    .take_while(|byte| is_word(**byte))
                    .count();
                continue;
            }
            _ => {
                at += 1;
                continue;
            }
        };
        if literals || bytes[at] == b'/' {
            for byte in &mut out[at..end] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
        }
        at = end;
    }
    // Only whole characters are blanked, so what is left is UTF-8.
    String::from_utf8_lossy(&out).into_owned()
}

pub(crate) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn end_of_line(bytes: &[u8], at: usize) -> usize {
    let length = bytes[at..].iter().position(|byte| *byte == b'\n');
    length.map_or(bytes.len(), |length| at + length)
}

fn end_of_block(bytes: &[u8], at: usize) -> usize {
    let (mut depth, mut end) = (0_usize, at);
    while end < bytes.len() {
        if bytes[end..].starts_with(b"/*") {
            depth += 1;
            end += 2;
        } else if bytes[end..].starts_with(b"*/") {
            depth = depth.saturating_sub(1);
            end += 2;
            if depth == 0 {
                return end;
            }
        } else {
            end += 1;
        }
    }
    bytes.len()
}

fn is_raw(bytes: &[u8], at: usize) -> bool {
    let hashes = bytes[at + 1..]
        .iter()
        .take_while(|byte| **byte == b'#')
        .count();
    bytes.get(at + 1 + hashes) == Some(&b'"')
}

fn end_of_raw(bytes: &[u8], at: usize) -> usize {
    let hashes = bytes[at + 1..]
        .iter()
        .take_while(|byte| **byte == b'#')
        .count();
    let close: Vec<u8> = std::iter::once(b'"')
        .chain(std::iter::repeat_n(b'#', hashes))
        .collect();
    let inside = at + hashes + 2;
    bytes[inside..]
        .windows(close.len())
        .position(|window| window == close)
        .map_or(bytes.len(), |length| inside + length + close.len())
}

fn end_of_string(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < bytes.len() {
        match bytes[end] {
            b'\\' => end += 2,
            b'"' => return end + 1,
            _ => end += 1,
        }
    }
    bytes.len()
}

/// The end of a character, or of the quote alone where it begins a lifetime.
fn end_of_char(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at + 1..];
    let length = match rest.first() {
        Some(b'\\') => rest
            .iter()
            .skip(2)
            .position(|byte| *byte == b'\'')
            .map(|n| n + 2),
        Some(_) => rest
            .iter()
            .take(5)
            .position(|byte| *byte == b'\'')
            .filter(|n| *n > 0),
        None => None,
    };
    match length {
        // `'a, 'b` holds a quote soon after a quote and is no character.
        Some(length) if length == 1 || !rest[0].is_ascii() || rest[0] == b'\\' => at + length + 2,
        Some(_) | None => at + 1,
    }
}

/// The code without the modules that are only compiled for tests.
pub(crate) fn production(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    for (line, counts) in code.lines().zip(production_lines(code)) {
        if counts {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// For each line of code, whether it is outside of the items that are only compiled for tests.
pub(crate) fn production_lines(code: &str) -> Vec<bool> {
    let mut flags = Vec::new();
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let is_test = line.trim_start().starts_with("#[cfg(test)]");
        let n_lines = if is_test {
            pass_item(line, &mut lines)
        } else {
            1
        };
        flags.extend(std::iter::repeat_n(!is_test, n_lines));
    }
    flags
}

/// Passes over one item, to its `;` or to the brace that ends it; gives its number of lines.
fn pass_item<'a>(first: &'a str, lines: &mut impl Iterator<Item = &'a str>) -> usize {
    let (mut depth, mut n_lines) = (0_usize, 0);
    let (_, first) = first.split_once("#[cfg(test)]").unwrap_or_default();
    for line in std::iter::once(first).chain(lines) {
        n_lines += 1;
        for byte in line.bytes() {
            match byte {
                b'{' => depth += 1,
                b'}' if depth == 1 => return n_lines,
                b'}' => depth = depth.saturating_sub(1),
                b';' if depth == 0 => return n_lines,
                _ => {}
            }
        }
    }
    n_lines
}

/// The lines that contain `needle` as a whole word, from 1.
pub(crate) fn lines_with(text: &str, needle: &str) -> Vec<usize> {
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| has_word(line, needle))
        .map(|(number, _)| number)
        .collect()
}

fn has_word(line: &str, needle: &str) -> bool {
    let bytes = line.as_bytes();
    let bounded = |inside: Option<&u8>, outside: Option<&u8>| {
        inside.is_none_or(|byte| !is_word(*byte)) || outside.is_none_or(|byte| !is_word(*byte))
    };
    let (first, last) = (needle.as_bytes().first(), needle.as_bytes().last());
    line.match_indices(needle).any(|(at, _)| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        bounded(first, before) && bounded(last, bytes.get(at + needle.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_lines_stay() {
        let text = "let a = \"tokio // no\"; // tokio\n/* a /* b */ c */ let c = '\"'; let l: &'a str = r#\"x\"y\"#;\n";
        let code = code(text);
        assert_eq!(code.lines().count(), text.lines().count());
        assert!(!code.contains("tokio"));
        assert!(code.contains("let c ="));
        assert!(code.contains("a str ="));
        assert!(!code.contains('x'));
    }

    #[test]
    fn lifetimes_do_not_swallow_code() {
        let code = code("fn f<'a, 'b>(x: &'a str, y: &'b str) -> char { '\\'' } // end\nfn g() {}");
        assert!(code.contains("a, "));
        assert!(code.contains("b str) -> char {"));
        assert!(code.contains("fn g() {}"));
        assert!(!code.contains("end"));
    }

    #[test]
    fn a_character_beyond_ascii_is_blanked_whole() {
        assert_eq!(code("let c = '…'; x").trim_end(), "let c =      ; x");
    }

    #[test]
    fn modules_for_tests_are_left_out_and_the_rest_stays() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests;\nfn b() {}\n#[cfg(test)]\nmod more {\n fn c() { if x { } }\n}\nfn d() {}\n";
        assert_eq!(production(text), "fn a() {}\nfn b() {}\nfn d() {}\n");
    }

    #[test]
    fn modules_under_cfg_test_are_test_files() {
        let source = |path: &str, text: &str| Source {
            path: path.into(),
            text: text.into(),
        };
        let sources = [
            source("crates/a/src/b.rs", "#[cfg(test)]\nmod samples;\nmod c;\n"),
            source("crates/a/src/b/c.rs", ""),
            source("crates/a/src/b/samples.rs", ""),
            source("crates/a/src/b/samples/one.rs", ""),
            source("crates/a/tests/it.rs", ""),
        ];
        let expected = [
            "crates/a/src/b/samples.rs",
            "crates/a/src/b/samples/one.rs",
            "crates/a/tests/it.rs",
        ];
        assert_eq!(
            test_files(&sources).into_iter().collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn comments_alone_are_blanked_where_literals_count() {
        let text = "let a = \"// no\"; // yes\n";
        assert_eq!(without_comments(text).trim_end(), "let a = \"// no\";");
    }

    #[test]
    fn words_are_matched_whole() {
        assert_eq!(
            lines_with("tokio::spawn\nmy_tokio\nuse tokio;", "tokio"),
            [1, 3]
        );
        assert_eq!(lines_with("print!(x)\neprint!(x)", "print!"), [1]);
    }
}

//! Texts of named sections, in which what was there before is not repeated.

use std::fmt::Write as _;
use std::path::Path;

/// A text of sections, each under a line `== NAME`.
#[derive(Default)]
pub(super) struct Golden {
    text: String,
    sections: Vec<(String, String)>,
}

impl Golden {
    /// A section. One that an earlier one has, or ends with, only names that one.
    pub(super) fn section(&mut self, name: &str, body: impl Into<String>) {
        let mut body = body.into();
        if !body.is_empty() && !body.ends_with('\n') {
            body.push('\n');
        }
        if body.is_empty() {
            self.line(format_args!("== {name}: nothing"));
            return;
        }
        let found = self
            .sections
            .iter()
            .find_map(|(known, text)| Some((known, rest_of(text, &body)?)));
        match found {
            Some((known, 0)) => {
                let line = format!("== {name}: as {known}");
                self.line(format_args!("{line}"));
            }
            Some((known, n_lines)) => {
                let line = format!("== {name}: as {known} after {n_lines} lines");
                self.line(format_args!("{line}"));
            }
            None => {
                self.line(format_args!("== {name}"));
                self.text.push_str(&body);
                self.sections.push((name.to_owned(), body));
            }
        }
    }

    /// A section of values, one a line.
    pub(super) fn values(&mut self, name: &str, values: impl IntoIterator<Item = impl ToString>) {
        let lines = values.into_iter().map(|value| value.to_string() + "\n");
        self.section(name, lines.collect::<String>());
    }

    pub(super) fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.text, "{line}").unwrap();
    }

    pub(super) fn finish(self) -> String {
        assert!(!self.text.contains(['§', '¤']));
        let mut text = self.text;
        for (prefix, short) in IDS {
            text = text.replace(prefix, short);
            text = text.replace(&prefix.replace('-', ""), &short.repeat(2));
        }
        text
    }
}

/// What ids begin with, and what stands for it in files.
const IDS: [(&str, &str); 2] = [
    ("00000000-0000-7000-8000-000000000", "§"),
    ("00000000-0000-4000-8000-000000000", "¤"),
];

/// A recorded text with its whole ids.
pub(super) fn with_ids(text: &str) -> String {
    let mut text = text.to_owned();
    for (prefix, short) in IDS {
        text = text.replace(&short.repeat(2), &prefix.replace('-', ""));
        text = text.replace(short, prefix);
    }
    text
}

/// After how many lines of a text another one is what is left of it, but for the mark that says of
/// which record the first of them is.
fn rest_of(text: &str, rest: &str) -> Option<usize> {
    if text == rest {
        return Some(0);
    }
    let rest = match rest.split_once('\n') {
        Some((first, rest)) if first.starts_with('@') => rest,
        Some(_) | None => rest,
    };
    let before = text.strip_suffix(rest)?;
    let is_whole = before.ends_with('\n') && !rest.is_empty();
    is_whole.then(|| before.lines().count())
}

/// Whether the files are to be written anew.
#[expect(clippy::disallowed_methods, reason = "a test's own switch")]
pub(super) fn is_updated() -> bool {
    std::env::var_os("UPDATE_RUNS").is_some()
}

/// What is said of each record, after a line `@SEQ` with its place.
#[derive(Default)]
pub(super) struct Marked(String);

impl Marked {
    pub(super) fn push(&mut self, seq: impl std::fmt::Display, said: &str) {
        if said.is_empty() {
            return;
        }
        writeln!(self.0, "@{seq}").unwrap();
        self.0.push_str(said);
        if !said.ends_with('\n') {
            self.0.push('\n');
        }
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// Values as lines.
pub(super) fn lines(values: impl IntoIterator<Item = impl ToString>) -> String {
    let lines = values.into_iter().map(|value| value.to_string() + "\n");
    lines.collect()
}

/// Fails at the first line that differs.
pub(super) fn assert_same(now: &str, then: &str, file: &Path) {
    let mut section = "";
    for (n, (now, then)) in now.lines().zip(then.lines()).enumerate() {
        if now.starts_with("== ") {
            section = now;
        }
        assert_eq!(now, then, "{}:{} {section}", file.display(), n + 1);
    }
    assert!(now == then, "{} has another length", file.display());
}

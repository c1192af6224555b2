//! A command's output: text for people, or one JSON value per line for scripts.

use crate::environment::environment;
use crate::error::CliError;
use anstream::ColorChoice;
use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const TOOL: Style = AnsiColor::Cyan.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const WARNED: Style = AnsiColor::Yellow.on_default();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();

#[derive(Clone)]
pub(crate) struct Output {
    json: bool,
    quiet: bool,
}

impl Output {
    /// Decides about colours for the whole program as well.
    pub(crate) fn new(json: bool, quiet: bool, color: clap::ColorChoice) -> Self {
        let choice = match color {
            clap::ColorChoice::Auto => ColorChoice::Auto,
            clap::ColorChoice::Always => ColorChoice::Always,
            clap::ColorChoice::Never => ColorChoice::Never,
        };
        choice.write_global();
        Self { json, quiet }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Prints text for people. Styles are removed if the output is not a terminal.
    #[expect(clippy::unused_self, reason = "the one way to print")]
    pub(crate) fn raw(&self, text: &str) -> Result<(), CliError> {
        put(anstream::stdout().lock(), text)
    }

    /// Prints a document: to a file or a program every character of it, to a terminal without
    /// control over it.
    #[expect(clippy::unused_self, reason = "the one way to print")]
    pub(crate) fn document(&self, text: &str) -> Result<(), CliError> {
        let stdout = std::io::stdout();
        if stdout.is_terminal() {
            put(stdout.lock(), &format!("{}\n", escaped(text)))
        } else {
            put(stdout.lock(), text)?;
            put(stdout.lock(), "\n")
        }
    }

    /// Prints lines: for people with the styles in them, for scripts as they are.
    pub(crate) fn report(&self, lines: &str) -> Result<(), CliError> {
        if self.json {
            put(std::io::stdout().lock(), lines)
        } else {
            put(anstream::stdout().lock(), lines)
        }
    }

    /// Prints lines of foreign JSON, like [`Output::document`].
    #[expect(clippy::unused_self, reason = "the one way to print")]
    pub(crate) fn exact(&self, lines: &str) -> Result<(), CliError> {
        let stdout = std::io::stdout();
        if stdout.is_terminal() {
            put(stdout.lock(), &escaped(lines))
        } else {
            put(stdout.lock(), lines)
        }
    }

    /// Prints lines that are not the result, made for people or for scripts: to standard error.
    pub(crate) fn write_stderr(&self, lines: &str) {
        // Nothing can be done when standard error is gone.
        let _ = if self.json {
            std::io::stderr().lock().write_all(lines.as_bytes())
        } else {
            anstream::stderr().lock().write_all(lines.as_bytes())
        };
    }

    /// Prints JSON on a line of its own.
    #[expect(clippy::unused_self, reason = "the one way to print")]
    pub(crate) fn json(&self, text: &str) -> Result<(), CliError> {
        // JSON that came from outside is kept as it came, line breaks between its tokens included.
        let line = escaped(text).replace(['\n', '\r'], " ");
        put(std::io::stdout().lock(), &format!("{line}\n"))
    }

    /// Prints a line for people; nothing in JSON mode.
    pub(crate) fn line(&self, text: &str) -> Result<(), CliError> {
        if self.json {
            Ok(())
        } else {
            self.raw(&format!("{text}\n"))
        }
    }

    /// Prints a value for scripts; nothing outside of JSON mode.
    pub(crate) fn value(&self, value: &Value) -> Result<(), CliError> {
        if self.json {
            self.json(&value.to_string())
        } else {
            Ok(())
        }
    }

    /// Notes something that is not the result: to standard error.
    pub(crate) fn print(&self, text: &str) {
        if !self.json && !self.quiet {
            // Nothing can be done when standard error is gone.
            let _ = writeln!(anstream::stderr().lock(), "{text}");
        }
    }

    pub(crate) fn error(&self, error: &CliError) {
        if !matches!(error, CliError::BrokenPipe | CliError::Differ) {
            self.write_stderr(&self.error_text(error));
        }
    }

    /// Formats an error with its causes.
    pub(crate) fn error_text(&self, error: &CliError) -> String {
        let mut causes = Vec::new();
        let mut cause = std::error::Error::source(error);
        while let Some(inner) = cause {
            causes.push(inner.to_string());
            cause = inner.source();
        }
        let error = error.to_string();
        if self.json {
            return json_line(json!({"error": error, "causes": causes}));
        }
        let mut text = format!("{BAD}error{BAD:#}: {}\n", clean(&error));
        for cause in causes {
            // Writing to a string can't fail.
            let _ = writeln!(text, "  because {}", clean(&cause));
        }
        text
    }
}

/// A value for scripts, on a line of its own.
pub(crate) fn json_line(value: impl std::fmt::Display) -> String {
    format!("{}\n", escaped(&value.to_string()))
}

/// Waits until the reader of the output has closed the pipe. A follower without output could not notice
/// it otherwise. Never returns if the output is not a pipe.
#[cfg(unix)]
#[expect(
    deprecated,
    reason = "what replaces it is unsafe, for handles that change; standard output does not"
)]
pub(crate) async fn reader_left() {
    use tokio::io::{Interest, unix::AsyncFd};
    if let Ok(out) = AsyncFd::with_interest(std::io::stdout(), Interest::ERROR)
        && out.ready(Interest::ERROR).await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

/// Never returns: without Unix, only a failed write shows that the reader is gone.
#[cfg(not(unix))]
pub(crate) async fn reader_left() {
    std::future::pending::<()>().await;
}

fn put(mut out: impl std::io::Write, text: &str) -> Result<(), CliError> {
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(CliError::io("write the output"))
}

/// Width of the terminal, in characters; 100 without one.
pub(crate) fn width() -> usize {
    let columns = environment("COLUMNS").and_then(|columns| columns.parse().ok());
    let size = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    columns.or_else(size).unwrap_or(100)
}

/// Removes control characters, so that text of a model, a file or a client can't control the terminal.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}

/// JSON without the control characters DEL and C1, which JSON may hold unescaped.
fn escaped(json: &str) -> Cow<'_, str> {
    let raw = |c: char| c.is_control() && !c.is_ascii_whitespace();
    if !json.contains(raw) {
        return json.into();
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if raw(c) {
            // Writing to a string can't fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_the_same_without_raw_control_characters() {
        let text = "{\"a\": \"x\u{7f}\u{9b}2Jé\\u001b\"}";
        let escaped = escaped(text);
        assert_eq!(escaped, "{\"a\": \"x\\u007f\\u009b2Jé\\u001b\"}");
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(value(&escaped), value(text));
    }

    #[test]
    fn control_characters_are_not_text() {
        assert_eq!(clean("a\u{1b}[2J\u{9b}\u{7f}\r\n\tb"), "a[2J\n\tb");
    }
}

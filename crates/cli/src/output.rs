//! What a command prints: text for people, or one JSON value a line for scripts.

use crate::error::CliError;
use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};
use std::io::Write;

pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const TOOL: Style = AnsiColor::Cyan.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();

pub(crate) struct Output {
    json: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Prints as it is.
    #[expect(clippy::unused_self, reason = "the one way to print")]
    pub(crate) fn raw(&self, text: &str) -> Result<(), CliError> {
        let mut out = anstream::stdout().lock();
        out.write_all(text.as_bytes())
            .and_then(|()| out.flush())
            .map_err(CliError::io("write the output"))
    }

    /// Prints a line for people, or nothing when scripts read.
    pub(crate) fn line(&self, text: &str) -> Result<(), CliError> {
        if self.json {
            Ok(())
        } else {
            self.raw(&format!("{text}\n"))
        }
    }

    /// Prints a value for scripts, or nothing when people read.
    pub(crate) fn value(&self, value: &Value) -> Result<(), CliError> {
        if self.json {
            self.raw(&format!("{value}\n"))
        } else {
            Ok(())
        }
    }

    /// Says something that is not the result: to standard error.
    pub(crate) fn say(&self, text: &str) {
        if !self.json {
            // Nothing can be done when standard error is gone.
            let _ = writeln!(anstream::stderr().lock(), "{text}");
        }
    }

    pub(crate) fn error(&self, error: &CliError) {
        if matches!(error, CliError::BrokenPipe) {
            return;
        }
        let mut causes = Vec::new();
        let mut cause = std::error::Error::source(error);
        while let Some(inner) = cause {
            causes.push(inner.to_string());
            cause = inner.source();
        }
        let mut stream = anstream::stderr().lock();
        let _ = if self.json {
            writeln!(
                stream,
                "{}",
                json!({"error": error.to_string(), "causes": causes})
            )
        } else {
            let chain: String = causes
                .iter()
                .map(|cause| format!("\n  because {cause}"))
                .collect();
            writeln!(stream, "{BAD}error{BAD:#}: {error}{chain}")
        };
    }
}

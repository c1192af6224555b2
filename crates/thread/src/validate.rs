//! Validation: everything that is wrong with a document, as data.
//!
//! A rule has an id that stays the same and two severities, one for reading ([`Profile::Lenient`])
//! and one for writing ([`Profile::Strict`]); [`Rule`] lists them. Rules of a later version are
//! not applied to a document of an earlier one. Unknown members, kinds and events are no breach.

pub(crate) mod actions;
mod base64;
mod calls;
pub(crate) mod events;
pub(crate) mod fields;
mod instants;
pub(crate) mod numbers;
pub(crate) mod parts;
pub(crate) mod root;
mod rule;
pub(crate) mod turns;
pub(crate) mod uri;

pub use instants::is_instant;
pub use rule::Rule;

use crate::document::{Thread, Version};
use crate::json::DecodeError;
use crate::path::Path;
use crate::upgrade::{Origin, to_turns};
use crate::versioned::Changes;

/// What a document is validated for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// Reading: what can be lived with is a warning.
    #[default]
    Lenient,
    /// Writing: what must not be written is an error.
    Strict,
}

/// How bad a violation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The document can be used as it is.
    Warning,
    /// The document breaks the protocol.
    Error,
}

/// How a document is validated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// What for.
    pub profile: Profile,
    /// Whether instants out of order are errors; they are warnings in every profile (ruling 16).
    pub deny_timestamps: bool,
    /// Schemes of `content_ref.uri` recognised beside `https`, `s3`, `gs`, `azure` and `file`.
    pub schemes: Vec<String>,
}

impl From<Profile> for Rules {
    fn from(profile: Profile) -> Self {
        Self {
            profile,
            ..Self::default()
        }
    }
}

/// One breach of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The JSON Pointer of what is wrong, or of where something is missing.
    pub pointer: String,
    /// The rule that is broken.
    pub rule: Rule,
    /// How bad it is under the rules asked for.
    pub severity: Severity,
    /// What is wrong, for people.
    pub message: String,
}

impl From<&DecodeError> for Violation {
    /// A text that is not decoded is no document, whatever the profile.
    fn from(error: &DecodeError) -> Self {
        let DecodeError {
            fault,
            line,
            column,
            ..
        } = error;
        let expected = fault.expected();
        Self {
            pointer: error.pointer.clone(),
            rule: Rule::Json,
            severity: Severity::Error,
            message: format!("{fault} at line {line}, column {column}, expected {expected}"),
        }
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let severity = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        let Self {
            pointer,
            rule,
            message,
            ..
        } = self;
        write!(formatter, "{severity} {rule} at \"{pointer}\": {message}")
    }
}

/// Reports everything that is wrong with a document, roughly in document order.
pub fn validate(thread: &Thread, rules: impl Into<Rules>) -> Vec<Violation> {
    let rules = rules.into();
    let mut report = Report {
        rules: &rules,
        version: thread.version(),
        violations: Vec::new(),
    };
    root::check(&mut report, thread);
    if report.version == Version::V1_0_0 {
        let mut turns = thread.clone();
        let origin = to_turns(&mut turns, &mut Changes::default());
        actions::check(&mut report, thread);
        calls::check(&mut report, &turns, &origin);
    } else {
        turns::check(&mut report, thread);
        instants::check_turns(&mut report, thread);
        calls::check(&mut report, thread, &Origin::Turns);
    }
    numbers::check(&mut report, thread.root());
    report.violations
}

/// The violations so far, and what decides over the next.
struct Report<'r> {
    rules: &'r Rules,
    version: Version,
    violations: Vec<Violation>,
}

impl Report<'_> {
    fn add(&mut self, rule: Rule, path: Path<'_>, message: impl Into<String>) {
        self.add_at(rule, path.to_pointer(), message);
    }

    fn add_at(&mut self, rule: Rule, pointer: String, message: impl Into<String>) {
        self.violations.push(Violation {
            pointer,
            rule,
            severity: rule.severity(self.rules),
            message: message.into(),
        });
    }
}

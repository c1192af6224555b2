//! Validation: all errors of a document, as data.
//!
//! A rule has a stable id and two severities, one for reading ([`Profile::Lenient`]) and one for
//! writing ([`Profile::Strict`]); [`Rule`] lists them. Rules of a later version do not apply to a
//! document of an earlier one. Unknown members, kinds and events are no breach.

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

/// The purpose of a validation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// For reading: tolerable breaches are warnings.
    #[default]
    Lenient,
    /// For writing: everything that must not be written is an error.
    Strict,
}

/// The severity of a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The document can be used as it is.
    Warning,
    /// The document breaks the protocol.
    Error,
}

/// Options for validation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// The purpose of the validation.
    pub profile: Profile,
    /// Whether instants out of order are errors; they are warnings in every profile (ruling 16).
    pub deny_timestamps: bool,
    /// Schemes of `content_ref.uri` to accept in addition to `https`, `s3`, `gs`, `azure` and
    /// `file`.
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
    /// The JSON Pointer of the fault, or of the object that lacks a member.
    pub pointer: String,
    /// The rule that is broken.
    pub rule: Rule,
    /// The severity under the requested rules.
    pub severity: Severity,
    /// The violation, described for people.
    pub message: String,
}

impl From<&DecodeError> for Violation {
    /// A text that can't be decoded is an error in every profile.
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

/// The violations so far, with the rules and the version that apply.
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

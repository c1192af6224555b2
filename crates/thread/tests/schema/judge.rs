//! A document before both judges: its schema and validation.

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind;
use loomline_thread::validate::Rule;
use loomline_thread::{Profile, Severity, Thread, Version, Violation, schema, validate};
use serde_json::Value;
use std::collections::BTreeSet;

/// The rules that a schema says, all of them or what is about one place.
pub(crate) const SAID: [Rule; 17] = [
    Rule::Shape,
    Rule::Required,
    Rule::Expected,
    Rule::UnknownKind,
    Rule::Timestamp,
    Rule::TimestampOffset,
    Rule::ClientMetadataKey,
    Rule::ContentRefUri,
    Rule::ContentRefScheme,
    Rule::ContentRefHash,
    Rule::LinkThreadId,
    Rule::SystemPrompt,
    Rule::CompletionStatus,
    Rule::Interruption,
    Rule::CompletedAt,
    Rule::CompleteCycle,
    Rule::EventPayload,
];

/// A document before both judges.
pub(crate) struct Judge {
    version: Version,
    profile: Profile,
    validator: Validator,
}

impl Judge {
    pub(crate) fn new(version: &Version, profile: Profile) -> Self {
        let schema = schema(version, profile).expect("a known version");
        let schema = schema.to_value().expect("small numbers");
        Self {
            version: version.clone(),
            profile,
            validator: jsonschema::draft202012::new(&schema).expect("a schema"),
        }
    }

    /// Where the schema finds something wrong: the pointer of the member that is wrong or missing.
    pub(crate) fn schema_errors(&self, document: &Value) -> Vec<String> {
        let errors = self.validator.iter_errors(document).map(|error| {
            let place = error.instance_path().to_string();
            match error.kind() {
                ValidationErrorKind::Required { property } => below(&place, property),
                ValidationErrorKind::PropertyNames { error } => below(&place, error.instance()),
                _ => place,
            }
        });
        let errors: BTreeSet<_> = errors.collect();
        errors.into_iter().collect()
    }

    /// Where validation finds an error that a schema can say, in the same words, with the rule.
    pub(crate) fn validation_errors(&self, document: &Value) -> BTreeSet<(String, Rule)> {
        let thread = Thread::decode(&document.to_string()).expect("an object");
        let violations = validate(&thread, self.profile);
        let errors = violations
            .iter()
            .filter(|it| it.severity == Severity::Error);
        errors
            .filter_map(|it| Some((place(document, it)?, it.rule)))
            .collect()
    }

    /// Whether both judges see the same; if not, what each sees.
    pub(crate) fn compare(&self, document: &Value) -> Result<(), String> {
        let schema = self.schema_errors(document);
        // Validation goes by the version that a document names, and by the newest where it names none.
        let judged_by = document["version"].as_str().map(Version::from);
        if judged_by.unwrap_or(Version::V0_0_4) != self.version {
            return if schema.iter().any(|place| place == "/version") {
                Ok(())
            } else {
                Err("the schema takes another version".to_owned())
            };
        }
        let validation = self.validation_errors(document);
        let places: BTreeSet<_> = validation.iter().map(|(place, _)| place).collect();
        if places.into_iter().eq(&schema) {
            Ok(())
        } else {
            let Self {
                version, profile, ..
            } = self;
            Err(format!(
                "{version} {profile:?}: schema {schema:?}, validation {validation:?}"
            ))
        }
    }
}

fn below(place: &str, key: &Value) -> String {
    let key = key.as_str().expect("a key");
    let key = key.replace('~', "~0").replace('/', "~1");
    format!("{place}/{key}")
}

/// The place of a violation as a schema sees it: what is missing is pointed at, too.
fn place(document: &Value, violation: &Violation) -> Option<String> {
    let Violation {
        pointer,
        rule,
        message,
        ..
    } = violation;
    if !SAID.contains(rule) {
        return None;
    }
    let found = document.pointer(pointer);
    let missing = || {
        let name = message.strip_prefix('`')?.strip_suffix("` is missing")?;
        Some(format!("{pointer}/{name}"))
    };
    match rule {
        Rule::Required | Rule::Expected => missing(),
        Rule::EventPayload if found.is_some_and(Value::is_object) => {
            missing().or_else(|| Some(pointer.clone()))
        }
        Rule::Interruption if !pointer.ends_with("/interruption") => {
            Some(format!("{pointer}/interruption"))
        }
        Rule::CompleteCycle => {
            (message == "the response has no parts").then(|| format!("{pointer}/parts"))
        }
        Rule::SystemPrompt if found.is_some_and(Value::is_object) => {
            Some(format!("{pointer}/part_kind"))
        }
        _ => Some(pointer.clone()),
    }
}

//! `validate` and `hash`.

use crate::args::{Form, Going, Hash, Validate};
use crate::convert::json_fault;
use crate::error::CliError;
use crate::input::Input;
use crate::output::{BAD, BOLD, DIM, GOOD, Output, WARNED, clean, json_line};
use crate::report::{at_line, before, location};
use crate::sink::Sink;
use crate::work::{BatchOptions, Done, Location, Totals, work};
use interop::convert::{self, ReadOptions};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use thread::canonical::{HashedText, InexactNumbers, hash_text};
use thread::validate::Rule;
use thread::{CanonicalOptions, DecodeError, Limits, Profile, Rules, Severity, Thread, Violation};

/// How the documents of an input were judged so far.
#[derive(Default)]
struct Tally {
    documents: AtomicUsize,
    errors: AtomicUsize,
    warnings: AtomicUsize,
}

impl Tally {
    fn add(&self, violations: &[Violation]) -> usize {
        let is_error = |it: &&Violation| it.severity == Severity::Error;
        let n_errors = violations.iter().filter(is_error).count();
        self.documents.fetch_add(1, Relaxed);
        self.errors.fetch_add(n_errors, Relaxed);
        let n_warnings = violations.len() - n_errors;
        self.warnings.fetch_add(n_warnings, Relaxed);
        n_errors
    }
}

pub(crate) fn validate(options: &Validate, output: &Output) -> Result<(), CliError> {
    let profile = match options.format {
        Form::Thread if options.strict => Some("strict"),
        Form::Thread => Some("lenient"),
        Form::Archive | Form::PydanticAi | Form::AiSdkUi | Form::AiSdkStream => None,
    };
    let tally = Arc::new(Tally::default());
    let judged = judge_input(options, &tally, output);
    let verdict = match &judged {
        Ok(_) => "valid",
        Err(CliError::Lines { totals, .. }) if totals.failed > 0 => "not judged",
        Err(CliError::Invalid { .. } | CliError::Lines { .. }) => "invalid",
        Err(_) => "not judged",
    };
    output.value(&json!({
        "verdict": verdict,
        "profile": profile,
        "documents": tally.documents.load(Relaxed),
        "errors": tally.errors.load(Relaxed),
        "warnings": tally.warnings.load(Relaxed),
    }))?;
    let (by_line, totals) = judged?;
    let profile = profile.map(|it| format!(" under {it}")).unwrap_or_default();
    output.line(&summary_line(&profile, by_line, totals))
}

/// Prints the faults of each document; returns whether each line is a document, and their number.
fn judge_input(
    options: &Validate,
    tally: &Arc<Tally>,
    output: &Output,
) -> Result<(bool, Totals), CliError> {
    let source = &options.source;
    let input = Input::of(source)?;
    let (by_line, name) = (input.by_line, Arc::clone(&input.name));
    let way = BatchOptions {
        refused: "not valid",
        judges: true,
        ..BatchOptions::new(output, source.limits, Going { keep_going: true })
    };
    let limits = source.limits.limits();
    let rules = Rules {
        deny_timestamps: options.deny_timestamps,
        ..Rules::from(if options.strict {
            Profile::Strict
        } else {
            Profile::Lenient
        })
    };
    let (form, out, counts) = (options.format, output.clone(), Arc::clone(tally));
    let sink = Sink::Report(output.clone());
    let totals = work(input, sink, &way, move |text, spot| {
        if form != Form::Thread {
            return Ok(readable(form.of(), text, (limits, &counts), spot, &out));
        }
        let violations = match Thread::decode_with(text, &limits) {
            Ok(document) => thread::validate(&document, rules.clone()),
            Err(error) => vec![Violation::from(&error)],
        };
        Ok(report_violations(&violations, &counts, spot, &out))
    });
    match totals {
        Err(error @ CliError::NotUtf8 { .. }) => {
            tally.documents.fetch_add(1, Relaxed);
            tally.errors.fetch_add(1, Relaxed);
            let spot = Location { name, line: None };
            let rule = Some(Rule::Json);
            output.report(&finding(
                "error",
                "",
                rule,
                &error.to_string(),
                &spot,
                output,
            ))?;
            Err(CliError::Invalid { n_errors: 1 })
        }
        totals => Ok((by_line, totals?)),
    }
}

fn summary_line(profile: &str, by_line: bool, totals: Totals) -> String {
    let warnings = match totals.found {
        1 => "1 warning".to_owned(),
        n => format!("{n} warnings"),
    };
    let lines = if by_line {
        format!("{} lines ", totals.documents)
    } else {
        String::new()
    };
    format!("{lines}{GOOD}valid{GOOD:#}{profile}, {warnings}")
}

/// Formats the violations as lines.
fn report_violations(
    violations: &[Violation],
    tally: &Tally,
    spot: &Location,
    output: &Output,
) -> Done {
    let n_errors = tally.add(violations);
    let lines = violations.iter().map(|violation| {
        let Violation {
            pointer,
            rule,
            severity,
            message,
        } = violation;
        let word = match severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        finding(word, pointer, Some(*rule), message, spot, output)
    });
    Done {
        out: lines.collect(),
        n_found: violations.len(),
        refused: (n_errors > 0).then_some(CliError::Invalid { n_errors }),
        ..Done::default()
    }
}

/// A line about what is wrong in one place; a format that has no rules has no rule to name.
fn finding(
    word: &str,
    pointer: &str,
    rule: Option<Rule>,
    message: &str,
    spot: &Location,
    output: &Output,
) -> String {
    let rule = rule.map(Rule::id);
    if output.is_json() {
        let value = json!({"severity": word, "pointer": pointer, "rule": rule, "message": message});
        return json_line(at_line(value, spot));
    }
    let style = if word == "error" { BAD } else { DIM };
    let (before, message) = (before(spot), clean(message));
    match rule {
        None => format!("{before}{style}{word}{style:#} {message}\n"),
        Some(rule) => format!(
            "{before}{style}{word}{style:#} {BOLD}{}{BOLD:#} {message} {DIM}[{rule}]{DIM:#}\n",
            location(pointer)
        ),
    }
}

/// For the formats whose validation is that they can be read.
fn readable(
    form: convert::SourceForm,
    text: &str,
    (limits, tally): (Limits, &Tally),
    spot: &Location,
    output: &Output,
) -> Done {
    let options = ReadOptions {
        limits,
        ..ReadOptions::default()
    };
    let Err(mut error) = convert::read(form, text, &options) else {
        return report_violations(&[], tally, spot, output);
    };
    if let Some(fault) = json_fault(&mut error) {
        return report_violations(&[Violation::from(&*fault)], tally, spot, output);
    }
    tally.documents.fetch_add(1, Relaxed);
    tally.errors.fetch_add(1, Relaxed);
    Done {
        out: finding("error", "", None, &error.to_string(), spot, output),
        n_found: 1,
        refused: Some(CliError::Invalid { n_errors: 1 }),
        ..Done::default()
    }
}

pub(crate) fn hash(options: &Hash, output: &Output) -> Result<(), CliError> {
    let source = &options.source;
    let input = Input::of(source)?;
    let way = BatchOptions::new(output, source.limits, options.going);
    let limits = source.limits.limits();
    let canonical = CanonicalOptions {
        keep_sys: !options.without_sys,
    };
    let out = output.clone();
    let sink = Sink::Report(output.clone());
    work(input, sink, &way, move |text, spot| {
        let hashed = hash_text(text, &limits, canonical).map_err(|error| undecoded(error, spot))?;
        let HashedText { hash, inexact } = hashed.map_err(|source| CliError::Canonical {
            spot: spot.to_string(),
            source,
        })?;
        let hash = hash.to_string();
        let printed = if out.is_json() {
            json_line(at_line(hash_value(&hash, inexact.as_ref()), spot))
        } else {
            format!("{hash}\n")
        };
        Ok(Done {
            out: printed,
            stderr_lines: inexact
                .map(|it| inexact_line(&it, spot, &out))
                .unwrap_or_default(),
            ..Done::default()
        })
    })
    .map(drop)
}

/// A hash for scripts, with what makes it inexact.
fn hash_value(hash: &str, inexact: Option<&InexactNumbers>) -> serde_json::Value {
    let mut value = json!({"hash": hash});
    if let Some(inexact) = inexact {
        value["warning"] = inexact.to_string().into();
    }
    value
}

/// The warning for people that a hash is not exact. JSON output has it in the hash's object.
fn inexact_line(inexact: &InexactNumbers, spot: &Location, output: &Output) -> String {
    if output.is_json() {
        return String::new();
    }
    let line = before(spot);
    format!(
        "{line}{WARNED}warning{WARNED:#} {}\n",
        clean(&inexact.to_string())
    )
}

/// Reads a `ThreadProtocol` document.
pub(crate) fn decode(text: &str, limits: &Limits, spot: &Location) -> Result<Thread, CliError> {
    Thread::decode_with(text, limits).map_err(|error| undecoded(error, spot))
}

pub(crate) fn undecoded(mut source: DecodeError, spot: &Location) -> CliError {
    if let Some(line) = spot.line {
        source.line = usize::try_from(line).unwrap_or(usize::MAX);
    }
    CliError::Unreadable {
        spot: spot.to_string(),
        what: "a ThreadProtocol document",
        source: source.into(),
    }
}

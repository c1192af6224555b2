//! `validate` and `hash`.

use crate::args::{Form, Going, Hash, Validate};
use crate::convert::{json_fault, unread};
use crate::error::CliError;
use crate::input::Input;
use crate::output::{BAD, BOLD, DIM, GOOD, Output, clean, json_line};
use crate::report::{at_line, before, place};
use crate::sink::Sink;
use crate::work::{Done, Spot, Totals, Way, work};
use interop::convert::{self, ReadOptions};
use serde_json::json;
use std::fmt::Write as _;
use thread::{CanonicalOptions, Limits, Profile, Rules, Severity, Thread, Violation};

pub(crate) fn validate(options: &Validate, output: &Output) -> Result<(), CliError> {
    let profile = if options.strict {
        Profile::Strict
    } else {
        Profile::Lenient
    };
    let rules = Rules {
        deny_timestamps: options.deny_timestamps,
        ..Rules::from(profile)
    };
    let source = &options.source;
    let input = Input::of(source)?;
    let by_line = input.by_line;
    let keep_going = Going { keep_going: true };
    let way = Way {
        refused: "not valid",
        ..Way::new(output, source.limits, keep_going)
    };
    let limits = source.limits.limits();
    let (form, out) = (options.format, output.clone());
    let totals = work(
        input,
        Sink::Report(output.clone()),
        &way,
        move |text, spot| {
            if form == Form::Thread {
                let document = decode(text, &limits, spot)?;
                Ok(judge(
                    &thread::validate(&document, rules.clone()),
                    spot,
                    &out,
                ))
            } else {
                readable(form.of(), text, limits, spot, &out)
            }
        },
    )?;
    let profile = match form {
        Form::Thread if options.strict => " under strict",
        Form::Thread => " under lenient",
        Form::Archive | Form::PydanticAi | Form::AiSdkUi | Form::AiSdkStream => "",
    };
    output.line(&verdict(profile, by_line, totals))
}

fn verdict(profile: &str, by_line: bool, totals: Totals) -> String {
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

/// What validation found, in lines.
fn judge(violations: &[Violation], spot: &Spot, output: &Output) -> Done {
    let mut done = Done {
        n_found: violations.len(),
        ..Done::default()
    };
    let mut n_errors = 0;
    for violation in violations {
        let error = violation.severity == Severity::Error;
        n_errors += usize::from(error);
        found(&mut done.out, error, violation, spot, output);
    }
    if n_errors > 0 {
        done.refused = Some(CliError::Invalid { n_errors });
    }
    done
}

fn found(text: &mut String, error: bool, violation: &Violation, spot: &Spot, output: &Output) {
    let word = if error { "error" } else { "warning" };
    let (pointer, message) = (&violation.pointer, &violation.message);
    let rule = violation.rule.id();
    if output.is_json() {
        let value = json!({"severity": word, "pointer": pointer, "rule": rule, "message": message});
        text.push_str(&json_line(at_line(value, spot)));
        return;
    }
    let style = if error { BAD } else { DIM };
    // Writing to a string can't fail.
    let _ = writeln!(
        text,
        "{}{style}{word}{style:#} {BOLD}{}{BOLD:#} {} {DIM}[{rule}]{DIM:#}",
        before(spot),
        place(pointer),
        clean(message)
    );
}

/// For the formats whose validation is that they can be read.
fn readable(
    form: convert::Form,
    text: &str,
    limits: Limits,
    spot: &Spot,
    output: &Output,
) -> Result<Done, CliError> {
    let options = ReadOptions {
        limits,
        ..ReadOptions::default()
    };
    let Err(mut error) = convert::read(form, text, &options) else {
        return Ok(Done::default());
    };
    if json_fault(&mut error).is_some() {
        return Err(unread(form, error, spot));
    }
    let message = error.to_string();
    let mut done = Done {
        n_found: 1,
        refused: Some(CliError::Invalid { n_errors: 1 }),
        ..Done::default()
    };
    done.out = if output.is_json() {
        let value = json!({"severity": "error", "message": message});
        json_line(at_line(value, spot))
    } else {
        format!("{}{BAD}error{BAD:#} {}\n", before(spot), clean(&message))
    };
    Ok(done)
}

pub(crate) fn hash(options: &Hash, output: &Output) -> Result<(), CliError> {
    let source = &options.source;
    let input = Input::of(source)?;
    let way = Way::new(output, source.limits, options.going);
    let limits = source.limits.limits();
    let canonical = CanonicalOptions {
        keep_sys: !options.without_sys,
    };
    let out = output.clone();
    let sink = Sink::Report(output.clone());
    work(input, sink, &way, move |text, spot| {
        let document = decode(text, &limits, spot)?;
        let hash = thread::hash(&document, canonical).map_err(|source| CliError::Canonical {
            spot: spot.to_string(),
            source,
        })?;
        let hash = hash.to_string();
        let out = if out.is_json() {
            json_line(at_line(json!({"hash": hash}), spot))
        } else {
            format!("{hash}\n")
        };
        Ok(Done {
            out,
            ..Done::default()
        })
    })
    .map(drop)
}

/// Reads a `ThreadProtocol` document.
pub(crate) fn decode(text: &str, limits: &Limits, spot: &Spot) -> Result<Thread, CliError> {
    Thread::decode_with(text, limits).map_err(|mut source| {
        if let Some(line) = spot.line {
            source.line = usize::try_from(line).unwrap_or(usize::MAX);
        }
        CliError::Unread {
            spot: spot.to_string(),
            what: "a ThreadProtocol document",
            source: source.into(),
        }
    })
}

//! `diff` and `merge`.

use crate::args::{Diff, Form, LimitOptions, Merge, Patch};
use crate::check::decode;
use crate::convert::unreadable;
use crate::error::CliError;
use crate::input::Input;
use crate::output::{BAD, DIM, GOOD, Output, TOOL, clean, json_line};
use crate::progress::Progress;
use crate::report::{location, report};
use crate::sink::Sink;
use crate::work::Location;
use anstyle::Style;
use interop::Loss;
use interop::convert::{self, ReadOptions};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thread::diff::{Diff as Difference, DiffFormatError};
use thread::merge::{ConflictKind, check_related};
use thread::{CanonicalOptions, Conflict, Json, Object, Thread};

pub(crate) fn diff(options: &Diff, output: &Output) -> Result<(), CliError> {
    once_from_stdin(&[&options.from, &options.to])?;
    let load = |file| load(file, options.format, options.limits, output);
    let (from, to) = (load(&options.from)?, load(&options.to)?);
    let canonical = CanonicalOptions {
        keep_sys: !options.without_sys,
    };
    let diff = thread::diff::diff_with(&from, &to, canonical);
    if output.is_json() {
        output.json(&diff.to_json().to_text())?;
    } else if !diff.is_empty() {
        output.report(&coloured(&diff.to_text()))?;
    }
    if diff.is_semantic() {
        Err(CliError::Differ)
    } else {
        Ok(())
    }
}

/// The lines of a diff in the colours that people know.
fn coloured(text: &str) -> String {
    let mut coloured = String::new();
    for line in clean(text).lines() {
        let style = match line.trim_start().chars().next() {
            Some('+') => GOOD,
            Some('-') => BAD,
            Some('~') => TOOL,
            _ => Style::new(),
        };
        // Writing to a string can't fail.
        let _ = writeln!(coloured, "{style}{line}{style:#}");
    }
    coloured
}

/// Writes the document that a diff leads to.
pub(crate) fn patch(options: &Patch, output: &Output) -> Result<(), CliError> {
    once_from_stdin(&[&options.document, &options.diff])?;
    let document = load(&options.document, Form::Thread, options.limits, output)?;
    let input = Input::open(Some(&options.diff))?;
    let spot = input.name.to_string();
    let limits = options.limits.limits();
    let text = input.text(limits.max_bytes)?;
    let unread = |source: Box<dyn std::error::Error + Send + Sync>| CliError::Unreadable {
        spot: spot.clone(),
        what: "a diff, as `loomline diff --json` prints it",
        source,
    };
    let json = Json::parse_with(&text, &limits).map_err(|error| unread(error.into()))?;
    let diff =
        Difference::from_json(&json).map_err(|error: DiffFormatError| unread(error.into()))?;
    let diff = if options.reverse { diff.invert() } else { diff };
    let patched = thread::patch(&document, &diff).map_err(|source| CliError::Unpatched {
        spot: options.document.display().to_string(),
        source,
    })?;
    let mut sink = Sink::open(options.target.output.as_deref(), output)?;
    sink.document(&patched.encode())?;
    sink.finish()
}

pub(crate) fn merge(options: &Merge, output: &Output) -> Result<(), CliError> {
    once_from_stdin(&[&options.base, &options.ours, &options.theirs])?;
    apart(
        options.target.output.as_deref(),
        options.conflicts.as_deref(),
    )?;
    let load = |file| load(file, Form::Thread, options.limits, output);
    let (base, ours) = (load(&options.base)?, load(&options.ours)?);
    let theirs = load(&options.theirs)?;
    check_related(&base, [&ours, &theirs])?;
    let merged = thread::merge(&base, &ours, &theirs);
    let mut sink = Sink::open(options.target.output.as_deref(), output)?;
    sink.document(&merged.thread.encode())?;
    match &options.conflicts {
        Some(file) => {
            let list = merged.conflicts.iter().map(value).collect();
            let mut sink = Sink::open(Some(file), output)?;
            sink.document(&json_line(Json::Array(list)))?;
            sink.finish()?;
        }
        None if output.is_json() => {
            let lines = merged.conflicts.iter().map(|it| json_line(value(it)));
            output.write_stderr(&lines.collect::<String>());
        }
        None => {
            let lines = merged.conflicts.iter().map(conflict_line);
            output.write_stderr(&lines.collect::<String>());
        }
    }
    sink.finish()?;
    match merged.conflicts.len() {
        0 => Ok(()),
        n_conflicts => Err(CliError::Conflicts { n_conflicts }),
    }
}

/// The conflict as a word for scripts, and as a text for people.
fn words(kind: &ConflictKind) -> (&'static str, &str) {
    match kind {
        ConflictKind::BothChanged => ("both_changed", "both changed it; ours is kept"),
        ConflictKind::BothAppended => (
            "both_appended",
            "both branches continue here: ours comes first, then theirs",
        ),
        ConflictKind::BothInserted => (
            "both_inserted",
            "both put something here; ours is kept, then theirs",
        ),
        ConflictKind::RemovedAndChanged => (
            "removed_and_changed",
            "one removed it, the other changed or uses it; it is kept",
        ),
        ConflictKind::Breach { message, .. } => ("breach", message),
    }
}

fn conflict_line(conflict: &Conflict) -> String {
    let pointer = location(&conflict.pointer);
    let (_, what) = words(&conflict.kind);
    let mut text = format!("{BAD}conflict{BAD:#}  {pointer}  {}\n", clean(what));
    for (side, json) in sides(conflict) {
        // Writing to a string can't fail.
        let _ = writeln!(text, "  {DIM}{side}{DIM:#} {}", brief(json));
    }
    text
}

/// The beginning of a value.
fn brief(json: &Json) -> String {
    const LENGTH: usize = 100;
    let text = clean(&json.to_text());
    let mut brief: String = text.chars().take(LENGTH).collect();
    if brief.len() < text.len() {
        brief.push('…');
    }
    brief
}

fn value(conflict: &Conflict) -> Json {
    let (kind, _) = words(&conflict.kind);
    let mut value = Object::new()
        .with("kind", kind)
        .with("pointer", conflict.pointer.as_str());
    if let ConflictKind::Breach { rule, message } = &conflict.kind {
        value.insert("rule", rule.id());
        value.insert("message", message.as_str());
    }
    for (side, json) in sides(conflict) {
        value.insert(side, json.clone());
    }
    value.into()
}

/// The values there are in a place, by whose they are.
fn sides(conflict: &Conflict) -> impl Iterator<Item = (&'static str, &Json)> {
    let sides = [
        ("base", &conflict.base),
        ("ours", &conflict.ours),
        ("theirs", &conflict.theirs),
    ];
    sides
        .into_iter()
        .filter_map(|(side, json)| Some((side, json.as_ref()?)))
}

/// The document and the conflicts are two files.
fn apart(output: Option<&Path>, conflicts: Option<&Path>) -> Result<(), CliError> {
    let (Some(output), Some(conflicts)) = (output, conflicts) else {
        return Ok(());
    };
    let same = match (output.canonicalize(), conflicts.canonicalize()) {
        (Ok(output), Ok(conflicts)) => output == conflicts,
        (Err(_), _) | (_, Err(_)) => place_of(output) == place_of(conflicts),
    };
    if !same {
        return Ok(());
    }
    let what = "the document and the conflicts can't be written to one file";
    Err(CliError::Usage { what: what.into() })
}

/// The absolute path of a file that may not exist yet, if its directory exists.
fn place_of(file: &Path) -> PathBuf {
    let directory = file.parent().filter(|it| !it.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new(".")).canonicalize();
    match (directory, file.file_name()) {
        (Ok(directory), Some(name)) => directory.join(name),
        (Err(_), _) | (_, None) => file.to_owned(),
    }
}

/// Standard input can be read once.
fn once_from_stdin(files: &[&Path]) -> Result<(), CliError> {
    if files.iter().filter(|file| **file == Path::new("-")).count() < 2 {
        return Ok(());
    }
    let what = "standard input can be read once, so only one file can be -";
    Err(CliError::Usage { what: what.into() })
}

/// The document of a file.
fn load(
    file: &Path,
    form: Form,
    limits: LimitOptions,
    output: &Output,
) -> Result<Thread, CliError> {
    let input = Input::open(Some(file))?;
    let _progress = Progress::of_document(&input, output);
    let limits = limits.limits();
    let spot = Location {
        name: Arc::clone(&input.name),
        line: None,
    };
    let text = input.text(limits.max_bytes)?;
    if form == Form::Thread {
        return decode(&text, &limits, &spot);
    }
    let options = ReadOptions {
        limits,
        ..ReadOptions::default()
    };
    let archive = convert::read(form.of(), &text, &options);
    let archive = archive.map_err(|error| unreadable(form.of(), error, &spot))?;
    let document = archive.value.to_thread();
    let losses = archive.losses.iter().chain(&document.losses);
    for Loss { pointer, what } in losses {
        output.write_stderr(&report(output, &spot, "not compared", pointer, what));
    }
    Ok(document.value)
}

//! One meaning for each public type name.

use crate::declared::{Kind, declared};
use crate::sources::Source;
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const FILE: &str = "xtask/types.txt";

/// The files that declare each type name.
pub(crate) type Names = BTreeMap<String, Vec<String>>;

/// The type names of all crates that more than one file declares, in production code.
pub(crate) fn doubles(sources: &[Source], tests: &BTreeSet<&str>, exported_only: bool) -> Names {
    let mut names = Names::new();
    for source in sources {
        if source.crate_name().is_none() || !source.is("rs") || tests.contains(source.path.as_str())
        {
            continue;
        }
        for it in declared(&source.text) {
            if it.kind == Kind::Type && (it.exported || !exported_only) {
                names.entry(it.name).or_default().push(source.path.clone());
            }
        }
    }
    names.retain(|_, files| files.len() > 1);
    names
}

/// Each double as a line, for `cargo xtask types`.
pub(crate) fn listing(doubles: &Names) -> String {
    let mut out = String::new();
    for (name, files) in doubles {
        // Writing to a string can't fail.
        let _ = writeln!(out, "{name} {}: {}", files.len(), files.join(" "));
    }
    let _ = writeln!(out, "{} names with more than one meaning", doubles.len());
    out
}

/// Doubles that the list does not allow, and lines of the list without a double.
pub(super) fn findings(root: &Path, doubles: &Names) -> Result<Vec<String>> {
    let text = fs::read_to_string(root.join(FILE)).context(FILE)?;
    Ok(against(doubles, &text))
}

fn against(doubles: &Names, allowed: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let mut listed = BTreeMap::new();
    for line in allowed.lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let entry = line
            .split_once(": ")
            .filter(|(_, reason)| !reason.is_empty());
        let entry = entry.and_then(|(head, _)| head.split_once(' '));
        match entry.and_then(|(name, n)| Some((name, n.parse::<usize>().ok()?))) {
            Some((name, n)) => drop(listed.insert(name, n)),
            None => findings.push(format!("{FILE}: {line:?} is not `Name count: reason`")),
        }
    }
    for (name, files) in doubles {
        let (n, most) = (files.len(), listed.get(name.as_str()).copied().unwrap_or(1));
        if n > most {
            let files = files.join(", ");
            findings.push(format!(
                "`{name}` names {n} types, {FILE} allows {most}: {files}"
            ));
        }
    }
    for (name, most) in listed {
        let n = doubles.get(name).map_or(1, Vec::len);
        if n < most {
            findings.push(format!(
                "{FILE}: `{name}` names {n} and not {most}: lower it or leave it out"
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source {
            path: path.into(),
            text: text.into(),
        }
    }

    fn two() -> Names {
        let sources = [
            source(
                "crates/a/src/lib.rs",
                "pub struct One;\npub(crate) struct Two;\n",
            ),
            source(
                "crates/b/src/lib.rs",
                "pub enum One {}\npub type Two = u8;\n",
            ),
            source("crates/b/tests/it.rs", "pub struct One;\n"),
        ];
        doubles(&sources, &crate::sources::test_files(&sources), true)
    }

    #[test]
    fn exported_types_of_production_code_are_compared() {
        assert_eq!(two().keys().collect::<Vec<_>>(), ["One"]);
        assert_eq!(two()["One"].len(), 2);
    }

    #[test]
    fn a_double_needs_a_reason() {
        assert_eq!(
            against(&two(), "# note\n\nOne 2: both specs say so\n"),
            Vec::<String>::new()
        );
        assert_eq!(against(&two(), "").len(), 1);
        assert_eq!(against(&two(), "One 2\n").len(), 2);
    }

    #[test]
    fn a_reason_without_a_double_is_a_finding() {
        let found = against(&two(), "One 3: a\nThree 2: b\n");
        assert_eq!(found.len(), 2);
        assert!(found[0].contains("`One` names 2 and not 3"));
        assert!(found[1].contains("`Three` names 1 and not 2"));
    }
}

//! The types and modules that the glossary names exist.

use crate::declared::declared;
use crate::sources::Source;
use std::collections::BTreeSet;

const FILE: &str = "docs/glossary.md";

/// Paths such as `timeline::Thread` on the page whose last name no file declares.
pub(super) fn findings(sources: &[Source]) -> Vec<String> {
    let Some(glossary) = sources.iter().find(|source| source.path == FILE) else {
        return vec![format!("{FILE}: missing")];
    };
    let crates = || {
        sources
            .iter()
            .filter(|it| it.is("rs") && it.crate_name().is_some())
    };
    let mut known: BTreeSet<String> = crates()
        .flat_map(|it| declared(&it.text))
        .map(|it| it.name)
        .collect();
    known.extend(
        crates()
            .filter_map(|it| it.path.rsplit('/').next())
            .map(|name| name.replace(".rs", "")),
    );
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(glossary.text.lines()) {
        for path in line
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|it| it.contains("::"))
        {
            if path
                .rsplit("::")
                .next()
                .is_some_and(|name| !known.contains(name))
            {
                findings.push(format!("{FILE}:{number}: there is no {path}"));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_is_gone_is_found() {
        let source = |path: &str, text: &str| Source {
            path: path.into(),
            text: text.into(),
        };
        let sources = [
            source(
                FILE,
                "| thread | `a::Thread` |\n| run | `a::Run` |\n| path | `a::b` |\n",
            ),
            source("crates/a/src/b.rs", "pub struct Thread;\n"),
        ];
        assert_eq!(
            findings(&sources),
            ["docs/glossary.md:2: there is no a::Run"]
        );
        assert_eq!(findings(&[]).len(), 1);
    }
}

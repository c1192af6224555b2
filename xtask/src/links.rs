//! Links between Markdown pages, and the table of contents of the book.

use crate::markdown::{self, Link};
use crate::sources::{self, Source};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The table of contents of the book.
pub(crate) const SUMMARY: &str = "docs/SUMMARY.md";

/// Pages that need no line in the table of contents if it has their index.
const DECISIONS: &str = "docs/decisions/";

/// Names of a folder's index.
const INDEXES: [&str; 2] = ["index.md", "README.md"];

/// Checks the links of all Markdown files and the table of contents.
pub(crate) fn check(root: &Path) -> Result<String> {
    let mut sources = sources::under(root, "")?;
    sources.retain(|source| source.is("md"));
    let mut findings = broken(&sources, |path| root.join(path).exists());
    findings.extend(contents(&sources));
    let n_links: usize = sources
        .iter()
        .map(|it| markdown::links(&it.text).len())
        .sum();
    findings.sort();
    let lines: Vec<String> = findings
        .into_iter()
        .map(|(path, line, what)| format!("{path}:{line}: {what}"))
        .collect();
    crate::report("links", &lines)?;
    Ok(format!(
        "links: {n_links} links in {} files, all resolve\n",
        sources.len()
    ))
}

/// A file, a line and what is wrong there.
type Finding = (String, usize, String);

/// The links that lead nowhere.
fn broken(pages: &[Source], exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let anchors: BTreeMap<&str, BTreeSet<String>> = pages
        .iter()
        .map(|it| (it.path.as_str(), markdown::anchors(&it.text)))
        .collect();
    let mut findings = Vec::new();
    for page in pages {
        for link in markdown::links(&page.text) {
            if let Some(what) = judge(&page.path, &link.target, &anchors, &exists) {
                findings.push((page.path.clone(), link.line, what));
            }
        }
    }
    findings
}

/// The fault of a link.
fn judge(
    page: &str,
    target: &str,
    anchors: &BTreeMap<&str, BTreeSet<String>>,
    exists: impl Fn(&str) -> bool,
) -> Option<String> {
    if is_address(target) {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    if file.is_empty() && anchor.is_empty() {
        return Some("a link without a target".to_owned());
    }
    if file.starts_with('/') {
        return Some(format!("the link {target} is not relative"));
    }
    let path = if file.is_empty() {
        page.to_owned()
    } else {
        match resolve(page, file) {
            Some(path) => path,
            None => return Some(format!("{target} is outside of the repository")),
        }
    };
    if !exists(&path) {
        return Some(format!("there is no {target}"));
    }
    let known = anchors.get(path.as_str())?;
    (!anchor.is_empty() && !known.contains(anchor))
        .then(|| format!("{path} has no anchor #{anchor}"))
}

/// Whether a link leaves the repository: a URL, or an address of e-mail.
fn is_address(target: &str) -> bool {
    target.contains("://")
        || target.starts_with("mailto:")
        || target.contains('@') && !target.contains('/')
}

/// The path from the root of what a page links to.
pub(crate) fn resolve(page: &str, file: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/").replace("%20", " "))
}

/// The pages that the table of contents links, in order.
pub(crate) fn listed(summary: &str) -> Vec<(Link, String)> {
    let links = markdown::links(summary).into_iter();
    links
        .filter(|link| !is_address(&link.target))
        .filter_map(|link| {
            let file = link.target.split('#').next()?;
            let path = resolve(SUMMARY, file)?;
            Some((link, path))
        })
        .collect()
}

/// The pages under `docs` that the table of contents lacks or has twice.
fn contents(pages: &[Source]) -> Vec<Finding> {
    let Some(summary) = pages.iter().find(|it| it.path == SUMMARY) else {
        return vec![(SUMMARY.to_owned(), 1, "missing".to_owned())];
    };
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for (link, path) in listed(&summary.text) {
        if !seen.insert(path.clone()) {
            let what = format!("{path} is listed twice");
            findings.push((SUMMARY.to_owned(), link.line, what));
        }
    }
    let has_index = INDEXES
        .iter()
        .any(|name| seen.contains(&format!("{DECISIONS}{name}")));
    for page in pages.iter().filter(|it| it.path.starts_with("docs/")) {
        let is_covered = has_index && page.path.starts_with(DECISIONS);
        if page.path != SUMMARY && !seen.contains(&page.path) && !is_covered {
            findings.push((page.path.clone(), 1, format!("{SUMMARY} does not list it")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(pages: &[(&str, &str)]) -> Vec<Source> {
        let pages = pages.iter().map(|(path, text)| Source {
            path: (*path).into(),
            text: (*text).into(),
        });
        pages.collect()
    }

    fn found(text: &str) -> Vec<String> {
        let pages = pages(&[("docs/a.md", text), ("docs/b/c.md", "# One two\n")]);
        let known = [
            "docs/a.md",
            "docs/b/c.md",
            "docs/d.png",
            "crates/e.rs",
            "docs/b",
        ];
        let findings = broken(&pages, |path| known.contains(&path));
        findings.into_iter().map(|(_, _, what)| what).collect()
    }

    #[test]
    fn files_folders_anchors_and_images_resolve() {
        let text = "# Here\n\n[a](b/c.md#one-two) [b](#here) [c](../crates/e.rs#L3) ![d](d.png)\n\
                    [e](https://example.org) [f](./b/) <g@h.org>\n";
        assert_eq!(found(text), Vec::<String>::new());
    }

    #[test]
    fn links_that_lead_nowhere_are_named() {
        let text =
            "[a](c.md) ![b](e.png) [c](b/c.md#two) [d](#there) [e](/docs/a.md) [f](../../g) [h]()";
        let expected = [
            "there is no c.md",
            "there is no e.png",
            "docs/b/c.md has no anchor #two",
            "docs/a.md has no anchor #there",
            "the link /docs/a.md is not relative",
            "../../g is outside of the repository",
            "a link without a target",
        ];
        assert_eq!(found(text), expected);
    }

    #[test]
    fn links_in_code_are_no_links() {
        assert_eq!(
            found("`[a](b.md)`\n\n```\n[a](b.md)\n```\n"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn the_summary_lists_each_page_once() {
        let text = "# Summary\n\n- [A](a.md)\n- [A](./a.md)\n";
        let found = contents(&pages(&[
            (SUMMARY, text),
            ("docs/a.md", ""),
            ("docs/b.md", ""),
            ("README.md", ""),
        ]));
        let what: Vec<&str> = found.iter().map(|(_, _, what)| what.as_str()).collect();
        let expected = [
            "docs/a.md is listed twice",
            "docs/SUMMARY.md does not list it",
        ];
        assert_eq!(what, expected);
    }

    #[test]
    fn an_index_covers_the_decisions() {
        let decision = ("docs/decisions/1.md", "");
        let without = pages(&[(SUMMARY, ""), decision]);
        assert_eq!(contents(&without).len(), 1);
        let with = pages(&[(SUMMARY, "[D](decisions/index.md)"), decision]);
        assert_eq!(contents(&with), []);
    }

    #[test]
    fn a_missing_summary_is_a_finding() {
        assert_eq!(contents(&[])[0].2, "missing");
    }
}

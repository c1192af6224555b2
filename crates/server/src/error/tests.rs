//! Every code of an error has its section in the documentation.

use std::collections::BTreeSet;
use std::path::Path;

/// The codes in the source file. Each comes after its status.
fn codes() -> BTreeSet<&'static str> {
    let (source, _) = include_str!("../error.rs")
        .split_once("#[cfg(test)]")
        .unwrap();
    let aitp = include_str!("aitp.rs");
    let store = include_str!("store.rs");
    let code = |after: &'static str| {
        let (_, rest) = after.split_once(',')?;
        rest.trim_start().strip_prefix('"')?.split('"').next()
    };
    let own = source.split("S::").skip(1);
    let aitp = aitp.split("S::").skip(1);
    let store = store.split("S::").skip(1);
    own.chain(aitp).chain(store).filter_map(code).collect()
}

/// The text of all source files below a folder.
fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.file_stem().is_some_and(|it| it == "tests");
        if is_test {
            continue;
        }
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|it| it == "rs") {
            text.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_code_has_one_section_with_a_status() {
    let codes = codes();
    // One that fits its line, and one that does not.
    assert!(codes.contains("unauthorized") && codes.contains("taken_over"));
    let page = include_str!("../../../../docs/reference/errors.md");
    let (_, page) = page.split_once("\n## Codes\n").unwrap();
    let section = |text: &'static str| {
        let (head, text) = text.split_once("\n\n").unwrap();
        (head.trim_matches('`'), text)
    };
    let sections: Vec<(&str, &str)> = page.split("\n### ").skip(1).map(section).collect();
    let names: BTreeSet<&str> = sections.iter().map(|(name, _)| *name).collect();
    assert_eq!(sections.len(), names.len());
    assert!(codes.is_subset(&names), "{:?}", codes.difference(&names));
    let mut text = String::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    sources(&root.join("src"), &mut text);
    sources(&root.join("../interop/src"), &mut text);
    for (name, section) in sections {
        let status = section.strip_prefix("- **Status**: ").unwrap_or_default();
        assert!(
            status.starts_with(|it: char| it.is_ascii_digit()) || status.starts_with("none\n"),
            "{name}: {section}"
        );
        let is_foreign = !codes.contains(name);
        assert!(
            !is_foreign || section.contains("**Protocols**"),
            "{name}: {section}"
        );
        assert!(text.contains(&format!("\"{name}\"")), "{name}");
    }
}

//! Every code of an error has its section in the documentation.

use std::collections::BTreeSet;

/// The codes that stand in this file: each comes after its status.
fn codes() -> BTreeSet<&'static str> {
    let (source, _) = include_str!("../error.rs")
        .split_once("#[cfg(test)]")
        .unwrap();
    let aitp = include_str!("aitp.rs");
    let code = |after: &'static str| {
        let (_, rest) = after.split_once(',')?;
        rest.trim_start().strip_prefix('"')?.split('"').next()
    };
    let own = source.split("S::").skip(1);
    let aitp = aitp.split("S::").skip(1);
    own.chain(aitp).filter_map(code).collect()
}

#[test]
fn every_code_has_its_section_and_no_section_is_of_a_code_there_is_not() {
    let codes = codes();
    // One that fits its line, and one that does not.
    assert!(codes.contains("unauthorized") && codes.contains("taken_over"));
    let page = include_str!("../../../../docs/errors.md");
    let head = |line: &'static str| line.strip_prefix("### `")?.strip_suffix('`');
    let sections: Vec<&str> = page.lines().filter_map(head).collect();
    let distinct: BTreeSet<&str> = sections.iter().copied().collect();
    assert_eq!(distinct, codes);
    assert_eq!(sections.len(), distinct.len());
    for section in page.split("\n### ").skip(1) {
        let (head, text) = section.split_once("\n\n").unwrap();
        let status = text.get(..3).unwrap_or_default();
        assert!(
            status.bytes().all(|it| it.is_ascii_digit()),
            "{head}: {text}"
        );
    }
}

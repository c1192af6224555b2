//! Doc comments that can be read alone.

use crate::prose::rust::doc_comments;
use crate::sources::Source;

/// Doc comments that begin by pointing to another one.
pub(super) fn findings(source: &Source) -> Vec<String> {
    if !source.is("rs") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for prose in doc_comments(&source.text) {
        let first = prose.lines.first();
        if let Some((line, _)) = first.filter(|(_, text)| text.trim_start().starts_with("The same"))
        {
            let what = "a doc comment is read alone: say what the item is, not \"The same\"";
            findings.push(format!("{}:{line}: {what}", source.path));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doc_comment_that_points_to_another_is_found() {
        let source = |text: &str| Source {
            path: "a.rs".into(),
            text: text.into(),
        };
        assert_eq!(
            findings(&source("/// The same, of two.\nfn a() {}\n")).len(),
            1
        );
        assert_eq!(
            findings(&source("/// One.\n/// The same id.\nfn a() {}\n")),
            Vec::<String>::new()
        );
    }
}

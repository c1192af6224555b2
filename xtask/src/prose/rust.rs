//! The prose of Rust sources: doc comments, help texts and error texts.

use crate::markdown::{self, Piece};
use crate::sources::{code, production_lines};

/// Markdown in a source file, line by line with the line numbers of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prose {
    pub(crate) lines: Vec<(usize, String)>,
}

impl Prose {
    /// Its pieces, with the lines of the file.
    pub(super) fn pieces(&self) -> Vec<Piece> {
        let lines: Vec<&str> = self.lines.iter().map(|(_, text)| text.as_str()).collect();
        let mut pieces = markdown::pieces(&lines.join("\n"));
        for token in pieces.iter_mut().flat_map(|it| &mut it.tokens) {
            if let Some((line, _)) = self.lines.get(token.line - 1) {
                token.line = *line;
            }
        }
        pieces
    }
}

/// The doc comments of production code, one for each run of lines.
pub(crate) fn doc_comments(text: &str) -> Vec<Prose> {
    let code = code(text);
    let mut found: Vec<Prose> = Vec::new();
    let mut last = 0;
    for ((line, text), counts) in (1..).zip(text.lines()).zip(production_lines(&code)) {
        let trimmed = text.trim_start();
        let doc = trimmed
            .strip_prefix("///")
            .or_else(|| trimmed.strip_prefix("//!"));
        let Some(doc) = doc.filter(|_| counts) else {
            continue;
        };
        let doc = doc.strip_prefix(' ').unwrap_or(doc);
        match found.last_mut() {
            Some(prose) if last + 1 == line => prose.lines.push((line, doc.to_owned())),
            Some(_) | None => found.push(Prose {
                lines: vec![(line, doc.to_owned())],
            }),
        }
        last = line;
    }
    found
}

/// The string literals that follow any of `openings` in the code, such as `#[error(`.
pub(super) fn literals_after(text: &str, openings: &[&str]) -> Vec<Prose> {
    let code = code(text);
    let flags = production_lines(&code);
    let mut found = Vec::new();
    for opening in openings {
        for (at, _) in code.match_indices(opening) {
            let from = at + opening.len();
            let rest = text[from..].trim_start();
            let start = text.len() - rest.len();
            let line = text[..start].matches('\n').count();
            if flags.get(line) != Some(&true) {
                continue;
            }
            let Some(inside) = rest.trim_start_matches(['r', '#']).strip_prefix('"') else {
                continue;
            };
            let text = without_placeholders(string(inside));
            // Indented lines are no code here.
            let lines = text.split('\n').map(|line| line.trim_start().to_owned());
            found.push(Prose {
                lines: (line + 1..).zip(lines).collect(),
            });
        }
    }
    found
}

/// A literal's text up to the quote that ends it.
fn string(text: &str) -> &str {
    let mut escaped = false;
    let end = text.find(|c: char| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    &text[..end.unwrap_or(text.len())]
}

/// The text with its placeholders in backticks: their names are code, not prose.
fn without_placeholders(text: &str) -> String {
    text.replace('{', "`{").replace('}', "}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doc_comment_is_a_run_of_lines() {
        let text =
            "//! A.\n\n/// B\n/// c.\nfn d() {} // e\n#[cfg(test)]\nmod tests {\n    /// F.\n}\n";
        let found: Vec<Vec<usize>> = doc_comments(text)
            .iter()
            .map(|prose| prose.lines.iter().map(|(line, _)| *line).collect())
            .collect();
        assert_eq!(found, [vec![1], vec![3, 4]]);
    }

    #[test]
    fn error_texts_are_read_over_lines() {
        let text =
            "#[error(\"a \\\"b\\\"\")]\n#[error(transparent)]\n#[error(\n    \"c \\\n    d\"\n)]\n";
        let found = literals_after(text, &["#[error("]);
        assert_eq!(found[0].lines, [(1, "a \\\"b\\\"".to_owned())]);
        assert_eq!(found[1].lines.len(), 2);
        assert_eq!(found[1].lines[0].0, 4);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn tokens_have_the_lines_of_the_file() {
        let found = doc_comments("use a;\n\n/// B `c`\n/// d.\nfn e() {}\n");
        let tokens = &found[0].pieces()[0].tokens;
        let lines: Vec<usize> = tokens.iter().map(|token| token.line).collect();
        assert_eq!(lines, [3, 3, 4]);
    }
}

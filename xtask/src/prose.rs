//! The prose of source files and pages: doc comments, help texts, error texts and Markdown.

use crate::sources::{code, production_lines};

/// A piece of prose, line by line with its line numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prose {
    pub(crate) lines: Vec<(usize, String)>,
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
pub(crate) fn literals_after(text: &str, openings: &[&str]) -> Vec<Prose> {
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
            let lines = (line + 1..).zip(text.split('\n').map(str::to_owned));
            found.push(Prose {
                lines: lines.collect(),
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

/// A Markdown page as one piece of prose.
pub(crate) fn page(text: &str) -> Prose {
    Prose {
        lines: (1..).zip(text.lines().map(str::to_owned)).collect(),
    }
}

/// A word of prose, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) line: usize,
    pub(crate) text: String,
    /// Whether it begins a sentence.
    pub(crate) begins: bool,
}

impl Prose {
    /// Its words; code counts as one word without letters.
    pub(crate) fn words(&self) -> Vec<Word> {
        let (mut words, mut fenced, mut begins, mut in_code) = (Vec::new(), false, true, false);
        for (line, text) in &self.lines {
            if text.trim_start().starts_with("```") {
                fenced = !fenced;
                continue;
            }
            if fenced {
                continue;
            }
            if text.trim().is_empty() {
                (begins, in_code) = (true, false);
            }
            for (n, span) in text.split('`').enumerate() {
                in_code ^= n > 0;
                if in_code {
                    words.push(Word {
                        line: *line,
                        text: String::new(),
                        begins: false,
                    });
                    begins = false;
                } else {
                    plain(*line, span, &mut begins, &mut words);
                }
            }
        }
        words
    }
}

/// Adds the words of text without code.
fn plain(line: usize, text: &str, begins: &mut bool, words: &mut Vec<Word>) {
    for word in text.split_whitespace() {
        // The target of a link is no prose.
        let shown = word.split("](").next().unwrap_or(word);
        let bare = |c: char| !c.is_alphanumeric() && c != '\'';
        for part in shown.split(bare).filter(|part| !part.is_empty()) {
            words.push(Word {
                line,
                text: part.to_lowercase(),
                begins: *begins,
            });
            *begins = false;
        }
        let end = word.trim_end_matches(['*', ')', '"', '_']);
        if end.ends_with(['.', '?', '!', '|']) || word == "-" || word == "*" {
            *begins = true;
        }
    }
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
    fn words_know_where_sentences_begin() {
        let words = page("One `two` [three](four.md). Five\n\nSix").words();
        let found: Vec<(&str, bool)> = words
            .iter()
            .map(|word| (word.text.as_str(), word.begins))
            .collect();
        let expected = [
            ("one", true),
            ("", false),
            ("three", false),
            ("five", true),
            ("six", true),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn fenced_code_has_no_words() {
        assert_eq!(page("a\n```sh\nb\n```\nc").words().len(), 2);
    }
}

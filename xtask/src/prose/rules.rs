//! The rules of a sentence, a cell and a page.

use crate::markdown::{CODE, Kind, Piece, Token, shown};
use std::fmt;

/// Maximum average of words in the sentences of a page.
pub(super) const AVERAGE: usize = 20;

/// Maximum number of words in a sentence.
const SENTENCE: usize = 40;

/// Maximum number of words in a cell of a table.
const CELL: usize = 30;

/// Words and phrases that no prose has, because the field has a term of its own (`docs/glossary.md`).
const BANNED: [&str; 31] = [
    "as it came",
    "asked",
    "be it",
    "begun",
    "beside",
    "elsewhere",
    "given",
    "give leave",
    "gives leave",
    "go on with",
    "goes on",
    "gone on",
    "going on",
    "heard",
    "kept",
    "leave for",
    "leave is",
    "leave to",
    "lies",
    "mend",
    "mended",
    "mends",
    "said",
    "so many",
    "stands",
    "takes the place of",
    "tell",
    "tells",
    "told",
    "went on",
    "what came of",
];

/// Words that begin a clause which is the subject of its sentence.
const CLAUSES: [&str; 4] = ["who", "what", "whoever", "whatever"];

/// Words with a full stop that end no sentence.
const ABBREVIATIONS: [&str; 5] = ["e.g.", "i.e.", "vs.", "cf.", "etc."];

/// A rule that a sentence, a cell or a page breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rule {
    Average,
    Banned(&'static str),
    Clause,
    Sentence,
    Cell,
}

/// A place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) rule: Rule,
    /// How the sentence begins.
    pub(super) text: String,
}

impl Rule {
    pub(super) const ALL: [Self; 5] = [
        Self::Average,
        Self::Banned(""),
        Self::Clause,
        Self::Sentence,
        Self::Cell,
    ];

    pub(super) fn name(self) -> String {
        match self {
            Self::Average => format!("average over {AVERAGE} words"),
            Self::Banned("") => "banned".to_owned(),
            Self::Banned(phrase) => format!("banned: {phrase}"),
            Self::Clause => "clause as subject".to_owned(),
            Self::Sentence => format!("sentence over {SENTENCE} words"),
            Self::Cell => format!("cell over {CELL} words"),
        }
    }

    /// Whether it is the same rule, whatever the phrase.
    pub(super) fn is_like(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, line, rule, text) = (&self.path, self.line, self.rule.name(), &self.text);
        write!(f, "{path}:{line}: {rule}: {text}")
    }
}

/// The findings of a piece of text.
pub(super) fn judge(path: &str, piece: &Piece) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |line, rule, tokens| {
        findings.push(Finding {
            path: path.to_owned(),
            line,
            rule,
            text: beginning(tokens),
        });
    };
    for sentence in sentences(piece) {
        for (line, phrase) in banned(sentence) {
            find(line, Rule::Banned(phrase), sentence);
        }
        for line in clauses(sentence) {
            find(line, Rule::Clause, sentence);
        }
        if n_words(sentence) > SENTENCE {
            find(sentence[0].line, Rule::Sentence, sentence);
        }
    }
    if piece.kind == Kind::Cell && n_words(&piece.tokens) > CELL {
        find(piece.tokens[0].line, Rule::Cell, &piece.tokens);
    }
    findings
}

/// The sentences of a piece that have words.
pub(super) fn sentences(piece: &Piece) -> impl Iterator<Item = &[Token]> {
    let parts = piece.tokens.split_inclusive(ends);
    parts.filter(|it| n_words(it) > 0)
}

pub(super) fn n_words(tokens: &[Token]) -> usize {
    tokens.iter().filter(|it| it.is_word()).count()
}

/// Whether a token is the last one of a sentence.
fn ends(token: &Token) -> bool {
    let text = token.text.as_str();
    let text = text.trim_end_matches(['*', ')', ']', '"', '_', '”', '’', '\'']);
    let word = text.trim_start_matches(|c: char| !c.is_alphanumeric() && c != CODE);
    text.ends_with(['.', '?', '!'])
        && !text.ends_with("..")
        && !ABBREVIATIONS.contains(&word.to_lowercase().as_str())
}

/// The words of prose in lower case, each with its line; code is a word without letters.
fn words(tokens: &[Token]) -> Vec<(usize, String)> {
    let bare = |c: char| !c.is_alphanumeric() && c != '\'' && c != CODE;
    let mut words = Vec::new();
    for token in tokens {
        let parts = token.text.split(bare).filter(|it| !it.is_empty());
        words.extend(parts.map(|it| (token.line, it.to_lowercase())));
    }
    words
}

/// The banned phrases, each with the line of its first word.
fn banned(sentence: &[Token]) -> Vec<(usize, &'static str)> {
    let words = words(sentence);
    let mut found = Vec::new();
    for (at, (line, _)) in words.iter().enumerate() {
        for phrase in BANNED {
            let n_words = phrase.split(' ').count();
            let Some(those) = words.get(at..at + n_words) else {
                continue;
            };
            if phrase.split(' ').zip(those).all(|(a, (_, b))| a == b) {
                found.push((*line, phrase));
            }
        }
    }
    found
}

/// The lines of clauses with “who” or “what” as their subject, at the beginning of a sentence or after a semicolon.
/// Questions have none.
fn clauses(sentence: &[Token]) -> Vec<usize> {
    if sentence.last().is_some_and(|it| it.text.contains('?')) {
        return Vec::new();
    }
    let parts = sentence.split_inclusive(|it| it.text.ends_with(';'));
    parts
        .filter_map(|part| words(part).into_iter().next())
        .filter(|(_, word)| CLAUSES.contains(&word.as_str()))
        .map(|(line, _)| line)
        .collect()
}

/// The first words of a sentence.
fn beginning(tokens: &[Token]) -> String {
    const MOST: usize = 10;
    if tokens.len() > MOST {
        format!("{} …", shown(&tokens[..MOST]))
    } else {
        shown(tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markdown::pieces;

    fn found(text: &str) -> Vec<(usize, Rule)> {
        let pieces = pieces(text);
        let findings = pieces.iter().flat_map(|it| judge("a.md", it));
        findings.map(|it| (it.line, it.rule)).collect()
    }

    fn lengths(text: &str) -> Vec<usize> {
        let pieces = pieces(text);
        pieces.iter().flat_map(sentences).map(n_words).collect()
    }

    #[test]
    fn sentences_end_at_marks_items_headings_and_cells() {
        let text =
            "# A b\n\nC *d.* E (f `g.h`!) I – j?\n\n- k, e.g. l\n- m\n\n| n. o | p |\n|---|---|\n";
        assert_eq!(lengths(text), [2, 2, 3, 2, 3, 1, 1, 1, 1]);
    }

    #[test]
    fn phrases_are_found_over_line_ends_and_sentences_apart() {
        let text = "A number: so\nmany. It Told (said).\nHe was so. Many `told`.\n";
        let expected = [
            (1, Rule::Banned("so many")),
            (2, Rule::Banned("told")),
            (2, Rule::Banned("said")),
        ];
        assert_eq!(found(text), expected);
    }

    #[test]
    fn code_and_link_targets_may_have_any_word() {
        let text = "A [link](told.md) and `told`.\n\n```sh\nsaid\n```\n\n<!-- kept -->\n";
        assert_eq!(found(text), []);
    }

    #[test]
    fn a_clause_is_no_subject() {
        let text =
            "Who reads, sees.\nIt runs; what waits, waits. **What** is it? See who is there.\n";
        assert_eq!(found(text), [(1, Rule::Clause), (2, Rule::Clause)]);
    }

    #[test]
    fn a_sentence_has_at_most_40_words() {
        assert_eq!(found(&format!("{}x.", "x ".repeat(39))), []);
        let expected = [(1, Rule::Sentence)];
        assert_eq!(found(&format!("{}x.", "x ".repeat(40))), expected);
    }

    #[test]
    fn a_cell_has_at_most_30_words() {
        let cell = |n| format!("| a |\n|---|\n| {}|\n", "x. ".repeat(n));
        assert_eq!(found(&cell(30)), []);
        assert_eq!(found(&cell(31)), [(3, Rule::Cell)]);
    }

    #[test]
    fn a_finding_shows_how_its_sentence_begins() {
        let pieces = pieces("a b c d e f g h i `told` told k l.");
        let findings = judge("a.md", &pieces[0]);
        assert_eq!(
            findings[0].to_string(),
            "a.md:1: banned: told: a b c d e f g h i `told` …"
        );
    }
}

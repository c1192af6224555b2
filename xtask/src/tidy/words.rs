//! Words that are private to this code, where the field has a term of its own (`docs/glossary.md`).

use super::exceptions::Counts;
use crate::declared::declared;
use crate::prose::{self, Prose, Word};
use crate::sources::Source;

/// Words that no name has as a part.
const IN_NAMES: [&str; 32] = [
    "anew",
    "asked",
    "begun",
    "beside",
    "dealt",
    "desk",
    "desks",
    "elsewhere",
    "given",
    "heard",
    "kept",
    "mend",
    "mended",
    "mends",
    "passing",
    "place",
    "places",
    "said",
    "say",
    "sayable",
    "saying",
    "says",
    "standing",
    "stretch",
    "talk",
    "tell",
    "telling",
    "tells",
    "told",
    "unmade",
    "unread",
    "wishes",
];

/// Words and phrases that no prose has. `^` is the beginning of a sentence.
const IN_PROSE: [&str; 33] = [
    "^who",
    "^what",
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

/// Beginnings of help texts that are no doc comments.
const HELPS: [&str; 4] = ["help = ", "about = ", "long_about = ", "after_help = "];

/// Adds the banned words of a file. Tests may use any word.
pub(super) fn count(source: &Source, is_test: bool, counts: &mut Counts) {
    let path = source.path.as_str();
    let mut add = |rule: &str, prose: &[Prose]| {
        for piece in prose {
            for (line, phrase) in banned(&piece.words()) {
                counts.add(rule, path, format!("{line} {phrase}"));
            }
        }
    };
    if is_page(source) {
        // One exception a page, whatever it holds.
        if let Some((line, phrase)) = banned(&prose::page(&source.text).words()).first() {
            counts.add("words in pages", path, format!("{line} {phrase}"));
        }
        return;
    }
    if is_test || !source.is("rs") {
        return;
    }
    let is_help = source.text.contains("use clap::");
    let docs = if is_help {
        "words in help"
    } else {
        "words in docs"
    };
    add(docs, &prose::doc_comments(&source.text));
    add(
        "words in help",
        &prose::literals_after(&source.text, &HELPS),
    );
    add(
        "words in errors",
        &prose::literals_after(&source.text, &["#[error("]),
    );
    for (line, name) in names(source) {
        for word in parts(&name).filter(|word| IN_NAMES.contains(&word.as_str())) {
            counts.add("words in names", path, format!("{line} {name} ({word})"));
        }
    }
}

/// Whether users or contributors read it. Decisions and the changelog are history.
fn is_page(source: &Source) -> bool {
    let path = source.path.as_str();
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].contains(&path);
    let guide = path.starts_with("docs/") && source.is("md");
    top || guide && !path.starts_with("docs/decisions/")
}

/// The names that a file declares, and its own.
fn names(source: &Source) -> Vec<(usize, String)> {
    let module = source.path.rsplit_once('/').map_or("", |(_, name)| name);
    let module = module.trim_end_matches(".rs").to_owned();
    let mut names = vec![(1, module)];
    names.extend(
        declared(&source.text)
            .into_iter()
            .map(|it| (it.line, it.name)),
    );
    names
}

/// The words of `snake_case`, `CamelCase` and `CAPITALS`, in lower case.
fn parts(name: &str) -> impl Iterator<Item = String> {
    let mut parts: Vec<String> = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        if c == '_' || (c.is_uppercase() && was_lower) {
            parts.push(String::new());
        }
        was_lower = c.is_lowercase() || c.is_numeric();
        if let Some(part) = parts.last_mut().filter(|_| c != '_') {
            part.extend(c.to_lowercase());
        }
    }
    parts.into_iter().filter(|part| !part.is_empty())
}

/// The banned phrases, each with the line of its first word.
fn banned(words: &[Word]) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        for phrase in IN_PROSE {
            let begins = phrase.strip_prefix('^');
            let mut wanted = begins.unwrap_or(phrase).split(' ').zip(&words[at..]);
            let n_words = phrase.split(' ').count();
            if (begins.is_none() || word.begins)
                && words.len() - at >= n_words
                && wanted.all(|(wanted, word)| word.text == wanted)
            {
                found.push((word.line, phrase));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Counts {
        let mut counts = Counts::default();
        let source = Source {
            path: path.into(),
            text: text.into(),
        };
        count(&source, false, &mut counts);
        counts
    }

    fn one(rule: &str, path: &str, note: &str) -> Counts {
        let mut counts = Counts::default();
        counts.add(rule, path, note.to_owned());
        counts
    }

    #[test]
    fn names_are_split_into_words() {
        let words = |name| parts(name).collect::<Vec<_>>();
        assert_eq!(words("KeptCall"), ["kept", "call"]);
        assert_eq!(words("place_of"), ["place", "of"]);
        assert_eq!(words("MAX_PLACES"), ["max", "places"]);
        assert_eq!(words("replaced"), ["replaced"]);
    }

    #[test]
    fn a_banned_word_in_a_name_is_counted() {
        let expected = one("words in names", "crates/a/src/b.rs", "1 KeptCall (kept)");
        assert_eq!(
            found("crates/a/src/b.rs", "pub struct KeptCall;\n"),
            expected
        );
        assert_eq!(
            found("crates/a/src/b.rs", "struct KeptCall;\n"),
            Counts::default()
        );
        let expected = one("words in names", "crates/a/src/said.rs", "1 said (said)");
        assert_eq!(found("crates/a/src/said.rs", ""), expected);
    }

    #[test]
    fn phrases_are_found_over_line_ends_and_not_in_code() {
        let text = "/// A number: so\n/// many, `told` and <told>.\nfn a() {}\n";
        let counts = found("crates/a/src/b.rs", text);
        let mut expected = one("words in docs", "crates/a/src/b.rs", "1 so many");
        expected.add("words in docs", "crates/a/src/b.rs", "2 told".into());
        assert_eq!(counts, expected);
    }

    #[test]
    fn a_sentence_has_no_clause_as_its_subject() {
        let text = "/// Knows who. What is left is dropped.\nfn a() {}\n";
        let expected = one("words in docs", "crates/a/src/b.rs", "1 ^what");
        assert_eq!(found("crates/a/src/b.rs", text), expected);
    }

    #[test]
    fn texts_of_errors_and_of_help_are_prose() {
        let error = one("words in errors", "crates/a/src/b.rs", "1 told");
        assert_eq!(
            found("crates/a/src/b.rs", "#[error(\"nobody was told\")]\n"),
            error
        );
        let help = one("words in help", "crates/cli/src/b.rs", "2 so many");
        let text = "use clap::Args;\n/// At most so many.\nstruct A;\n";
        assert_eq!(found("crates/cli/src/b.rs", text), help);
    }

    #[test]
    fn a_page_is_one_exception() {
        let page = one("words in pages", "docs/a.md", "1 told");
        assert_eq!(found("docs/a.md", "It is told.\nIt was said.\n"), page);
        assert_eq!(
            found("docs/decisions/1.md", "It is told."),
            Counts::default()
        );
    }
}

//! Words that are private to this code, where the field has a term of its own (`docs/glossary.md`).

use super::exceptions::Counts;
use crate::declared::declared;
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

/// Adds the banned words of a file. Tests may use any word. `cargo xtask prose` checks the words of prose.
pub(super) fn count(source: &Source, is_test: bool, counts: &mut Counts) {
    if is_test || !source.is("rs") {
        return;
    }
    let path = source.path.as_str();
    for (line, name) in names(source) {
        for word in parts(&name).filter(|word| IN_NAMES.contains(&word.as_str())) {
            counts.add("words in names", path, format!("{line} {name} ({word})"));
        }
    }
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
}

//! Finding a phrase in linear time (Knuth, Morris and Pratt).

use std::ops::Range;

/// A phrase, folded: lower case, one space for each run of white space.
pub(super) struct Phrase {
    chars: Vec<char>,
    /// For each length that matches, the longest proper prefix that also ends there.
    fallback: Vec<usize>,
}

/// A folded character and its byte range in the text.
type Folded = (char, Range<usize>);

impl Phrase {
    /// The phrase of a query, if there is one in it.
    pub(super) fn new(query: &str) -> Option<Self> {
        let chars: Vec<char> = fold(query.trim()).map(|(char, _)| char).collect();
        if chars.is_empty() {
            return None;
        }
        let mut fallback = vec![0; chars.len() + 1];
        let mut length = 0;
        for (place, char) in chars.iter().enumerate().skip(1) {
            length = advance(&chars, &fallback, length, *char);
            if let Some(slot) = fallback.get_mut(place + 1) {
                *slot = length;
            }
        }
        Some(Self { chars, fallback })
    }

    /// Reports the bytes of each match; matches do not overlap.
    pub(super) fn find(&self, text: &str, whole_words: bool, mut found: impl FnMut(Range<usize>)) {
        let n_chars = self.chars.len();
        // Where the last characters began, by their number: enough to know where a match began.
        let mut starts = vec![0; n_chars];
        let mut length = 0;
        for (number, (char, bytes)) in fold(text).enumerate() {
            if let Some(slot) = starts.get_mut(number % n_chars) {
                *slot = bytes.start;
            }
            length = advance(&self.chars, &self.fallback, length, char);
            if length < n_chars {
                continue;
            }
            let start = starts.get((number + 1) % n_chars).copied();
            let range = start.unwrap_or_default()..bytes.end;
            if !whole_words || is_word(text, &range) {
                length = 0;
                found(range);
            }
        }
    }
}

/// The matched length of the phrase after one more character.
fn advance(chars: &[char], fallback: &[usize], mut length: usize, char: char) -> usize {
    loop {
        if chars.get(length) == Some(&char) {
            return length + 1;
        }
        if length == 0 {
            return 0;
        }
        length = fallback.get(length).copied().unwrap_or_default();
    }
}

/// The text in lower case, each run of white space as one space.
fn fold(text: &str) -> impl Iterator<Item = Folded> {
    let mut chars = text.char_indices().peekable();
    let words = std::iter::from_fn(move || {
        let (start, char) = chars.next()?;
        let mut end = start + char.len_utf8();
        if !char.is_whitespace() {
            return Some((char, start..end));
        }
        while let Some((at, space)) = chars.next_if(|(_, char)| char.is_whitespace()) {
            end = at + space.len_utf8();
        }
        Some((' ', start..end))
    });
    words.flat_map(|(char, bytes)| char.to_lowercase().map(move |lower| (lower, bytes.clone())))
}

/// Whether a match begins and ends at word boundaries.
fn is_word(text: &str, range: &Range<usize>) -> bool {
    let before = text
        .get(..range.start)
        .and_then(|text| text.chars().next_back());
    let after = text.get(range.end..).and_then(|text| text.chars().next());
    !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, query: &str, whole_words: bool) -> Vec<String> {
        let mut found = Vec::new();
        let phrase = Phrase::new(query).unwrap();
        phrase.find(text, whole_words, |range| {
            found.push(text[range].to_owned());
        });
        found
    }

    #[test]
    fn a_phrase_is_found_whatever_its_case_and_white_space() {
        let text = "Ein  Äpfel\n\tKORB, ein äpfel korb";
        assert_eq!(
            found(text, " äpfel Korb ", false),
            ["Äpfel\n\tKORB", "äpfel korb"]
        );
        assert_eq!(found("İstanbul", "İSTANBUL", false), ["İstanbul"]);
    }

    #[test]
    fn matches_do_not_overlap_and_a_failed_start_is_no_loss() {
        assert_eq!(found("aaaaa", "aa", false), ["aa", "aa"]);
        assert_eq!(found("abababac", "ababac", false), ["ababac"]);
    }

    #[test]
    fn whole_words_are_found_even_after_parts_of_words() {
        assert_eq!(found("looms loom", "loom", false), ["loom", "loom"]);
        assert_eq!(found("looms loom", "loom", true), ["loom"]);
        assert_eq!(found("在東京都", "東京", false), ["東京"]);
    }

    #[test]
    fn a_query_of_white_space_is_no_phrase() {
        assert!(Phrase::new(" \n").is_none());
    }
}

//! The words of texts and queries, and excerpts around them.
//!
//! Words are runs of letters and digits, compared without case and without diacritics on Latin letters:
//! the rules of SQLite's tokenizer `unicode61`. Each ideograph and kana is a word of its own.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

/// The words of a query. The last one may be the beginning of a word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchWords(Vec<Vec<String>>);

/// Why a text is not a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WordsRefused {
    /// It is too long.
    #[error("a search has at most {} bytes, found {found}", SearchWords::MAX_BYTES)]
    Bytes {
        /// Its bytes.
        found: usize,
    },
    /// It has too many words.
    #[error("a search has at most {} words, found {found}", SearchWords::MAX_WORDS)]
    Words {
        /// Its words.
        found: usize,
    },
}

/// A piece of a text, with the words that were found in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excerpt {
    /// The piece. It begins or ends with `…` where the text continues.
    pub text: String,
    /// The bytes of the found words in `text`, in order and without overlaps.
    pub matches: Vec<Range<usize>>,
}

impl Excerpt {
    /// The start and the end of each found word, in UTF-16 code units.
    pub fn utf16_matches(&self) -> Vec<[usize; 2]> {
        let units = |end| {
            let before = self.text.get(..end).unwrap_or_default();
            before.encode_utf16().count()
        };
        let matches = self.matches.iter();
        matches.map(|it| [units(it.start), units(it.end)]).collect()
    }
}

/// Maximum number of characters of an excerpt, and of those before the first match.
const EXCERPT: usize = 160;
const BEFORE: usize = 40;

impl SearchWords {
    /// Maximum number of bytes of a query.
    pub const MAX_BYTES: usize = 512;
    /// Maximum number of words of a query.
    pub const MAX_WORDS: usize = 16;

    /// Reads a query: words with spaces between them. Other characters separate the pieces of a word,
    /// which must follow each other in a text: `foo-bar`. No character has a special meaning.
    ///
    /// # Errors
    ///
    /// [`WordsRefused`] if it is too long or has too many words.
    pub fn parse(query: &str) -> Result<Self, WordsRefused> {
        let found = query.len();
        if found > Self::MAX_BYTES {
            return Err(WordsRefused::Bytes { found });
        }
        let phrase = |word| tokens(word).map(|(_, token)| token).collect::<Vec<_>>();
        let phrases = query.split_whitespace().map(phrase);
        let phrases: Vec<_> = phrases.filter(|phrase| !phrase.is_empty()).collect();
        match phrases.len() {
            found if found > Self::MAX_WORDS => Err(WordsRefused::Words { found }),
            _ => Ok(Self(phrases)),
        }
    }

    /// The words, each with its pieces in lower case.
    pub fn phrases(&self) -> &[Vec<String>] {
        &self.0
    }

    /// Whether it has no words.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a text has all words. It has none of no words.
    pub fn are_in(&self, text: &str) -> bool {
        let tokens: Vec<_> = tokens(text).collect();
        let mut words = 0..self.0.len();
        !self.is_empty() && words.all(|n| self.places(n, &tokens).next().is_some())
    }

    /// The text around the first of the words.
    pub fn excerpt(&self, text: &str) -> Excerpt {
        let tokens: Vec<_> = tokens(text).collect();
        let words = 0..self.0.len();
        let mut found: Vec<_> = words.flat_map(|n| self.places(n, &tokens)).collect();
        found.sort_by_key(|place| (place.start, place.end));
        let first = found.first().map_or(0, |place| place.start);
        let (before, _) = text.split_at(first);
        let near = before.char_indices().rev().take(BEFORE).last();
        let mut start = near.map_or(first, |(at, _)| at);
        if start > 0 {
            // Not in the middle of a word.
            let space = text[start..first].find(char::is_whitespace);
            start += space.map_or(0, |at| at + 1);
            start = text.ceil_char_boundary(start);
        }
        let rest = &text[start..];
        let end = rest
            .char_indices()
            .nth(EXCERPT)
            .map_or(rest.len(), |(at, _)| at);
        let head = if start > 0 { "…" } else { "" };
        let tail = if end < rest.len() { "…" } else { "" };
        let mut matches: Vec<Range<usize>> = Vec::new();
        for place in found {
            let place = place.start - start + head.len()..place.end - start + head.len();
            match matches.last_mut() {
                _ if place.end > head.len() + end => break,
                Some(last) if place.start < last.end => last.end = last.end.max(place.end),
                Some(_) | None => matches.push(place),
            }
        }
        Excerpt {
            text: [head, &rest[..end], tail].concat(),
            matches,
        }
    }

    /// Where the word with this number is in a text.
    fn places<'a>(
        &'a self,
        n: usize,
        tokens: &'a [(Range<usize>, String)],
    ) -> impl Iterator<Item = Range<usize>> + 'a {
        let phrase = self.0.get(n).map(Vec::as_slice).unwrap_or_default();
        let is_last = n + 1 == self.0.len();
        let equals = move |at: usize, word: &str, token: &str| {
            let is_beginning = is_last && at + 1 == phrase.len();
            token == word || is_beginning && token.starts_with(word)
        };
        // A window of no tokens does not exist.
        let windows = tokens.windows(phrase.len().max(1));
        let found = windows.filter(move |window| {
            let mut pairs = phrase.iter().zip(*window).enumerate();
            pairs.all(|(at, (word, (_, token)))| equals(at, word, token))
        });
        found.filter_map(|window| Some(window.first()?.0.start..window.last()?.0.end))
    }
}

/// The text with spaces around ideographs and kana, so that a tokenizer takes each as a word.
pub fn spaced(text: &str) -> Cow<'_, str> {
    if !text.contains(is_ideograph) {
        return text.into();
    }
    let mut spaced = String::with_capacity(text.len() * 2);
    for c in text.chars() {
        if is_ideograph(c) {
            spaced.extend([' ', c, ' ']);
        } else {
            spaced.push(c);
        }
    }
    spaced.into()
}

/// The different words of a text, in lower case and without diacritics: what an index of words has of it.
pub fn distinct_words(text: &str) -> BTreeSet<String> {
    tokens(text).map(|(_, word)| word).collect()
}

/// The words of a text in lower case, with their bytes.
fn tokens(text: &str) -> impl Iterator<Item = (Range<usize>, String)> + '_ {
    let mut chars = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (start, first) = chars.find(|(_, c)| c.is_alphanumeric())?;
        let (mut end, mut token) = (start + first.len_utf8(), String::new());
        fold(first, &mut token);
        if is_ideograph(first) {
            return Some((start..end, token));
        }
        let within = |c: char| (c.is_alphanumeric() && !is_ideograph(c)) || is_mark(c);
        while let Some((at, c)) = chars.next_if(|(_, c)| within(*c)) {
            end = at + c.len_utf8();
            fold(c, &mut token);
        }
        Some((start..end, token))
    })
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
        && c.is_alphanumeric()
}

/// A mark that combines with the letter before it.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// The letters of two blocks without their diacritics, from the first character of each block.
const LATIN: [(char, &str); 2] = [
    (
        '\u{c0}',
        "aaaaaa.ceeeeiiii.nooooo..uuuuy..aaaaaa.ceeeeiiii.nooooo..uuuuy.yaaaaaaccccccccdd\
         ..eeeeeeeeeegggggggghh..iiiiiiiii...jjkk.llllll....nnnnnn...oooooo..rrrrrrssssss\
         sstttt..uuuuuuuuuuuuwwyyyzzzzzz.................................oo.............u\
         u............................aaiioouuuuuuuuuu.aaaa....ggkkoooo..j...gg..nnaa....\
         aaaaeeeeiiiioooorrrruuuusstt..hh......aaeeooooooooyy",
    ),
    (
        '\u{1e00}',
        "aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmmmmmmnnnnnnnnoooo\
         oooopppprrrrrrrrssssssssssttttttttuuuuuuuuuuvvvvwwwwwwwwwwxxxxyyzzzzzzhtwy......\
         aaaaaaaaaaaaaaaaaaaaaaaaeeeeeeeeeeeeeeeeiiiioooooooooooooooooooooooouuuuuuuuuuuu\
         uuyyyyyyyy......",
    ),
];

/// Adds a character in lower case and without diacritics.
fn fold(c: char, token: &mut String) {
    if is_mark(c) {
        return;
    }
    let folded = LATIN.iter().find_map(|(first, letters)| {
        let at = u32::from(c).checked_sub(u32::from(*first))?;
        let letter = char::from(*letters.as_bytes().get(usize::try_from(at).ok()?)?);
        Some(letter).filter(|letter| *letter != '.')
    });
    match folded {
        Some(letter) => token.push(letter),
        None => token.extend(c.to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(query: &str) -> SearchWords {
        SearchWords::parse(query).unwrap()
    }

    fn marked(query: &str, text: &str) -> String {
        let excerpt = words(query).excerpt(text);
        let mut marked = excerpt.text;
        for place in excerpt.matches.iter().rev() {
            marked.insert(place.end, ']');
            marked.insert(place.start, '[');
        }
        marked
    }

    #[test]
    fn words_are_found_without_case_and_diacritics() {
        let text = "Das Café — in Łódź, um 9:30 Uhr. Cafe\u{301}!";
        for query in [
            "cafe",
            "CAFÉ das",
            "uhr caf",
            "łódz",
            "9:30",
            "(café)",
            "um 9",
        ] {
            assert!(words(query).are_in(text), "{query}");
        }
        for query in ["caf uhr", "9-3-0", "tee", "cafés", "", "\"", "🎉"] {
            assert!(!words(query).are_in(text), "{query}");
        }
    }

    #[test]
    fn ideographs_are_words_of_their_own() {
        assert!(words("東京").are_in("明日、東京へ行く"));
        assert!(!words("京東").are_in("明日、東京へ行く"));
        assert_eq!(spaced("a東b"), "a 東 b");
    }

    #[test]
    fn an_excerpt_has_the_words_and_what_is_around() {
        assert_eq!(marked("two thr", "one two three"), "one [two] [three]");
        assert_eq!(marked("no", "one two"), "one two");
        assert_eq!(marked("a-b", "A b a-b"), "[A b] [a-b]");
        let excerpt = words("b").excerpt("🎉ä b");
        assert_eq!(excerpt.utf16_matches(), [[4, 5]]);
        let text = format!("{}needle {}", "ä ".repeat(400), "ö ".repeat(400));
        let cut = marked("needle", &text);
        assert!(cut.starts_with("…ä ä") && cut.ends_with(" ö…"), "{cut}");
        assert!(cut.contains("ä [needle] ö") && cut.chars().count() <= EXCERPT + 4);
    }

    #[test]
    fn a_query_has_limits() {
        let many = "w ".repeat(SearchWords::MAX_WORDS);
        assert_eq!(words(&many).phrases().len(), SearchWords::MAX_WORDS);
        let found = SearchWords::MAX_WORDS + 1;
        let refused = SearchWords::parse(&format!("{many} w"));
        assert_eq!(refused, Err(WordsRefused::Words { found }));
        let refused = SearchWords::parse(&"x".repeat(513));
        assert_eq!(refused, Err(WordsRefused::Bytes { found: 513 }));
    }
}

//! Samples of content, and the search for them after it was erased.
//!
//! A sample is 16 bytes of a text or a file. Long content has one each 512 bytes, so that a page of it that is left
//! anywhere has some. A text with fewer bytes has none, and is counted.

use std::collections::{BTreeMap, BTreeSet};
use store::StoreError;
use timeline::{CHUNK_TYPES, Event};
use uuid::Uuid;

/// The bytes of a sample.
pub(crate) const SAMPLE: usize = 16;
/// The distance of two samples of a long content.
const STRIDE: usize = 512;
/// Maximum number of samples; of more content, fewer are taken.
const MAX: usize = 1 << 20;
/// How many places are named.
const NAMED: usize = 10;

/// Samples of content that is to be erased.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    windows: Vec<u128>,
    /// The number of zero bits at the end of the hash of each sample that is taken.
    thinned: u32,
    n_texts: u64,
    n_short: u64,
}

impl Samples {
    /// The number of texts and files with a sample.
    pub fn texts(&self) -> u64 {
        self.n_texts
    }

    /// The number of texts that are too short for one.
    pub fn short(&self) -> u64 {
        self.n_short
    }

    /// Adds other samples.
    pub fn append(&mut self, mut other: Self) {
        self.n_texts += other.n_texts;
        self.n_short += other.n_short;
        self.thinned = self.thinned.max(other.thinned);
        self.windows.append(&mut other.windows);
        self.thin();
    }

    /// Adds samples of bytes.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.len().checked_sub(SAMPLE) else {
            return;
        };
        self.n_texts += 1;
        let starts = (0..last).step_by(STRIDE).chain([last]);
        let windows = starts.filter_map(|start| bytes.get(start..)?.first_chunk());
        let thinned = self.thinned;
        let windows = windows.map(|window| u128::from_le_bytes(*window));
        // Zeros and spaces are everywhere.
        let windows = windows.filter(|window| is_distinct(*window) && is_taken(*window, thinned));
        self.windows.extend(windows);
        self.thin();
    }

    /// Adds samples of the words that the full-text index may have of a text.
    fn add_words(&mut self, text: &str) {
        let is_end = |letter: char| !letter.is_ascii_alphanumeric();
        for word in text.split(is_end).filter(|word| word.len() >= SAMPLE) {
            self.add(word.to_ascii_lowercase().as_bytes());
        }
    }

    /// Adds samples of a text, or of the strings of a JSON text.
    pub(crate) fn add_value(&mut self, text: &str) {
        if text.starts_with(['{', '[']) {
            self.add_json(text);
        } else {
            self.add_text(text);
        }
    }

    fn add_text(&mut self, text: &str) {
        self.add(text.as_bytes());
        self.add_words(text);
    }

    /// Adds samples of the strings of a JSON text, as they are spelled.
    pub(crate) fn add_json(&mut self, json: &str) {
        for string in strings(json) {
            self.add_string(string);
        }
    }

    fn add_string(&mut self, Spelled { key, text }: Spelled<'_>) {
        let is_short = !text.is_empty() && text.len() < SAMPLE;
        self.n_short += u64::from(is_short && TEXTS.contains(&key));
        self.add_text(text);
    }

    /// Adds samples of the strings that an event has and another one lacks.
    pub(crate) fn add_difference(&mut self, event: &Event, other: &Event) {
        let (Ok(before), Ok(after)) = (event.encode(), other.encode()) else {
            return;
        };
        let after: BTreeSet<&str> = strings(&after).map(|it| it.text).collect();
        for string in strings(&before).filter(|it| !after.contains(it.text)) {
            self.add_string(string);
        }
    }

    fn thin(&mut self) {
        if self.windows.len() <= 2 * MAX {
            return;
        }
        self.windows.sort_unstable();
        self.windows.dedup();
        while self.windows.len() > MAX {
            self.thinned += 1;
            let thinned = self.thinned;
            self.windows.retain(|window| is_taken(*window, thinned));
        }
    }
}

fn is_taken(window: u128, thinned: u32) -> bool {
    hash(window).trailing_zeros() >= thinned
}

/// Whether a sample has at least four different bytes.
fn is_distinct(window: u128) -> bool {
    BTreeSet::from(window.to_le_bytes()).len() >= 4
}

/// Whether a sample can be of a word of the full-text index.
fn is_of_word(window: u128) -> bool {
    let mut letters = window.to_le_bytes().into_iter();
    letters.all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit())
}

#[expect(clippy::cast_possible_truncation, reason = "a hash")]
fn hash(window: u128) -> u64 {
    let folded = (window as u64) ^ (window >> 64) as u64;
    let mixed = folded.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 32)
}

/// The members whose short texts are counted.
const TEXTS: [&str; 7] = [
    "text",
    "title",
    "message",
    "refusal",
    "arguments",
    "output",
    "errorText",
];

/// The members whose texts are words of the protocol or names that many contents have, if they have no spaces.
const NAMES: [&str; 5] = ["type", "state", "status", "model", "provider"];

/// A string of a JSON text, as it is spelled.
#[derive(Clone, Copy)]
struct Spelled<'j> {
    /// The member that it belongs to.
    key: &'j str,
    text: &'j str,
}

/// The strings of a JSON text, without those that say nothing: names, ids, instants and the types of chunks.
fn strings(json: &str) -> impl Iterator<Item = Spelled<'_>> {
    let (mut rest, mut key) = (json, "");
    let next = move || {
        let start = rest.find('"')? + 1;
        let text = rest.get(start..)?;
        let mut is_escaped = false;
        let end = text.bytes().position(|byte| {
            let is_end = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            is_end
        })?;
        rest = text.get(end + 1..)?;
        let text = text.get(..end)?;
        let is_key = rest.trim_start().starts_with(':');
        if is_key {
            key = text;
        }
        Some((!is_key).then_some(Spelled { key, text }))
    };
    let strings = std::iter::from_fn(next).flatten();
    strings.filter(|Spelled { key, text }| {
        let is_word = NAMES.contains(key) && !text.contains(' ');
        let is_name = is_word || CHUNK_TYPES.contains(text);
        !is_name && Uuid::try_parse(text).is_err() && text.parse::<jiff::Timestamp>().is_err()
    })
}

/// Finds samples in bytes.
pub(crate) struct Matcher {
    windows: Vec<u128>,
    /// Which hashes there are: most positions are decided by it.
    bits: Vec<u64>,
}

/// The bits of a hash that choose a bit of the matcher.
const BITS: u32 = 22;

impl Matcher {
    pub(crate) fn new(samples: &Samples) -> Self {
        let mut windows = samples.windows.clone();
        windows.sort_unstable();
        windows.dedup();
        let mut bits = vec![0_u64; 1 << (BITS - 6)];
        for window in &windows {
            let (word, bit) = bit(*window);
            if let Some(word) = bits.get_mut(word) {
                *word |= bit;
            }
        }
        Self { windows, bits }
    }

    /// Calls back with each sample and its offset.
    pub(crate) fn find(&self, bytes: &[u8], mut with: impl FnMut(u128, usize)) {
        for (offset, window) in bytes.windows(SAMPLE).enumerate() {
            let Some(window) = window.first_chunk() else {
                continue;
            };
            let window = u128::from_le_bytes(*window);
            let (word, bit) = bit(window);
            let may_be = self.bits.get(word).is_some_and(|word| word & bit != 0);
            if may_be && self.windows.binary_search(&window).is_ok() {
                with(window, offset);
            }
        }
    }
}

fn bit(window: u128) -> (usize, u64) {
    let hash = hash(window) >> (64 - BITS);
    (usize::try_from(hash >> 6).unwrap_or(0), 1 << (hash & 63))
}

/// Samples that were found, each with its first place.
#[derive(Clone, Debug, Default)]
pub struct FoundSamples {
    windows: BTreeMap<u128, String>,
}

impl FoundSamples {
    /// The number of samples.
    pub fn len(&self) -> usize {
        self.windows.len()
    }

    /// Adds a sample, unless it has a place already.
    pub(crate) fn add(&mut self, window: u128, place: impl FnOnce() -> String) {
        self.windows.entry(window).or_insert_with(place);
    }

    /// Whether no sample was found.
    pub fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }
}

/// Samples in the values of the tables.
#[derive(Debug, Default)]
pub(crate) struct InValues {
    /// In tables with content.
    pub(crate) content: FoundSamples,
    /// In the tables of the full-text index.
    pub(crate) index: FoundSamples,
    /// In the statements of the schema, which are no content.
    pub(crate) schema: FoundSamples,
}

impl InValues {
    /// Adds the samples in a value with content at a place.
    pub(crate) fn add(
        &mut self,
        matcher: &Matcher,
        bytes: &[u8],
        place: impl FnOnce() -> Result<String, StoreError>,
    ) -> Result<(), StoreError> {
        let mut hits = Vec::new();
        matcher.find(bytes, |window, _| hits.push(window));
        // The index has the words of this value in small letters.
        let small = bytes.to_ascii_lowercase();
        matcher.find(&small, |window, _| {
            if is_of_word(window) {
                hits.push(window);
            }
        });
        if !hits.is_empty() {
            let place = place()?;
            for window in hits {
                self.content.add(window, || place.clone());
            }
        }
        Ok(())
    }
}

/// The result of a search for what was erased.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Searched {
    /// Texts and files with samples.
    pub texts: u64,
    /// Texts that are too short for a sample.
    pub short: u64,
    /// Samples that were searched for.
    pub samples: u64,
    /// Whether the bytes of the files were searched too. Those of an encrypted store say nothing, and those of a database
    /// server are not the store's.
    pub has_read_files: bool,
    /// Samples that are left although nothing that can be read has them.
    pub left: u64,
    /// Some places of these.
    pub left_at: Vec<String>,
    /// Samples that content which stays has too.
    pub shared: u64,
    /// Some places of these.
    pub shared_in: Vec<String>,
}

impl Searched {
    pub(crate) fn of(
        samples: &Samples,
        in_files: Option<FoundSamples>,
        in_values: InValues,
    ) -> Self {
        let InValues {
            mut content,
            index,
            schema,
        } = in_values;
        let has_read_files = in_files.is_some();
        let mut left = index.windows;
        left.extend(in_files.unwrap_or_default().windows);
        left.retain(|window, _| {
            !content.windows.contains_key(window) && !schema.windows.contains_key(window)
        });
        content
            .windows
            .retain(|window, _| !schema.windows.contains_key(window));
        let named = |places: &BTreeMap<u128, String>| {
            let places: BTreeSet<_> = places.values().cloned().collect();
            places.into_iter().take(NAMED).collect()
        };
        Self {
            texts: samples.n_texts,
            short: samples.n_short,
            samples: samples.windows.len() as u64,
            has_read_files,
            left_at: named(&left),
            left: left.len() as u64,
            shared_in: named(&content.windows),
            shared: content.windows.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(samples: &Samples, bytes: &[u8]) -> usize {
        let mut n = 0;
        Matcher::new(samples).find(bytes, |_, _| n += 1);
        n
    }

    #[test]
    fn a_sample_is_found_wherever_it_is() {
        let mut samples = Samples::default();
        samples.add_json(r#"{"type":"text","text":"a secret of \"somebody\" else"}"#);
        samples.add_json(r#"{"type":"text","text":"too short"}"#);
        assert_eq!((samples.texts(), samples.short()), (1, 1));
        let text = br#"a secret of \"somebody\" else"#;
        for before in 0..40 {
            let bytes = [&vec![b'x'; before][..], text, b"y"].concat();
            assert_eq!(found(&samples, &bytes), 2, "{before}");
        }
        assert_eq!(found(&samples, b"another text, of more than 16 bytes"), 0);
    }

    #[test]
    fn each_page_of_a_long_text_has_samples() {
        let words: Vec<String> = (0..5000).map(|n| n.to_string()).collect();
        let text = words.join(" ");
        let mut samples = Samples::default();
        samples.add(text.as_bytes());
        for page in text.as_bytes().chunks_exact(4000) {
            assert!(found(&samples, page) >= 6);
        }
    }

    #[test]
    fn samples_of_much_content_stay_bounded() {
        let mut samples = Samples::default();
        for n in 0_u64..2_200_000 {
            samples.add(format!("{n:09}-{n:09}").as_bytes());
        }
        assert!(samples.windows.len() <= 2 * MAX);
        assert!(samples.windows.len() > MAX / 4);
        let taken = samples.windows[0].to_le_bytes();
        assert_eq!(found(&samples, &taken), 1);
    }

    #[test]
    fn words_of_the_protocol_are_not_sampled() {
        let mut samples = Samples::default();
        samples.add_json(
            r#"{"type":"tool-weather-of-a-city","state":"output-available","model":"a-model-with-a-long-name",
                "a_member_with_a_long_name":["a secret of somebody"],"createdAt":"2026-01-02T03:04:05.678Z"}"#,
        );
        assert_eq!((samples.texts(), samples.short()), (1, 0));
        assert_eq!(found(&samples, b"a secret of somebody"), 2);
    }

    #[test]
    fn words_are_sampled_as_the_index_has_them() {
        let mut samples = Samples::default();
        samples.add_text("short SKLIVE0123456789ABCDEF");
        assert!(found(&samples, b"sklive0123456789abcdef") > 0);
    }
}

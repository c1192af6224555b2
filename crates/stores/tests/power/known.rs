//! What a process has said: what it was about to write, and what the store has acknowledged.

use std::collections::BTreeMap;

/// What is known of one thread's log.
#[derive(Default)]
pub(crate) struct KnownLog {
    /// The events, with those of the append that may be under way.
    pub(crate) texts: Vec<String>,
    /// The tails before each append.
    pub(crate) tails: Vec<usize>,
    pub(crate) n_acknowledged: usize,
}

impl KnownLog {
    /// The append under way was found whole, or not at all: both are final.
    pub(crate) fn settle(&mut self, n: usize) {
        self.texts.truncate(n);
        self.tails.retain(|tail| *tail < n);
        self.n_acknowledged = n;
    }
}

/// The number that an object is made of; 0 if there is none.
#[derive(Default)]
pub(crate) struct KnownObject {
    pub(crate) acknowledged: usize,
    /// Differs while a request is under way.
    pub(crate) requested: usize,
}

/// Everything that a store must have.
#[derive(Default)]
pub(crate) struct Known {
    pub(crate) logs: BTreeMap<String, KnownLog>,
    /// By kind and id.
    pub(crate) objects: BTreeMap<(String, String), KnownObject>,
    /// How many writes were acknowledged.
    pub(crate) n_acknowledged: usize,
}

impl Known {
    /// Adds what a process has said. A line without its end was not said.
    pub(crate) fn learn(&mut self, said: &str) {
        let lines = said.lines().filter_map(|line| line.strip_suffix("\t."));
        for line in lines {
            match line.split('\t').collect::<Vec<_>>()[..] {
                ["append", thread, tail, ref texts @ ..] => {
                    let log = self.logs.entry(thread.to_owned()).or_default();
                    assert_eq!(log.texts.len().to_string(), tail);
                    log.tails.push(log.texts.len());
                    log.texts.extend(texts.iter().map(ToString::to_string));
                }
                ["appended", thread, tail] => {
                    let log = self.logs.get_mut(thread).unwrap();
                    log.n_acknowledged = tail.parse().unwrap();
                    assert_eq!(log.texts.len(), log.n_acknowledged);
                    self.n_acknowledged += 1;
                }
                ["put", kind, id, n] => {
                    let name = (kind.to_owned(), id.to_owned());
                    self.objects.entry(name).or_default().requested = n.parse().unwrap();
                }
                ["stored", kind, id, n] => {
                    let name = (kind.to_owned(), id.to_owned());
                    self.objects.get_mut(&name).unwrap().acknowledged = n.parse().unwrap();
                    self.n_acknowledged += 1;
                }
                _ => panic!("{line}"),
            }
        }
    }
}

/// The kinds of objects.
pub(crate) const KINDS: [&str; 3] = ["a", "b", "large"];

/// Whether the contents of this kind are large.
pub(crate) fn is_large(kind: &str) -> bool {
    kind == "large"
}

/// The JSON of an object that is made of this number.
pub(crate) fn json_of(n: usize) -> String {
    format!("{{\"n\":{n}}}")
}

/// The content of an object that is made of this number. Neighbors share theirs.
pub(crate) fn content_of(kind: &str, n: usize) -> Option<Vec<u8>> {
    let n = n / 2;
    let times = if is_large(kind) { 60_000 } else { 400 };
    (!n.is_multiple_of(5)).then(|| n.to_string().repeat(n * times).into_bytes())
}

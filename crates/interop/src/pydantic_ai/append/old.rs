//! Compares a list of messages with the history in an archive.

use super::super::note::Note;
use crate::archive::{Archive, Format, SourceText};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use thread::Json;

/// The relation of a list of messages to an archive.
pub(super) enum Meaning {
    /// The archive has the messages, or had them.
    Nothing,
    /// The messages replace those of one run of the archive; the index of the run.
    Again(usize),
    /// The messages are new ones of one run of the archive; the index of the run.
    More(usize),
    /// The whole history.
    Whole,
    /// The messages are those that a new run added.
    Added,
}

/// The history that an archive has: each message and the place of its run.
pub(super) struct Old {
    pub(super) messages: Vec<(usize, SourceText)>,
}

impl Old {
    pub(super) fn of(archive: &Archive) -> Self {
        let runs = archive.runs.iter().enumerate();
        let runs = runs.filter(|(_, run)| run.format == Format::PydanticAi);
        let messages = runs.flat_map(|(place, run)| {
            let records = run.records.iter();
            records.map(move |record| (place, record.clone()))
        });
        Self {
            messages: messages.collect(),
        }
    }

    /// The history of one run only.
    pub(super) fn of_run(&self, run: usize) -> Self {
        let messages = self.messages.iter().filter(|(owner, _)| *owner == run);
        Self {
            messages: messages.cloned().collect(),
        }
    }

    fn is(&self, place: usize, text: &str) -> bool {
        let message = self.messages.get(place);
        message.is_some_and(|(_, record)| same(record, text))
    }

    fn ends_with(&self, new: &[&str]) -> bool {
        let Some(from) = self.messages.len().checked_sub(new.len()) else {
            return false;
        };
        (from..).zip(new).all(|(place, text)| self.is(place, text))
    }

    pub(super) fn meaning_of(
        &self,
        archive: &Archive,
        new: &[&str],
        notes: &[Note<'_>],
    ) -> Meaning {
        if new.is_empty() || self.ends_with(new) {
            return Meaning::Nothing;
        }
        let runs = archive.runs.iter().enumerate();
        let runs = runs.filter(|(_, run)| run.format == Format::PydanticAi);
        let mut by_id: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (place, run) in runs {
            if let Some(id) = run.head.get_str("run_id") {
                by_id.entry(id).or_default().push(place);
            }
        }
        let id_of = |note: &Note<'_>| note.run_id.as_deref().and_then(|id| by_id.get(id));
        if let Some([run]) = notes.first().and_then(id_of).map(Vec::as_slice)
            && notes.windows(2).all(|pair| match pair {
                [one, other] => one.run_id == other.run_id,
                _ => true,
            })
        {
            let owned = self.of_run(*run);
            // All of it was superseded: the history has gone on without this run.
            let is_past = owned.messages.is_empty();
            return if is_past || owned.has_in_one_piece(new) {
                Meaning::Nothing
            } else if owned.is_in(new, notes) {
                Meaning::Again(*run)
            } else {
                Meaning::More(*run)
            };
        }
        if notes.iter().any(|note| id_of(note).is_some()) || self.is_in(new, notes) {
            Meaning::Whole
        } else {
            Meaning::Added
        }
    }

    fn has_in_one_piece(&self, new: &[&str]) -> bool {
        let Some(first) = new.first() else {
            return false;
        };
        // Every record may be held against the first message, which is read once for all of them.
        let value = OnceCell::new();
        let is_first = |record: &SourceText| {
            let value = || value.get_or_init(|| Json::parse(first).ok()).as_ref();
            record.text() == *first
                || (is_spaced(first) || is_spaced(record.text())) && value() == Some(&record.json())
        };
        let mut records = self.messages.iter().map(|(_, record)| record);
        let from = records.position(is_first);
        from.is_some_and(|from| (from..).zip(new).all(|(place, text)| self.is(place, text)))
    }

    /// Whether the new history contains this one, unchanged or rewritten. The test compares
    /// messages and is a heuristic.
    fn is_in(&self, new: &[&str], notes: &[Note<'_>]) -> bool {
        if self.messages.is_empty() {
            return false;
        }
        if new.first().is_some_and(|text| self.is(0, text)) {
            return true;
        }
        let texts = self.messages.iter().map(|(_, record)| record.text());
        let texts: BTreeSet<&str> = texts.collect();
        // No two messages are the same to the instant.
        let is_known = |(note, text): (&Note<'_>, &&str)| {
            let says = note.is_response || note.prompts;
            says && note.instant.is_some() && texts.contains(text)
        };
        if notes.iter().zip(new).any(is_known) || self.alike(new, notes).next().is_some() {
            return true;
        }
        let in_place = new.iter().enumerate();
        let in_place = in_place.filter(|(place, text)| self.is(*place, text));
        in_place.count() * 2 > self.messages.len()
    }

    /// The indexes at which both histories have the same user prompt with the same timestamp, with
    /// the runs that own them. System prompts are evaluated anew and the rest may be rewritten, so
    /// only the prompts are compared.
    pub(super) fn alike(
        &self,
        new: &[&str],
        notes: &[Note<'_>],
    ) -> impl Iterator<Item = (usize, usize)> {
        let pairs = self.messages.iter().zip(new.iter().zip(notes)).enumerate();
        pairs.filter_map(|(place, ((run, record), (text, note)))| {
            let is_alike = if record.text() == *text {
                note.prompts && note.instant.is_some()
            } else {
                note.prompts
                    && record.text().contains("user-prompt")
                    && asks_the_same(&record.json(), text)
            };
            is_alike.then_some((place, *run))
        })
    }

    /// The index of each message of this history in the new one, in order; `None` if it is gone.
    pub(super) fn positions_in(&self, new: &[&str]) -> Vec<Option<usize>> {
        let mut places = vec![None; self.messages.len()];
        let pairs = self.messages.iter().zip(new);
        let head = pairs
            .take_while(|((_, record), text)| same(record, text))
            .count();
        for (place, slot) in places.iter_mut().take(head).enumerate() {
            *slot = Some(place);
        }
        let rest = self.messages.len().min(new.len()) - head;
        let pairs = self.messages.iter().rev().zip(new.iter().rev()).take(rest);
        let tail = pairs
            .take_while(|((_, record), text)| same(record, text))
            .count();
        for (place, slot) in places.iter_mut().rev().take(tail).enumerate() {
            *slot = Some(new.len() - 1 - place);
        }
        let mut spelled: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let end = new.len() - tail;
        for (place, text) in new.iter().enumerate().take(end).skip(head) {
            spelled.entry(text).or_default().push(place);
        }
        let mut next = head;
        let middle = places.len() - tail;
        let middle = places
            .iter_mut()
            .zip(&self.messages)
            .take(middle)
            .skip(head);
        for (slot, (_, record)) in middle {
            let found = spelled.get(record.text());
            let found = found.and_then(|found| {
                let from = found.partition_point(|place| *place < next);
                found.get(from).copied()
            });
            if let Some(place) = found {
                *slot = Some(place);
                next = place + 1;
            }
        }
        places
    }
}

/// Whether a record is this message, however it is spaced.
fn same(record: &SourceText, text: &str) -> bool {
    record.text() == text
        || ((is_spaced(text) || is_spaced(record.text()))
            && Json::parse(text).is_ok_and(|json| json == record.json()))
}

/// Whether a text has anything that may be white space between its values.
fn is_spaced(text: &str) -> bool {
    text.contains(['\n', ' '])
}

/// Whether both begin with the same prompt, of the same instant.
fn asks_the_same(one: &Json, text: &str) -> bool {
    let Ok(other) = Json::parse(text) else {
        return false;
    };
    let (Some(one), Some(other)) = (prompt(one), prompt(&other)) else {
        return false;
    };
    let at = one.get("timestamp").and_then(Json::as_str);
    at.is_some()
        && other.get("timestamp").and_then(Json::as_str) == at
        && one.get("content") == other.get("content")
}

/// The first user prompt of a request.
fn prompt(message: &Json) -> Option<&Json> {
    let mut parts = message.get("parts")?.as_array()?.iter();
    parts.find(|part| part.get("part_kind").and_then(Json::as_str) == Some("user-prompt"))
}

//! An archive that goes on: a history that has grown, or what a run added to it.

use super::PydanticAiError;
use super::cut::{Open, Roles, Who, cut};
use super::history::{head, own, register};
use super::note::{Note, notes};
use crate::archive::{Archive, Format, Record, Run};
use crate::convert::ReadOptions;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thread::{Json, Object};

/// Goes on with an archive: `text` is the whole history after another run, or only what the run added.
///
/// It is the whole history where it begins with the archive's first message, has more than half of
/// its runs, or has more than half of its messages in their places. The archive then gives exactly
/// that history; messages that it no longer has are kept in the `superseded` of their run's head.
/// What the archive ends with already is not added again.
pub fn append(
    archive: &mut Archive,
    text: &str,
    options: &ReadOptions,
) -> Result<(), PydanticAiError> {
    let notes = notes(text, &options.limits)?;
    let old = Old::of(archive);
    let new: Vec<&str> = notes
        .iter()
        .map(|note| text.get(note.span.clone()).unwrap_or_default())
        .collect();
    if new.is_empty() || old.ends_with(&new) {
        return Ok(());
    }
    let fallback = archive.runs.iter().rev();
    let fallback = fallback
        .filter(|run| run.format == Format::PydanticAi)
        .find_map(|run| known(run.agent_id.as_deref()));
    let mut roles = Roles::new(&options.attribution, fallback);
    let plan = if old.is_in(archive, &new, &notes) {
        Plan::rewrite(archive, &old, &new, &notes, &mut roles)
    } else {
        Plan::add(&notes, &mut roles)
    };
    let at = options.at.clone();
    plan.carry_out(archive, &old, &new, &notes, &at);
    if let Some(updated_at) = notes.iter().rev().find_map(own) {
        archive.root.insert("updated_at", updated_at);
    }
    Ok(())
}

fn known(agent_id: Option<&str>) -> Option<Who> {
    Some(Who {
        agent_id: agent_id?.to_owned(),
        name: None,
    })
}

/// The history that an archive has: each message and the place of its run.
struct Old {
    messages: Vec<(usize, Record)>,
}

impl Old {
    fn of(archive: &Archive) -> Self {
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

    /// Whether a history has this one in it, as it was or rewritten.
    fn is_in(&self, archive: &Archive, new: &[&str], notes: &[Note<'_>]) -> bool {
        if self.messages.is_empty() {
            return false;
        }
        if new.first().is_some_and(|text| self.is(0, text)) {
            return true;
        }
        let ids = archive.runs.iter();
        let ids = ids.filter(|run| run.format == Format::PydanticAi);
        let ids: BTreeSet<&str> = ids.filter_map(|run| run.head.get_str("run_id")).collect();
        let theirs: BTreeSet<&str> = notes
            .iter()
            .filter_map(|note| note.run_id.as_deref())
            .collect();
        let shared = ids.intersection(&theirs).count();
        if shared * 2 > ids.len() {
            return true;
        }
        let in_place = new.iter().enumerate();
        let in_place = in_place.filter(|(place, text)| self.is(*place, text));
        in_place.count() * 2 > self.messages.len()
    }

    /// Where each message of this history stands in the new one, if it still does; in order.
    fn places_in(&self, new: &[&str]) -> Vec<Option<usize>> {
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
fn same(record: &Record, text: &str) -> bool {
    if record.text() == text {
        return true;
    }
    let spaced = |text: &str| text.contains(['\n', ' ']);
    (spaced(text) || spaced(record.text()))
        && Json::parse(text).is_ok_and(|json| json == record.json())
}

/// What becomes of the messages of a new history.
#[derive(Default)]
struct Plan {
    /// The run that each of the first ones belongs to.
    owners: Vec<usize>,
    /// Where each old message stands now.
    places: Vec<Option<usize>>,
    /// The runs that are new, by the messages after those with owners.
    cuts: Vec<super::cut::Cut>,
}

impl Plan {
    fn add(notes: &[Note<'_>], roles: &mut Roles<'_>) -> Self {
        Self {
            cuts: cut(notes, None, roles),
            ..Self::default()
        }
    }

    fn rewrite(
        archive: &Archive,
        old: &Old,
        new: &[&str],
        notes: &[Note<'_>],
        roles: &mut Roles<'_>,
    ) -> Self {
        let places = old.places_in(new);
        let mut matched: BTreeMap<usize, usize> = BTreeMap::new();
        for (place, (run, _)) in places.iter().zip(&old.messages) {
            if let Some(place) = place {
                matched.insert(*place, *run);
            }
        }
        let by_id: BTreeMap<&str, usize> = archive
            .runs
            .iter()
            .enumerate()
            .filter(|(_, run)| run.format == Format::PydanticAi)
            .filter_map(|(place, run)| Some((run.head.get_str("run_id")?, place)))
            .collect();
        let first_run = old.messages.first().map_or(0, |(run, _)| *run);
        let mut owners: Vec<usize> = Vec::with_capacity(notes.len());
        let kept = matched.last_key_value().map_or(0, |(last, _)| last + 1);
        for (place, note) in notes.iter().take(kept).enumerate() {
            let before = owners.last().copied().unwrap_or(first_run);
            let next = matched
                .range(place..)
                .next()
                .map_or(before, |(_, run)| *run);
            let own = note.run_id.as_deref().and_then(|id| by_id.get(id));
            let own = matched.get(&place).or(own).copied();
            owners.push(own.unwrap_or(before).clamp(before, next));
        }
        let last = owners.last().copied();
        let open = last.and_then(|run| archive.runs.get(run)).and_then(|run| {
            let of_last = notes
                .iter()
                .zip(&owners)
                .filter(|(_, owner)| Some(**owner) == last);
            Some(Open {
                who: known(run.agent_id.as_deref())?,
                run_id: run.head.get_str("run_id"),
                asks: of_last.map(|(note, _)| note).all(|note| !note.is_response),
            })
        });
        let tail = notes.get(kept..).unwrap_or_default();
        let mut cuts = cut(tail, open, roles);
        // What goes on with a run that the archive knows is no new run.
        let mut n_old = 0;
        for cut in &cuts {
            let before = owners.last().copied().unwrap_or(first_run);
            let named = cut.run_id.as_deref().and_then(|id| by_id.get(id)).copied();
            let owner = if cut.goes_on { last } else { named };
            let Some(owner) = owner.filter(|owner| *owner >= before) else {
                break;
            };
            owners.extend(std::iter::repeat_n(owner, cut.messages.len()));
            n_old += 1;
        }
        cuts.drain(..n_old);
        for cut in &mut cuts {
            cut.messages = cut.messages.start + kept..cut.messages.end + kept;
        }
        Self {
            owners,
            places,
            cuts,
        }
    }

    fn carry_out(
        self,
        archive: &mut Archive,
        old: &Old,
        new: &[&str],
        notes: &[Note<'_>],
        at: &str,
    ) {
        let mut known: Vec<Option<&Record>> = vec![None; new.len()];
        for (place, (_, record)) in self.places.iter().zip(&old.messages) {
            if let Some(slot) = place.and_then(|place| known.get_mut(place)) {
                *slot = Some(record);
            }
        }
        let mut records = fresh(new, &known).into_iter();
        if !self.places.is_empty() {
            for run in &mut archive.runs {
                if run.format == Format::PydanticAi {
                    run.records.clear();
                }
            }
            for (owner, record) in self.owners.iter().zip(records.by_ref()) {
                if let Some(run) = archive.runs.get_mut(*owner) {
                    run.records.push(record);
                }
            }
            supersede(archive, old, &self.places);
        }
        register(archive, &self.cuts, notes, at);
        for cut in self.cuts {
            let records = records.by_ref().take(cut.messages.len()).collect();
            let mut run = Run::new(Format::PydanticAi, Some(&cut.who.agent_id), records);
            run.head = head(cut.run_id);
            archive.runs.push(run);
        }
    }
}

/// The messages as records: those that are known, and the others out of one text of their own.
fn fresh(new: &[&str], known: &[Option<&Record>]) -> Vec<Record> {
    let unknown = new.iter().zip(known).filter(|(_, known)| known.is_none());
    let source: String = unknown.map(|(text, _)| *text).collect();
    let source = Arc::new(source);
    let mut at = 0;
    let records = new.iter().zip(known).map(|(text, known)| {
        known.cloned().unwrap_or_else(|| {
            let start = at;
            at += text.len();
            Record::checked(&source, start..at)
        })
    });
    records.collect()
}

/// Keeps what was replaced in the heads of the runs that said it.
fn supersede(archive: &mut Archive, old: &Old, places: &[Option<usize>]) {
    let mut gone: Vec<(usize, usize, Vec<Json>)> = Vec::new();
    for (at, (place, (run, record))) in places.iter().zip(&old.messages).enumerate() {
        if place.is_some() {
            continue;
        }
        match gone.last_mut() {
            Some((first, of, records)) if *first + records.len() == at && of == run => {
                records.push(record.json());
            }
            _ => gone.push((at, *run, vec![record.json()])),
        }
    }
    for (at, run, records) in gone {
        let Some(run) = archive.runs.get_mut(run) else {
            continue;
        };
        let entry = Object::new()
            .with("at", at as u64)
            .with("records", Json::Array(records));
        let known = run.head.get_mut("superseded").and_then(Json::as_array_mut);
        if let Some(known) = known {
            known.push(entry.into());
        } else {
            run.head
                .insert("superseded", Json::Array(vec![entry.into()]));
        }
    }
}

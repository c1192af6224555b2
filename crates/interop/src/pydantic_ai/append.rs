//! Appending to an archive: a longer history, or the messages that a run added.

mod old;

use self::old::{Meaning, Old};
use super::PydanticAiError;
use super::history::{head, own, register};
use super::note::{Note, notes};
use super::truncate::{Open, Roles, Who, truncate};
use crate::archive::{Archive, ArchivedRun, Format, SourceText};
use crate::convert::ReadOptions;
use std::collections::BTreeMap;
use std::sync::Arc;
use thread::{Json, Object};

/// Appends to an archive. `text` is either the whole history after another run, or only the
/// messages that the run added.
///
/// A run never adds messages that are already in the archive. So `text` is the whole history if any
/// of these is known:
/// - a `run_id` of the archive;
/// - a message with a timestamp;
/// - the first message;
/// - a user prompt at the same position and time, whatever the system prompts next to it;
/// - more than half of the archive's messages, each at its position.
///
/// The archive then holds exactly that history. Messages that it no longer has move to `superseded`
/// in the head of their run. If nothing is known, the messages are added.
///
/// Messages that the archive already ends with are not added again. If all messages have the
/// `run_id` of one run of the archive, they are the messages of that run:
/// - If they are a contiguous part of the run's known messages, nothing changes.
/// - If some of them are known, they replace the run's known messages.
/// - If none of them is known and the run is the last one, they are appended to it.
///
/// The cost is linear in `text` and in the archive, even for one new message, because every message
/// of the archive is compared. To add to a long archive repeatedly, collect the messages and append
/// them at once.
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
    let fallback = archive.runs.iter().rev();
    let fallback = fallback
        .filter(|run| run.format == Format::PydanticAi)
        .find_map(|run| known(run.agent_id.as_deref()));
    let mut roles = Roles::new(&options.attribution, fallback);
    let plan = match old.meaning_of(archive, &new, &notes) {
        Meaning::Nothing => return Ok(()),
        Meaning::Again(run) => {
            tell_again(archive, &old, run, &new);
            return Ok(());
        }
        Meaning::More(run) if run + 1 == archive.runs.len() => {
            if let Some(run) = archive.runs.get_mut(run) {
                run.records.extend(fresh(&new, &vec![None; new.len()]));
            }
            return Ok(());
        }
        Meaning::Whole => Plan::rewrite(archive, &old, &new, &notes, &mut roles),
        Meaning::Added | Meaning::More(_) => Plan::add(&notes, &mut roles),
    };
    let at = options.at.clone();
    plan.carry_out(archive, &old, &new, &notes, &at);
    if let Some(updated_at) = notes.iter().rev().find_map(own) {
        archive.root.insert("updated_at", updated_at);
    }
    Ok(())
}

/// Replaces the known messages of a run with the new list of them.
fn tell_again(archive: &mut Archive, old: &Old, run: usize, new: &[&str]) {
    let found = old.of_run(run).positions_in(new);
    let mut found = found.into_iter();
    let mut known: Vec<Option<&SourceText>> = vec![None; new.len()];
    let mut places = Vec::with_capacity(old.messages.len());
    for (owner, record) in &old.messages {
        if *owner != run {
            places.push(Some(0));
            continue;
        }
        let place = found.next().flatten();
        if let Some(slot) = place.and_then(|place| known.get_mut(place)) {
            *slot = Some(record);
        }
        places.push(place);
    }
    let records = fresh(new, &known);
    if let Some(run) = archive.runs.get_mut(run) {
        run.records = records;
    }
    supersede(archive, old, &places);
}

fn known(agent_id: Option<&str>) -> Option<Who> {
    Some(Who {
        agent_id: agent_id?.to_owned(),
        name: None,
    })
}

/// The changes that a new history makes to the archive's messages.
#[derive(Default)]
struct Plan {
    /// The run of each of the first messages.
    owners: Vec<usize>,
    /// The new position of each old message; `None` if it is gone.
    places: Vec<Option<usize>>,
    /// The new runs, formed by the messages after those with owners.
    cuts: Vec<super::truncate::Cut>,
}

impl Plan {
    fn add(notes: &[Note<'_>], roles: &mut Roles<'_>) -> Self {
        Self {
            cuts: truncate(notes, None, roles),
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
        let places = old.positions_in(new);
        let mut matched: BTreeMap<usize, usize> = BTreeMap::new();
        for (place, (run, _)) in places.iter().zip(&old.messages) {
            if let Some(place) = place {
                matched.insert(*place, *run);
            }
        }
        for (place, run) in old.alike(new, notes) {
            let before = matched.range(..=place).next_back();
            let next = matched.range(place..).next();
            let fits = before.is_none_or(|(at, of)| *at < place && *of <= run);
            if fits && next.is_none_or(|(_, of)| run <= *of) {
                matched.insert(place, run);
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
        let mut cuts = truncate(tail, open, roles);
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
        let mut known: Vec<Option<&SourceText>> = vec![None; new.len()];
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
            let mut run = ArchivedRun::new(Format::PydanticAi, Some(&cut.who.agent_id), records);
            run.head = head(cut.run_id);
            archive.runs.push(run);
        }
    }
}

/// The messages as records: known ones as they are, and the others from one new text.
fn fresh(new: &[&str], known: &[Option<&SourceText>]) -> Vec<SourceText> {
    let unknown = new.iter().zip(known).filter(|(_, known)| known.is_none());
    let source: String = unknown.map(|(text, _)| *text).collect();
    let source = Arc::new(source);
    let mut at = 0;
    let records = new.iter().zip(known).map(|(text, known)| {
        known.cloned().unwrap_or_else(|| {
            let start = at;
            at += text.len();
            SourceText::checked(&source, start..at)
        })
    });
    records.collect()
}

/// Moves replaced messages to `superseded` in the heads of their runs.
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

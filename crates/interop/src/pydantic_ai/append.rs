//! An archive that goes on: a history that has grown, or what a run added to it.

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

/// Goes on with an archive: `text` is the whole history after another run, or only what the run added.
///
/// The messages that a run added are never older ones, so it is the whole history where anything in
/// it is known: a run of the archive by its `run_id`, a message that has an instant, the first
/// message, what a user said when in the same place (whatever system prompts stand beside it), or
/// more than half of the messages in their places. The archive then gives exactly that history;
/// messages that it no longer has are kept in the `superseded` of their run's head. Where nothing is
/// known, the messages are added.
///
/// What the archive ends with already is not added again. Messages that all have the `run_id` of one
/// run of the archive are what that run added: those that are known of it in one piece, be it less
/// than all that is known, change nothing; told again, where any is known of it, they take the place
/// of what was known; else that run goes on with them, if it is the last.
///
/// Linear in `text` and in the archive, even where `text` is one new message: that nothing in it is
/// known can only be said once it was held against every message there is. Who adds to a long
/// archive again and again does better to collect what comes, and to append it at once.
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

/// Puts what a run is now said to have added in the place of what was known of it.
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

/// What becomes of the messages of a new history.
#[derive(Default)]
struct Plan {
    /// The run that each of the first ones belongs to.
    owners: Vec<usize>,
    /// Where each old message stands now.
    places: Vec<Option<usize>>,
    /// The runs that are new, by the messages after those with owners.
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

/// The messages as records: those that are known, and the others out of one text of their own.
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

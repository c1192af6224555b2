//! The sources of imported conversations, stored unchanged as sidecar objects.

use crate::threads::key_of;
use interop::archive::{Archive, ArchivedRun, Format, SourceText};
use interop::document::{ImportError, Imported, to_document, turn_bounds};
use interop::{Converted, Loss};
use runtime::objects::{NewObject, ObjectPage, sha256};
use runtime::{Filter, Runtime, RuntimeError, TenantId, ThreadRow, ViewShare};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use thread::{Json, Limits, Object, Thread};
use timeline::{Entry, ThreadId, Transcript};

/// The kind of the objects with the sources of whole threads; the id is that of the thread.
const KIND: &str = "source-archive";

/// The kind of the objects with the sources of messages that were appended to a thread; the id is that
/// of the first entry.
fn kind_of_appended(thread: &ThreadId) -> String {
    format!("{KIND}:{thread}")
}

/// The state of imported entries right after the import.
#[derive(Serialize, Deserialize)]
struct Import {
    /// The id of the first entry; without one, the entries begin with the thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<String>,
    /// Number of entries of the transcript.
    n_entries: usize,
    /// The SHA-256 of their turns, in hexadecimal.
    turns: String,
    /// The archive, if it is not the content of the object. Contents count as files of the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    archive: Option<Box<RawValue>>,
}

/// The source of messages that are to be appended to a thread.
pub(super) struct AppendedSource {
    /// The id of the first entry that the messages will be.
    first: String,
    json: String,
}

impl AppendedSource {
    /// The source of a conversation; none if it has no entries.
    pub(super) fn of(imported: &Imported, archive: &Archive) -> Result<Option<Self>, ImportError> {
        let alone = Imported {
            commands: imported.commands.clone(),
            ..Imported::default()
        };
        let transcript = alone.transcript("")?;
        let Some(first) = transcript.entries.first().map(entry_id) else {
            return Ok(None);
        };
        let first = first.to_owned();
        let import = Import {
            first: Some(first.clone()),
            n_entries: transcript.entries.len(),
            turns: fingerprint(&transcript),
            archive: Some(RawValue::from_string(archive.encode())?),
        };
        let json = serde_json::to_string(&import)?;
        Ok(Some(Self { first, json }))
    }

    /// Stores the source. It is deleted with the thread.
    pub(super) async fn keep(
        &self,
        runtime: &Runtime,
        row: &ThreadRow,
    ) -> Result<(), RuntimeError> {
        let object = NewObject {
            kind: kind_of_appended(&row.thread.id),
            id: self.first.clone(),
            created_at: row.thread.created_at,
            json: self.json.clone(),
            content: None,
            thread: Some(row.thread.id.clone()),
            is_limited: true,
        };
        Ok(runtime.objects().put(&row.tenant, object).await?)
    }

    /// Deletes the source of messages that were not appended.
    pub(super) async fn delete(
        &self,
        runtime: &Runtime,
        row: &ThreadRow,
    ) -> Result<(), RuntimeError> {
        let (objects, kind) = (runtime.objects(), kind_of_appended(&row.thread.id));
        objects
            .delete(&row.tenant, &kind, &self.first, None)
            .await?;
        Ok(())
    }
}

/// The sources of a thread's imported entries, as they are stored.
#[derive(Default)]
pub(super) struct Sources(Vec<Source>);

struct Source {
    import: Import,
    /// The archive, as text.
    archive: Arc<[u8]>,
}

impl Sources {
    /// Stores the source of a new thread; it is deleted with the thread.
    #[expect(clippy::disallowed_methods, reason = "the thread was made just now")]
    pub(super) async fn keep(
        runtime: &Runtime,
        row: &ThreadRow,
        archive: Archive,
    ) -> Result<(), RuntimeError> {
        let transcript = runtime
            .transcript(&row.tenant, key_of(row), Filter::Facts)
            .await?;
        let import = Import {
            first: None,
            n_entries: transcript.entries.len(),
            turns: fingerprint(&transcript),
            archive: None,
        };
        let object = NewObject {
            kind: KIND.to_owned(),
            id: row.thread.id.to_string(),
            created_at: row.thread.created_at,
            json: serde_json::to_string(&import)?,
            content: Some(archive.encode().into_bytes()),
            thread: Some(row.thread.id.clone()),
            is_limited: false,
        };
        Ok(runtime.objects().put(&row.tenant, object).await?)
    }

    /// The stored sources of a thread whose first entry the transcript has. Holds their memory for the
    /// request.
    pub(super) async fn read(
        runtime: &Runtime,
        tenant: &TenantId,
        transcript: &Transcript,
    ) -> Result<Self, RuntimeError> {
        let Some(thread) = &transcript.thread else {
            return Ok(Self::default());
        };
        let entries: BTreeSet<&str> = transcript.entries.iter().map(entry_id).collect();
        let (objects, mut found, mut n_bytes) = (runtime.objects(), Vec::new(), 0);
        let mut hold = |bytes: usize| {
            n_bytes += bytes;
            ViewShare::current().map_or(Ok(()), |share| share.try_hold(n_bytes))
        };
        if let Some(object) = objects.get(tenant, KIND, thread.id.as_str()).await?
            && let Ok(import) = serde_json::from_str(&object.json)
        {
            hold(usize::try_from(object.bytes.unwrap_or_default()).unwrap_or(usize::MAX))?;
            let content = objects.content(tenant, KIND, &object.id).await?;
            found.extend(content.map(|archive| Source { import, archive }));
        }
        let kind = kind_of_appended(&thread.id);
        let mut after = None;
        loop {
            let page = ObjectPage {
                after: after.take(),
                limit: 1,
                ..ObjectPage::default()
            };
            let Some(object) = objects.list(tenant, &kind, page).await?.pop() else {
                return Ok(Self(found));
            };
            if entries.contains(object.id.as_str())
                && let Ok(mut import) = serde_json::from_str::<Import>(&object.json)
                && let Some(archive) = import.archive.take()
            {
                hold(object.json.len())?;
                let archive = archive.get().as_bytes().into();
                found.push(Source { import, archive });
            }
            after = Some(object.id);
        }
    }

    /// The archive of a thread that has the sources in place of their entries. None if it has no source,
    /// or if the entries of each have changed since the import.
    pub(super) fn within(
        self,
        transcript: &Transcript,
        document: &Converted<Thread>,
    ) -> Option<Converted<Archive>> {
        if self.0.is_empty() {
            return None;
        }
        let (bounds, n_entries) = (turn_bounds(transcript), transcript.entries.len());
        let turns = turns_of(&document.value);
        // The rules for writers may have removed a turn, and then no piece can be told.
        if bounds.last() != Some(&turns.len()) {
            return None;
        }
        let placed = self.placed(transcript);
        let first = placed.first()?;
        let mut whole = Archive::from_thread(&document.value);
        whole.runs.clear();
        if first.is_whole {
            whole.root = first.archive.root.clone();
        }
        let (mut at, mut gaps) = (0, Vec::new());
        for Placed { range, archive, .. } in placed {
            if range.start < at {
                continue;
            }
            add_agents(&mut whole, &archive);
            gaps.push((at..range.start, Some(archive)));
            at = range.end;
        }
        gaps.push((at..n_entries, None));
        let turns_in = |entries: &Range<usize>| {
            let bound = |entry: usize| bounds.get(entry).copied().unwrap_or_default();
            bound(entries.start)..bound(entries.end)
        };
        let mut is_grown = gaps.len() > 2;
        let mut losses = Vec::new();
        for (gap, archive) in gaps {
            let between = turns.get(turns_in(&gap)).unwrap_or_default();
            if !between.is_empty() {
                let is_first = whole.runs.iter().all(|run| run.format != Format::Thread);
                whole.runs.push(run_of(&document.value, between, is_first));
            }
            is_grown |= !gap.is_empty();
            let own = document.losses.iter();
            let own = own.filter(|loss| is_within(loss, &gap, &turns_in(&gap)));
            losses.extend(own.cloned());
            whole
                .runs
                .extend(archive.into_iter().flat_map(|it| it.runs));
        }
        let updated_at = document.value.root().get("updated_at");
        if let Some(updated_at) = updated_at.filter(|_| is_grown) {
            whole.root.insert("updated_at", updated_at.clone());
        }
        let value = whole;
        Some(Converted { value, losses })
    }

    /// The sources whose entries are as they were, in the order of the thread.
    fn placed(self, transcript: &Transcript) -> Vec<Placed> {
        let numbered = transcript.entries.iter().enumerate();
        let beginnings: BTreeMap<&str, usize> = numbered
            .map(|(place, entry)| (entry_id(entry), place))
            .collect();
        let mut piece = transcript.clone();
        let mut placed: Vec<Placed> = Vec::new();
        for Source { import, archive } in self.0 {
            let begin = match &import.first {
                None => Some(0),
                Some(first) => beginnings.get(first.as_str()).copied(),
            };
            let range = begin.and_then(|begin| Some(begin..begin.checked_add(import.n_entries)?));
            let Some(range) = range else { continue };
            let Some(entries) = transcript.entries.get(range.clone()) else {
                continue;
            };
            piece.entries = entries.to_vec();
            if fingerprint(&piece) != import.turns {
                continue;
            }
            if let Some(archive) = decoded(&archive) {
                let is_whole = import.first.is_none();
                placed.push(Placed {
                    range,
                    archive,
                    is_whole,
                });
            }
        }
        placed.sort_by_key(|it| it.range.start);
        placed
    }
}

/// A source, and its entries in the transcript.
struct Placed {
    range: Range<usize>,
    archive: Archive,
    /// Whether the thread began with it.
    is_whole: bool,
}

/// The archive of a stored text; none if this program can't read it.
fn decoded(text: &[u8]) -> Option<Archive> {
    let limits = Limits {
        max_depth: Limits::DEEPEST,
        max_bytes: usize::MAX,
        max_nodes: usize::MAX,
    };
    Archive::decode(str::from_utf8(text).ok()?, &limits).ok()
}

/// Adds the agents of another archive that an archive does not have.
fn add_agents(whole: &mut Archive, other: &Archive) {
    let Some(others) = other.root.get("agents").and_then(Json::as_object) else {
        return;
    };
    if whole.root.get("agents").and_then(Json::as_object).is_none() {
        whole.root.insert("agents", Object::new());
    }
    let Some(agents) = whole.root.get_mut("agents").and_then(Json::as_object_mut) else {
        return;
    };
    for (id, agent) in others {
        if agents.get(id).is_none() {
            agents.insert(id, agent.clone());
        }
    }
}

/// Whether a loss is of one of these entries or turns, or of the thread if there are any.
fn is_within(loss: &Loss, entries: &Range<usize>, turns: &Range<usize>) -> bool {
    let place = |prefix: &str| {
        let rest = loss.pointer.strip_prefix(prefix)?;
        rest.split('/').next()?.parse::<usize>().ok()
    };
    match (place("/entries/"), place("/turns/")) {
        (Some(entry), _) => entries.contains(&entry),
        (None, Some(turn)) => turns.contains(&turn),
        (None, None) => !entries.is_empty(),
    }
}

fn entry_id(entry: &Entry) -> &str {
    match entry {
        Entry::Item(item) => item.id.as_str(),
        Entry::Reaction(reaction) => reaction.execution.id.as_str(),
    }
}

/// Makes a run of an archive from turns of a document. Only one run has the title and the metadata.
fn run_of(document: &Thread, turns: &[Json], is_first: bool) -> ArchivedRun {
    let records = turns.iter().map(SourceText::from).collect();
    let mut run = ArchivedRun::new(Format::Thread, None, records);
    let mut root = document.root().clone();
    root.insert("turns", Json::Array(Vec::new()));
    if !is_first {
        root.retain(|key, _| !matches!(key, "title" | "metadata"));
    }
    run.head.insert("root", root);
    run
}

fn turns_of(document: &Thread) -> &[Json] {
    let turns = document.root().get("turns").and_then(Json::as_array);
    turns.unwrap_or_default()
}

/// The SHA-256 of a transcript's turns, in hexadecimal.
fn fingerprint(transcript: &Transcript) -> String {
    let Converted { value, .. } = to_document(transcript);
    let text: String = turns_of(&value).iter().map(Json::to_text).collect();
    crate::hex::hex(&sha256(text.as_bytes()))
}

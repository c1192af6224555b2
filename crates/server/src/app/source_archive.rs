//! The sources of imported conversations, stored unchanged as sidecar objects.

use crate::threads::key_of;
use interop::archive::{Archive, ArchivedRun, Format, SourceText};
use interop::document::{Imported, to_document, to_strict_document};
use interop::{Converted, Loss};
use runtime::objects::{NewObject, ObjectPage, SidecarObject, sha256};
use runtime::{Filter, Runtime, RuntimeError, TenantId, ThreadRow};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use thread::{Json, Limits, Thread};
use timeline::{Entry, Rejected, ThreadId, Transcript};

/// The kind of the objects with the sources of whole threads; the id is that of the thread.
const KIND: &str = "source-archive";
/// Number of objects read at once.
const PAGE: usize = 100;

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
}

/// Messages that are to be appended to a thread, as the thread will have them.
pub(super) struct Appended {
    import: Import,
    first: String,
}

impl Appended {
    /// The entries of a conversation; none if it has no entries.
    pub(super) fn of(imported: &Imported) -> Result<Option<Self>, Rejected> {
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
        };
        Ok(Some(Self { import, first }))
    }

    /// Stores the source of the messages; it is deleted with the thread.
    pub(super) async fn keep(
        self,
        runtime: &Runtime,
        row: &ThreadRow,
        archive: Archive,
    ) -> Result<(), RuntimeError> {
        let id = (kind_of_appended(&row.thread.id), self.first);
        put(runtime, row, id, &self.import, archive).await
    }
}

/// The sources of a thread's imported entries.
#[derive(Default)]
pub(super) struct Sources(Vec<Source>);

struct Source {
    archive: Archive,
    import: Import,
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
        };
        let id = (KIND.to_owned(), row.thread.id.to_string());
        put(runtime, row, id, &import, archive).await
    }

    /// The stored sources of a thread.
    pub(super) async fn read(
        runtime: &Runtime,
        tenant: &TenantId,
        transcript: &Transcript,
    ) -> Result<Self, RuntimeError> {
        let Some(thread) = &transcript.thread else {
            return Ok(Self::default());
        };
        let (objects, mut found) = (runtime.objects(), Vec::new());
        if let Some(object) = objects.get(tenant, KIND, thread.id.as_str()).await? {
            found.extend(source(runtime, tenant, KIND, object).await?);
        }
        let kind = kind_of_appended(&thread.id);
        let mut after = None;
        loop {
            let page = ObjectPage {
                after: after.take(),
                limit: PAGE,
                ..ObjectPage::default()
            };
            let page = objects.list(tenant, &kind, page).await?;
            let is_last = page.len() < PAGE;
            after = page.last().map(|last| last.id.clone());
            for object in page {
                found.extend(source(runtime, tenant, &kind, object).await?);
            }
            if is_last {
                return Ok(Self(found));
            }
        }
    }

    /// The archive of a thread that has the sources in place of their entries. None if it has no source,
    /// or if the entries of each have changed since the import.
    pub(super) fn within(
        self,
        transcript: &Transcript,
        document: &Thread,
    ) -> Option<Converted<Archive>> {
        let mut pieces = Pieces::of(transcript);
        let mut placed = Vec::new();
        for Source { archive, import } in self.0 {
            let begin = match &import.first {
                None => Some(0),
                Some(first) => pieces.place(first),
            };
            let range = begin.map(|begin| begin..begin + import.n_entries);
            let range = range.filter(|range| range.end <= transcript.entries.len());
            if let Some(range) = range
                && fingerprint(pieces.piece(range.clone())) == import.turns
            {
                placed.push((range, archive));
            }
        }
        placed.sort_by_key(|(range, _)| range.start);
        let mut whole = Archive::from_thread(document);
        whole.runs.clear();
        if let Some((_, first)) = placed.first().filter(|(range, _)| range.start == 0) {
            whole.root = first.root.clone();
        }
        let (mut at, mut losses, n_entries) = (0, Vec::new(), transcript.entries.len());
        if placed.is_empty() {
            return None;
        }
        let is_grown = placed.len() > 1 || placed.iter().all(|(range, _)| range.len() < n_entries);
        for (range, archive) in placed {
            if range.start < at {
                continue;
            }
            pieces.append(at..range.start, &mut whole, &mut losses);
            at = range.end;
            whole.runs.extend(archive.runs);
        }
        pieces.append(at..n_entries, &mut whole, &mut losses);
        let updated_at = document.root().get("updated_at").filter(|_| is_grown);
        if let Some(updated_at) = updated_at {
            whole.root.insert("updated_at", updated_at.clone());
        }
        let value = whole;
        Some(Converted { value, losses })
    }
}

/// A transcript, of which pieces are looked at.
struct Pieces<'a> {
    entries: &'a [Entry],
    /// The transcript with the entries of the last piece.
    piece: Transcript,
}

impl<'a> Pieces<'a> {
    fn of(transcript: &'a Transcript) -> Self {
        let mut piece = transcript.clone();
        piece.entries.clear();
        Self {
            entries: &transcript.entries,
            piece,
        }
    }

    /// The place of the entry with an id.
    fn place(&self, id: &str) -> Option<usize> {
        self.entries.iter().position(|entry| entry_id(entry) == id)
    }

    fn piece(&mut self, range: Range<usize>) -> &Transcript {
        let entries = self.entries.get(range).unwrap_or_default();
        self.piece.entries = entries.to_vec();
        &self.piece
    }

    /// Appends entries without a source to an archive, as a run of turns, and notes what is lost.
    fn append(&mut self, range: Range<usize>, archive: &mut Archive, losses: &mut Vec<Loss>) {
        if range.is_empty() {
            return;
        }
        let start = range.start;
        let Converted { value, losses: own } = to_strict_document(self.piece(range));
        if !turns_of(&value).is_empty() {
            archive.runs.push(run_of(&value, turns_of(&value)));
        }
        losses.extend(own.into_iter().map(|loss| moved(loss, start)));
    }
}

/// A loss of a piece, with the pointer that it has in the whole transcript.
fn moved(mut loss: Loss, start: usize) -> Loss {
    if let Some(rest) = loss.pointer.strip_prefix("/entries/") {
        let (place, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if let Ok(place) = place.parse::<usize>() {
            loss.pointer = format!("/entries/{}{rest}", start + place);
        }
    }
    loss
}

async fn put(
    runtime: &Runtime,
    row: &ThreadRow,
    (kind, id): (String, String),
    import: &Import,
    archive: Archive,
) -> Result<(), RuntimeError> {
    let object = NewObject {
        kind,
        id,
        created_at: row.thread.created_at,
        json: serde_json::to_string(import)?,
        content: Some(archive.encode().into_bytes()),
        thread: Some(row.thread.id.clone()),
    };
    Ok(runtime.objects().put(&row.tenant, object).await?)
}

/// The source that an object has; none if this program can't read it.
async fn source(
    runtime: &Runtime,
    tenant: &TenantId,
    kind: &str,
    object: SidecarObject,
) -> Result<Option<Source>, RuntimeError> {
    let content = runtime.objects().content(tenant, kind, &object.id).await?;
    let text = content.and_then(|content| String::from_utf8(content.to_vec()).ok());
    let limits = Limits {
        max_depth: Limits::DEEPEST,
        max_bytes: usize::MAX,
        max_nodes: usize::MAX,
    };
    let archive = text.and_then(|text| Archive::decode(text, &limits).ok());
    let import = serde_json::from_str(&object.json).ok();
    Ok(archive
        .zip(import)
        .map(|(archive, import)| Source { archive, import }))
}

fn entry_id(entry: &Entry) -> &str {
    match entry {
        Entry::Item(item) => item.id.as_str(),
        Entry::Reaction(reaction) => reaction.execution.id.as_str(),
    }
}

/// Makes a run of an archive from turns of a document.
fn run_of(document: &Thread, turns: &[Json]) -> ArchivedRun {
    let records = turns.iter().map(SourceText::from).collect();
    let mut run = ArchivedRun::new(Format::Thread, None, records);
    let mut root = document.root().clone();
    root.insert("turns", Json::Array(Vec::new()));
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

//! The source of an imported thread, stored unchanged as a sidecar object.

use interop::archive::{Archive, ArchivedRun, Format, SourceText};
use interop::document::to_document;
use interop::{Converted, Loss};
use runtime::objects::{NewObject, sha256};
use runtime::{Filter, Runtime, RuntimeError, TenantId, ThreadRow};
use serde::{Deserialize, Serialize};
use thread::{Json, Limits, Thread};
use timeline::Transcript;

/// The kind of the sidecar objects with archives.
const KIND: &str = "source-archive";

/// The source of an imported thread.
pub(super) struct SourceArchive {
    archive: Archive,
    import: Import,
}

/// The state of the thread right after the import.
#[derive(Serialize, Deserialize)]
struct Import {
    /// Number of entries of its transcript.
    n_entries: usize,
    /// Number of turns of its document.
    n_turns: usize,
    /// The SHA-256 of these turns, in hexadecimal.
    turns: String,
}

impl SourceArchive {
    /// Stores the source of a new thread; it is deleted with the thread.
    #[expect(clippy::disallowed_methods, reason = "the thread was made just now")]
    pub(super) async fn keep(
        runtime: &Runtime,
        row: &ThreadRow,
        archive: Archive,
    ) -> Result<(), RuntimeError> {
        let key = row.thread.key.as_deref().unwrap_or(row.thread.id.as_str());
        let transcript = runtime.transcript(&row.tenant, key, Filter::Facts).await?;
        let document = to_document(&transcript).value;
        let import = Import {
            n_entries: transcript.entries.len(),
            n_turns: turns_of(&document).len(),
            turns: fingerprint(turns_of(&document)),
        };
        let object = NewObject {
            kind: KIND.to_owned(),
            id: row.thread.id.to_string(),
            created_at: row.thread.created_at,
            json: serde_json::json!(import).to_string(),
            content: Some(archive.encode().into_bytes()),
            thread: Some(row.thread.id.clone()),
        };
        Ok(runtime.objects().put(&row.tenant, object).await?)
    }

    /// The stored source of a thread; none if it was not imported.
    pub(super) async fn read(
        runtime: &Runtime,
        tenant: &TenantId,
        transcript: &Transcript,
    ) -> Result<Option<Self>, RuntimeError> {
        let Some(thread) = &transcript.thread else {
            return Ok(None);
        };
        let (objects, id) = (runtime.objects(), thread.id.as_str());
        let Some(object) = objects.get(tenant, KIND, id).await? else {
            return Ok(None);
        };
        let content = objects.content(tenant, KIND, id).await?;
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
            .map(|(archive, import)| Self { archive, import }))
    }

    /// The archive with the turns of `document` that came after the import. None if the imported turns
    /// have changed since, because then the archive does not match the thread.
    pub(super) fn grown(
        self,
        transcript: &Transcript,
        document: &Thread,
    ) -> Option<Converted<Archive>> {
        let Self {
            mut archive,
            import,
        } = self;
        let mut imported = transcript.clone();
        imported.entries.truncate(import.n_entries);
        let Converted { value, .. } = to_document(&imported);
        if fingerprint(turns_of(&value)) != import.turns {
            return None;
        }
        let later = turns_of(document).get(import.n_turns..).unwrap_or_default();
        let mut losses = Vec::new();
        if !later.is_empty() {
            archive.runs.push(run_of(document, later));
            let updated_at = document.root().get("updated_at").cloned();
            if let Some(updated_at) = updated_at {
                archive.root.insert("updated_at", updated_at);
            }
            losses.extend(losses_after(transcript, import.n_entries));
        }
        let value = archive;
        Some(Converted { value, losses })
    }
}

/// The conversion losses of the entries after an import.
fn losses_after(transcript: &Transcript, n_entries: usize) -> Vec<Loss> {
    let mut losses = to_document(transcript).losses;
    losses.retain(|loss| {
        let place = loss.pointer.strip_prefix("/entries/");
        place.is_none_or(|place| place.parse().is_ok_and(|place: usize| place >= n_entries))
    });
    losses
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

fn fingerprint(turns: &[Json]) -> String {
    let text: String = turns.iter().map(Json::to_text).collect();
    crate::hex::hex(&sha256(text.as_bytes()))
}

//! Import and export of threads.

use super::App;
use super::source_archive::{AppendedSource, Sources};
use crate::error::ExchangeError;
use crate::threads::key_of;
use interop::ag_ui::was_cut_off;
use interop::archive::{Archive, Format};
use interop::convert::{self, AttributedFields, ReadOptions, SourceForm, WriteOptions};
use interop::document::{self, Imported, UNNAMED, agent_id};
use interop::{Converted, Loss};
use runtime::{Clock, Filter, Import, Runtime, RuntimeError, SystemClock, TenantId, ThreadRow};
use std::collections::BTreeSet;
use thread::canonical::{CanonicalError, ContentHash, InexactNumbers, inexact_numbers};
use thread::{CanonicalOptions, Json, Limits, Thread};
use timeline::{Seq, Transcript};
use tokio::task::spawn_blocking;

/// The format of an imported conversation, and the agents that ran in it.
#[derive(Clone, Debug)]
pub struct ImportSource {
    /// The format of the text.
    pub form: SourceForm,
    /// The agents of the runs, where the text does not name them.
    pub attribution: Vec<AttributedFields>,
}

/// An exported thread.
#[derive(Debug)]
pub struct Exported {
    /// The text in the requested format.
    pub text: String,
    /// The data that the format can't hold.
    pub losses: Vec<Loss>,
    /// The hash of its canonical form, if it is a ThreadProtocol document.
    pub hash: Option<Result<ContentHash, CanonicalError>>,
    /// Numbers that make the hash inexact, if there are any.
    pub inexact: Option<InexactNumbers>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "commands name threads themselves"
)]
impl App {
    /// Exports a thread in a format, and lists what that format can't hold.
    ///
    /// A ThreadProtocol document (0.0.4) follows the rules for writers. The other formats consist of the
    /// imported bytes, unchanged, and the newer messages.
    pub async fn export(
        &self,
        tenant: &TenantId,
        key: &str,
        form: SourceForm,
    ) -> Result<Exported, ExchangeError> {
        let runtime = self.runtime(tenant);
        let transcript = self.whole(tenant, key).await?;
        let imported = match form {
            SourceForm::Of(Format::Thread) => Sources::default(),
            SourceForm::Archive | SourceForm::Of(_) => {
                Sources::read(runtime, tenant, &transcript).await?
            }
        };
        Ok(spawn_blocking(move || written(form, &transcript, imported)).await?)
    }

    /// The whole thread, with the text of answers that were cut off.
    pub(super) async fn whole(
        &self,
        tenant: &TenantId,
        key: &str,
    ) -> Result<Transcript, RuntimeError> {
        let runtime = self.runtime(tenant);
        let transcript = runtime.transcript(tenant, key, Filter::Facts).await?;
        if was_cut_off(&transcript) {
            return runtime.transcript(tenant, key, Filter::All).await;
        }
        Ok(transcript)
    }

    /// Imports a file's conversation as a new thread, in one transaction, and lists the conversion
    /// losses. For operators: speakers are not checked.
    pub async fn import(
        &self,
        tenant: &TenantId,
        key: Option<String>,
        source: ImportSource,
        text: &str,
    ) -> Result<(ThreadRow, Vec<Loss>), ExchangeError> {
        let judge = |_: &Imported, _: &str| Ok(());
        self.import_judged(tenant, key, source, text, judge).await
    }

    /// Imports a conversation for a client. `judge` validates it, with the text, before anything is
    /// written.
    pub(crate) async fn import_judged(
        &self,
        tenant: &TenantId,
        key: Option<String>,
        source: ImportSource,
        text: &str,
        judge: impl FnOnce(&Imported, &str) -> Result<(), RuntimeError> + Send + 'static,
    ) -> Result<(ThreadRow, Vec<Loss>), ExchangeError> {
        let (text, runtime) = (text.to_owned(), self.runtime(tenant).clone());
        let local: BTreeSet<String> = self.config().agents.keys().map(|it| agent_id(it)).collect();
        let read = move || {
            let taken = ReadRequest::read(&source, &text, &local, &runtime)?;
            judge(&taken.imported, &text)?;
            Ok::<_, ExchangeError>(taken)
        };
        let ReadRequest {
            imported,
            archive,
            losses,
        } = spawn_blocking(read).await??;
        let import = Import {
            fork: None,
            title: imported.title,
            metadata: imported.metadata,
            created_at: imported.created_at,
            commands: imported.commands,
        };
        let row = self.runtime(tenant).import(tenant, key, import).await?;
        if let Some(archive) = archive {
            Sources::keep(self.runtime(tenant), &row, archive).await?;
        }
        Ok((row, losses))
    }

    /// Appends a conversation to an existing thread, in one transaction, and lists the conversion losses.
    /// `judge` validates it, with the text, before anything is written, and may change its messages. With
    /// `tail`, only if that is the thread's last event.
    pub(crate) async fn append(
        &self,
        row: &ThreadRow,
        tail: Option<Seq>,
        source: ImportSource,
        text: &str,
        judge: impl FnOnce(&mut Imported, &str) -> Result<(), RuntimeError> + Send + 'static,
    ) -> Result<Vec<Loss>, ExchangeError> {
        let (text, runtime) = (text.to_owned(), self.runtime(&row.tenant).clone());
        let local: BTreeSet<String> = self.config().agents.keys().map(|it| agent_id(it)).collect();
        let now = SystemClock.now();
        let last = row.thread.updated_at.unwrap_or(row.thread.created_at);
        let last = last.min(now);
        let read = move || {
            let mut read = ReadRequest::read(&source, &text, &local, &runtime)?;
            judge(&mut read.imported, &text)?;
            // The log's times don't run backwards.
            for (at, _) in &mut read.imported.commands {
                *at = (*at).clamp(last, now);
            }
            let source = match &read.archive {
                Some(archive) => AppendedSource::of(&read.imported, archive)?,
                None => None,
            };
            Ok::<_, ExchangeError>((read, source))
        };
        let (read, source) = spawn_blocking(read).await??;
        let (runtime, row) = (self.runtime(&row.tenant).clone(), row.clone());
        let own = runtime.clone();
        // It goes on even if the client disconnects. The source is stored first, because the tenant may have no
        // room for it. A source without its entries has no effect.
        let append = async move {
            if let Some(source) = &source {
                source.keep(&runtime, &row).await?;
            }
            let (key, commands) = (key_of(&row), read.imported.commands);
            let appended = runtime.append_past(&row.tenant, key, commands, tail).await;
            if let (Err(_), Some(source)) = (&appended, &source) {
                source.delete(&runtime, &row).await?;
            }
            appended?;
            Ok::<_, ExchangeError>(read.losses)
        };
        own.run_to_completion(append).await
    }
}

/// A conversation that was read and is ready to import.
struct ReadRequest {
    imported: Imported,
    /// The archive to store with the thread; none if the thread alone restores the source.
    archive: Option<Archive>,
    losses: Vec<Loss>,
}

impl ReadRequest {
    /// Reads a text. `local` are the ids of the agents of this server.
    fn read(
        source: &ImportSource,
        text: &str,
        local: &BTreeSet<String>,
        runtime: &Runtime,
    ) -> Result<Self, ExchangeError> {
        if source.form == SourceForm::Of(Format::Thread) {
            let document = Thread::decode(text)?;
            let Converted { value, losses } =
                document::from_document(&document, &mut || runtime.mint())?;
            let archive = (!losses.is_empty()).then(|| Archive::from_thread(&document));
            return Ok(Self {
                imported: value,
                archive,
                losses,
            });
        }
        let options = ReadOptions {
            limits: Limits::default(),
            thread_id: Some(runtime.mint()),
            attribution: source.attribution.clone(),
            at: SystemClock.now().to_string(),
            ..ReadOptions::default()
        };
        let read = convert::read(source.form, text, &options)?;
        let (archive, mut losses) = (read.value, read.losses);
        let Converted {
            value: mut document,
            losses: of_document,
        } = archive.to_thread();
        let mut more = unattributed(&archive, source);
        more.extend(of_document);
        losses.extend(convert::in_source(source.form, &archive, more));
        losses.extend(without_foreign_models(&mut document, local));
        let imported = document::from_document(&document, &mut || runtime.mint())?;
        losses.extend(imported.losses);
        Ok(Self {
            imported: imported.value,
            archive: Some(archive),
            losses,
        })
    }
}

/// The losses for runs without an agent's name.
fn unattributed(archive: &Archive, source: &ImportSource) -> Vec<Loss> {
    let unnamed = agent_id(UNNAMED);
    if source.attribution.iter().any(|who| who.agent == UNNAMED) {
        return Vec::new();
    }
    let runs = archive.runs.iter().enumerate().filter(|(_, run)| {
        let agent = run.agent_id.as_deref();
        run.format != Format::Thread && agent.is_none_or(|agent| agent == unnamed)
    });
    let runs = runs.map(|(place, _)| Loss {
        pointer: format!("/runs/{place}/records/0"),
        what: format!("the source names no agent, so the run is attributed to {UNNAMED:?}"),
    });
    runs.collect()
}

/// Removes the models of imported runs from this server's own agents, which have models of their own.
/// The messages still name the model that wrote them.
fn without_foreign_models(document: &mut Thread, local: &BTreeSet<String>) -> Vec<Loss> {
    let agents = document.root_mut().get_mut("agents");
    let Some(agents) = agents.and_then(Json::as_object_mut) else {
        return Vec::new();
    };
    let mut losses = Vec::new();
    for id in local {
        let config = agents.get_mut(id).and_then(Json::as_object_mut);
        let Some(config) = config else { continue };
        let name = config.get_str("agent_name").unwrap_or(id).to_owned();
        if let Some(model) = config.remove("model_name") {
            let model = model.to_text();
            let what =
                format!("that the agent {name:?} ran with the model {model}: here it has its own");
            let pointer = String::new();
            losses.push(Loss { pointer, what });
        }
        config.remove("provider_name");
    }
    losses
}

/// The thread in a form.
fn written(form: SourceForm, transcript: &Transcript, imported: Sources) -> Exported {
    let document = document::to_strict_document(transcript);
    if form == SourceForm::Of(Format::Thread) {
        let hash = thread::hash(&document.value, CanonicalOptions::default());
        return Exported {
            text: document.value.encode(),
            losses: document.losses,
            hash: Some(hash),
            inexact: inexact_numbers(&document.value),
        };
    }
    let (archive, mut losses) = match imported.within(transcript, &document) {
        Some(whole) => (whole.value, whole.losses),
        None => (Archive::from_thread(&document.value), document.losses),
    };
    let written = convert::write(form, &archive, &WriteOptions::default());
    losses.extend(written.losses);
    Exported {
        text: written.value,
        losses,
        hash: None,
        inexact: None,
    }
}

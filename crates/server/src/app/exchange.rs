//! Threads that come from elsewhere and go elsewhere.

use super::App;
use interop::ag_ui::was_cut_off;
use interop::convert::{Attribution, ReadOptions};
use interop::document::{self, ImportError, Imported};
use interop::pydantic_ai::{self, PydanticAiError};
use interop::{Converted, Loss};
use runtime::{Clock, Filter, Import, Runtime, RuntimeError, SystemClock, TenantId, ThreadRow};
use thread::{DecodeError, Thread};
use tokio::task::{JoinError, spawn_blocking};

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A ThreadProtocol document.
    Thread,
    /// The message history of Pydantic AI.
    PydanticAi,
}

/// Why a thread could not be taken in or given out.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The runtime refused or failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The text is no JSON, or no document.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The JSON is no history of Pydantic AI.
    #[error(transparent)]
    PydanticAi(#[from] PydanticAiError),
    /// The document can't become a thread.
    #[error("the document can't become a thread")]
    Import(#[from] ImportError),
    /// The conversion broke off.
    #[error("the conversion broke off")]
    Broken(#[from] JoinError),
}

impl App {
    /// The thread as a ThreadProtocol document (0.0.4) that keeps the rules for writing, with what such a
    /// document has no place for.
    pub async fn export(
        &self,
        tenant: &TenantId,
        key: &str,
    ) -> Result<Converted<Thread>, ExchangeError> {
        let runtime = self.runtime();
        let mut transcript = runtime.transcript(tenant, key, Filter::Facts).await?;
        if was_cut_off(&transcript) {
            transcript = runtime.transcript(tenant, key, Filter::All).await?;
        }
        Ok(spawn_blocking(move || document::to_strict_document(&transcript)).await?)
    }

    /// Writes a file's conversation into a new thread, in one transaction; says what could not be
    /// carried. For operators: nothing is asked of who speaks in it.
    pub async fn import(
        &self,
        tenant: &TenantId,
        key: Option<String>,
        format: Format,
        text: &str,
    ) -> Result<(ThreadRow, Vec<Loss>), ExchangeError> {
        let judge = |_: &Imported, _: &str| Ok(());
        self.import_judged(tenant, key, format, text, judge).await
    }

    /// The same for a client, whose import is judged before anything is written; `judge` also gets the text.
    pub(crate) async fn import_judged(
        &self,
        tenant: &TenantId,
        key: Option<String>,
        format: Format,
        text: &str,
        judge: impl FnOnce(&Imported, &str) -> Result<(), RuntimeError> + Send + 'static,
    ) -> Result<(ThreadRow, Vec<Loss>), ExchangeError> {
        let (text, runtime) = (text.to_owned(), self.runtime().clone());
        let agent = self.config().default_agent.clone();
        let read = move || {
            let read = match format {
                Format::Thread => from_document(&Thread::decode(&text)?, Vec::new(), &runtime),
                Format::PydanticAi => from_pydantic_ai(&text, &agent, &runtime),
            }?;
            judge(&read.value, &text)?;
            Ok::<_, ExchangeError>(read)
        };
        let Converted {
            value:
                Imported {
                    title,
                    metadata,
                    created_at,
                    commands,
                },
            losses,
        } = spawn_blocking(read).await??;
        let import = Import {
            fork: None,
            title,
            metadata,
            created_at,
            commands,
        };
        let row = self.runtime().import(tenant, key, import).await?;
        Ok((row, losses))
    }
}

fn from_document(
    document: &Thread,
    mut losses: Vec<Loss>,
    runtime: &Runtime,
) -> Result<Converted<Imported>, ExchangeError> {
    let imported = document::from_document(document, &mut || runtime.mint())?;
    losses.extend(imported.losses);
    Ok(Converted {
        value: imported.value,
        losses,
    })
}

fn from_pydantic_ai(
    text: &str,
    agent: &str,
    runtime: &Runtime,
) -> Result<Converted<Imported>, ExchangeError> {
    let options = ReadOptions {
        thread_id: Some(runtime.mint()),
        attribution: vec![Attribution {
            agent: agent.to_owned(),
            ..Attribution::default()
        }],
        at: SystemClock.now().to_string(),
        ..ReadOptions::default()
    };
    let Converted { value, losses } = pydantic_ai::to_document(text, &options)?;
    from_document(&value, losses, runtime)
}

//! A compaction before its summary is written.

use super::border::{Border, border};
use super::{Cut, StoredCompaction};
use crate::agent::record;
use crate::error::RuntimeError;
use crate::live::Live;
use crate::thread_page::{Chain, Position, Span};
use interop::model::{UnansweredCall, marked_history};
use std::collections::BTreeMap;
use store::Filter;
use timeline::{
    Command, Compaction, CompactionId, Entry, ExecutionId, Payload, Replaced, Seq, SummaryAuthor,
    Transcript,
};
use upp::Message;

/// The thread up to a position, from the newest compaction before it.
pub(super) struct Prefix {
    base: Option<StoredCompaction>,
    transcript: Transcript,
    messages: Vec<Message>,
    /// A call that has no result there.
    pub(super) unanswered: Option<UnansweredCall>,
}

impl Prefix {
    pub(super) async fn read(chain: &Chain<'_>, last: Position) -> Result<Self, RuntimeError> {
        let base = chain.newest_compaction(|it| !it.is_withdrawn && it.through() <= last);
        let base = base.await?;
        let done = base
            .as_ref()
            .map_or(Position::START, StoredCompaction::through);
        let transcript = if done < last {
            let first = done.next();
            chain
                .read_marked(Span { first, last }, Filter::Facts)
                .await?
        } else {
            Transcript::default()
        };
        let marked = marked_history(&transcript, None);
        Ok(Self {
            base,
            transcript,
            messages: marked.removed.left_out(marked.messages),
            unanswered: marked.unanswered,
        })
    }

    fn replaced(&self) -> Replaced {
        let is_execution = |entry: &&Entry| matches!(entry, Entry::Reaction(_));
        let bytes = self
            .messages
            .iter()
            .filter_map(|message| Payload::write(message).ok());
        let bytes: usize = bytes.map(|text| text.text().len()).sum();
        let own = Replaced {
            executions: self.transcript.entries.iter().filter(is_execution).count() as u64,
            messages: self.messages.len() as u64,
            bytes: bytes as u64,
        };
        let base = self.base.as_ref().map(|base| base.compaction.replaced);
        base.unwrap_or_default() + own
    }

    fn agent_states(&self) -> BTreeMap<String, Payload> {
        let base = self.base.as_ref().map(|base| &base.compaction.agent_states);
        record::states_after(base.cloned().unwrap_or_default(), &self.transcript)
    }
}

/// A compaction without its summary.
pub(crate) struct Draft {
    execution_id: ExecutionId,
    pub(crate) through: Position,
    prefix: Prefix,
}

impl Draft {
    /// Reads what the compaction replaces, from the compaction before it.
    ///
    /// # Errors
    ///
    /// [`RuntimeError::Cut`] if no compaction can end there.
    pub(crate) async fn of(chain: &Chain<'_>, cut: &Cut) -> Result<Self, RuntimeError> {
        let Border {
            execution_id,
            position,
            prefix,
        } = border(chain, cut).await?;
        Ok(Self {
            execution_id,
            through: position,
            prefix,
        })
    }

    /// Reads what a compaction of this thread would replace now.
    pub(crate) async fn at_end_of(live: &Live, cut: &Cut) -> Result<Self, RuntimeError> {
        Self::of(&live.chain().await?, cut).await
    }

    /// The messages that it replaces; the older ones as their summary.
    pub(crate) fn messages(&self) -> Vec<Message> {
        let base = self.prefix.base.iter().map(StoredCompaction::message);
        base.chain(self.prefix.messages.iter().cloned()).collect()
    }

    /// The compaction with its summary.
    pub(crate) fn finish(
        self,
        id: CompactionId,
        summary: String,
        author: SummaryAuthor,
    ) -> Compaction {
        Compaction {
            id,
            execution_id: self.execution_id,
            through: Seq(self.through.0),
            summary,
            author,
            replaced: self.prefix.replaced(),
            agent_states: self.prefix.agent_states(),
        }
    }
}

/// Appends a compaction, unless the history that it was made from has changed since this generation.
/// Returns the next generation.
pub(crate) async fn append(
    live: &Live,
    generation: u64,
    compaction: Compaction,
) -> Result<Option<u64>, RuntimeError> {
    live.decided(async || {
        let mut held = live.hold().await?;
        if held.core()?.generation != generation {
            return Ok(None);
        }
        let compaction = compaction.clone();
        held.commit([(None, Command::Compact { compaction })], None)
            .await?;
        let core = held.core()?;
        // What a reactor remembers has the older messages still.
        core.generation += 1;
        Ok(Some(core.generation))
    })
    .await
}

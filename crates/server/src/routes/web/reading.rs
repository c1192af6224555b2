//! Reads a thread's messages for a page.

use crate::error::ApiError;
use crate::routes::page_query::of_past;
use crate::threads::ThreadKey;
use interop::ag_ui::was_cut_off;
use interop::parts::ToolPart;
use runtime::{Filter, PageRequest, Pending, Position, ThreadPage};
use timeline::{Entry, ExecutionStatus, Seq, Transcript};
use web::{Conversation, WaitingCall};

/// Messages of a thread as a conversation.
pub(super) struct ReadConversation {
    pub(super) conversation: Conversation,
    pub(super) page: ThreadPage,
    /// The agent of the last run.
    pub(super) agent: Option<String>,
}

impl ReadConversation {
    /// Reads about `n` messages before a position, with their answers.
    pub(super) async fn before(
        thread: &ThreadKey,
        before: Position,
        n: usize,
    ) -> Result<Self, ApiError> {
        let request = PageRequest::Before { before, n };
        let mut page = thread.page(request.clone(), Filter::Facts).await?;
        if is_running(&page.transcript) || was_cut_off(&page.transcript) {
            page = thread.page(request, Filter::All).await?;
        }
        let mut conversation = Conversation::of(thread.key(), &page.transcript);
        if before == Position::END && conversation.waits_for_children() {
            let (pending, _) = thread.pending().await?;
            let calls: Vec<WaitingCall> = pending.into_iter().filter_map(pending_call).collect();
            conversation.note_pending(&calls);
        }
        let agent = last_agent(&page.transcript);
        Ok(Self {
            conversation,
            page,
            agent,
        })
    }

    /// Reads about `n` messages before the end of the thread as it was after an event.
    pub(super) async fn at(thread: &ThreadKey, at: Seq, n: usize) -> Result<Self, ApiError> {
        let before = Position::END;
        let request = Some(PageRequest::Before { before, n });
        let page = thread.page_at((request, at), Filter::All).await;
        let page = page.map_err(of_past)?;
        Ok(Self {
            conversation: Conversation::of(thread.key(), &page.transcript),
            agent: last_agent(&page.transcript),
            page,
        })
    }

    /// The cursor of the messages before these, if there are any.
    pub(super) fn earlier(&self) -> Option<u64> {
        self.page.more.then_some(self.page.first.0)
    }
}

fn is_running(transcript: &Transcript) -> bool {
    let last = transcript
        .entries
        .iter()
        .rev()
        .find_map(|entry| match entry {
            Entry::Reaction(reaction) => Some(reaction),
            Entry::Item(_) => None,
        });
    last.is_some_and(|last| last.execution.status == ExecutionStatus::Executing)
}

fn last_agent(transcript: &Transcript) -> Option<String> {
    let mut entries = transcript.entries.iter().rev();
    entries.find_map(|entry| match entry {
        Entry::Reaction(reaction) => runtime::Run::of(reaction.execution.run.as_ref()).agent,
        Entry::Item(_) => None,
    })
}

/// A pending call, for a page.
pub(super) fn pending_call(pending: Pending) -> Option<WaitingCall> {
    let tool = ToolPart::read(&pending.call.part)?;
    Some(WaitingCall {
        call_id: pending.call.tool_call_id,
        thread_key: pending.address.key,
        kind: pending.call.kind,
        tool: tool.tool_name().to_owned(),
        arguments: tool.arguments().to_owned(),
        path: pending.path.into_iter().map(|it| it.tool_call_id).collect(),
    })
}

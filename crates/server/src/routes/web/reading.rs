//! Reads a thread's messages for a page.

use crate::error::ApiError;
use crate::routes::messages::is_running;
use crate::routes::page_query::of_past;
use crate::state::Api;
use crate::threads::ThreadKey;
use interop::ag_ui::was_cut_off;
use interop::parts::ToolPart;
use runtime::{Filter, PageRequest, Pending, Position, ThreadPage};
use std::sync::Arc;
use timeline::{Entry, Seq, Transcript};
use web::{Conversation, ToolFact, ToolFacts, WaitingCall};

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
        (api, thread): (&Api, &ThreadKey),
        before: Position,
        n: usize,
    ) -> Result<Self, ApiError> {
        let request = PageRequest::Before { before, n };
        let mut page = thread.page(request.clone(), Filter::Facts).await?;
        if is_running(&page.transcript) || was_cut_off(&page.transcript) {
            page = thread.page(request, Filter::All).await?;
        }
        let mut conversation =
            Conversation::with_tools(thread.key(), &page.transcript, tool_facts(api));
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
    pub(super) async fn at(
        (api, thread): (&Api, &ThreadKey),
        at: Seq,
        n: usize,
    ) -> Result<Self, ApiError> {
        let before = Position::END;
        let request = Some(PageRequest::Before { before, n });
        let page = thread.page_at((request, at), Filter::All).await;
        let page = page.map_err(of_past)?;
        Ok(Self {
            conversation: Conversation::with_tools(thread.key(), &page.transcript, tool_facts(api)),
            agent: last_agent(&page.transcript),
            page,
        })
    }

    /// The cursor of the messages before these, if there are any.
    pub(super) fn earlier(&self) -> Option<u64> {
        self.page.more.then_some(self.page.first.0)
    }
}

/// The effects and result schemas of all agents' tools.
fn tool_facts(api: &Api) -> Arc<ToolFacts> {
    let mut facts = ToolFacts::default();
    api.app().each_tool(|agent, tool| {
        let fact = ToolFact {
            effect: tool.effect.name(),
            result: tool.result.clone(),
        };
        facts.insert(agent, &tool.name, fact);
    });
    Arc::new(facts)
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

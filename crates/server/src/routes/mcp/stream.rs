//! The outcomes of runs.

use crate::error::ApiError;
use crate::routes::answers::{self, PendingView};
use crate::routes::view::MessageView;
use crate::threads::ThreadKey;
use interop::mcp::message_text;
use interop::run::RunSelector;
use rmcp::model::{CallToolResult, ContentBlock};
use runtime::{Filter, PageRequest, Pending};
use serde_json::json;
use timeline::{Entry, ExecutionId, ExecutionStatus, OpenKind, Reaction};

/// The state of a run: its first execution and the continuations.
pub(super) struct Outcome {
    key: String,
    entries: Vec<Entry>,
    /// Its pending calls. None if it does not wait; empty if only its sub-agents work.
    pending: Option<Vec<PendingView>>,
}

impl Outcome {
    /// Reads the run that begins with an execution. Costs time proportional to the run.
    pub(super) async fn of(thread: &ThreadKey, first: &ExecutionId) -> Result<Self, ApiError> {
        let page = PageRequest::Run(first.clone());
        let page = thread.page(page, Filter::Facts);
        let mut entries = page.await?.transcript.entries;
        entries.retain(|entry| matches!(entry, Entry::Reaction(_)));
        let pending = match entries.last() {
            Some(Entry::Reaction(last)) => answers::left_by(thread, &last.execution.id).await?,
            Some(Entry::Item(_)) | None => None,
        };
        let pending = pending.map(|pending| {
            let asked = pending.into_iter().filter(is_asked);
            asked.map(answers::view).collect()
        });
        Ok(Self {
            key: thread.key().to_owned(),
            entries,
            pending,
        })
    }

    /// Selects what remains of the run after one of its executions; none if it does not run.
    pub(super) fn next_run(&self, ended: &ExecutionId) -> Option<RunSelector> {
        let mut left = self.reactions().rev();
        let is_running = |last: &Reaction| last.execution.status == ExecutionStatus::Executing;
        if !self.last().is_some_and(is_running) {
            return None;
        }
        let n_left = left.position(|it| it.execution.id == *ended)?;
        let n_through = n_left.checked_sub(1)?;
        Some(RunSelector::running(None).through(std::iter::repeat_n(false, n_through)))
    }

    /// The tool result for the client.
    pub(super) fn result(self) -> CallToolResult {
        let mut text = message_text(&self.entries);
        let status = self.status();
        let execution = self.last().map(|last| last.execution.id.clone());
        let interruption = self
            .last()
            .and_then(|last| last.execution.interruption.clone());
        if let Some(interruption) = &interruption {
            let detail = interruption.detail.as_deref().unwrap_or_default();
            add(
                &mut text,
                &format!("[interrupted: {} {detail}]", interruption.reason),
            );
        }
        let left_open = self.last().is_some_and(|it| !it.open_calls().is_empty());
        if self.pending.is_none() && left_open {
            add(
                &mut text,
                "[its calls were left without an answer: something else was said]",
            );
        }
        let pending = self.pending.unwrap_or_default();
        for call in &pending {
            add(&mut text, &call.message());
        }
        let messages: Vec<MessageView> = self
            .entries
            .into_iter()
            .filter_map(|entry| MessageView::of_entry(entry, false))
            .collect();
        let mut structured = json!({
            "key": self.key, "status": status, "text": text, "messages": messages, "pending": pending,
        });
        if let Some(execution) = execution {
            structured["executionId"] = execution.as_str().into();
        }
        if let Some(interruption) = interruption {
            structured["interruption"] = json!(interruption);
        }
        let mut result = CallToolResult::structured(structured);
        result.content = vec![ContentBlock::text(text)];
        result.is_error = Some(status == "failed");
        result
    }

    fn status(&self) -> &'static str {
        match self.last().map(|last| last.execution.status) {
            Some(ExecutionStatus::Failed) => "failed",
            Some(ExecutionStatus::Executing) => "executing",
            Some(ExecutionStatus::Completed) => match self.pending.as_deref() {
                Some([]) => "executing",
                Some(_) => "waiting",
                None => "completed",
            },
            None => "completed",
        }
    }

    fn last(&self) -> Option<&Reaction> {
        self.reactions().next_back()
    }

    fn reactions(&self) -> impl DoubleEndedIterator<Item = &Reaction> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Reaction(reaction) => Some(reaction),
            Entry::Item(_) => None,
        })
    }
}

/// Whether a call can be answered. A call behind another one, or with a waiting sub-agent, can't.
fn is_asked(pending: &Pending) -> bool {
    match pending.call.kind {
        OpenKind::Approval | OpenKind::External => true,
        OpenKind::Others | OpenKind::Child => false,
    }
}

fn add(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(line);
}

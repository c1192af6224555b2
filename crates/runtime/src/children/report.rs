//! The work of a child, folded from its log.

use super::outcome::ChildError;
use super::records::Spawned;
use super::relations::MAX_DEPTH;
use crate::error::render_error;
use crate::pages::PAGE;
use crate::runtime::Runtime;
use agents::{AgentError, SubagentExecutionTrace, ToolExecutionTrace};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use interop::model;
use interop::parts::{StepResponse, ToolPart};
use interop::run::{RunEvent, RunFold, RunSelector, Selected};
use serde_json::Value;
use std::collections::BTreeSet;
use store::{Filter, Store, StoreError, TenantId};
use timeline::{
    Entry, Event, ExecutionId, ExecutionStatus, Item, ItemId, ItemType, Reaction, Record, Seq,
    StepRecord, ThreadId, Transcript,
};
use upp::{CycleUsage, Message, StopReason, TokenUsage, ToolExecution, Turn};

/// The reason of a run whose pending calls were closed by a message.
const OVERTAKEN: &str = timeline::Interruption::USER_CANCELLED;

/// One run: the execution that answers an item, and its continuations.
pub(super) struct Report {
    transcript: Transcript,
    fold: RunFold,
    executions: BTreeSet<ExecutionId>,
    /// Whether it waits for answers from outside.
    is_waiting: bool,
    is_over: bool,
    /// A message was posted during the running execution, so the calls that it leaves open can't be
    /// answered.
    is_overtaken: bool,
    seq: Seq,
}

impl Default for Report {
    fn default() -> Self {
        Self::answering(None)
    }
}

impl Report {
    /// The run that answers this item. Without one, the first run of the thread.
    pub(super) fn answering(item: Option<ItemId>) -> Self {
        let run = match item {
            Some(item) => RunSelector::answering(item),
            None => RunSelector::running(None),
        };
        Self {
            transcript: Transcript::default(),
            fold: RunFold::new(run),
            executions: BTreeSet::new(),
            is_waiting: false,
            is_over: false,
            is_overtaken: false,
            seq: Seq::ZERO,
        }
    }

    /// Reads the first run of a thread.
    pub(super) async fn read(store: &dyn Store, thread: &ThreadId) -> Result<Self, StoreError> {
        let mut report = Self::default();
        let mut seen = Seq::ZERO;
        while !report.is_over() {
            let page = store.read(thread, seen, PAGE, Filter::Facts).await?;
            let Some(last) = page.last() else { break };
            seen = last.record.seq;
            for logged in &page {
                report.push(&logged.record);
            }
        }
        Ok(report)
    }

    /// Folds one record and returns the run's events in it. Records after the end of the run are
    /// ignored.
    pub(super) fn push<'r>(&mut self, record: &'r Record) -> Vec<RunEvent<'r>> {
        if self.is_over {
            return Vec::new();
        }
        let was_running = self.fold.selector().is_running();
        let (selected, events) = self.fold.select(record);
        if !Filter::Facts.keeps(&record.event) {
            return events;
        }
        self.transcript.apply(record);
        self.seq = record.seq;
        if let Event::ExecutionCreated { execution } = &record.event
            && self.fold.selector().runs(&execution.id)
        {
            self.is_waiting = false;
            self.is_overtaken = false;
            self.executions.insert(execution.id.clone());
        }
        if let Event::ItemCreated { item } = &record.event {
            let is_message = item.item_type == ItemType::Message && item.execution_id.is_none();
            self.is_overtaken |= was_running && is_message && item.run.is_none();
        }
        if selected == Selected::Last {
            self.is_waiting = self.last().is_some_and(waits) && !self.is_overtaken;
            self.is_over = !self.is_waiting;
            if self.is_waiting {
                self.fold.await_next();
            }
        }
        events
    }

    /// Whether it has started.
    pub(super) fn has_started(&self) -> bool {
        !self.executions.is_empty()
    }

    /// Whether it waits for answers from outside.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// The last record that is in it.
    pub(super) fn seq(&self) -> Seq {
        self.seq
    }

    /// Whether it has ended.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    fn reactions(&self) -> impl DoubleEndedIterator<Item = &Reaction> {
        self.transcript
            .entries
            .iter()
            .filter_map(|entry| match entry {
                Entry::Reaction(reaction) if self.executions.contains(&reaction.execution.id) => {
                    Some(reaction)
                }
                Entry::Reaction(_) | Entry::Item(_) => None,
            })
    }

    fn last(&self) -> Option<&Reaction> {
        self.reactions().next_back()
    }

    fn steps(&self) -> impl Iterator<Item = &StepRecord> {
        self.reactions().flat_map(|reaction| &reaction.steps)
    }

    fn task(&self) -> Option<&Item> {
        let first = self.reactions().next()?;
        self.transcript
            .entries
            .iter()
            .find_map(|entry| match entry {
                Entry::Item(item) if item.id == first.execution.trigger_item_id => Some(item),
                Entry::Item(_) | Entry::Reaction(_) => None,
            })
    }

    /// The text of the task.
    pub(super) fn prompt(&self) -> String {
        let task = self.task().map(model::user_message);
        let texts = task.iter().flat_map(|message| &message.content);
        let texts = texts.filter_map(|block| match block {
            upp::UserContent::Text { text } => Some(text.as_str()),
            upp::UserContent::Image(_)
            | upp::UserContent::Document(_)
            | upp::UserContent::Audio(_)
            | upp::UserContent::Video(_)
            | upp::UserContent::Binary(_) => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// The agent of the first execution.
    pub(super) fn agent(&self) -> String {
        let run = self.reactions().next();
        let run = run.and_then(|reaction| reaction.execution.run.as_ref());
        store::Run::of(run).agent.unwrap_or_default()
    }

    /// The start of the run, in milliseconds since the epoch.
    pub(super) fn began_at(&self) -> i64 {
        let first = self.reactions().next();
        first.map_or(0, |it| it.execution.created_at.as_millisecond())
    }

    fn ended_at(&self) -> i64 {
        let at = self.last().and_then(|reaction| reaction.ended_at);
        at.map_or_else(|| self.began_at(), jiff::Timestamp::as_millisecond)
    }

    /// Number of calls without a result in the last step.
    fn open_calls(&self) -> usize {
        let last = self.last().and_then(|reaction| reaction.steps.last());
        let parts = last.map(|step| step.parts.as_slice()).unwrap_or_default();
        let tools = parts.iter().filter_map(|it| ToolPart::read(&it.part));
        let n_unanswered = tools.filter(|tool| !tool.is_answered()).count();
        n_unanswered.max(self.last().map_or(0, |it| it.open_calls().len()))
    }

    fn key(&self) -> String {
        let thread = self.transcript.thread.as_ref();
        let key = thread.map(|thread| thread.key.clone().unwrap_or_else(|| thread.id.to_string()));
        key.unwrap_or_default()
    }

    /// The outcome as a word, such as `completed`.
    pub(super) fn reason(&self) -> String {
        match self.last() {
            Some(last) if last.execution.status == ExecutionStatus::Completed => {
                match (self.open_calls() > 0, self.is_overtaken) {
                    (true, true) => OVERTAKEN,
                    (true, false) => "waiting",
                    (false, _) => "completed",
                }
                .to_owned()
            }
            Some(last) => {
                let why = last.execution.interruption.as_ref();
                why.map_or_else(|| "error".to_owned(), |why| why.reason.clone())
            }
            None => "error".to_owned(),
        }
    }

    /// The turn that the run returns to the call that started it.
    pub(super) fn turn(&self) -> Result<Turn, ChildError> {
        let key = self.key();
        let is_read = self.is_over() || self.is_waiting();
        let Some(last) = self.last().filter(|_| is_read) else {
            return Err(ChildError::Cut { key });
        };
        if last.execution.status != ExecutionStatus::Completed {
            let why = last.execution.interruption.as_ref();
            let detail = why.and_then(|why| why.detail.as_ref());
            return Err(ChildError::Failed {
                key,
                reason: self.reason(),
                detail: detail.map(|text| format!(": {text}")).unwrap_or_default(),
            });
        }
        let n_calls = self.open_calls();
        if n_calls > 0 && self.is_overtaken {
            return Err(ChildError::Failed {
                key,
                reason: OVERTAKEN.to_owned(),
                detail: ": something else was said in place of the answers it waited for".into(),
            });
        }
        if n_calls > 0 {
            return Err(ChildError::Waits { key, n_calls });
        }
        self.answer().ok_or(ChildError::Silent { key })
    }

    fn answer(&self) -> Option<Turn> {
        let mut own = Transcript::default();
        own.entries.extend(self.task().cloned().map(Entry::Item));
        own.entries
            .extend(self.reactions().cloned().map(Entry::Reaction));
        let messages = model::history(&own, None);
        let response = messages.iter().rev().find_map(|message| match message {
            Message::Assistant(message) => Some(std::sync::Arc::clone(message)),
            Message::User(_) | Message::ToolResult(_) => None,
        })?;
        let usage = self.usage();
        let said = self.responses().last();
        let stop_reason = said
            .and_then(|said| said.stop_reason)
            .and_then(|word| serde_json::from_value(Value::String(word)).ok());
        Some(Turn {
            messages,
            response,
            tool_executions: self.tool_executions(),
            cycles: u32::try_from(usage.cycles.len()).unwrap_or(u32::MAX),
            usage,
            data: None,
            stop_reason: stop_reason.unwrap_or(StopReason::EndTurn),
            requests: Vec::new(),
        })
    }

    fn responses(&self) -> impl Iterator<Item = StepResponse> {
        self.steps()
            .filter_map(|step| step.response.as_ref()?.0.read().ok())
    }

    fn usage(&self) -> TokenUsage {
        let mut usage = TokenUsage::default();
        for said in self.responses() {
            let cycle: Option<CycleUsage> = said.usage.and_then(|usage| usage.read().ok());
            usage.push(cycle.unwrap_or_default());
        }
        usage
    }

    fn tool_executions(&self) -> Vec<ToolExecution> {
        let parts = self.steps().flat_map(|step| &step.parts);
        parts
            .filter_map(|part| {
                let tool = ToolPart::read(&part.part)?;
                let result = model::result_of(&tool)?;
                Some(ToolExecution {
                    tool_name: tool.tool_name().into(),
                    tool_call_id: result.tool_call_id,
                    arguments: serde_json::from_str(tool.arguments())
                        .unwrap_or_else(|_| tool.arguments().into()),
                    result: result.result,
                    is_error: result.is_error,
                    duration: tool.duration_ms.unwrap_or_default(),
                    approved: None,
                })
            })
            .collect()
    }

    /// The trace of the run (UAP §8.8), with its outcome.
    pub(super) fn trace(&self, spawned: &Spawned) -> SubagentExecutionTrace {
        let turn = self.turn().map_err(|error| {
            let failed = AgentError::extension(format!("the agent {:?}", self.agent()), error);
            render_error(&failed)
        });
        let executions: Vec<ToolExecutionTrace> =
            self.tool_executions().iter().map(Into::into).collect();
        SubagentExecutionTrace {
            subagent_id: spawned.subagent_id.clone(),
            subagent_type: spawned.subagent_type.clone(),
            parent_tool_call_id: spawned.tool_call_id.as_str().into(),
            prompt: self.prompt(),
            start_time: self.began_at(),
            end_time: self.ended_at(),
            success: turn.is_ok(),
            result: turn.as_ref().ok().map(|turn| turn.response.joined_text()),
            error: turn.err(),
            tool_executions: Some(executions).filter(|list| !list.is_empty()),
            usage: Some(self.usage()).filter(|usage| !usage.cycles.is_empty()),
        }
    }

    /// The traces of the children of the run: step by step, in the order of their calls, each after
    /// those of its own children (UAP §8.8). Reads the logs of all of them.
    pub(super) fn nested<'a>(
        &'a self,
        runtime: &'a Runtime,
        tenant: &'a TenantId,
        depth: usize,
    ) -> BoxFuture<'a, Result<Vec<SubagentExecutionTrace>, StoreError>> {
        async move {
            let mut traces = Vec::new();
            let Some(thread) = self
                .transcript
                .thread
                .as_ref()
                .filter(|_| depth < MAX_DEPTH)
            else {
                return Ok(traces);
            };
            for spawned in self.steps().flat_map(children_of) {
                let child = &spawned.spawned_thread_id;
                let row = runtime.seen_child_row(tenant, &thread.id, child).await?;
                if row.is_none() {
                    continue;
                }
                let store = runtime.store().as_ref();
                let child = match Self::read(store, child).await {
                    Ok(child) => child,
                    // Deleted since: nothing is known of it any more.
                    Err(StoreError::NotFound) => continue,
                    Err(error) => return Err(error),
                };
                traces.extend(child.nested(runtime, tenant, depth + 1).await?);
                traces.push(child.trace(&spawned));
            }
            Ok(traces)
        }
        .boxed()
    }
}

/// Whether an execution left calls open that can be answered.
fn waits(reaction: &Reaction) -> bool {
    reaction.execution.status == ExecutionStatus::Completed && !reaction.open_calls().is_empty()
}

/// The sub-agents that a step started, in the order of its calls.
fn children_of(step: &StepRecord) -> Vec<Spawned> {
    let spawned = step
        .parts
        .iter()
        .filter_map(|part| Spawned::read(&part.part));
    let mut spawned: Vec<Spawned> = spawned.collect();
    if spawned.len() > 1 {
        let tools = step
            .parts
            .iter()
            .filter_map(|part| ToolPart::read(&part.part));
        let calls: Vec<String> = tools.map(|tool| tool.tool_call_id).collect();
        spawned.sort_by_key(|it| calls.iter().position(|call| *call == it.tool_call_id));
    }
    spawned
}

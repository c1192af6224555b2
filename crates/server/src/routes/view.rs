//! A thread and its conversation in the form that clients see.

use super::run_times::{AttemptView, CallView, RestartView};
use crate::state::Api;
use interop::aitp::shown_metadata;
use interop::parts::{cut_off_parts, is_prompt};
use interop::run::{ExecutionTimes, StepTimes, usage_of};
use jiff::Timestamp;
use runtime::{Run, ThreadCompaction, ThreadRow};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use timeline::{
    CompactionId, Entry, ExecutionId, ExecutionStatus, Fork, Interruption, Item, ItemId,
    ItemStatus, ItemType, Payload, Reaction, Role, Seq, StepId, StepRecord, StepStatus, ThreadId,
    ThreadStatus,
};
use utoipa::ToSchema;

/// A part of a message or of a step: an object whose `type` names its kind, such as `text` or `tool`.
#[derive(Serialize, ToSchema)]
pub(super) struct PartView {
    /// The kind of the part.
    r#type: String,
    /// The members of the kind.
    #[serde(flatten)]
    members: Map<String, Value>,
}

/// A thread.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ThreadView {
    /// Its key.
    key: Option<String>,
    /// The thread's id, which a fork's `threadId` refers to.
    id: ThreadId,
    /// `open`, `streaming`, `closed` or `failed`.
    status: ThreadStatus,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When it last changed.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<Timestamp>,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The application's own.
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Payload>,
    /// The parent thread of a fork, and the last event that they share.
    #[serde(skip_serializing_if = "Option::is_none")]
    fork: Option<Fork>,
    /// The last event.
    seq: u64,
    /// The bytes its events take.
    bytes: u64,
    /// The compaction that models read; only in the response to a request that reads the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    compaction: Option<CurrentCompaction>,
}

/// The compaction of a thread that counts.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CurrentCompaction {
    /// Its id.
    id: CompactionId,
    /// The last execution that its summary replaces.
    execution_id: ExecutionId,
    /// The last event that it replaces; absent if it is in the log of an ancestor.
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<Seq>,
}

impl From<ThreadCompaction> for CurrentCompaction {
    fn from(found: ThreadCompaction) -> Self {
        Self {
            id: found.compaction.id,
            execution_id: found.compaction.execution_id,
            event: found.through,
        }
    }
}

impl ThreadView {
    /// The view with the compaction that counts.
    pub(crate) fn with_compaction(self, compaction: Option<ThreadCompaction>) -> Self {
        Self {
            compaction: compaction.map(Into::into),
            ..self
        }
    }

    /// The response to a request that creates a thread. If the thread existed and the key may not read,
    /// title and metadata are left out.
    pub(crate) fn made(row: ThreadRow, is_new: bool, may_read: bool) -> Self {
        let view = Self::from(row);
        if is_new || may_read {
            return view;
        }
        Self {
            title: None,
            metadata: None,
            ..view
        }
    }
}

impl From<ThreadRow> for ThreadView {
    fn from(row: ThreadRow) -> Self {
        let thread = row.thread;
        Self {
            key: thread.key,
            id: thread.id,
            status: thread.status,
            created_at: thread.created_at,
            updated_at: thread.updated_at,
            title: thread.title,
            metadata: thread.metadata,
            fork: thread.fork,
            seq: row.tail.0,
            bytes: row.bytes,
            compaction: None,
        }
    }
}

/// A message of a user or an item of an agent; an agent's content is that of its parts.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageView {
    /// Its id.
    id: ItemId,
    /// `message`, `action_execute`, `action_result` or `item_reference`.
    #[serde(rename = "type")]
    item_type: ItemType,
    /// The role of its author.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<Role>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// `stored`, `pending` or `completed`.
    status: ItemStatus,
    /// Whether it is queued.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    waiting: bool,
    /// The channel that it came through.
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<String>,
    /// Its content.
    #[schema(value_type = Vec<PartView>)]
    content: Vec<Payload>,
    /// The execution that writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_id: Option<ExecutionId>,
    /// Why it ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    interruption: Option<Interruption>,
    /// The client's own fields.
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Payload>,
}

impl MessageView {
    /// The message of an entry; none if all of it was removed. With `with_half`, a running answer has
    /// the text that was streamed so far.
    pub(super) fn of_entry(entry: Entry, with_half: bool) -> Option<Self> {
        match entry {
            Entry::Item(item) => {
                let content = item.content.as_ref().map(parts_of);
                Some(Self::of(item, content.unwrap_or_default()))
            }
            Entry::Reaction(reaction) if reaction.steps.is_empty() => None,
            Entry::Reaction(reaction) => Some(Self::reaction(reaction, with_half)),
        }
    }

    /// Its parts.
    pub(super) fn into_content(self) -> Vec<Payload> {
        self.content
    }

    fn of(item: Item, content: Vec<Payload>) -> Self {
        Self {
            metadata: shown_metadata(&item),
            id: item.id,
            item_type: item.item_type,
            role: item.role,
            created_at: item.created_at,
            status: item.status,
            waiting: item.run.is_some(),
            channel: item.channel,
            content,
            execution_id: item.execution_id,
            interruption: None,
        }
    }

    fn reaction(reaction: Reaction, with_half: bool) -> Self {
        let execution = reaction.execution;
        let item = reaction.item.unwrap_or(Item {
            id: execution.reaction_item_id,
            item_type: ItemType::Message,
            role: Some(Role::Assistant),
            created_at: execution.created_at,
            status: ItemStatus::Stored,
            channel: None,
            content: None,
            execution_id: Some(execution.id),
            run: None,
            metadata: None,
        });
        let with_half = with_half || execution.status != ExecutionStatus::Executing;
        let parts = reaction.steps.into_iter().flat_map(|step| {
            let half = if with_half {
                cut_off_parts(&step)
            } else {
                Vec::new()
            };
            let parts = step.parts.into_iter().map(|part| part.part);
            parts.filter(|part| !is_prompt(part)).chain(half)
        });
        Self {
            interruption: execution.interruption,
            ..Self::of(item, parts.collect())
        }
    }
}

/// The content of an item as a list: an action or a reference may be one object with a type. A pointer that
/// only starts a run has none.
fn parts_of(content: &Payload) -> Vec<Payload> {
    let one = || content.str_field("type").map(|_| content.clone());
    content
        .read()
        .unwrap_or_else(|_| one().into_iter().collect())
}

/// One run of an agent.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunView {
    /// The execution's id.
    id: ExecutionId,
    /// `executing`, `completed` or `failed`.
    status: ExecutionStatus,
    /// The agent; absent for imported runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// The item that it responds to.
    trigger_item_id: ItemId,
    /// The item that it writes.
    reaction_item_id: ItemId,
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    /// Why it ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    interruption: Option<Interruption>,
    /// When its trigger was posted; absent in a list.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    queued_at: Option<Timestamp>,
    /// The tokens of all steps, by their kind, such as `inputTokens`; absent in a list.
    #[schema(value_type = Option<std::collections::HashMap<String, u64>>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<BTreeMap<&'static str, u64>>,
    /// The processes that took it up; absent in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    restarts: Option<Vec<RestartView>>,
    /// Number of its steps.
    n_steps: usize,
    /// Its steps; absent in a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<StepView>>,
}

impl RunView {
    /// A run in a list.
    pub(super) fn brief(reaction: Reaction) -> Self {
        let n_steps = reaction.steps.len();
        let execution = reaction.execution;
        Self {
            agent: Run::of(execution.run.as_ref()).agent,
            id: execution.id,
            status: execution.status,
            trigger_item_id: execution.trigger_item_id,
            reaction_item_id: execution.reaction_item_id,
            created_at: execution.created_at,
            ended_at: reaction.ended_at,
            interruption: execution.interruption,
            queued_at: None,
            usage: None,
            restarts: None,
            n_steps,
            steps: None,
        }
    }

    /// A run with its steps and their times.
    pub(super) fn whole(
        api: &Api,
        mut reaction: Reaction,
        times: ExecutionTimes,
        queued_at: Timestamp,
    ) -> Self {
        let usage = usage_of(&reaction);
        let records = std::mem::take(&mut reaction.steps);
        let brief = Self::brief(reaction);
        let mut of_steps = times.steps.into_iter().peekable();
        let steps = records.into_iter().map(|record| {
            // Removed steps have times, too.
            while of_steps.next_if(|it| it.id != record.step.id).is_some() {}
            let times = of_steps.next();
            StepView::of(api, record, times, brief.agent.as_deref())
        });
        let steps: Vec<StepView> = steps.collect();
        Self {
            queued_at: Some(queued_at),
            usage: Some(usage),
            restarts: Some(times.restarts.into_iter().map(Into::into).collect()),
            n_steps: steps.len(),
            steps: Some(steps),
            ..brief
        }
    }
}

/// One model call with its tools.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StepView {
    /// Its id.
    id: StepId,
    /// Its number in the run, from 0.
    iteration: u32,
    /// `running`, `completed` or `failed`.
    status: StepStatus,
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    /// The model's data about its response: its name, the usage, the stop reason.
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<Payload>,
    /// The calls: ids and names.
    #[schema(value_type = Option<Vec<Object>>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<Payload>,
    /// The results of the calls: ids and whether they succeeded.
    #[schema(value_type = Option<Vec<Object>>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_execution_results: Option<Payload>,
    /// The error.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_text: Option<String>,
    /// When the first chunk of its last attempt was stored.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(skip_serializing_if = "Option::is_none")]
    first_chunk_at: Option<Timestamp>,
    /// The attempts at the model's answer, in order.
    attempts: Vec<AttemptView>,
    /// The tool calls with their times, in order.
    calls: Vec<CallView>,
    /// Its text, reasoning and tool calls.
    #[schema(value_type = Vec<PartView>)]
    parts: Vec<Payload>,
}

impl StepView {
    /// A step with its times; `agent` is the run's agent.
    fn of(api: &Api, record: StepRecord, times: Option<StepTimes>, agent: Option<&str>) -> Self {
        let half = match record.step.status {
            StepStatus::Running => Vec::new(),
            StepStatus::Completed | StepStatus::Failed => cut_off_parts(&record),
        };
        let parts = record.parts.into_iter().map(|part| part.part);
        let step = record.step;
        let (attempts, calls) = times
            .map(|times| (times.attempts, times.calls))
            .unwrap_or_default();
        let last = attempts.last();
        Self {
            first_chunk_at: last.and_then(|attempt| attempt.first_chunk),
            attempts: attempts.into_iter().map(Into::into).collect(),
            calls: calls
                .into_iter()
                .map(|call| CallView::of(call, api, agent))
                .collect(),
            id: step.id,
            iteration: step.iteration,
            status: step.status,
            created_at: step.created_at,
            ended_at: record.ended_at,
            response: record.response.map(|(response, _)| response),
            tool_calls: step.outcome.tool_calls,
            tool_execution_results: step.outcome.tool_execution_results,
            error_text: step.outcome.error_text,
            parts: parts.chain(half).collect(),
        }
    }
}

//! The commands of a thread.

use crate::change::Removed;
use crate::chunk::NewChunk;
use crate::compaction::Compaction;
use crate::entity::{Fork, Interruption, Item, ItemType, Role, StepOutcome};
use crate::ids::{ContextId, ExecutionId, ItemId, StepId, ThreadId};
use crate::payload::Payload;
use crate::status::ItemStatus;
use jiff::Timestamp;

/// A thread to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewThread {
    /// Internal id.
    pub id: ThreadId,
    /// Public key.
    pub key: Option<String>,
    /// The title.
    pub title: Option<String>,
    /// The application's own.
    pub metadata: Option<Payload>,
    /// The thread and the position that the new thread continues, if it is a fork.
    pub fork: Option<Fork>,
}

impl NewThread {
    /// A thread that has only an id and a key.
    pub fn new(id: impl Into<ThreadId>, key: Option<&str>) -> Self {
        Self {
            id: id.into(),
            key: key.map(str::to_owned),
            title: None,
            metadata: None,
            fork: None,
        }
    }
}

/// An item to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewItem {
    /// Its id.
    pub id: ItemId,
    /// The type of the item.
    pub item_type: ItemType,
    /// The role of the author.
    pub role: Option<Role>,
    /// The channel through which it arrived.
    pub channel: Option<String>,
    /// The content of the item.
    pub content: Option<Payload>,
    /// Fields of the client or of another format.
    pub metadata: Option<Payload>,
}

impl NewItem {
    /// A user's message with this content.
    pub fn user(id: impl Into<ItemId>, content: Payload) -> Self {
        Self {
            id: id.into(),
            item_type: ItemType::Message,
            role: Some(Role::User),
            channel: None,
            content: Some(content),
            metadata: None,
        }
    }

    /// The item that it becomes at this instant.
    pub fn stored(self, at: Timestamp) -> Item {
        Item {
            id: self.id,
            item_type: self.item_type,
            role: self.role,
            created_at: at,
            status: ItemStatus::Stored,
            channel: self.channel,
            content: self.content,
            execution_id: None,
            run: None,
            metadata: self.metadata,
        }
    }

    /// A pointer to an item: the trigger of an execution that starts without a new message. `to` is
    /// the last item, or `None` if the thread has none.
    pub fn reference(id: impl Into<ItemId>, to: Option<&ItemId>) -> Self {
        Self {
            id: id.into(),
            item_type: ItemType::ItemReference,
            role: None,
            channel: None,
            content: to.map(|to| serde_json::json!({"itemId": to}).into()),
            metadata: None,
        }
    }
}

/// The item that an execution responds to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A new item in the command.
    New(NewItem),
    /// The item that has waited longest.
    Waiting,
}

/// The end of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every step is complete.
    Completed,
    /// Something went wrong: the thread is failed until it is reopened or written to.
    Failed(Interruption),
    /// Someone stopped it: the thread is open again.
    Stopped(Interruption),
}

/// A command to a thread; [`State::decide`](crate::State::decide) accepts or rejects it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Make the thread and its context.
    Create {
        /// The thread.
        thread: NewThread,
        /// Its context.
        context_id: ContextId,
    },
    /// Keep an item that nothing answers.
    Record {
        /// The item.
        item: NewItem,
    },
    /// Keep an item until the thread is free to answer it (policy *queue*).
    Enqueue {
        /// The item.
        item: NewItem,
        /// The parameters of its execution.
        run: Payload,
    },
    /// Begin an execution: trigger, execution, reaction item and first step at once (EK §7, 1–4).
    Start {
        /// The item that the execution responds to.
        trigger: Trigger,
        /// The agent's parameters. They replace those of a waiting trigger.
        run: Option<Payload>,
        /// The execution's id.
        execution_id: ExecutionId,
        /// The reaction's id.
        reaction_item_id: ItemId,
        /// The first step's id.
        step_id: StepId,
        /// An outer workflow's id.
        workflow_run_id: Option<String>,
    },
    /// Appends chunks while a step runs; none of them may be a marker of the runtime.
    Emit {
        /// The chunks to append.
        chunks: Vec<NewChunk>,
    },
    /// An effect tool of the running step starts; if nothing follows, its outcome is unknown. The step
    /// made the call, or acts on an answer to it.
    StartTool {
        /// The call.
        tool_call_id: String,
    },
    /// The model of the running step has answered, with its parts, including tool calls, and its
    /// usage (EK §7, 5–6). No tool with effects has started yet.
    Respond {
        /// The parts, in order.
        parts: Vec<Payload>,
        /// Model, usage, stop reason.
        response: Payload,
    },
    /// Writes or replaces one part of the running step (EK §7, 7).
    PutPart {
        /// The index of the part, at most the number of existing parts.
        idx: u32,
        /// Its content.
        part: Payload,
    },
    /// Appends one more part to the running step. It records something other than the model's
    /// answer, such as the start of a sub-agent.
    AddPart {
        /// Its content.
        part: Payload,
    },
    /// Stores a note for a later attempt at the running step; replaces the previous note.
    Note {
        /// Any JSON value.
        note: Payload,
    },
    /// Voids the output of a dead attempt at the running step (ruling 10). Its note stays.
    ResetStep,
    /// This process continues the execution, which another process ran until now.
    Resume,
    /// This process shuts down in order; the next process continues the execution.
    Park,
    /// Completes the running step (EK §7, 8–9). Its reactor has responded, and each of its calls
    /// has a result or is listed in the outcome's `open_calls`.
    CompleteStep {
        /// The result of the step.
        outcome: StepOutcome,
        /// The id of the step that follows, if one does.
        next: Option<StepId>,
    },
    /// Completes the running step of an import. The step ran on another system, so the order of
    /// changes in a step is not checked.
    ImportStep {
        /// The result of the step.
        outcome: StepOutcome,
        /// The id of the step that follows, if one does.
        next: Option<StepId>,
    },
    /// The execution is over (EK §7, 10).
    End {
        /// The ending.
        ending: Ending,
    },
    /// Changes the title or the metadata, even while an execution runs. `None` leaves a member
    /// unchanged, `Some(None)` removes it.
    Update {
        /// The title.
        title: Option<Option<String>>,
        /// The application's metadata; it is replaced, not merged.
        metadata: Option<Option<Payload>>,
    },
    /// Removes an item, a step or a compaction for readers. The log still has it.
    Remove {
        /// The item, step or compaction.
        what: Removed,
    },
    /// Represents the oldest runs of the thread by a summary when a model reads it, even while an
    /// execution runs.
    Compact {
        /// The summary, and the runs.
        compaction: Compaction,
    },
    /// Close the thread for good; an idle one passes through `streaming` (ruling 9).
    Close,
    /// Open a failed thread again.
    Reopen,
}

//! What can be asked of a thread.

use crate::change::Removed;
use crate::chunk::NewChunk;
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
    /// For people.
    pub title: Option<String>,
    /// The application's own.
    pub metadata: Option<Payload>,
    /// What it continues.
    pub fork: Option<Fork>,
}

impl NewThread {
    /// A thread with an id and a key and nothing else.
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

/// An item to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewItem {
    /// Its id.
    pub id: ItemId,
    /// What it is.
    pub item_type: ItemType,
    /// Who says it.
    pub role: Option<Role>,
    /// Where it came in.
    pub channel: Option<String>,
    /// What it says.
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

    /// A pointer to an item: what an execution answers that is begun without anything said. It points
    /// nowhere where nothing was said before.
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

/// What an execution answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// An item that comes with the command.
    New(NewItem),
    /// The item that waits longest.
    Waiting,
}

/// How an execution ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every step is complete.
    Completed,
    /// Something went wrong: the thread is failed until it is reopened or written to.
    Failed(Interruption),
    /// Someone stopped it: the thread is open again.
    Stopped(Interruption),
}

/// What can be asked of a thread; [`State::decide`](crate::State::decide) answers.
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
        /// How it is to be answered.
        run: Payload,
    },
    /// Begin an execution: trigger, execution, reaction item and first step at once (EK §7, 1–4).
    Start {
        /// What it answers.
        trigger: Trigger,
        /// How; a waiting trigger brings its own, which this one stands in place of.
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
    /// Show something while a step runs; not one of the runtime's own markers.
    Emit {
        /// What.
        chunks: Vec<NewChunk>,
    },
    /// An effect tool of the running step starts; if nothing follows, its outcome is unknown. The step
    /// made the call, or acts on an answer to it.
    StartTool {
        /// The call.
        tool_call_id: String,
    },
    /// The model of the running step has answered: its parts, tool calls among them, and what it
    /// used (EK §7, 5–6). Nothing of a tool has happened yet.
    Respond {
        /// The parts, in order.
        parts: Vec<Payload>,
        /// Model, usage, stop reason.
        response: Payload,
    },
    /// Write one part of the running step, anew or again (EK §7, 7).
    PutPart {
        /// Its position; at most the number of parts there are.
        idx: u32,
        /// Its content.
        part: Payload,
    },
    /// Write one more part of the running step, after those there are: what happened beside the
    /// model's answer, such as a sub-agent that was started.
    AddPart {
        /// Its content.
        part: Payload,
    },
    /// Note what the running step is to find again, should it be run again; in place of the note
    /// before it.
    Note {
        /// Whatever helps.
        note: Payload,
    },
    /// Void what a dead attempt wrote into the running step (ruling 10). Its note stays.
    ResetStep,
    /// This process takes up the execution that another process has run until now.
    Resume,
    /// This process shuts down in order and leaves the execution to the next process.
    Park,
    /// The running step is complete (EK §7, 8–9): its reactor has responded, and each of its calls has a
    /// result, or the outcome's `open_calls` say what becomes of those that have none.
    CompleteStep {
        /// What it came to.
        outcome: StepOutcome,
        /// The id of the step that follows, if one does.
        next: Option<StepId>,
    },
    /// The running step is complete as an import has it: it happened elsewhere, so the order in which
    /// steps come about here is not asked of it.
    ImportStep {
        /// What it came to.
        outcome: StepOutcome,
        /// The id of the step that follows, if one does.
        next: Option<StepId>,
    },
    /// The execution is over (EK §7, 10).
    End {
        /// How.
        ending: Ending,
    },
    /// Change the title or the metadata, also while an execution runs: what is absent stays, what is
    /// none goes.
    Update {
        /// For people.
        title: Option<Option<String>>,
        /// The application's own; the whole of it, not merged.
        metadata: Option<Option<Payload>>,
    },
    /// Have readers leave something out from here on. The log keeps it.
    Remove {
        /// What.
        what: Removed,
    },
    /// Close the thread for good; an idle one passes through `streaming` (ruling 9).
    Close,
    /// Open a failed thread again.
    Reopen,
}

//! What callers ask of the runtime.

use interop::options::RunOptions;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt::{Display, Formatter};
use std::ops::Deref;
use store::{Run, TenantId};
use timeline::{Command, ExecutionId, Fork, ItemId, NewItem, Payload, Seq, ThreadId};

/// What happens to a trigger that finds its thread busy (EK-16).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// It waits; triggers are answered in the order they came.
    #[default]
    Queue,
    /// It is refused.
    Reject,
    /// The running execution is stopped, and this one begins.
    Interrupt,
}

/// The parameters of a run that continues an execution with these ones: somebody answers calls that it has left
/// open, and has no options of their own.
pub fn continued_run(payload: Option<&Payload>) -> Run {
    for_others(Run::of(payload))
}

/// The parameters of a run for a caller who has no options for it.
pub(crate) fn for_others(mut run: Run) -> Run {
    if let Some(params) = &mut run.params {
        RunOptions::go_on_for_others(params);
    }
    run
}

/// A client's name for its request, with a fingerprint of what the request says.
///
/// A token that comes again with another fingerprint names another request, and is refused. Where
/// either has no fingerprint they are taken for the same request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestToken {
    pub(crate) text: String,
    pub(crate) fingerprint: Option<String>,
}

impl RequestToken {
    /// A token of a request with this fingerprint.
    pub fn with_fingerprint(text: String, fingerprint: Option<String>) -> Self {
        Self { text, fingerprint }
    }

    /// The fingerprint of what the request says, if it has one.
    pub fn fingerprint(&self) -> Option<&str> {
        self.fingerprint.as_deref()
    }

    /// Another token for a part of the same request.
    #[must_use]
    pub fn derived(&self, text: String) -> Self {
        Self {
            text,
            fingerprint: self.fingerprint.clone(),
        }
    }
}

impl From<String> for RequestToken {
    fn from(text: String) -> Self {
        Self::with_fingerprint(text, None)
    }
}

impl From<&str> for RequestToken {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl Deref for RequestToken {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl Display for RequestToken {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// A thread to be made.
#[derive(Clone, Debug, Default)]
pub struct NewThreadRequest {
    /// The key; a new id when absent.
    pub key: Option<String>,
    /// For people.
    pub title: Option<String>,
    /// The application's own.
    pub metadata: Option<Payload>,
    /// What it continues.
    pub fork: Option<Fork>,
}

/// Where a thread is taken back to, so that something else is said there. What goes is
/// [removed](crate::Runtime::remove): read no more, and kept in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewind {
    /// This goes, and all that came after it: what was said to the agents, or what an execution writes,
    /// of which that goes which is written there.
    From(ItemId),
    /// This stays, with what it goes on with where it is an answer; all that came after it goes.
    After(ItemId),
}

impl Rewind {
    /// The item, whether it stays or goes.
    pub fn item(&self) -> &ItemId {
        match self {
            Self::From(id) | Self::After(id) => id,
        }
    }
}

/// A trigger for a thread (EK §7).
#[derive(Clone, Debug)]
pub struct ReactRequest {
    /// Whose thread.
    pub tenant: TenantId,
    /// Its key; the thread is made if there is none, unless it must be there.
    pub key: String,
    /// What was said before it and is answered with it: kept in order, in the same transaction.
    pub before: Vec<NewItem>,
    /// Where the thread is taken back to before that, in the same transaction. What runs is stopped,
    /// what waits for its turn is never answered, and the policy has no say.
    pub rewind: Option<Rewind>,
    /// What is said.
    pub item: NewItem,
    /// How it is answered.
    pub run: Run,
    /// What happens if the thread is busy.
    pub policy: Policy,
    /// Whether the thread is there: one that was deleted meanwhile is not made again, and whoever asks
    /// is told that it is gone.
    pub must_exist: bool,
    /// The client's token: repeating it gives the first answer again.
    pub token: Option<RequestToken>,
}

impl ReactRequest {
    /// An item that a thread's default agent answers, in its turn. The thread is made if there is none.
    pub fn new(tenant: TenantId, key: impl Into<String>, item: NewItem) -> Self {
        Self {
            tenant,
            key: key.into(),
            before: Vec::new(),
            rewind: None,
            item,
            run: Run::default(),
            policy: Policy::Queue,
            must_exist: false,
            token: None,
        }
    }
}

/// Answers to calls that a thread has left open.
#[derive(Clone, Debug)]
pub struct AnswerRequest {
    /// Whose thread.
    pub tenant: TenantId,
    /// Its key.
    pub key: String,
    /// An item of type `action_result` whose content is a list of [`timeline::Answer`]s. Its
    /// metadata says who answers.
    pub item: NewItem,
    /// How the run goes on; as it began when absent.
    pub run: Option<Run>,
    /// The client's token: repeating it gives the first answer again.
    pub token: Option<RequestToken>,
}

/// A trigger that is durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    /// The thread.
    pub thread_id: ThreadId,
    /// The trigger item.
    pub item_id: ItemId,
    /// The execution that answers; absent while the trigger waits, unless the request named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// The last event before this request's own: follow from here to see all of it.
    pub after: Seq,
    /// Whether it waits.
    pub queued: bool,
    /// Whether this is the answer to an earlier request with the same token.
    #[serde(skip)]
    pub repeated: bool,
}

/// What a cancel found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    /// The execution that was stopped; absent if none ran.
    pub execution_id: Option<ExecutionId>,
    /// The last event of the log.
    pub seq: Seq,
}

/// A conversation from elsewhere, as the commands that would have led to it.
#[derive(Clone, Debug, Default)]
pub struct Import {
    /// For people.
    pub title: Option<String>,
    /// The application's own.
    pub metadata: Option<Payload>,
    /// What it continues, as [`Runtime::fork_point`](crate::Runtime::fork_point) has found it.
    pub fork: Option<Fork>,
    /// When the conversation began.
    pub created_at: Option<Timestamp>,
    /// What happened, and when.
    pub commands: Vec<(Timestamp, Command)>,
}

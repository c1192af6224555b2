//! Requests that callers make of the runtime.

use interop::options::RunOptions;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt::{Display, Formatter};
use std::ops::Deref;
use store::{Run, TenantId};
use timeline::{Command, ExecutionId, Fork, ItemId, NewItem, Payload, Seq, ThreadId};

/// The rule for a trigger whose thread is busy (EK-16).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// It is queued; triggers are answered in order of arrival.
    #[default]
    Queue,
    /// It is refused.
    Reject,
    /// The running execution is stopped, and the new one starts.
    Interrupt,
}

/// The parameters of a run that continues an execution with the same parameters: a client answers
/// calls that the execution left open, and sends no options.
pub fn continued_run(payload: Option<&Payload>) -> Run {
    for_others(Run::of(payload))
}

/// The parameters of a run for a caller without options of its own.
pub(crate) fn for_others(mut run: Run) -> Run {
    if let Some(params) = &mut run.params {
        RunOptions::go_on_for_others(params);
    }
    run
}

/// A client's token for its request, with a fingerprint of the request's content.
///
/// A token with a different fingerprint belongs to another request and is refused. If either
/// request has no fingerprint, they count as the same.
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

    /// The fingerprint of the request's content, if it has one.
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

/// A thread to create.
#[derive(Clone, Debug, Default)]
pub struct NewThreadRequest {
    /// The key; a new id when absent.
    pub key: Option<String>,
    /// For people.
    pub title: Option<String>,
    /// The application's own.
    pub metadata: Option<Payload>,
    /// The thread and position that it continues.
    pub fork: Option<Fork>,
}

/// The point to which a thread is rewound, so that another message can replace the rest. The
/// removed items are [hidden from readers](crate::Runtime::remove); the log still has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rewind {
    /// Removes this item and everything after it. It is a posted message, or an execution's item;
    /// then all that the execution wrote there is removed.
    From(ItemId),
    /// Keeps this item, with the executions that it continues if it is an answer. Removes
    /// everything after it.
    After(ItemId),
}

impl Rewind {
    /// The item that the rewind names.
    pub fn item(&self) -> &ItemId {
        match self {
            Self::From(id) | Self::After(id) => id,
        }
    }
}

/// A trigger for a thread (EK §7).
#[derive(Clone, Debug)]
pub struct ReactRequest {
    /// Tenant of the thread.
    pub tenant: TenantId,
    /// Key of the thread. The thread is created if it does not exist, unless `must_exist` is set.
    pub key: String,
    /// Messages to store before `item`, in order and in the same transaction; the same execution
    /// answers them.
    pub before: Vec<NewItem>,
    /// Rewinds the thread first, in the same transaction. A running execution is stopped, queued
    /// messages are never answered, and `policy` is ignored.
    pub rewind: Option<Rewind>,
    /// The message to post.
    pub item: NewItem,
    /// The parameters of the run.
    pub run: Run,
    /// The rule if the thread is busy.
    pub policy: Policy,
    /// Whether the thread must exist. If it was deleted meanwhile, it is not created again and the
    /// request fails with [`StoreError::NotFound`](crate::StoreError::NotFound).
    pub must_exist: bool,
    /// The client's token: a repeated request with it gets the first answer.
    pub token: Option<RequestToken>,
}

impl ReactRequest {
    /// Posts an item that a thread's default agent answers, queued if necessary. The thread is
    /// created if it does not exist.
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

/// Answers to the open calls of a thread.
#[derive(Clone, Debug)]
pub struct AnswerRequest {
    /// Whose thread.
    pub tenant: TenantId,
    /// Its key.
    pub key: String,
    /// An item of type `action_result` whose content is a list of [`timeline::Answer`]s. Its
    /// metadata names the answerer.
    pub item: NewItem,
    /// The run's parameters; those of the waiting run if absent.
    pub run: Option<Run>,
    /// The client's token: a repeated request with it gets the first answer.
    pub token: Option<RequestToken>,
}

/// An accepted trigger, which is durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Accepted {
    /// The thread.
    pub thread_id: ThreadId,
    /// The trigger item.
    pub item_id: ItemId,
    /// The execution that answers; none while the trigger is queued, unless the request named the
    /// execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// The last event before this request's own. Follow from here to receive all events of the
    /// request.
    pub after: Seq,
    /// Whether it waits.
    pub queued: bool,
    /// Whether this is the answer to an earlier request with the same token.
    #[serde(skip)]
    pub repeated: bool,
}

/// The result of a cancel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    /// The execution that was stopped; absent if none ran.
    pub execution_id: Option<ExecutionId>,
    /// The last event of the log.
    pub seq: Seq,
}

/// An imported conversation, as the commands that create it.
#[derive(Clone, Debug, Default)]
pub struct Import {
    /// For people.
    pub title: Option<String>,
    /// The application's own.
    pub metadata: Option<Payload>,
    /// The fork point, as [`Runtime::fork_point`](crate::Runtime::fork_point) returned it.
    pub fork: Option<Fork>,
    /// The start of the conversation.
    pub created_at: Option<Timestamp>,
    /// The commands with their times.
    pub commands: Vec<(Timestamp, Command)>,
}

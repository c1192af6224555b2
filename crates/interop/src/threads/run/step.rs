//! One model step: a message, and tool calls.

use crate::parts::ToolPart;
use crate::threads::content::{self, Content};
use crate::threads::ids::{RunStepId, message_id, of_attempt};
use crate::threads::object::{Function, Reason, StepCall, Usage};
use crate::truncate::Cut;
use crate::{Loss, Losses};
use jiff::Timestamp;
use serde::Deserialize;
use timeline::{Payload, StepId};

/// The outcome of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::threads) enum MessageEnd {
    Whole,
    MaxTokens,
    ContentFilter,
    Cancelled,
    Expired,
    Failed,
}

impl MessageEnd {
    pub(in crate::threads) fn reason(self) -> Option<Reason> {
        match self {
            Self::Whole => None,
            Self::MaxTokens => Some(Reason::MaxTokens),
            Self::ContentFilter => Some(Reason::ContentFilter),
            Self::Cancelled => Some(Reason::RunCancelled),
            Self::Expired => Some(Reason::RunExpired),
            Self::Failed => Some(Reason::RunFailed),
        }
    }

    /// The outcome of the run step that wrote the message. A message cut off at the model's limit
    /// counts as written.
    pub(in crate::threads) fn step(self) -> End {
        match self {
            Self::Whole | Self::MaxTokens | Self::ContentFilter => End::Completed,
            Self::Cancelled => End::Cancelled,
            Self::Expired => End::Expired,
            Self::Failed => End::Failed,
        }
    }
}

impl From<Cut> for MessageEnd {
    fn from(cut: Cut) -> Self {
        match cut {
            Cut::Tokens => Self::MaxTokens,
            Cut::ContentFilter => Self::ContentFilter,
        }
    }
}

/// The outcome of a run step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::threads) enum End {
    Completed,
    Cancelled,
    Expired,
    Failed,
}

/// A message of a step.
#[derive(Clone, Debug, Default)]
pub(in crate::threads) struct Message {
    /// By the parts' positions.
    pub(in crate::threads) content: Vec<(u32, Content)>,
    pub(in crate::threads) end: Option<(MessageEnd, Timestamp)>,
}

/// The calls of a step.
#[derive(Clone, Debug, Default)]
pub(in crate::threads) struct Calls {
    pub(in crate::threads) list: Vec<StepCall>,
    n_open: usize,
    /// Number of entries that a stream has read.
    n_known: usize,
    last: Option<Timestamp>,
    pub(in crate::threads) end: Option<(End, Timestamp)>,
}

impl Calls {
    /// Calls that have ended.
    pub(super) fn ended(list: Vec<StepCall>, end: End, at: Timestamp) -> Self {
        Self {
            list,
            end: Some((end, at)),
            ..Self::default()
        }
    }
}

/// One model step.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) id: StepId,
    /// Number of failed attempts before the current one.
    pub(super) attempt: usize,
    pub(super) created_at: Timestamp,
    pub(super) message: Option<Message>,
    pub(super) calls: Option<Calls>,
    pub(super) usage: Option<Usage>,
    /// Whether its content and its calls are stored.
    is_complete: bool,
    /// Whether its content was removed. Its ids, its usage and its outcome remain.
    pub(super) is_removed: bool,
}

impl Step {
    pub(super) fn new(id: StepId, created_at: Timestamp) -> Self {
        Self {
            id,
            attempt: 0,
            created_at,
            message: None,
            calls: None,
            usage: None,
            is_complete: false,
            is_removed: false,
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether the step shows its streamed deltas.
    pub(super) fn is_streaming(&self) -> bool {
        !self.is_complete && !self.is_removed
    }

    /// A removed step has called a tool.
    pub(super) fn add_removed_call(&mut self, at: Timestamp) {
        self.calls = Some(Calls::ended(Vec::new(), End::Completed, at));
    }

    pub(super) fn reset(&mut self) {
        *self = Self {
            attempt: self.attempt + 1,
            ..Self::new(self.id.clone(), self.created_at)
        };
    }

    /// The id of its message.
    pub(super) fn message_id(&self) -> String {
        of_attempt(message_id(self.id.as_str()), self.attempt)
    }

    /// The id of the run step that wrote its message.
    pub(super) fn written_id(&self) -> String {
        of_attempt(
            RunStepId::Message(self.id.to_string()).write(),
            self.attempt,
        )
    }

    /// The id of the run step that made its calls.
    pub(super) fn calls_id(&self) -> String {
        of_attempt(RunStepId::Calls(self.id.to_string()).write(), self.attempt)
    }

    /// Adds a part that is no call.
    pub(super) fn add_content(
        &mut self,
        idx: u32,
        part: &Payload,
        at: &str,
        losses: &mut Vec<Loss>,
    ) {
        let mut lost = Losses::default();
        let shown = content::content_view(part, at, &mut lost);
        losses.extend(lost);
        let Some(shown) = shown.filter(|shown| !is_empty(shown)) else {
            return;
        };
        let content = &mut self.message.get_or_insert_default().content;
        if self.is_removed {
            return;
        }
        match content.binary_search_by_key(&idx, |(known, _)| *known) {
            Ok(place) => content.splice(place..=place, [(idx, shown)]).for_each(drop),
            Err(place) => content.insert(place, (idx, shown)),
        }
    }

    /// Sets the content from streamed texts, unless parts are stored.
    pub(super) fn set_streamed(&mut self, texts: Vec<String>) {
        if self.message.is_some() || texts.is_empty() {
            return;
        }
        let content = (0..).zip(texts.into_iter().map(Content::text)).collect();
        self.message = Some(Message { content, end: None });
    }

    /// Adds a call. Returns its index.
    pub(super) fn add_call(&mut self, tool: &ToolPart) -> usize {
        let calls = self.calls.get_or_insert_default();
        calls.n_open += 1;
        calls.list.push(StepCall {
            id: tool.tool_call_id.clone(),
            kind: "function",
            function: Function {
                name: tool.tool_name().to_owned(),
                arguments: tool.arguments().to_owned(),
                output: None,
            },
        });
        calls.list.len() - 1
    }

    /// The calls that were not read yet, once they are stored or have ended.
    pub(super) fn take_new_calls(&mut self) -> Vec<StepCall> {
        let is_complete = self.is_complete;
        let calls = self.calls.as_mut();
        let Some(calls) = calls.filter(|calls| is_complete || calls.end.is_some()) else {
            return Vec::new();
        };
        let new = calls.list.iter().skip(calls.n_known).cloned().collect();
        calls.n_known = calls.list.len();
        new
    }

    /// Adds the result of a call. Returns whether all calls have results now.
    pub(super) fn resolve(&mut self, call: usize, output: String, at: Timestamp) -> bool {
        let is_complete = self.is_complete;
        let Some(calls) = &mut self.calls else {
            return false;
        };
        let Some(call) = calls.list.get_mut(call) else {
            return false;
        };
        if call.function.output.is_some() {
            return false;
        }
        call.function.output = Some(output);
        calls.n_open = calls.n_open.saturating_sub(1);
        calls.last = calls.last.max(Some(at));
        is_complete && end_calls(calls)
    }

    /// Marks the content as complete. Returns whether the message and the calls end with that.
    pub(super) fn complete(&mut self, end: MessageEnd, at: Timestamp) -> (bool, bool) {
        self.is_complete = true;
        let message = match &mut self.message {
            Some(message) if message.end.is_none() => {
                message.end = Some((end, at));
                true
            }
            Some(_) | None => false,
        };
        (message, self.calls.as_mut().is_some_and(end_calls))
    }

    /// Ends the calls if they are open, because the run has ended.
    pub(super) fn end(&mut self, end: End, at: Timestamp) -> bool {
        let open = self.calls.as_mut().filter(|calls| calls.end.is_none());
        open.is_some_and(|calls| {
            calls.end = Some((end, at));
            true
        })
    }
}

fn end_calls(calls: &mut Calls) -> bool {
    let ends = calls.n_open == 0 && calls.end.is_none();
    if let Some(at) = calls.last.filter(|_| ends) {
        calls.end = Some((End::Completed, at));
        return true;
    }
    false
}

fn is_empty(content: &Content) -> bool {
    match content {
        Content::Text { text } => text.value.is_empty(),
        Content::Refusal { refusal } => refusal.is_empty(),
        Content::ImageUrl { .. } | Content::ImageFile { .. } => false,
    }
}

/// The usage of one model call.
pub(super) fn usage_of(usage: &Payload) -> Option<Usage> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Counts {
        #[serde(default)]
        input_tokens: u64,
        #[serde(default)]
        output_tokens: u64,
    }
    let counts: Counts = usage.read().ok()?;
    Some(Usage {
        prompt_tokens: counts.input_tokens,
        completion_tokens: counts.output_tokens,
        total_tokens: counts.input_tokens.saturating_add(counts.output_tokens),
    })
}

pub(super) fn sum(a: Usage, b: Usage) -> Usage {
    Usage {
        completion_tokens: a.completion_tokens.saturating_add(b.completion_tokens),
        prompt_tokens: a.prompt_tokens.saturating_add(b.prompt_tokens),
        total_tokens: a.total_tokens.saturating_add(b.total_tokens),
    }
}

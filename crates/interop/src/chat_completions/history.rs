//! The history of a client, matched against the messages of the thread.

use super::message::{HistoryCall, HistoryMessage, MessageContent};
use super::shown::Shown;
use crate::run::{RunEvent, hands_over, replay};
use serde_json::Value;
use timeline::{
    Answer, AnswerContent, Entry, ExecutionStatus, Item, ItemType, Payload, Reaction, Role,
    Transcript, messages_with_answers,
};

/// The messages of a thread, or those at its two ends, as this protocol has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredMessages {
    /// The last messages; all of them if there is no beginning.
    end: Vec<Stored>,
    /// The first messages of a thread that has more than its end.
    beginning: Option<Vec<Stored>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Stored {
    content: MessageContent,
    /// Whether a client may not have it: an answer that was cut off, or that follows an approval.
    is_optional: bool,
}

/// Where a history differs from the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryDifference {
    /// A JSON pointer to the first message that differs.
    pub pointer: String,
    /// The difference.
    pub what: String,
}

impl StoredMessages {
    /// The messages of a whole thread. The text of answers that were cut off is there if the transcript was
    /// read with its chunks.
    pub fn whole(transcript: &Transcript) -> Self {
        Self {
            end: stored(transcript),
            beginning: None,
        }
    }

    /// The first and the last messages of a thread; both may have some in common.
    pub fn from_both_ends(beginning: &Transcript, end: &Transcript) -> Self {
        Self {
            end: stored(end),
            beginning: Some(stored(beginning)),
        }
    }

    /// The last messages, in order.
    pub fn contents(&self) -> impl Iterator<Item = &MessageContent> {
        self.end.iter().map(|stored| &stored.content)
    }

    fn beginning(&self) -> &[Stored] {
        self.beginning.as_ref().unwrap_or(&self.end)
    }
}

fn stored(transcript: &Transcript) -> Vec<Stored> {
    let mut messages = Vec::new();
    let mut answers_client = true;
    let mut run: Vec<&Reaction> = Vec::new();
    for entry in &transcript.entries {
        match entry {
            Entry::Item(item) => {
                let contents = item_messages(item);
                if item.item_type != ItemType::ItemReference {
                    answers_client = !contents.is_empty();
                }
                messages.extend(contents.into_iter().map(|content| Stored {
                    content,
                    is_optional: false,
                }));
            }
            Entry::Reaction(reaction) => {
                run.push(reaction);
                if !hands_over(reaction) {
                    messages.extend(answer(&std::mem::take(&mut run), !answers_client));
                }
            }
        }
    }
    messages.extend(answer(&run, true));
    messages
}

/// The answer of a run; none if it shows nothing.
fn answer(run: &[&Reaction], is_optional: bool) -> Option<Stored> {
    let last = run.last()?;
    let mut shown = Shown::default();
    for (_, event) in replay(run.iter().copied(), true) {
        if let RunEvent::ExecutionEnded {
            status,
            interruption,
            is_last: true,
            ..
        } = event
        {
            // A failed run is no answer; its client was told why.
            let _ = shown.end(status, interruption);
        } else {
            shown.event(&event);
        }
    }
    let is_whole = last.execution.status == ExecutionStatus::Completed;
    let is_empty = shown.content.is_empty() && shown.calls.is_empty();
    (!is_empty).then_some(Stored {
        content: MessageContent::Answer {
            text: shown.content,
            calls: shown.calls,
        },
        is_optional: is_optional || !is_whole,
    })
}

/// The messages of an item: of users and systems, and results of tools.
fn item_messages(item: &Item) -> Vec<MessageContent> {
    match item.item_type {
        ItemType::Message => vec![message(item)],
        ItemType::ActionResult => {
            let answers = Answer::read(item.content.as_ref()).unwrap_or_default();
            let results = answers.into_iter().filter_map(result);
            let said = messages_with_answers(item);
            results.chain(said.iter().map(message)).collect()
        }
        ItemType::ActionExecute | ItemType::ItemReference => Vec::new(),
    }
}

fn message(item: &Item) -> MessageContent {
    let content = item.content.as_ref().map(Payload::value);
    let parts = match content {
        Some(Value::Array(parts)) => parts,
        Some(Value::String(text)) => vec![serde_json::json!({"type": "input_text", "text": text})],
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            Vec::new()
        }
    };
    match item.role {
        Some(Role::Assistant) => MessageContent::Answer {
            text: parts.iter().filter_map(text_of).collect(),
            calls: Vec::new(),
        },
        Some(role @ (Role::User | Role::System | Role::Developer)) => {
            MessageContent::Message { role, parts }
        }
        None => MessageContent::Message {
            role: Role::User,
            parts,
        },
    }
}

fn result(answer: Answer) -> Option<MessageContent> {
    let output = match answer.content {
        AnswerContent::Output(output) => output.value(),
        AnswerContent::Failure(what) => what.into(),
        AnswerContent::Approved { .. } | AnswerContent::Denied { .. } | AnswerContent::Resumed => {
            return None;
        }
    };
    Some(MessageContent::Result {
        call_id: answer.tool_call_id,
        output,
    })
}

/// The messages of a request that are new. Those before them must be the thread's.
///
/// The messages up to the last answer are the history, which may leave out what the thread begins with.
/// Messages without an answer at the end of the thread are not added again. Without an answer among
/// them, all messages are new, but for a system prompt that the thread begins with.
///
/// # Errors
///
/// The first message that is not the thread's.
pub fn added<'a>(
    sent: &'a [HistoryMessage],
    stored: &StoredMessages,
) -> Result<Vec<&'a HistoryMessage>, HistoryDifference> {
    let sent: Vec<&HistoryMessage> = sent.iter().filter(|it| !it.is_empty()).collect();
    let known = &stored.end;
    let is_answer = |content: &MessageContent| matches!(content, MessageContent::Answer { .. });
    let n_history = sent.iter().rposition(|it| is_answer(&it.content));
    let n_history = n_history.map_or(0, |last| last + 1);
    let (history, new) = sent.split_at(n_history);
    let n_answered = known
        .iter()
        .rposition(|it| is_answer(&it.content) && !it.is_optional);
    let n_answered = n_answered.map_or(0, |last| last + 1);
    if history.is_empty() {
        let n_prompts = n_prompts(new, stored.beginning()).unwrap_or_default();
        let rest = new.get(n_prompts..).unwrap_or_default();
        let n_prompts_in_end = if stored.beginning.is_none() {
            n_prompts
        } else {
            0
        };
        let waiting = known
            .get(n_answered.max(n_prompts_in_end)..)
            .unwrap_or_default();
        return Ok(after(waiting, rest).unwrap_or(rest).to_vec());
    }
    // The history ends with the last answer, or with a later one that a client need not have.
    let ends = (n_answered..=known.len()).rev();
    let ends = ends.filter(|end| {
        let last = end.checked_sub(1).and_then(|last| known.get(last));
        *end == n_answered || last.is_some_and(|it| is_answer(&it.content))
    });
    for (answered, waiting) in ends.map(|end| known.split_at(end)) {
        if ends_with(answered, history, stored.beginning())
            && let Some(added) = after(waiting, new)
        {
            return Ok(added.to_vec());
        }
    }
    Err(difference(&sent, stored))
}

/// The messages after those without an answer; none if the new messages do not begin with them.
fn after<'a, 's>(
    waiting: &[Stored],
    new: &'a [&'s HistoryMessage],
) -> Option<&'a [&'s HistoryMessage]> {
    let waiting = waiting.iter().filter(|it| !it.is_optional);
    let n = waiting.clone().count();
    let is_begun = new
        .iter()
        .zip(waiting)
        .all(|(one, other)| is_same(one, other));
    new.get(n..).filter(|_| is_begun)
}

/// How many system prompts both begin with; none if they differ.
fn n_prompts(sent: &[&HistoryMessage], known: &[Stored]) -> Option<usize> {
    let prompts = sent.iter().take_while(|it| it.is_prompt());
    let n = prompts.clone().count();
    let are_known = known.len() >= n && prompts.zip(known).all(|(one, other)| is_same(one, other));
    are_known.then_some(n)
}

/// Whether these messages of a thread end with a history. The history may leave out the first of them,
/// but not the prompts of the beginning.
fn ends_with(known: &[Stored], history: &[&HistoryMessage], beginning: &[Stored]) -> bool {
    let mut left = history;
    let mut place = known.len();
    while let Some((last, before)) = left.split_last() {
        let Some(next) = place.checked_sub(1).and_then(|place| known.get(place)) else {
            return false;
        };
        if is_same(last, next) {
            left = before;
        } else if !next.is_optional {
            break;
        }
        place -= 1;
    }
    let are_prompts = left.iter().all(|it| it.is_prompt());
    left.is_empty() || (are_prompts && n_prompts(left, beginning) == Some(left.len()))
}

/// The first message that is not the thread's: read from the thread's beginning, or from the place in its
/// end that has the first message after the prompts, whichever agrees longer.
fn difference(sent: &[&HistoryMessage], stored: &StoredMessages) -> HistoryDifference {
    let mut agreed = agreed(sent, stored.beginning());
    let n_prompts = n_prompts(sent, stored.beginning()).unwrap_or_default();
    let window = sent.get(n_prompts..).unwrap_or_default();
    let first = window.first();
    let place = first.and_then(|first| stored.end.iter().position(|it| is_same(first, it)));
    if let Some(known) = place.and_then(|place| stored.end.get(place..)) {
        let (n, has_more) = self::agreed(window, known);
        if n_prompts + n > agreed.0 {
            agreed = (n_prompts + n, has_more);
        }
    }
    let (n, has_more) = agreed;
    let differs = sent.get(n).or_else(|| sent.last());
    let is_last = n + 1 >= sent.len();
    let what = if is_last && has_more {
        "the thread has gone on after this message"
    } else {
        "the thread has no such message here"
    };
    HistoryDifference {
        pointer: differs.map(|it| it.pointer()).unwrap_or_default(),
        what: what.to_owned(),
    }
}

/// How many of these messages are the thread's, read from here, and whether the thread has more after the
/// message that was read last.
fn agreed(sent: &[&HistoryMessage], known: &[Stored]) -> (usize, bool) {
    let mut known = known.iter();
    let mut n = 0;
    for message in sent {
        let next = known
            .by_ref()
            .find(|it| !it.is_optional || is_same(message, it));
        if !next.is_some_and(|it| is_same(message, it)) {
            break;
        }
        n += 1;
    }
    (n, known.next().is_some())
}

/// Whether a message equals the stored one. White space around texts does not count, nor the spelling of
/// arguments.
fn is_same(sent: &HistoryMessage, known: &Stored) -> bool {
    match (&sent.content, &known.content) {
        (
            MessageContent::Message { role, parts },
            MessageContent::Message {
                role: known_role,
                parts: known_parts,
            },
        ) => role == known_role && shown(parts) == shown(known_parts),
        (
            MessageContent::Answer { text, calls },
            MessageContent::Answer {
                text: known_text,
                calls: known_calls,
            },
        ) => {
            text.trim() == known_text.trim()
                && calls.len() == known_calls.len()
                && calls
                    .iter()
                    .zip(known_calls)
                    .all(|(one, other)| is_same_call(one, other))
        }
        (
            MessageContent::Result { call_id, output },
            MessageContent::Result {
                call_id: known_id,
                output: known_output,
            },
        ) => call_id == known_id && output_text(output) == output_text(known_output),
        (
            MessageContent::Message { .. }
            | MessageContent::Answer { .. }
            | MessageContent::Result { .. },
            _,
        ) => false,
    }
}

fn is_same_call(one: &HistoryCall, other: &HistoryCall) -> bool {
    let read = |call: &HistoryCall| serde_json::from_str::<Value>(&call.arguments).ok();
    let is_same_text = one.arguments == other.arguments;
    one.id == other.id
        && one.name == other.name
        && (is_same_text || (read(one).is_some() && read(one) == read(other)))
}

/// The visible content of a message: its texts, and the URLs or data of its files.
fn shown(parts: &[Value]) -> Vec<&str> {
    let members = ["text", "image_url", "file_data", "file_url"];
    let shown = parts.iter().filter_map(|part| {
        let mut values = members.iter().filter_map(|member| part[*member].as_str());
        values.next()
    });
    shown.map(str::trim).collect()
}

fn text_of(part: &Value) -> Option<&str> {
    part["text"].as_str().or_else(|| part["refusal"].as_str())
}

/// The result of a tool, as text.
fn output_text(output: &Value) -> String {
    match output {
        Value::String(text) => text.clone(),
        Value::Array(parts)
            if !parts.is_empty() && parts.iter().all(|it| text_of(it).is_some()) =>
        {
            parts.iter().filter_map(text_of).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            output.to_string()
        }
    }
}

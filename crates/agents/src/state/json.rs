//! The JSON form of a state (UAP §6.4, §12.1).

use super::{AgentState, Rest, first, is_same, since};
use crate::depth::MAX_DEPTH;
use crate::id::Id;
use crate::plan::PlanStep;
use crate::trace::SubagentExecutionTrace;
use crate::writer::{self, Json};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use upp::{Message, Messages, ToolCallId};

/// The version this crate writes and reads (UAP §12.1).
const VERSION: &str = "1.0.0";

/// Why a text is no state (UAP §12.3).
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It was written by another version of the protocol (UAP §12.3, 5).
    #[error("the state has UAP version {found:?}, not {VERSION:?}")]
    Version {
        /// The version it names.
        found: String,
    },
    /// The text is longer than it may be.
    #[error("the state's JSON has {length} bytes, more than {limit}")]
    TooLong {
        /// Its length, in bytes.
        length: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// Something in the state is nested so deeply that it could be written, but not read again.
    #[error("the state can't be written: something in it is nested too deeply")]
    TooDeep(#[source] serde_json::Error),
    /// It is not the JSON of a state.
    #[error("the state is not an AgentStateJSON")]
    Malformed(#[source] serde_json::Error),
    /// It was written without what an earlier state has, and is not read with that one.
    #[error("the state continues an earlier state, and the supplied state is another one")]
    Earlier,
}

/// How large a state may be that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateLimits {
    /// How long its JSON may be, in bytes; 256 MiB by default.
    pub max_bytes: usize,
}

impl Default for StateLimits {
    fn default() -> Self {
        Self {
            max_bytes: 256 << 20,
        }
    }
}

/// The number of elements, from the start of each list, that a state shares with an earlier one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Inherited {
    messages: usize,
    reasoning: usize,
    subagent_traces: usize,
}

impl Inherited {
    fn of(state: &AgentState, earlier: &AgentState) -> Self {
        let (rest, known) = (&state.rest, &earlier.rest);
        Self {
            messages: state.messages.n_common(&earlier.messages, is_same),
            reasoning: n_common(&rest.reasoning, &known.reasoning),
            subagent_traces: n_common(&rest.subagent_traces, &known.subagent_traces),
        }
    }

    fn is_in(self, earlier: &AgentState) -> bool {
        self.messages <= earlier.messages.len()
            && self.reasoning <= earlier.reasoning().len()
            && self.subagent_traces <= earlier.subagent_traces().len()
    }
}

/// How many entries two lists have in common. Entries that they share are not compared.
fn n_common<T: PartialEq + ?Sized>(
    a: &rpds::VectorSync<Arc<T>>,
    b: &rpds::VectorSync<Arc<T>>,
) -> usize {
    let pairs = a.iter().zip(b);
    pairs
        .take_while(|(a, b)| Arc::ptr_eq(a, b) || a == b)
        .count()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    version: &'a str,
    id: &'a str,
    messages: Vec<&'a Message>,
    step: u64,
    metadata: &'a Map<String, Value>,
    reasoning: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<&'a [PlanStep]>,
    /// Not in UAP §12.1: the run's phase within a step. Absent between steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subagent_traces: Vec<&'a SubagentExecutionTrace>,
    /// Not in UAP §12.1: what is left out, for an earlier state has it. Absent in whole states.
    #[serde(skip_serializing_if = "Option::is_none")]
    inherited: Option<Inherited>,
    /// Not in UAP §12.1: the open calls whose sub-agents wait on a host.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    suspended: &'a BTreeSet<ToolCallId>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Read<'a> {
    #[serde(borrow)]
    version: Cow<'a, str>,
    id: Arc<str>,
    #[serde(deserialize_with = "messages")]
    messages: Messages,
    step: u64,
    metadata: Arc<Map<String, Value>>,
    #[serde(default, deserialize_with = "or_default")]
    reasoning: Vec<Arc<str>>,
    #[serde(default)]
    plan: Option<Arc<[PlanStep]>>,
    #[serde(default)]
    phase: Option<Arc<str>>,
    #[serde(default, deserialize_with = "or_default")]
    subagent_traces: Vec<Arc<SubagentExecutionTrace>>,
    #[serde(default)]
    inherited: Option<Inherited>,
    #[serde(default, deserialize_with = "or_default")]
    suspended: BTreeSet<ToolCallId>,
}

/// Reads an optional field; `null` counts as absent.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Reads the conversation where it will lie.
fn messages<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Messages, D::Error> {
    deserializer.deserialize_seq(MessagesVisitor)
}

struct MessagesVisitor;

impl<'de> Visitor<'de> for MessagesVisitor {
    type Value = Messages;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Messages, A::Error> {
        let mut messages = Messages::new();
        while let Some(message) = seq.next_element()? {
            messages.push_back_mut(message);
        }
        Ok(messages)
    }
}

#[derive(Deserialize)]
struct Version<'a> {
    #[serde(borrow)]
    version: Cow<'a, str>,
}

/// A text that is no state: perhaps one of another version, which may look otherwise.
fn refusal(json: &str, error: serde_json::Error) -> StateError {
    match serde_json::from_str::<Version<'_>>(json) {
        Ok(read) => check(read.version).map_or_else(|it| it, |()| StateError::Malformed(error)),
        Err(error) => StateError::Malformed(error),
    }
}

fn check(version: Cow<'_, str>) -> Result<(), StateError> {
    if version == VERSION {
        return Ok(());
    }
    Err(StateError::Version {
        found: version.into_owned(),
    })
}

/// A state to be written without its first messages.
pub(crate) struct StateTail<'a> {
    state: &'a AgentState,
    n_skipped: usize,
}

impl<'a> StateTail<'a> {
    pub(crate) fn new(state: &'a AgentState, n_skipped: usize) -> Self {
        Self { state, n_skipped }
    }
}

impl Serialize for StateTail<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let skipped = Inherited {
            messages: self.n_skipped,
            ..Inherited::default()
        };
        written(self.state, skipped, None).serialize(serializer)
    }
}

/// A state as it is written without what is skipped.
fn written(state: &AgentState, skipped: Inherited, inherited: Option<Inherited>) -> Written<'_> {
    let messages = (skipped.messages..state.messages.len()).filter_map(|at| state.messages.get(at));
    let traces = state.subagent_traces_since(skipped.subagent_traces);
    Written {
        version: VERSION,
        id: state.id(),
        messages: messages.collect(),
        step: state.step,
        metadata: state.metadata(),
        reasoning: state.reasoning_since(skipped.reasoning).collect(),
        plan: state.plan(),
        phase: state.phase(),
        subagent_traces: traces.collect(),
        suspended: state.suspended(),
        inherited,
    }
}

impl Serialize for AgentState {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        StateTail::new(self, 0).serialize(serializer)
    }
}

impl AgentState {
    /// Writes the state as an `AgentStateJSON` text (UAP §6.4, §12.1).
    ///
    /// It is a text and not a [`Value`], for a value would lose the spelling of numbers in tool
    /// arguments. It fails when a part of the state can't be written. It also fails when a part is
    /// nested so deeply that the text could not be read again ([`StateError::TooDeep`]): the
    /// metadata, or a message of the application. Arguments and results of tools are never nested so
    /// deeply ([`MAX_DEPTH`]).
    pub fn to_json(&self) -> Result<String, StateError> {
        let Json { text: json, depth } =
            writer::write(self, self.likely_length()).map_err(StateError::Malformed)?;
        // Arguments of calls are kept as text, so a deep text may well be readable.
        if depth > MAX_DEPTH
            && let Err(StateError::Malformed(source)) = Self::read(&json)
        {
            return Err(StateError::TooDeep(source));
        }
        Ok(json)
    }

    /// About how many bytes its JSON has, so that the text need not grow often.
    fn likely_length(&self) -> usize {
        1024 + 256 * self.messages.len()
    }

    /// Reads a state within the default [`StateLimits`].
    pub fn from_json(json: &str) -> Result<Self, StateError> {
        Self::from_json_within(json, StateLimits::default())
    }

    /// Restores exactly the state that was written, with its id and its messages' ids and times.
    /// Any other version is refused (UAP §6.5, §12.3).
    ///
    /// The structure is that of UAP §12.1 (UAP §15.3). A field that is missing, repeated or of
    /// another type is refused; so is JSON nested more deeply than about 120 levels. Optional
    /// fields may be `null`. Unknown fields are ignored.
    ///
    /// Whether the messages form a valid conversation is not checked. Results without calls,
    /// repeated ids and unknown dependencies of plan steps are read unchanged, as applications may
    /// cut and merge histories. The model's provider decides whether it accepts the conversation.
    pub fn from_json_within(json: &str, limits: StateLimits) -> Result<Self, StateError> {
        if json.len() > limits.max_bytes {
            return Err(StateError::TooLong {
                length: json.len(),
                limit: limits.max_bytes,
            });
        }
        Self::read(json)
    }

    /// Writes the state without the messages, reasoning and traces that it begins with as `earlier`
    /// does: in a row of states, each is so written at the cost of what it adds. It is not the JSON
    /// of UAP §12.1; [`from_json_since`](Self::from_json_since) reads it, and nothing else does.
    pub fn to_json_since(&self, earlier: &Self) -> Result<String, StateError> {
        let inherited = Inherited::of(self, earlier);
        let written = written(self, inherited, Some(inherited));
        let Json { text: json, depth } =
            writer::write(&written, 0).map_err(StateError::Malformed)?;
        if depth > MAX_DEPTH
            && let Err(StateError::Malformed(source)) = Self::from_json_since(&json, earlier)
        {
            return Err(StateError::TooDeep(source));
        }
        Ok(json)
    }

    /// Restores exactly the state that was written, with its id, from the same earlier state. It is
    /// refused if the earlier state has less than the written one shares with it.
    pub fn from_json_since(json: &str, earlier: &Self) -> Result<Self, StateError> {
        let read: Read<'_> = serde_json::from_str(json).map_err(|it| refusal(json, it))?;
        let inherited = read.inherited.unwrap_or_default();
        if !inherited.is_in(earlier) {
            return Err(StateError::Earlier);
        }
        let tail = Self::of_read(read)?;
        let mut rest = Rest::clone(&tail.rest);
        rest.reasoning = first(&earlier.rest.reasoning, inherited.reasoning);
        rest.reasoning
            .extend(since(&tail.rest.reasoning, 0).cloned());
        let traces = &earlier.rest.subagent_traces;
        rest.subagent_traces = first(traces, inherited.subagent_traces);
        rest.subagent_traces
            .extend(since(&tail.rest.subagent_traces, 0).cloned());
        Ok(Self {
            rest: Arc::new(rest),
            ..tail.with_inherited(earlier.messages.first_n(inherited.messages))
        })
    }

    fn read(json: &str) -> Result<Self, StateError> {
        let read: Read<'_> = serde_json::from_str(json).map_err(|it| refusal(json, it))?;
        if read.inherited.is_some() {
            return Err(StateError::Earlier);
        }
        Self::of_read(read)
    }

    fn of_read(read: Read<'_>) -> Result<Self, StateError> {
        check(read.version)?;
        Ok(Self {
            id: Id::Fixed(read.id),
            messages: read.messages,
            step: read.step,
            rest: Arc::new(Rest {
                metadata: read.metadata,
                reasoning: read.reasoning.into_iter().collect(),
                plan: read.plan,
                phase: read.phase,
                last_request: super::LastRequest::default(),
                subagent_traces: read.subagent_traces.into_iter().collect(),
                suspended: read.suspended,
            }),
        })
    }
}

//! Puts the tool calls of a stream together, however the provider cuts them.

use super::chunk::CallDelta;
use crate::codec::fields::Field;
use crate::codec::{AnswerBuilder, order};
use crate::event::StreamEvent;
use crate::message::MessageId;
use crate::tool::{Arguments, ToolCall, ToolCallId};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug, Default)]
struct Call {
    /// The index of its first delta.
    index: Option<u64>,
    /// The provider's id.
    id: Option<ToolCallId>,
    /// Whether another call had this id before.
    again: bool,
    /// The id as reported to the reader; fixed with the first event.
    told: Option<ToolCallId>,
    name: Arc<str>,
    /// Arguments that no event has reported yet.
    waiting: String,
    /// Arguments that events have reported.
    arguments: String,
    /// The calls that it waits for.
    after: Vec<ToolCallId>,
}

impl Call {
    /// Whether it has this id.
    fn is(&self, id: Option<&str>) -> bool {
        self.id.as_ref().map(ToolCallId::as_str) == id
    }
}

/// The calls of one response.
///
/// A delta belongs to a call by its `index`; without an index, by its id; without either, it continues
/// the last call. A delta with a tool name and a foreign id starts a new call, whatever its index: some
/// providers use the index 0 for all calls. So does a delta with a tool name and a new index. If its id
/// belongs to another call already, the new call gets an id of ours.
#[derive(Debug, Default)]
pub(super) struct Calls {
    all: Vec<Call>,
    /// The index of the calls once there are many; before that, a linear search finds them.
    found: Option<Found>,
}

/// The positions of calls.
#[derive(Debug, Default)]
struct Found {
    /// The latest call of each index.
    by_index: BTreeMap<u64, usize>,
    /// The first call of each id.
    by_id: BTreeMap<Arc<str>, usize>,
}

impl Found {
    fn put_index(&mut self, index: Option<u64>, at: usize) {
        self.by_index.extend(index.map(|index| (index, at)));
    }

    fn put_id(&mut self, id: &ToolCallId, at: usize) {
        self.by_id.entry(Arc::clone(&id.0)).or_insert(at);
    }
}

/// Up to this many calls, a linear search is faster than a sorted index.
const FEW: usize = 8;

impl Calls {
    pub(super) fn push(&mut self, delta: &CallDelta<'_>, answer: &mut AnswerBuilder) {
        let id = delta.id.text();
        let function = delta.function.0.as_ref();
        let name = function.and_then(|function| function.name.text());
        let position = self.position(delta.index.0, id, name);
        let first = id.and_then(|id| self.with_id(id));
        let Some(call) = self.all.get_mut(position) else {
            return;
        };
        if let Some(id) = id.filter(|_| call.id.is_none()) {
            let id = ToolCallId::from(id);
            call.again = first.is_some_and(|first| first != position);
            if let Some(found) = &mut self.found {
                found.put_id(&id, position);
            }
            call.id = Some(id);
        }
        // Some providers repeat the name in each delta.
        if let Some(name) = name.filter(|_| call.name.is_empty()) {
            call.name = name.into();
        }
        if let Field::Other(after) = &delta.after {
            call.after = order(after);
        }
        match function.map(|function| &function.arguments) {
            Some(Field::Text(text)) => call.waiting.push_str(text),
            Some(Field::Other(arguments)) if arguments.is_object() => {
                call.waiting.push_str(&arguments.to_string());
            }
            Some(Field::Nothing | Field::Other(_)) | None => {}
        }
        if !call.name.is_empty() && (call.told.is_none() || !call.waiting.is_empty()) {
            answer.emit(tell(position, call));
        }
    }

    /// Emits the calls that never got a name, so that no output of the model is lost.
    pub(super) fn flush(&mut self, answer: &mut AnswerBuilder) {
        for (position, call) in self.all.iter_mut().enumerate() {
            if call.told.is_none() {
                answer.emit(tell(position, call));
            }
        }
    }

    /// Marks the last call of a cut-off answer. A call whose arguments never came must not read as a
    /// call without arguments. All calls must have been emitted before.
    pub(super) fn truncate(&mut self, answer: &mut AnswerBuilder) {
        let last = self.all.len().saturating_sub(1);
        if let Some(call) = self.all.last_mut()
            && Arguments::from_text(&call.arguments).is_empty()
        {
            call.waiting.push_str(Arguments::CUT);
            answer.emit(tell(last, call));
        }
    }

    /// The calls, in order. All must have been emitted before.
    pub(super) fn finish(self) -> Vec<ToolCall> {
        let calls = self.all.into_iter();
        let calls = calls.map(|call| ToolCall {
            tool_call_id: call.told.unwrap_or_else(|| ToolCallId::from("")),
            tool_name: call.name,
            arguments: Arguments::from_text(&call.arguments),
            after: call.after,
        });
        calls.collect()
    }

    fn position(&mut self, index: Option<u64>, id: Option<&str>, name: Option<&str>) -> usize {
        let at_index = index.and_then(|index| self.at_index(index));
        let is_here = |at: &usize| {
            let call = self.all.get(*at);
            id.is_some() && call.is_some_and(|call| call.is(id))
        };
        let same = at_index.filter(is_here).or_else(|| self.with_id(id?));
        let begins = index.is_some() && at_index.is_none() && name.is_some();
        if let Some(position) = same.filter(|_| !begins) {
            return position;
        }
        let last = self.all.len().checked_sub(1);
        let found = match index {
            Some(_) => at_index,
            None if id.is_some() || name.is_some() => None,
            None => last,
        };
        let foreign = found.and_then(|at| self.all.get(at)).is_some_and(|call| {
            id.is_some() && name.is_some() && call.id.is_some() && !call.is(id)
        });
        if let Some(position) = found.filter(|_| !foreign) {
            return position;
        }
        let position = self.all.len();
        // Most answers have one call, and a list makes room for four at once.
        if self.all.is_empty() {
            self.all.reserve_exact(1);
        }
        self.all.push(Call {
            index,
            ..Call::default()
        });
        match &mut self.found {
            Some(found) => found.put_index(index, position),
            None if position >= FEW => {
                let found = self.found.insert(Found::default());
                for (at, call) in self.all.iter().enumerate() {
                    found.put_index(call.index, at);
                    call.id.iter().for_each(|id| found.put_id(id, at));
                }
            }
            None => {}
        }
        position
    }

    /// The latest call that started under this index.
    fn at_index(&self, index: u64) -> Option<usize> {
        match &self.found {
            Some(found) => found.by_index.get(&index).copied(),
            None => self.all.iter().rposition(|call| call.index == Some(index)),
        }
    }

    /// The first call with this id.
    fn with_id(&self, id: &str) -> Option<usize> {
        match &self.found {
            Some(found) => found.by_id.get(id).copied(),
            None => self.all.iter().position(|call| call.is(Some(id))),
        }
    }
}

fn tell(position: usize, call: &mut Call) -> StreamEvent {
    let tool_call_id = call.told.get_or_insert_with(|| match &call.id {
        Some(id) if !call.again => id.clone(),
        Some(_) | None => {
            ToolCallId::from(format!("call_{}", MessageId::random().as_str()).as_str())
        }
    });
    call.arguments.push_str(&call.waiting);
    StreamEvent::ToolCallDelta {
        index: u32::try_from(position).unwrap_or(u32::MAX),
        tool_call_id: tool_call_id.clone(),
        tool_name: call.name.clone(),
        arguments_json: std::mem::take(&mut call.waiting),
    }
}

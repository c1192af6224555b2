//! Puts the tool calls of a stream together, however the provider cuts them.

use crate::codec::Json;
use crate::event::StreamEvent;
use crate::message::MessageId;
use crate::tool::{Arguments, ToolCallId};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
struct Call {
    /// The provider's id.
    id: Option<String>,
    /// Whether another call had this id before.
    again: bool,
    /// The id that was told; fixed with the first event.
    told: Option<ToolCallId>,
    name: String,
    /// Arguments that came before the name.
    waiting: String,
    written: Written,
}

/// How much of a call's arguments came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Written {
    /// Nothing, or an object without fields.
    #[default]
    Empty,
    /// An object that is not closed.
    Open,
    /// Something.
    Some,
}

impl Written {
    fn and(self, more: &str) -> Self {
        if self == Self::Some {
            return self;
        }
        more.bytes()
            .fold(self, |written, byte| match (written, byte) {
                (Self::Some, _) => Self::Some,
                (_, b'{') => Self::Open,
                (_, b'}') => Self::Empty,
                (written, b' ' | b'\t' | b'\r' | b'\n') => written,
                (Self::Empty | Self::Open, _) => Self::Some,
            })
    }
}

/// The calls of one response. Each delta belongs to a call by its `index`; without one, by its id;
/// without either, it continues the last call. A delta that names a tool under a foreign id is a
/// call of its own, whatever its index: some providers give all calls the index 0. So is one that
/// names a tool under a new index; where its id is another call's already, it gets one of ours.
#[derive(Debug, Default)]
pub(super) struct Calls {
    all: Vec<Call>,
    by_index: BTreeMap<u64, usize>,
    by_id: BTreeMap<String, usize>,
}

impl Calls {
    pub(super) fn push(&mut self, delta: Json<'_>, events: &mut Vec<StreamEvent>) {
        let id = delta.text_at("id");
        let function = delta.get("function");
        let name = function.and_then(|function| function.text_at("name"));
        let position = self.position(delta.get("index").and_then(Json::as_u64), id, name);
        let Some(call) = self.all.get_mut(position) else {
            return;
        };
        if let Some(id) = id.filter(|_| call.id.is_none()) {
            call.id = Some(id.to_owned());
            call.again = *self.by_id.entry(id.to_owned()).or_insert(position) != position;
        }
        // Some providers repeat the name in each delta.
        if let Some(name) = name.filter(|_| call.name.is_empty()) {
            name.clone_into(&mut call.name);
        }
        if let Some(arguments) = function.and_then(|function| function.get("arguments")) {
            let told = call.waiting.len();
            match arguments.as_str() {
                Some(text) => call.waiting.push_str(text),
                None if arguments.is_object() => {
                    call.waiting.push_str(&arguments.to_value().to_string());
                }
                None => {}
            }
            let more = call.waiting.get(told..).unwrap_or_default();
            call.written = call.written.and(more);
        }
        if !call.name.is_empty() && (call.told.is_none() || !call.waiting.is_empty()) {
            events.push(tell(position, call));
        }
    }

    /// Tells the calls that never got a name, so that nothing the model wrote is lost.
    pub(super) fn flush(&mut self, events: &mut Vec<StreamEvent>) {
        for (position, call) in self.all.iter_mut().enumerate() {
            if call.told.is_none() {
                events.push(tell(position, call));
            }
        }
    }

    /// Something else than the model ended the answer at its last call: if no arguments of it came,
    /// it must not read as one without any.
    pub(super) fn cut(&mut self, events: &mut Vec<StreamEvent>) {
        let last = self.all.len().saturating_sub(1);
        if let Some(call) = self.all.last_mut()
            && call.written == Written::Empty
        {
            call.waiting.push_str(Arguments::CUT);
            events.push(tell(last, call));
        }
    }

    fn position(&mut self, index: Option<u64>, id: Option<&str>, name: Option<&str>) -> usize {
        let at_index = index.and_then(|index| self.by_index.get(&index).copied());
        let is_here = |at: &usize| {
            let call = self.all.get(*at);
            id.is_some() && call.is_some_and(|call| call.id.as_deref() == id)
        };
        let same = at_index
            .filter(is_here)
            .or_else(|| self.by_id.get(id?).copied());
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
            id.is_some() && name.is_some() && call.id.is_some() && call.id.as_deref() != id
        });
        if let Some(position) = found.filter(|_| !foreign) {
            return position;
        }
        let position = self.all.len();
        self.all.push(Call::default());
        self.by_index.extend(index.map(|index| (index, position)));
        position
    }
}

fn tell(position: usize, call: &mut Call) -> StreamEvent {
    let tool_call_id = call.told.get_or_insert_with(|| match &call.id {
        Some(id) if !call.again => ToolCallId::from(id.as_str()),
        Some(_) | None => {
            ToolCallId::from(format!("call_{}", MessageId::random().as_str()).as_str())
        }
    });
    StreamEvent::ToolCallDelta {
        index: u32::try_from(position).unwrap_or(u32::MAX),
        tool_call_id: tool_call_id.clone(),
        tool_name: call.name.clone(),
        arguments_json: std::mem::take(&mut call.waiting),
    }
}

//! Puts the tool calls of a stream together, however the provider cuts them.

use crate::codec::Json;
use crate::event::StreamEvent;
use crate::message::MessageId;
use crate::tool::ToolCallId;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
struct Call {
    /// The provider's id.
    id: Option<String>,
    /// The id that was told; fixed with the first event.
    told: Option<ToolCallId>,
    name: String,
    /// Arguments that came before the name.
    waiting: String,
}

/// The calls of one response. Each delta belongs to a call by its `index`; without one, by its id;
/// without either, it continues the last call. A delta that names a tool under a foreign id is a
/// call of its own, whatever its index: some providers give all calls the index 0.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    by_index: BTreeMap<u64, usize>,
}

impl Calls {
    pub(super) fn push(&mut self, delta: Json<'_>, events: &mut Vec<StreamEvent>) {
        let id = delta.text_at("id");
        let function = delta.get("function");
        let name = function.and_then(|function| function.text_at("name"));
        let position = self.position(delta.get("index").and_then(Json::as_u64), id, name);
        let Some(call) = self.calls.get_mut(position) else {
            return;
        };
        if let Some(id) = id {
            call.id.get_or_insert_with(|| id.to_owned());
        }
        // Some providers repeat the name in each delta.
        if let Some(name) = name.filter(|_| call.name.is_empty()) {
            name.clone_into(&mut call.name);
        }
        if let Some(arguments) = function.and_then(|function| function.get("arguments")) {
            match arguments.as_str() {
                Some(text) => call.waiting.push_str(text),
                None if arguments.is_object() => {
                    call.waiting.push_str(&arguments.to_value().to_string());
                }
                None => {}
            }
        }
        if !call.name.is_empty() && (call.told.is_none() || !call.waiting.is_empty()) {
            events.push(tell(position, call));
        }
    }

    /// Tells the calls that never got a name, so that nothing the model wrote is lost.
    pub(super) fn flush(&mut self, events: &mut Vec<StreamEvent>) {
        for (position, call) in self.calls.iter_mut().enumerate() {
            if call.told.is_none() {
                events.push(tell(position, call));
            }
        }
    }

    fn position(&mut self, index: Option<u64>, id: Option<&str>, name: Option<&str>) -> usize {
        let same = id.and_then(|id| {
            self.calls
                .iter()
                .position(|call| call.id.as_deref() == Some(id))
        });
        if let Some(position) = same {
            return position;
        }
        let last = self.calls.len().checked_sub(1);
        let found = match index {
            Some(index) => self.by_index.get(&index).copied(),
            None if id.is_some() || name.is_some() => None,
            None => last,
        };
        let foreign = found.and_then(|at| self.calls.get(at)).is_some_and(|call| {
            id.is_some() && name.is_some() && call.id.is_some() && call.id.as_deref() != id
        });
        if let Some(position) = found.filter(|_| !foreign) {
            return position;
        }
        let position = self.calls.len();
        self.calls.push(Call::default());
        self.by_index.extend(index.map(|index| (index, position)));
        position
    }
}

fn tell(position: usize, call: &mut Call) -> StreamEvent {
    let tool_call_id = call.told.get_or_insert_with(|| match &call.id {
        Some(id) => ToolCallId::from(id.as_str()),
        None => ToolCallId::from(format!("call_{}", MessageId::random().as_str()).as_str()),
    });
    StreamEvent::ToolCallDelta {
        index: u32::try_from(position).unwrap_or(u32::MAX),
        tool_call_id: tool_call_id.clone(),
        tool_name: call.name.clone(),
        arguments_json: std::mem::take(&mut call.waiting),
    }
}

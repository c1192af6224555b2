//! Calls and results that an application stored in a conversation without a run of its agent.

use super::answer::assistant_message;
use super::history::UnansweredCall;
use super::result::result_of;
use crate::parts::{StepResponse, ToolPart, ToolState};
use serde_json::Value;
use std::collections::BTreeMap;
use timeline::{Item, ItemId, ItemType, Payload};
use upp::{Message, MessageOptions, Metadata, ToolResultMessage};

/// The stored calls whose results have not been stored yet.
#[derive(Default)]
pub(super) struct DroppedCalls<'a> {
    by_id: BTreeMap<String, DroppedCall<'a>>,
    /// Number of calls so far.
    n: usize,
}

struct DroppedCall<'a> {
    /// How many calls were stored before it.
    n: usize,
    item: &'a Item,
    tool: ToolPart,
}

/// A call and its result as a model is to see them: a cycle of their own.
pub(super) struct RecordedCycle {
    pub(super) messages: [Message; 2],
    /// The item that was the call.
    pub(super) call: ItemId,
    /// The item that was the result.
    pub(super) result: ItemId,
}

impl<'a> DroppedCalls<'a> {
    /// The first call whose item fits.
    pub(super) fn first(&self, fits: impl Fn(&Item) -> bool) -> Option<UnansweredCall> {
        let calls = self.by_id.iter().filter(|(_, call)| fits(call.item));
        let (id, call) = calls.min_by_key(|(_, call)| call.n)?;
        Some(UnansweredCall {
            tool_call_id: id.clone(),
            item: Some(call.item.id.clone()),
        })
    }

    /// Adds a call or a result; returns the cycle that it completes. Ignores results of other
    /// calls.
    pub(super) fn take(&mut self, item: &'a Item) -> Option<RecordedCycle> {
        let content = item.content.as_ref().map(Payload::value)?;
        let text = |key: &str| content.get(key).and_then(Value::as_str);
        let id = text("call_id")?;
        match item.item_type {
            ItemType::ActionExecute => {
                let tool = ToolPart::call(text("name")?, id, text("arguments")?);
                let n = self.n;
                self.n += 1;
                let call = DroppedCall { n, item, tool };
                self.by_id.insert(id.to_owned(), call);
                None
            }
            ItemType::ActionResult => {
                let call = self.by_id.remove(id)?;
                let (call, mut tool) = (call.item, call.tool);
                tool.state = ToolState::OutputAvailable;
                tool.output = Some(content.get("output")?.clone().into());
                cycle(call, &tool, item)
            }
            ItemType::Message | ItemType::ItemReference => None,
        }
    }
}

fn cycle(call: &Item, tool: &ToolPart, result: &Item) -> Option<RecordedCycle> {
    let said = StepResponse {
        message_id: Some(call.id.as_str().to_owned()),
        ..StepResponse::default()
    };
    let said = Payload::write(&said).ok()?;
    let asked = assistant_message(&[tool.write().ok()?], &said, call.created_at);
    let options = MessageOptions {
        id: Some(result.id.as_str().into()),
        timestamp: Some(result.created_at),
        metadata: Some(Metadata::new()),
    };
    let given = ToolResultMessage::new(vec![result_of(tool)?], options);
    Some(RecordedCycle {
        messages: [asked.into(), given.into()],
        call: call.id.clone(),
        result: result.id.clone(),
    })
}

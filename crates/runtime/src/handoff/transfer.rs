//! The records of a handoff.

use super::Handoff;
use crate::error::RuntimeError;
use crate::runtime::Runtime;
use interop::parts::EventPart;
use serde_json::json;
use store::Run;
use timeline::{Command, Ending, Interruption, Item, ItemId, ItemType, NewItem, Payload, Trigger};

/// The end of an execution that hands over or exceeds the limit of handoffs.
pub(crate) struct Transfer {
    /// The record of the handoff, as a part of the last step; none if the limit forbids it.
    pub(crate) event: Option<Command>,
    /// How the execution ends.
    pub(crate) ending: Ending,
    /// The execution that follows.
    pub(crate) start: Option<Command>,
}

impl Runtime {
    /// The commands of a step's handoff, for the transaction that completes the step.
    pub(crate) fn transfer(
        &self,
        handoff: Option<Handoff>,
        run: &Run,
        trigger: &Item,
    ) -> Result<Option<Transfer>, RuntimeError> {
        let Some(handoff) = handoff else {
            return Ok(None);
        };
        let limit = self.inner.options.max_handoffs;
        if run.handoffs >= limit {
            let detail = format!(
                "agents have handed over {limit} times since the user spoke, which is the limit"
            );
            let ending = Ending::Stopped(Interruption::new("max_handoffs", detail));
            return Ok(Some(Transfer {
                event: None,
                ending,
                start: None,
            }));
        }
        let data = json!({"from": run.agent, "to": handoff.to, "reason": handoff.reason});
        let event = EventPart {
            part_type: EventPart::AGENT_HANDOFF.to_owned(),
            id: handoff.tool_call_id,
            data: without_nulls(data),
        };
        let next = Run {
            agent: Some(handoff.to),
            handoffs: run.handoffs.saturating_add(1),
            ..run.clone()
        };
        let start = self.start(Trigger::New(self.reference(trigger)), next)?;
        Ok(Some(Transfer {
            event: Some(Command::AddPart {
                part: event.write()?,
            }),
            ending: Ending::Completed,
            start: Some(start),
        }))
    }

    /// A reference to an execution's trigger. If the trigger is itself a reference, it refers to
    /// the same item.
    fn reference(&self, trigger: &Item) -> NewItem {
        let pointer = trigger.item_type == ItemType::ItemReference;
        let mut reference = self.reference_to(&trigger.id);
        if let Some(content) = trigger.content.clone().filter(|_| pointer) {
            reference.content = Some(content);
        }
        reference
    }

    /// A reference to an item.
    pub(crate) fn reference_to(&self, item: &ItemId) -> NewItem {
        NewItem::reference(self.inner.ids.mint(), Some(item))
    }
}

fn without_nulls(data: serde_json::Value) -> Payload {
    let serde_json::Value::Object(mut fields) = data else {
        return data.into();
    };
    fields.retain(|_, value| !value.is_null());
    serde_json::Value::Object(fields).into()
}

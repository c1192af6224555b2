//! Checks that answers are for pending calls.

use super::Rejected;
use crate::answer::{Answer, attached_messages};
use crate::command::NewItem;
use crate::entity::{ItemType, OpenCall, OpenKind};
use crate::state::State;
use std::collections::BTreeSet;

impl State {
    /// Rejects an item of type `action_result` if one of its answers is for a call that is not
    /// pending or already answered. An item with attached messages must answer all pending calls.
    /// The cost is proportional to the pending calls.
    pub fn check_answers(&self, item: &NewItem) -> Result<(), Rejected> {
        if item.item_type != ItemType::ActionResult {
            return Ok(());
        }
        let answers = Answer::read(item.content.as_ref())?;
        let answered = self.answered();
        let is_left = self.is_left_behind();
        let says_more = !attached_messages(item.content.as_ref()).is_empty();
        let mut unanswered: BTreeSet<&str> = self
            .open_calls()
            .iter()
            .filter(|open| says_more && open.kind != OpenKind::Others)
            .map(|open| open.tool_call_id.as_str())
            .filter(|call| !answered.contains(*call))
            .collect();
        for answer in answers {
            let call = answer.tool_call_id.clone();
            let open = self.open_calls().iter().find(|it| it.tool_call_id == call);
            let Some(open) = open else {
                return Err(Rejected::NotOpen(call));
            };
            if answered.contains(&call) {
                return Err(Rejected::AnsweredAlready(call));
            }
            if is_left {
                return Err(Rejected::Superseded(call));
            }
            if open.kind != answer.kind() {
                let kind = open.kind;
                return Err(Rejected::WrongAnswer { call, kind });
            }
            unanswered.remove(call.as_str());
        }
        match unanswered.first() {
            Some(call) => Err(Rejected::Unanswered((*call).to_owned())),
            None => Ok(()),
        }
    }

    /// The pending calls without an answer: those of an idle thread, and those that a running
    /// execution with other answers leaves pending. The cost is proportional to the pending calls.
    pub fn unanswered(&self) -> Vec<&OpenCall> {
        let answered = self.answered();
        let calls = self.open_calls().iter();
        calls
            .filter(|call| !answered.contains(&call.tool_call_id))
            .collect()
    }

    /// The pending calls, including those that an execution with other answers leaves pending.
    fn open_calls(&self) -> &[OpenCall] {
        match (&self.active, &self.open) {
            (Some(active), _) => &active.open_calls,
            (None, Some(open)) => &open.calls,
            (None, None) => &[],
        }
    }

    /// The calls whose answers are being processed or wait for it.
    fn answered(&self) -> BTreeSet<String> {
        let running = self.active.as_ref().and_then(|it| it.trigger.as_ref());
        let waiting = self.waiting.iter().map(|waiting| &waiting.item);
        let items = running.into_iter().chain(waiting);
        let items = items.filter(|item| item.item_type == ItemType::ActionResult);
        items
            .filter_map(|item| Answer::read(item.content.as_ref()).ok())
            .flatten()
            .map(|answer| answer.tool_call_id)
            .collect()
    }

    /// Whether a message was posted that will be answered before these answers.
    fn is_left_behind(&self) -> bool {
        let mut waiting = self.waiting.iter();
        self.active.as_ref().is_some_and(|it| it.is_overtaken)
            || waiting.any(|waiting| waiting.item.item_type != ItemType::ActionResult)
    }
}

//! The log of one thread as the appends that took effect have made it, checked event by event.

use std::collections::{BTreeMap, BTreeSet};
use store::{Epoch, Logged, NewRecord, NodeId, Ownership};
use timeline::{
    Event, ExecutionStatus, Interruption, OpenKind, Seq, State, StepId, Verifier, chunk_type,
};

#[derive(Default)]
pub(crate) struct SeenLog {
    pub(crate) records: Vec<Logged>,
    pub(crate) is_deleted: bool,
    pub(crate) epoch: Epoch,
    pub(crate) owner: Option<NodeId>,
    verifier: Verifier,
    state: State,
    /// The text that each step has streamed since its last reset.
    texts: BTreeMap<StepId, String>,
    /// The steps whose text is whole.
    answered: BTreeSet<StepId>,
}

impl SeenLog {
    pub(crate) fn tail(&self) -> Seq {
        Seq(self.records.len() as u64)
    }

    pub(crate) fn key(&self) -> Option<&str> {
        self.state.thread()?.key.as_deref()
    }

    /// The calls that a client can answer: the thread's key, the call, and what it waits for.
    pub(crate) fn questions(&self) -> Vec<(String, String, OpenKind)> {
        let open = self.state.open().into_iter().flat_map(|open| &open.calls);
        let is_question = |kind| matches!(kind, OpenKind::Approval | OpenKind::External);
        let questions = open.filter(|call| is_question(call.kind));
        let key = self.key().unwrap_or_default();
        questions
            .map(|call| (key.to_owned(), call.tool_call_id.clone(), call.kind))
            .collect()
    }

    /// Whether the thread waits for answers.
    pub(crate) fn waits(&self) -> bool {
        self.state.open().is_some() && self.state.waiting().len() == 0
    }

    /// Adds a record. Returns what is wrong with it.
    pub(crate) fn push(&mut self, record: &NewRecord) -> Option<String> {
        let logged = record.clone().logged(self.tail().next());
        let misfit = self.verifier.check(&logged.record).err();
        self.state.apply(&logged.record.event);
        let unsound = self.unsound(&logged.record.event);
        self.records.push(logged);
        misfit
            .map(|it| format!("an illegal log: {it:?}"))
            .or(unsound)
    }

    fn unsound(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::ChunkEmitted {
                chunk_type,
                step_id: Some(step),
                data,
                ..
            } => {
                if chunk_type == chunk_type::STEP_RESET {
                    self.texts.remove(step);
                    self.answered.remove(step);
                } else if chunk_type == "text-delta" {
                    if self.answered.contains(step) {
                        return Some(format!("{step} streams after its answer"));
                    }
                    let delta = data.as_ref().and_then(|data| data.str_field("delta"));
                    let text = self.texts.entry(step.clone()).or_default();
                    text.push_str(&delta.unwrap_or_default());
                }
                None
            }
            Event::PartCreated { step_id, part, .. } => {
                let is_text = part.str_field("type").as_deref() == Some("output_text");
                let text = part.str_field("text").filter(|_| is_text)?;
                self.answered.insert(step_id.clone());
                let shown = self.texts.get(step_id).map_or("", String::as_str);
                (shown != text)
                    .then(|| format!("{step_id} has streamed {shown:?} and answers {text:?}"))
            }
            Event::ExecutionStatusChanged {
                execution_id,
                to: ExecutionStatus::Failed,
                interruption: Some(why),
                ..
            } if why.reason == Interruption::ERROR => {
                Some(format!("{execution_id} has failed: {why:?}"))
            }
            _ => None,
        }
    }

    /// What is wrong with the owner of the run after an append, if something is.
    pub(crate) fn misowned(&self, ownership: Ownership) -> Option<&'static str> {
        let has_work = self.state.active().is_some() || self.state.waiting().len() > 0;
        match ownership {
            Ownership::Rest if has_work => Some("rests with work"),
            Ownership::Offer if !has_work => Some("is offered without work"),
            _ => None,
        }
    }
}

//! Records of the log, folded into a ledger.

use super::check::{Changed, Draft};
use super::request::{Given, Life, Request, Standing, State};
use super::verdict::Refusal;
use super::{Key, Ledger, MAX_ANSWERS, MAX_OPEN, Speaker};
use crate::aitp::message::{Message, find, find_in_part};
use crate::aitp::roster::Party;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use timeline::{
    Event, Execution, ExecutionStatus, Item, ItemId, ItemType, Payload, Record, Role, Seq, StepId,
    StepStatus, chunk_type,
};

/// The execution that runs, and the capability messages of its running step. They count when the
/// step is complete: before that a crash may void them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Running {
    item_id: ItemId,
    actor: Option<String>,
    step_id: Option<StepId>,
    messages: BTreeMap<u32, String>,
}

/// Where messages come from.
struct Source<'a> {
    item_id: &'a ItemId,
    seq: Seq,
    at: Timestamp,
    speaker: Speaker<'a>,
}

impl Ledger {
    /// Folds one record in; one that is in it already changes nothing.
    pub fn apply(&mut self, record: &Record) {
        if record.seq <= self.seq {
            return;
        }
        self.seq = record.seq;
        self.roster.apply(record);
        match &record.event {
            Event::ItemCreated { item } => self.item(record, item),
            Event::ExecutionCreated { execution } => self.running = Some(running(execution)),
            Event::ExecutionStatusChanged { to, .. } => {
                if *to != ExecutionStatus::Executing {
                    self.running = None;
                }
            }
            Event::StepCreated { step } => self.step_begins(&step.id),
            Event::StepStatusChanged { step_id, to, .. } => self.step_ends(record, step_id, *to),
            Event::PartCreated {
                step_id, idx, part, ..
            }
            | Event::PartUpdated {
                step_id, idx, part, ..
            } => self.part(step_id, *idx, part),
            Event::ChunkEmitted { chunk_type, .. } => {
                if chunk_type == chunk_type::STEP_RESET
                    && let Some(running) = &mut self.running
                {
                    running.messages.clear();
                }
            }
            Event::ContextCreated { .. }
            | Event::ContextResolved { .. }
            | Event::ContextStatusChanged { .. }
            | Event::ThreadCreated { .. }
            | Event::ThreadResolved { .. }
            | Event::ThreadStatusChanged { .. }
            | Event::ItemStatusChanged { .. }
            | Event::ThreadFinished { .. } => {}
        }
    }

    fn item(&mut self, record: &Record, item: &Item) {
        let Some(content) = &item.content else {
            return;
        };
        if item.item_type != ItemType::Message || item.execution_id.is_some() {
            return;
        }
        let messages = find(content);
        if messages.is_empty() {
            return;
        }
        let actor = item.metadata.as_ref().and_then(|it| it.str_field("actor"));
        let source = Source {
            item_id: &item.id,
            seq: record.seq,
            at: record.at,
            speaker: Speaker {
                actor: actor.as_deref(),
                role: item.role,
            },
        };
        for (_, message) in messages {
            self.message(&source, &message);
        }
    }

    fn step_begins(&mut self, step_id: &StepId) {
        if let Some(running) = &mut self.running {
            running.step_id = Some(step_id.clone());
            running.messages.clear();
        }
    }

    fn part(&mut self, step_id: &StepId, idx: u32, part: &Payload) {
        let Some(running) = &mut self.running else {
            return;
        };
        if running.step_id.as_ref() != Some(step_id) {
            return;
        }
        match find_in_part(part) {
            Some(message) => running.messages.insert(idx, message.text()),
            None => running.messages.remove(&idx),
        };
    }

    fn step_ends(&mut self, record: &Record, step_id: &StepId, to: StepStatus) {
        let Some(running) = &mut self.running else {
            return;
        };
        if running.step_id.as_ref() != Some(step_id) {
            return;
        }
        let messages = std::mem::take(&mut running.messages);
        if to != StepStatus::Completed || messages.is_empty() {
            return;
        }
        let (item_id, actor) = (running.item_id.clone(), running.actor.clone());
        let source = Source {
            item_id: &item_id,
            seq: record.seq,
            at: record.at,
            speaker: Speaker {
                actor: actor.as_deref(),
                role: Some(Role::Assistant),
            },
        };
        for text in messages.values() {
            if let Some(message) = Message::read(text) {
                self.message(&source, &message);
            }
        }
    }

    fn message(&mut self, source: &Source<'_>, message: &Message) {
        let decided = Draft::new(self).decide(message, source.speaker, source.at);
        let change = match decided {
            Ok(step) => step.change,
            Err(Refusal::Late { request, .. }) => return self.late(source, message, &request),
            Err(_) => return,
        };
        match change {
            None => {}
            Some(Changed::Opened {
                ask,
                life,
                supersedes,
            }) => {
                if let Some(former) = supersedes.and_then(|number| self.requests.get_mut(&number)) {
                    former.life.standing = Standing::Superseded;
                }
                self.forget_expired(source.at);
                let topic = ask.key.topic;
                let number = self.next_number();
                let open = self.open.entry(topic).or_default();
                if let Some(former) = supersedes {
                    open.remove(&former);
                }
                open.insert(number);
                let latest = self.latest.entry(topic).or_default();
                if let Some(former) = latest.insert(ask.key.id.clone(), number) {
                    // One that expired under the same id is asked no more.
                    open.remove(&former);
                }
                let request = Request {
                    ask,
                    item_id: source.item_id.clone(),
                    seq: source.seq,
                    at: source.at,
                    life,
                    answers: Vec::new(),
                    late: Vec::new(),
                };
                self.requests.insert(number, request);
            }
            Some(Changed::Lives {
                number,
                life,
                is_answer,
            }) => self.lives(source, message, number, life, is_answer),
        }
    }

    /// Takes what nobody answered in time off the list of what is open, once the list is full.
    fn forget_expired(&mut self, now: Timestamp) {
        let listed: usize = self.open.values().map(BTreeSet::len).sum();
        if listed < MAX_OPEN {
            return;
        }
        for open in self.open.values_mut() {
            open.retain(|number| {
                let request = self.requests.get(number);
                request.is_some_and(|request| request.state(now) == State::Open)
            });
        }
    }

    fn lives(
        &mut self,
        source: &Source<'_>,
        message: &Message,
        number: u64,
        life: Life,
        is_answer: bool,
    ) {
        let by = self.speaker(source);
        let Some(request) = self.requests.get_mut(&number) else {
            return;
        };
        if life.standing != Standing::Open
            && let Some(open) = self.open.get_mut(&request.ask.key.topic)
        {
            open.remove(&number);
        }
        request.life = life;
        if is_answer {
            request.answers.extend(given(source, message, by));
        }
    }

    /// An answer that came too late is remembered. Not so what else comes too late.
    fn late(&mut self, source: &Source<'_>, message: &Message, key: &Key) {
        let by = self.speaker(source);
        let number = self.latest.get(&key.topic).and_then(|it| it.get(&key.id));
        let Some(request) = number.and_then(|number| self.requests.get_mut(number)) else {
            return;
        };
        let is_answer = message
            .kind
            .is_some_and(|kind| kind.purpose() == crate::aitp::Purpose::Answer(key.topic));
        if is_answer && request.late.len() < MAX_ANSWERS {
            request.late.extend(given(source, message, by));
        }
        if request.state(source.at) == State::Expired
            && let Some(open) = self.open.get_mut(&key.topic)
            && let Some(number) = number
        {
            open.remove(number);
        }
    }

    fn speaker(&self, source: &Source<'_>) -> Party {
        let Speaker { actor, role } = source.speaker;
        self.roster.party(actor, role)
    }
}

fn given(source: &Source<'_>, message: &Message, by: Party) -> Option<Given> {
    Some(Given {
        item_id: source.item_id.clone(),
        seq: source.seq,
        at: source.at,
        by,
        message_type: message.kind?.key().to_owned(),
        payload: message.payload()?.clone().into(),
    })
}

/// An agent speaks under the id that its run names as its actor, or else under its name.
fn running(execution: &Execution) -> Running {
    let run = execution.run.as_ref();
    let text = |key: &str| run.and_then(|run| run.str_field(key));
    Running {
        item_id: execution.reaction_item_id.clone(),
        actor: text("actor").or_else(|| text("agent")),
        step_id: None,
        messages: BTreeMap::new(),
    }
}

//! Records of the log, folded into a ledger.

use super::check::{Changed, Draft};
use super::request::{
    Request, RequestProgress, RequestState, RequestStatus, RequestTerms, SubmittedAnswer,
};
use super::verdict::RequestRefusal;
use super::{Key, Ledger, MAX_ANSWERS, MAX_CLOSED};
use crate::aitp::actors::named_actor;
use crate::aitp::change::ParticipantChange;
use crate::aitp::kind::Purpose;
use crate::aitp::message::{MAX_MESSAGES, Message, find, find_in_part};
use crate::aitp::participants::Party;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use timeline::{
    Event, Execution, ExecutionStatus, Item, ItemId, ItemType, Payload, Record, Removed, Seq,
    StepId, StepStatus, chunk_type, messages_with_answers,
};

/// The reason recorded for cancelling the requests of an actor that left.
const LEFT: &str = "who asked has left the thread";

/// Why requests of what was removed are open no longer.
const REMOVED: &str = "what asked was removed from the thread";

/// The running execution, and the capability messages of its running step. They count once the step is
/// complete, because a crash may void them before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Running {
    item_id: ItemId,
    actor: Option<String>,
    agent: Option<String>,
    step_id: Option<StepId>,
    messages: BTreeMap<u32, Message>,
}

/// The origin of messages.
struct Source<'a> {
    item_id: &'a ItemId,
    step_id: Option<&'a StepId>,
    seq: Seq,
    at: Timestamp,
    by: Party,
}

impl Ledger {
    /// Folds one record in; one that is in it already changes nothing.
    pub fn apply(&mut self, record: &Record) {
        if record.seq <= self.seq {
            return;
        }
        self.seq = record.seq;
        self.people(record);
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
            Event::ChunkEmitted {
                chunk_type, data, ..
            } => self.marked(chunk_type, data.as_ref()),
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

    fn marked(&mut self, kind: &str, data: Option<&Payload>) {
        if kind == chunk_type::STEP_RESET
            && let Some(running) = &mut self.running
        {
            running.messages.clear();
        }
        let data = data.filter(|_| kind == chunk_type::ITEM_REMOVED);
        if let Some(what) = data.and_then(|data| data.read().ok()) {
            self.removed(&what);
        }
    }

    /// Cancels the open requests of a removed item or step. Removed answers still count, because the
    /// requester may have acted on them. The cost is linear in the stored requests, whose number is
    /// bounded.
    fn removed(&mut self, what: &Removed) {
        let asked = self.requests.iter().filter(|(_, request)| {
            let is_there = match what {
                Removed::Item(id) => request.item_id == *id,
                Removed::Step(id) => request.step_id.as_ref() == Some(id),
                Removed::Compaction(_) => false,
            };
            is_there && request.life.status == RequestStatus::Open
        });
        let asked: Vec<(u64, Party)> = asked
            .map(|(number, request)| (*number, request.ask.by.clone()))
            .collect();
        for (number, asker) in asked {
            self.close(number, RequestStatus::Cancelled(Some(REMOVED.to_owned())));
            self.forget_surplus(&asker);
        }
    }

    /// Updates the participants. When an actor leaves, its open requests are cancelled. When the
    /// initiator becomes known, the requests of that actor become the initiator's.
    fn people(&mut self, record: &Record) {
        let leaver = if let Event::ItemCreated { item } = &record.event
            && let Some(ParticipantChange::Leave { actor_id }) = ParticipantChange::of_item(item)
        {
            self.roster.party(Some(&actor_id), None)
        } else {
            None
        };
        let began = self.roster.initiator().is_some();
        self.roster.apply(record);
        if let Some(leaver) = leaver {
            for number in self.index.of_asker(&leaver, None) {
                self.close(number, RequestStatus::Cancelled(Some(LEFT.to_owned())));
            }
            self.forget_surplus(&leaver);
        }
        if let Some(id) = self.roster.initiator().filter(|_| !began) {
            let party = Party::Actor(id.to_owned());
            for number in self.index.all_of(&party) {
                self.rename(number, Party::Initiator);
            }
        }
    }

    fn rename(&mut self, number: u64, by: Party) {
        if let Some(mut request) = self.requests.remove(&number) {
            let is_latest = self.index.latest(&request.ask.key) == Some(number);
            self.index.remove(number, &request);
            Arc::make_mut(&mut request.ask).by = by;
            if is_latest {
                self.index.insert(number, &request);
            } else {
                self.index.list(number, &request);
            }
            self.requests.insert(number, request);
        }
    }

    fn item(&mut self, record: &Record, item: &Item) {
        for said in messages_with_answers(item) {
            self.record_item(record, &said);
        }
        self.record_item(record, item);
    }

    fn record_item(&mut self, record: &Record, item: &Item) {
        let Some(content) = &item.content else {
            return;
        };
        if item.item_type != ItemType::Message || item.execution_id.is_some() {
            return;
        }
        let messages = find(content).unwrap_or_default();
        if messages.is_empty() {
            return;
        }
        let Ok(actor) = named_actor(item.metadata.as_ref()) else {
            return;
        };
        let Some(by) = self.roster.party(actor.as_deref(), item.role) else {
            return;
        };
        let source = Source {
            item_id: &item.id,
            step_id: None,
            seq: record.seq,
            at: record.at,
            by,
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

    /// Adds a capability message of a step, up to the limit. Those above the limit are ignored,
    /// because the fold can't refuse them.
    fn part(&mut self, step_id: &StepId, idx: u32, part: &Payload) {
        let Some(running) = &mut self.running else {
            return;
        };
        if running.step_id.as_ref() != Some(step_id) {
            return;
        }
        running.messages.remove(&idx);
        if running.messages.len() < MAX_MESSAGES {
            let message = find_in_part(part);
            running.messages.extend(message.map(|it| (idx, it)));
        }
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
        let item_id = running.item_id.clone();
        let by = match (&running.actor, &running.agent) {
            (Some(actor), _) => self.roster.party(Some(actor), None),
            (None, Some(agent)) => Some(Party::Agent(agent.clone())),
            (None, None) => Some(Party::Assistant),
        };
        let Some(by) = by else {
            return;
        };
        let source = Source {
            item_id: &item_id,
            step_id: Some(step_id),
            seq: record.seq,
            at: record.at,
            by,
        };
        for message in messages.values() {
            self.message(&source, message);
        }
    }

    fn message(&mut self, source: &Source<'_>, message: &Message) {
        let decided = Draft::new(self, &source.by).decide(message, source.at);
        match decided.map(|step| step.change) {
            Ok(Some(change)) => self.take(source, message, change),
            Err(RequestRefusal::Late { request, .. }) => self.late(source, message, &request),
            Ok(None) | Err(_) => {}
        }
    }

    fn take(&mut self, source: &Source<'_>, message: &Message, change: Changed) {
        match change {
            Changed::Opened {
                ask,
                life,
                supersedes,
            } => {
                if let Some(former) = supersedes {
                    self.close(former, RequestStatus::Superseded);
                }
                self.open(source, ask, life);
            }
            Changed::Lives {
                number,
                life,
                is_answer,
            } => {
                let Some(request) = self.requests.get_mut(&number) else {
                    return;
                };
                self.index.relive(number, request, life, self.next);
                self.next += 1;
                if is_answer {
                    // The answers before it count no more, and the log has what they were.
                    if let Some(former) = request.answers.last_mut() {
                        former.payload = None;
                    }
                    let payload = message.payload().map(|it| it.clone().into());
                    request.answers.extend(given(source, message, payload));
                }
                let asker = request.ask.by.clone();
                self.forget_surplus(&asker);
            }
        }
    }

    fn open(&mut self, source: &Source<'_>, ask: Arc<RequestTerms>, life: RequestProgress) {
        // What nobody answered in time is listed as open until its asker asks again.
        for number in self.index.of_asker(&ask.by, Some(source.at)) {
            self.close(number, RequestStatus::Expired);
        }
        let asker = ask.by.clone();
        let request = Request {
            ask,
            item_id: source.item_id.clone(),
            step_id: source.step_id.cloned(),
            seq: source.seq,
            at: source.at,
            life,
            turn: self.next,
            answers: Vec::new(),
            late: Vec::new(),
        };
        self.index.insert(self.next, &request);
        self.requests.insert(self.next, request);
        self.next += 1;
        self.forget_surplus(&asker);
    }

    fn close(&mut self, number: u64, standing: RequestStatus) {
        if let Some(request) = self.requests.get_mut(&number) {
            let life = RequestProgress {
                status: standing,
                ..request.life.clone()
            };
            self.index.relive(number, request, life, self.next);
            self.next += 1;
        }
    }

    /// Drops the oldest closed requests of a party above [`MAX_CLOSED`]. Requests of other parties
    /// stay, so no party can free an id that another one used.
    fn forget_surplus(&mut self, asker: &Party) {
        while let Some(number) = self.index.surplus(asker, MAX_CLOSED) {
            let Some(request) = self.requests.remove(&number) else {
                return;
            };
            self.index.remove(number, &request);
        }
    }

    /// Stores an answer that came too late. Other late messages are ignored.
    fn late(&mut self, source: &Source<'_>, message: &Message, key: &Key) {
        let Some(number) = self.index.latest(key) else {
            return;
        };
        let Some(request) = self.requests.get_mut(&number) else {
            return;
        };
        let purpose = message.kind.map(crate::aitp::Kind::purpose);
        if purpose == Some(Purpose::Answer(key.topic)) && request.late.len() < MAX_ANSWERS {
            request.late.extend(given(source, message, None));
        }
        let ran_out = request.life.status == RequestStatus::Open
            && request.state(source.at) == RequestState::Expired;
        if ran_out {
            let asker = request.ask.by.clone();
            self.close(number, RequestStatus::Expired);
            self.forget_surplus(&asker);
        }
    }
}

fn given(
    source: &Source<'_>,
    message: &Message,
    payload: Option<Payload>,
) -> Option<SubmittedAnswer> {
    Some(SubmittedAnswer {
        item_id: source.item_id.clone(),
        seq: source.seq,
        at: source.at,
        by: source.by.clone(),
        message_type: message.kind?.key().to_owned(),
        payload,
    })
}

/// The party of an execution: the actor that its run names, or else the agent under its own name.
fn running(execution: &Execution) -> Running {
    let run = execution.run.as_ref().map(Payload::value);
    let text = |key: &str| Some(run.as_ref()?.get(key)?.as_str()?.to_owned());
    Running {
        item_id: execution.reaction_item_id.clone(),
        actor: text("actor"),
        agent: text("agent"),
        step_id: None,
        messages: BTreeMap::new(),
    }
}

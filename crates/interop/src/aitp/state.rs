//! The AITP state of a thread: its participants, its requests and their answers.

mod refusal;

use super::actors::named_actor;
use super::change::ParticipantChange;
use super::form::Field;
use super::kind::Purpose;
use super::ledger::{Key, Ledger, MessageVerdict, Request, RequestTerms};
use super::meaning::{RequestedWork, check_answer};
use super::message::{Message, find};
use super::participants::{MayNotSpeak, Participants, Party, PartyBinding};
use super::question::RequestQuestion;
use super::schemas::{Schemas, Strictness};
use jiff::Timestamp;
pub use refusal::{ChangeTurned, MessageRefusal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use timeline::{ItemType, NewItem, Record, Role, Seq};

/// The participants of a thread and its open requests.
///
/// A server folds the thread's records into it and calls [`AitpState::check`] before it records a
/// message. It shows the requests in [`AitpState::pending`]. The size is bounded, whatever the
/// thread's length. The state can be serialised and stored with its [`AitpState::seq`]; the server
/// then folds only later records. If a stored state can't be decoded, the server folds the thread
/// again from the first record. It has no timers: the caller passes the current time, and expiry is
/// derived from it.
///
/// ```
/// use loomline_interop::aitp::{AitpState, RequestRefusal, MessageRefusal};
/// use serde_json::{Value, json};
/// use timeline::{Command, NewItem, NewThread, Record, Role, Seq, State};
///
/// let now: jiff::Timestamp = "2026-01-05T08:00:00Z".parse()?;
/// let (mut log, mut desk, mut seq) = (State::default(), AitpState::default(), Seq::ZERO);
/// let mut run = |desk: &mut AitpState, command: Command| -> Result<(), Box<dyn std::error::Error>> {
///     for event in log.decide(command, now)? {
///         log.apply(&event);
///         seq = seq.next();
///         desk.apply(&Record { seq, at: now, event });
///     }
///     Ok(())
/// };
/// let message = |id: &str, role: Role, text: Value| {
///     let mut item = NewItem::user(id, json!([{"type": "input_text", "text": text.to_string()}]).into());
///     item.role = Some(role);
///     item
/// };
/// run(&mut desk, Command::Create { thread: NewThread::new("t", None), context_id: "c".into() })?;
///
/// // Somebody asks.
/// let ask = json!({"$schema": "https://aitp.dev/v1/decisions/schema.json", "request_decision": {
///     "id": "seat", "options": [{"id": "window"}, {"id": "aisle"}]}});
/// let accepted = desk.check("key_1", &message("ask", Role::Assistant, ask), now)?;
/// run(&mut desk, Command::Record { item: accepted.item })?;
///
/// // A form is shown, and what was clicked becomes a message.
/// let question = desk.pending(now).remove(0);
/// let schemas = loomline_interop::aitp::Schemas::shared()?;
/// let answer = question.answer(schemas, &json!({"option": "aisle"}), now).map_err(|_| "it fits")?;
/// let answer = message("answer", Role::User, Value::Object(answer.value));
/// let accepted = desk.check("key_2", &answer, now)?;
/// run(&mut desk, Command::Record { item: accepted.item })?;
/// assert!(desk.pending(now).is_empty());
///
/// // It is too late to decline.
/// let decline = message("decline", Role::User, Value::Object(question.decline(None).value));
/// let refused = desk.check("key_2", &decline, now);
/// assert!(matches!(refused, Err(MessageRefusal::Refused { refusal: RequestRefusal::Late { .. }, .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AitpState {
    ledger: Ledger,
    // Forms with the fields of the documents they lead to, and the record that asked. A server that
    // begins anew fetches them anew.
    #[serde(skip)]
    fetched: BTreeMap<Key, (Seq, RequestedWork)>,
}

/// A message that the server may record.
#[derive(Clone, Debug)]
pub struct AcceptedMessage {
    /// The item as received. If it names an actor but has no role, the role is set from the actor.
    pub item: NewItem,
    /// The party that posts it, and whether that is an actor bound to the credential.
    pub voice: PartyBinding,
    /// The capability messages in it, in order. Empty for plain text.
    pub messages: Vec<Judged>,
}

/// A capability message that may be recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The index of its part in the content.
    pub index: usize,
    /// The message.
    pub message: Message,
    /// The message's effect on the ledger.
    pub verdict: MessageVerdict,
}

/// A change of the participants that the server may record.
#[derive(Clone, Debug)]
pub struct AcceptedChange {
    /// The item that records it.
    pub item: NewItem,
    /// Whether the actor is new, or bound to this credential. For an unbound actor, the server decides
    /// who may change it.
    pub is_bound: bool,
}

impl AitpState {
    /// Folds one record in; one that is in it already changes nothing.
    pub fn apply(&mut self, record: &Record) {
        self.ledger.apply(record);
    }

    /// The last record that is in it.
    pub fn seq(&self) -> Seq {
        self.ledger.seq()
    }

    /// The state of a fork of this thread. Requests that are open in the parent can be answered in the
    /// fork.
    #[must_use]
    pub fn continued(self) -> Self {
        Self {
            ledger: self.ledger.continued(),
            fetched: BTreeMap::new(),
        }
    }

    /// The thread's participants.
    pub fn participants(&self) -> &Participants {
        self.ledger.participants()
    }

    /// The thread's requests and their answers.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Decides whether a message with this credential may be recorded at `now`, and its effect.
    /// Capability messages are validated leniently.
    pub fn check(
        &self,
        principal: &str,
        message: &NewItem,
        now: Timestamp,
    ) -> Result<AcceptedMessage, MessageRefusal> {
        self.judge_as(principal, message, Strictness::Lenient, now)
    }

    /// Validates a message under a credential at a level of strictness, and decides its effect.
    pub fn judge_as(
        &self,
        principal: &str,
        message: &NewItem,
        strictness: Strictness,
        now: Timestamp,
    ) -> Result<AcceptedMessage, MessageRefusal> {
        if message.item_type != ItemType::Message {
            return Err(MessageRefusal::NotAMessage);
        }
        let actor = named_actor(message.metadata.as_ref()).map_err(MessageRefusal::Actor)?;
        let found = match &message.content {
            Some(content) => find(content)?,
            None => Vec::new(),
        };
        let voice = self.speaker(principal, actor.as_deref(), message.role, &found)?;
        let messages = self.judged(found, &voice.party, strictness, now)?;
        let mut item = message.clone();
        item.role = item.role.or(Some(match voice.party {
            Party::Initiator => Role::User,
            Party::Actor(_) | Party::Agent(_) | Party::Assistant => Role::Assistant,
        }));
        Ok(AcceptedMessage {
            item,
            voice,
            messages,
        })
    }

    /// The party that posts the message. In a thread that never had an actor, the actor id of a plain
    /// message is only the client's note and is ignored. A capability message with an actor id
    /// requires that actor to be a participant.
    fn speaker(
        &self,
        principal: &str,
        actor: Option<&str>,
        role: Option<Role>,
        found: &[(usize, Message)],
    ) -> Result<PartyBinding, MayNotSpeak> {
        let is_plain = found.iter().all(|(_, it)| it.capability.is_none());
        if actor.is_some() && is_plain && self.participants().is_empty() {
            let role = role.or(Some(Role::User));
            return self.participants().may_speak(principal, None, role);
        }
        self.participants().may_speak(principal, actor, role)
    }

    fn judged(
        &self,
        found: Vec<(usize, Message)>,
        by: &Party,
        strictness: Strictness,
        now: Timestamp,
    ) -> Result<Vec<Judged>, MessageRefusal> {
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let schemas = Schemas::shared()?;
        for (place, message) in &found {
            let wrong = schemas.violations(message, strictness);
            if !wrong.is_empty() {
                let place = *place;
                return Err(MessageRefusal::Unfit { place, wrong });
            }
        }
        let place_of = |n: usize| found.get(n).map_or(0, |(place, _)| *place);
        let messages = found.iter().map(|(_, message)| message);
        let verdicts = self.ledger.check_all(messages, by, now);
        let verdicts = verdicts.map_err(|(n, refusal)| {
            let place = place_of(n);
            MessageRefusal::Refused { place, refusal }
        })?;
        let mut judged = Vec::with_capacity(found.len());
        for ((place, message), verdict) in found.into_iter().zip(verdicts) {
            let wrong = self.wrong_with_fetched(&message, &verdict, now);
            if !wrong.is_empty() {
                return Err(MessageRefusal::Unfit { place, wrong });
            }
            judged.push(Judged {
                index: place,
                message,
                verdict,
            });
        }
        Ok(judged)
    }

    /// The violations of an answer against its form's fetched fields.
    fn wrong_with_fetched(
        &self,
        message: &Message,
        verdict: &MessageVerdict,
        now: Timestamp,
    ) -> Vec<super::MessageViolation> {
        let MessageVerdict::Does { request: key, .. } = verdict else {
            return Vec::new();
        };
        let is_answer = message
            .kind
            .is_some_and(|kind| kind.purpose() == Purpose::Answer(key.topic));
        let request = self.ledger.request(key).filter(|_| is_answer);
        let whole = request.and_then(|request| self.whole(request));
        whole.map_or_else(Vec::new, |whole| check_answer(whole, message, now))
    }

    /// The open requests at `now`, in the order in which they were posted.
    pub fn pending(&self, now: Timestamp) -> Vec<RequestQuestion> {
        let requests = self.ledger.pending(now).into_iter();
        requests.filter_map(|it| self.question_about(it)).collect()
    }

    /// The open requests at `now` that this party may answer.
    pub fn pending_for(&self, party: &Party, now: Timestamp) -> Vec<RequestQuestion> {
        let may = |ask: &RequestTerms| self.ledger.may_answer(ask, party).is_ok();
        let requests = self.ledger.pending(now).into_iter();
        let requests = requests.filter(|request| may(&request.ask));
        requests.filter_map(|it| self.question_about(it)).collect()
    }

    /// The latest request under this key, whatever its state.
    pub fn question(&self, key: &Key) -> Option<RequestQuestion> {
        self.question_about(self.ledger.request(key)?)
    }

    /// The last instant at which an answer to the open request that expires first counts.
    pub fn next_end(&self, now: Timestamp) -> Option<Timestamp> {
        let pending = self.ledger.pending(now).into_iter();
        pending.filter_map(|it| it.life.expires_at).min()
    }

    /// The question of a request, even if it is not the latest under its key.
    pub fn question_about(&self, request: &Request) -> Option<RequestQuestion> {
        match self.whole(request) {
            Some(whole) => RequestQuestion::asking(request, whole.clone()),
            None => RequestQuestion::of(request),
        }
    }

    /// A form with its fetched fields, if there are any.
    fn whole(&self, request: &Request) -> Option<&RequestedWork> {
        let (seq, whole) = self.fetched.get(&request.ask.key)?;
        (*seq == request.seq).then_some(whole)
    }

    /// The documents that open forms refer to and that have not been fetched: the key of the request
    /// and the URL. A server may fetch them. It must refuse private addresses and limit size and time.
    pub fn to_fetch(&self, now: Timestamp) -> Vec<(Key, String)> {
        let pending = self.ledger.pending(now).into_iter();
        let unknown = pending.filter(|request| self.whole(request).is_none());
        let urls = unknown.filter_map(|request| match request.ask.question()? {
            RequestedWork::Form(form) => {
                Some((request.ask.key.clone(), form.json_url()?.to_owned()))
            }
            RequestedWork::Choices(_) | RequestedWork::Quote(_) | RequestedWork::Members(_) => None,
        });
        urls.collect()
    }

    /// Adds the fields of such a document. Answers to its form are checked against them from then on.
    /// Fields of forms that are no longer stored are dropped.
    pub fn fetched(&mut self, key: &Key, fields: Vec<Field>) {
        let ledger = &self.ledger;
        self.fetched.retain(|key, (seq, _)| {
            let request = ledger.request(key);
            request.is_some_and(|request| request.seq == *seq)
        });
        let request = ledger.request(key);
        let asked = request.and_then(|it| Some((it.seq, it.ask.question()?)));
        if let Some((seq, RequestedWork::Form(form))) = asked {
            let whole = RequestedWork::Form(form.clone().with_fetched(fields));
            self.fetched.insert(key.clone(), (seq, whole));
        }
    }

    /// Decides whether the item `item_id` may record this participant change under this credential. An
    /// actor that joins is bound to the credential of the request.
    pub fn judge_change(
        &self,
        principal: &str,
        mut change: ParticipantChange,
        item_id: &str,
    ) -> Result<AcceptedChange, ChangeTurned> {
        let is_bound = match &mut change {
            ParticipantChange::Join {
                actor,
                principal: bound,
                ..
            } => {
                if bound.get_or_insert_with(|| principal.to_owned()) != principal {
                    return Err(ChangeTurned::OtherPrincipal(actor.id.clone()));
                }
                self.participants().member(&actor.id).is_none()
            }
            ParticipantChange::Leave { actor_id } | ParticipantChange::Declare { actor_id, .. } => {
                let voice = self
                    .participants()
                    .may_speak(principal, Some(actor_id), None)?;
                voice.is_bound
            }
        };
        self.participants().check(&change)?;
        let item = change.into_item(item_id)?;
        Ok(AcceptedChange { item, is_bound })
    }
}

#[cfg(test)]
mod tests;

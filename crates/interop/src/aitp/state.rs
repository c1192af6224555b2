//! All that a server asks of AITP, as one state of a thread.

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

/// Who takes part in a thread and what waits for an answer there.
///
/// A server folds the thread's records in, asks [`AitpState::check`] before it records what somebody says,
/// and shows what is [`AitpState::pending`]. A desk is bounded, whatever the thread's length. It can be
/// serialised and kept beside its [`AitpState::seq`], and goes on from there; one that can't be read any
/// more is folded anew. Nothing in it runs by itself: what has expired follows from the instant that
/// comes with each question.
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

/// What may be recorded.
#[derive(Clone, Debug)]
pub struct AcceptedMessage {
    /// The item, as it came; where it names its actor and no role, with the role of that actor.
    pub item: NewItem,
    /// Who says it, and whether that is an actor bound to the credential.
    pub voice: PartyBinding,
    /// The capability messages in it, in order. None where it is only text.
    pub messages: Vec<Judged>,
}

/// A capability message that may be recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The place of its part in the content.
    pub index: usize,
    /// The message.
    pub message: Message,
    /// What it does.
    pub verdict: MessageVerdict,
}

/// A change of who takes part that may be recorded.
#[derive(Clone, Debug)]
pub struct AcceptedChange {
    /// The item that records it.
    pub item: NewItem,
    /// Whether the actor is bound to the credential, or new. Who may change one that is bound to none
    /// is for the server to say.
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

    /// A desk that goes on from a parent's (a fork): what was open there can be answered here.
    #[must_use]
    pub fn continued(self) -> Self {
        Self {
            ledger: self.ledger.continued(),
            fetched: BTreeMap::new(),
        }
    }

    /// Who takes part.
    pub fn participants(&self) -> &Participants {
        self.ledger.participants()
    }

    /// What was asked and what came of it.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Whether a message that came in with this credential may be recorded now, and what it does.
    /// Capability messages are held to their schemas leniently.
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

    /// Who says it. Where nobody ever was an actor an id is a note of its client's, unless there is a
    /// capability message: who says that takes part.
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

    /// What of an answer does not fit the fields that its form leads to.
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

    /// The questions that wait for an answer at this instant, in the order in which they were asked.
    pub fn pending(&self, now: Timestamp) -> Vec<RequestQuestion> {
        let requests = self.ledger.pending(now).into_iter();
        requests.filter_map(|it| self.question_about(it)).collect()
    }

    /// Of these, those that somebody may answer.
    pub fn pending_for(&self, party: &Party, now: Timestamp) -> Vec<RequestQuestion> {
        let may = |ask: &RequestTerms| self.ledger.may_answer(ask, party).is_ok();
        let requests = self.ledger.pending(now).into_iter();
        let requests = requests.filter(|request| may(&request.ask));
        requests.filter_map(|it| self.question_about(it)).collect()
    }

    /// The question that was last asked under this key, whatever came of it.
    pub fn question(&self, key: &Key) -> Option<RequestQuestion> {
        self.question_about(self.ledger.request(key)?)
    }

    /// When the next of the questions that wait expires: the last instant at which an answer counts.
    pub fn next_end(&self, now: Timestamp) -> Option<Timestamp> {
        let pending = self.ledger.pending(now).into_iter();
        pending.filter_map(|it| it.life.expires_at).min()
    }

    /// The question that a request is, also one that is not the last under its key.
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

    /// The documents that pending forms lead to and that are not known here: the key of the request
    /// and the URL. A server may fetch them; it refuses private addresses and bounds size and time.
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

    /// Takes in the fields of such a document, which answers to its form are held to from now on.
    /// Those of forms that are not remembered any more go.
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

    /// Whether a change that came in with this credential may be recorded, as an item of this id. Who
    /// joins is bound to the credential it joins with.
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

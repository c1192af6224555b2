//! The requests of AITP as forms, and its messages as cards.

mod capability_card;
mod data;
mod decision;
mod payment;
mod signing;
mod submission;

pub(crate) use capability_card::{capability_card, payload_html};

use crate::form_field::FilledForm;
use crate::{ids, json, time};
use interop::aitp::{Party, RequestState, RequestedWork, Settlement, Topic};
use jiff::Timestamp;
use maud::{Markup, html};
use serde_json::Value;

/// A party of a thread, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadParty {
    /// The party.
    pub party: Party,
    /// Its id or name, if it has one.
    pub name: Option<String>,
    /// Whether only one key may post as it.
    pub is_bound: bool,
    /// Whether the caller may post as it.
    pub is_own: bool,
}

/// Whether the caller may answer a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answerability {
    /// It may, as one of these actors; as the thread's initiator if there are none.
    Allowed(Vec<String>),
    /// It may not, for this reason.
    Refused(String),
}

/// The answer to a request that counts.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestAnswer {
    /// The party that answered.
    pub by: ThreadParty,
    /// When the answer was stored.
    pub at: Timestamp,
    /// The member of the message with the payload.
    pub message_type: String,
    /// The payload.
    pub payload: Option<Value>,
}

/// Why a request is closed without an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestClosing {
    /// The party that declined.
    pub by: Option<ThreadParty>,
    /// The reason, for people.
    pub reason: Option<String>,
    /// The reason, for programs.
    pub code: Option<String>,
}

/// A request of AITP, as the page shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct CapabilityRequest {
    /// The key of the thread.
    pub thread_key: String,
    /// The id to answer it under, such as `decision:seat`.
    pub id: String,
    /// The kind of answer that it needs.
    pub topic: Topic,
    /// The member of its message with the payload.
    pub message_type: String,
    /// The step or the item with its message.
    pub anchor: String,
    /// The position of its message in the log.
    pub seq: u64,
    /// Its state.
    pub state: RequestState,
    /// The party that made it.
    pub by: ThreadParty,
    /// The parties that may answer.
    pub answerers: Vec<ThreadParty>,
    /// Whether the caller may answer.
    pub answerability: Answerability,
    /// When it was made.
    pub created_at: Timestamp,
    /// The last instant at which an answer counts.
    pub expires_at: Option<Timestamp>,
    /// The author's title.
    pub title: Option<String>,
    /// The author's description.
    pub remark: Option<String>,
    /// The payload.
    pub payload: Value,
    /// All that an answer signs, as indented JSON.
    pub signed: Option<String>,
    /// The JSON Schema of an answer's value.
    pub answer_schema: Value,
    /// The decoded payload, with the fields of a form that the server has fetched.
    pub work: Option<RequestedWork>,
    /// The answer that counts.
    pub answer: Option<RequestAnswer>,
    /// Number of answers.
    pub n_answers: usize,
    /// Number of answers that came too late.
    pub n_late: usize,
    /// Why it was declined or cancelled.
    pub closing: RequestClosing,
    /// The result of a payment.
    pub settlement: Option<Settlement>,
    /// A new key, so that the form is sent once.
    pub idempotency_key: String,
    /// The page to return to after an answer without a script, if it is not the thread's.
    pub back: Option<String>,
}

impl ThreadParty {
    /// The party in words.
    pub(crate) fn words(&self) -> String {
        let name = self.name.as_deref().map(json::visible);
        let words = match (&self.party, name) {
            (Party::Initiator, Some(name)) => format!("{name}, who began the thread"),
            (Party::Initiator, None) => "the person who began the thread".to_owned(),
            (Party::Actor(id), _) => json::visible(id).into_owned(),
            (Party::Agent(name), _) => format!("{}, an agent of this server", json::visible(name)),
            (Party::Assistant, _) => "an assistant without a name".to_owned(),
        };
        if self.is_own {
            format!("{words} (you)")
        } else {
            words
        }
    }

    /// The party, with a note if any key may post as it.
    pub(crate) fn html(&self) -> Markup {
        let is_agent = matches!(self.party, Party::Agent(_));
        html! {
            b dir="auto" { (self.words()) }
            @if !self.is_bound && !is_agent { span class="warn" { " not bound to a key" } }
        }
    }
}

impl CapabilityRequest {
    /// The id of its element.
    pub fn element(&self) -> String {
        ids::request(&self.anchor, &self.id)
    }

    /// Whether it is open, and the caller may answer it.
    pub fn waits_for_caller(&self) -> bool {
        self.state == RequestState::Open && matches!(self.answerability, Answerability::Allowed(_))
    }

    /// Whether the caller may answer now: the request is open, or a further answer replaces the first.
    pub(crate) fn takes_answers(&self) -> bool {
        let is_taken = match self.state {
            RequestState::Open => true,
            RequestState::Answered => {
                self.topic.may_be_answered_again() || self.settlement == Some(Settlement::Failure)
            }
            RequestState::Declined
            | RequestState::Cancelled
            | RequestState::Expired
            | RequestState::Superseded => false,
        };
        is_taken && matches!(self.answerability, Answerability::Allowed(_))
    }

    /// The request on a page that shows the thread as it was.
    #[must_use]
    pub fn in_the_past(self) -> Self {
        let reason = "this is the past".to_owned();
        Self {
            answerability: Answerability::Refused(reason),
            // Its end is in the past as well: the page does not count down to it.
            expires_at: None,
            ..self
        }
    }

    /// Whether a page that shows the other one is up to date.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let idempotency_key = other.idempotency_key.clone();
        Self {
            idempotency_key,
            ..self.clone()
        } == *other
    }

    /// The name of the request in lists: its title, or what it is for.
    pub(crate) fn name(&self) -> String {
        // Text of the author is no heading of what is signed.
        let title = self.title.as_ref().filter(|_| self.signed.is_none());
        match title {
            Some(title) => json::visible(title).into_owned(),
            None => topic_words(self.topic).to_owned(),
        }
    }

    /// The request as HTML: its form if the caller may answer, else its outcome.
    pub fn html(&self) -> Markup {
        self.html_with(&FilledForm::default())
    }

    /// The request as HTML, with what a person has filled in.
    pub(crate) fn html_with(&self, filled: &FilledForm) -> Markup {
        let id = self.element();
        html! {
            section class="request card" id=(id) data-state=(self.state.name()) data-expires=[self.expires_at] aria-labelledby=(ids::within(&id, "t")) {
                (self.head(&id))
                @if let Some(signed) = &self.signed { (payment::facts(self)) (signing::data(signed)) }
                (self.remarks())
                (self.outcome())
                @if self.takes_answers() {
                    @if self.state == RequestState::Open {
                        (filled.summary())
                        (self.form(&id, filled))
                        (self.decline_form(&id))
                    } @else {
                        details class="again" id=(ids::within(&id, "again")) open[!filled.is_new()] {
                            summary { "Answer again" }
                            (filled.summary())
                            (self.form(&id, filled))
                        }
                    }
                } @else if self.state == RequestState::Open {
                    (self.refusal())
                }
            }
        }
    }

    fn head(&self, id: &str) -> Markup {
        let words = match self.state {
            RequestState::Open => "open",
            RequestState::Answered => "answered",
            RequestState::Declined => "declined",
            RequestState::Cancelled => "cancelled by its author",
            RequestState::Expired => "expired",
            RequestState::Superseded => "replaced by a newer request",
        };
        html! {
            h3 id=(ids::within(id, "t")) { "Request for " (topic_words(self.topic)) }
            p class="quiet" {
                "Asked by " (self.by.html()) " "
                (time::instant(self.created_at)) ", "
                span class="words" { (words) }
                @if let Some(end) = self.expires_at {
                    @if self.state == RequestState::Open { " until " (time::instant(end)) }
                    @else if self.state == RequestState::Expired { " " (time::instant(end)) }
                }
            }
        }
    }

    /// The author's words, marked as such.
    fn remarks(&self) -> Markup {
        html! {
            @if self.title.is_some() || self.remark.is_some() {
                blockquote class="theirs" {
                    p class="label" { "In the words of " (self.by.words()) }
                    @if let Some(title) = &self.title { p dir="auto" { b { (json::visible(title)) } } }
                    @if let Some(remark) = &self.remark { p class="plain" dir="auto" { (json::visible(remark)) } }
                }
            }
        }
    }

    /// The outcome of the request.
    fn outcome(&self) -> Markup {
        let closing = &self.closing;
        html! {
            @if let Some(answer) = &self.answer {
                div class="result" {
                    p { "Answered by " b dir="auto" { (answer.by.words()) } " " (time::instant(answer.at))
                        @if self.n_answers > 1 { ", the last of " (self.n_answers) " answers" }
                    }
                    @if let Some(payload) = &answer.payload { (payload_html(&answer.message_type, payload)) }
                }
            }
            (payment::settlement(self))
            @if closing.by.is_some() || closing.reason.is_some() || closing.code.is_some() {
                p class="result" {
                    @if let Some(by) = &closing.by { "Declined by " b dir="auto" { (by.words()) } ". " }
                    @if let Some(code) = &closing.code { code { (json::visible(code)) } " " }
                    @if let Some(reason) = &closing.reason { span dir="auto" { "Reason: " (json::visible(reason)) } }
                }
            }
            @if self.n_late > 0 {
                p class="note" {
                    @if self.n_late == 1 { "One answer came too late and does not count." }
                    @else { (self.n_late) " answers came too late and do not count." }
                }
            }
        }
    }

    /// Why the caller may not answer.
    fn refusal(&self) -> Markup {
        let may: Vec<String> = self.answerers.iter().map(ThreadParty::words).collect();
        html! {
            @if let Answerability::Refused(reason) = &self.answerability {
                p class="note refusal" dir="auto" { "You can't answer this request: " (json::visible(reason)) "." }
            }
            @if may.is_empty() { p class="note" { "Nobody in this thread may answer it." } }
            @else { p class="note" dir="auto" { "It may be answered by " (may.join("; ")) "." } }
        }
    }

    fn form(&self, id: &str, filled: &FilledForm) -> Markup {
        let id = ids::within(id, "f");
        match self.topic {
            Topic::Decision => decision::form(self, &id, filled),
            Topic::Data => data::form(self, &id, filled),
            Topic::Payment => payment::quote_form(self, &id, filled),
            Topic::TopUp => payment::top_up_form(self, &id, filled),
            Topic::NearAccount
            | Topic::NearTransaction
            | Topic::NearSigning
            | Topic::EvmAddress
            | Topic::EvmTransaction
            | Topic::EvmSigning => signing::form(self, &id, filled),
        }
    }

    /// The form element around fields and buttons.
    fn form_element(&self, id: &str, fields: &Markup) -> Markup {
        html! {
            form class="answer" id=(id) method="post" action="/ui/request" {
                (self.hidden_fields(&ids::within(id, "as")))
                (fields)
            }
        }
    }

    fn hidden_fields(&self, id: &str) -> Markup {
        html! {
            input type="hidden" name="thread" value=(self.thread_key);
            input type="hidden" name="request" value=(self.id);
            input type="hidden" name="seq" value=(self.seq);
            input type="hidden" name="idempotency_key" value=(self.idempotency_key);
            @if let Some(back) = &self.back { input type="hidden" name="to" value=(back); }
            @if let Answerability::Allowed(actors) = &self.answerability {
                @match actors.as_slice() {
                    [] => {},
                    [actor] => input type="hidden" name="actor" value=(actor);,
                    [_, _, ..] => div class="field" {
                        label for=(id) { "Answer as" }
                        select id=(id) name="actor" {
                            @for actor in actors { option value=(actor) { (json::visible(actor)) } }
                        }
                    },
                }
            }
        }
    }

    fn decline_form(&self, id: &str) -> Markup {
        let id = ids::within(id, "decline");
        html! {
            details class="decline" id=(ids::within(&id, "d")) {
                summary { "Decline" }
                form id=(id) method="post" action="/ui/decline" {
                    (self.hidden_fields(&ids::within(&id, "as")))
                    div class="buttons" {
                        label class="why" { span { "Reason (optional)" } input name="reason" autocomplete="off" maxlength="2000"; }
                        button type="submit" { "Decline the request" }
                    }
                }
            }
        }
    }
}

/// The purpose of a request of this topic.
pub(crate) fn topic_words(topic: Topic) -> &'static str {
    match topic {
        Topic::Decision => "a decision",
        Topic::Data => "data",
        Topic::Payment => "a payment",
        Topic::TopUp => "more money in a payment channel",
        Topic::NearAccount => "a NEAR account",
        Topic::NearTransaction => "a NEAR transaction",
        Topic::NearSigning => "a signature with a NEAR account",
        Topic::EvmAddress => "an EVM address",
        Topic::EvmTransaction => "an EVM transaction",
        Topic::EvmSigning => "a signature with an EVM address",
    }
}

/// The list of the requests that wait for the caller, as links.
pub(crate) fn waiting(requests: &[CapabilityRequest]) -> Markup {
    let waiting: Vec<&CapabilityRequest> =
        requests.iter().filter(|it| it.waits_for_caller()).collect();
    html! {
        nav class="waiting" id=(ids::WAITING) aria-label="Requests that wait for you" {
            @if !waiting.is_empty() {
                span class="quiet" { @if waiting.len() == 1 { "Waits for you:" } @else { (waiting.len()) " wait for you:" } }
                @for request in waiting {
                    a href={ "#" (request.element()) } dir="auto" { (request.name()) }
                }
            }
        }
    }
}

/// A text member of a payload.
fn text_of<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key).and_then(Value::as_str)
}

/// A list of a payload.
fn list_of<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    let list = value.get(key).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

/// The text of an amount or a number, with every digit.
fn amount_of(value: &Value, key: &str) -> Option<String> {
    match value.get(key)? {
        Value::String(text) => Some(json::visible(text).into_owned()),
        Value::Number(number) => {
            let text = number.to_string();
            Some(text.strip_suffix(".0").unwrap_or(&text).to_owned())
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests;

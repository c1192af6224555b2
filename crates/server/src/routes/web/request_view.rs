//! The requests of AITP in a thread, as pages show them.

use crate::auth::Caller;
use crate::error::ApiError;
use crate::routes::aitp::answerer::answering_actors;
use crate::routes::aitp::looked;
use crate::routes::page_query::of_past;
use crate::state::Api;
use crate::threads::ThreadRef;
use interop::aitp::{AitpState, Key, Party, Request, RequestStatus, SubmittedAnswer};
use jiff::Timestamp;
use timeline::{Payload, Seq};
use web::{Answerability, CapabilityRequest, RequestAnswer, RequestClosing, ThreadParty};

/// Reads the requests of a thread, in the order of their messages: those that are open, and the last ones
/// that are closed.
pub(super) async fn read_requests(
    api: &Api,
    thread: &ThreadRef,
) -> Result<Vec<CapabilityRequest>, ApiError> {
    read(api, thread, |ledger| ledger.requests().collect()).await
}

/// Reads the last request with an id.
pub(super) async fn read_request(
    api: &Api,
    thread: &ThreadRef,
    id: &str,
) -> Result<CapabilityRequest, ApiError> {
    let key = Key::read(id).ok_or(ApiError::RequestNotFound)?;
    let found = read(api, thread, |ledger| {
        ledger.request(&key).into_iter().collect()
    })
    .await?;
    found.into_iter().next().ok_or(ApiError::RequestNotFound)
}

/// The requests of a thread as they were after an event. Nobody answers them there.
pub(super) async fn read_past_requests(
    api: &Api,
    thread: &ThreadRef,
    at: Seq,
) -> Result<Vec<CapabilityRequest>, ApiError> {
    let past = api
        .aitp_states(thread.tenant())
        .past(thread.row(), at)
        .await;
    let (desk, now) = past.map_err(of_past)?;
    let view = RequestReader {
        api,
        thread,
        desk: &desk,
        now,
    };
    let requests = desk.ledger().requests();
    let requests = requests.filter_map(|request| view.of(request));
    Ok(requests.map(CapabilityRequest::in_the_past).collect())
}

async fn read(
    api: &Api,
    thread: &ThreadRef,
    which: impl FnOnce(&interop::aitp::Ledger) -> Vec<&Request>,
) -> Result<Vec<CapabilityRequest>, ApiError> {
    let now = Timestamp::now();
    let fetched = api
        .forms()
        .fetch(api.aitp_states(thread.tenant()), thread.row(), now);
    fetched.await?;
    looked(api, thread, |desk| {
        let view = RequestReader {
            api,
            thread,
            desk,
            now,
        };
        let requests = which(desk.ledger()).into_iter();
        requests.filter_map(|request| view.of(request)).collect()
    })
    .await
}

/// Makes the views of one thread's requests.
struct RequestReader<'a> {
    api: &'a Api,
    thread: &'a ThreadRef,
    desk: &'a AitpState,
    now: Timestamp,
}

impl RequestReader<'_> {
    fn caller(&self) -> &Caller {
        self.thread.caller()
    }

    fn of(&self, request: &Request) -> Option<CapabilityRequest> {
        let terms = &request.ask;
        let question = self.desk.question_about(request)?;
        let answerers = self.desk.ledger().answerers(terms);
        let anchor = match &request.step_id {
            Some(step) => step.as_str(),
            None => request.item_id.as_str(),
        };
        Some(CapabilityRequest {
            thread_key: self.thread.key().to_owned(),
            id: terms.key.text(),
            topic: terms.key.topic,
            message_type: terms.message_type.clone(),
            anchor: anchor.to_owned(),
            seq: request.seq.0,
            state: request.state(self.now),
            by: self.party(&terms.by),
            answerers: answerers.iter().map(|it| self.party(it)).collect(),
            answerability: self.answerability(request),
            created_at: request.at,
            expires_at: request.life.expires_at,
            title: question.title.clone(),
            remark: question.remark(),
            payload: terms.payload.value(),
            signed: question.signed_json(),
            work: Some(question.work().clone()),
            answer_schema: question.schema,
            answer: request.answer().map(|it| self.answer(it)),
            n_answers: request.answers.len(),
            n_late: request.late.len(),
            closing: self.closing(&request.life.status),
            settlement: request.life.settlement,
            idempotency_key: self.api.mint(),
            back: None,
        })
    }

    fn party(&self, party: &Party) -> ThreadParty {
        let roster = self.desk.participants();
        let name = match party {
            Party::Initiator => roster.initiator(),
            Party::Actor(id) => Some(id.as_str()),
            Party::Agent(name) => Some(name.as_str()),
            Party::Assistant => None,
        };
        let is_actor = matches!(party, Party::Initiator | Party::Actor(_));
        let member = name.filter(|_| is_actor).and_then(|id| roster.member(id));
        let principal = member.and_then(|member| member.principal.as_deref());
        ThreadParty {
            party: party.clone(),
            name: name.map(str::to_owned),
            is_bound: principal.is_some(),
            is_own: principal == Some(self.caller().principal()),
        }
    }

    /// Whether the caller may answer, by the checks that its answer will meet.
    fn answerability(&self, request: &Request) -> Answerability {
        match answering_actors(self.api, self.thread, self.desk, request) {
            Ok(actors) => Answerability::Allowed(actors),
            Err(why) => Answerability::Refused(why),
        }
    }

    fn answer(&self, answer: &SubmittedAnswer) -> RequestAnswer {
        RequestAnswer {
            by: self.party(&answer.by),
            at: answer.at,
            message_type: answer.message_type.clone(),
            payload: answer.payload.as_ref().map(Payload::value),
        }
    }

    fn closing(&self, status: &RequestStatus) -> RequestClosing {
        match status {
            RequestStatus::Declined(refusal) => RequestClosing {
                by: Some(self.party(&refusal.by)),
                reason: refusal.reason.clone(),
                code: refusal.code.clone(),
            },
            RequestStatus::Cancelled(reason) => RequestClosing {
                reason: reason.clone(),
                ..RequestClosing::default()
            },
            RequestStatus::Open
            | RequestStatus::Answered
            | RequestStatus::Superseded
            | RequestStatus::Expired => RequestClosing::default(),
        }
    }
}

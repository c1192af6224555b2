//! Requests of AITP, which are interrupts to a client.

use crate::aitp::{BodyPointers, MessagePost, asking, filled, open_questions, over};
use crate::error::ApiError;
use crate::state::Api;
use crate::threads::ThreadKey;
use interop::ag_ui::InterruptAnswer;
use interop::aitp::{Key, Request, RequestQuestion, RequestState};
use jiff::Timestamp;
use runtime::RuntimeError;
use serde_json::Value;
use timeline::Seq;

/// Who reads a thread here.
#[derive(Clone)]
pub(super) struct Reader {
    pub(super) api: Api,
    pub(super) thread: ThreadKey,
}

/// What a client says of requests.
#[derive(Clone, Default)]
pub(super) struct Filled {
    /// The capability messages.
    pub(super) parts: Vec<Value>,
    places: Vec<String>,
    /// The agent of this server that has asked first.
    pub(super) agent: Option<String>,
}

impl Filled {
    /// Where the messages stand in the body.
    pub(super) fn position(&self) -> BodyPointers {
        BodyPointers::each("/resume", self.places.clone())
    }

    fn add(&mut self, api: &Api, question: &RequestQuestion, said: &Value, place: String) {
        self.parts.push(said.clone());
        self.places.push(place);
        self.agent = self.agent.take().or_else(|| asking(api, question));
    }
}

impl Reader {
    /// What the run from this event of the log to that one has asked, is open, and may be answered by the
    /// one who began the thread. What others asked meanwhile is not the run's. Costs what came since.
    pub(super) async fn pending_calls(
        &self,
        (first, last): (Seq, Seq),
    ) -> Result<Vec<RequestQuestion>, RuntimeError> {
        let Self { api, thread } = self;
        let found = thread.find().await?;
        let is_own = |request: &Request| request.seq <= last && request.step_id.is_some();
        open_questions(api, found.row(), first, is_own).await
    }

    /// What the client says of requests, each with its place in `resume`.
    pub(super) async fn filled(
        &self,
        answers: &[(usize, Key, &InterruptAnswer)],
    ) -> Result<Filled, ApiError> {
        let mut all = Filled::default();
        if answers.is_empty() {
            return Ok(all);
        }
        let Self { api, thread } = self;
        let found = thread.find().await?;
        let held = MessagePost::new(api, thread.caller())
            .locked_state(found.row())
            .await?;
        let now = Timestamp::now();
        for (place, key, resume) in answers {
            let place = format!("/resume/{place}/payload");
            let found = held.get().and_then(|desk| {
                let state = desk.ledger().request(key)?.state(now);
                Some((desk.question(key)?, state))
            });
            let (question, state) = found.ok_or(ApiError::RequestNotFound)?;
            let message = match &resume.payload {
                Some(value) => filled(&question, over(state), value, &place)?,
                None if state == RequestState::Open => question.decline(None),
                // Giving up what is over says nothing.
                None => continue,
            };
            all.add(api, &question, &message.input_part(), place);
        }
        Ok(all)
    }
}

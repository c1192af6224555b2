//! AITP requests, which clients see as interrupts.

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

/// Reads a thread for one caller.
#[derive(Clone)]
pub(super) struct Reader {
    pub(super) api: Api,
    pub(super) thread: ThreadKey,
}

/// A client's answers to AITP requests.
#[derive(Clone, Default)]
pub(super) struct Filled {
    /// The capability messages.
    pub(super) parts: Vec<Value>,
    places: Vec<String>,
    /// The agent of this server that made the first of the requests.
    pub(super) agent: Option<String>,
}

impl Filled {
    /// The JSON pointers of the messages.
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
    /// The open requests that the run between these two events made and that the thread's initiator may
    /// answer. Requests that others made meanwhile are left out. Costs time proportional to the events
    /// since.
    pub(super) async fn pending_calls(
        &self,
        (first, last): (Seq, Seq),
    ) -> Result<Vec<RequestQuestion>, RuntimeError> {
        let Self { api, thread } = self;
        let found = thread.find().await?;
        let is_own = |request: &Request| request.seq <= last && request.step_id.is_some();
        open_questions(api, found.row(), first, is_own).await
    }

    /// A client's answers to AITP requests, each with its index in `resume`.
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

//! The thread of a new response: found, forked, and written.

use super::page_items::Thread;
use super::past::is_deleted;
use super::refused::refused_at;
use crate::aitp::{BodyPointers, MessagePost};
use crate::error::ApiError;
use crate::threads::{Ephemeral, ThreadKey, answered, key_of};
use interop::ids::response_id;
use interop::options::RunOptions;
use interop::parts::ToolPart;
use interop::responses::{CreateRequest, Last, RequestError, ResponseOf, ThreadInput};
use jiff::Timestamp;
use runtime::{
    Accepted, AnswerRequest, Filter, Policy, ReactRequest, RequestToken, Run, RuntimeError, Side,
    StoreError,
};
use serde::Deserialize as _;
use std::collections::{BTreeMap, BTreeSet};
use timeline::{Answer, ItemType, NewItem, Open, Rejected, Seq, Transcript};

/// A response that has started.
pub(in crate::routes) struct StartedResponse {
    pub(in crate::routes) thread: ThreadKey,
    pub(in crate::routes) of: ResponseOf,
    /// The event before its first.
    pub(in crate::routes) after: Seq,
    /// Whether an earlier request with the same token started it.
    pub(in crate::routes) repeated: bool,
    /// Its thread, if that is not stored.
    pub(in crate::routes) ephemeral: Option<Ephemeral>,
}

/// A thread on which a response will be made.
pub(in crate::routes) struct Continuation<'a> {
    pub(in crate::routes) thread: ThreadKey,
    pub(in crate::routes) speech: MessagePost<'a>,
    /// The client's name for the response or conversation that it continues.
    pub(in crate::routes) continued_id: &'a str,
    /// Whether the thread exists. If it is deleted in the meantime, no new one is made.
    pub(in crate::routes) must_exist: bool,
    /// The member of the body that has the input: a JSON pointer.
    pub(in crate::routes) input_at: &'static str,
}

impl Continuation<'_> {
    /// The response that an earlier request with this token started on the thread. Fails if that
    /// response was deleted.
    pub(in crate::routes) async fn repeated(
        &self,
        token: Option<&RequestToken>,
    ) -> Result<Option<StartedResponse>, ApiError> {
        if token.is_none() {
            return Ok(None);
        }
        let found = match self.thread.find().await {
            Ok(found) => found,
            // It is made with what is said first.
            Err(RuntimeError::Store(StoreError::NotFound)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let thread = found.id();
        let accepted = answered(found.runtime(), thread, token).await?;
        let Some(begun) = accepted.map(|accepted| self.begun(accepted)) else {
            return Ok(None);
        };
        if let ResponseOf::Execution(execution) = &begun.of
            && let Some(id) = response_id(thread.as_str(), execution.as_str())
            && is_deleted(found.runtime(), found.tenant(), &id).await?
        {
            return Err(RequestError::response_not_found(&id).into());
        }
        Ok(Some(begun))
    }

    /// The whole conversation, with the text of answers that were cut off.
    pub(super) async fn transcript(&self) -> Result<Transcript, RuntimeError> {
        self.thread.transcript(Filter::All).await
    }

    /// Forks the thread at this event; returns the fork's key and whether it is new.
    pub(super) async fn fork(
        &self,
        token: Option<String>,
        at: Seq,
    ) -> Result<(ThreadKey, bool), ApiError> {
        let forked = self.thread.fork(token, Some(at));
        match forked.await {
            Ok(row) => Ok((self.thread.forked(key_of(&row))?, true)),
            // The same request has been here before.
            Err(RuntimeError::Store(StoreError::KeyTaken(key))) => {
                Ok((self.thread.forked(&key)?, false))
            }
            Err(error) => Err(self.refused(error)),
        }
    }

    /// Continues on this thread. If an earlier request with the same token started a response, returns
    /// that.
    pub(super) async fn continue_from(
        &self,
        request: &CreateRequest,
        run: Run,
        token: Option<RequestToken>,
    ) -> Result<StartedResponse, ApiError> {
        if let Some(begun) = self.repeated(token.as_ref()).await? {
            return Ok(begun);
        }
        self.begin(self.read_input(request).await?, run, token)
            .await
    }

    /// Continues on this thread if it has no message and no execution after this event. Otherwise
    /// returns `None` and writes nothing.
    pub(super) async fn go_on_after(
        &self,
        request: &CreateRequest,
        run: Run,
        token: Option<RequestToken>,
        last: Seq,
    ) -> Result<Option<StartedResponse>, ApiError> {
        let input = match self.read_input(request).await {
            Ok(input) => input,
            // The input may be wrong only because of later messages, which the fork does not have.
            Err(_) if self.is_followed(last).await? => return Ok(None),
            Err(error) => return Err(error),
        };
        // The commit checks that nothing follows `last`, under the lock of the thread.
        match self.start(input, run, token, Some(last)).await {
            Ok(begun) => Ok(Some(begun)),
            Err(RuntimeError::Followed(_)) => Ok(None),
            Err(error) => Err(self.refused(error)),
        }
    }

    /// Whether the thread has a new message or execution since this event.
    async fn is_followed(&self, last: Seq) -> Result<bool, RuntimeError> {
        let found = self.thread.find().await?;
        let (store, thread) = (found.runtime().store(), found.id());
        Ok(store
            .nearest_run(thread, Side::After(last))
            .await?
            .is_some()
            || !store
                .nearest_triggers(thread, Side::After(last), 1)
                .await?
                .is_empty())
    }

    /// The JSON pointers of the request's input items. Several items may form one message.
    pub(super) fn position(&self) -> impl Fn(usize) -> BodyPointers + Copy + use<> {
        let at = self.input_at;
        move |_| BodyPointers::text(at)
    }

    /// The error that the client receives for a refusal.
    pub(in crate::routes) fn refused(&self, error: RuntimeError) -> ApiError {
        refused_at(error, self.continued_id, self.input_at)
    }

    /// The response to new messages on this thread.
    pub(in crate::routes) async fn begin(
        &self,
        said: ThreadInput,
        run: Run,
        token: Option<RequestToken>,
    ) -> Result<StartedResponse, ApiError> {
        let begun = self.start(said, run, token, None).await;
        begun.map_err(|error| self.refused(error))
    }

    async fn read_input(&self, request: &CreateRequest) -> Result<ThreadInput, ApiError> {
        self.check_named(request).await?;
        let mut open = BTreeSet::new();
        if request.has_calls() {
            let calls = self.open(None).await?.map(|open| open.calls);
            let calls = calls.unwrap_or_default().into_iter();
            open.extend(calls.map(|call| call.tool_call_id));
        }
        let request = request.without_calls(&open);
        let mut mint = || self.thread.runtime().mint();
        Ok(request.thread_input(&BTreeMap::new(), None, Timestamp::now(), &mut mint)?)
    }

    /// Refuses item references whose items don't exist.
    async fn check_named(&self, request: &CreateRequest) -> Result<(), ApiError> {
        let thread = Thread::of(&self.thread);
        let named: Vec<_> = request.references().collect();
        let ids: Vec<&str> = named.iter().map(|(id, _)| *id).collect();
        let there = thread.listed(&ids).await?;
        match named.iter().find(|(id, _)| !there.contains(*id)) {
            Some((id, pointer)) => {
                Err(RequestError::item_not_found(id, &format!("{pointer}/id")).into())
            }
            None => Ok(()),
        }
    }

    /// The response to new messages. With `last`, only if no message and no execution follows it on the
    /// thread.
    pub(in crate::routes) async fn start(
        &self,
        said: ThreadInput,
        run: Run,
        token: Option<RequestToken>,
        last: Option<Seq>,
    ) -> Result<StartedResponse, RuntimeError> {
        let tenant = self.thread.tenant().clone();
        let key = self.thread.key().to_owned();
        let accepted = match said.last {
            Last::Item(item) => {
                let mut said_before = said.records.iter().map(|record| record.item_type);
                let says_nothing = item.item_type == ItemType::ItemReference
                    && !said_before.any(|item_type| item_type == ItemType::Message);
                if says_nothing {
                    self.check_answered(last).await?;
                }
                let react = ReactRequest {
                    must_exist: self.must_exist,
                    before: said.records,
                    run,
                    policy: Policy::Reject,
                    token,
                    ..ReactRequest::new(tenant, key, item)
                };
                self.speech.react(react, last, self.position()).await
            }
            Last::Answers(item) => {
                if last.is_none() {
                    self.check_rest().await?;
                }
                self.check_left(&item, &run, last).await?;
                let answer = AnswerRequest {
                    tenant,
                    key,
                    item,
                    run: Some(run),
                    token,
                };
                let position = self.position();
                self.speech.answer(answer, (None, last), position).await
            }
        };
        Ok(self.begun(accepted?))
    }

    /// The response that a request was answered with.
    fn begun(&self, accepted: Accepted) -> StartedResponse {
        let Accepted {
            item_id,
            execution_id,
            after,
            repeated,
            ..
        } = accepted;
        let of = execution_id.map(ResponseOf::Execution);
        StartedResponse {
            thread: self.thread.clone(),
            of: of.unwrap_or(ResponseOf::Trigger(item_id)),
            after,
            repeated,
            ephemeral: None,
        }
    }

    /// Fails if another response is running.
    pub(in crate::routes) async fn check_rest(&self) -> Result<(), RuntimeError> {
        let (state, _) = self.thread.state().await?;
        match state.active() {
            Some(active) => Err(RuntimeError::Busy(active.execution.id.clone())),
            None => Ok(()),
        }
    }

    /// The calls that wait on the thread; with `last`, only those that wait since it.
    async fn open(&self, last: Option<Seq>) -> Result<Option<Open>, RuntimeError> {
        let found = match self.thread.find().await {
            Ok(found) => found,
            // It is made with what is said first.
            Err(RuntimeError::Store(StoreError::NotFound)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let (store, thread) = (found.runtime().store(), found.id());
        let open = store.head(thread).await?.state.open().cloned();
        // What was left open since is no concern of whoever goes on from before it.
        if let (Some(_), Some(last)) = (&open, last)
            && store
                .nearest_run(thread, Side::After(last))
                .await?
                .is_some()
        {
            return Ok(None);
        }
        Ok(open)
    }

    /// Refuses a request without new messages while a call is pending: the call would stay without a
    /// result. A stored call that already has a result does not count.
    async fn check_answered(&self, last: Option<Seq>) -> Result<(), RuntimeError> {
        let open = self.open(last).await?;
        match open.and_then(|open| open.calls.into_iter().next()) {
            Some(call) => Err(Rejected::Unanswered(call.tool_call_id).into()),
            None => Ok(()),
        }
    }

    /// Refuses answers that leave a client's call pending without sending its tool again. Otherwise the
    /// server could not know that the call is the client's.
    async fn check_left(
        &self,
        answers: &NewItem,
        run: &Run,
        last: Option<Seq>,
    ) -> Result<(), RuntimeError> {
        let Some(open) = self.open(last).await? else {
            return Ok(());
        };
        let (before, now) = (sent(&Run::of(open.execution.run.as_ref())), sent(run));
        let answers = Answer::read(answers.content.as_ref()).unwrap_or_default();
        let is_open = |answer: &Answer| {
            let mut calls = open.calls.iter();
            calls.any(|call| call.tool_call_id == answer.tool_call_id)
        };
        if !answers.iter().all(is_open) {
            // What is wrong with it is for the runtime to say.
            return Ok(());
        }
        let left = open.calls.into_iter().find(|call| {
            let tool = ToolPart::read(&call.part);
            let name = tool.as_ref().map(ToolPart::tool_name).unwrap_or_default();
            before.contains(name)
                && !now.contains(name)
                && answers
                    .iter()
                    .all(|it| it.tool_call_id != call.tool_call_id)
        });
        match left {
            Some(call) => Err(Rejected::Unanswered(call.tool_call_id).into()),
            None => Ok(()),
        }
    }
}

/// The names of the client's tools in the parameters of a run.
fn sent(run: &Run) -> BTreeSet<String> {
    let options = run.params.as_ref().map(RunOptions::deserialize);
    let tools = options.and_then(Result::ok).unwrap_or_default().tools;
    tools.into_iter().map(|tool| tool.name).collect()
}

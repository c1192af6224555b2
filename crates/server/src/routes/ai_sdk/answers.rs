//! Answers to calls that a client writes into the message with the calls.

use super::lookup::Chat;
use super::stream::{UiStream, Wanted};
use crate::aitp::{BodyPointers, MessagePost};
use crate::auth::hash_text;
use crate::error::ApiError;
use crate::routes::answers::ancestors::AnswerTarget;
use crate::routes::answers::item;
use crate::threads::answered;
use axum::response::Response;
use interop::ai_sdk::{
    ChatAnswer, MessageSoFar, SentMessage, StoredMessage, message_so_far, subagent,
};
use interop::run::RunSelector;
use runtime::{
    Accepted, Addressed, AnswerRequest, Filter, Landmark, PageRequest, Pending, RequestToken,
    RuntimeError, StoreError, ThreadContinuation,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use timeline::{ExecutionId, OpenCall, OpenKind};

/// A client's answers: those to the thread's own calls, and those to sub-agents' calls by the keys of
/// their threads.
#[derive(Default)]
pub(super) struct ClientAnswers {
    own: Vec<ChatAnswer>,
    beneath: BTreeMap<String, Vec<ChatAnswer>>,
    /// The answers that sub-agents' threads already accepted from this request.
    taken: Vec<(String, Accepted)>,
}

impl ClientAnswers {
    pub(super) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.beneath.is_empty() && self.taken.is_empty()
    }
}

/// The token of the answers to one thread: derived from the request's token, if it has one. Otherwise it
/// is a hash of the answers, so that equal answers in one message get the same token.
fn token_for(
    message: &SentMessage,
    token: Option<&RequestToken>,
    key: &str,
    answers: &[ChatAnswer],
) -> RequestToken {
    if let Some(token) = token {
        return token.derived(format!("{token}:{key}"));
    }
    let parts: Vec<&Value> = answers.iter().map(|it| &it.part).collect();
    let said = hash_text(&json!(parts).to_string());
    format!("chat-answers:{}:{said}", message.id).into()
}

/// The answers in a message to pending approvals and pending external calls. Other answers in the
/// client's message are ignored.
pub(super) async fn client_answers(
    chat: Chat<'_>,
    message: &SentMessage,
    token: Option<&RequestToken>,
) -> Result<ClientAnswers, ApiError> {
    let answers = answers(chat, message);
    if answers.is_empty() {
        return Ok(ClientAnswers::default());
    }
    let pending = pending(chat).await?;
    let is_there = pending.is_some();
    let pending = pending.unwrap_or_default();
    let mut given = ClientAnswers::default();
    let mut others = BTreeMap::<String, Vec<ChatAnswer>>::new();
    for (key, answer) in answers {
        let is_asked = pending.iter().any(|asked| is_to(&answer, asked, &key));
        let to = match (is_asked, key == chat.thread.key()) {
            (true, true) => &mut given.own,
            (true, false) => given.beneath.entry(key).or_default(),
            (false, _) => others.entry(key).or_default(),
        };
        to.push(answer);
    }
    if given.is_empty() {
        // Perhaps the same request again: the runtime knows it, or says what became of the calls.
        let own = others.remove(chat.thread.key()).unwrap_or_default();
        given.own = given_before(chat, message, token, own, is_there).await?;
        for (key, answers) in others.into_iter().filter(|_| is_there) {
            let known_by = token_for(message, token, &key, &answers);
            let before = taken_before(chat, &key, &answers, &known_by).await?;
            given.taken.extend(before.map(|accepted| (key, accepted)));
        }
    }
    Ok(given)
}

/// The answers in a message, each with the calling thread's key and the call's id there. If a call has
/// several answers, the last one counts.
fn answers(chat: Chat<'_>, message: &SentMessage) -> Vec<(String, ChatAnswer)> {
    let mut seen = BTreeSet::new();
    let mut answers = Vec::new();
    for answer in message.answers().into_iter().rev() {
        let id = answer.tool_call_id.as_str();
        let (key, call) = subagent::read_call(id).unwrap_or((chat.thread.key(), id));
        if seen.insert((key.to_owned(), call.to_owned())) {
            answers.push((key.to_owned(), answer.to(call)));
        }
    }
    answers.reverse();
    answers
}

/// For answers to own calls that are no longer pending: those that the thread accepted from this request
/// before, or else those that need an error. Costs time proportional to the message.
async fn given_before(
    chat: Chat<'_>,
    message: &SentMessage,
    token: Option<&RequestToken>,
    mut own: Vec<ChatAnswer>,
    is_there: bool,
) -> Result<Vec<ChatAnswer>, ApiError> {
    let stored = if is_there && !own.is_empty() {
        chat.stored(message).await?
    } else {
        None
    };
    let left = stored.iter().flat_map(StoredMessage::left).rev();
    // What else the message has was there by then.
    for left in left.filter(|left| !left.is_empty()) {
        let is_to = |answer: &&ChatAnswer| left.iter().any(|open| fits(answer, open));
        let answers: Vec<ChatAnswer> = own.iter().filter(is_to).cloned().collect();
        let known_by = token_for(message, token, chat.thread.key(), &answers);
        if !answers.is_empty() && submit(chat, chat.thread.key(), &known_by).await?.is_some() {
            return Ok(answers);
        }
    }
    // What is said to be a result may be one of the server's own tools.
    own.retain(|answer| answer.is_approval);
    Ok(own)
}

/// The pending calls of a thread and its sub-agents; none if the thread does not exist.
async fn pending(chat: Chat<'_>) -> Result<Option<Vec<Pending>>, ApiError> {
    match chat.thread.pending().await {
        Err(RuntimeError::Store(StoreError::NotFound)) => Ok(None),
        found => Ok(Some(found?.0)),
    }
}

/// Whether an answer for the thread with this key fits this pending call.
fn is_to(answer: &ChatAnswer, asked: &Pending, key: &str) -> bool {
    asked.address.key == key && fits(answer, &asked.call)
}

/// Whether an answer is for this call and of its kind.
fn fits(answer: &ChatAnswer, open: &OpenCall) -> bool {
    let kind = if answer.is_approval {
        OpenKind::Approval
    } else {
        OpenKind::External
    };
    open.tool_call_id == answer.tool_call_id && open.kind == kind
}

/// Answers the chat's own pending calls that an earlier message of the client than the current one
/// answers. Answers to calls of sub-agents are ignored.
pub(super) async fn first(
    chat: Chat<'_>,
    message: &SentMessage,
    token: Option<&RequestToken>,
) -> Result<(), ApiError> {
    let answers = answers(chat, message);
    if answers.is_empty() {
        return Ok(());
    }
    let pending = pending(chat).await?.unwrap_or_default();
    let is_open = |(key, answer): &(String, ChatAnswer)| {
        let mut pending = pending.iter();
        key == chat.thread.key() && pending.any(|asked| is_to(answer, asked, key))
    };
    let answers = answers.into_iter().filter(is_open);
    let answers: Vec<ChatAnswer> = answers.map(|(_, answer)| answer).collect();
    if answers.is_empty() {
        return Ok(());
    }
    let token = token_for(message, token, chat.thread.key(), &answers);
    let place = BodyPointers::text(format!("{}/parts", message.pointer()));
    answer(chat, chat.thread.key(), (answers, token), &place).await?;
    Ok(())
}

/// The result that a sub-agent's thread stored under a token, if any.
async fn taken_before(
    chat: Chat<'_>,
    key: &str,
    answers: &[ChatAnswer],
    token: &RequestToken,
) -> Result<Option<Accepted>, ApiError> {
    if !is_descendant(chat, key, answers).await? {
        return Ok(None);
    }
    submit(chat, key, token).await
}

/// The result that the thread with this key stored under a token, if any.
async fn submit(
    chat: Chat<'_>,
    key: &str,
    token: &RequestToken,
) -> Result<Option<Accepted>, ApiError> {
    let found = chat.thread.descendant(key).find().await?;
    Ok(answered(found.runtime(), found.id(), Some(token)).await?)
}

/// Posts the answers to the calls, and streams the continuation into the message with the calls.
pub(super) async fn reply(
    chat: Chat<'_>,
    (message, given): (&SentMessage, ClientAnswers),
    token: Option<RequestToken>,
    wanted: Wanted,
) -> Result<Response, ApiError> {
    let api = chat.api;
    let open = api.open_stream(chat.thread.caller())?;
    let calls = message
        .answers()
        .into_iter()
        .map(|answer| answer.tool_call_id);
    let calls = calls.filter(|id| subagent::read_call(id).is_some());
    let (state, _) = chat.thread.state().await?;
    let token =
        |key: &str, answers: &[ChatAnswer]| token_for(message, token.as_ref(), key, answers);
    let place = BodyPointers::text(format!("{}/parts", message.pointer()));
    // None is taken before all may be: what was taken is to be shown.
    for (key, answers) in &given.beneath {
        if !is_descendant(chat, key, answers).await? {
            let what = "this thread is not one of a sub-agent beneath the chat's";
            return Err(ApiError::field(
                format!("{}/parts", message.pointer()),
                what,
            ));
        }
    }
    let mut beneath = given.taken;
    for (key, answers) in given.beneath {
        let token = token(&key, &answers);
        let accepted = answer(chat, &key, (answers, token), &place).await?;
        beneath.push((key, accepted));
    }
    let mut heard = Vec::new();
    if !given.own.is_empty() {
        let token = token(chat.thread.key(), &given.own);
        let accepted = answer(chat, chat.thread.key(), (given.own, token), &place).await?;
        heard.push(ThreadContinuation {
            item: Some(accepted.item_id),
            execution: accepted.execution_id,
            before: accepted.after,
        });
    }
    // Not before all are taken: where the thread hears of one may depend on the next.
    for (key, accepted) in &beneath {
        let goes_on = chat.thread.has_continuation(key, accepted);
        heard.push(goes_on.await?);
    }
    let AnswerTarget {
        first,
        then,
        before,
    } = AnswerTarget::of(chat.thread, heard).await?;
    let last = state.active().map(|active| &active.execution.id);
    let last = last.or(state.open().map(|open| &open.execution.id));
    let mut message = None;
    if let Some(execution) = &first.execution {
        message = so_far(chat, execution, false).await?;
    }
    // One that has yet to begin goes on with what there is; one that ran by then may be the message's first.
    let ran = first.item.is_none() && first.execution.is_some();
    if let Some(last) = last.filter(|_| message.is_none() && !ran) {
        message = so_far(chat, last, true).await?;
    }
    let run = match first.item {
        Some(item) => RunSelector::answering(item),
        None => RunSelector::running(first.execution),
    };
    let stream = UiStream::new(run.then_answering(then), wanted).continuing(message);
    let stream = stream.with_calls(calls);
    stream.response(chat.thread, before, open).await
}

/// Whether the thread with these calls is a descendant of this thread.
async fn is_descendant(
    chat: Chat<'_>,
    key: &str,
    answers: &[ChatAnswer],
) -> Result<bool, ApiError> {
    for answer in answers {
        let call = answer.tool_call_id.as_str();
        let to = chat.thread.addressed(call, Some(key), None);
        match to.await? {
            Addressed::To(found) if found == key => {}
            Addressed::To(_) | Addressed::Ambiguous | Addressed::OtherThread => return Ok(false),
        }
    }
    Ok(true)
}

async fn answer(
    chat: Chat<'_>,
    key: &str,
    (answers, token): (Vec<ChatAnswer>, RequestToken),
    place: &BodyPointers,
) -> Result<Accepted, ApiError> {
    let parts = answers.into_iter().map(|answer| answer.part);
    let content = Value::Array(parts.collect()).into();
    let metadata = json!({"tenant": chat.thread.tenant().as_str(), "via": "ai-sdk"});
    let runtime = chat.thread.runtime();
    let request = AnswerRequest {
        run: None,
        tenant: chat.thread.tenant().clone(),
        key: key.to_owned(),
        item: item(runtime.mint(), content, metadata),
        token: Some(token),
    };
    let speech = MessagePost::new(chat.api, chat.thread.caller());
    Ok(speech
        .answer(request, (None, None), |_| place.clone())
        .await?)
}

/// The message that an execution continues, without that execution's own parts or, if `with_it`, with
/// them. Costs time proportional to the message.
async fn so_far(
    chat: Chat<'_>,
    execution: &ExecutionId,
    with_it: bool,
) -> Result<Option<MessageSoFar>, ApiError> {
    let landmark = Landmark::Execution(execution);
    let place = chat.thread.position_of(landmark).await?;
    let Some(place) = place else { return Ok(None) };
    let piece = PageRequest::UpTo { place, n: 1 };
    let piece = chat.thread.page(piece, Filter::Facts).await?;
    Ok(message_so_far(&piece.transcript, execution, with_it))
}

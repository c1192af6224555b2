//! Answers that a client puts into the message that asked.

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
    Accepted, Addressed, AnswerRequest, Filter, GoesOn, Landmark, PageRequest, Pending,
    RequestToken, RuntimeError, StoreError,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use timeline::{ExecutionId, OpenCall, OpenKind};

/// What a client answers: what the thread itself has asked, and what its sub-agents have, by the keys of
/// their threads.
#[derive(Default)]
pub(super) struct ClientAnswers {
    own: Vec<ChatAnswer>,
    beneath: BTreeMap<String, Vec<ChatAnswer>>,
    /// What threads of sub-agents have taken from the same request before.
    taken: Vec<(String, Accepted)>,
}

impl ClientAnswers {
    pub(super) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.beneath.is_empty() && self.taken.is_empty()
    }
}

/// The token of the answers that a thread gets from a request: the request's own, or one that the same
/// answers in the same message have again, and others to the same calls have not.
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

/// The answers to what was asked: questions, and calls of tools that clients run and whose results
/// are waited for. What else stands in the client's message was never asked.
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

/// The answers in a message, each to the call as its thread names it, with the key of that thread. Where a
/// client was asked twice about a call, what it has said last.
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

/// Of answers to the thread's own calls, none of which waits, those that it has taken from the same request
/// before, or else those that it is to say something of. Costs what the message has.
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

/// What a thread and those beneath it wait for; none where there is no thread.
async fn pending(chat: Chat<'_>) -> Result<Option<Vec<Pending>>, ApiError> {
    match chat.thread.pending().await {
        Err(RuntimeError::Store(StoreError::NotFound)) => Ok(None),
        found => Ok(Some(found?.0)),
    }
}

/// Whether an answer, for the thread with this key, is to what is asked.
fn is_to(answer: &ChatAnswer, asked: &Pending, key: &str) -> bool {
    asked.address.key == key && fits(answer, &asked.call)
}

/// Whether an answer is to this call.
fn fits(answer: &ChatAnswer, open: &OpenCall) -> bool {
    let kind = if answer.is_approval {
        OpenKind::Approval
    } else {
        OpenKind::External
    };
    open.tool_call_id == answer.tool_call_id && open.kind == kind
}

/// Answers those of the chat's own calls that wait which the client has answered in an earlier message than
/// the one that it sends now. What it says of calls of sub-agents is left with them.
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

/// What a thread beneath this one has taken under a token, if it has.
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

/// What the thread of this key has taken under a token, if it has.
async fn submit(
    chat: Chat<'_>,
    key: &str,
    token: &RequestToken,
) -> Result<Option<Accepted>, ApiError> {
    let found = chat.thread.descendant(key).find().await?;
    Ok(answered(found.runtime(), found.id(), Some(token)).await?)
}

/// Answers calls, and streams what follows into the message that has them.
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
        heard.push(GoesOn {
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

/// Whether the thread that has these calls is one beneath this one.
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

/// The message that an execution goes on with, as far as others have written it, or as it stands with
/// it. It costs what the message has.
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

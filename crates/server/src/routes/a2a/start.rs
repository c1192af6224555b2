//! Messages that start a task, or answer one.

use super::lookup::{Read, Task, Wanted};
use super::stream::Stream;
use super::{Agent, answers};
use crate::aitp::{BodyPointers, MessagePost};
use crate::auth::Caller;
use crate::error::ApiError;
use crate::routes::answers::{ancestors::went_on, item as answers_item};
use crate::state::Api;
use crate::threads::{ThreadKey, ThreadRef, answered, check_key, check_new_key};
use interop::a2a::{
    ErrorKind, Incoming, MESSAGE_METADATA, ReplyAnswer, RequestError, SendMessage, TaskAnswer,
    TaskState, TaskView,
};
use interop::ids::THREAD;
use interop::model::unreadable_part;
use jiff::Timestamp;
use runtime::{Addressed, AnswerRequest, ReactRequest, Run, RuntimeError};
use serde_json::{Value, json};
use timeline::{Entity, NewItem, Payload, Rejected, Seq, attached_message, check_parts};

/// A task that a message has started or continued.
pub(super) struct Sent {
    task: Task,
    view: TaskView,
    first: Option<Value>,
    after: Seq,
}

/// Posts a message, and responds with the task when it is over or waits for an answer, or at once.
pub(super) async fn send(
    api: &Api,
    caller: &Caller,
    agent: Agent,
    request: SendMessage,
) -> Result<Value, ApiError> {
    // Before anything is written: a client that can't be served has changed nothing.
    let open = (!request.return_immediately)
        .then(|| api.open_stream(caller))
        .transpose()?;
    let wanted = Wanted {
        history_length: request.history_length,
    };
    let sent = begin(api, caller, agent, &request.message, wanted).await?;
    let task = sent.task.clone();
    if let Some(open) = open {
        sent.stream(api).await?.has_ended(open).await?;
    }
    let read = task.read(api, wanted).await?;
    Ok(json!({ "task": read.json }))
}

/// Posts a message, and streams the task's events.
pub(super) async fn stream(
    api: &Api,
    caller: &Caller,
    agent: Agent,
    request: SendMessage,
) -> Result<Stream, ApiError> {
    let wanted = Wanted {
        history_length: request.history_length,
    };
    let sent = begin(api, caller, agent, &request.message, wanted).await?;
    sent.stream(api).await
}

impl Sent {
    async fn stream(self, api: &Api) -> Result<Stream, ApiError> {
        Stream::of(api, &self.task, self.view, self.first, self.after).await
    }
}

async fn begin(
    api: &Api,
    caller: &Caller,
    Agent(agent): Agent,
    message: &Incoming,
    wanted: Wanted,
) -> Result<Sent, ApiError> {
    if let Some(id) = &message.task_id {
        let task = Task::find(api, caller, id).await?;
        // The answer is the whole task, with what it has said before.
        caller.check_read()?;
        return answer(api, caller, task, message, wanted).await;
    }
    let content = message.content()?;
    check_parts(&content).map_err(|error| message.wrong_parts(error))?;
    if let Some(place) = unreadable_part(&content) {
        return Err(message.unreadable(place).into());
    }
    let (thread, must_exist) = context(api, caller, message).await?;
    let content = Value::Array(content).into();
    let mut item = NewItem::user(api.mint(), content);
    item.channel = Some("a2a".into());
    item.metadata = Some(message.metadata.clone().into());
    let react = ReactRequest {
        run: Run {
            agent,
            ..Run::default()
        },
        must_exist,
        token: Some(token(message).into()),
        ..ReactRequest::new(caller.tenant.clone(), thread.key(), item)
    };
    let speech = MessagePost::new(api, caller);
    let accepted = speech.react(react, None, |_| place(message)).await;
    let accepted = accepted.map_err(refused_reply)?;
    let task = Task::of(&thread.find().await?, &accepted.item_id)?;
    let view = TaskView::new(&task.id, task.thread.key(), task.item.clone());
    Ok(Sent {
        task,
        view: view.with_history(wanted.history_length),
        first: None,
        after: accepted.after,
    })
}

/// The error of a message that started no task. A closed thread is reported like a finished task.
fn refused_reply(error: RuntimeError) -> ApiError {
    let is_closed = matches!(
        &error,
        RuntimeError::Rejected(Rejected::Transition(illegal)) if illegal.entity == Entity::Thread
    );
    if is_closed {
        let what = "the context is closed: send the message without a contextId, or with a new one";
        return RequestError::new(ErrorKind::UnsupportedOperation, what).into();
    }
    error.into()
}

/// The thread for a message, from its context or new, and whether it exists.
async fn context(
    api: &Api,
    caller: &Caller,
    message: &Incoming,
) -> Result<(ThreadKey, bool), ApiError> {
    let Some(id) = &message.context_id else {
        check_new_key(caller, None, "")?;
        let minted = api.mint();
        return Ok((ThreadKey::new(api, caller, &minted)?, false));
    };
    if let Some(found) = ThreadRef::find(api, caller, THREAD, id).await? {
        return Ok((ThreadKey::clone(&found), true));
    }
    check_key(id, "").map_err(|error| message.wrong_context(error))?;
    Ok((ThreadKey::new(api, caller, id)?, false))
}

/// The JSON pointers of a message.
fn place(message: &Incoming) -> BodyPointers {
    BodyPointers::parts(message.at("parts"))
}

/// The idempotency token of a message: the same message id in the same context is a repetition.
fn token(message: &Incoming) -> String {
    format!("a2a:{}", message.message_id)
}

/// Answers the questions of a task.
async fn answer(
    api: &Api,
    caller: &Caller,
    task: Task,
    message: &Incoming,
    wanted: Wanted,
) -> Result<Sent, ApiError> {
    if let Some(context) = &message.context_id {
        let named = ThreadRef::find(api, caller, THREAD, context).await?;
        if named.is_none_or(|row| row.id() != task.thread.id()) {
            return Err(message
                .wrong_context("this is not the task's context")
                .into());
        }
    }
    let read = task.read(api, wanted).await?;
    let token = token(message);
    if read.n_went_on > 0 || !read.waiting.requests.is_empty() {
        let speaker = (api, caller);
        let replied = answers::reply(speaker, &task, message, (&read, &token)).await?;
        if let Some((n_before, after)) = replied {
            let view = TaskView::new(&task.id, task.thread.key(), task.item.clone());
            return Ok(Sent {
                view: view.resting().after_answers(n_before),
                first: Some(continued_task(read)),
                after,
                task,
            });
        }
    }
    let asked = read.waiting.calls.as_deref().unwrap_or_default();
    let reply = TaskAnswer::read(message, asked);
    let target = match &reply {
        Ok(reply) => target(&task, (&reply.answers, &token)).await,
        Err(wrong) => Err(wrong.clone().into()),
    };
    // A message that is sent again is no other one, however the task stands by now.
    let known = target.as_ref().ok();
    if let Some(after) = accept_reply(&task, known, &token).await? {
        return Ok(Sent {
            view: asking(&task, &read),
            first: Some(continued_task(read)),
            after,
            task,
        });
    }
    let refuse = |why: &str| Err(RequestError::new(ErrorKind::UnsupportedOperation, why).into());
    match read.state {
        TaskState::InputRequired => {}
        TaskState::Submitted | TaskState::Working => {
            return refuse(
                "the task is at work: wait until it asks, or send a message to its context",
            );
        }
        TaskState::Completed
        | TaskState::Failed
        | TaskState::Canceled
        | TaskState::Rejected
        | TaskState::AuthRequired => {
            return refuse("the task is over: send a message to its context, without its id");
        }
    }
    let (reply, target) = (reply?, target?);
    let (_, tail) = task.thread.state().await?;
    let mut metadata = message.metadata.clone();
    metadata["tenant"] = caller.tenant.as_str().into();
    metadata["via"] = MESSAGE_METADATA.into();
    let request = AnswerRequest {
        tenant: caller.tenant.clone(),
        key: target.clone(),
        item: answers_item(api.mint(), content(reply), metadata),
        run: None,
        token: Some(token.into()),
    };
    let speech = MessagePost::new(api, caller);
    let accepted = speech
        .answer(request, (None, None), |_| place(message))
        .await;
    let accepted = accepted.map_err(|error| refusal(message, error))?;
    // What a sub-agent was asked goes on there; the task goes on with it.
    let after = if target == task.thread.key() {
        accepted.after
    } else {
        tail
    };
    Ok(Sent {
        view: asking(&task, &read),
        first: Some(continued_task(read)),
        after,
        task,
    })
}

/// A view of a task with pending calls.
fn asking(task: &Task, read: &Read) -> TaskView {
    let view = TaskView::new(&task.id, task.thread.key(), task.item.clone());
    view.after_answers(read.n_went_on).asking()
}

/// For a repeated answer, the event before it on the task's thread or on the thread with the calls.
async fn accept_reply(
    task: &Task,
    target: Option<&String>,
    token: &str,
) -> Result<Option<Seq>, ApiError> {
    if let Some(accepted) = answered(
        task.thread.runtime(),
        task.thread.id(),
        Some(&token.to_owned().into()),
    )
    .await?
    {
        return Ok(Some(accepted.after));
    }
    let Some(target) = target.filter(|target| **target != task.thread.key()) else {
        return Ok(None);
    };
    let found = task.thread.descendant(target).find().await?;
    let Some(accepted) =
        answered(found.runtime(), found.id(), Some(&token.to_owned().into())).await?
    else {
        return Ok(None);
    };
    let (_, before) = went_on(&task.thread, target, &accepted).await?;
    Ok(Some(before))
}

/// The error of an answer that does not fit: an invalid parameter.
fn refusal(message: &Incoming, error: RuntimeError) -> ApiError {
    if matches!(error, RuntimeError::Rejected(_) | RuntimeError::Answer(_)) {
        return message.wrong_parts(error).into();
    }
    error.into()
}

/// The task after its answers, in the state `working`.
fn continued_task(read: Read) -> Value {
    let mut task = read.json;
    let at = Timestamp::now();
    task["status"] = json!({"state": TaskState::Working.name(), "timestamp": format!("{at:.3}")});
    task
}

/// The content of the answers' item.
fn content(reply: TaskAnswer) -> Payload {
    let mut parts: Vec<Value> = reply.answers.into_iter().map(|it| it.part).collect();
    if !reply.messages.is_empty() {
        let said = NewItem::user("", Value::Array(reply.messages).into());
        parts.push(attached_message(&said).value());
    }
    Value::Array(parts).into()
}

/// The key of the thread with the calls.
async fn target(task: &Task, (answers, token): (&[ReplyAnswer], &str)) -> Result<String, ApiError> {
    let mut target: Option<String> = None;
    for answer in answers {
        let wrong = |what: &str| Err(RequestError::param(answer.pointer.as_str(), what).into());
        let named = answer.thread_key.as_deref();
        let call = answer.tool_call_id.as_str();
        let found = task.thread.addressed(call, named, Some(token));
        let found = match found.await? {
            Addressed::To(found) => found,
            Addressed::Ambiguous => {
                return wrong("several sub-agents have a call of this id: name the threadKey");
            }
            Addressed::OtherThread => return wrong("this thread is none of the task's"),
        };
        if target.as_ref().is_some_and(|known| *known != found) {
            return wrong("the answers of one message are for calls of one thread");
        }
        target = Some(found);
    }
    Ok(target.unwrap_or_else(|| task.thread.key().to_owned()))
}

//! Answers to AITP requests of a task; they continue the task.

use super::lookup::{MAX_PIECES, Read, Task};
use crate::aitp::{BodyPointers, MessagePost, asking, filled, over};
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::Api;
use crate::threads::answered;
use interop::a2a::{
    ErrorKind, Incoming, RequestError, RequestReply, TaskState, continuation_id, with_task,
};
use interop::aitp::{Key, RequestQuestion, RequestState};
use jiff::Timestamp;
use runtime::{ReactRequest, Run, RuntimeError, StoreError, ThreadRow};
use serde_json::Value;
use timeline::{NewItem, Seq};

/// Posts the answers and starts the agent that made the requests. Returns the number of messages that
/// continued the task before, and the event before this message. None if the task waits for calls and
/// not for AITP requests.
pub(super) async fn reply(
    (api, caller): (&Api, &Caller),
    task: &Task,
    message: &Incoming,
    (read, token): (&Read, &str),
) -> Result<Option<(usize, Seq)>, ApiError> {
    // A message that is sent again is no other one, however the task stands by now.
    if let Some(known) = answered(
        api.runtime(&caller.tenant),
        task.thread.id(),
        Some(&token.to_owned().into()),
    )
    .await?
    {
        let mut went_on = 0..read.n_went_on;
        let n_before = went_on.find(|n| continuation_id(&task.item, n + 1) == known.item_id);
        return Ok(n_before.map(|n_before| (n_before, known.after)));
    }
    if read.state != TaskState::InputRequired || read.waiting.requests.is_empty() {
        return Ok(None);
    }
    let refuse = |why: &str| Err(RequestError::new(ErrorKind::UnsupportedOperation, why).into());
    if read.n_went_on >= MAX_PIECES {
        return refuse(
            "the task was gone on with too often: say more in its context, without its id",
        );
    }
    let replies = RequestReply::read(message)?;
    let found = task.thread.find().await?;
    let (parts, agent) = post_reply(api, found.row(), (read, replies)).await?;
    let id = continuation_id(&task.item, read.n_went_on + 1);
    let mut item = NewItem::user(id.as_str(), Value::Array(parts).into());
    item.channel = Some("a2a".into());
    item.metadata = Some(with_task(message.metadata.clone(), &task.item).into());
    let react = ReactRequest {
        run: Run {
            agent,
            ..Run::default()
        },
        must_exist: true,
        token: Some(token.to_owned().into()),
        ..ReactRequest::new(
            task.thread.tenant().clone(),
            task.thread.key().to_owned(),
            item,
        )
    };
    let place = |_| BodyPointers::parts(message.at("parts"));
    match MessagePost::new(api, caller)
        .react(react, None, place)
        .await
    {
        Ok(accepted) => Ok(Some((read.n_went_on, accepted.after))),
        Err(RuntimeError::Store(StoreError::Duplicate(known))) if known == id.as_str() => {
            refuse("the task is at work: another answer came first")
        }
        Err(error) => Err(error.into()),
    }
}

/// The reply as parts of an item, and the agent that continues with it.
async fn post_reply(
    api: &Api,
    row: &ThreadRow,
    (read, replies): (&Read, Vec<RequestReply>),
) -> Result<(Vec<Value>, Option<String>), ApiError> {
    let held = api.aitp_states(&row.tenant).of(row).await?;
    let now = Timestamp::now();
    let find = |id: &str| -> Option<(RequestQuestion, RequestState)> {
        let (desk, key) = (held.get()?, Key::read(id)?);
        Some((
            desk.question(&key)?,
            desk.ledger().request(&key)?.state(now),
        ))
    };
    let known = |id: &str| find(id).ok_or(ApiError::RequestNotFound);
    // Whoever is meant, who has asked first goes on.
    let mut asked = read.waiting.requests.iter();
    let agent = asked.find_map(|request| asking(api, &find(request.id())?.0));
    let mut parts = Vec::with_capacity(replies.len());
    for reply in replies {
        parts.push(match reply {
            RequestReply::Value {
                pointer,
                request_id,
                value,
            } => {
                let (question, state) = known(&request_id)?;
                filled(&question, over(state), &value, &pointer)?.input_part()
            }
            RequestReply::Declined {
                request_id, reason, ..
            } => {
                let (question, _) = known(&request_id)?;
                question.decline(reason.as_deref()).input_part()
            }
            RequestReply::Text(part) => part,
        });
    }
    Ok((parts, agent))
}

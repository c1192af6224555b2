//! Reads a chat request: it posts a new message, replaces a message, or asks for another answer.

use super::lookup::Chat;
use crate::error::ApiError;
use crate::threads::Replacement;
use interop::ai_sdk::{
    ChatRequest, ChatTrigger, SentMessage, SentRole, UserMessage, answered_item, stored_messages,
};
use runtime::{Filter, PageRequest, Position, ReactRequest, RequestToken, Rewind};
use timeline::{ItemId, NewItem};

/// The changes that a request asks for.
#[derive(Debug)]
pub(super) struct PostPlan {
    /// Earlier messages of the client that the server does not have.
    before: Vec<NewItem>,
    item: NewItem,
    rewind: Option<Rewind>,
    /// An idempotency token, if the messages determine one.
    token: Option<RequestToken>,
}

impl From<Replacement> for PostPlan {
    fn from(Replacement { item, rewind }: Replacement) -> Self {
        Self {
            before: Vec::new(),
            item,
            rewind: Some(rewind),
            token: None,
        }
    }
}

impl PostPlan {
    /// The number of messages to post.
    pub(super) fn message_count(&self) -> usize {
        self.before.len() + 1
    }

    /// Adds the messages to a request for the runtime.
    pub(super) fn into_react(self, react: ReactRequest) -> ReactRequest {
        ReactRequest {
            before: self.before,
            rewind: self.rewind,
            item: self.item,
            token: react.token.or(self.token),
            ..react
        }
    }
}

/// Reads a request that posts a message or asks for another answer.
pub(super) async fn plan(chat: Chat<'_>, request: &ChatRequest) -> Result<PostPlan, ApiError> {
    match request.trigger {
        ChatTrigger::RegenerateMessage => plan_rewind(chat, request).await,
        ChatTrigger::SubmitMessage => plan_message(chat, request).await,
    }
}

async fn plan_message(chat: Chat<'_>, request: &ChatRequest) -> Result<PostPlan, ApiError> {
    let last = request.messages.split_last();
    let Some((last, past)) = last.filter(|(last, _)| last.role == SentRole::User) else {
        let place = request.messages.len().saturating_sub(1);
        return Err(ApiError::field(
            format!("/messages/{place}"),
            "the last message is the user's, and there is one",
        ));
    };
    let item = user(last.user_message()?);
    let revision = if request.is_edit() {
        chat.thread.last_revision(&last.id).await?
    } else {
        None
    };
    let Some(revision) = revision else {
        let n_known = chat.check(&request.messages).await?;
        let before = request.messages.get(n_known..request.messages.len() - 1);
        return plan_after(before.unwrap_or_default(), item);
    };
    let n_known = chat.check(past).await?;
    let plan = plan_after(past.get(n_known..).unwrap_or_default(), item)?;
    let from = ItemId::from(revision.of(&last.id));
    let replacement = Replacement::message(&last.id, (from, revision), plan.item);
    Ok(PostPlan {
        before: plan.before,
        ..replacement.into()
    })
}

/// Plans a new message after earlier ones that the server does not have.
fn plan_after(before: &[SentMessage], item: NewItem) -> Result<PostPlan, ApiError> {
    let before = before.iter().map(|sent| Ok(user(sent.user_message()?)));
    Ok(PostPlan {
        before: before.collect::<Result<_, ApiError>>()?,
        rewind: None,
        token: Some(format!("chat:{}", item.id).into()),
        item,
    })
}

fn user(said: UserMessage) -> NewItem {
    let mut item = NewItem::user(said.id.as_str(), said.content);
    item.channel = Some("web".into());
    item.metadata = said.metadata;
    item
}

/// Plans another answer to the last message, or to the message before the named answer.
async fn plan_rewind(chat: Chat<'_>, request: &ChatRequest) -> Result<PostPlan, ApiError> {
    let Some(last) = request.messages.last() else {
        return anew_of(chat, request).await;
    };
    let n_known = chat.check(&request.messages).await?;
    if n_known < request.messages.len() {
        // It never arrived, so it was never answered.
        let item = user(last.user_message()?);
        let before = request.messages.get(n_known..request.messages.len() - 1);
        return plan_after(before.unwrap_or_default(), item);
    }
    after(chat, &last.id, last.role == SentRole::User).await
}

/// Plans another answer without a message in the request: the named message is answered again, or the
/// named answer is replaced.
async fn anew_of(chat: Chat<'_>, request: &ChatRequest) -> Result<PostPlan, ApiError> {
    let runtime = chat.thread.runtime();
    let place = match &request.message_id {
        None => Position::END,
        Some(id) => {
            let revision = chat.thread.last_revision(id).await?;
            let id = revision.map(|revision| revision.of(id));
            let place = match id {
                Some(id) => chat.thread.item_position(&id).await?,
                None => None,
            };
            let what = "the conversation has no such message";
            place.ok_or_else(|| ApiError::field("/messageId", what))?
        }
    };
    let piece = PageRequest::UpTo { place, n: 1 };
    let piece = chat.thread.page(piece, Filter::Facts).await?;
    let stored = stored_messages(&piece.transcript);
    let found = match &request.message_id {
        None => stored.last(),
        Some(id) => stored.iter().rfind(|stored| stored.id() == id),
    };
    let what = "the conversation has no such message any more";
    let found = found.ok_or_else(|| ApiError::field("/messageId", what))?;
    if !found.is_answer() {
        return after(chat, found.id(), true).await;
    }
    let id = ItemId::from(found.id());
    let to = answered_item(&piece.transcript, &id);
    Ok(Replacement::answer(runtime, id, to.as_ref()).into())
}

/// Plans another answer, to a message, which the new item refers to, or after an earlier answer.
async fn after(chat: Chat<'_>, id: &str, is_said: bool) -> Result<PostPlan, ApiError> {
    let revision = chat.thread.last_revision(id).await?;
    let item = match revision {
        Some(revision) => ItemId::from(revision.of(id).as_str()),
        // It was said beside answers, which stay with it.
        None => ItemId::from(id.rsplit_once(':').map_or(id, |(item, _)| item)),
    };
    let to = Some(item.clone()).filter(|_| is_said);
    Ok(Replacement::after(chat.thread.runtime(), item, to.as_ref()).into())
}

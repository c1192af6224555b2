//! The contents of a thread, in the Threads API's form. All reading of logs for responses is in this
//! module; each function costs time proportional to what it returns.

mod entry_page;

use super::{Pairs, not_found, notes, pairs};
use crate::error::ApiError;
use crate::threads::ThreadRef;
use entry_page::{EntryPage, Pieces};
use interop::ids::RUN;
use interop::threads::{
    List, ListQuery, MessageObject, Named, ObjectKind, Order, Page, RequestError, Run, RunObject,
    StepObject, ThreadView, message_id, message_of_item, read_message_id, split_attached,
    without_attempt,
};
use jiff::Timestamp;
use runtime::{Landmark, PageRequest, Position, RuntimeError, StoreError};
use timeline::{Event, ExecutionId, Item, ItemId, Seq, StepId};

/// Number of messages per page, with their answers.
const PAGE: usize = 1_000;

/// Refuses what an active run forbids. Does not read a thread that is idle and has no pending calls.
pub(super) async fn check_free(
    found: &ThreadRef,
    check: impl FnOnce(&Run, Timestamp) -> Result<(), RequestError>,
) -> Result<Seq, ApiError> {
    let (state, tail) = found.state().await?;
    if state.active().is_none() && state.open().is_none() && state.waiting().len() == 0 {
        return Ok(tail);
    }
    let before = Position::END;
    let piece = EntryPage::of(found, PageRequest::Before { before, n: 1 }).await?;
    let now = Timestamp::now();
    piece.active(now).map_or(Ok(()), |run| check(run, now))?;
    Ok(tail)
}

/// A run of the thread.
pub(super) async fn run(found: &ThreadRef, id: &str) -> Result<Run, ApiError> {
    let execution = ExecutionId::from(RUN.read(id).as_ref());
    let piece = match EntryPage::of(found, PageRequest::Run(execution)).await {
        Err(ApiError::Runtime(RuntimeError::UnknownExecution(_))) => {
            return Err(not_found(ObjectKind::Run, id));
        }
        piece => piece?,
    };
    noted(found, piece.run(id).cloned(), id).await
}

/// A run with the metadata that clients have changed since.
async fn noted(found: &ThreadRef, run: Option<Run>, id: &str) -> Result<Run, ApiError> {
    let mut run = run.ok_or_else(|| not_found(ObjectKind::Run, id))?;
    if let Some(metadata) = notes::of(found, run.id()).await? {
        run.set_metadata(metadata);
    }
    Ok(run)
}

/// A run in its state after an event of the thread's own log, with the metadata that clients have
/// changed since. Costs time proportional to the run up to there.
pub(super) async fn run_at(found: &ThreadRef, id: &str, last: Seq) -> Result<Run, ApiError> {
    let execution = ExecutionId::from(RUN.read(id).as_ref());
    let read = found.run_until(execution, last).await;
    let transcript = match read {
        Err(RuntimeError::UnknownExecution(_)) => return Err(not_found(ObjectKind::Run, id)),
        read => read?,
    };
    noted(found, ThreadView::of(&transcript).run(id).cloned(), id).await
}

/// A page of the runs.
pub(super) async fn runs(found: &ThreadRef, query: &Pairs) -> Result<List<RunObject>, ApiError> {
    let query = ListQuery::read(pairs(query))?;
    let now = Timestamp::now();
    let place = |id: String| async move {
        let execution = ExecutionId::from(RUN.read(&id).as_ref());
        place_of(found, Landmark::Execution(&execution)).await
    };
    let mut list = walked(found, &query, ObjectKind::Run, place, |piece| {
        piece.runs().map(|run| run.object(now)).collect()
    })
    .await?;
    let ids = list.data.iter().map(|run| run.id.clone()).collect();
    let noted = notes::of_all(found, ids).await?;
    for (run, noted) in list.data.iter_mut().zip(noted) {
        run.metadata = noted.unwrap_or_else(|| std::mem::take(&mut run.metadata));
    }
    Ok(list)
}

/// A page of a run's steps.
pub(super) fn steps(run: &Run, query: &Pairs) -> Result<List<StepObject>, ApiError> {
    let query = ListQuery::read(pairs(query))?;
    let steps = run.steps(Timestamp::now());
    page(&query, ObjectKind::RunStep, steps)
}

/// A page of the messages.
pub(super) async fn messages(
    found: &ThreadRef,
    query: &Pairs,
) -> Result<List<MessageObject>, ApiError> {
    let query = ListQuery::read(pairs(query))?;
    let mut list = if let Some(id) = &query.run_id {
        let run = run(found, id).await?;
        page(&query, ObjectKind::Message, run.messages().collect())?
    } else {
        let place = |id: String| async move { place_of_message(found, &id).await };
        let what = ObjectKind::Message;
        walked(found, &query, what, place, EntryPage::messages).await?
    };
    note_messages(found, &mut list.data).await?;
    Ok(list)
}

/// All messages, for AITP's form of a thread, oldest first.
pub(super) async fn all_messages(found: &ThreadRef) -> Result<Vec<MessageObject>, ApiError> {
    let (mut messages, mut pieces) = (Vec::new(), Pieces::new(Order::Ascending, None, PAGE));
    while let Some(piece) = pieces.next(found).await? {
        messages.extend(piece.messages());
    }
    note_messages(found, &mut messages).await?;
    Ok(messages)
}

async fn note_messages(found: &ThreadRef, messages: &mut [MessageObject]) -> Result<(), ApiError> {
    let ids = messages.iter().map(|message| message.id.clone()).collect();
    let noted = notes::of_all(found, ids).await?;
    for (message, noted) in messages.iter_mut().zip(noted) {
        message.metadata = noted.unwrap_or_else(|| std::mem::take(&mut message.metadata));
    }
    Ok(())
}

/// A message of the thread.
pub(super) async fn message(found: &ThreadRef, id: &str) -> Result<MessageObject, ApiError> {
    let message = shown_message(found, id).await?;
    message.ok_or_else(|| not_found(ObjectKind::Message, id))
}

/// A message of the thread; none if it does not exist or was deleted.
async fn shown_message(found: &ThreadRef, id: &str) -> Result<Option<MessageObject>, ApiError> {
    let Some(place) = place_of_message(found, id).await? else {
        return Ok(None);
    };
    // The piece that has the place: the one after the event before it.
    let after = Position(place.0.saturating_sub(1));
    let piece = EntryPage::of(found, PageRequest::After { after, n: 1 }).await?;
    let Some(mut message) = piece.message(id) else {
        return Ok(None);
    };
    if let Some(metadata) = notes::of(found, &message.id).await? {
        message.metadata = metadata;
    }
    Ok(Some(message))
}

async fn place_of(found: &ThreadRef, landmark: Landmark<'_>) -> Result<Option<Position>, ApiError> {
    Ok(found.position_of(landmark).await?)
}

/// The position of a message, which is an item, a step's output, or attached to answers.
async fn place_of_message(found: &ThreadRef, id: &str) -> Result<Option<Position>, ApiError> {
    let own = read_message_id(id);
    let item = ItemId::from(own.as_str());
    if let Some(place) = place_of(found, Landmark::Item(&item)).await? {
        return Ok(Some(place));
    }
    let step = StepId::from(own.as_str());
    if let Some(place) = place_of(found, Landmark::Step(&step)).await? {
        return Ok(Some(place));
    }
    position_of_attached(found, &own).await
}

/// The position of the answers that a message is attached to, by our id of the message.
pub(super) async fn position_of_attached(
    found: &ThreadRef,
    own: &str,
) -> Result<Option<Position>, ApiError> {
    let Some((answers, _)) = split_attached(own) else {
        return Ok(None);
    };
    let answers = ItemId::from(answers);
    place_of(found, Landmark::Item(&answers)).await
}

/// The message that an earlier request with the same token has posted. If it was deleted since, its
/// original form. `id` is our id of it.
pub(super) async fn find_message(
    found: &ThreadRef,
    id: &str,
) -> Result<Option<MessageObject>, ApiError> {
    let (store, item) = (found.runtime().store(), ItemId::from(id));
    let made = store.position_of(found.id(), Landmark::Item(&item));
    let Some(made) = made.await.map_err(RuntimeError::from)? else {
        return Ok(None);
    };
    if let Some(shown) = shown_message(found, &message_id(id)).await? {
        return Ok(Some(shown));
    }
    message_at(found, made).await.map(Some)
}

/// The message that was posted at a position of the thread's own log.
pub(super) async fn message_at(found: &ThreadRef, seq: Seq) -> Result<MessageObject, ApiError> {
    let item = item_at(found, seq).await?;
    let message = message_of_item(found.id().as_str(), &item);
    let message = message.ok_or(RuntimeError::Store(StoreError::NotFound))?;
    Ok(message.value)
}

/// The item that was stored at a position of the thread's own log.
async fn item_at(found: &ThreadRef, seq: Seq) -> Result<Item, ApiError> {
    let before = Seq(seq.0.saturating_sub(1));
    let page = found.read(before, 1).await?;
    let event = page.into_iter().next().map(|logged| logged.record.event);
    let Some(Event::ItemCreated { item }) = event else {
        // The thread was deleted in the same moment.
        return Err(RuntimeError::Store(StoreError::NotFound).into());
    };
    Ok(item)
}

/// A page of objects from the pages of a thread. Reads from the cursor on, and no more than the result
/// needs.
async fn walked<T: Named, P: Future<Output = Result<Option<Position>, ApiError>>>(
    found: &ThreadRef,
    query: &ListQuery,
    what: ObjectKind,
    place: impl FnOnce(String) -> P,
    objects: impl Fn(&EntryPage) -> Vec<T>,
) -> Result<List<T>, ApiError> {
    let walk = query.walk();
    let from = match &walk.from {
        Some(id) => {
            let from = place(id.clone()).await?;
            Some(from.ok_or_else(|| not_found(what, id))?)
        }
        None => None,
    };
    let (mut page, mut cursor) = (Page::new(query), walk.from);
    let mut pieces = Pieces::new(walk.direction, from, query.limit + 1);
    while let Some(piece) = pieces.next(found).await? {
        let mut objects = objects(&piece);
        if walk.direction == Order::Descending {
            objects.reverse();
        }
        // The piece has the cursor, and what is on its other side, where it is within a run.
        let known = cursor.take();
        let known = known.and_then(|id| objects.iter().position(|object| is_of(object, &id)));
        let new = objects.into_iter().skip(known.map_or(0, |place| place + 1));
        for object in new {
            if page.push(object).is_break() {
                return Ok(page.list());
            }
        }
    }
    Ok(page.list())
}

/// Whether the object has this id, regardless of the attempt in it: an earlier attempt may have died.
fn is_of(object: &impl Named, id: &str) -> bool {
    without_attempt(object.id()) == without_attempt(id)
}

/// The requested page of a complete list, which is sorted from the oldest.
fn page<T: Named>(
    query: &ListQuery,
    what: ObjectKind,
    mut objects: Vec<T>,
) -> Result<List<T>, ApiError> {
    let walk = query.walk();
    if walk.direction == Order::Descending {
        objects.reverse();
    }
    let mut objects = objects.into_iter();
    if let Some(from) = walk.from
        && !objects.any(|object| is_of(&object, &from))
    {
        return Err(not_found(what, &from));
    }
    let mut page = Page::new(query);
    for object in objects {
        if page.push(object).is_break() {
            break;
        }
    }
    Ok(page.list())
}

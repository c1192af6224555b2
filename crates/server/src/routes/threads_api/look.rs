//! What a thread holds, as this API sees it. Everything that reads a thread's log for an answer is
//! here; each costs what it shows.

mod piece;

use super::{Found, Pairs, not_found, notes, pairs};
use crate::error::ApiError;
use crate::state::Api;
use interop::ids::RUN;
use interop::threads::{
    List, ListQuery, MessageObject, Named, ObjectKind, Order, Page, RequestError, Run, RunObject,
    StepObject, ThreadView, message_id, message_of_item, read_message_id, split_beside,
    without_attempt,
};
use jiff::Timestamp;
use piece::{Piece, Pieces};
use runtime::{Landmark, Place, RuntimeError, StoreError, Stretch};
use timeline::{Event, ExecutionId, Item, ItemId, Seq, StepId};

/// How many messages are read at once, with what answered them.
const PAGE: usize = 1_000;

/// Refuses what an active run forbids. A thread at rest where nothing waits is not read.
pub(super) async fn check_free(
    api: &Api,
    found: &Found,
    check: impl FnOnce(&Run, Timestamp) -> Result<(), RequestError>,
) -> Result<(), ApiError> {
    let (state, _) = api
        .runtime()
        .state(&found.caller.tenant, found.key())
        .await?;
    if state.active().is_none() && state.open().is_none() && state.waiting().len() == 0 {
        return Ok(());
    }
    let before = Place::END;
    let piece = Piece::of(api, found, Stretch::Before { before, n: 1 }).await?;
    let now = Timestamp::now();
    Ok(piece.active(now).map_or(Ok(()), |run| check(run, now))?)
}

/// A run of the thread.
pub(super) async fn run(api: &Api, found: &Found, id: &str) -> Result<Run, ApiError> {
    let execution = ExecutionId::from(RUN.read(id).as_ref());
    let piece = match Piece::of(api, found, Stretch::Run(execution)).await {
        Err(ApiError::Runtime(RuntimeError::UnknownExecution(_))) => {
            return Err(not_found(ObjectKind::Run, id));
        }
        piece => piece?,
    };
    noted(api, found, piece.run(id).cloned(), id).await
}

/// A run with what clients have noted on it since.
async fn noted(api: &Api, found: &Found, run: Option<Run>, id: &str) -> Result<Run, ApiError> {
    let mut run = run.ok_or_else(|| not_found(ObjectKind::Run, id))?;
    if let Some(metadata) = notes::of(api, found, run.id()).await? {
        run.set_metadata(metadata);
    }
    Ok(run)
}

/// A run as it stood after an event of the thread's own log, with what was noted on it since. Costs
/// what the run had come to by then.
pub(super) async fn run_at(api: &Api, found: &Found, id: &str, last: Seq) -> Result<Run, ApiError> {
    let execution = ExecutionId::from(RUN.read(id).as_ref());
    let (tenant, key) = (&found.caller.tenant, found.key());
    let read = api.runtime().run_until(tenant, key, execution, last).await;
    let transcript = match read {
        Err(RuntimeError::UnknownExecution(_)) => return Err(not_found(ObjectKind::Run, id)),
        read => read?,
    };
    noted(api, found, ThreadView::of(&transcript).run(id).cloned(), id).await
}

/// A page of the runs.
pub(super) async fn runs(
    api: &Api,
    found: &Found,
    query: &Pairs,
) -> Result<List<RunObject>, ApiError> {
    let query = ListQuery::read(pairs(query))?;
    let now = Timestamp::now();
    let place = |id: String| async move {
        let execution = ExecutionId::from(RUN.read(&id).as_ref());
        place_of(api, found, Landmark::Execution(&execution)).await
    };
    let mut list = walked(api, found, &query, ObjectKind::Run, place, |piece| {
        piece.runs().map(|run| run.object(now)).collect()
    })
    .await?;
    let ids = list.data.iter().map(|run| run.id.clone()).collect();
    let noted = notes::of_all(api, found, ids).await?;
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
    api: &Api,
    found: &Found,
    query: &Pairs,
) -> Result<List<MessageObject>, ApiError> {
    let query = ListQuery::read(pairs(query))?;
    let mut list = if let Some(id) = &query.run_id {
        let run = run(api, found, id).await?;
        page(&query, ObjectKind::Message, run.messages().collect())?
    } else {
        let place = |id: String| async move { place_of_message(api, found, &id).await };
        let what = ObjectKind::Message;
        walked(api, found, &query, what, place, Piece::messages).await?
    };
    note_messages(api, found, &mut list.data).await?;
    Ok(list)
}

/// All messages, for AITP's shape of a thread, the oldest first.
pub(super) async fn all_messages(api: &Api, found: &Found) -> Result<Vec<MessageObject>, ApiError> {
    let (mut messages, mut pieces) = (Vec::new(), Pieces::new(Order::Ascending, None, PAGE));
    while let Some(piece) = pieces.next(api, found).await? {
        messages.extend(piece.messages());
    }
    note_messages(api, found, &mut messages).await?;
    Ok(messages)
}

async fn note_messages(
    api: &Api,
    found: &Found,
    messages: &mut [MessageObject],
) -> Result<(), ApiError> {
    let ids = messages.iter().map(|message| message.id.clone()).collect();
    let noted = notes::of_all(api, found, ids).await?;
    for (message, noted) in messages.iter_mut().zip(noted) {
        message.metadata = noted.unwrap_or_else(|| std::mem::take(&mut message.metadata));
    }
    Ok(())
}

/// A message of the thread.
pub(super) async fn message(api: &Api, found: &Found, id: &str) -> Result<MessageObject, ApiError> {
    let message = shown_message(api, found, id).await?;
    message.ok_or_else(|| not_found(ObjectKind::Message, id))
}

/// The same; none where there is none, or it was deleted.
async fn shown_message(
    api: &Api,
    found: &Found,
    id: &str,
) -> Result<Option<MessageObject>, ApiError> {
    let Some(place) = place_of_message(api, found, id).await? else {
        return Ok(None);
    };
    // The piece that has the place: the one after the event before it.
    let after = Place(place.0.saturating_sub(1));
    let piece = Piece::of(api, found, Stretch::After { after, n: 1 }).await?;
    let Some(mut message) = piece.message(id) else {
        return Ok(None);
    };
    if let Some(metadata) = notes::of(api, found, &message.id).await? {
        message.metadata = metadata;
    }
    Ok(Some(message))
}

async fn place_of(
    api: &Api,
    found: &Found,
    landmark: Landmark<'_>,
) -> Result<Option<Place>, ApiError> {
    let runtime = api.runtime();
    Ok(runtime
        .place_of(&found.caller.tenant, found.key(), landmark)
        .await?)
}

/// A message is an item, what a step says, or what was said beside answers.
async fn place_of_message(api: &Api, found: &Found, id: &str) -> Result<Option<Place>, ApiError> {
    let own = read_message_id(id);
    let item = ItemId::from(own.as_str());
    if let Some(place) = place_of(api, found, Landmark::Item(&item)).await? {
        return Ok(Some(place));
    }
    let step = StepId::from(own.as_str());
    if let Some(place) = place_of(api, found, Landmark::Step(&step)).await? {
        return Ok(Some(place));
    }
    place_beside(api, found, &own).await
}

/// Where the answers stand that a message was said beside: by our id of the message.
pub(super) async fn place_beside(
    api: &Api,
    found: &Found,
    own: &str,
) -> Result<Option<Place>, ApiError> {
    let Some((answers, _)) = split_beside(own) else {
        return Ok(None);
    };
    let answers = ItemId::from(answers);
    place_of(api, found, Landmark::Item(&answers)).await
}

/// The message that an earlier request with the same token has made, also if it was deleted since:
/// then it is as it was made. `id` is our id of it.
pub(super) async fn said(
    api: &Api,
    found: &Found,
    id: &str,
) -> Result<Option<MessageObject>, ApiError> {
    let (store, item) = (api.runtime().store(), ItemId::from(id));
    let made = store.place_of(&found.row.thread.id, Landmark::Item(&item));
    let Some(made) = made.await.map_err(RuntimeError::from)? else {
        return Ok(None);
    };
    if let Some(shown) = shown_message(api, found, &message_id(id)).await? {
        return Ok(Some(shown));
    }
    message_at(api, found, made).await.map(Some)
}

/// The message that was made at a place of the thread's own log.
pub(super) async fn message_at(
    api: &Api,
    found: &Found,
    seq: Seq,
) -> Result<MessageObject, ApiError> {
    let item = item_at(api, found, seq).await?;
    let message = message_of_item(found.id(), &item);
    let message = message.ok_or(RuntimeError::Store(StoreError::NotFound))?;
    Ok(message.value)
}

/// The item that was kept at a place of the thread's own log.
async fn item_at(api: &Api, found: &Found, seq: Seq) -> Result<Item, ApiError> {
    let before = Seq(seq.0.saturating_sub(1));
    let runtime = api.runtime();
    let page = runtime
        .read(&found.caller.tenant, found.key(), before, 1)
        .await?;
    let event = page.into_iter().next().map(|logged| logged.record.event);
    let Some(Event::ItemCreated { item }) = event else {
        // The thread was deleted in the same moment.
        return Err(RuntimeError::Store(StoreError::NotFound).into());
    };
    Ok(item)
}

/// A page of what the pieces of a thread hold. Reads from the cursor on, and no more than the page
/// needs.
async fn walked<T: Named, P: Future<Output = Result<Option<Place>, ApiError>>>(
    api: &Api,
    found: &Found,
    query: &ListQuery,
    what: ObjectKind,
    place: impl FnOnce(String) -> P,
    objects: impl Fn(&Piece) -> Vec<T>,
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
    while let Some(piece) = pieces.next(api, found).await? {
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

/// Whether this is the object of an id, or of one that an attempt had which died.
fn is_of(object: &impl Named, id: &str) -> bool {
    without_attempt(object.id()) == without_attempt(id)
}

/// The page that a query asks for, of objects that are all here, the oldest first.
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

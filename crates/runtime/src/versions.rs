//! The versions of a message or an answer that edits and regenerations have left in the log.

use crate::error::RuntimeError;
use crate::runtime::Runtime;
use crate::thread_page::{Chain, Position};
use interop::revision::{Revision, message_id};
use store::{Landmark, Run, TenantId};
use timeline::{Event, Item, ItemId, ItemType, Rejected, Removed, Seq};

/// Maximum number of revisions and of executions that are looked at.
const MAX_VERSIONS: u32 = 1_000;
/// The first events of an execution: itself, its item and its first step.
const FIRST_EVENTS: usize = 8;

/// A version of a message or an answer.
#[derive(Clone, Debug)]
pub struct MessageVersion {
    /// Its item. An answer's content is in its parts.
    pub item: Item,
    /// The parameters of the answer's execution.
    pub run: Option<Run>,
    /// The event that created it, in the thread's own log; `None` if an ancestor's log has it.
    pub seq: Option<Seq>,
    /// Whether it was removed.
    pub is_removed: bool,
    /// The event that removed it, in the thread's own log.
    pub removed: Option<Seq>,
}

/// The versions of a message or an answer, oldest first.
#[derive(Clone, Debug)]
pub struct MessageVersions {
    /// The message, if these are answers to it.
    pub message: Option<ItemId>,
    /// The version that the requested item belongs to.
    pub named: ItemId,
    /// The versions.
    pub list: Vec<MessageVersion>,
    /// Whether there may be more.
    pub more: bool,
}

impl Runtime {
    /// Reads an item as it was created.
    ///
    /// # Errors
    ///
    /// [`Rejected::NotThere`] if the thread has no such item.
    pub async fn item(
        &self,
        tenant: &TenantId,
        key: &str,
        id: &ItemId,
    ) -> Result<Item, RuntimeError> {
        let chain = self.chain(tenant, key).await?;
        Ok(found(&chain, id).await?.1)
    }

    /// The versions of a message, or of the answer that an item is a part of. The cost is proportional
    /// to their number and to the number of executions that were removed between them.
    ///
    /// # Errors
    ///
    /// [`Rejected::NotThere`] if the thread has no such item.
    pub async fn versions(
        &self,
        tenant: &TenantId,
        key: &str,
        id: &ItemId,
    ) -> Result<MessageVersions, RuntimeError> {
        let chain = self.chain(tenant, key).await?;
        let (_, item) = found(&chain, id).await?;
        if item.execution_id.is_some() {
            return answers(&chain, id).await;
        }
        let base = message_id(id.as_str());
        let base = match chain.position_of(Landmark::Item(&base.into())).await? {
            Some(_) => base,
            None => id.as_str(),
        };
        let (mut list, mut more) = (Vec::new(), false);
        for n in 1.. {
            let id = ItemId::from(Revision(n).of(base));
            let Some(place) = chain.position_of(Landmark::Item(&id)).await? else {
                break;
            };
            if n > MAX_VERSIONS {
                more = true;
                break;
            }
            let made = made_at(&chain, place).await?;
            if let Some((place, item)) = made {
                list.push(version(&chain, place, Removed::Item(id), (item, None)).await?);
            }
        }
        Ok(MessageVersions {
            message: None,
            named: id.clone(),
            list,
            more,
        })
    }

    /// The answers to a message, or the other versions of an answer.
    ///
    /// # Errors
    ///
    /// [`Rejected::NotThere`] if the thread has no such message or answer.
    pub async fn answers(
        &self,
        tenant: &TenantId,
        key: &str,
        id: &ItemId,
    ) -> Result<MessageVersions, RuntimeError> {
        answers(&self.chain(tenant, key).await?, id).await
    }
}

fn not_there(id: &ItemId) -> RuntimeError {
    Rejected::NotThere(Removed::Item(id.clone())).into()
}

/// An item, and the position of the event that created it.
async fn found(chain: &Chain<'_>, id: &ItemId) -> Result<(Position, Item), RuntimeError> {
    let place = chain.position_of(Landmark::Item(id)).await?;
    let place = place.ok_or_else(|| not_there(id))?;
    made_at(chain, place).await?.ok_or_else(|| not_there(id))
}

/// The item at a position. A trigger that was queued is looked up at the start of its execution.
async fn made_at(
    chain: &Chain<'_>,
    place: Position,
) -> Result<Option<(Position, Item)>, RuntimeError> {
    let read = async |place: Position| {
        let made = chain.records(place.before(), 1).await?;
        let made = made.into_iter().next().map(|logged| logged.record.event);
        let Some(Event::ItemCreated { item }) = made else {
            return Ok::<_, RuntimeError>(None);
        };
        Ok(Some((place, item)))
    };
    if let Some(made) = read(place).await? {
        return Ok(Some(made));
    }
    match chain.run_before(place.next()).await? {
        Some(run) => read(run.trigger).await,
        None => Ok(None),
    }
}

/// The item that a trigger represents: the one that it refers to, or itself.
fn answered(trigger: &Item) -> Option<ItemId> {
    match trigger.item_type {
        ItemType::Message => Some(trigger.id.clone()),
        // A withdrawal of open calls answers nothing.
        ItemType::ItemReference => {
            let content = trigger.content.as_ref()?;
            let to = content.str_field("itemId")?;
            (content.str_field("cancels").is_none()).then(|| to.as_str().into())
        }
        ItemType::ActionExecute | ItemType::ActionResult => None,
    }
}

async fn answers(chain: &Chain<'_>, id: &ItemId) -> Result<MessageVersions, RuntimeError> {
    let (place, item) = found(chain, id).await?;
    let mut own = None;
    let message = if item.execution_id.is_some() {
        let mut run = chain.run_before(place.next()).await?;
        while let Some(it) = run.as_ref().filter(|it| it.goes_on) {
            run = chain.run_before(it.created).await?;
        }
        let run = run.ok_or_else(|| not_there(id))?;
        let trigger = made_at(chain, run.trigger).await?;
        own = Some(run.created);
        trigger.and_then(|(_, trigger)| answered(&trigger))
    } else {
        answered(&item)
    };
    let mut versions = MessageVersions {
        named: id.clone(),
        message: None,
        list: Vec::new(),
        more: false,
    };
    let Some(message) = message else {
        let own = own.ok_or_else(|| not_there(id))?;
        if let Some(version) = answer(chain, own).await? {
            versions.named = version.item.id.clone();
            versions.list.push(version);
        }
        return Ok(versions);
    };
    let (first, _) = found(chain, &message).await?;
    let (mut after, mut n_runs) = (first.before(), 0);
    while let Some(run) = chain.run_after(after).await? {
        n_runs += 1;
        if n_runs > MAX_VERSIONS {
            versions.more = true;
            break;
        }
        after = run.created;
        if run.goes_on || run.trigger < first {
            continue;
        }
        let Some((_, trigger)) = made_at(chain, run.trigger).await? else {
            continue;
        };
        let Some(to) = answered(&trigger) else {
            continue;
        };
        if to == message {
            let version = answer(chain, run.created).await?;
            if let Some(version) = version.as_ref().filter(|_| own == Some(run.created)) {
                versions.named = version.item.id.clone();
            }
            versions.list.extend(version);
        } else if chain
            .removed(vec![Removed::Item(trigger.id)])
            .await?
            .is_empty()
        {
            // Another message is answered: nothing later refers to this one.
            break;
        }
    }
    versions.message = Some(message);
    Ok(versions)
}

/// The answer that begins with the execution created at this position.
async fn answer(
    chain: &Chain<'_>,
    created: Position,
) -> Result<Option<MessageVersion>, RuntimeError> {
    let (mut run, mut written, mut step) = (None, None, None);
    let after = created.before();
    for logged in chain.records(after, FIRST_EVENTS).await? {
        let place = chain.position_after(after, &logged);
        let event = logged.record.event;
        if let Event::ExecutionCreated { execution } = event {
            run = run.or(Some(Run::of(execution.run.as_ref())));
        } else if let Event::ItemCreated { item } = event {
            written = written.or(Some((place, item)));
        } else if let Event::StepCreated { step: first } = event {
            step = step.or(Some(first.id));
        }
    }
    let (Some((place, item)), Some(step)) = (written, step) else {
        return Ok(None);
    };
    let version = version(chain, place, Removed::Step(step), (item, run)).await?;
    Ok(Some(version))
}

async fn version(
    chain: &Chain<'_>,
    place: Position,
    what: Removed,
    (item, run): (Item, Option<Run>),
) -> Result<MessageVersion, RuntimeError> {
    let removed = chain.removals(vec![what]).await?.into_values().next();
    Ok(MessageVersion {
        item,
        run,
        seq: chain.own_seq(place),
        is_removed: removed.is_some(),
        removed: removed.and_then(|place| chain.own_seq(place)),
    })
}

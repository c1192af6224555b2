//! Replacing a message of a thread, and answering one again.

use super::ThreadKey;
use crate::error::ApiError;
use interop::revision::Revision;
use runtime::{Landmark, Position, Rewind, Runtime, RuntimeError, StoreError};
use timeline::{ItemId, NewItem, Rejected};

/// The trigger of a run that replaces a part of a thread, and the point that the thread is rewound to.
#[derive(Debug)]
pub(crate) struct Replacement {
    pub(crate) item: NewItem,
    pub(crate) rewind: Rewind,
}

impl Replacement {
    /// Replaces a revision of the message `id`, and everything after it, with its next revision.
    pub(crate) fn message(id: &str, (from, last): (ItemId, Revision), item: NewItem) -> Self {
        Self {
            item: NewItem {
                id: last.next().of(id).as_str().into(),
                ..item
            },
            rewind: Rewind::From(from),
        }
    }

    /// Replaces an answer, which begins with this item. `message` is the message that it answers.
    pub(crate) fn answer(runtime: &Runtime, answer: ItemId, message: Option<&ItemId>) -> Self {
        Self {
            item: NewItem::reference(runtime.mint(), message),
            rewind: Rewind::From(answer),
        }
    }

    /// Answers again after this item, and removes what follows it. `message` is the message to answer.
    pub(crate) fn after(runtime: &Runtime, item: ItemId, message: Option<&ItemId>) -> Self {
        Self {
            item: NewItem::reference(runtime.mint(), message),
            rewind: Rewind::After(item),
        }
    }
}

/// The error of a request that rewinds to a message which an earlier request has removed.
pub(crate) fn stale(error: RuntimeError, pointer: impl FnOnce() -> String) -> ApiError {
    if !matches!(
        error,
        RuntimeError::Rejected(Rejected::NotThere(_) | Rejected::RemovedAlready(_))
    ) {
        return error.into();
    }
    ApiError::HistoryDiffers {
        pointer: pointer(),
        what: "another request has changed or removed this message".to_owned(),
    }
}

impl ThreadKey {
    /// The position of an item; none if the thread or the item does not exist.
    pub(crate) async fn item_position(&self, id: &str) -> Result<Option<Position>, RuntimeError> {
        let id = ItemId::from(id);
        match self.position_of(Landmark::Item(&id)).await {
            Err(RuntimeError::Store(StoreError::NotFound)) => Ok(None),
            found => found,
        }
    }

    /// The last revision of a message; none if it was never posted. Costs a number of look-ups that
    /// grows with the logarithm of the number of revisions.
    pub(crate) async fn last_revision(&self, id: &str) -> Result<Option<Revision>, RuntimeError> {
        if self.item_position(id).await?.is_none() {
            return Ok(None);
        }
        let has = async |revision: Revision| -> Result<bool, RuntimeError> {
            Ok(self.item_position(&revision.of(id)).await?.is_some())
        };
        let (mut known, mut step) = (Revision::FIRST, 1);
        while has(Revision(known.0 + step)).await? {
            known = Revision(known.0 + step);
            step *= 2;
        }
        while step > 1 {
            step /= 2;
            if has(Revision(known.0 + step)).await? {
                known = Revision(known.0 + step);
            }
        }
        Ok(Some(known))
    }
}

//! Existing threads.

use super::{ThreadKey, key_of};
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::Api;
use interop::ids::IdForm;
use runtime::{Runtime, RuntimeError, StoreError, ThreadRow};
use std::ops::Deref;
use timeline::{Seq, ThreadId};

/// An existing thread that the caller may access, as it was when found. Only look-ups that check the
/// caller's rights make one.
#[derive(Clone)]
pub(crate) struct ThreadRef {
    at: ThreadKey,
    row: ThreadRow,
}

impl Deref for ThreadRef {
    type Target = ThreadKey;

    fn deref(&self) -> &ThreadKey {
        &self.at
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the lookup that checks")]
impl ThreadRef {
    /// The stored thread with an id in a protocol's form, or with a key. None if it does not exist or
    /// the caller may not access it.
    pub(crate) async fn find(
        api: &Api,
        caller: &Caller,
        form: IdForm,
        id: &str,
    ) -> Result<Option<Self>, ApiError> {
        Self::find_in(api.runtime(&caller.tenant), caller, form, id).await
    }

    /// The thread with an id or a key, stored or ephemeral.
    pub(crate) async fn find_any(
        api: &Api,
        caller: &Caller,
        form: IdForm,
        id: &str,
    ) -> Result<Option<Self>, ApiError> {
        match Self::find(api, caller, form, id).await? {
            Some(found) => Ok(Some(found)),
            None => Self::find_in(api.app().ephemeral(), caller, form, id).await,
        }
    }

    async fn find_in(
        runtime: &Runtime,
        caller: &Caller,
        form: IdForm,
        id: &str,
    ) -> Result<Option<Self>, ApiError> {
        let own = ThreadId::from(form.read(id).as_ref());
        let mut found = runtime.find_by_id(&caller.tenant, &own).await;
        // A key that is a UUID has the form of an id, too.
        let spelled = Some(own.as_str()).filter(|own| *own != id);
        for key in [Some(id), spelled].into_iter().flatten() {
            if let Err(RuntimeError::Store(StoreError::NotFound)) = found {
                found = runtime.find(&caller.tenant, key).await;
            }
        }
        Self::visible(runtime, caller, found)
    }

    /// The stored thread with the server's own id. None if it does not exist or the caller may not
    /// access it.
    pub(crate) async fn find_by_id(
        api: &Api,
        caller: &Caller,
        id: &ThreadId,
    ) -> Result<Option<Self>, ApiError> {
        let runtime = api.runtime(&caller.tenant);
        let found = runtime.find_by_id(&caller.tenant, id).await;
        Self::visible(runtime, caller, found)
    }

    fn visible(
        runtime: &Runtime,
        caller: &Caller,
        found: Result<ThreadRow, RuntimeError>,
    ) -> Result<Option<Self>, ApiError> {
        match found {
            Ok(row) => Ok(Self::authorise(runtime, caller, row).ok()),
            Err(RuntimeError::Store(StoreError::NotFound)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The thread of a row that was just listed or created. An error if the caller may not access it.
    pub(crate) fn authorise(
        runtime: &Runtime,
        caller: &Caller,
        row: ThreadRow,
    ) -> Result<Self, ApiError> {
        let at = ThreadKey::authorise(runtime, caller, key_of(&row))?;
        Ok(Self { at, row })
    }

    /// The thread with a key, in its current state.
    pub(super) async fn at(at: ThreadKey) -> Result<Self, RuntimeError> {
        let row = at.runtime().find(at.tenant(), at.key()).await?;
        Ok(Self { at, row })
    }

    /// The thread in its current state; an error if it was deleted.
    pub(crate) async fn reread(&self) -> Result<Self, RuntimeError> {
        let at = self.at.clone();
        let row = at.runtime().find_by_id(at.tenant(), self.id()).await?;
        Ok(Self { at, row })
    }

    /// The thread up to an event that was written since it was found.
    pub(crate) fn at_tail(mut self, tail: Seq) -> Self {
        self.row.tail = tail;
        self
    }

    /// The thread's row, as it was when found.
    pub(crate) fn row(&self) -> &ThreadRow {
        &self.row
    }

    /// The row alone.
    pub(crate) fn into_row(self) -> ThreadRow {
        self.row
    }

    /// The thread's id.
    pub(crate) fn id(&self) -> &ThreadId {
        &self.row.thread.id
    }
}

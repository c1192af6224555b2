//! Threads that requests name: found, and checked against the caller's rights.

use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::Api;
use interop::ids::IdForm;
use runtime::{Runtime, RuntimeError, StoreError, ThreadRow};
use timeline::ThreadId;

/// The thread that an id of a protocol means: an id of ours in the protocol's spelling, or a key. None
/// where there is none that the caller may touch.
pub(crate) async fn thread_of(
    api: &Api,
    caller: &Caller,
    form: IdForm,
    id: &str,
) -> Result<Option<ThreadRow>, ApiError> {
    thread_in(api.runtime(), caller, form, id).await
}

/// Finds a thread among those of this runtime, as [`thread_of`] does in the store.
pub(crate) async fn thread_in(
    runtime: &Runtime,
    caller: &Caller,
    form: IdForm,
    id: &str,
) -> Result<Option<ThreadRow>, ApiError> {
    let own = ThreadId::from(form.read(id).as_ref());
    let mut found = runtime.find_by_id(&caller.tenant, &own).await;
    // A key that is a UUID is spelled like an id, too.
    let spelled = Some(own.as_str()).filter(|own| *own != id);
    for key in [Some(id), spelled].into_iter().flatten() {
        if let Err(RuntimeError::Store(StoreError::NotFound)) = found {
            found = runtime.find(&caller.tenant, key).await;
        }
    }
    match found {
        Ok(row) => Ok(Some(row).filter(|row| caller.check(key_of(row)).is_ok())),
        Err(RuntimeError::Store(StoreError::NotFound)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The key of a thread.
pub(crate) fn key_of(row: &ThreadRow) -> &str {
    let key = row.thread.key.as_deref();
    key.unwrap_or_else(|| row.thread.id.as_str())
}

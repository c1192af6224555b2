//! Requests that look at a thread and then append to it, while other servers may append too.

use crate::error::ApiError;
use runtime::RuntimeError;

/// Maximum number of further looks.
const MAX_TRIES: usize = 8;

/// Looks at a thread and appends under the condition that nothing followed. Looks again if something did.
pub(crate) async fn unfollowed<T, F>(mut look_and_append: impl FnMut() -> F) -> Result<T, ApiError>
where
    F: Future<Output = Result<T, ApiError>>,
{
    for _ in 0..MAX_TRIES {
        match look_and_append().await {
            Err(ApiError::Runtime(RuntimeError::Followed(_))) => {}
            done => return done,
        }
    }
    look_and_append().await
}

//! Repeated requests: a request with the token of an earlier one gets the first answer.

use crate::error::RuntimeError;
use crate::live::{Live, LockedThread};
use crate::request::{Accepted, RequestToken};
use crate::runtime::Runtime;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::{StoreError, Token};
use timeline::{Command, ThreadId};

/// The stored answer of a token. Stores of earlier versions have no fingerprints.
#[derive(Serialize, Deserialize)]
struct Answered {
    #[serde(flatten)]
    accepted: Accepted,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
}

impl Runtime {
    /// Returns the stored answer to the request with this token on a thread, if it was accepted
    /// there. Its run may still be in progress.
    ///
    /// # Errors
    ///
    /// [`RuntimeError::TokenReused`] if that was another request.
    pub async fn answered(
        &self,
        thread: &ThreadId,
        token: &RequestToken,
    ) -> Result<Option<Accepted>, RuntimeError> {
        let answer = self.inner.store.answer(thread, token).await?;
        let fingerprint = token.fingerprint.as_deref();
        answer
            .map(|answer| repeated(&answer, fingerprint))
            .transpose()
    }

    /// The earlier answer to a token's request, read under the thread's lock. Its run continues.
    pub(crate) async fn answered_before(
        &self,
        live: &Arc<Live>,
        held: &mut LockedThread<'_>,
        token: Option<&RequestToken>,
    ) -> Result<Option<Accepted>, RuntimeError> {
        let is_unmade = held.core()?.is_pending();
        let Some(token) = token.filter(|_| !is_unmade) else {
            return Ok(None);
        };
        let answered = self.answered(&live.thread, token).await?;
        if answered.is_some() {
            self.ensure_worker(live, held)?;
        }
        Ok(answered)
    }
}

/// Writes the accepted request, with its answer under the token. If the token was used meanwhile,
/// nothing is written, and the first answer is returned: [repeated](Accepted::repeated).
pub(crate) async fn commit_accepted(
    held: &mut LockedThread<'_>,
    commands: impl IntoIterator<Item = (Option<Timestamp>, Command)>,
    token: Option<RequestToken>,
    accepted: Accepted,
) -> Result<Accepted, RuntimeError> {
    let Some(RequestToken { text, fingerprint }) = token else {
        held.commit(commands, None).await?;
        return Ok(accepted);
    };
    let answer = Answered {
        accepted,
        fingerprint,
    };
    let token = Token {
        token: text,
        answer: serde_json::to_string(&answer)?,
    };
    match held.commit(commands, Some(token)).await {
        Ok(_) => Ok(answer.accepted),
        Err(RuntimeError::Store(StoreError::Repeated { answer: first })) => {
            repeated(&first, answer.fingerprint.as_deref())
        }
        Err(error) => Err(error),
    }
}

fn repeated(answer: &str, fingerprint: Option<&str>) -> Result<Accepted, RuntimeError> {
    let first: Answered = serde_json::from_str(answer)?;
    let is_other = fingerprint
        .zip(first.fingerprint.as_deref())
        .is_some_and(|(one, other)| one != other);
    if is_other {
        return Err(RuntimeError::TokenReused);
    }
    Ok(Accepted {
        repeated: true,
        ..first.accepted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_a_fingerprint_fits_any_request() {
        let old = r#"{"threadId":"t","itemId":"i","after":3,"queued":false}"#;
        for fingerprint in [None, Some("one")] {
            let first = repeated(old, fingerprint).unwrap();
            assert!(first.repeated && first.after == timeline::Seq(3));
        }
        let new = old.replace("\"queued\"", "\"fingerprint\":\"one\",\"queued\"");
        assert!(repeated(&new, None).is_ok() && repeated(&new, Some("one")).is_ok());
        assert!(matches!(
            repeated(&new, Some("two")),
            Err(RuntimeError::TokenReused)
        ));
    }
}

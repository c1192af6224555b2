//! Requests that come again under the client's token: whoever asks is given the first answer.

use crate::error::RuntimeError;
use crate::live::{Held, Live};
use crate::react::Runtime;
use crate::request::Accepted;
use crate::store::{StoreError, Token};
use jiff::Timestamp;
use std::sync::Arc;
use timeline::{Command, ThreadId};

impl Runtime {
    /// What was answered to the request of this token on a thread, if one was taken there. Its run
    /// may still be going.
    pub async fn answered(
        &self,
        thread: &ThreadId,
        token: &str,
    ) -> Result<Option<Accepted>, RuntimeError> {
        let answer = self.inner.store.answer(thread, token).await?;
        answer.map(|answer| repeated(&answer)).transpose()
    }

    /// The same under the thread's lock. The run goes on.
    pub(crate) async fn answered_before(
        &self,
        live: &Arc<Live>,
        held: &mut Held<'_>,
        token: Option<&String>,
    ) -> Result<Option<Accepted>, RuntimeError> {
        let is_unmade = held.core()?.is_unmade();
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

/// Writes what was accepted, with its answer under the token. Where the token was used meanwhile nothing
/// is written, and the answer is the first one: [repeated](Accepted::repeated).
pub(crate) async fn commit_accepted(
    held: &mut Held<'_>,
    commands: impl IntoIterator<Item = (Option<Timestamp>, Command)>,
    token: Option<String>,
    accepted: Accepted,
) -> Result<Accepted, RuntimeError> {
    let token = match token {
        Some(token) => Some(Token {
            token,
            answer: serde_json::to_string(&accepted)?,
        }),
        None => None,
    };
    match held.commit(commands, token).await {
        Ok(_) => Ok(accepted),
        Err(RuntimeError::Store(StoreError::Repeated { answer })) => repeated(&answer),
        Err(error) => Err(error),
    }
}

fn repeated(answer: &str) -> Result<Accepted, RuntimeError> {
    Ok(Accepted {
        repeated: true,
        ..serde_json::from_str(answer)?
    })
}

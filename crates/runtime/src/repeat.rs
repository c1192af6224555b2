//! Requests that come again under the client's token: whoever asks is given the first answer.

use crate::error::RuntimeError;
use crate::live::{Held, Live};
use crate::react::Runtime;
use crate::request::Accepted;
use crate::store::{StoreError, Token};
use jiff::Timestamp;
use std::sync::Arc;
use timeline::Command;

impl Runtime {
    /// The first answer, where there is one. Its run may still be going, and goes on.
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
        let Some(answer) = self.inner.store.answer(&live.thread, token).await? else {
            return Ok(None);
        };
        self.ensure_worker(live, held)?;
        repeated(&answer).map(Some)
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

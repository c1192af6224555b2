//! The runs in which a thread continues after answers to its own calls or to its descendants' calls.

use crate::error::ApiError;
use crate::threads::ThreadKey;
use interop::run::RunSelector;
use runtime::{Accepted, Landmark, RuntimeError, ThreadContinuation};
use timeline::{ItemId, Seq};

/// The runs of a thread that receive answers.
pub(in crate::routes) struct AnswerTarget {
    pub(in crate::routes) first: ThreadContinuation,
    /// The items of the later runs, in order.
    pub(in crate::routes) then: Vec<ItemId>,
    /// The event before the first.
    pub(in crate::routes) before: Seq,
}

/// The run in which a thread receives an answer that its sub-agent `target` has accepted, and the event
/// before it. If the log does not determine the run, it is the one that ran then, or the next one.
pub(in crate::routes) async fn went_on(
    thread: &ThreadKey,
    target: &str,
    accepted: &Accepted,
) -> Result<(RunSelector, Seq), ApiError> {
    let goes_on = thread.has_continuation(target, accepted).await?;
    let run = match goes_on.item {
        Some(item) => RunSelector::answering(item),
        None => RunSelector::running(goes_on.execution),
    };
    Ok((run, goes_on.before))
}

impl AnswerTarget {
    /// The runs in which the thread receives accepted answers, each once.
    pub(in crate::routes) async fn of(
        thread: &ThreadKey,
        mut heard: Vec<ThreadContinuation>,
    ) -> Result<Self, ApiError> {
        let nothing = ThreadContinuation {
            item: None,
            execution: None,
            before: Seq::ZERO,
        };
        heard.sort_by_key(|it| (it.before, it.item.is_some()));
        let mut heard = heard.into_iter();
        let first = heard.next().unwrap_or(nothing);
        // Those that have woken nothing yet, as where the store failed at that, are not waited for: what was
        // said in their place may be all that ever comes. A stream that waited for it would not end.
        let mut then: Vec<ItemId> = Vec::new();
        for item in heard.filter_map(|it| it.item) {
            if first.item.as_ref() != Some(&item) && !then.contains(&item) {
                then.push(item);
            }
        }
        let before = match (&first.item, &first.execution) {
            // It ran before the answer was taken: from its beginning, which the client may not have seen.
            (None, Some(execution)) => {
                let found = thread.find().await?;
                let landmark = Landmark::Execution(execution);
                let store = found.runtime().store();
                let began = store.position_of(found.id(), landmark).await;
                let began = began.map_err(RuntimeError::from)?;
                began.map_or(first.before, |began| Seq(began.0.saturating_sub(1)))
            }
            (Some(_), _) | (None, None) => first.before,
        };
        Ok(Self {
            first,
            then,
            before,
        })
    }
}

//! Rewinds a thread to an earlier point, so that other messages can follow there.

use crate::change::{is_written, removable};
use crate::compaction::compactions_reaching;
use crate::error::RuntimeError;
use crate::live::Live;
use crate::request::Rewind;
use crate::runtime::Runtime;
use crate::thread_page::{Chain, Position, Span, end_of, removed_entries};
use store::{Filter, Landmark, Run};
use timeline::{
    Command, Ending, Entry, Interruption, ItemId, Rejected, Removed, State, Transcript, Trigger,
};

/// The detail of queued messages that are never answered after a rewind.
const TAKEN_BACK: &str = "the conversation was taken back to before this message";

impl Runtime {
    /// The commands that rewind a thread, to be applied after its run was stopped. The caller holds
    /// the thread's lock. The cost is proportional to the removed entries.
    ///
    /// # Errors
    ///
    /// [`RuntimeError::Rejected`] if the item does not exist, is already removed, or is queued.
    pub(crate) async fn taken_back(
        &self,
        live: &Live,
        state: &State,
        to: &Rewind,
    ) -> Result<Vec<Command>, RuntimeError> {
        let mut goes = Self::what_goes(live, state, to).await?;
        let mut commands = Vec::new();
        for waiting in state.waiting() {
            // An item that waits can't be removed: it is answered, and that is stopped as it begins.
            // Whoever was promised an execution finds it stopped under that very id.
            let run = Run::of(Some(&waiting.run));
            let parent = run.parent.clone();
            let start = self.start(Trigger::Waiting, run)?;
            goes.push(Removed::Item(waiting.item.id.clone()));
            if let Command::Start { step_id, .. } = &start {
                goes.push(Removed::Step(step_id.clone()));
            }
            let why = Interruption {
                reason: Interruption::USER_CANCELLED.into(),
                detail: Some(TAKEN_BACK.into()),
            };
            let ending = Ending::Stopped(why);
            commands.extend([start, Command::End { ending }]);
            self.wake_parents(live, parent.as_ref(), None).await?;
        }
        let goes = goes.into_iter().map(|what| Command::Remove { what });
        commands.extend(goes);
        Ok(commands)
    }

    /// The entries that a rewind removes, without queued messages.
    async fn what_goes(
        live: &Live,
        state: &State,
        to: &Rewind,
    ) -> Result<Vec<Removed>, RuntimeError> {
        let named = || Removed::Item(to.item().clone());
        if state.waiting().any(|it| it.item.id == *to.item()) {
            return Err(Rejected::StillNeeded(named()).into());
        }
        let chain = live.chain().await?;
        let place = removable(&chain, Landmark::Item(to.item()), &named()).await?;
        let cut = cut_at(&chain, place, to).await?;
        let span = Span {
            first: cut.first,
            last: chain.last,
        };
        let transcript = chain.read(span, Filter::Facts).await?;
        let stays = match cut.stays {
            Stays::Nothing => None,
            Stays::This => Some(to.item().clone()),
            Stays::Trigger => {
                let trigger = answered(&transcript);
                let trigger = trigger.ok_or_else(|| Rejected::RemovedAlready(named()))?;
                Some(trigger)
            }
        };
        let mut goes = removed_entries(&transcript);
        goes.retain(|what| match what {
            Removed::Item(id) => {
                stays.as_ref() != Some(id) && !state.waiting().any(|it| it.item.id == *id)
            }
            Removed::Step(_) | Removed::Compaction(_) => true,
        });
        // Their summaries speak of what goes.
        goes.extend(compactions_reaching(&chain, cut.first).await?);
        Ok(goes)
    }
}

/// The position at which a thread is cut.
struct Cut {
    /// The position of the first removed entry.
    first: Position,
    stays: Stays,
}

/// The part of those entries that stays.
enum Stays {
    Nothing,
    /// The named item.
    This,
    /// The trigger of the first execution.
    Trigger,
}

async fn cut_at(chain: &Chain<'_>, place: Position, to: &Rewind) -> Result<Cut, RuntimeError> {
    let run = if is_written(chain, place).await? {
        chain.run_before(place.next()).await?
    } else {
        None
    };
    let Some(run) = run else {
        let stays = match to {
            Rewind::From(_) => Stays::Nothing,
            Rewind::After(_) => Stays::This,
        };
        return Ok(Cut {
            first: place,
            stays,
        });
    };
    match to {
        Rewind::From(_) => Ok(Cut {
            first: run.created,
            stays: Stays::Trigger,
        }),
        Rewind::After(_) => {
            let last = end_of(chain, run.last, |run| run.goes_on).await?;
            Ok(Cut {
                first: last.next(),
                stays: Stays::Nothing,
            })
        }
    }
}

/// The trigger of the first execution; none if no step of it is left.
fn answered(transcript: &Transcript) -> Option<ItemId> {
    let mut reactions = transcript.entries.iter().filter_map(|entry| match entry {
        Entry::Reaction(reaction) => Some(reaction),
        Entry::Item(_) => None,
    });
    let first = reactions.next().filter(|first| !first.steps.is_empty())?;
    Some(first.execution.trigger_item_id.clone())
}

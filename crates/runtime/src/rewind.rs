//! Taking a thread back to an earlier point, for something else to be said there.

use crate::error::RuntimeError;
use crate::live::Live;
use crate::react::Runtime;
use crate::request::{Rewind, Run};
use crate::store::{Filter, Landmark};
use crate::stretch::{Chain, Place, Span, end_of, told};
use timeline::{
    Command, Ending, Entry, Event, Interruption, ItemId, Rejected, Removed, State, Transcript,
    Trigger,
};

/// Why what waited is never answered.
const TAKEN_BACK: &str = "the conversation was taken back to before this message";

impl Runtime {
    /// The commands that take a thread back, for when what runs has been stopped. Whoever asks holds
    /// the thread's lock. Costs what goes.
    ///
    /// # Errors
    ///
    /// [`RuntimeError::Rejected`] if the item is not there, is removed already, or waits for its turn.
    pub(crate) async fn taken_back(
        &self,
        live: &Live,
        state: &State,
        to: &Rewind,
    ) -> Result<Vec<Command>, RuntimeError> {
        let mut goes = self.what_goes(live, state, to).await?;
        let mut commands = Vec::new();
        for waiting in state.waiting() {
            // An item that waits can't be removed: it is answered, and that is stopped as it begins.
            // Whoever was promised an execution finds it stopped under that very id.
            let start = self.start(Trigger::Waiting, Some(waiting.run.clone()));
            goes.push(Removed::Item(waiting.item.id.clone()));
            if let Command::Start { step_id, .. } = &start {
                goes.push(Removed::Step(step_id.clone()));
            }
            let why = Interruption {
                reason: "user_cancelled".into(),
                detail: Some(TAKEN_BACK.into()),
            };
            let ending = Ending::Stopped(why);
            commands.extend([start, Command::End { ending }]);
            let parent = Run::of(Some(&waiting.run)).parent;
            self.wake_parents(live, parent.as_ref()).await?;
        }
        let goes = goes.into_iter().map(|what| Command::Remove { what });
        commands.extend(goes);
        Ok(commands)
    }

    /// What goes, but for what waits.
    async fn what_goes(
        &self,
        live: &Live,
        state: &State,
        to: &Rewind,
    ) -> Result<Vec<Removed>, RuntimeError> {
        let named = || Removed::Item(to.item().clone());
        if state.waiting().any(|it| it.item.id == *to.item()) {
            return Err(Rejected::StillNeeded(named()).into());
        }
        let store = self.inner.store.as_ref();
        let chain = Chain::of(store, store.row(&live.thread).await?).await?;
        let place = chain.place_of(Landmark::Item(to.item())).await?;
        let place = place.ok_or_else(|| Rejected::NotThere(named()))?;
        if !chain.removed(vec![named()]).await?.is_empty() {
            return Err(Rejected::RemovedAlready(named()).into());
        }
        let cut = cut(&chain, place, to).await?;
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
        let mut goes = told(&transcript);
        goes.retain(|what| match what {
            Removed::Item(id) => {
                stays.as_ref() != Some(id) && !state.waiting().any(|it| it.item.id == *id)
            }
            Removed::Step(_) => true,
        });
        Ok(goes)
    }
}

/// Where a thread is cut.
struct Cut {
    /// The first place of what goes.
    first: Place,
    stays: Stays,
}

/// What of that stays.
enum Stays {
    Nothing,
    /// The item that was named.
    This,
    /// What the first execution answers.
    Trigger,
}

async fn cut(chain: &Chain<'_>, place: Place, to: &Rewind) -> Result<Cut, RuntimeError> {
    let made = chain.records(place.before(), 1).await?;
    let made = made.first().map(|logged| &logged.record.event);
    let is_written =
        matches!(made, Some(Event::ItemCreated { item }) if item.execution_id.is_some());
    let run = if is_written {
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

/// What the first execution answers; none where nothing is left of it.
fn answered(transcript: &Transcript) -> Option<ItemId> {
    let mut reactions = transcript.entries.iter().filter_map(|entry| match entry {
        Entry::Reaction(reaction) => Some(reaction),
        Entry::Item(_) => None,
    });
    let first = reactions.next().filter(|first| !first.steps.is_empty())?;
    Some(first.execution.trigger_item_id.clone())
}

//! Where a compaction may end.

use super::Cut;
use super::draft::Prefix;
use super::illegal_cut::{CutRefusal, IllegalCut, LegalCut};
use crate::error::RuntimeError;
use crate::thread_page::{Chain, Position, Run};
use store::Landmark;
use timeline::{ExecutionId, ItemId};

/// Number of runs that are tried to find a legal end.
const MAX_TRIED: usize = 20;

impl From<CutRefusal> for RuntimeError {
    fn from(why: CutRefusal) -> Self {
        IllegalCut { why, next: None }.into()
    }
}

/// Why no compaction can end at a run.
struct NoBorder {
    why: CutRefusal,
    /// The item of a call without a result, if an application stored the call.
    stored_call: Option<ItemId>,
}

impl From<CutRefusal> for NoBorder {
    fn from(why: CutRefusal) -> Self {
        let stored_call = None;
        Self { why, stored_call }
    }
}

/// The runs and messages before a legal end.
pub(super) struct Border {
    pub(super) execution_id: ExecutionId,
    pub(super) position: Position,
    pub(super) prefix: Prefix,
}

/// Checks a cut. The cost is proportional to what was added since the last compaction.
pub(super) async fn border(chain: &Chain<'_>, cut: &Cut) -> Result<Border, RuntimeError> {
    let (run, asked) = match cut {
        Cut::KeepRuns(n) => return kept(chain, *n).await,
        Cut::Through(id) => {
            let created = chain.position_of(Landmark::Execution(id)).await?;
            let run = match created {
                Some(created) => chain.run_before(created.next()).await?,
                None => None,
            };
            let run = run.ok_or_else(|| RuntimeError::UnknownExecution(id.clone()))?;
            let asked = run.last;
            (run, asked)
        }
        Cut::At(seq) => {
            let place = chain.own(*seq);
            let run = chain.run_before(place.next()).await?;
            match run.filter(|run| run.finished == Some(place)) {
                Some(run) => (run, place),
                None => return Err(refused(chain, CutRefusal::NoBorder(*seq), place).await?),
            }
        }
    };
    match ended(chain, &run).await? {
        Ok(border) => Ok(border),
        Err(refusal) => Err(refused(chain, refusal.why, asked).await?),
    }
}

/// The end of a run, if a compaction can end there.
async fn ended(chain: &Chain<'_>, run: &Run) -> Result<Result<Border, NoBorder>, RuntimeError> {
    let Some(place) = run.finished else {
        return Ok(Err(CutRefusal::Running(run.execution_id.clone()).into()));
    };
    if let Some(next) = chain.run_after(place).await?.filter(|next| next.goes_on) {
        let refusal = CutRefusal::Continued {
            execution: run.execution_id.clone(),
            by: next.execution_id,
        };
        return Ok(Err(refusal.into()));
    }
    let mut prefix = Prefix::read(chain, place).await?;
    Ok(match prefix.unanswered.take() {
        Some(call) => Err(NoBorder {
            why: CutRefusal::Unanswered(call.tool_call_id),
            stored_call: call.item,
        }),
        None => Ok(Border {
            execution_id: run.execution_id.clone(),
            position: place,
            prefix,
        }),
    })
}

async fn refused(
    chain: &Chain<'_>,
    why: CutRefusal,
    asked: Position,
) -> Result<RuntimeError, RuntimeError> {
    let next = next(chain, asked).await?;
    Ok(IllegalCut { why, next }.into())
}

/// The first legal end after a position.
async fn next(chain: &Chain<'_>, place: Position) -> Result<Option<LegalCut>, RuntimeError> {
    let begun = chain.run_before(place.next()).await?;
    let mut run = match begun.filter(|run| run.finished.is_none_or(|end| end > place)) {
        Some(run) => Some(run),
        None => chain.run_after(place).await?,
    };
    for _ in 0..MAX_TRIED {
        let Some(tried) = run else { break };
        if let Ok(border) = ended(chain, &tried).await? {
            return Ok(Some(LegalCut {
                execution_id: border.execution_id,
                seq: chain.own_seq(border.position),
            }));
        }
        run = chain.run_after(tried.last).await?;
    }
    Ok(None)
}

/// The newest legal end that leaves `n` finished runs after it and comes after that of the
/// compaction that counts. A call without a result rules out all ends after it.
async fn kept(chain: &Chain<'_>, n: usize) -> Result<Border, RuntimeError> {
    let current = chain.current_compaction().await?;
    let done = current.map_or(Position::START, |it| it.through());
    let (mut n_kept, mut n_tried) = (0, 0);
    let mut before = Position::END;
    while n_tried < MAX_TRIED
        && let Some(last) = chain.run_before(before).await?
    {
        if last.finished.is_some_and(|end| end <= done) {
            break;
        }
        let mut first = last.clone();
        while first.goes_on {
            let Some(former) = chain.run_before(first.created).await? else {
                break;
            };
            first = former;
        }
        before = first.created;
        if n_kept >= n {
            n_tried += 1;
            let refusal = match ended(chain, &last).await? {
                Ok(border) => return Ok(border),
                Err(refusal) => refusal,
            };
            if let Some(call) = refusal.stored_call
                && let Some(stored) = chain.position_of(Landmark::Item(&call)).await?
            {
                before = before.min(stored);
            }
        }
        n_kept += usize::from(last.finished.is_some());
    }
    Err(CutRefusal::NothingOlder.into())
}

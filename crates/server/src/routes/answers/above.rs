//! The run of a thread that goes on when a sub-agent beneath it was answered.

use crate::error::ApiError;
use crate::run_events::RunEvents;
use crate::state::Api;
use jiff::Timestamp;
use runtime::{Accepted, TenantId};
use timeline::{Event, ExecutionId, Seq};

/// How many records are read at once.
const PAGE: u64 = 512;

/// The run that ran when the answer was taken, else the next one, and the event before the answer.
///
/// The answer is a repetition, so the thread may have come to rest since. It is searched from the end of the log for what was written when the answer was taken, so that it costs
/// what was written since, and the run before that if it ran then.
pub(in crate::routes) async fn went_on(
    api: &Api,
    tenant: &TenantId,
    key: &str,
    target: &str,
    accepted: &Accepted,
) -> Result<(RunEvents, Seq), ApiError> {
    let runtime = api.runtime();
    let answer = runtime.read(tenant, target, accepted.after, 1).await?;
    let taken_at = answer.first().map(|logged| logged.record.at);
    let (_, tail) = runtime.state(tenant, key).await?;
    // What was taken is there; nothing is before the beginning of time.
    let mut search = Search::new(taken_at.unwrap_or(Timestamp::MIN), tail);
    while let Some((after, limit)) = search.page() {
        let page = runtime.read(tenant, key, after, limit).await?;
        for logged in page.iter().rev() {
            search.see(logged.record.seq, logged.record.at, &logged.record.event);
        }
        search.read_to(after);
    }
    Ok((RunEvents::running(search.running), search.before))
}

/// The search for an instant in a log, backwards.
struct Search {
    at: Timestamp,
    /// The last event before the instant, as far as is known.
    before: Seq,
    /// What ran at the instant.
    running: Option<ExecutionId>,
    is_done: bool,
    end: u64,
}

impl Search {
    fn new(at: Timestamp, tail: Seq) -> Self {
        Self {
            at,
            before: tail,
            running: None,
            is_done: false,
            end: tail.0,
        }
    }

    /// The next events to be read: after which, and how many.
    fn page(&self) -> Option<(Seq, usize)> {
        if self.is_done || self.end == 0 {
            return None;
        }
        let after = self.end.saturating_sub(PAGE);
        let limit = usize::try_from(self.end - after).unwrap_or(usize::MAX);
        Some((Seq(after), limit))
    }

    fn read_to(&mut self, after: Seq) {
        self.end = after.0;
    }

    fn see(&mut self, seq: Seq, at: Timestamp, event: &Event) {
        if self.is_done {
            return;
        }
        if at >= self.at {
            self.before = Seq(seq.0.saturating_sub(1));
            return;
        }
        // Only executions tell what ran: what else was written then may stand outside of any.
        if let Event::ExecutionCreated { execution } = event {
            self.running = Some(execution.id.clone());
            self.is_done = true;
        } else if let Event::ThreadFinished { .. } = event {
            self.is_done = true;
        }
    }
}

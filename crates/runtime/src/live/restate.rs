//! Chunks that followers have seen and that the log will never have: the run was ended by another node first.

use super::Live;
use super::records::{logged, resets};
use crate::pages::PAGE;
use jiff::Timestamp;
use std::sync::Arc;
use store::{Filter, Landmark, Logged, NewRecord, StoreError};
use timeline::{Event, Seq, StepId, chunk_type};

impl Live {
    /// A reset of an ended step, and the chunks and parts that the log has of it up to `last`. A follower reads them in
    /// place of the chunks that it has seen ahead of the log.
    pub(crate) async fn restated(
        &self,
        step: &StepId,
        last: Seq,
    ) -> Result<Vec<Arc<Logged>>, StoreError> {
        let store = self.store.as_ref();
        let found = store
            .position_of(&self.thread, Landmark::Step(step))
            .await?;
        let head = store.head(&self.thread).await?;
        let (Some(created), Some(context)) = (found, head.state.context()) else {
            return Ok(Vec::new());
        };
        let mut after = Seq(created.0.saturating_sub(1));
        let (mut execution_id, mut at, mut chunks) = (None, head.last_at, Vec::new());
        while after < last {
            let page = store.read(&self.thread, after, PAGE, Filter::All).await?;
            let Some(end) = page.last() else { break };
            after = end.record.seq;
            for record in page.into_iter().map(|logged| logged.record) {
                if record.seq > last {
                    break;
                }
                if let Event::StepCreated { step } = &record.event {
                    (execution_id, at) = (Some(step.execution_id.clone()), record.at);
                } else if resets(&record.event) == Some(step) {
                    chunks.clear();
                } else if is_output_of(&record.event, step) {
                    chunks.push((record.at, record.event));
                }
            }
        }
        let reset = Event::ChunkEmitted {
            chunk_type: chunk_type::STEP_RESET.to_owned(),
            context_id: context.id.clone(),
            execution_id,
            step_id: Some(step.clone()),
            data: None,
        };
        let all = [(at, reset)].into_iter().chain(chunks);
        let new = |(at, event): (Timestamp, Event)| NewRecord::new(at, event);
        let records: Result<Vec<_>, _> = all.map(new).collect();
        let records = records.map_err(|error| StoreError::Damaged(error.to_string()))?;
        Ok(logged(last, records))
    }
}

/// Whether an event is a chunk or a part of this step.
fn is_output_of(event: &Event, step: &StepId) -> bool {
    if let Event::PartCreated { step_id, .. } | Event::PartUpdated { step_id, .. } = event {
        return step_id == step;
    }
    let Event::ChunkEmitted { step_id, .. } = event else {
        return false;
    };
    step_id.as_ref() == Some(step) && event.is_streamed()
}

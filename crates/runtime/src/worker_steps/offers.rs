//! The steps in the store, as the process that runs them sees them.

use super::WorkerPolicy;
use super::answer::{ExternalAnswer, StepDelta};
use super::steps::{ExternalSteps, PAGE};
use super::stored::{ANSWER, REQUEST, STEP, Status, StoredStep, after, attempt_id, chunks};
use super::wakes::Change;
use jiff::Timestamp;
use std::sync::Arc;
use store::objects::{NewObject, ObjectPage, SidecarObject};
use store::{StoreError, TenantId};
use timeline::ThreadId;
use tokio::sync::Notify;

/// A step to offer to workers.
pub(crate) struct Offer {
    pub(crate) tenant: TenantId,
    pub(crate) step: String,
    pub(crate) agent: String,
    pub(crate) thread: ThreadId,
    pub(crate) key: String,
    pub(crate) execution: String,
    pub(crate) iteration: u32,
    pub(crate) policy: WorkerPolicy,
}

/// The result of an offer.
pub(crate) enum Offered {
    /// Workers can answer the step in this attempt.
    Attempt(u32),
    /// Too many leases were lost.
    LostTooOften,
    /// Another process has changed the step meanwhile.
    Overtaken,
}

/// For the process that runs the step.
impl ExternalSteps {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.shutdown.is_cancelled()
    }

    pub(crate) fn changes(&self, tenant: &TenantId, step: &str) -> Arc<Notify> {
        self.wakes.of(Change::Step(tenant.clone(), step.to_owned()))
    }

    /// Offers a step. Voids the leases of earlier attempts. A step with an answer stays as it is.
    pub(crate) async fn offer(
        &self,
        offer: &Offer,
        request: String,
    ) -> Result<Offered, StoreError> {
        let (tenant, id) = (&offer.tenant, &offer.step);
        let before = self.read(tenant, id).await?;
        if let Some((_, step)) = &before
            && matches!(step.status, Status::Answered { .. })
            // Its removal may have ended after that of the answer.
            && self.answer(tenant, id, step.attempt).await?.is_some()
        {
            return Ok(Offered::Attempt(step.attempt));
        }
        let (attempt, lost) = before.as_ref().map_or((1, 0), |(_, before)| {
            let lost = u32::from(matches!(before.status, Status::Lost));
            (before.attempt.saturating_add(1), before.lost + lost)
        });
        if lost >= offer.policy.max_lost_leases {
            if let Some((object, before)) = before {
                self.remove(tenant, &object, before.attempt).await?;
            }
            return Ok(Offered::LostTooOften);
        }
        let now = self.clock.now();
        let mut step = StoredStep {
            agent: offer.agent.clone(),
            thread: offer.thread.clone(),
            key: offer.key.clone(),
            execution: offer.execution.clone(),
            iteration: offer.iteration,
            attempt,
            lost,
            lease_ms: offer.policy.lease_ms(),
            request_bytes: request.len(),
            status: Status::Lost,
            stale_at: now,
        };
        let until = after(now, offer.policy.wait);
        step.set(Status::Waiting { until }, now);
        let object = |kind: &str, id: String, json: String| NewObject {
            kind: kind.to_owned(),
            id,
            created_at: now,
            json,
            content: None,
            thread: Some(offer.thread.clone()),
            is_limited: false,
        };
        let request = object(REQUEST, attempt_id(id, attempt), request);
        self.objects().put(tenant, request).await?;
        let offered = object(STEP, id.clone(), json(&step));
        if let Some((object, before)) = before {
            if !self.objects().replace(tenant, &object, offered).await? {
                self.remove_unused_request(tenant, id, attempt).await?;
                return Ok(Offered::Overtaken);
            }
            if let Err(error) = self.remove_request(tenant, id, before.attempt).await {
                // They remain until the thread is deleted.
                tracing::warn!(step = id, %error, "the objects of a former attempt could not be removed");
            }
        } else {
            self.objects().put(tenant, offered).await?;
        }
        self.woken(tenant, id);
        self.wakes.wake(&Change::Offered(tenant.clone()));
        Ok(Offered::Attempt(attempt))
    }

    pub(crate) async fn read(
        &self,
        tenant: &TenantId,
        step: &str,
    ) -> Result<Option<(SidecarObject, StoredStep)>, StoreError> {
        let found = self.objects().get(tenant, STEP, step).await?;
        Ok(found.and_then(|object| {
            let step = serde_json::from_str(&object.json).ok()?;
            Some((object, step))
        }))
    }

    /// Replaces a step that is as it was read. Returns whether it was.
    pub(crate) async fn replace(
        &self,
        tenant: &TenantId,
        before: &SidecarObject,
        step: &StoredStep,
    ) -> Result<bool, StoreError> {
        let object = NewObject {
            kind: STEP.to_owned(),
            id: before.id.clone(),
            created_at: before.created_at,
            json: json(step),
            content: None,
            thread: Some(step.thread.clone()),
            is_limited: false,
        };
        self.objects().replace(tenant, before, object).await
    }

    /// The answer in an attempt.
    pub(crate) async fn answer(
        &self,
        tenant: &TenantId,
        step: &str,
        attempt: u32,
    ) -> Result<Option<Box<ExternalAnswer>>, StoreError> {
        let id = attempt_id(step, attempt);
        let found = self.objects().get(tenant, ANSWER, &id).await?;
        Ok(found.and_then(|object| serde_json::from_str(&object.json).ok()))
    }

    /// The pieces after the one with this id, which it replaces by the last. Removes them.
    pub(crate) async fn take_chunks(
        &self,
        tenant: &TenantId,
        step: &str,
        attempt: u32,
        last: &mut String,
    ) -> Result<Vec<StepDelta>, StoreError> {
        let kind = chunks(step, attempt);
        let found = self.chunks_after(tenant, &kind, last).await?;
        let mut deltas = Vec::new();
        for object in found {
            let read: Vec<StepDelta> = serde_json::from_str(&object.json).unwrap_or_default();
            deltas.extend(read);
            let deleted = self.objects().delete(tenant, &kind, &object.id, None).await;
            *last = object.id;
            if let Err(error) = deleted {
                // It is removed with the step. Those after it are read by the next call.
                tracing::debug!(step, %error, "a piece of an answer could not be removed");
                break;
            }
        }
        Ok(deltas)
    }

    async fn chunks_after(
        &self,
        tenant: &TenantId,
        kind: &str,
        last: &str,
    ) -> Result<Vec<SidecarObject>, StoreError> {
        let page = ObjectPage {
            beyond: Some((Timestamp::UNIX_EPOCH, last.to_owned())),
            limit: PAGE,
            ..ObjectPage::default()
        };
        self.objects().list(tenant, kind, page).await
    }

    /// Removes a step that is as it was read, after its request and its pieces. Returns whether it was. As long as the step
    /// is there, somebody can repeat the removal.
    pub(crate) async fn remove(
        &self,
        tenant: &TenantId,
        object: &SidecarObject,
        attempt: u32,
    ) -> Result<bool, StoreError> {
        let id = object.id.as_str();
        self.remove_request(tenant, id, attempt).await?;
        self.objects().delete(tenant, STEP, id, Some(object)).await
    }

    /// Removes the request of an attempt that is not offered.
    async fn remove_unused_request(
        &self,
        tenant: &TenantId,
        step: &str,
        attempt: u32,
    ) -> Result<(), StoreError> {
        let found = self.read(tenant, step).await?;
        // Another process may offer an attempt of the same number.
        if found.is_none_or(|(_, step)| step.attempt != attempt) {
            let id = attempt_id(step, attempt);
            self.objects().delete(tenant, REQUEST, &id, None).await?;
        }
        Ok(())
    }

    async fn remove_request(
        &self,
        tenant: &TenantId,
        step: &str,
        attempt: u32,
    ) -> Result<(), StoreError> {
        let id = attempt_id(step, attempt);
        self.objects().delete(tenant, REQUEST, &id, None).await?;
        self.remove_output(tenant, step, attempt).await
    }

    /// Removes the answer and the pieces of an attempt.
    async fn remove_output(
        &self,
        tenant: &TenantId,
        step: &str,
        attempt: u32,
    ) -> Result<(), StoreError> {
        let id = attempt_id(step, attempt);
        self.objects().delete(tenant, ANSWER, &id, None).await?;
        let kind = chunks(step, attempt);
        // From the beginning: a repeated request may have added an earlier one again.
        loop {
            let found = self.chunks_after(tenant, &kind, "").await?;
            if found.is_empty() {
                return Ok(());
            }
            for object in found {
                self.objects()
                    .delete(tenant, &kind, &object.id, None)
                    .await?;
            }
        }
    }

    /// Ends an attempt that is no longer needed. A worker that has it learns so at its next heartbeat.
    pub(crate) async fn withdraw(
        &self,
        tenant: &TenantId,
        step: &str,
        attempt: u32,
    ) -> Result<(), StoreError> {
        loop {
            let found = self.read(tenant, step).await?;
            let Some((object, mut stored)) = found.filter(|(_, it)| it.attempt == attempt) else {
                return Ok(());
            };
            let Status::Leased { lease, .. } = &stored.status else {
                if self.remove(tenant, &object, attempt).await? {
                    return Ok(());
                }
                // A worker has leased or answered it meanwhile.
                continue;
            };
            let lease = lease.clone();
            stored.set(Status::Cancelled { lease }, self.clock.now());
            if self.replace(tenant, &object, &stored).await? {
                return self.remove_request(tenant, step, attempt).await;
            }
        }
    }
}

fn json(step: &StoredStep) -> String {
    // Its map has text keys only.
    serde_json::to_string(step).unwrap_or_default()
}

//! Approvals of calls: requests, answers and denials.

use super::Reducer;
use super::error::ChunkError;
use super::parts::CallKind;
use crate::ai_sdk::chunk::{Major, is_set, some, text};
use thread::{Json, Object};

impl Reducer {
    pub(super) fn request_approval(&mut self, chunk: &Json) -> Result<(), ChunkError> {
        let place = self.called(chunk, CallKind::Any)?;
        let id = text(chunk, "approvalId");
        let mut approval = Object::new()
            .with("id", id)
            .with_some("descriptor", some(chunk, "approvalDescriptor").cloned())
            .with_some("inputSchemaInput", chunk.get("inputSchemaInput").cloned());
        if self.major >= Major::V7 {
            if let Some(reason) = some(chunk, "reason") {
                approval.insert("requestReason", reason.clone());
            }
            if is_set(chunk, "isAutomatic") {
                approval.insert("isAutomatic", true);
            }
        }
        if let Some(signature) = some(chunk, "signature") {
            approval.insert("signature", signature.clone());
        }
        self.parts.set_approval(place, id, approval);
        self.set_state(place, "approval-requested");
        Ok(())
    }

    pub(super) fn respond_to_approval(&mut self, chunk: &Json) -> Result<(), ChunkError> {
        let id = text(chunk, "approvalId");
        let place = self.parts.approved(id);
        let place = place.ok_or_else(|| ChunkError::NotStarted(id.to_owned()))?;
        let known = self.parts.get(place).and_then(|part| part.get("approval"));
        let mut approval = known.and_then(Json::as_object).cloned().unwrap_or_default();
        if let Some(approved) = chunk.get("approved") {
            approval.insert("approved", approved.clone());
        }
        if let Some(reason) = some(chunk, "reason") {
            approval.insert("reason", reason.clone());
        }
        self.parts.set_approval(place, id, approval);
        self.set_state(place, "approval-responded");
        if let Some(part) = self.parts.get_mut(place) {
            for (field, key) in [
                ("providerExecuted", "providerExecuted"),
                ("providerMetadata", "callProviderMetadata"),
            ] {
                if let Some(value) = some(chunk, field) {
                    part.insert(key, value.clone());
                }
            }
        }
        Ok(())
    }

    pub(super) fn deny_output(&mut self, chunk: &Json) -> Result<(), ChunkError> {
        let place = self.called(chunk, CallKind::Any)?;
        self.set_state(place, "output-denied");
        Ok(())
    }

    fn set_state(&mut self, place: usize, state: &str) {
        if let Some(part) = self.parts.get_mut(place) {
            part.insert("state", state);
        }
    }

    /// The part of the call that a chunk is about.
    pub(super) fn called(&self, chunk: &Json, kind: CallKind) -> Result<usize, ChunkError> {
        let id = text(chunk, "toolCallId");
        let place = self.parts.call(id, kind);
        place.ok_or_else(|| ChunkError::NotStarted(id.to_owned()))
    }
}

//! Filled-in forms as values of answers.

use super::{CapabilityRequest, data, decision, payment, signing};
use crate::form_field::FormError;
use interop::aitp::Topic;
use serde_json::Value;

impl CapabilityRequest {
    /// The value of the answer that a form's fields mean. The fields are those of [`Self::html`], by
    /// name. The server checks the value against the request.
    ///
    /// # Errors
    ///
    /// The texts that are no number or no JSON.
    pub fn answer_value(&self, fields: &[(String, String)]) -> Result<Value, Vec<FormError>> {
        match self.topic {
            Topic::Decision => decision::answer_value(self, fields),
            Topic::Data => data::answer_value(self, fields),
            Topic::Payment | Topic::TopUp => payment::answer_value(self, fields),
            Topic::NearAccount
            | Topic::NearTransaction
            | Topic::NearSigning
            | Topic::EvmAddress
            | Topic::EvmTransaction
            | Topic::EvmSigning => signing::answer_value(self, fields),
        }
    }
}

//! Requests to wallets: accounts, transactions and signatures. The person's own wallet does the work, and
//! the form takes its result.

use super::CapabilityRequest;
use crate::form_field::{FilledForm, FormError};
use crate::schema_form::SchemaForm;
use interop::aitp::Topic;
use maud::{Markup, html};
use serde_json::Value;

/// All that an answer signs, complete.
pub(super) fn data(signed: &str) -> Markup {
    html! {
        div class="signed" {
            p class="label" { "What is signed, complete" }
            pre tabindex="0" { code { (signed) } }
        }
    }
}

/// The form for the members of the answer.
pub(super) fn form(request: &CapabilityRequest, id: &str, filled: &FilledForm) -> Markup {
    let advice = match request.topic {
        Topic::NearTransaction | Topic::EvmTransaction => {
            "Check and send the transaction with your wallet, then enter its hash."
        }
        Topic::NearSigning | Topic::EvmSigning => {
            "Check and sign the message with your wallet, then enter what it shows."
        }
        Topic::NearAccount | Topic::EvmAddress => {
            "Enter only what everyone in this thread may know."
        }
        Topic::Decision | Topic::Data | Topic::Payment | Topic::TopUp => "Enter the answer.",
    };
    request.form_element(
        id,
        &html! {
            p class="note" { (advice) }
            (SchemaForm::of(&request.answer_schema).html(id, filled))
            div class="buttons" { button class="primary" type="submit" { "Send the answer" } }
        },
    )
}

/// The value of an answer.
pub(super) fn answer_value(
    request: &CapabilityRequest,
    fields: &[(String, String)],
) -> Result<Value, Vec<FormError>> {
    SchemaForm::of(&request.answer_schema).value(fields)
}

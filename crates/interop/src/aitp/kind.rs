//! The types of capability messages, and what each is for.

use super::family::Family;
use serde::{Deserialize, Serialize};

/// The kind of answer that a request needs. Ids are unique within each topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// A choice.
    Decision,
    /// A form.
    Data,
    /// A payment of a quote.
    Payment,
    /// More money in a payment channel.
    TopUp,
    /// Accounts on NEAR.
    NearAccount,
    /// A transaction on NEAR.
    NearTransaction,
    /// A signature on NEAR.
    NearSigning,
    /// Addresses on an EVM chain.
    EvmAddress,
    /// A transaction on an EVM chain.
    EvmTransaction,
    /// A signature on an EVM chain.
    EvmSigning,
}

/// The purpose of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It opens a request.
    Ask(Topic),
    /// It answers one.
    Answer(Topic),
    /// The requester reports the result of the answer.
    Outcome(Topic),
    /// It changes a request of any topic: it declines, cancels, reports an error or sets an end.
    Control,
    /// It is for information only.
    Notice,
}

/// The type of a message: the member that holds its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "one for each message of AITP, under its name")]
pub enum Kind {
    Quote,
    WrappedQuote,
    Payment,
    PaymentConfirmation,
    TopUpRequest,
    TopUpResponse,
    PaymentAuthorization,
    PaymentResult,
    RequestDecision,
    Decision,
    RequestData,
    Data,
    RequestAccount,
    AccountResponse,
    NearRequestTransaction,
    NearTransactionResponse,
    NearRequestSigning,
    NearSigningResponse,
    NearTokenNotification,
    RequestAddress,
    AddressResponse,
    EvmRequestTransaction,
    EvmTransactionResponse,
    EvmRequestSigning,
    EvmSigningResponse,
    ChainNotification,
    EvmTokenNotification,
    Decline,
    Cancel,
    Error,
    Expire,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 31] = [
        Self::Quote,
        Self::WrappedQuote,
        Self::Payment,
        Self::PaymentConfirmation,
        Self::TopUpRequest,
        Self::TopUpResponse,
        Self::PaymentAuthorization,
        Self::PaymentResult,
        Self::RequestDecision,
        Self::Decision,
        Self::RequestData,
        Self::Data,
        Self::RequestAccount,
        Self::AccountResponse,
        Self::NearRequestTransaction,
        Self::NearTransactionResponse,
        Self::NearRequestSigning,
        Self::NearSigningResponse,
        Self::NearTokenNotification,
        Self::RequestAddress,
        Self::AddressResponse,
        Self::EvmRequestTransaction,
        Self::EvmTransactionResponse,
        Self::EvmRequestSigning,
        Self::EvmSigningResponse,
        Self::ChainNotification,
        Self::EvmTokenNotification,
        Self::Decline,
        Self::Cancel,
        Self::Error,
        Self::Expire,
    ];

    /// The type of this name in this capability.
    pub fn find(family: Family, key: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.family() == family && kind.key() == key)
    }

    /// The capability it belongs to.
    pub const fn family(self) -> Family {
        self.row().0
    }

    /// The member that holds the payload.
    pub const fn key(self) -> &'static str {
        self.row().1
    }

    /// The purpose of messages of this kind.
    pub const fn purpose(self) -> Purpose {
        self.row().2
    }

    /// The member of the payload that correlates it with others.
    pub const fn id_field(self) -> &'static str {
        self.row().3
    }

    /// Whether only NEAR AI's user interface wrote it; strictly it is no message of AITP.
    pub const fn is_near_dialect(self) -> bool {
        matches!(self, Self::PaymentAuthorization | Self::PaymentResult)
    }

    #[rustfmt::skip]
    const fn row(self) -> (Family, &'static str, Purpose, &'static str) {
        use Family::{DataRequest, Decisions, EvmWallet, NearWallet, Payments, Requests};
        use Purpose::{Answer, Ask, Control, Notice, Outcome};
        match self {
            Self::Quote => (Payments, "quote", Ask(Topic::Payment), "quote_id"),
            Self::WrappedQuote => (Payments, "wrapped_quote", Ask(Topic::Payment), "quote_id"),
            Self::Payment => (Payments, "payment", Answer(Topic::Payment), "quote_id"),
            Self::PaymentConfirmation => (Payments, "payment_confirmation", Outcome(Topic::Payment), "quote_id"),
            Self::TopUpRequest => (Payments, "top_up_request", Ask(Topic::TopUp), "channel_id"),
            Self::TopUpResponse => (Payments, "top_up_response", Answer(Topic::TopUp), "channel_id"),
            Self::PaymentAuthorization => (Payments, "payment_authorization", Answer(Topic::Payment), "quote_id"),
            Self::PaymentResult => (Payments, "payment_result", Outcome(Topic::Payment), "quote_id"),
            Self::RequestDecision => (Decisions, "request_decision", Ask(Topic::Decision), "id"),
            Self::Decision => (Decisions, "decision", Answer(Topic::Decision), "request_decision_id"),
            Self::RequestData => (DataRequest, "request_data", Ask(Topic::Data), "id"),
            Self::Data => (DataRequest, "data", Answer(Topic::Data), "request_data_id"),
            Self::RequestAccount => (NearWallet, "request_account", Ask(Topic::NearAccount), "request_id"),
            Self::AccountResponse => (NearWallet, "account_response", Answer(Topic::NearAccount), "request_id"),
            Self::NearRequestTransaction => (NearWallet, "request_transaction", Ask(Topic::NearTransaction), "request_id"),
            Self::NearTransactionResponse => (NearWallet, "transaction_response", Answer(Topic::NearTransaction), "request_id"),
            Self::NearRequestSigning => (NearWallet, "request_message_signing", Ask(Topic::NearSigning), "request_id"),
            Self::NearSigningResponse => (NearWallet, "message_signing_response", Answer(Topic::NearSigning), "request_id"),
            Self::NearTokenNotification => (NearWallet, "token_notification", Notice, "notification_id"),
            Self::RequestAddress => (EvmWallet, "request_address", Ask(Topic::EvmAddress), "request_id"),
            Self::AddressResponse => (EvmWallet, "address_response", Answer(Topic::EvmAddress), "request_id"),
            Self::EvmRequestTransaction => (EvmWallet, "request_transaction", Ask(Topic::EvmTransaction), "request_id"),
            Self::EvmTransactionResponse => (EvmWallet, "transaction_response", Answer(Topic::EvmTransaction), "request_id"),
            Self::EvmRequestSigning => (EvmWallet, "request_message_signing", Ask(Topic::EvmSigning), "request_id"),
            Self::EvmSigningResponse => (EvmWallet, "message_signing_response", Answer(Topic::EvmSigning), "request_id"),
            Self::ChainNotification => (EvmWallet, "chain_notification", Notice, "notification_id"),
            Self::EvmTokenNotification => (EvmWallet, "token_notification", Notice, "notification_id"),
            Self::Decline => (Requests, "decline", Control, "request_id"),
            Self::Cancel => (Requests, "cancel", Control, "request_id"),
            Self::Error => (Requests, "error", Control, "request_id"),
            Self::Expire => (Requests, "expire", Control, "request_id"),
        }
    }
}

impl Topic {
    /// All topics.
    pub const ALL: [Self; 10] = [
        Self::Decision,
        Self::Data,
        Self::Payment,
        Self::TopUp,
        Self::NearAccount,
        Self::NearTransaction,
        Self::NearSigning,
        Self::EvmAddress,
        Self::EvmTransaction,
        Self::EvmSigning,
    ];

    /// The name, as it is serialised.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Data => "data",
            Self::Payment => "payment",
            Self::TopUp => "top_up",
            Self::NearAccount => "near_account",
            Self::NearTransaction => "near_transaction",
            Self::NearSigning => "near_signing",
            Self::EvmAddress => "evm_address",
            Self::EvmTransaction => "evm_transaction",
            Self::EvmSigning => "evm_signing",
        }
    }

    /// Whether a further answer may replace the first. For payments and top-ups it may not, so that none
    /// is paid twice by mistake.
    pub const fn may_be_answered_again(self) -> bool {
        !matches!(self, Self::Payment | Self::TopUp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_found_by_its_capability_and_name() {
        for kind in Kind::ALL {
            assert_eq!(Kind::find(kind.family(), kind.key()), Some(kind));
        }
        assert_eq!(Kind::find(Family::Decisions, "quote"), None);
    }

    #[test]
    fn every_topic_is_asked_and_answered_in_one_capability() {
        for topic in Topic::ALL {
            let families = |purpose: Purpose| {
                let kinds = Kind::ALL.into_iter();
                let mut found: Vec<Family> = kinds
                    .filter(|kind| kind.purpose() == purpose)
                    .map(Kind::family)
                    .collect();
                found.dedup();
                found
            };
            let asked = families(Purpose::Ask(topic));
            assert_eq!(asked.len(), 1);
            assert_eq!(asked, families(Purpose::Answer(topic)));
            assert_eq!(serde_json::json!(topic), topic.name());
        }
    }
}

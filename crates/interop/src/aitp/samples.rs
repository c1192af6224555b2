//! One message of every type, for tests.

use super::family::FamilyVersion;
use super::kind::Kind;
use super::message::Message;
use serde_json::{Value, json};

const SIGNATURE: &str = "ed25519:none";
const AT: &str = "2026-01-05T08:00:00Z";

pub(super) const ADDRESS: &str = "0x00000000000000000000000000000000000000aa";

fn payload(kind: Kind) -> Value {
    let quote = json!({
        "quote_id": "q1", "merchant_id": "shop", "description": "A hat", "expiration": "2026-01-06T08:00:00Z",
        "payment_options": [{"amount": "99.90", "currency": "USD", "payment_methods": [
            {"type": "near_payment_channel", "token": "usdc.near", "recipient": "shop"}]}],
        "revenue_share": {"affiliate_share_bps": 100, "affiliates": [{"id": "a", "role": "other", "weight": 1}]},
        "merchant_signature": SIGNATURE
    });
    match kind {
        Kind::Quote => quote,
        Kind::WrappedQuote => json!({"original_quote": quote, "wrappers": [{
            "affiliate_id": "a", "role": "discovery", "next_recipient": "b", "timestamp": AT, "signature": SIGNATURE}]}),
        Kind::Payment => {
            json!({"quote_id": "q1", "payer_id": "me", "timestamp": AT, "payer_signature": SIGNATURE,
            "payment_method": {"type": "near_payment_channel", "token": "usdc.near", "channel_id": "c", "amount": "99.9", "currency": "USD"}})
        }
        Kind::PaymentConfirmation => {
            json!({"quote_id": "q1", "payment_id": "p1", "result": "success", "timestamp": AT,
            "details": [{"label": "Order", "value": 7}], "merchant_signature": SIGNATURE})
        }
        Kind::TopUpRequest => {
            json!({"channel_id": "c", "amount": "50", "currency": "USD", "merchant_id": "shop",
            "timestamp": AT, "merchant_signature": SIGNATURE})
        }
        Kind::TopUpResponse => {
            json!({"channel_id": "c", "amount": "50.00", "currency": "USD", "payer_id": "me",
            "timestamp": AT, "payer_signature": SIGNATURE})
        }
        Kind::PaymentAuthorization => {
            json!({"quote_id": "q1", "result": "success", "timestamp": AT, "details": [{
            "network": "NEAR", "token_type": "USDC", "amount": 199.5, "account_id": "me.near", "transaction_id": "t"}]})
        }
        Kind::PaymentResult => json!({"quote_id": "q1", "result": "pending", "timestamp": AT,
            "details": [{"label": "Order", "value": "7", "url": "https://shop.example/7"}]}),
        Kind::RequestDecision => {
            json!({"id": "d1", "title": "Lunch", "description": "What do you want?", "type": "radio",
            "options": [{"id": "soup", "name": "Soup"}, {"id": "salad", "name": "Salad", "variants": [{"id": "small"}]}]})
        }
        Kind::Decision => {
            json!({"request_decision_id": "d1", "options": [{"id": "soup", "name": "Soup"}]})
        }
        Kind::RequestData => {
            json!({"id": "f1", "title": "Address", "description": "Where to?", "form": {"fields": [
            {"id": "country", "label": "Country", "type": "select", "options": ["de", "fr"], "required": true},
            {"id": "email", "type": "email"}, {"id": "floor", "type": "number", "default_value": "1"}]}})
        }
        Kind::Data => {
            json!({"request_data_id": "f1", "fields": [{"id": "country", "label": "Country", "value": "de"}]})
        }
        Kind::RequestAccount => json!({"request_id": "r1", "description": "Which?"}),
        Kind::AccountResponse => json!({"request_id": "r1", "accounts": ["me.near"]}),
        Kind::NearRequestTransaction => {
            json!({"request_id": "r1", "transaction": {"receiver_id": "nft.near",
            "actions": [{"type": "FunctionCall", "params": {"method_name": "mint"}}]}})
        }
        Kind::NearTransactionResponse => json!({"request_id": "r1", "transaction_hash": "9pz7"}),
        Kind::NearRequestSigning => {
            json!({"request_id": "r1", "message": {"nonce": "AQIDBA==", "recipient": "app", "message": "It is me"}})
        }
        Kind::NearSigningResponse => {
            json!({"request_id": "r1", "account_id": "me.near", "public_key": "k", "signature": SIGNATURE})
        }
        Kind::NearTokenNotification => {
            json!({"notification_id": "n", "token_type": "nep141", "token_contract": "t.near"})
        }
        Kind::RequestAddress => json!({"request_id": "r1", "chain_id": 1}),
        Kind::AddressResponse => json!({"request_id": "r1", "addresses": [ADDRESS]}),
        Kind::EvmRequestTransaction => {
            json!({"request_id": "r1", "transaction": {"to": ADDRESS, "value": "0x1",
            "accessList": [{"address": ADDRESS, "storageKeys": []}]}})
        }
        Kind::EvmTransactionResponse => {
            json!({"request_id": "r1", "transaction_hash": format!("0x{}", "0".repeat(64))})
        }
        Kind::EvmRequestSigning => {
            json!({"request_id": "r1", "address": ADDRESS, "signing_type": "personal_sign", "message": "It is me"})
        }
        Kind::EvmSigningResponse => {
            json!({"request_id": "r1", "address": ADDRESS.to_uppercase().replace("0X", "0x"), "signature": "0xff"})
        }
        Kind::ChainNotification => {
            json!({"notification_id": "n", "chain_id": 1, "rpc_url": "https://rpc.example",
            "native_currency": {"name": "Ether", "symbol": "ETH", "decimals": 18}})
        }
        Kind::EvmTokenNotification => {
            json!({"notification_id": "n", "chain_id": 1, "token_type": "erc20",
            "token_contract": ADDRESS, "name": "Hat", "symbol": "HAT", "decimals": 6})
        }
        Kind::Decline => json!({"request_id": "d1", "reason": "Not hungry"}),
        Kind::Cancel => json!({"request_id": "d1"}),
        Kind::Error => json!({"request_id": "d1", "code": "unsupported", "message": "No screen"}),
        Kind::Expire => json!({"request_id": "d1", "expires_at": "2026-01-05T09:00:00Z"}),
    }
}

/// NEAR's quote, in the dialect of its user interface.
pub(super) fn near_quote() -> Message {
    let quote = json!({"type": "Quote", "quote_id": "q1", "payee_id": "shop", "valid_until": "2026-01-06T08:00:00Z",
        "payment_plans": [{"plan_id": "p", "plan_type": "one-time", "amount": 199.5, "currency": "USD"}]});
    Message::new(
        "https://aitp.dev/v1/payments/schema.json",
        Kind::Quote,
        quote,
    )
}

/// The sample of this type.
pub(super) fn sample(kind: Kind) -> Message {
    let url = kind.family().url(FamilyVersion::V1);
    Message::new(&url, kind, payload(kind))
}

/// The sample with its payload changed.
pub(super) fn sample_with(kind: Kind, change: impl FnOnce(&mut Value)) -> Message {
    let mut payload = payload(kind);
    change(&mut payload);
    Message::new(&kind.family().url(FamilyVersion::V1), kind, payload)
}

pub(super) fn value_of(kind: Kind) -> Value {
    Value::Object(sample(kind).value)
}

pub(super) fn samples() -> Vec<Message> {
    let all = Kind::ALL.into_iter().map(sample);
    let typed = sample_with(Kind::EvmRequestSigning, |payload| {
        *payload = json!({"request_id": "r1", "signing_type": "typed_data", "typed_data": {
            "types": {"Order": [{"name": "id", "type": "uint256"}]}, "primaryType": "Order", "domain": {}, "message": {}}});
    });
    let priced = sample_with(Kind::RequestDecision, |payload| {
        payload["options"][0]["quote"] = near_quote().payload().unwrap().clone();
    });
    let fetched = sample_with(Kind::RequestData, |payload| {
        payload["form"] = json!({"json_url": "https://forms.example/a.json"});
    });
    all.chain([typed, priced, fetched, near_quote()]).collect()
}

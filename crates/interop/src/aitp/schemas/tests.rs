use super::*;
use crate::aitp::kind::Kind;
use crate::aitp::samples::{samples, value_of};
use serde_json::json;

fn schemas() -> Schemas {
    Schemas::new().unwrap()
}

fn message(value: &Value) -> Message {
    Message::from_value(value.as_object().unwrap().clone()).unwrap()
}

fn pointers(value: &Value, strictness: Strictness) -> Vec<String> {
    let found = schemas().violations(&message(value), strictness);
    found.into_iter().map(|it| it.pointer).collect()
}

#[test]
fn there_is_a_valid_sample_of_every_type() {
    let schemas = schemas();
    let all = samples();
    for kind in Kind::ALL {
        let of_kind = all.iter().filter(|sample| sample.kind == Some(kind));
        assert!(of_kind.count() > 0, "{kind:?}");
    }
    for sample in all {
        assert_eq!(schemas.violations(&sample, Strictness::Lenient), []);
        let strict = schemas.violations(&sample, Strictness::Strict);
        let near = is_near_payment(&sample);
        assert_eq!(strict.is_empty(), !near, "{} {strict:?}", sample.text());
    }
}

#[test]
fn our_schemas_are_schemas() {
    for family in Family::ALL {
        let schema: Value = serde_json::from_str(schema_text(family)).unwrap();
        jsonschema::draft202012::meta::validate(&schema).unwrap();
    }
    let near: Value = serde_json::from_str(NEAR_PAYMENTS).unwrap();
    jsonschema::draft202012::meta::validate(&near).unwrap();
}

#[test]
fn errors_point_to_the_wrong_member() {
    let cases = [
        (
            Kind::RequestDecision,
            "/request_decision/options/0/id",
            json!(7),
            "/request_decision/options/0/id",
        ),
        (
            Kind::RequestDecision,
            "/request_decision/type",
            json!("radio|checkbox"),
            "/request_decision/type",
        ),
        (
            Kind::RequestDecision,
            "/request_decision/options",
            json!([]),
            "/request_decision/options",
        ),
        (
            Kind::Data,
            "/data/fields/0/value",
            json!(7),
            "/data/fields/0/value",
        ),
        (
            Kind::RequestData,
            "/request_data/form/fields/0/type",
            json!("date"),
            "/request_data/form/fields/0/type",
        ),
        (
            Kind::Quote,
            "/quote/payment_options/0/amount",
            json!("1.2.3"),
            "/quote/payment_options/0/amount",
        ),
        (
            Kind::Quote,
            "/quote/expiration",
            json!("tomorrow"),
            "/quote/expiration",
        ),
        (
            Kind::PaymentConfirmation,
            "/payment_confirmation/details/0/value",
            json!([]),
            "/payment_confirmation/details/0/value",
        ),
        (
            Kind::AddressResponse,
            "/address_response/addresses/0",
            json!("0x1"),
            "/address_response/addresses/0",
        ),
        (
            Kind::Expire,
            "/expire/expires_at",
            json!("soon"),
            "/expire/expires_at",
        ),
    ];
    for (kind, at, wrong, pointer) in cases {
        let mut value = value_of(kind);
        *value.pointer_mut(at).unwrap() = wrong;
        assert_eq!(pointers(&value, Strictness::Lenient), [pointer], "{value}");
        assert_eq!(pointers(&value, Strictness::Strict), [pointer], "{value}");
    }
}

#[test]
fn what_is_missing_is_pointed_to() {
    let mut value = value_of(Kind::Payment);
    let payment = value["payment"].as_object_mut().unwrap();
    payment.remove("payer_id");
    assert_eq!(pointers(&value, Strictness::Strict), ["/payment/payer_id"]);
    let signing = json!({"$schema": value_of(Kind::EvmRequestSigning)["$schema"], "request_message_signing": {"request_id": "r", "signing_type": "typed_data", "message": "m"}});
    let missing = ["/request_message_signing/typed_data"];
    assert_eq!(pointers(&signing, Strictness::Strict), missing);
}

#[test]
fn unknown_members_are_ignored_only_leniently() {
    let mut value = value_of(Kind::Quote);
    value["quote"]["colour"] = "red".into();
    assert_eq!(pointers(&value, Strictness::Strict), ["/quote/colour"]);
    assert!(pointers(&value, Strictness::Lenient).is_empty());
}

#[test]
fn options_of_fields_may_be_objects_only_leniently() {
    let mut value = value_of(Kind::RequestData);
    value["request_data"]["form"]["fields"][0]["options"] =
        json!([{"label": "Germany", "value": "de"}, "fr"]);
    let at = "/request_data/form/fields/0/options/0";
    assert_eq!(pointers(&value, Strictness::Strict), [at]);
    assert!(pointers(&value, Strictness::Lenient).is_empty());
    value["request_data"]["form"]["fields"][0]["options"] = json!([{"label": "Germany"}]);
    let at = [format!("{at}/value")];
    assert_eq!(pointers(&value, Strictness::Lenient), at);
}

#[test]
fn a_message_has_exactly_one_payload() {
    let mut value = value_of(Kind::Decision);
    value["request_decision"] = value_of(Kind::RequestDecision)["request_decision"].clone();
    assert_eq!(pointers(&value, Strictness::Lenient), [""]);
    assert_eq!(
        pointers(&json!({"$schema": value["$schema"]}), Strictness::Lenient),
        [""]
    );
}

#[test]
fn messages_of_unknown_capabilities_pass() {
    let value = json!({"$schema": "https://example.com/poll.json", "poll": [1]});
    assert!(pointers(&value, Strictness::Strict).is_empty());
}

#[test]
fn errors_do_not_repeat_what_was_filled_in() {
    let mut value = value_of(Kind::Data);
    value["data"]["fields"][0]["value"] = json!({"secret": "4711"});
    let found = schemas().violations(&message(&value), Strictness::Lenient);
    assert!(!found.is_empty() && !format!("{found:?}").contains("4711"));
}

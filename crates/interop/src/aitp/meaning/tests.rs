use super::*;
use crate::aitp::samples::{ADDRESS, near_quote, sample, sample_with};
use serde_json::json;

fn now() -> Timestamp {
    "2026-01-05T08:30:00Z".parse().unwrap()
}

fn wrong(asked: &Message, answer: &Message) -> Vec<String> {
    let asked = RequestedWork::read(asked.kind.unwrap(), asked.payload().unwrap()).unwrap();
    let found = check_answer(&asked, answer, now());
    found.into_iter().map(|it| it.pointer).collect()
}

fn decide(choice_type: &str, options: Value) -> Vec<String> {
    let asked = sample_with(Kind::RequestDecision, |it| it["type"] = choice_type.into());
    let answer = sample_with(Kind::Decision, |it| it["options"] = options);
    wrong(&asked, &answer)
}

#[test]
fn every_sample_answer_fits_its_sample_request() {
    for (asked, answer) in [
        (Kind::RequestDecision, Kind::Decision),
        (Kind::RequestData, Kind::Data),
        (Kind::Quote, Kind::Payment),
        (Kind::WrappedQuote, Kind::Payment),
        (Kind::TopUpRequest, Kind::TopUpResponse),
        (Kind::EvmRequestSigning, Kind::EvmSigningResponse),
        (Kind::NearRequestSigning, Kind::NearSigningResponse),
    ] {
        assert_eq!(check_request(&sample(asked)), []);
        let found = wrong(&sample(asked), &sample(answer));
        assert!(found.is_empty(), "{asked:?} {found:?}");
    }
    let paid = sample(Kind::PaymentAuthorization);
    assert!(wrong(&near_quote(), &paid).is_empty());
}

#[test]
fn a_radio_and_a_confirmation_have_exactly_one_answer() {
    for choice_type in ["radio", "confirmation"] {
        assert!(decide(choice_type, json!([{"id": "soup"}])).is_empty());
        let two = decide(choice_type, json!([{"id": "soup"}, {"id": "salad"}]));
        assert_eq!(two, ["/decision/options"]);
        assert_eq!(decide(choice_type, json!([])), ["/decision/options"]);
        let many = decide(choice_type, json!([{"id": "soup", "quantity": 2}]));
        assert_eq!(many, ["/decision/options/0/quantity"]);
    }
    let both = json!([{"id": "soup"}, {"id": "salad"}]);
    assert!(decide("checkbox", both).is_empty());
}

#[test]
fn only_what_was_offered_can_be_chosen_and_once() {
    let found = decide(
        "checkbox",
        json!([{"id": "soup"}, {"id": "steak"}, {"id": "soup"}]),
    );
    assert_eq!(found, ["/decision/options/1/id", "/decision/options/2/id"]);
    assert!(
        decide("radio", json!([{"id": "small"}])).is_empty(),
        "a variant"
    );
}

#[test]
fn quantities_of_products_are_whole_numbers() {
    assert!(
        decide(
            "products",
            json!([{"id": "soup", "quantity": 3}, {"id": "salad"}])
        )
        .is_empty()
    );
    assert!(decide("products", json!([{"id": "soup", "quantity": 3.0}])).is_empty());
    for quantity in [json!(0), json!(-1), json!(1.5), json!(1e12)] {
        let found = decide("products", json!([{"id": "soup", "quantity": quantity}]));
        assert_eq!(found, ["/decision/options/0/quantity"], "{quantity}");
    }
}

#[test]
fn an_option_can_not_be_chosen_after_its_price_has_ended() {
    let asked = sample_with(Kind::RequestDecision, |it| {
        it["options"][0]["quote"] = json!({"valid_until": "2026-01-05T08:29:59Z"});
    });
    let found = wrong(&asked, &sample(Kind::Decision));
    assert_eq!(found, ["/decision/options/0/id"]);
}

#[test]
fn a_form_is_filled_in_field_by_field() {
    let fill = |fields: Value| {
        let answer = sample_with(Kind::Data, |it| it["fields"] = fields);
        wrong(&sample(Kind::RequestData), &answer)
    };
    let field = |id: &str, value: &str| json!({"id": id, "value": value});
    assert!(
        fill(json!([
            field("country", "fr"),
            field("email", ""),
            field("floor", "-3.5")
        ]))
        .is_empty()
    );
    assert_eq!(
        fill(json!([field("email", "a@b.example")])),
        ["/data/fields"],
        "required"
    );
    assert_eq!(
        fill(json!([field("country", " ")])),
        ["/data/fields/0/value", "/data/fields"]
    );
    let found = fill(json!([
        field("country", "xx"),
        field("email", "me"),
        field("floor", "NaN"),
        field("other", ""),
        field("country", "de")
    ]));
    let expected = ["0/value", "1/value", "2/value", "3/id", "4/id"];
    assert_eq!(found, expected.map(|at| format!("/data/fields/{at}")));
}

#[test]
fn a_form_of_which_fields_are_elsewhere_takes_others() {
    let asked = sample_with(Kind::RequestData, |it| {
        it["form"]["json_url"] = "https://forms.example/a.json".into();
    });
    let answer = sample_with(Kind::Data, |it| {
        it["fields"] = json!([{"id": "country", "value": "de"}, {"id": "street", "value": "x"}]);
    });
    assert!(wrong(&asked, &answer).is_empty());
}

#[test]
fn a_payment_is_of_the_quotes_amount_in_a_way_it_offers() {
    let pay = |key: &str, value: &str| {
        let answer = sample_with(Kind::Payment, |it| it["payment_method"][key] = value.into());
        wrong(&sample(Kind::Quote), &answer)
    };
    assert!(pay("amount", "099.900").is_empty());
    assert_eq!(
        pay("amount", "99.9000000000000000000001"),
        ["/payment/payment_method/amount"]
    );
    assert_eq!(pay("currency", "EUR"), ["/payment/payment_method/currency"]);
    assert_eq!(pay("token", "gold.near"), ["/payment/payment_method"]);
    let open = sample_with(Kind::Quote, |it| {
        it["payment_options"][0]
            .as_object_mut()
            .unwrap()
            .remove("amount");
    });
    assert!(wrong(&open, &sample(Kind::Payment)).is_empty());
}

#[test]
fn an_authorisation_is_of_the_amount_of_a_plan() {
    let paid = |amount: Value| {
        let answer = sample_with(Kind::PaymentAuthorization, |it| {
            it["details"][0]["amount"] = amount;
        });
        wrong(&near_quote(), &answer)
    };
    assert!(paid(json!(199.5)).is_empty());
    assert_eq!(
        paid(json!(199.49)),
        ["/payment_authorization/details/0/amount"]
    );
}

#[test]
fn a_top_up_is_of_what_was_asked_for() {
    let answer = sample_with(Kind::TopUpResponse, |it| {
        it["amount"] = "5".into();
        it["currency"] = "EUR".into();
    });
    let found = wrong(&sample(Kind::TopUpRequest), &answer);
    assert_eq!(
        found,
        ["/top_up_response/currency", "/top_up_response/amount"]
    );
    let open = sample_with(Kind::TopUpRequest, |it| {
        it.as_object_mut().unwrap().remove("amount");
    });
    let nothing = sample_with(Kind::TopUpResponse, |it| it["amount"] = "0.0".into());
    assert_eq!(wrong(&open, &nothing), ["/top_up_response/amount"]);
}

#[test]
fn the_address_that_was_asked_signs() {
    let answer = sample_with(Kind::EvmSigningResponse, |it| {
        it["address"] = ADDRESS.replace("aa", "ab").into();
    });
    let found = wrong(&sample(Kind::EvmRequestSigning), &answer);
    assert_eq!(found, ["/message_signing_response/address"]);
}

#[test]
fn a_request_makes_sense_or_is_refused() {
    let pointers = |message: &Message| -> Vec<String> {
        let found = check_request(message);
        found.into_iter().map(|it| it.pointer).collect()
    };
    let twice = sample_with(Kind::RequestDecision, |it| {
        it["options"][1]["variants"][0]["id"] = "soup".into();
    });
    let at = "/request_decision/options/1/variants/0/id";
    assert_eq!(pointers(&twice), [at]);
    let none = sample_with(Kind::RequestDecision, |it| it["options"] = json!([]));
    assert_eq!(pointers(&none), ["/request_decision/options"]);
    let empty = sample_with(Kind::RequestData, |it| it["form"] = json!({}));
    assert_eq!(pointers(&empty), ["/request_data/form"]);
    let odd = sample_with(Kind::RequestData, |it| {
        it["form"]["fields"] = json!([{"id": "a", "type": "select"}, {"id": "a"}]);
    });
    let at = "/request_data/form/fields";
    assert_eq!(
        pointers(&odd),
        [format!("{at}/0/options"), format!("{at}/1/id")]
    );
}

#[test]
fn a_quote_can_be_paid() {
    let pointers = |message: &Message| -> Vec<String> {
        let found = check_request(message);
        found.into_iter().map(|it| it.pointer).collect()
    };
    let options = sample_with(Kind::Quote, |it| it["payment_options"] = json!([]));
    assert_eq!(pointers(&options), ["/quote/payment_options"]);
    let methods = sample_with(Kind::WrappedQuote, |it| {
        it["original_quote"]["payment_options"][0]["payment_methods"] = json!([]);
    });
    let at = "/wrapped_quote/original_quote/payment_options";
    assert_eq!(pointers(&methods), [at]);
    let mut plans = near_quote();
    plans.value["quote"]["payment_plans"] = json!([]);
    assert_eq!(pointers(&plans), ["/quote/payment_plans"]);
}

#[test]
fn every_digit_that_is_signed_is_kept() {
    let signing = |number: &str| {
        let text = format!(
            r#"{{"$schema":"{}","request_message_signing":{{"request_id":"r","signing_type":"typed_data","typed_data":{{"message":{{"value":{number}}}}}}}}}"#,
            sample(Kind::EvmRequestSigning).schema
        );
        check_request(&Message::read(&text).unwrap())
    };
    assert_eq!(signing("18446744073709551615"), []);
    assert_eq!(signing("\"1000000000000000000000001\""), []);
    let found = signing("1000000000000000000000001");
    let at = "/request_message_signing/typed_data/message/value";
    assert_eq!(found.first().map(|it| it.pointer.as_str()), Some(at));
}

#[test]
fn what_is_wrong_with_a_long_answer_is_listed_in_part() {
    let options: Vec<Value> = (0..1000).map(|n| json!({"id": n.to_string()})).collect();
    assert_eq!(decide("checkbox", options.into()).len(), MAX_LISTED);
}

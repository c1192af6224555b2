use super::*;
use crate::aitp::ledger::{Ledger, MessageVerdict, RequestEffect};
use crate::aitp::participants::Party;
use crate::aitp::samples::{ADDRESS, near_quote, sample, sample_with};
use crate::aitp::schemas::Strictness;
use crate::aitp::{ChoiceType, Choices, find, read_form_document};
use proptest::prelude::*;
use serde_json::json;
use timeline::{Event, Item, ItemStatus, ItemType, Record, Role, Seq};

static SCHEMAS: std::sync::LazyLock<Schemas> = std::sync::LazyLock::new(|| Schemas::new().unwrap());

fn now() -> Timestamp {
    "2026-01-05T08:30:00Z".parse().unwrap()
}

fn asked(message: &Message) -> Ledger {
    let mut ledger = Ledger::default();
    let item = Item {
        id: "i".into(),
        item_type: ItemType::Message,
        role: Some(Role::Assistant),
        created_at: now(),
        status: ItemStatus::Stored,
        channel: None,
        content: Some(json!([message.output_part()]).into()),
        execution_id: None,
        run: None,
        metadata: None,
    };
    ledger.apply(&Record {
        seq: Seq(1),
        at: now(),
        event: Event::ItemCreated { item },
    });
    ledger
}

fn question(message: &Message) -> (Ledger, RequestQuestion) {
    let ledger = asked(message);
    let question = RequestQuestion::of(ledger.requests().next().unwrap()).unwrap();
    (ledger, question)
}

/// Answers a question, and tries the message on the ledger.
fn answer(message: &Message, value: &Value) -> Result<Message, Vec<String>> {
    let (ledger, question) = question(message);
    jsonschema::draft202012::meta::validate(&question.schema).unwrap();
    let schemas = &*SCHEMAS;
    let answer = question.answer(schemas, value, now());
    let answer = answer
        .map_err(|found| -> Vec<String> { found.into_iter().map(|it| it.pointer).collect() })?;
    assert!(jsonschema::is_valid(&question.schema, value), "{value}");
    assert_eq!(answer.schema, message.schema, "in the asker's own dialect");
    let found = find(&json!([answer.input_part()]).into());
    assert_eq!(found, Ok(vec![(0, answer.clone())]));
    let verdict = ledger.check(&answer, &Party::Initiator, now()).unwrap();
    assert!(matches!(
        verdict,
        MessageVerdict::Does {
            effect: RequestEffect::Answers,
            ..
        }
    ));
    Ok(answer)
}

#[test]
fn every_request_is_a_question_and_its_answer_a_valid_message() {
    let hash = format!("0x{}", "0".repeat(64));
    let cases = [
        (Kind::RequestDecision, json!({"option": "soup"})),
        (Kind::RequestData, json!({"country": "de", "floor": 3})),
        (
            Kind::Quote,
            json!({"payment_option": "0.0", "channel_id": "c", "payer_id": "me", "payer_signature": "s"}),
        ),
        (
            Kind::WrappedQuote,
            json!({"payment_option": "0.0", "channel_id": "c", "payer_id": "me", "payer_signature": "s", "amount": "99.900"}),
        ),
        (
            Kind::TopUpRequest,
            json!({"payer_id": "me", "payer_signature": "s"}),
        ),
        (Kind::RequestAccount, json!({"accounts": ["me.near"]})),
        (
            Kind::NearRequestTransaction,
            json!({"transaction_hash": "h"}),
        ),
        (
            Kind::NearRequestSigning,
            json!({"account_id": "me", "public_key": "k", "signature": "s"}),
        ),
        (Kind::RequestAddress, json!({"addresses": [ADDRESS]})),
        (
            Kind::EvmRequestTransaction,
            json!({"transaction_hash": hash}),
        ),
        (
            Kind::EvmRequestSigning,
            json!({"address": ADDRESS, "signature": "0xff"}),
        ),
    ];
    let schemas = &*SCHEMAS;
    for (kind, value) in cases {
        let message = answer(&sample(kind), &value).unwrap();
        assert_eq!(
            schemas.violations(&message, Strictness::Strict),
            [],
            "{kind:?}"
        );
    }
    let paid = json!({"result": "success", "account_id": "me.near", "transaction_id": "t"});
    let message = answer(&near_quote(), &paid).unwrap();
    assert_eq!(message.payload().unwrap()["details"][0]["amount"], 199.5);
}

#[test]
fn a_question_says_what_people_have_to_know() {
    let (_, lunch) = question(&sample(Kind::RequestDecision));
    assert_eq!(lunch.title.as_deref(), Some("Lunch"));
    assert_eq!(lunch.description.as_deref(), Some("What do you want?"));
    assert_eq!(
        lunch.schema,
        json!({"type": "object", "required": ["option"], "additionalProperties": false, "properties": {"option": {"type": "string", "oneOf": [
        {"const": "soup", "title": "Soup"}, {"const": "salad", "title": "Salad"}, {"const": "small", "title": "Salad"}]}}})
    );
    let (_, hat) = question(&sample(Kind::Quote));
    let said = hat.description.unwrap();
    assert!(said.ends_with("The asker says: A hat"), "{said}");
    assert_eq!(hat.expires_at, "2026-01-06T08:00:00Z".parse().ok());
    assert_eq!(
        hat.schema["properties"]["payment_option"]["oneOf"][0]["title"],
        "99.90 USD (usdc.near, near_payment_channel)"
    );
}

#[test]
fn all_that_is_signed_is_shown() {
    let both = sample_with(Kind::EvmRequestSigning, |it| {
        it["description"] = "Log in".into();
        it["message"] = "hello".into();
        it["typed_data"] = json!({"domain": {"name": "Bank"}, "primaryType": "Permit", "message": {"value": "99"}});
        it["chain_id"] = 1.into();
    });
    for (message, secret) in [
        (
            both,
            &[
                "hello",
                "Permit",
                "\"99\"",
                "Bank",
                "personal_sign",
                ADDRESS,
                "chain_id",
            ][..],
        ),
        (
            sample_with(Kind::NearRequestSigning, |it| it["state"] = "s7".into()),
            &["AQIDBA==", "\"app\"", "It is me", "s7"],
        ),
        (
            sample(Kind::TopUpRequest),
            &["\"50\"", "USD", "\"c\"", "shop"],
        ),
        (
            sample(Kind::NearRequestTransaction),
            &["nft.near", "FunctionCall", "mint"],
        ),
        (sample(Kind::EvmRequestTransaction), &[ADDRESS, "0x1"]),
        (
            sample(Kind::Quote),
            &["99.90", "recipient", "merchant_id", "revenue_share"],
        ),
        (
            sample(Kind::WrappedQuote),
            &["99.90", "next_recipient", "affiliate_id"],
        ),
        (near_quote(), &["payee_id", "199.5"]),
    ] {
        let (_, question) = question(&message);
        let signed = question.signed.unwrap();
        let description = question.description.unwrap();
        for part in secret {
            assert!(description.contains(part), "{part} in {description}");
            assert!(signed.to_string().contains(part), "{part} in {signed}");
        }
    }
    let (_, asked) = question(&sample(Kind::RequestAccount));
    assert_eq!(
        (asked.signed, asked.description.as_deref()),
        (None, Some("Which?"))
    );
}

#[test]
fn wrong_answers_are_pointed_to_where_they_stand_in_the_value() {
    let lunch = sample(Kind::RequestDecision);
    let wrong = |value: Value| answer(&lunch, &value).unwrap_err();
    assert_eq!(wrong(json!({"option": "steak"})), ["/option"]);
    assert_eq!(wrong(json!({"options": ["soup"]})), ["/option"]);
    assert_eq!(wrong(json!("soup")), [""]);
    let many = sample_with(Kind::RequestDecision, |it| it["type"] = "checkbox".into());
    let wrong = answer(&many, &json!({"options": ["soup", "steak"]}));
    assert_eq!(wrong.unwrap_err(), ["/options/1"]);
    let form = sample(Kind::RequestData);
    let wrong = answer(&form, &json!({"email": "x", "country": "de"}));
    assert_eq!(wrong.unwrap_err(), ["/email"]);
    let wrong = answer(&form, &json!({"email": "x@y.example"}));
    assert_eq!(wrong.unwrap_err(), [""], "a required field is missing");
    let wrong = answer(&form, &json!({"a/b": [1], "country": "de"}));
    assert_eq!(wrong.unwrap_err(), ["/a~1b"]);
    let wrong = answer(
        &sample(Kind::RequestAddress),
        &json!({"addresses": ["0x1"]}),
    );
    assert_eq!(wrong.unwrap_err(), ["/addresses/0"]);
    let wrong = answer(&sample(Kind::Quote), &json!({"payment_option": "7.0"}));
    assert_eq!(wrong.unwrap_err(), ["/payment_option"]);
}

#[test]
fn products_are_answered_with_quantities() {
    let shop = sample_with(Kind::RequestDecision, |it| it["type"] = "products".into());
    let message = answer(&shop, &json!({"soup": 2, "salad": 0, "small": 1})).unwrap();
    let bought = &message.payload().unwrap()["options"];
    assert_eq!(
        *bought,
        json!([{"id": "soup", "name": "Soup", "quantity": 2}, {"id": "small", "name": "Salad", "quantity": 1}])
    );
    assert_eq!(answer(&shop, &json!({"soup": 0})).unwrap_err(), [""]);
    assert_eq!(answer(&shop, &json!({"soup": 0.5})).unwrap_err(), ["/soup"]);
    assert_eq!(answer(&shop, &json!({"steak": 1})).unwrap_err(), ["/steak"]);
}

#[test]
fn the_fields_of_a_fetched_document_come_first() {
    let form = sample_with(Kind::RequestData, |it| {
        it["form"]["json_url"] = "https://forms.example/a.json".into();
    });
    let (ledger, open) = question(&form);
    assert_eq!(
        open.schema["additionalProperties"],
        json!({"type": "string"})
    );
    let document = json!({"fields": [{"id": "street", "required": true, "options": [{"label": "A", "value": "a"}]}]});
    let fetched = read_form_document(&document).unwrap();
    let request = ledger.requests().next().unwrap();
    let question = RequestQuestion::with_fields(request, Some(fetched)).unwrap();
    let members = question.schema["properties"].as_object().unwrap();
    assert_eq!(members.keys().next().map(String::as_str), Some("street"));
    assert_eq!(question.schema["required"], json!(["street", "country"]));
    let message = question.answer(&SCHEMAS, &json!({"street": "x", "country": "de"}), now());
    assert!(message.is_ok());
}

#[test]
fn answers_are_held_to_the_fields_of_a_fetched_document() {
    let form = sample_with(Kind::RequestData, |it| {
        it["form"]["json_url"] = "https://forms.example/a.json".into();
    });
    let (ledger, _) = question(&form);
    let document = json!({"fields": [{"id": "street", "required": true}, {"id": "size", "type": "select", "options": ["s", "m"]}]});
    let fetched = read_form_document(&document).unwrap();
    let request = ledger.requests().next().unwrap();
    let question = RequestQuestion::with_fields(request, Some(fetched)).unwrap();
    let wrong = |value: Value| -> Vec<String> {
        let found = question.answer(&SCHEMAS, &value, now()).unwrap_err();
        found.into_iter().map(|it| it.pointer).collect()
    };
    assert_eq!(wrong(json!({"country": "de"})), [""], "the street");
    let street = |more: Value| {
        let mut value = json!({"street": "x", "country": "de"});
        value
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        value
    };
    assert_eq!(wrong(street(json!({"size": "xl"}))), ["/size"]);
    assert_eq!(wrong(street(json!({"colour": "red"}))), ["/colour"]);
    let fits = question.answer(&SCHEMAS, &street(json!({"size": "m"})), now());
    assert!(fits.is_ok());
}

#[test]
fn no_schema_has_an_empty_one_of() {
    let plans = json!([{"plan_type": "one-time", "amount": 5, "currency": "USD"}]);
    let mut near = near_quote();
    near.value["quote"]["payment_plans"] = plans;
    let (_, question) = question(&near);
    assert_eq!(
        question.schema["properties"]["plan_id"],
        json!({"type": "string"})
    );
    let document = json!({"fields": [{"id": "x", "type": "select", "options": []}]});
    assert!(read_form_document(&document).is_err());
}

#[test]
fn what_is_no_answer_is_a_message_too() {
    let (ledger, question) = question(&sample(Kind::RequestDecision));
    let schemas = &*SCHEMAS;
    for (message, effect) in [
        (question.decline(Some("no")), RequestEffect::Declines),
        (question.decline(None), RequestEffect::Declines),
        (
            question.fail("unsupported", "No screen"),
            RequestEffect::Fails,
        ),
    ] {
        assert_eq!(schemas.violations(&message, Strictness::Strict), []);
        let request = question.ask.key.clone();
        let verdict = ledger.check(&message, &Party::Initiator, now());
        assert_eq!(verdict, Ok(MessageVerdict::Does { effect, request }));
    }
    let taken_back = question.cancel(None);
    assert_eq!(schemas.violations(&taken_back, Strictness::Strict), []);
}

#[test]
fn a_key_is_one_text() {
    let key = Key {
        topic: Topic::NearSigning,
        id: "a:b".to_owned(),
    };
    assert_eq!(Key::read(&key.text()), Some(key));
    assert_eq!(Key::read("other:1"), None);
    assert_eq!(Key::read("decision"), None);
}

proptest! {
    #[test]
    fn what_the_schema_of_a_choice_takes_is_an_answer(n_options in 1usize..5, picked in prop::collection::vec(0usize..6, 0..4), choice_type in 0usize..4) {
        let name = ["radio", "confirmation", "checkbox", "products"][choice_type];
        let message = sample_with(Kind::RequestDecision, |it| {
            it["type"] = name.into();
            it["options"] = (0..n_options).map(|n| json!({"id": format!("o{n}")})).collect();
        });
        let ids: Vec<String> = picked.iter().map(|n| format!("o{n}")).collect();
        let value = match Choices::read(message.payload().unwrap(), "").unwrap().choice_type() {
            ChoiceType::Radio | ChoiceType::Confirmation => json!({"option": ids.first()}),
            ChoiceType::Checkbox => json!({"options": ids}),
            ChoiceType::Products => ids.iter().map(|id| (id.clone(), Value::from(1))).collect::<Map<_, _>>().into(),
        };
        let (_, question) = question(&message);
        let fits = jsonschema::is_valid(&question.schema, &value);
        prop_assert_eq!(answer(&message, &value).is_ok(), fits, "{}", value);
    }
}

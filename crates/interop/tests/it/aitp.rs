//! Capability messages against the published schemas and examples, and actors in documents.

use crate::dice::Dice;
use crate::document::{errors, round_trip};
use crate::log::{Log, ids, of_import};
use crate::reference::reference;
use jiff::Timestamp;
use jsonschema::Validator;
use loomline_interop::aitp::{
    ACTOR_JOIN, Actor, Family, Ledger, Message, ParticipantChange, Party, RequestQuestion,
    RequestRefusal, RequestState, Schemas, Strictness, check_request, schema_text,
};
use loomline_interop::document::{from_document, to_document};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;
use timeline::{
    Command, Ending, ItemType, NewItem, NewThread, Role, StepOutcome, Transcript, Trigger,
};

/// One example of the documentation, and whether it is valid.
struct Example {
    family: Family,
    value: Value,
    is_valid: bool,
}

/// What was published: the examples, and the schemas as they are and ours as they stand there.
struct Published {
    examples: Vec<Example>,
    pairs: Vec<(Family, Validator, Validator)>,
}

const WHAT: &str = "the published examples and schemas";

static PUBLISHED: LazyLock<Option<Published>> = LazyLock::new(load);

/// What was published; each test that goes without says so.
fn published() -> Option<&'static Published> {
    reference(WHAT)?;
    PUBLISHED.as_ref()
}

fn load() -> Option<Published> {
    let folder = reference(WHAT)?.join("schemas/aitp");
    let read = |name: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(folder.join(name)).unwrap()).unwrap()
    };
    let examples = read("doc-examples.json");
    let examples = examples.as_array().unwrap().iter().map(|example| Example {
        family: Family::from_name(example["capability"].as_str().unwrap()).unwrap(),
        value: example["message"].clone(),
        is_valid: example["valid"].as_bool().unwrap(),
    });
    let families = Family::ALL.into_iter().filter(|it| *it != Family::Requests);
    let pairs = families.map(|family| {
        let theirs = read(&format!("json-schema/{}.v1.0.0.json", family.name()));
        let ours = serde_json::from_str(schema_text(family)).unwrap();
        (family, validator(&theirs), validator(&ours))
    });
    Some(Published {
        examples: examples.collect(),
        pairs: pairs.collect(),
    })
}

fn validator(schema: &Value) -> Validator {
    let options = jsonschema::options().offline();
    options.should_validate_formats(true).build(schema).unwrap()
}

fn message(value: &Value) -> Message {
    let text = serde_json::to_string_pretty(value).unwrap();
    Message::read(&text).unwrap()
}

#[test]
fn all_published_examples_get_the_right_verdict() {
    let Some(published) = published() else { return };
    let schemas = Schemas::new().unwrap();
    assert_eq!(published.examples.len(), 67);
    let n_valid = published.examples.iter().filter(|it| it.is_valid).count();
    assert_eq!(n_valid, 66);
    for example in &published.examples {
        let message = message(&example.value);
        assert!(message.kind.is_some(), "{}", example.value);
        for strictness in [Strictness::Strict, Strictness::Lenient] {
            let found = schemas.violations(&message, strictness);
            assert_eq!(
                found.is_empty(),
                example.is_valid,
                "{found:?} {}",
                example.value
            );
        }
        assert!(check_request(&message).is_empty(), "{}", example.value);
    }
}

/// All places in a value, the whole among them.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                places(value, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(list) => {
            for (place, value) in list.iter().enumerate() {
                places(value, &format!("{at}/{place}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn mutated(value: &mut Value, dice: &mut Dice<'_>) {
    let mut all = Vec::new();
    places(value, "", &mut all);
    let at = dice.pick(&all);
    let spot = value.pointer_mut(&at).unwrap();
    let junk = [
        json!(null),
        json!(true),
        json!(-1),
        json!(5.5),
        json!(3.0),
        json!(""),
        json!("1.50"),
        json!("0xff"),
        json!("USD"),
        json!("typed_data"),
        json!("other"),
        json!("https://example.com/a"),
        json!("2026-01-05T08:00:00Z"),
        json!([]),
        json!({}),
    ];
    match dice.roll(4) {
        0 => *spot = dice.pick(&junk),
        1 => match spot {
            Value::Object(object) => {
                let keys: Vec<String> = object.keys().cloned().collect();
                if !keys.is_empty() {
                    object.remove(&dice.pick(&keys));
                }
            }
            Value::Array(list) => {
                list.pop();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                *spot = dice.pick(&junk);
            }
        },
        2 => match spot {
            Value::Object(object) => {
                let key = dice.pick(&[
                    "colour",
                    "amount",
                    "name",
                    "id",
                    "request_decision",
                    "typed_data",
                    "quantity",
                ]);
                object.insert(key.to_owned(), dice.pick(&junk));
            }
            Value::Array(list) => list.extend(list.first().cloned()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                *spot = dice.pick(&junk);
            }
        },
        _ => {
            if let Value::String(text) = spot {
                text.push_str(dice.pick(&["", "0", "x", ".5"]));
            } else {
                *spot = Value::Array(vec![spot.take()]);
            }
        }
    }
}

/// How many messages of a capability an object holds. The published schemas of 02 and 03 take
/// several at once; the documents say there is exactly one, and so do ours.
fn n_payloads(value: &Value, family: Family) -> usize {
    let keys = value.as_object().map(Map::keys);
    let kinds = keys.into_iter().flatten();
    let known = kinds.filter(|key| loomline_interop::aitp::Kind::find(family, key).is_some());
    known.count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn our_schemas_and_the_published_ones_agree(example in 0usize..67, bytes in prop::collection::vec(any::<u8>(), 0..12)) {
        let Some(published) = published() else { return Ok(()) };
        let example = &published.examples[example];
        let mut value = example.value.clone();
        let mut dice = Dice::new(&bytes);
        for _ in 0..bytes.len() / 4 {
            mutated(&mut value, &mut dice);
        }
        let pair = published.pairs.iter().find(|(family, ..)| *family == example.family);
        let (family, theirs, ours) = pair.unwrap();
        if n_payloads(&value, *family) > 1 {
            prop_assert!(!ours.is_valid(&value));
        } else {
            prop_assert_eq!(ours.is_valid(&value), theirs.is_valid(&value), "{}", value);
        }
    }

    #[test]
    fn what_is_strictly_valid_is_leniently_valid(example in 0usize..67, bytes in prop::collection::vec(any::<u8>(), 0..12)) {
        static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| Schemas::new().unwrap());
        let Some(published) = published() else { return Ok(()) };
        let mut value = published.examples[example].value.clone();
        let mut dice = Dice::new(&bytes);
        for _ in 0..bytes.len() / 4 {
            mutated(&mut value, &mut dice);
        }
        let Some(message) = value.as_object().cloned().and_then(Message::from_value) else { return Ok(()) };
        let strict = SCHEMAS.violations(&message, Strictness::Strict);
        let lenient = SCHEMAS.violations(&message, Strictness::Lenient);
        prop_assert!(!strict.is_empty() || lenient.is_empty(), "{} {:?}", value, lenient);
    }
}

fn said(log: &mut Log, id: &str) {
    let content = json!([{"type": "input_text", "text": id}]);
    log.run(Command::Record {
        item: NewItem::user(id, content.into()),
    });
}

fn change(log: &mut Log, id: &str, change: ParticipantChange) {
    let item = change.into_item(id).unwrap();
    log.run(Command::Record { item });
}

fn ledger(log: &Log) -> Ledger {
    let mut ledger = Ledger::default();
    log.records.iter().for_each(|record| ledger.apply(record));
    ledger
}

fn thread_with_actors() -> Log {
    let at: Timestamp = "2026-01-05T08:00:00Z".parse().unwrap();
    let mut log = Log::new(
        NewThread::new("7c7e9d0a-5c1f-4f43-9a53-0c6f0a6b6f01", None),
        at,
    );
    let join = |id: &str| ParticipantChange::Join {
        actor: Actor::new(id, ["https://aitp.dev/v1/decisions/schema.json"]),
        principal: Some("key_1".to_owned()),
        initiator: false,
    };
    change(&mut log, "join-a", join("a"));
    said(&mut log, "first");
    change(&mut log, "join-b", join("b"));
    change(
        &mut log,
        "leave-a",
        ParticipantChange::Leave {
            actor_id: "a".to_owned(),
        },
    );
    said(&mut log, "second");
    log
}

#[test]
fn who_joined_and_left_is_in_the_document_and_comes_back() {
    let log = thread_with_actors();
    let document = to_document(&log.transcript());
    assert_eq!(errors(&document.value), Vec::<String>::new());
    let what: Vec<&str> = document
        .losses
        .iter()
        .map(|loss| loss.what.as_str())
        .collect();
    assert_eq!(
        what, ["what an event keeps beside it"; 2],
        "the credentials stay in the log"
    );
    let text = document.value.encode();
    assert!(text.contains(ACTOR_JOIN) && !text.contains("key_1"));

    let (back, losses) = round_trip(&document.value);
    assert!(losses.is_empty(), "{losses:?}");
    assert_eq!(back.encode(), text);

    let imported = from_document(&document.value, &mut ids()).unwrap();
    let log = of_import("t", &imported.value);
    let ledger = ledger(&log);
    let present: Vec<&str> = ledger
        .participants()
        .present()
        .map(|it| it.actor.id.as_str())
        .collect();
    assert_eq!(present, ["b"]);
    assert_eq!(
        ledger
            .participants()
            .may_speak("key_1", Some("b"), None)
            .map(|voice| voice.is_bound),
        Ok(false),
        "nobody else's credentials hold here"
    );
    assert_eq!(log.transcript().entries.len(), 5, "no run was made up");
}

#[test]
fn who_joins_is_shown_to_no_model() {
    let transcript: Transcript = thread_with_actors().transcript();
    let shown = loomline_interop::model::history(&transcript, None);
    assert_eq!(shown.len(), 2, "what was said, and nothing else");
}

#[test]
fn calls_that_wait_still_wait_when_somebody_joins() {
    let mut log = thread_with_actors();
    let call =
        json!({"type": "tool-book", "toolCallId": "c", "state": "approval-requested", "input": {}});
    log.run(Command::Start {
        trigger: Trigger::New(NewItem::user("u", json!([]).into())),
        run: None,
        execution_id: "e".into(),
        reaction_item_id: "r".into(),
        step_id: "s".into(),
        workflow_run_id: None,
    });
    log.run(Command::Respond {
        parts: vec![call.clone().into()],
        response: json!({}).into(),
    });
    let open = json!([{"toolCallId": "c", "kind": "approval", "part": call}]);
    log.run(Command::ImportStep {
        outcome: StepOutcome {
            open_calls: Some(open.into()),
            ..StepOutcome::default()
        },
        next: None,
    });
    log.run(Command::End {
        ending: Ending::Completed,
    });
    assert!(log.state.open().is_some());
    let join = ParticipantChange::Join {
        actor: Actor::new("c", []),
        principal: None,
        initiator: false,
    };
    change(&mut log, "join-c", join);
    assert!(log.state.open().is_some());
    let document = to_document(&log.transcript());
    assert_eq!(errors(&document.value), Vec::<String>::new());
}

#[test]
fn what_the_next_agent_can_not_handle_reaches_the_user_and_comes_back() {
    let mut log = thread_with_actors();
    let join = ParticipantChange::Join {
        actor: Actor::new("assistant", []),
        principal: None,
        initiator: false,
    };
    change(&mut log, "join-assistant", join);
    let ask = json!({"$schema": "https://aitp.dev/v1/decisions/schema.json", "request_decision": {
        "id": "seat", "type": "confirmation", "options": [{"id": "window"}, {"id": "aisle"}]}});
    let say = |log: &mut Log, role: Role, actor: Option<&str>, message: &Message| {
        let item = NewItem {
            id: format!("m{}", log.records.len()).into(),
            item_type: ItemType::Message,
            role: Some(role),
            channel: None,
            content: Some(json!([message.input_part()]).into()),
            metadata: actor.map(|actor| json!({"actor": actor}).into()),
        };
        log.run(Command::Record { item });
    };
    say(&mut log, Role::Assistant, Some("b"), &message(&ask));

    let asked = ledger(&log);
    let pending = asked.pending(log.at);
    let request = pending[0];
    let assistant = Party::Actor("assistant".to_owned());
    let refused = asked.may_answer(&request.ask, &assistant);
    assert!(matches!(refused, Err(RequestRefusal::NotDeclared { .. })));
    assert_eq!(asked.answerers(&request.ask), [Party::Initiator]);

    // A user interface shows the question, and sends back what was clicked.
    let question = RequestQuestion::of(request).unwrap();
    let schemas = Schemas::new().unwrap();
    let clicked = json!({"option": "aisle"});
    let answer = question.answer(&schemas, &clicked, log.at).unwrap();
    say(&mut log, Role::User, None, &answer);
    let after = ledger(&log);
    let request = after.request(&question.ask.key).unwrap();
    assert_eq!(request.state(log.at), RequestState::Answered);
    let decision = request.answer().unwrap().payload.clone();
    let decision = decision.unwrap().value();
    assert_eq!(
        decision,
        json!({"request_decision_id": "seat", "options": [{"id": "aisle"}]})
    );
}

use super::*;
use timeline::{ANSWER, attached_message};

/// A message in a thread that nobody has joined.
fn alone(
    actor: Option<&str>,
    message: Option<&Message>,
) -> Result<AcceptedMessage, MessageRefusal> {
    let text = json!({"type": "input_text", "text": "Please."});
    let parts = std::iter::once(text).chain(message.map(Message::input_part));
    let mut item = NewItem::user("i", Value::Array(parts.collect()).into());
    item.role = None;
    item.metadata = actor.map(|actor| json!({ "actor": actor }).into());
    AitpState::default().check("key_1", &item, "2026-01-05T08:00:00Z".parse().unwrap())
}

#[test]
fn where_nobody_ever_was_an_actor_an_id_is_a_note() {
    let accepted = alone(Some("ada"), None).unwrap();
    assert_eq!(accepted.item.role, Some(Role::User));
    assert!(!accepted.voice.is_bound);
    let unknown = Message::read(r#"{"$schema": "https://example.com/poll.json"}"#).unwrap();
    assert!(alone(Some("ada"), Some(&unknown)).is_ok());
    let found = alone(Some("ada"), Some(&sample(Kind::RequestDecision)));
    let nobody = MayNotSpeak::Unknown("ada".into());
    assert!(matches!(found, Err(MessageRefusal::PartyBinding(why)) if why == nobody));
    let found = alone(None, None);
    assert!(matches!(
        found,
        Err(MessageRefusal::PartyBinding(MayNotSpeak::Nobody))
    ));
}

#[test]
fn what_is_only_leniently_valid_is_strictly_turned_away() {
    let thread = Thread::new();
    let ask = sample_with(Kind::Quote, |it| it["colour"] = "red".into());
    let item = NewItem {
        id: "i".into(),
        item_type: ItemType::Message,
        role: None,
        channel: None,
        content: Some(json!([ask.input_part()]).into()),
        metadata: Some(json!({"actor": "shop"}).into()),
    };
    assert!(thread.desk.check("key_1", &item, thread.at).is_ok());
    let strict = Strictness::Strict;
    let found = thread.desk.judge_as("key_1", &item, strict, thread.at);
    assert!(
        matches!(found, Err(MessageRefusal::Unfit { place: 0, .. })),
        "{found:?}"
    );
}

#[test]
fn what_is_said_beside_answers_to_calls_counts() {
    let mut thread = Thread::new();
    thread.shop(&sample(Kind::RequestDecision));
    let said = NewItem::user("", json!([sample(Kind::Decision).input_part()]).into());
    let answer = json!({"type": ANSWER, "toolCallId": "c", "output": 1});
    let seq = thread.seq.next();
    let item = timeline::Item {
        id: "a".into(),
        item_type: ItemType::ActionResult,
        role: None,
        created_at: thread.at,
        status: timeline::ItemStatus::Stored,
        channel: None,
        content: Some(json!([answer, attached_message(&said).value()]).into()),
        execution_id: None,
        run: None,
        metadata: None,
    };
    let event = timeline::Event::ItemCreated { item };
    let at = thread.at;
    thread.desk.apply(&Record { seq, at, event });
    assert_eq!(thread.state(), RequestState::Answered);
}

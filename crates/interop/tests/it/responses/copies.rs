//! What a request goes on with, put into the request; and streams that can't go on.

use super::client::events_of;
use super::past::{log_of, said};
use super::rig::{begun, user};
use loomline_interop::responses::{
    Continues, CreateRequest, Framing, InputSays, ListOptions, ResponseOf, ResponseStream,
    conversation_items, is_alone, n_tokens, removal, transcript_until,
};
use serde_json::{Value, json};
use timeline::{Command, Removed};

fn read(body: &Value) -> CreateRequest {
    CreateRequest::read(body).unwrap().value
}

fn past() -> Value {
    json!([
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": "Hello Ada."},
        {"role": "user", "content": "go on"},
    ])
}

#[test]
fn a_copy_has_what_came_before_and_then_what_is_said() {
    let log = log_of(&said(&json!({"input": past()})).unwrap());
    let transcript = log.transcript();
    let request = read(&json!({"input": "and now?", "conversation": "c", "store": false}));
    let copy = request.clone().with_past(&transcript).unwrap();
    assert_eq!(copy.continues, Continues::Nothing);
    assert_eq!((copy.input.len(), &copy.input[3]), (4, &request.input[0]));
    assert_eq!(copy.options, request.options);
    assert!(n_tokens(&copy) > n_tokens(&request));
}

#[test]
fn an_item_that_is_named_is_there_once_if_the_past_has_it() {
    let log = log_of(&said(&json!({"input": past()})).unwrap());
    let transcript = log.transcript();
    let items = conversation_items(&transcript, ListOptions::default());
    let known = items.value[1].id.clone();
    let copy = |id: &str| {
        let input = json!([{"type": "item_reference", "id": id}, {"role": "user", "content": "x"}]);
        let request = read(&json!({"input": input, "conversation": "c"}));
        request.with_past(&transcript).unwrap().input
    };
    assert_eq!(copy(&known).len(), 4);
    // One that is not there stays, to be refused where it stands.
    assert!(matches!(
        copy("msg_none")[3].says,
        InputSays::Reference { .. }
    ));
}

#[test]
fn a_response_is_alone_until_something_follows_and_never_in_a_conversation() {
    let alone = |body: Value| {
        let options = read(&body).options;
        let log = begun(Some(json!({"params": options}).into()));
        is_alone(&log.transcript(), &"e".into())
    };
    assert_eq!(alone(json!({"input": "x"})), Some(true));
    assert_eq!(
        alone(json!({"input": "x", "conversation": "c"})),
        Some(false)
    );
    // Begun through another protocol: nobody says that the thread was made for it.
    let mut log = begun(None);
    assert_eq!(is_alone(&log.transcript(), &"e".into()), Some(false));
    assert_eq!(is_alone(&log.transcript(), &"none".into()), None);
    assert!(transcript_until(log.transcript(), &"none".into()).is_none());
    let options = read(&json!({"input": "x"})).options;
    log = begun(Some(json!({"params": options}).into()));
    log.run(Command::Record {
        item: user("later"),
    });
    assert_eq!(is_alone(&log.transcript(), &"e".into()), Some(false));
    let cut = transcript_until(log.transcript(), &"e".into()).unwrap();
    assert_eq!(cut.entries.len() + 1, log.transcript().entries.len());
}

#[test]
fn what_is_to_be_removed_is_found_by_its_item() {
    let log = log_of(&said(&json!({"input": past()})).unwrap());
    let transcript = log.transcript();
    let items = conversation_items(&transcript, ListOptions::default());
    let found: Vec<Option<Removed>> = items
        .value
        .iter()
        .map(|item| removal(&transcript, &item.id))
        .collect();
    assert!(matches!(
        found[..],
        [
            Some(Removed::Item(_)),
            Some(Removed::Step(_)),
            Some(Removed::Item(_))
        ]
    ));
    assert_eq!(removal(&transcript, "msg_none"), None);
}

#[test]
fn a_stream_that_can_not_go_on_says_so_and_ends() {
    let mut stream = ResponseStream::new(ResponseOf::Execution("now".into()), Framing::Sse);
    let mut out = String::new();
    stream.fail(
        &json!({"type": "server_error", "code": "store_failed", "message": "m", "param": null}),
        &mut out,
    );
    let (events, is_done) = events_of(&out);
    assert_eq!((events.len(), is_done), (1, true));
    assert_eq!(
        (&events[0]["type"], &events[0]["sequence_number"]),
        (&json!("error"), &json!(0))
    );
    assert_eq!(events[0]["error"]["code"], "store_failed");
}

//! What a request goes on with, put into the request; and streams that can't go on.

use super::client::events_of;
use super::past::{log_of, said};
use super::rig::{begun, user};
use crate::log::{Log, ids};
use crate::native::thread;
use loomline_interop::responses::{
    Continues, CreateConversation, CreateRequest, EventFraming, InputContent, ListOptions,
    ResponseOf, ResponseStream, conversation_items, is_alone, n_tokens, removal, transcript_until,
};
use serde_json::{Value, json};
use timeline::{Command, ItemType, NewItem, Removed};

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
        copy("msg_none")[3].content,
        InputContent::Reference { .. }
    ));
}

/// A conversation in which `c1` was never answered, and `c2` waits.
fn unanswered() -> Value {
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "look", "arguments": "{}"});
    json!([{"role": "user", "content": "look"}, call("c1"), call("c2")])
}

fn outputs(request: &CreateRequest) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (place, item) in request.input.iter().enumerate() {
        if let InputContent::CallOutput { call_id, .. } = &item.content {
            found.push((place, call_id.as_str()));
        }
    }
    found
}

#[test]
fn a_call_that_nobody_has_answered_is_interrupted_in_a_copy() {
    let body = json!({"items": unanswered()});
    let create = CreateConversation::read(&body).unwrap();
    let at = "2026-01-05T08:00:00Z".parse().unwrap();
    let mut log = Log::new(thread(), at);
    for (at, command) in create.commands(at, &mut ids()).unwrap() {
        log.run_at(at, command);
    }
    let transcript = log.transcript();
    let copy = |input: Value| {
        let request = read(&json!({"input": input, "conversation": "c", "store": false}));
        request.with_past(&transcript).unwrap()
    };
    let said = |request: &CreateRequest| {
        let at = "2026-01-05T08:00:00Z".parse().unwrap();
        request.thread_input(&std::collections::BTreeMap::new(), None, at, &mut ids())
    };
    // Something else is said.
    let other = copy(json!("never mind"));
    assert_eq!(outputs(&other), [(3, "c1"), (4, "c2")]);
    assert!(said(&other).is_ok());
    // One is answered, the other is not.
    let output = json!([{"type": "function_call_output", "call_id": "c2", "output": "seen"}]);
    let one = copy(output);
    assert_eq!(outputs(&one), [(3, "c1"), (4, "c2")]);
    assert!(said(&one).is_ok());
    // Nothing is said: somebody must answer first.
    let none = copy(json!([]));
    assert_eq!(outputs(&none), []);
    assert_eq!(said(&none).unwrap_err().code, "invalid_value");
}

#[test]
fn a_result_of_no_call_is_not_in_a_copy() {
    let mut log = log_of(&said(&json!({"input": past()})).unwrap());
    let stray = json!({"type": "function_call_output", "call_id": "none", "output": "x"});
    log.run(Command::Record {
        item: NewItem {
            id: "stray".into(),
            item_type: ItemType::ActionResult,
            role: None,
            channel: None,
            content: Some(stray.into()),
            metadata: None,
        },
    });
    let transcript = log.transcript();
    let items = conversation_items(&transcript, ListOptions::default());
    assert_eq!(items.value.len(), 4);
    let request = read(&json!({"input": "and now?", "conversation": "c", "store": false}));
    let copy = request.with_past(&transcript).unwrap();
    assert_eq!((copy.input.len(), outputs(&copy)), (4, vec![]));
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
    let mut stream = ResponseStream::new(ResponseOf::Execution("now".into()), EventFraming::Sse);
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

#[test]
fn a_response_whose_stream_can_not_go_on_has_failed_as_far_as_it_was_told() {
    let mut log = begun(None);
    super::rig::text(&mut log, "Hel");
    let mut stream = ResponseStream::new(ResponseOf::Execution("e".into()), EventFraming::Sse);
    let mut out = String::new();
    for record in &log.records {
        stream.apply(record, &mut out);
    }
    let error =
        json!({"type": "server_error", "code": "store_failed", "message": "m", "param": null});
    stream.fail(&error, &mut out);
    let (events, is_done) = events_of(&out);
    let [.., told, last] = events.as_slice() else {
        panic!("{out}");
    };
    assert_eq!(
        (&told["type"], &told["error"], is_done),
        (&json!("error"), &error, true)
    );
    assert_eq!(last["type"], "response.failed");
    assert_eq!(last["response"]["status"], "failed");
    assert_eq!(
        last["response"]["error"],
        json!({"code": "store_failed", "message": "m"})
    );
}

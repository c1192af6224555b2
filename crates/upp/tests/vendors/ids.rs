//! The ids of calls that a vendor takes.

use crate::support::{answered, body, calling, chunk, decode, end, request, stored};
use loomline_upp::{CallIdForm, ChatCompletions, Codec as _, Dialect, Message};
use serde_json::{Value, json};

fn mistral() -> ChatCompletions {
    ChatCompletions::new(Dialect::mistral(), "mistral-large")
}

fn ids(body: &Value) -> Vec<(&str, &str)> {
    let messages = body["messages"].as_array().expect("as the test has it");
    let called = messages
        .iter()
        .filter_map(|it| it["tool_calls"][0]["id"].as_str());
    let answered = messages.iter().filter_map(|it| it["tool_call_id"].as_str());
    called.zip(answered).collect()
}

#[test]
fn mistral_gets_nine_letters_and_digits_and_the_thread_keeps_its_own_ids() {
    let call = json!({"index": 0, "id": "D681PevKs", "function": {"name": "f", "arguments": "{}"}});
    let own = decode(
        &mistral(),
        &[
            chunk(&json!({"tool_calls": [call]})),
            end("tool_calls", &Value::Null),
        ],
    )
    .expect("as the test has it");
    let foreign = ["toolu_01A09q90qw90lq917835lq9", "call_2", "functions.f:0"];
    let mut thread: Vec<Message> = vec!["hi".into()];
    for id in foreign {
        thread.extend([calling(id, "{}"), answered(id, json!(1), false)]);
    }
    thread.extend([stored(own.message), answered("D681PevKs", json!(1), false)]);
    let asked = request(thread.clone());
    let body = body(&mistral(), &asked);
    let ids = ids(&body);
    assert_eq!(ids.len(), 4);
    for (called, answered) in &ids {
        assert_eq!(called, answered);
        assert_eq!(called.len(), 9, "{called}");
        assert!(
            called.bytes().all(|it| it.is_ascii_alphanumeric()),
            "{called}"
        );
    }
    assert_eq!(ids[3].0, "D681PevKs");
    // What was sent once is sent the same again, and the thread has what it had.
    let shorter = mistral()
        .encode(&request(thread[..5].to_vec()))
        .expect("as the test has it");
    let longer = mistral().encode(&asked).expect("as the test has it");
    assert!(longer.body.starts_with(shorter.conversation()));
    assert_eq!(request(thread).messages, asked.messages);
}

#[test]
fn the_form_of_ids_is_the_dialects() {
    let asked = request(["hi".into(), calling("call_2", "{}")]);
    let sent = |form| {
        let mut dialect = Dialect::compatible("acme", "https://acme.example/v1");
        dialect.call_ids = form;
        let body = body(&ChatCompletions::new(dialect, "m"), &asked);
        let id = &body["messages"][1]["tool_calls"][0]["id"];
        id.as_str().expect("as the test has it").to_owned()
    };
    assert_eq!(sent(CallIdForm::UpTo40), "call_2");
    assert_eq!(sent(CallIdForm::NineAlphanumerics).len(), 9);
}

#[test]
fn a_host_that_knows_no_stream_options_is_sent_none_but_the_callers() {
    let plain = body(&mistral(), &request(["hi".into()]));
    assert_eq!(plain.get("stream_options"), None);
    let own =
        crate::support::with_params(request(["hi".into()]), &json!({"stream_options": {"x": 1}}));
    let options = &body(&mistral(), &own)["stream_options"];
    assert_eq!(*options, json!({"x": 1, "include_usage": true}));
}

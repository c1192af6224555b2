//! The requests of the compliance suite's cases (2026-04-24): each is read, and said on a thread.

use super::past::{log_of, said};
use super::rig::{answer, begun, events, object, over};
use super::schemas::Published;
use loomline_interop::model::history;
use loomline_interop::responses::CreateRequest;
use serde_json::{Value, json};

fn message(role: &str, content: impl Into<Value>) -> Value {
    json!({"type": "message", "role": role, "content": content.into()})
}

fn phase(text: &str, phase: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": text, "phase": phase})
}

#[test]
fn every_request_of_the_compliance_suite_is_understood() {
    let png = "data:image/png;base64,iVBORw0KGgo=";
    let weather = json!({"type": "function", "name": "get_weather", "description": "Get the current weather", "parameters": {
        "type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}});
    let cases = [
        (
            json!([message("user", json!("Say hello in exactly 3 words."))]),
            1,
        ),
        (
            json!([
                phase("Working on it.", "commentary"),
                phase("Done.", "final_answer"),
                message("user", json!("Thanks"))
            ]),
            2,
        ),
        (
            json!([
                message("system", json!("You are a pirate.")),
                message("user", json!("Say hello."))
            ]),
            2,
        ),
        (
            json!([message(
                "user",
                json!("What's the weather like in San Francisco?")
            )]),
            1,
        ),
        (
            json!([message(
                "user",
                json!([{"type": "input_text", "text": "What?"}, {"type": "input_image", "image_url": png}])
            )]),
            1,
        ),
        (
            json!([
                message("user", json!("My name is Alice.")),
                message("assistant", json!("Hello Alice!")),
                message("user", json!("What is my name?"))
            ]),
            3,
        ),
    ];
    let file = json!({"type": "input_file", "filename": "notes.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjEK"});
    let about = json!({"type": "input_text", "text": "What is its title?"});
    let of_file = (json!([message("user", json!([about, file]))]), 1);
    for (input, n_messages) in cases.into_iter().chain([of_file]) {
        let body = json!({"model": "gpt-4o-mini", "input": input, "tools": [weather]});
        let messages = history(&log_of(&said(&body).unwrap()).transcript(), None);
        assert_eq!(messages.len(), n_messages, "{body}");
    }
    for extra in [
        json!({"store": false}),
        json!({"store": false, "tools": []}),
    ] {
        let mut create = json!({"type": "response.create", "model": "gpt-4o-mini", "input": [message("user", json!("hi"))]});
        create
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        assert!(!CreateRequest::read_socket(&create).unwrap().value.store);
    }
    let lost = json!({"type": "response.create", "store": false, "previous_response_id": "resp_ws_missing", "input": []});
    let error = CreateRequest::read_socket(&lost).unwrap_err();
    assert_eq!(error.code, "previous_response_not_found");
}

#[test]
fn what_an_agent_says_in_phases_is_shown_with_them() {
    let mut log = begun(None);
    let part =
        |text: &str, phase: &str| json!({"type": "output_text", "text": text, "phase": phase});
    let parts = vec![
        part("Looking.", "commentary"),
        part("Found.", "final_answer"),
        part("Well.", "another_word"),
    ];
    answer(&mut log, parts, "end_turn");
    over(&mut log);
    let events = events(&log);
    let response = &events.last().unwrap()["response"];
    assert_eq!(*response, object(&log.records, "e"));
    let items = response["output"].as_array().unwrap().iter();
    let phases: Vec<Option<&str>> = items.map(|it| it["phase"].as_str()).collect();
    assert_eq!(phases, [Some("commentary"), Some("final_answer"), None]);
    if let Some(mut published) = Published::open_responses() {
        published.check("ResponseResource", response);
        for event in &events {
            published.check_event(event);
        }
    }
}

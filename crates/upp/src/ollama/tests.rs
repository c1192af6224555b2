use super::*;
use crate::codec::{Codec, Decoder as _};
use crate::content::{Media, MediaSource, UserContent};
use crate::error::Code;
use crate::message::Message;
use crate::model::ToolChoice;
use serde_json::{Value, json};
use std::sync::Arc;

fn body(request: &Request) -> Value {
    serde_json::from_str(&Ollama::new("m").encode(request).unwrap().body).unwrap()
}

fn asked(text: &str) -> Request {
    Request {
        messages: [Message::from(text)].into_iter().collect(),
        ..Request::default()
    }
}

#[test]
fn params_are_options_unless_they_stand_beside_the_model() {
    let mut request = asked("hi");
    let params = json!({"temperature": 0.5, "think": true, "options": {"seed": 1}});
    request.params = Arc::new(params.as_object().unwrap().clone());
    let body = body(&request);
    assert_eq!(body["options"], json!({"temperature": 0.5, "seed": 1}));
    assert_eq!(body["think"], true);
}

#[test]
fn what_ollama_can_not_do_is_refused() {
    let mut forced = asked("hi");
    forced.tool_choice = ToolChoice::Required;
    let pdf = MediaSource::Base64 {
        data: "AA==".into(),
    };
    let far = MediaSource::Url {
        url: "https://x/y.png".into(),
    };
    let block = |block| Request {
        messages: [Message::from(block)].into_iter().collect(),
        ..Request::default()
    };
    for request in [
        forced,
        block(UserContent::Document(Media::new(
            pdf.clone(),
            "application/pdf",
        ))),
        block(UserContent::Image(Media::new(far, "image/png"))),
        block(UserContent::Audio(Media::new(pdf, "audio/wav"))),
    ] {
        let error = Ollama::new("m").encode(&request).unwrap_err();
        assert_eq!(error.code, Code::InvalidRequest);
    }
}

#[test]
fn arguments_keep_their_spelling_and_calls_without_an_id_get_one_each() {
    let mut decoder = Box::new(decode::Decoder::new("m", false));
    let call = r#"{"function":{"name":"f","arguments":{"x": 1.0e2}}}"#;
    let line =
        format!(r#"{{"message":{{"content":"","tool_calls":[{call},{call}]}},"done":true}}"#);
    decoder.push(&line).unwrap();
    let (_, response) = decoder.finish().unwrap();
    let [one, two] = response.message.tool_calls.as_slice() else {
        panic!("two calls")
    };
    assert_eq!(one.arguments.text(), r#"{"x": 1.0e2}"#);
    assert_ne!(one.tool_call_id, two.tool_call_id);
}

#[test]
fn another_models_reasoning_is_left_out_and_reported() {
    let mut decoder = Box::new(decode::Decoder::new("m", false));
    decoder
        .push(r#"{"model":"m","message":{"thinking":"hm","content":"yes"},"done":true,"done_reason":"stop"}"#)
        .unwrap();
    let (_, response) = decoder.finish().unwrap();
    let mut request = asked("hi");
    request.messages.push_back_mut(response.message.into());
    let own = Ollama::new("m").encode(&request).unwrap();
    assert!(own.body.contains("\"thinking\":\"hm\"") && own.omitted.is_empty());
    let other = Ollama::new("n").encode(&request).unwrap();
    assert!(!other.body.contains("hm"));
    assert_eq!(other.omitted[0].what, "reasoning");
}

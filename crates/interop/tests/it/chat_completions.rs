//! Chat Completions: requests, histories, and runs as clients see them.

use crate::langgraph::executions;
use crate::native::conversation;
use loomline_interop::chat_completions::{
    ChatCompletion, CompletionRequest, CompletionStream, MessageContent, StoredMessages, added,
};
use loomline_interop::responses::RequestError;
use loomline_interop::run::{RunSelector, replay};
use proptest::prelude::*;
use serde_json::{Value, json};
use timeline::{Entry, ItemId};

fn read(more: Value) -> Result<CompletionRequest, RequestError> {
    let mut body = json!({"model": "a", "messages": [{"role": "user", "content": "Hi"}]});
    if let Value::Object(more) = more {
        body.as_object_mut().unwrap().extend(more);
    }
    CompletionRequest::read(&body)
}

/// The place and the code of what is refused.
fn refused(more: Value) -> (String, &'static str) {
    let error = read(more).unwrap_err();
    (error.param().unwrap_or_default(), error.code)
}

#[test]
fn an_option_that_no_run_can_meet_is_refused() {
    for (member, value) in [
        ("n", json!(2)),
        ("seed", json!(1)),
        ("stop", json!("x")),
        ("logprobs", json!(true)),
        ("top_logprobs", json!(3)),
        ("logit_bias", json!({"1": 2})),
        ("modalities", json!(["audio"])),
        ("audio", json!({})),
        ("service_tier", json!("flex")),
        ("verbosity", json!("low")),
        ("prediction", json!({})),
        ("web_search_options", json!({})),
        ("functions", json!([])),
    ] {
        let refused = refused(json!({ member: value }));
        assert_eq!(refused, (member.to_owned(), "unsupported_value"));
    }
    let unknown = refused(json!({"top_k": 4}));
    assert_eq!(unknown, ("top_k".to_owned(), "unknown_parameter"));
}

#[test]
fn a_value_that_changes_nothing_is_taken() {
    let neutral = json!({
        "n": 1, "stop": null, "logprobs": false, "logit_bias": {}, "modalities": ["text"], "seed": null,
        "service_tier": "auto", "verbosity": "medium", "user": "u", "store": false, "tools": [],
    });
    assert!(read(neutral).is_ok());
}

#[test]
fn a_wrong_member_is_refused_with_its_place() {
    let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
    for (more, place) in [
        (json!({"model": null}), "model"),
        (json!({"messages": []}), "messages"),
        (
            json!({"messages": [{"role": "x", "content": ""}]}),
            "messages[0].role",
        ),
        (
            json!({"messages": [{"role": "user"}]}),
            "messages[0].content",
        ),
        (
            json!({"messages": [{"role": "user", "content": "x", "name": "Ann"}]}),
            "messages[0].name",
        ),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}),
            "messages[0].content[0].type",
        ),
        (
            json!({"messages": [{"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": "ftp://x"}},
            ]}]}),
            "messages[0].content[0].image_url.url",
        ),
        (
            json!({"messages": [{"role": "assistant", "tool_calls": [{"id": "c", "type": "custom"}]}]}),
            "messages[0].tool_calls[0].type",
        ),
        (json!({"tools": [{"type": "custom"}]}), "tools[0].type"),
        (json!({"tools": [tool("a b")]}), "tools[0].function.name"),
        (
            json!({"tools": [tool("a"), tool("a")]}),
            "tools[1].function.name",
        ),
        (json!({"tool_choice": "some"}), "tool_choice"),
        (json!({"max_tokens": 3}), "max_tokens"),
        (
            json!({"max_tokens": 20, "max_completion_tokens": 30}),
            "max_tokens",
        ),
        (json!({"temperature": 3}), "temperature"),
        (
            json!({"response_format": {"type": "xml"}}),
            "response_format.type",
        ),
        (
            json!({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}),
            "response_format.json_schema.schema",
        ),
        (json!({"stream_options": {}}), "stream_options"),
        (json!({"metadata": {"thread": 1}}), "metadata.thread"),
    ] {
        assert_eq!(refused(more).0, place);
    }
}

/// The messages that a history adds to those stored, or the place that differs.
fn adds(stored: &StoredMessages, messages: &Value) -> Result<Vec<usize>, String> {
    let body = json!({"model": "a", "messages": messages});
    let request = CompletionRequest::read(&body).unwrap();
    let added = added(&request.messages, stored).map_err(|differs| differs.pointer)?;
    Ok(added.iter().map(|it| it.index).collect())
}

#[test]
fn messages_of_a_new_thread_are_new_until_one_is_an_answer() {
    let none = StoredMessages::default();
    let said = |role: &str| json!({"role": role, "content": "x"});
    let messages = json!([said("system"), said("user")]);
    assert_eq!(adds(&none, &messages), Ok(vec![0, 1]));
    let messages = json!([said("user"), said("assistant"), said("user")]);
    assert_eq!(adds(&none, &messages), Err("/messages/0".to_owned()));
}

/// What a completion comes to: the whole of it, or what is told of its error.
type Outcome = Option<Result<ChatCompletion, Value>>;

fn outcome(stream: &CompletionStream) -> Outcome {
    let outcome = stream.outcome()?;
    Some(outcome.map_err(|error| error.body()))
}

/// The completion that answers an item, from all records, and what is streamed of it.
fn live(log: &crate::log::Log, trigger: ItemId, streams: bool) -> (Outcome, String) {
    let mut stream = CompletionStream::new(RunSelector::answering(trigger));
    if streams {
        stream = stream.streaming(true);
    }
    let mut out = String::new();
    for record in &log.records {
        stream.apply(record, &mut out);
    }
    (outcome(&stream), out)
}

/// The text, the calls and the reason of streamed chunks.
fn joined(out: &str) -> (String, Vec<Value>, Value) {
    let (mut text, mut calls, mut reason) = (String::new(), Vec::new(), Value::Null);
    for data in out.split_terminator("\n\n") {
        let Ok(chunk) = serde_json::from_str::<Value>(&data["data: ".len()..]) else {
            assert_eq!(data, "data: [DONE]");
            continue;
        };
        let choice = &chunk["choices"][0];
        text.push_str(choice["delta"]["content"].as_str().unwrap_or_default());
        let new = choice["delta"]["tool_calls"].as_array();
        calls.extend(new.cloned().unwrap_or_default());
        if !choice["finish_reason"].is_null() {
            reason = choice["finish_reason"].clone();
        }
    }
    (text, calls, reason)
}

/// A stored message as a client sends it.
pub(crate) fn sent(content: &MessageContent) -> Value {
    match content {
        MessageContent::Message { role, parts } => {
            let part = |part: &Value| {
                let text = part["text"]
                    .as_str()
                    .map(|text| json!({"type": "text", "text": text}));
                let url = part["image_url"].as_str();
                let image = url.map(|url| json!({"type": "image_url", "image_url": {"url": url}}));
                text.or(image)
            };
            let parts: Vec<Value> = parts.iter().filter_map(part).collect();
            json!({"role": role, "content": parts})
        }
        MessageContent::Answer { text, calls } => {
            let calls: Vec<Value> = calls
                .iter()
                .map(|call| {
                    let function = json!({"name": call.name, "arguments": call.arguments});
                    json!({"id": call.id, "type": "function", "function": function})
                })
                .collect();
            json!({"role": "assistant", "content": text, "tool_calls": calls})
        }
        MessageContent::Result { call_id, output } => {
            let text = output
                .as_str()
                .map_or_else(|| output.to_string(), str::to_owned);
            json!({"role": "tool", "tool_call_id": call_id, "content": text})
        }
    }
}

proptest! {
    #[test]
    fn a_completion_folded_live_equals_its_replay(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let log = conversation(&bytes);
        let transcript = log.transcript();
        for (execution, trigger) in executions(&log) {
            let (folded, _) = live(&log, trigger, false);
            let reactions = transcript.entries.iter().filter_map(|entry| match entry {
                Entry::Reaction(reaction) => Some(reaction),
                Entry::Item(_) => None,
            });
            let reactions = reactions.filter(|reaction| reaction.execution.id == execution);
            let mut replayed = CompletionStream::new(RunSelector::running(None));
            for (_, event) in replay(reactions, true) {
                replayed.event(&event, &mut String::new());
            }
            prop_assert!(folded.is_some());
            prop_assert_eq!(folded, outcome(&replayed));
        }
    }

    #[test]
    fn the_chunks_of_a_completion_make_its_whole(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let log = conversation(&bytes);
        for (_, trigger) in executions(&log) {
            let (whole, _) = live(&log, trigger.clone(), false);
            let (streamed, out) = live(&log, trigger, true);
            // A stream that can't take back what it has sent fails where the whole does not.
            let (Some(Ok(whole)), Some(Ok(_))) = (whole, streamed) else {
                let has_failed = out.contains("data: {\"error\":");
                prop_assert!(has_failed);
                continue;
            };
            let whole = serde_json::to_value(whole).unwrap();
            let choice = &whole["choices"][0];
            let (text, calls, reason) = joined(&out);
            prop_assert_eq!(choice["message"]["content"].as_str().unwrap_or_default(), text);
            prop_assert_eq!(choice["message"]["tool_calls"].as_array().map_or(0, Vec::len), calls.len());
            prop_assert_eq!(&choice["finish_reason"], &reason);
            prop_assert!(out.ends_with("data: [DONE]\n\n"));
        }
    }

    #[test]
    fn a_history_made_of_a_threads_completions_is_known(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let log = conversation(&bytes);
        let stored = StoredMessages::whole(&log.transcript());
        let mut messages: Vec<Value> = stored.contents().map(sent).collect();
        let n_messages = messages.len();
        messages.push(json!({"role": "user", "content": "and now?"}));
        if n_messages > 0 {
            let added = adds(&stored, &Value::Array(messages));
            prop_assert_eq!(added, Ok(vec![n_messages]));
        }
    }
}

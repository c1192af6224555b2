//! How responses end, and what is not as it should be.

use super::client::Client;
use super::rig::{
    answer, begun, emit, events, handed_over, object, over, reset, text, transcript, types, user,
};
use crate::log::Log;
use loomline_interop::parts::{ToolPart, ToolState};
use loomline_interop::responses::{
    Echo, EventFraming, ResponseOf, ResponseStream, Status, response,
};
use serde_json::{Value, json};
use timeline::{Command, Ending, Event, Interruption, Payload, StepOutcome, Trigger};

fn stopped(log: &mut Log, reason: &str) {
    let reason = reason.to_owned();
    let detail = Some("it can't go on".to_owned());
    let ending = Ending::Stopped(Interruption { reason, detail });
    log.run(Command::End { ending });
}

#[test]
fn a_dead_attempt_ends_incomplete_and_is_not_in_the_response() {
    let events = events(&reset());
    let client = Client::of(&events);
    let statuses: Vec<&Value> = client
        .items
        .iter()
        .map(|(item, _)| &item["status"])
        .collect();
    assert_eq!(statuses, ["incomplete", "incomplete", "completed"]);
    let last = client.last.unwrap();
    assert_eq!(last["output"].as_array().unwrap().len(), 1);
    assert_eq!(last["output"][0]["content"][0]["text"], "Hallo");
    assert_eq!(last, object(&reset().records, "e"));
}

#[test]
fn a_response_goes_on_with_the_agent_that_was_handed_over_to() {
    let log = handed_over();
    let last = Client::of(&events(&log)).last.unwrap();
    let kinds: Vec<&str> = last["output"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["function_call", "function_call_output", "message"]);
    assert_eq!(last["usage"]["total_tokens"], 14);
    assert_eq!(last, object(&log.records, "e"));
    // Until the other agent has begun, the response is not over.
    let handover = log
        .records
        .iter()
        .position(|it| matches!(it.event, Event::ThreadFinished { .. }))
        .unwrap();
    assert_eq!(
        object(&log.records[..=handover], "e")["status"],
        "in_progress"
    );
}

#[test]
fn a_failure_is_told_and_then_the_response_that_failed() {
    let mut log = begun(None);
    text(&mut log, "Hel");
    let why = Interruption {
        reason: "error".into(),
        detail: Some("the model is gone".into()),
    };
    let ending = Ending::Failed(why);
    log.run(Command::End { ending });
    let events = events(&log);
    let tail = &types(&events)[events.len() - 3..];
    assert_eq!(
        tail,
        ["response.output_item.done", "error", "response.failed"]
    );
    let error = &events[events.len() - 2];
    assert_eq!(error["error"]["message"], "the model is gone");
    let last = &events.last().unwrap()["response"];
    assert_eq!(last["error"]["code"], "server_error");
    assert_eq!(last["output"][0]["status"], "incomplete");
    assert_eq!(last["output"][0]["content"][0]["text"], "Hel");
    assert_eq!(*last, object(&log.records, "e"));
}

#[test]
fn a_failure_is_told_as_what_it_is() {
    for (reason, kind, code) in [
        ("rate_limited", "too_many_requests", "rate_limit_exceeded"),
        ("quota_exceeded", "too_many_requests", "rate_limit_exceeded"),
        ("network_failure", "model_error", "server_error"),
        ("error", "model_error", "server_error"),
        ("acme:gone", "server_error", "server_error"),
    ] {
        let mut log = begun(None);
        stopped(&mut log, reason);
        let events = events(&log);
        let [.., error, last] = events.as_slice() else {
            panic!("{events:?}");
        };
        assert_eq!(
            (&error["error"]["type"], &error["error"]["code"]),
            (&json!(kind), &json!(code))
        );
        assert_eq!(last["response"]["error"]["code"], code);
        assert_eq!(last["response"], object(&log.records, "e"));
    }
}

#[test]
fn items_stand_in_the_end_where_their_events_have_put_them() {
    let mut log = begun(None);
    // The call is streamed before the text, and stored behind it.
    let start = json!({"toolCallId": "c", "toolName": "look"});
    emit(&mut log, "tool-input-start", start);
    text(&mut log, "Let me look.");
    let said = json!({"type": "output_text", "text": "Let me look."});
    let parts = vec![said, super::rig::call("look", "c", "{}")];
    answer(&mut log, parts, "tool_use");
    over(&mut log);
    let events = events(&log);
    let done = events
        .iter()
        .filter(|it| it["type"] == "response.output_item.done");
    let mut done: Vec<_> = done
        .map(|it| (it["output_index"].as_u64(), &it["item"]))
        .collect();
    done.sort_by_key(|(index, _)| *index);
    let items: Vec<Value> = done.into_iter().map(|(_, item)| item.clone()).collect();
    assert_eq!(items[0]["type"], "function_call");
    assert_eq!(events.last().unwrap()["response"]["output"], json!(items));
}

#[test]
fn a_response_names_the_model_that_was_asked_for_from_the_beginning_to_the_end() {
    let named = |echo: Echo| -> Vec<Value> {
        let mut log = begun(Some(super::rig::run(&echo)));
        answer(
            &mut log,
            vec![json!({"type": "output_text", "text": "hi"})],
            "end_turn",
        );
        over(&mut log);
        let events = events(&log);
        let told = events.iter().filter(|it| it["response"].is_object());
        told.map(|it| it["response"]["model"].clone()).collect()
    };
    let model = Some("asked".to_owned());
    let asked = Echo {
        model,
        ..Echo::default()
    };
    assert_eq!(named(asked), ["asked", "asked", "asked"]);
    // Nobody asked for a model: it is the agent that answers.
    assert_eq!(named(Echo::default()), ["ada", "ada", "ada"]);
}

#[test]
fn limits_make_a_response_incomplete_and_a_cancel_makes_it_cancelled() {
    let ended = |reason: &str| {
        let mut log = begun(None);
        text(&mut log, "Hel");
        stopped(&mut log, reason);
        let events = events(&log);
        let last = events.last().unwrap();
        assert_eq!(last["type"], "response.incomplete", "{reason}");
        assert_eq!(last["response"], object(&log.records, "e"));
        (
            last["response"]["status"].clone(),
            last["response"]["incomplete_details"].clone(),
        )
    };
    assert_eq!(ended("user_cancelled"), (json!("cancelled"), Value::Null));
    assert_eq!(
        ended("max_steps"),
        (json!("incomplete"), json!({"reason": "max_steps"}))
    );
    assert_eq!(
        ended("timeout"),
        (json!("incomplete"), json!({"reason": "timeout"}))
    );
    assert_eq!(
        ended("safety_halt"),
        (json!("incomplete"), json!({"reason": "content_filter"}))
    );
    let mut log = begun(None);
    answer(
        &mut log,
        vec![json!({"type": "output_text", "text": "cut"})],
        "max_tokens",
    );
    over(&mut log);
    let last = object(&log.records, "e");
    assert_eq!(last["status"], "incomplete");
    assert_eq!(last["incomplete_details"]["reason"], "max_output_tokens");
    assert_eq!(last["output"][0]["status"], "incomplete");
}

#[test]
fn a_response_is_incomplete_whose_tokens_were_spent_before_its_agent_was_done() {
    for (cut_short, status, details) in [
        (None, "completed", Value::Null),
        (
            Some(StepOutcome::SPENT),
            "incomplete",
            json!({"reason": "max_output_tokens"}),
        ),
        (Some("another_word"), "completed", Value::Null),
    ] {
        let mut log = begun(None);
        // Each answer is whole: it is the run that had no tokens left.
        answer(
            &mut log,
            vec![super::rig::call("look", "c", "{}")],
            "tool_use",
        );
        let mut tool = ToolPart::call("look", "c", "{}");
        tool.state = ToolState::OutputAvailable;
        tool.output = Some(json!("a house").into());
        let part = tool.write().unwrap();
        log.run(Command::PutPart { idx: 0, part });
        let outcome = StepOutcome {
            cut_short: cut_short.map(str::to_owned),
            ..StepOutcome::default()
        };
        let next = None;
        log.run(Command::ImportStep { outcome, next });
        let ending = Ending::Completed;
        log.run(Command::End { ending });
        let events = events(&log);
        let last = events.last().unwrap();
        assert_eq!(last["type"], format!("response.{status}"));
        let response = &last["response"];
        assert_eq!(response["status"], status);
        assert_eq!(response["incomplete_details"], details);
        assert_eq!(response["output"][0]["status"], "completed");
        assert_eq!(*response, object(&log.records, "e"));
    }
}

#[test]
fn a_response_whose_answer_was_filtered_is_incomplete() {
    let mut log = begun(None);
    let said = json!({"type": "output_text", "text": "I would"});
    answer(&mut log, vec![said], "content_filter");
    over(&mut log);
    let events = events(&log);
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.incomplete");
    let details = &last["response"]["incomplete_details"];
    assert_eq!(*details, json!({"reason": "content_filter"}));
    assert_eq!(last["response"], object(&log.records, "e"));
}

#[test]
fn a_stream_that_waits_for_its_turn_shows_nothing_of_others() {
    let mut log = begun(None);
    let run: Payload = json!({}).into();
    log.run(Command::Enqueue {
        item: user("u2"),
        run,
    });
    text(&mut log, "one");
    over(&mut log);
    let mut stream = ResponseStream::new(ResponseOf::Trigger("u2".into()), EventFraming::Sse);
    let mut out = String::new();
    for record in &log.records {
        stream.apply(record, &mut out);
    }
    assert_eq!(
        (out.as_str(), stream.status(), stream.is_over()),
        ("", Status::Queued, false)
    );
    assert!(stream.object().is_none());
    let known = log.records.len();
    log.run(Command::Start {
        trigger: Trigger::Waiting,
        run: None,
        execution_id: "e2".into(),
        reaction_item_id: "a2".into(),
        step_id: "s2".into(),
        workflow_run_id: None,
    });
    over(&mut log);
    for record in &log.records[known..] {
        stream.apply(record, &mut out);
    }
    assert!(stream.is_over());
    assert_eq!(stream.execution(), Some(&"e2".into()));
    assert!(out.ends_with("data: [DONE]\n\n"));
}

#[test]
fn what_a_step_of_no_model_has_streamed_is_what_it_says() {
    let mut log = begun(None);
    text(&mut log, "I am ");
    text(&mut log, "no model.");
    over(&mut log);
    let last = Client::of(&events(&log)).last.unwrap();
    assert_eq!(last["status"], "completed");
    let item = &last["output"][0];
    assert_eq!(item["content"][0]["text"], "I am no model.");
    assert_eq!(item["status"], "completed");
    assert_eq!(last, object(&log.records, "e"));
}

#[test]
fn reasoning_that_was_over_stays_in_a_response_that_fails_behind_it() {
    let mut log = begun(None);
    let delta = json!({"id": "r0", "delta": "hm"});
    emit(&mut log, "reasoning-delta", delta);
    text(&mut log, "I th");
    stopped(&mut log, "error");
    let last = Client::of(&events(&log)).last.unwrap();
    let output = last["output"].as_array().unwrap();
    let stands: Vec<_> = output
        .iter()
        .map(|it| (&it["type"], &it["status"]))
        .collect();
    assert_eq!(
        stands,
        [
            (&json!("reasoning"), &json!("completed")),
            (&json!("message"), &json!("incomplete")),
        ]
    );
    assert_eq!(last, object(&log.records, "e"));
}

#[test]
fn an_item_that_was_streamed_otherwise_than_it_is_stored_comes_anew() {
    let mut log = begun(None);
    text(&mut log, "Helo");
    answer(
        &mut log,
        vec![json!({"type": "output_text", "text": "Hello"})],
        "end_turn",
    );
    over(&mut log);
    let client = Client::of(&events(&log));
    let said = |item: &Value| item["content"][0]["text"].clone();
    let seen: Vec<Value> = client.items.iter().map(|(item, _)| said(item)).collect();
    assert_eq!(seen, ["Helo", "Hello"]);
    let last = client.last.unwrap();
    assert_eq!(last["output"].as_array().unwrap().len(), 1);
    assert_eq!(said(&last["output"][0]), "Hello");
}

#[test]
fn what_no_response_can_show_is_told() {
    let mut log = begun(None);
    let file = json!({"type": "loomline-output-file", "file_url": "https://a.b", "media_type": "image/png"});
    answer(&mut log, vec![file], "end_turn");
    over(&mut log);
    let made = response(&transcript(&log.records), &"e".into()).unwrap();
    assert_eq!(made.losses.len(), 1);
    assert_eq!(made.losses[0].what, "a file that a model made");
    assert!(response(&transcript(&log.records), &"x".into()).is_none());
}

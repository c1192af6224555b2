//! What clients see of an answer.

use super::client::{Client, events_of};
use super::rig::{answer, begun, call, emit, events, object, over, run, step_over, text, types};
use loomline_interop::parts::{StepResponse, ToolPart, ToolState};
use loomline_interop::responses::{Echo, EventFraming, ListOptions, ResponseOf, ResponseStream};
use serde_json::{Value, json};
use timeline::{Command, Payload};

#[test]
fn a_text_comes_in_the_order_of_the_specification() {
    let mut log = begun(None);
    for piece in ["Hel", "lo \"☀\"\n"] {
        text(&mut log, piece);
    }
    let said = json!({"type": "output_text", "text": "Hello \"☀\"\n"});
    answer(&mut log, vec![said], "end_turn");
    over(&mut log);
    let events = events(&log);
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(types(&events), expected);
    let last = &events[9]["response"];
    assert_eq!(last["usage"]["total_tokens"], 7);
    assert_eq!(last["usage"]["input_tokens_details"]["cached_tokens"], 3);
    assert_eq!(last["model"], "m");
    assert_eq!(last["output"][0]["content"][0]["text"], "Hello \"☀\"\n");
    assert_eq!(
        last["completed_at"].as_i64().unwrap() - last["created_at"].as_i64().unwrap(),
        5
    );
    assert_eq!(object(&log.records, "e"), *last);
}

#[test]
fn a_background_response_is_queued_first() {
    let mut echo = Echo::default();
    echo.members.insert("background".into(), true.into());
    let mut log = begun(Some(run(&echo)));
    over(&mut log);
    let events = events(&log);
    let expected = [
        "response.created",
        "response.queued",
        "response.in_progress",
        "response.completed",
    ];
    assert_eq!(types(&events), expected);
    let statuses: Vec<&str> = events
        .iter()
        .map(|it| it["response"]["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["queued", "queued", "in_progress", "completed"]);
}

#[test]
fn a_tool_of_the_server_is_shown_with_its_result() {
    let mut log = begun(None);
    emit(
        &mut log,
        "tool-input-start",
        json!({"toolCallId": "c", "toolName": "look"}),
    );
    emit(
        &mut log,
        "tool-input-delta",
        json!({"toolCallId": "c", "inputTextDelta": "{\"a\""}),
    );
    emit(
        &mut log,
        "tool-input-delta",
        json!({"toolCallId": "c", "inputTextDelta": ":1}"}),
    );
    answer(&mut log, vec![call("look", "c", "{\"a\":1}")], "tool_use");
    let mut tool = ToolPart::call("look", "c", "{\"a\":1}");
    tool.state = ToolState::OutputAvailable;
    tool.output = Some(json!({"seen": [1]}).into());
    let part = tool.write().unwrap();
    log.run(Command::PutPart { idx: 0, part });
    step_over(&mut log, Some("s2"));
    answer(
        &mut log,
        vec![json!({"type": "output_text", "text": "Done."})],
        "end_turn",
    );
    over(&mut log);
    let events = events(&log);
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ];
    assert_eq!(types(&events), expected);
    let last = Client::of(&events).last.unwrap();
    let kinds: Vec<&str> = last["output"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["function_call", "function_call_output", "message"]);
    assert_eq!(last["output"][1]["output"], "{\"seen\":[1]}");
    assert_eq!(last["usage"]["input_tokens"], 10);
}

#[test]
fn reasoning_is_over_before_the_text_begins() {
    for (summary, delta) in [
        (true, "response.reasoning_summary_text.delta"),
        (false, "response.reasoning.delta"),
    ] {
        let echo = Echo {
            summary,
            ..Echo::default()
        };
        let mut log = begun(Some(run(&echo)));
        emit(
            &mut log,
            "reasoning-delta",
            json!({"id": "r0-0", "delta": "Hm."}),
        );
        text(&mut log, "Yes.");
        let parts = vec![
            json!({"type": "reasoning", "text": "Hm.", "signature": "sig", "provider": "p"}),
            json!({"type": "output_text", "text": "Yes."}),
        ];
        answer(&mut log, parts, "end_turn");
        over(&mut log);
        let events = events(&log);
        let types = types(&events);
        assert!(types.contains(&delta));
        let done = types
            .iter()
            .position(|kind| *kind == "response.output_item.done")
            .unwrap();
        let text = types
            .iter()
            .position(|kind| *kind == "response.output_text.delta")
            .unwrap();
        assert!(done < text);
        let last = Client::of(&events).last.unwrap();
        let member = if summary { "summary" } else { "content" };
        assert_eq!(last["output"][0][member][0]["text"], "Hm.");
        assert_eq!(last["output"][0].get("encrypted_content"), None);
    }
}

#[test]
fn reasoning_goes_out_sealed_only_where_that_was_asked_for() {
    let parts = || {
        vec![
            json!({"type": "reasoning", "text": "", "signature": "s1", "provider": "p"}),
            json!({"type": "reasoning", "text": "Hm.", "signature": "s2", "provider": "p"}),
            json!({"type": "output_text", "text": "Yes."}),
        ]
    };
    let output = |encrypted_reasoning| {
        let echo = Echo {
            encrypted_reasoning,
            ..Echo::default()
        };
        let mut log = begun(Some(run(&echo)));
        emit(
            &mut log,
            "reasoning-delta",
            json!({"id": "r0-1", "delta": "Hm."}),
        );
        text(&mut log, "Yes.");
        answer(&mut log, parts(), "end_turn");
        over(&mut log);
        let last = Client::of(&events(&log)).last.unwrap();
        assert_eq!(last, object(&log.records, "e"));
        last["output"].as_array().unwrap().clone()
    };
    let plain = output(false);
    assert_eq!(plain.len(), 2);
    assert_eq!(plain[0].get("encrypted_content"), None);
    let sealed = output(true);
    assert_eq!(sealed.len(), 3);
    assert_eq!(sealed[0]["encrypted_content"], r#"["p","s1"]"#);
    assert_eq!(sealed[1]["encrypted_content"], r#"["p","s2"]"#);
    assert_eq!(sealed[1]["id"], plain[0]["id"]);
}

#[test]
fn citations_are_told_before_their_text_is_over() {
    let cited = json!({"type": "url_citation", "start_index": 0, "end_index": 3, "url": "https://a.b", "title": "A"});
    let mut log = begun(None);
    text(&mut log, "See");
    let items = json!([{"content": 0, "with": {"item": {"content": [{"annotations": [cited]}]}}}]);
    let said = StepResponse {
        metadata: Some(json!({"openai": {"items": items}}).into()),
        ..StepResponse::default()
    };
    log.run(Command::Respond {
        parts: vec![json!({"type": "output_text", "text": "See"}).into()],
        response: Payload::write(&said).unwrap(),
    });
    over(&mut log);
    let events = events(&log);
    let told = events
        .iter()
        .position(|it| it["type"] == "response.output_text.annotation.added")
        .unwrap();
    assert_eq!(events[told]["annotation"], cited);
    assert_eq!(events[told + 1]["type"], "response.output_text.done");
    let last = events.last().unwrap();
    assert_eq!(
        last["response"]["output"][0]["content"][0]["annotations"],
        json!([cited])
    );
}

#[test]
fn what_a_reader_wants_to_see_changes_no_event() {
    let mut asks = ToolPart::call("pay", "c", "{}");
    asks.state = ToolState::ApprovalRequested;
    let mut log = begun(None);
    emit(
        &mut log,
        "reasoning-delta",
        json!({"id": "r0-0", "delta": "Hm."}),
    );
    text(&mut log, "Yes.");
    let parts = vec![
        json!({"type": "reasoning", "text": "", "signature": "s1", "provider": "p"}),
        json!({"type": "reasoning", "text": "Hm.", "signature": "s2", "provider": "p"}),
        json!({"type": "output_text", "text": "Yes."}),
        asks.write().unwrap().value(),
    ];
    answer(&mut log, parts, "tool_use");
    over(&mut log);
    let wanted = ListOptions {
        encrypted_reasoning: true,
        extensions: true,
    };
    let of = ResponseOf::Execution("e".into());
    let read = |after: Option<u64>| {
        let mut stream = ResponseStream::new(of.clone(), EventFraming::Sse).including(wanted);
        if let Some(after) = after {
            stream = stream.starting_after(after);
        }
        let mut out = String::new();
        for record in &log.records {
            stream.apply(record, &mut out);
        }
        events_of(&out).0
    };
    let (first, whole) = (events(&log), read(None));
    assert_eq!(types(&whole), types(&first));
    // All but what has the response say the same.
    let n = first.len() - 1;
    assert_eq!(whole[..n], first[..n]);
    for after in 0..n {
        assert_eq!(read(Some(after as u64)), whole[after + 1..], "{after}");
    }
    let kinds = |last: &Value| -> Vec<(String, Option<String>)> {
        let items = last["response"]["output"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        items
            .map(|item| {
                (
                    text(&item["type"]).unwrap(),
                    text(&item["encrypted_content"]),
                )
            })
            .collect()
    };
    let item = |kind: &str, sealed: Option<&str>| (kind.to_owned(), sealed.map(str::to_owned));
    assert_eq!(
        kinds(&first[n]),
        [
            item("reasoning", None),
            item("message", None),
            item("function_call", None)
        ]
    );
    assert_eq!(
        kinds(&whole[n]),
        [
            item("reasoning", Some(r#"["p","s1"]"#)),
            item("reasoning", Some(r#"["p","s2"]"#)),
            item("message", None),
            item("function_call", None),
        ]
    );
}

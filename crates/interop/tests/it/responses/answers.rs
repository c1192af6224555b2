//! Calls that wait for their client, or for leave.

use super::client::{Client, events_of, stream};
use super::past::{begin, listed};
use super::rig::{answer, begun, call, emit, events, over};
use super::schemas::Published;
use crate::log::{Log, ids};
use loomline_interop::model::{history, marked_history};
use loomline_interop::parts::{StepResponse, ToolApproval, ToolPart, ToolState};
use loomline_interop::responses::{
    CreateRequest, Echo, Last, ListOptions, NewItems, ResponseOf, ThreadInput, conversation_items,
    input_items, response,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use timeline::{
    Answer, AnswerContent, Command, Ending, ItemType, OpenCall, OpenKind, Payload, Rejected,
    StepOutcome, Trigger,
};
use upp::Message;

fn open_call(id: &str, kind: OpenKind) -> OpenCall {
    OpenCall {
        tool_call_id: id.to_owned(),
        kind,
        part: call("look", id, "{}").into(),
        origin: None,
        children: Vec::new(),
    }
}

fn asked(tool: &mut ToolPart) -> Payload {
    tool.state = ToolState::ApprovalRequested;
    tool.approval = Some(ToolApproval {
        id: tool.tool_call_id.clone(),
        approved: None,
        reason: None,
    });
    tool.write().unwrap()
}

/// A thread on which two calls wait: `x` for its client, `p` for leave.
fn waiting(run: Option<Payload>) -> Log {
    let mut log = begun(run);
    emit(
        &mut log,
        "tool-input-start",
        json!({"toolCallId": "x", "toolName": "look"}),
    );
    answer(
        &mut log,
        vec![call("look", "x", "{}"), call("pay", "p", "{\"n\":1}")],
        "tool_use",
    );
    let part = asked(&mut ToolPart::call("pay", "p", "{\"n\":1}"));
    log.run(Command::PutPart { idx: 1, part });
    let open = [
        open_call("x", OpenKind::External),
        open_call("p", OpenKind::Approval),
    ];
    let outcome = StepOutcome {
        open_calls: Some(Payload::write(&open).unwrap()),
        ..StepOutcome::default()
    };
    log.run(Command::ImportStep {
        outcome,
        next: None,
    });
    let ending = Ending::Completed;
    log.run(Command::End { ending });
    log
}

fn said(log: &Log, input: &Value) -> ThreadInput {
    let request = CreateRequest::read(&json!({"conversation": "c", "input": input}))
        .unwrap()
        .value;
    let mut last = 0;
    let mut ids = || {
        last += 1;
        format!("said_{last}")
    };
    request
        .thread_input(&BTreeMap::new(), None, log.at, &mut ids)
        .unwrap()
}

fn output(call: &str) -> Value {
    json!({"type": "function_call_output", "call_id": call, "output": [{"type": "input_text", "text": "seen"}]})
}

fn approve(approve: bool) -> Value {
    json!({"type": "loomline:approval_response", "call_id": "p", "approve": approve, "reason": "too much"})
}

#[test]
fn a_response_that_waits_is_complete_and_has_calls_without_results() {
    let log = waiting(None);
    let last = Client::of(&events(&log)).last.unwrap();
    assert_eq!(last["status"], "completed");
    let kinds: Vec<&Value> = last["output"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["type"])
        .collect();
    assert_eq!(kinds, ["function_call", "function_call"]);
    assert_eq!(last["output"][0]["status"], "completed");
}

#[test]
fn a_question_is_an_item_only_for_clients_that_asked_for_such() {
    let echo = Echo {
        extensions: true,
        ..Echo::default()
    };
    let run = json!({"params": {"echo": {"responses": echo}}}).into();
    let log = waiting(Some(run));
    let last = Client::of(&events(&log)).last.unwrap();
    let question = &last["output"][2];
    assert_eq!(question["type"], "loomline:approval_request");
    assert_eq!(
        (&question["call_id"], &question["arguments"]),
        (&json!("p"), &json!("{\"n\":1}"))
    );
    assert!(question["id"].is_string() && question["status"].is_string());
}

#[test]
fn results_and_leave_are_answers_that_the_thread_takes() {
    let mut log = waiting(None);
    let said = said(&log, &json!([output("x"), approve(true)]));
    let Last::Answers(item) = &said.last else {
        panic!("{said:?}");
    };
    let answers = Answer::read(item.content.as_ref()).unwrap();
    assert_eq!(
        answers[0].content,
        AnswerContent::Output(json!([{"type": "input_text", "text": "seen"}]).into())
    );
    assert_eq!(
        answers[1].content,
        AnswerContent::Approved { arguments: None }
    );
    begin(&mut log, &said, "e2");
}

#[test]
fn an_answer_to_no_call_is_the_threads_to_refuse() {
    let log = waiting(None);
    let said = said(&log, &json!([output("zzz")]));
    let Last::Answers(item) = said.last else {
        panic!("{said:?}");
    };
    let refused = log.state.check_answers(&item).unwrap_err();
    assert!(matches!(refused, Rejected::NotOpen(call) if call == "zzz"));
    let error =
        CreateRequest::read(&json!({"conversation": "c", "input": [output("x"), output("x")]}))
            .unwrap();
    let error = error
        .value
        .thread_input(&BTreeMap::new(), None, log.at, &mut crate::log::ids())
        .unwrap_err();
    assert_eq!(error.param().as_deref(), Some("input[1]"));
}

/// Goes on with the answers: first what came of them, then the model.
fn answered(approved: bool) -> Log {
    let mut log = waiting(None);
    let said = said(
        &log,
        &json!([output("x"), approve(approved), {"role": "user", "content": "and hurry"}]),
    );
    begin(&mut log, &said, "e2");
    let mut given = ToolPart::call("look", "x", "{}");
    let mut allowed = ToolPart::call("pay", "p", "{\"n\":1}");
    allowed.state = ToolState::ApprovalResponded;
    allowed.approval = Some(ToolApproval {
        id: "p".into(),
        approved: Some(approved),
        reason: None,
    });
    let about = StepResponse {
        answers: true,
        ..StepResponse::default()
    };
    log.run(Command::Respond {
        parts: vec![given.write().unwrap(), allowed.write().unwrap()],
        response: Payload::write(&about).unwrap(),
    });
    given.state = ToolState::OutputAvailable;
    given.output = Some(json!("seen").into());
    let part = given.write().unwrap();
    log.run(Command::PutPart { idx: 0, part });
    if approved {
        allowed.state = ToolState::OutputAvailable;
        allowed.output = Some(json!("paid").into());
    } else {
        allowed.state = ToolState::OutputError;
        allowed.outcome = Some("denied".into());
        allowed.error_text = Some("The tool call was denied.".into());
    }
    let part = allowed.write().unwrap();
    log.run(Command::PutPart { idx: 1, part });
    log.run(Command::ImportStep {
        outcome: StepOutcome::default(),
        next: Some("s3".into()),
    });
    answer(
        &mut log,
        vec![json!({"type": "output_text", "text": "Done."})],
        "end_turn",
    );
    over(&mut log);
    log
}

#[test]
fn a_response_to_answers_has_what_the_server_did_and_not_what_the_client_brought() {
    for (approved, expected) in [(true, "paid"), (false, "The tool call was denied.")] {
        let log = answered(approved);
        let (events, _) = events_of(&stream(&log.records, ResponseOf::Execution("e2".into())));
        let last = Client::of(&events).last.unwrap();
        let output = last["output"].as_array().unwrap();
        let kinds: Vec<&Value> = output.iter().map(|it| &it["type"]).collect();
        assert_eq!(kinds, ["function_call_output", "message"]);
        assert_eq!(
            (&output[0]["call_id"], &output[0]["output"]),
            (&json!("p"), &json!(expected))
        );
        assert_eq!(last["usage"]["total_tokens"], 7);
        let read = response(&log.transcript(), &"e2".into()).unwrap().value;
        assert_eq!(serde_json::from_str::<Value>(&read.json).unwrap(), last);
        if let (Some(mut open), Some(mut openai)) =
            (Published::open_responses(), Published::openai())
        {
            for event in &events {
                open.check_event(event);
                openai.check_openai_event(event);
            }
        }
    }
}

#[test]
fn what_came_of_a_call_that_a_sub_agent_held_up_is_shown_in_the_stream_too() {
    let mut log = begun(None);
    answer(&mut log, vec![call("ask", "k", "{}")], "tool_use");
    let open = [open_call("k", OpenKind::Child)];
    let outcome = StepOutcome {
        open_calls: Some(Payload::write(&open).unwrap()),
        ..StepOutcome::default()
    };
    log.run(Command::ImportStep {
        outcome,
        next: None,
    });
    let ending = Ending::Completed;
    log.run(Command::End { ending });
    let resumed = json!([{"type": "loomline-answer", "toolCallId": "k", "resumed": true}]);
    assert_eq!(
        Answer::read(Some(&resumed.clone().into())).unwrap()[0].content,
        AnswerContent::Resumed
    );
    let mut item = super::rig::user("wake");
    item.item_type = timeline::ItemType::ActionResult;
    item.role = None;
    item.content = Some(resumed.into());
    log.run(Command::Start {
        trigger: Trigger::New(item),
        run: None,
        execution_id: "e2".into(),
        reaction_item_id: "a2".into(),
        step_id: "s2".into(),
        workflow_run_id: None,
    });
    let mut tool = ToolPart::call("ask", "k", "{}");
    let about = StepResponse {
        answers: true,
        ..StepResponse::default()
    };
    log.run(Command::Respond {
        parts: vec![tool.write().unwrap()],
        response: Payload::write(&about).unwrap(),
    });
    tool.state = ToolState::OutputAvailable;
    tool.output = Some(json!("found").into());
    let part = tool.write().unwrap();
    log.run(Command::PutPart { idx: 0, part });
    over(&mut log);
    let (events, _) = events_of(&stream(&log.records, ResponseOf::Trigger("wake".into())));
    let last = Client::of(&events).last.unwrap();
    assert_eq!(last["output"][0]["output"], "found");
    let read = response(&log.transcript(), &"e2".into()).unwrap().value;
    assert_eq!(serde_json::from_str::<Value>(&read.json).unwrap(), last);
}

#[test]
fn answers_are_listed_as_the_results_they_brought() {
    let log = answered(true);
    let transcript = log.transcript();
    let list = input_items(&transcript, &"e2".into(), ListOptions::default()).unwrap();
    assert_eq!(list.losses.len(), 1, "{:?}", list.losses);
    let list = listed(list.value);
    assert_eq!(list["data"].as_array().unwrap().len(), 2);
    assert_eq!(list["data"][0]["type"], "function_call_output");
    assert_eq!(list["data"][0]["output"][0]["text"], "seen");
    // What was said beside them follows.
    assert_eq!(list["data"][1]["content"][0]["text"], "and hurry");
    let all = |extensions| {
        let options = ListOptions {
            extensions,
            encrypted_reasoning: false,
        };
        listed(conversation_items(&transcript, options).value)["data"]
            .as_array()
            .unwrap()
            .len()
    };
    // The question and its answer are two items more.
    assert_eq!(all(true), all(false) + 2);
}

#[test]
fn what_is_said_beside_answers_does_not_take_their_place() {
    let log = waiting(None);
    let said = said(
        &log,
        &json!([{"role": "user", "content": "hurry"}, output("x")]),
    );
    let Last::Answers(item) = &said.last else {
        panic!("{said:?}");
    };
    assert_eq!(Answer::read(item.content.as_ref()).unwrap().len(), 1);
    assert!(item.content.as_ref().unwrap().text().contains("hurry"));
    assert!(said.records.is_empty());
}

#[test]
fn the_last_message_begins_the_execution_and_those_before_it_are_kept() {
    let log = waiting(None);
    let said_ = said(
        &log,
        &json!([{"role": "developer", "content": "a"}, {"role": "user", "content": "b"}, {"role": "user", "content": "c"}]),
    );
    assert_eq!(said_.records.len(), 2);
    assert!(said_.past.is_empty());
    assert!(
        matches!(&said_.last, Last::Item(item) if item.content.as_ref().unwrap().text().contains("\"c\""))
    );
    // Nothing said, or an assistant's word last: the model goes on by itself.
    for input in [json!([]), json!([{"role": "assistant", "content": "a"}])] {
        let said = said(&log, &input);
        let Last::Item(item) = &said.last else {
            panic!("{said:?}");
        };
        assert_eq!(item.item_type, timeline::ItemType::ItemReference);
        let mut log = waiting(None);
        log.run(Command::Start {
            trigger: Trigger::New(item.clone()),
            run: None,
            execution_id: "e2".into(),
            reaction_item_id: "a2".into(),
            step_id: "s2".into(),
            workflow_run_id: None,
        });
    }
    let call =
        json!([{"type": "function_call", "call_id": "n", "name": "look", "arguments": "{}"}]);
    let request = CreateRequest::read(&json!({"conversation": "c", "input": call}))
        .unwrap()
        .value;
    let error = request
        .thread_input(&BTreeMap::new(), None, log.at, &mut crate::log::ids())
        .unwrap_err();
    assert_eq!(error.code, "unsupported_value");
    // With its result it is kept, and what is said behind it is answered.
    let output = json!({"type": "function_call_output", "call_id": "n", "output": "seen"});
    let pair = json!([call[0], output, {"role": "user", "content": "and?"}]);
    let said_ = said(&log, &pair);
    let types: Vec<_> = said_.records.iter().map(|item| item.item_type).collect();
    assert_eq!(types, [ItemType::ActionExecute, ItemType::ActionResult]);
    assert!(matches!(&said_.last, Last::Item(item) if item.item_type == ItemType::Message));
    let said_ = said(&log, &json!([call[0], output]));
    assert_eq!(said_.records.len(), 2);
    assert!(matches!(&said_.last, Last::Item(item) if item.item_type == ItemType::ItemReference));
}

#[test]
fn a_call_that_is_kept_with_its_result_comes_after_what_waits() {
    let mut log = waiting(None);
    let pair = json!([
        {"type": "function_call", "call_id": "own", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "own", "output": "seen"},
    ]);
    let shown = |log: &Log| -> Vec<String> {
        let messages = history(&log.transcript(), None);
        let ids = messages.iter().flat_map(|message| match message {
            Message::User(_) => vec!["user".to_owned()],
            Message::Assistant(said) => {
                let calls = said.tool_calls.iter();
                calls
                    .map(|it| it.tool_call_id.as_str().to_owned())
                    .collect()
            }
            Message::ToolResult(results) => {
                let results = results.results.iter();
                results
                    .map(|it| format!("={}", it.tool_call_id.as_str()))
                    .collect()
            }
        });
        ids.collect()
    };
    let waits = shown(&log);
    let kept = NewItems::read(&json!({"items": pair})).unwrap();
    for item in kept.records(&mut ids()).unwrap().value {
        log.run(Command::Record { item });
    }
    // Between a call and its result no model takes another one.
    assert_eq!(shown(&log), waits);
    assert!(marked_history(&log.transcript(), None).holds_back);
    let next = said(&log, &json!("never mind"));
    begin(&mut log, &next, "next");
    let after = ["=x", "=p", "own", "=own", "user"].map(str::to_owned);
    assert_eq!(shown(&log), [waits.as_slice(), &after].concat());
    assert!(!marked_history(&log.transcript(), None).holds_back);
}

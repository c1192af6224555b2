//! What becomes of the past that a request brings with it.

use super::past::{bare, begin, listed, log_of, said};
use crate::log::{Log, ids};
use crate::native::thread;
use loomline_interop::model::history;
use loomline_interop::responses::{
    CreateRequest, Last, ListOptions, Tokens, compaction, conversation_items, input_items,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use timeline::{Answer, AnswerContent, Command, Ending, NewItem, StepOutcome};
use upp::Message;

fn message(role: &str, text: &str) -> Value {
    json!({"type": "message", "role": role, "content": text})
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "look", "arguments": "{}"})
}

fn output(id: &str, text: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": text})
}

/// What a model is shown, in short.
fn shown(log: &Log) -> Vec<String> {
    let messages = history(&log.transcript(), None);
    messages
        .iter()
        .map(|message| match message {
            Message::User(user) => format!("user: {:?}", user.content.len()),
            Message::Assistant(said) => format!(
                "assistant: {} + {}",
                said.content.len(),
                said.tool_calls.len()
            ),
            Message::ToolResult(results) => format!(
                "results: {}",
                results
                    .results
                    .iter()
                    .map(|it| it.result.to_string())
                    .collect::<String>()
            ),
        })
        .collect()
}

#[test]
fn a_model_is_shown_the_past_with_its_calls_and_their_results() {
    let input = json!([
        message("system", "be brief"), message("user", "look"),
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "[\"p\",\"sig\"]"},
        call("a"), call("b"), output("b", "2"), output("a", "1"),
        message("assistant", "seen"), message("user", "and?"), message("user", "well?"),
    ]);
    let said = said(&json!({"input": input})).unwrap();
    assert!(
        matches!(&said.last, Last::Item(item) if item.content.as_ref().unwrap().text().contains("well?"))
    );
    let log = log_of(&said);
    let expected = [
        "user: 1",
        "user: 1",
        "assistant: 1 + 2",
        "results: \"1\"\"2\"",
        "assistant: 1 + 0",
        "user: 1",
        "user: 1",
    ];
    assert_eq!(shown(&log), expected);
    let messages = history(&log.transcript(), None);
    let Message::Assistant(thought) = &messages[2] else {
        panic!("{messages:?}");
    };
    let signed = matches!(&thought.content[0], upp::AssistantContent::Reasoning { signature: Some(sig), .. } if sig == "sig");
    assert!(signed);
}

#[test]
fn what_a_request_brings_says_that_it_was_brought() {
    let said = said(
        &json!({"input": [message("user", "a"), message("assistant", "b"), message("user", "c")]}),
    )
    .unwrap();
    let texts: Vec<String> = said
        .past
        .iter()
        .map(|(_, command)| format!("{command:?}"))
        .collect();
    assert!(texts[0].contains("\"imported\":true"), "{}", texts[0]);
    assert!(texts[1].contains("\"imported\":true"), "{}", texts[1]);
    assert!(matches!(
        said.past.last(),
        Some((
            _,
            Command::End {
                ending: Ending::Completed
            }
        ))
    ));
}

#[test]
fn results_at_the_end_answer_the_calls_before_them() {
    let input = json!([
        message("user", "look"),
        call("a"),
        call("b"),
        output("a", "1"),
        output("b", "2")
    ]);
    let request = CreateRequest::read(&json!({"input": input})).unwrap().value;
    let run = json!({"agent": "ada"}).into();
    let at = "2026-01-05T08:00:00Z".parse().unwrap();
    let said = request
        .thread_input(&BTreeMap::new(), Some(&run), at, &mut ids())
        .unwrap();
    let Last::Answers(item) = &said.last else {
        panic!("{:?}", said.last);
    };
    assert!(
        !item
            .content
            .as_ref()
            .unwrap()
            .text()
            .contains(timeline::ATTACHED_MESSAGE)
    );
    let answers = Answer::read(item.content.as_ref()).unwrap();
    assert_eq!(answers.len(), 2);
    assert_eq!(answers[1].content, AnswerContent::Output(json!("2").into()));
    // The thread takes the answers, for the calls wait for them.
    let mut log = Log::new(thread(), at);
    for (_, command) in &said.past {
        log.run(command.clone());
    }
    let open = log.state.open().unwrap();
    assert_eq!(open.calls.len(), 2);
    assert_eq!(open.execution.run, Some(run));
    begin(&mut log, &said, "now");
    assert!(log.state.active().is_some());
}

#[test]
fn an_input_that_ends_with_an_assistant_goes_on_from_there() {
    let said = said(&json!({"input": [message("user", "a"), message("assistant", "b")]})).unwrap();
    let Last::Item(item) = &said.last else {
        panic!("{:?}", said.last);
    };
    assert_eq!(item.item_type, timeline::ItemType::ItemReference);
    assert_eq!(shown(&log_of(&said)), ["user: 1", "assistant: 1 + 0"]);
}

#[test]
fn calls_and_results_must_belong_together() {
    let refused = |input: Value| said(&json!({"input": input})).unwrap_err();
    let error = refused(json!([
        message("user", "a"),
        call("x"),
        message("user", "b")
    ]));
    assert_eq!(error.message, "No tool output found for function call x.");
    assert_eq!(error.param().as_deref(), Some("input[1]"));
    let error = refused(json!([message("user", "a"), call("x")]));
    assert_eq!(error.message, "No tool output found for function call x.");
    let error = refused(json!([message("user", "a"), output("x", "1")]));
    assert_eq!(
        error.message,
        "No tool call found for function call output with call_id x."
    );
    assert_eq!(error.param().as_deref(), Some("input[1]"));
    let error = refused(json!([call("x"), output("x", "1"), output("x", "2")]));
    assert_eq!(error.param().as_deref(), Some("input[2]"));
}

#[test]
fn a_summary_stands_for_what_came_before() {
    let compact = compaction(
        "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5061",
        "2026-01-05T08:00:00Z".parse().unwrap(),
        &[],
        "They met.",
        Tokens::default(),
    );
    let compact: Value = serde_json::from_str(&compact).unwrap();
    let mut input = compact["output"].as_array().unwrap().clone();
    input.push(json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and?"}]}));
    let said = said(&json!({"input": input, "tools": []})).unwrap();
    let log = log_of(&said);
    let messages = history(&log.transcript(), None);
    assert!(
        matches!(&messages[0], Message::User(user) if format!("{:?}", user.content).contains("They met."))
    );
    let list = listed(conversation_items(&log.transcript(), ListOptions::default()).value);
    assert_eq!(list["data"][0]["type"], "compaction");
    assert_eq!(
        list["data"][0]["encrypted_content"],
        input[0]["encrypted_content"]
    );
    let error = super::past::said(
        &json!({"input": [{"type": "compaction", "encrypted_content": "gAAAA"}]}),
    )
    .unwrap_err();
    assert_eq!(error.param().as_deref(), Some("input[0].encrypted_content"));
}

#[test]
fn items_that_are_only_named_are_put_in_place() {
    let body = json!({"input": [message("user", "a"), {"type": "item_reference", "id": "msg_1"}, {"id": "msg_2"}]});
    let request = CreateRequest::read(&body).unwrap().value;
    let names: Vec<(&str, &str)> = request.references().collect();
    assert_eq!(names, [("msg_1", "/input/1"), ("msg_2", "/input/2")]);
    let at = "2026-01-05T08:00:00Z".parse().unwrap();
    let mut known = BTreeMap::from([("msg_1".to_owned(), message("assistant", "b"))]);
    let error = request
        .thread_input(&known, None, at, &mut ids())
        .unwrap_err();
    assert_eq!(
        (error.code, error.param().as_deref()),
        ("item_not_found", Some("input[2].id"))
    );
    known.insert("msg_2".to_owned(), message("user", "c"));
    let said = request.thread_input(&known, None, at, &mut ids()).unwrap();
    assert_eq!(
        shown(&log_of(&said)),
        ["user: 1", "assistant: 1 + 0", "user: 1"]
    );
}

#[test]
fn an_item_that_waits_is_as_any_other() {
    // Something was said beside an execution: it is input of the response that comes after.
    let first = said(&json!({"input": "one"})).unwrap();
    let mut log = log_of(&first);
    let content = json!([{"type": "input_text", "text": "beside"}]).into();
    log.run(Command::Record {
        item: NewItem::user("beside", content),
    });
    log.run(Command::ImportStep {
        outcome: StepOutcome::default(),
        next: None,
    });
    let ending = Ending::Completed;
    log.run(Command::End { ending });
    let body = json!({"conversation": "c", "input": [message("user", "two")]});
    let request = CreateRequest::read(&body).unwrap().value;
    let mut last = 100;
    let mut ids = || {
        last += 1;
        format!("id_{last}")
    };
    let second = request
        .thread_input(&BTreeMap::new(), None, log.at, &mut ids)
        .unwrap();
    begin(&mut log, &second, "later");
    let items = input_items(&log.transcript(), &"later".into(), ListOptions::default()).unwrap();
    let texts: Vec<Value> = bare(&listed(items.value))
        .iter()
        .map(|it| it["content"][0]["text"].clone())
        .collect();
    assert_eq!(texts, ["beside", "two"]);
}

//! The past that a request brings with it.

use super::schemas::Published;
use crate::dice::Dice;
use crate::log::{Log, ids};
use crate::native::thread;
use loomline_interop::responses::{
    CreateRequest, Last, ListOptions, ListPage, RequestError, ThreadInput, conversation_items,
    input_items,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use timeline::{Command, Trigger};

pub(super) fn said(body: &Value) -> Result<ThreadInput, RequestError> {
    let request = CreateRequest::read(body)?.value;
    let at = "2026-01-05T08:00:00Z".parse().unwrap();
    request.thread_input(&BTreeMap::new(), None, at, &mut ids())
}

/// The log of a thread on which this was said, with the execution that answers it begun.
pub(super) fn log_of(said: &ThreadInput) -> Log {
    let mut log = Log::new(thread(), "2026-01-05T08:00:00Z".parse().unwrap());
    for (_, command) in &said.past {
        log.run(command.clone());
    }
    begin(&mut log, said, "now");
    log
}

/// Says it on a thread.
pub(super) fn begin(log: &mut Log, said: &ThreadInput, execution: &str) {
    for item in &said.records {
        log.run(Command::Record { item: item.clone() });
    }
    let (Last::Item(trigger) | Last::Answers(trigger)) = &said.last;
    log.run(Command::Start {
        trigger: Trigger::New(trigger.clone()),
        run: None,
        execution_id: execution.into(),
        reaction_item_id: format!("{execution}-item").as_str().into(),
        step_id: format!("{execution}-step").as_str().into(),
        workflow_run_id: None,
    });
}

fn part(dice: &mut Dice<'_>) -> Value {
    dice.pick(&[
        json!({"type": "input_text", "text": "hi"}),
        json!({"type": "input_image", "image_url": "https://a.b/c.png", "detail": "low"}),
        json!({"type": "input_file", "file_url": "https://a.b/c.pdf", "filename": "c.pdf"}),
        json!({"type": "input_file", "file_data": "data:text/plain;base64,AAAA", "filename": "c.txt"}),
    ])
}

/// An input that begins a thread, as lists give it back.
fn input(bytes: &[u8]) -> Vec<Value> {
    let mut dice = Dice::new(bytes);
    let mut items = Vec::new();
    let mut n_calls = 0;
    for _ in 0..=dice.roll(8) {
        let message = |role: &str, content: Value| json!({"type": "message", "role": role, "content": content});
        match dice.roll(5) {
            0 => {
                let role = dice.pick(&["system", "developer"]);
                items.push(message(
                    role,
                    json!([{"type": "input_text", "text": "be brief"}]),
                ));
            }
            1 | 2 => items.push(message("user", json!([part(&mut dice), part(&mut dice)]))),
            3 => {
                let text = json!({"type": "output_text", "text": "hello", "annotations": [], "logprobs": []});
                let refusal = json!({"type": "refusal", "refusal": "no"});
                let mut said = message("assistant", json!([dice.pick(&[text, refusal])]));
                if dice.one_in(2) {
                    said["phase"] = dice.pick(&["commentary", "final_answer"]).into();
                }
                items.push(said);
            }
            _ => {
                if dice.one_in(2) {
                    items.push(json!({"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}));
                }
                let calls: Vec<String> = (0..=dice.roll(2))
                    .map(|n| format!("call_{}", n_calls + n))
                    .collect();
                n_calls += calls.len();
                for call in &calls {
                    items.push(json!({"type": "function_call", "call_id": call, "name": "look", "arguments": "{\"a\": 1}"}));
                }
                for call in &calls {
                    let output =
                        dice.pick(&[json!("ok"), json!([{"type": "input_text", "text": "ok"}])]);
                    items.push(
                        json!({"type": "function_call_output", "call_id": call, "output": output}),
                    );
                }
            }
        }
    }
    items
}

/// Items without what they get from the server.
pub(super) fn bare(items: &Value) -> Vec<Value> {
    let items = items["data"].as_array().unwrap().iter().cloned();
    items
        .map(|mut item| {
            for key in ["id", "status"] {
                item.as_object_mut().unwrap().remove(key);
            }
            item
        })
        .collect()
}

pub(super) fn listed(items: Vec<loomline_interop::responses::ListedItem>) -> Value {
    let page = ListPage::read(Some("100"), Some("asc"), None).unwrap();
    serde_json::from_str(&page.list(items).unwrap()).unwrap()
}

proptest! {
    #[test]
    fn the_past_of_a_request_is_listed_as_it_was_sent(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let input = input(&bytes);
        let said = said(&json!({"input": input})).unwrap();
        let log = log_of(&said);
        let transcript = log.transcript();
        let list = input_items(&transcript, &"now".into(), ListOptions::default()).unwrap();
        prop_assert_eq!(&list.losses, &[]);
        let list = listed(list.value);
        prop_assert_eq!(bare(&list), input);
        let ids: std::collections::BTreeSet<&str> = list["data"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
        prop_assert_eq!(ids.len(), list["data"].as_array().unwrap().len());
        // A conversation has the same, for its answer has said nothing yet.
        let all = conversation_items(&transcript, ListOptions::default());
        prop_assert_eq!(&listed(all.value), &list);
    }

    #[test]
    fn what_is_listed_can_be_sent_again(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let first = said(&json!({"input": input(&bytes)})).unwrap();
        let transcript = log_of(&first).transcript();
        let list = listed(conversation_items(&transcript, ListOptions::default()).value);
        prop_assert_eq!(said(&json!({"input": list["data"]})).unwrap(), first);
    }
}

#[test]
fn lists_satisfy_the_published_schemas() {
    let (Some(mut open), Some(mut openai)) = (Published::open_responses(), Published::openai())
    else {
        return;
    };
    for seed in 0..60u8 {
        let bytes: Vec<u8> = (0..60u8)
            .map(|n| n.wrapping_mul(29).wrapping_add(seed))
            .collect();
        let said = said(&json!({"input": input(&bytes)})).unwrap();
        let transcript = log_of(&said).transcript();
        let options = ListOptions {
            encrypted_reasoning: true,
            extensions: false,
        };
        let list = listed(conversation_items(&transcript, options).value);
        openai.check("ConversationItemList", &list);
        let inputs = listed(
            input_items(&transcript, &"now".into(), options)
                .unwrap()
                .value,
        );
        openai.check("ResponseItemList", &inputs);
        for item in list["data"].as_array().unwrap() {
            open.check("ItemField", item);
        }
    }
}

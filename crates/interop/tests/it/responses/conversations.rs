//! Conversations, and what is deleted, counted and compacted.

use super::past::listed;
use super::schemas::Published;
use crate::log::{Log, ids};
use crate::native::thread;
use loomline_interop::responses::{
    CompactRequest, Continues, CreateConversation, CreateRequest, ListOptions, NewItems, Tokens,
    compaction, conversation, conversation_item, conversation_items, deleted_conversation,
    deleted_response, input_tokens, read_conversation_update, read_input_tokens, stored_items,
    updated_metadata, walk_items,
};
use serde_json::{Map, Value, json};
use timeline::{Command, NewItem, Payload, Trigger};

const ID: &str = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5061";

fn call() -> Value {
    json!({"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"})
}

fn output() -> Value {
    json!({"type": "function_call_output", "call_id": "c", "output": "seen"})
}

fn at() -> jiff::Timestamp {
    "2026-01-05T08:00:00Z".parse().unwrap()
}

#[test]
fn a_conversation_begins_with_what_it_is_given() {
    let body = json!({"metadata": {"topic": "demo"}, "items": [
        {"role": "user", "content": "look"}, call(), output(), {"role": "user", "content": "and?"},
    ]});
    let create = CreateConversation::read(&body).unwrap();
    assert_eq!(
        Value::Object(create.metadata.clone()),
        json!({"topic": "demo"})
    );
    let mut log = Log::new(thread(), at());
    for (at, command) in create.commands(at(), &mut ids()).unwrap() {
        log.run_at(at, command);
    }
    let transcript = log.transcript();
    let all = conversation_items(&transcript, ListOptions::default()).value;
    let walked = walk_items(&transcript, ListOptions::default());
    let mut walked: Vec<_> = walked.rev().collect();
    walked.reverse();
    assert_eq!(walked, all);
    let list = listed(all);
    let kinds: Vec<&Value> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["type"])
        .collect();
    assert_eq!(
        kinds,
        [
            "message",
            "function_call",
            "function_call_output",
            "message"
        ]
    );
    let id = list["data"][1]["id"].as_str().unwrap();
    let one = conversation_item(&log.transcript(), id, ListOptions::default()).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&one.json).unwrap(),
        list["data"][1]
    );
    assert_eq!(
        conversation_item(&log.transcript(), "fc_x", ListOptions::default()),
        None
    );
}

#[test]
fn calls_at_the_end_of_a_new_conversation_wait_for_their_results() {
    let body = json!({"items": [{"role": "user", "content": "look"}, call()]});
    let mut log = Log::new(thread(), at());
    for (at, command) in CreateConversation::read(&body)
        .unwrap()
        .commands(at(), &mut ids())
        .unwrap()
    {
        log.run_at(at, command);
    }
    assert_eq!(log.state.open().unwrap().calls[0].tool_call_id, "c");
}

#[test]
fn items_are_kept_in_order_and_models_are_shown_calls_with_their_results() {
    let reasoning =
        json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]});
    let body = json!({"items": [{"role": "user", "content": "look"}, reasoning, call(), output()]});
    let records = NewItems::read(&body).unwrap().records(&mut ids()).unwrap();
    let pointers: Vec<&str> = records
        .losses
        .iter()
        .map(|loss| loss.pointer.as_str())
        .collect();
    assert_eq!(pointers, [""; 0]);
    let alone = NewItems::read(&json!({"items": [call()]})).unwrap();
    assert_eq!(alone.records(&mut ids()).unwrap().losses.len(), 1);
    let mut log = Log::new(thread(), at());
    for item in &records.value {
        log.run(Command::Record { item: item.clone() });
    }
    let shown = loomline_interop::model::history(&log.transcript(), None);
    let [.., asked, given] = shown.as_slice() else {
        panic!("{shown:?}");
    };
    let asked = &asked.as_assistant().unwrap().tool_calls[0];
    assert_eq!(
        (asked.tool_call_id.as_str(), &*asked.tool_name),
        ("c", "look")
    );
    let given = &given.as_tool_result().unwrap().results[0];
    assert_eq!(given.tool_call_id.as_str(), "c");
    assert_eq!(serde_json::to_value(&given.result).unwrap(), "seen");
    let list = conversation_items(&log.transcript(), ListOptions::default());
    assert_eq!(list.losses, []);
    let list = listed(list.value);
    let kept: Value = serde_json::from_str(&stored_items(&records.value, at())).unwrap();
    assert_eq!(kept, list);
    assert_eq!(list["data"][2]["arguments"], "{}");
    assert_eq!(list["data"][3]["output"], "seen");
    if let (Some(mut open), Some(mut openai)) = (Published::open_responses(), Published::openai()) {
        openai.check("ConversationItemList", &list);
        for item in list["data"].as_array().unwrap() {
            open.check("ItemField", item);
        }
    }
}

#[test]
fn at_most_twenty_items_come_at_once() {
    let body = |n| json!({"items": vec![json!({"role": "user", "content": "x"}); n]});
    assert!(NewItems::read(&body(20)).is_ok());
    assert_eq!(
        NewItems::read(&body(21)).unwrap_err().code,
        "array_above_max_length"
    );
    assert!(CreateConversation::read(&body(21)).is_err());
    assert_eq!(
        NewItems::read(&json!({})).unwrap_err().param().as_deref(),
        Some("items")
    );
    let reference = json!({"items": [{"type": "item_reference", "id": "msg_1"}]});
    assert_eq!(
        NewItems::read(&reference)
            .unwrap()
            .records(&mut ids())
            .unwrap_err()
            .code,
        "item_not_found"
    );
}

#[test]
fn a_client_can_not_note_what_is_the_servers_own_or_aitps_on_a_conversation() {
    for key in ["threadprotocol", "uap", "threads", "actors", "parent_id"] {
        let body = json!({"metadata": {key: "x"}});
        let create = CreateConversation::read(&body).map(|_| ());
        let update = read_conversation_update(&body).map(|_| ());
        for refused in [create, update] {
            let error = refused.unwrap_err();
            let param = error.param().unwrap();
            assert_eq!(param, format!("metadata.{key}"));
            assert!(error.message.contains("own"), "{error}");
        }
        let mut new = thread();
        new.metadata = Some(body["metadata"].clone().into());
        let log = Log::new(new, at());
        let object = conversation(log.state.thread().unwrap());
        assert_eq!(object["metadata"], json!({}));
    }
    // What is noted on a response is kept with its request.
    let body = json!({"input": "hi", "metadata": {"threads": "x", "parent_id": "y"}});
    let read = CreateRequest::read(&body).unwrap().value;
    assert_eq!(
        read.options.echo["responses"]["said"]["metadata"],
        body["metadata"]
    );
}

#[test]
fn a_conversation_has_the_texts_of_its_threads_metadata() {
    let mut new = thread();
    new.metadata = Some(json!({"topic": "demo", "threadprotocol": {"n": 1}}).into());
    let log = Log::new(new, at());
    let object = conversation(log.state.thread().unwrap());
    assert_eq!(object["id"], "conv_0197b2c4000070008000000000000001");
    assert_eq!(object["metadata"], json!({"topic": "demo"}));
    assert_eq!(object["created_at"].as_i64().unwrap(), at().as_second() + 1);
    let update = read_conversation_update(&json!({"metadata": {"a": "b"}})).unwrap();
    assert_eq!(update, Map::from_iter([("a".to_owned(), "b".into())]));
    assert!(read_conversation_update(&json!({})).is_err());
    let kept = updated_metadata(log.state.thread().unwrap().metadata.as_ref(), update);
    assert_eq!(kept.value(), json!({"threadprotocol": {"n": 1}, "a": "b"}));
    if let Some(mut openai) = Published::openai() {
        openai.check("ConversationResource", &object);
        openai.check(
            "DeletedConversationResource",
            &deleted_conversation("conv_1"),
        );
    }
    assert_eq!(
        deleted_response("resp_1"),
        json!({"id": "resp_1", "object": "response", "deleted": true})
    );
}

#[test]
fn a_result_with_a_video_is_listed_as_it_was_given() {
    let video = json!([{"type": "input_video", "video_url": "https://a.b/c.mp4"}]);
    let mut given = output();
    given["output"] = video.clone();
    let items = NewItems::read(&json!({"items": [given]})).unwrap();
    let records = items.records(&mut ids()).unwrap().value;
    let list: Value = serde_json::from_str(&stored_items(&records, at())).unwrap();
    assert_eq!(list["data"][0]["output"], video);
}

#[test]
fn a_compaction_has_what_users_said_and_a_summary() {
    let body = json!({"model": "small", "prompt_cache_key": "k", "instructions": "i", "input": [
        {"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}, {"role": "user", "content": "three"},
    ]});
    let request = CompactRequest::read(&body).unwrap();
    let kept = request.user_messages(at(), &mut ids());
    assert_eq!(kept.len(), 2);
    let tokens = Tokens {
        input_tokens: 9,
        output_tokens: 4,
        ..Tokens::default()
    };
    let object: Value =
        serde_json::from_str(&compaction(ID, at(), &kept, "They count.", tokens)).unwrap();
    assert_eq!(object["output"][2]["type"], "compaction");
    assert_eq!(
        object["output"][2]["id"],
        "cmp_0190a3c45b6d7e8f9a0b1c2d3e4f5061"
    );
    assert_eq!(object["usage"]["total_tokens"], 13);
    if let (Some(mut open), Some(mut openai)) = (Published::open_responses(), Published::openai()) {
        open.check("CompactResource", &object);
        openai.check("CompactResource", &object);
    }
    let missing = CompactRequest::read(&json!({"input": "hi"})).unwrap_err();
    assert_eq!(
        (missing.code, missing.param().as_deref()),
        ("missing_required_parameter", Some("model"))
    );
    // What is to be put in brief is what a response would be to.
    let create = request.as_create();
    assert_eq!(
        (create.continues, create.input.len()),
        (Continues::Nothing, 3)
    );
    assert_eq!(create.options.instructions.as_deref(), Some("i"));
    assert!(CompactRequest::read(&json!({"model": "m"})).is_err());
}

#[test]
fn tokens_are_counted_of_what_a_response_would_be_to() {
    let request = read_input_tokens(&json!({"input": "hi", "model": "small"})).unwrap();
    assert_eq!(request.input.len(), 1);
    let counted = input_tokens(11);
    assert_eq!(
        counted,
        json!({"object": "response.input_tokens", "input_tokens": 11})
    );
    if let Some(mut openai) = Published::openai() {
        openai.check("TokenCountsResource", &counted);
    }
}

#[test]
fn what_was_kept_by_others_as_an_action_is_told() {
    let mut log = Log::new(thread(), at());
    let mut item = NewItems::read(&json!({"items": [call()]}))
        .unwrap()
        .records(&mut ids())
        .unwrap()
        .value
        .remove(0);
    item.content = Some(Payload::from(json!([{"type": "app-kept"}])));
    log.run(Command::Record { item });
    let list = conversation_items(&log.transcript(), ListOptions::default());
    assert_eq!((list.value.len(), list.losses.len()), (0, 1));
}

#[test]
fn an_item_reference_is_a_reported_loss_of_the_list() {
    let mut log = Log::new(thread(), at());
    let item = NewItem::reference("points", Some(&"elsewhere".into()));
    log.run(Command::Record { item });
    log.run(Command::Start {
        trigger: Trigger::New(NewItem::reference("begins", None)),
        run: None,
        execution_id: "e".into(),
        reaction_item_id: "a".into(),
        step_id: "s".into(),
        workflow_run_id: None,
    });
    let list = conversation_items(&log.transcript(), ListOptions::default());
    assert!(list.value.is_empty());
    let told: Vec<&str> = list.losses.iter().map(|it| it.pointer.as_str()).collect();
    assert_eq!(
        told,
        ["/entries/0"],
        "one that only begins a run says nothing"
    );
}

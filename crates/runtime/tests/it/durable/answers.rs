//! Calls that wait for somebody, and what somebody says.

use crate::durable::model::{Canned, call};
use crate::durable::rig::{Client, KEY, approve, bring, deny, tenant};
use crate::durable::strategies::options;
use crate::durable::tools::{World, all};
use agents::Loop;
use interop::model::history;
use interop::parts::ToolPart;
use loomline_runtime as runtime;
use runtime::RuntimeError;
use serde_json::{Value, json};
use std::sync::Arc;
use store::Filter;
use timeline::{
    Event, ExecutionStatus, ItemType, NewItem, OpenKind, Record, Rejected, Seq, verify,
};
use upp::{Message, ToolCall, ToolResult};

fn three() -> Vec<ToolCall> {
    vec![
        call("a", "approved"),
        call("b", "approved"),
        call("x", "external"),
        call("p", "pure"),
    ]
}

/// A thread whose last response has calls that wait: two approvals and a result.
async fn waiting(world: &World) -> (Client, Arc<Canned>) {
    let model = Canned::rounds(vec![three()]);
    let agent = options(model.clone(), Arc::new(Loop::default()), all(world));
    let mut client = Client::calm(agent);
    client.say("go").await;
    client.rest().await;
    (client, model)
}

async fn log(client: &Client) -> Vec<Record> {
    let read = client.runtime.read(&tenant(), KEY, Seq::ZERO, 10_000).await;
    read.unwrap().into_iter().map(|it| it.record).collect()
}

/// All results the model is shown, by call.
async fn results(client: &Client) -> Vec<ToolResult> {
    let messages = history(&client.transcript().await, None);
    let results = messages.into_iter().filter_map(|message| match message {
        Message::ToolResult(message) => Some(message.results.clone()),
        Message::User(_) | Message::Assistant(_) => None,
    });
    let mut results: Vec<ToolResult> = results.flatten().collect();
    results.sort_by(|a, b| a.tool_call_id.cmp(&b.tool_call_id));
    results
}

fn kinds(open: &[timeline::OpenCall]) -> Vec<(&str, OpenKind)> {
    let kinds = open.iter().map(|it| (it.tool_call_id.as_str(), it.kind));
    kinds.collect()
}

#[tokio::test]
async fn a_run_that_waits_is_complete_and_leaves_its_calls_open() {
    let world = World::default();
    let (mut client, model) = waiting(&world).await;
    let open = client.open().await;
    let expected = [
        ("a", OpenKind::Approval),
        ("b", OpenKind::Approval),
        ("x", OpenKind::External),
    ];
    assert_eq!(kinds(&open), expected);
    let states = open.iter().map(|it| it.part.value()["state"].clone());
    let states: Vec<Value> = states.collect();
    assert_eq!(
        states,
        [
            "approval-requested",
            "approval-requested",
            "input-available"
        ]
    );
    assert_eq!(world.n_runs("approved", "a"), 0);
    assert_eq!(world.n_runs("pure", "p"), 1);
    let records = log(&client).await;
    assert_eq!(verify(&records), Ok(()));
    let completed = |record: &Record| matches!(record.event, Event::ExecutionStatusChanged { to, .. } if to == ExecutionStatus::Completed);
    assert_eq!(records.iter().filter(|it| completed(it)).count(), 1);
    assert_eq!(model.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn answers_come_in_any_order_and_to_another_process() {
    let answers = [approve("a"), deny("b"), bring("x", &json!({"big": 1.50}))];
    for order in [
        [0, 1, 2],
        [2, 1, 0],
        [1, 0, 2],
        [1, 2, 0],
        [0, 2, 1],
        [2, 0, 1],
    ] {
        let world = World::default();
        let (mut client, model) = waiting(&world).await;
        for (n, which) in order.into_iter().enumerate() {
            client.restart().await;
            assert_eq!(client.open().await.len(), 3 - n);
            client.answer(answers[which].clone()).await;
            client.rest().await;
            let n_asked = model.asked.lock().unwrap().len();
            assert_eq!(n_asked, if n < 2 { 1 } else { 2 }, "{order:?} after {n}");
        }
        assert!(client.open().await.is_empty());
        world.check("answers");
        assert_eq!(world.n_runs("approved", "a"), 1);
        assert_eq!(world.n_runs("approved", "b"), 0);
        let results = results(&client).await;
        assert_eq!(results.len(), 4);
        assert_eq!(results[0].result["by"], "approved");
        assert!(results[1].is_error);
        assert_eq!(results[1].result, "The tool call was denied.");
        assert_eq!(results[3].result, json!({"big": 1.5}));
        assert_eq!(verify(&log(&client).await), Ok(()));
    }
}

fn with_more(answer: &Value, text: &str) -> Value {
    let content = json!([{"type": "input_text", "text": text}]);
    let more = json!({"type": timeline::ATTACHED_MESSAGE, "role": "user", "content": content});
    json!([answer[0], more])
}

#[tokio::test]
async fn what_is_said_beside_the_last_answer_stands_after_the_results() {
    for restarts in [false, true] {
        let world = World::default();
        let (mut client, model) = waiting(&world).await;
        let refused = client.try_answer(&with_more(&approve("a"), "hurry")).await;
        let unanswered = RuntimeError::Rejected(Rejected::Unanswered("b".into()));
        assert_eq!(refused.unwrap_err().to_string(), unanswered.to_string());
        for answer in [approve("a"), deny("b")] {
            client.answer(answer).await;
            client.rest().await;
        }
        if restarts {
            client.restart().await;
        }
        let last = with_more(&bring("x", &json!(1)), "hurry");
        client.answer(last).await;
        client.rest().await;
        let asked = model.asked.lock().unwrap().clone();
        assert_eq!(asked.len(), 2);
        let kinds: Vec<&str> = asked[1]
            .iter()
            .map(|message| match message {
                Message::User(_) => "user",
                Message::Assistant(_) => "assistant",
                Message::ToolResult(_) => "results",
            })
            .collect();
        // The results that came one by one are several messages.
        assert_eq!(
            kinds,
            [
                "user",
                "assistant",
                "results",
                "results",
                "results",
                "results",
                "user"
            ]
        );
        let Some(Message::User(said)) = asked[1].last() else {
            panic!("{asked:?}");
        };
        assert!(format!("{said:?}").contains("hurry"));
        // Read anew from the log it is the same, and the answer comes after it.
        let messages = history(&client.transcript().await, None);
        let said = |messages: &[Message]| -> Vec<Value> {
            let values = messages.iter().map(|it| serde_json::to_value(it).unwrap());
            values
                .map(|it| json!([it["content"], it["results"]]))
                .collect()
        };
        assert_eq!(said(&messages[..7]), said(&asked[1]));
        assert!(matches!(messages[7], Message::Assistant(_)));
    }
}

#[tokio::test]
async fn edited_arguments_are_what_the_tool_gets_and_what_is_kept() {
    let world = World::default();
    let (mut client, _) = waiting(&world).await;
    let edited = json!([{"type": "loomline-answer", "toolCallId": "b", "approved": true, "arguments": {"edited": "yes"}}]);
    client.answer(edited).await;
    client.rest().await;
    let results = results(&client).await;
    assert_eq!(results[0].result["edited"], "yes");
    let transcript = client.transcript().await;
    let parts = transcript.entries.iter().flat_map(|entry| match entry {
        timeline::Entry::Reaction(reaction) => reaction.steps.as_slice(),
        timeline::Entry::Item(_) => &[],
    });
    let parts = parts.flat_map(|step| &step.parts);
    let mut inputs = parts
        .filter_map(|part| ToolPart::read(&part.part))
        .filter(|tool| tool.tool_call_id == "b");
    assert_eq!(inputs.next().unwrap().arguments(), r#"{"n": "b"}"#);
    assert_eq!(inputs.next().unwrap().arguments(), r#"{"edited":"yes"}"#);
    // Who answered, and what, is kept in the thread.
    let mut items = transcript.entries.iter().filter_map(|entry| match entry {
        timeline::Entry::Item(item) => Some(item),
        timeline::Entry::Reaction(_) => None,
    });
    let last = items.next_back().unwrap();
    assert_eq!(last.metadata.as_ref().unwrap().value()["actor"], "tester");
}

#[tokio::test]
async fn a_wrong_answer_is_refused_and_changes_nothing() {
    let world = World::default();
    let (mut client, _) = waiting(&world).await;
    let before = log(&client).await;
    let edited = json!([{"type": "loomline-answer", "toolCallId": "a", "approved": true, "arguments": {"edited": 7}}]);
    let refusals = [
        client.try_answer(&approve("zzz")).await,
        client.try_answer(&approve("x")).await,
        client.try_answer(&bring("a", &json!(1))).await,
        client.try_answer(&approve("p")).await,
        client.try_answer(&json!([])).await,
        client
            .try_answer(&json!([{"type": "output_text", "text": "yes"}]))
            .await,
        client.try_answer(&edited).await,
    ];
    assert!(
        matches!(&refusals[0], Err(RuntimeError::Rejected(Rejected::NotOpen(call))) if call == "zzz")
    );
    assert!(matches!(
        &refusals[1],
        Err(RuntimeError::Rejected(Rejected::WrongAnswer {
            kind: OpenKind::External,
            ..
        }))
    ));
    assert!(matches!(
        &refusals[2],
        Err(RuntimeError::Rejected(Rejected::WrongAnswer {
            kind: OpenKind::Approval,
            ..
        }))
    ));
    assert!(
        matches!(&refusals[3], Err(RuntimeError::Rejected(Rejected::AnsweredAlready(call))) if call == "p")
    );
    assert!(matches!(
        &refusals[4],
        Err(RuntimeError::Rejected(Rejected::Content(_)))
    ));
    assert!(matches!(
        &refusals[5],
        Err(RuntimeError::Rejected(Rejected::Content(_)))
    ));
    assert!(
        matches!(&refusals[6], Err(RuntimeError::Answer(refusal)) if refusal.call.as_deref() == Some("a"))
    );
    assert_eq!(log(&client).await, before);

    client.answer(approve("a")).await;
    client.rest().await;
    let again = client.try_answer(&deny("a")).await;
    assert!(
        matches!(&again, Err(RuntimeError::Rejected(Rejected::AnsweredAlready(call))) if call == "a"),
        "{again:?}"
    );
    // The same request once more is no second answer.
    let before = log(&client).await;
    client.try_answer(&approve("a")).await.unwrap();
    client.rest().await;
    assert_eq!(log(&client).await, before);
    assert_eq!(world.n_runs("approved", "a"), 1);
}

#[tokio::test]
async fn a_new_message_goes_on_without_the_answers() {
    for restarts in [false, true] {
        let world = World::default();
        let (mut client, model) = waiting(&world).await;
        client.answer(approve("a")).await;
        client.rest().await;
        if restarts {
            client.restart().await;
        }
        client.say("never mind").await;
        client.rest().await;
        let asked = model.asked.lock().unwrap()[1].clone();
        let results = asked.iter().filter_map(|message| match message {
            Message::ToolResult(message) => Some(message.results.clone()),
            Message::User(_) | Message::Assistant(_) => None,
        });
        let mut results: Vec<ToolResult> = results.flatten().collect();
        results.sort_by(|a, b| a.tool_call_id.cmp(&b.tool_call_id));
        let texts: Vec<bool> = results
            .iter()
            .map(|it| it.result == "The user went on without answering.")
            .collect();
        assert_eq!(texts, [false, true, false, true]);
    }
}

#[tokio::test]
async fn a_late_answer_is_told_that_something_else_was_said() {
    let world = World::default();
    let model = Canned::new(|request| {
        let n_users = request
            .messages
            .iter()
            .filter(|it| matches!(it, Message::User(_)));
        match n_users.count() {
            1 => crate::durable::model::calling(three()),
            _ => crate::durable::model::said("fine"),
        }
    });
    let mut client = Client::calm(options(model, Arc::new(Loop::default()), all(&world)));
    client.say("go").await;
    client.rest().await;
    client.say("never mind").await;
    client.rest().await;
    let before = log(&client).await;
    let late = client.try_answer(&approve("a")).await;
    assert!(
        matches!(&late, Err(RuntimeError::Rejected(Rejected::Superseded(call))) if call == "a"),
        "{late:?}"
    );
    assert_eq!(log(&client).await, before);
    let transcript = client
        .runtime
        .transcript(&tenant(), KEY, Filter::Facts)
        .await;
    let document = interop::document::to_document(&transcript.unwrap());
    assert!(document.losses.is_empty(), "{:?}", document.losses);
    let found = thread::validate(&document.value, thread::Profile::Strict);
    assert!(found.is_empty(), "{found:?}");
}

#[tokio::test]
async fn an_answer_for_a_tool_that_is_gone_tells_the_model_so() {
    let world = World::default();
    let (mut client, _) = waiting(&world).await;
    client.keep_tools(|tool| tool != "approved");
    client.restart().await;
    client.answer(approve("a")).await;
    client.rest().await;
    let results = results(&client).await;
    assert_eq!(results[0].result, "Tool 'approved' not found");
    assert_eq!(world.n_runs("approved", "a"), 0);
}

#[tokio::test]
async fn an_answer_for_a_tool_that_is_gone_hides_no_fault_of_another_one() {
    let world = World::default();
    let model = Canned::rounds(vec![vec![call("a", "gone"), call("b", "approved")]]);
    let mut tools = all(&world);
    let mut gone = crate::durable::tools::approved(&world);
    gone.name = "gone".into();
    tools.push(gone);
    let mut client = Client::calm(options(model, Arc::new(Loop::default()), tools));
    client.say("go").await;
    client.rest().await;
    client.keep_tools(|tool| tool != "gone");
    client.restart().await;
    let both = |edited: Value| {
        json!([
            {"type": "loomline-answer", "toolCallId": "a", "approved": true},
            {"type": "loomline-answer", "toolCallId": "b", "approved": true, "arguments": {"edited": edited}},
        ])
    };
    let refused = client.try_answer(&both(json!(7))).await;
    assert!(
        matches!(&refused, Err(RuntimeError::Answer(refusal)) if refusal.call.as_deref() == Some("b")),
        "{refused:?}"
    );
    client.answer(both(json!("yes"))).await;
    client.rest().await;
    let results = results(&client).await;
    assert_eq!(results[0].result, "Tool 'gone' not found");
    assert_eq!(results[1].result["edited"], "yes");
}

#[tokio::test]
async fn an_answer_is_acted_on_once_wherever_the_process_dies() {
    for at in 0..13 {
        for keeps_last in [false, true] {
            let world = World::default();
            let (client, model) = waiting(&world).await;
            let mut client = Client::over(client, vec![(at, keeps_last)]);
            client.answer(approve("a")).await;
            client.answer(bring("x", &json!("here"))).await;
            client.answer(approve("b")).await;
            client.rest().await;
            world.check(&format!("death at {at}"));
            assert!(client.open().await.is_empty());
            assert_eq!(results(&client).await.len(), 4, "death at {at}");
            let last = model.asked.lock().unwrap().last().unwrap().len();
            assert_eq!(last, 6, "death at {at}");
        }
    }
}

/// A call of another tool and its result, as an application keeps them.
async fn keep_a_pair(client: &Client) {
    let kept = |id: &str, item_type, content: Value| NewItem {
        id: id.into(),
        item_type,
        role: None,
        channel: None,
        content: Some(content.into()),
        metadata: None,
    };
    let call =
        json!({"type": "function_call", "call_id": "own", "name": "look", "arguments": "{}"});
    let result = json!({"type": "function_call_output", "call_id": "own", "output": "seen"});
    let items = vec![
        kept("own-call", ItemType::ActionExecute, call),
        kept("own-result", ItemType::ActionResult, result),
    ];
    let tenant = tenant();
    let kept = client.runtime.record_all(&tenant, KEY, items);
    kept.await.unwrap();
}

/// The calls and results that a model was shown, by their ids.
fn called(messages: &[Message]) -> Vec<Vec<String>> {
    let ids = messages.iter().map(|message| match message {
        Message::User(_) => Vec::new(),
        Message::Assistant(said) => {
            let ids = said.tool_calls.iter().map(|it| &it.tool_call_id);
            ids.map(|id| id.as_str().to_owned()).collect()
        }
        Message::ToolResult(results) => {
            let ids = results.results.iter().map(|it| &it.tool_call_id);
            ids.map(|id| format!("={}", id.as_str())).collect()
        }
    });
    ids.filter(|ids: &Vec<String>| !ids.is_empty()).collect()
}

#[tokio::test]
async fn a_call_that_is_kept_while_others_wait_is_shown_after_their_results() {
    for restarts in [false, true] {
        let world = World::default();
        let (mut client, model) = waiting(&world).await;
        keep_a_pair(&client).await;
        for answer in [approve("a"), deny("b"), bring("x", &json!("here"))] {
            if restarts {
                client.restart().await;
            }
            client.answer(answer).await;
            client.rest().await;
        }
        client.say("and?").await;
        client.rest().await;
        let asked = model.asked.lock().unwrap().clone();
        let [_, after_results, at_last] = asked.as_slice() else {
            panic!("{asked:?}");
        };
        for shown in [after_results, at_last] {
            let called = called(shown);
            let (kept, before) = called
                .split_last_chunk::<2>()
                .map(|(it, kept)| (kept, it))
                .unwrap();
            assert_eq!(kept, &[vec!["own".to_owned()], vec!["=own".to_owned()]]);
            assert_eq!(before[0], ["a", "b", "x", "p"], "{restarts}");
            assert_eq!(before[1..].concat().len(), 4, "{called:?}");
        }
        let told = called(&history(&client.transcript().await, None));
        assert!(told.starts_with(&called(at_last)), "{told:?}");
    }
}

#[tokio::test]
async fn a_call_that_is_kept_while_others_wait_is_shown_when_something_else_is_said() {
    let world = World::default();
    let (mut client, model) = waiting(&world).await;
    keep_a_pair(&client).await;
    let before = called(&history(&client.transcript().await, None));
    assert_eq!(before, [vec!["a", "b", "x", "p"], vec!["=p"]]);
    client.say("never mind").await;
    client.rest().await;
    let asked = model.asked.lock().unwrap().last().unwrap().clone();
    let expected = [
        vec!["a", "b", "x", "p"],
        vec!["=p"],
        vec!["=a", "=b", "=x"],
        vec!["own"],
        vec!["=own"],
    ];
    assert_eq!(called(&asked), expected);
    assert!(matches!(asked.last(), Some(Message::User(_))));
}

//! Handing over, and what the log and the document say of it.

use crate::children::rig::{
    KEY, agent, at_rest, call, calls, children, content, document, endings, events, fresh,
    messages, results, say, sub, survive, text, transcript,
};
use agents::{Agent, AgentOptions};
use loomline_runtime as runtime;
use runtime::handoff;
use serde_json::json;
use std::sync::{Arc, Mutex};
use store::{MemoryStore, Run};
use timeline::{Entry, Event, ExecutionStatus, ItemType, Reaction, Transcript};
use upp::{Message, Model, ModelLayer, ModelStream, Request, Script, ScriptTurn, Scripted};

fn hands_over(name: &str, to: &str) -> Agent {
    let turn = ScriptTurn::call(handoff::tool_name(to), json!({"reason": "it is a bill"}));
    agent(name, vec![turn], vec![handoff::tool(to, "Pays bills.")])
}

fn desk() -> Vec<Agent> {
    let billing = agent("billing", vec![text("Paid.")], vec![]);
    vec![hands_over("desk", "billing"), billing]
}

fn reactions(transcript: &Transcript) -> Vec<Reaction> {
    transcript
        .entries
        .iter()
        .filter_map(|entry| match entry {
            Entry::Reaction(reaction) => Some(reaction.clone()),
            Entry::Item(_) => None,
        })
        .collect()
}

fn agent_of(reaction: &Reaction) -> String {
    Run::of(reaction.execution.run.as_ref()).agent.unwrap()
}

#[tokio::test]
async fn an_agent_hands_over_and_the_other_one_goes_on_at_once() {
    let runtime = fresh(desk());
    let accepted = say(&runtime, "pay").await;
    let records = at_rest(&runtime, KEY).await;
    assert_eq!(
        endings(&records),
        vec![(ExecutionStatus::Completed, None); 2]
    );
    let document = document(&runtime, KEY).await;
    assert_eq!(results(&document), ["Transferred to billing."]);
    assert_eq!(events(&document), ["data-tp-agent_handoff"]);
    let turns = document["turns"].as_array().unwrap();
    let kinds: Vec<&str> = turns
        .iter()
        .map(|turn| turn["turn_type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["user", "agent", "agent"]);
    let event = messages(&document).into_iter().nth(2).unwrap();
    let (from, to) = (&turns[1]["agent_id"], &turns[2]["agent_id"]);
    assert_eq!(
        event["event_data"],
        json!({"from": from, "to": to, "reason": "it is a bill"})
    );
    assert_eq!(
        (&event["source_agent"], &event["target_agents"]),
        (from, &json!([to]))
    );
    assert_eq!(turns[2]["messages"][0]["parts"][0]["content"], "Paid.");
    // The second execution is triggered by a pointer to what the first one answered.
    let reference = records.iter().find_map(|record| match &record.event {
        Event::ItemCreated { item } if item.item_type == ItemType::ItemReference => {
            item.content.clone()
        }
        _ => None,
    });
    assert_eq!(
        reference.unwrap().value(),
        json!({"itemId": accepted.item_id})
    );
}

#[tokio::test]
async fn the_end_of_one_execution_and_the_beginning_of_the_other_are_one_write() {
    let runtime = fresh(desk());
    say(&runtime, "pay").await;
    let records = at_rest(&runtime, KEY).await;
    let place = |wanted: &str| {
        let mut names = records
            .iter()
            .map(|record| record.event.event_type().name());
        names.position(|name| name == wanted).unwrap()
    };
    let finished = place("thread.finished");
    let next = &records[finished + 1];
    assert_eq!(next.event.event_type().name(), "context.resolved");
    let handoff = records.iter().find(|record| match &record.event {
        Event::PartCreated { part, .. } => part.text().contains("data-tp-agent_handoff"),
        _ => false,
    });
    let handoff = handoff.unwrap();
    assert!(handoff.record_at() == next.record_at() && handoff.seq < next.seq);
}

trait At {
    fn record_at(&self) -> jiff::Timestamp;
}

impl At for timeline::Record {
    fn record_at(&self) -> jiff::Timestamp {
        self.at
    }
}

/// Keeps what it is asked.
struct Asked {
    inner: Scripted,
    asked: Arc<Mutex<Vec<Message>>>,
}

impl ModelLayer for Asked {
    fn inner(&self) -> &dyn Model {
        &self.inner
    }

    fn stream(&self, request: Request) -> ModelStream {
        *self.asked.lock().unwrap() = request.messages.iter().cloned().collect();
        self.inner.stream(request)
    }
}

#[tokio::test]
async fn the_agent_that_goes_on_sees_the_whole_conversation() {
    let asked = Arc::default();
    let inner = Scripted::with_script(Script {
        repeat_last: true,
        ..Script::new(vec![text("Paid.")])
    });
    let model = Asked {
        inner,
        asked: Arc::clone(&asked),
    };
    let billing = Agent::new(AgentOptions::new("billing", Arc::new(model))).unwrap();
    let runtime = fresh(vec![hands_over("desk", "billing"), billing]);
    say(&runtime, "pay the bill").await;
    at_rest(&runtime, KEY).await;
    let asked = asked.lock().unwrap();
    let [
        Message::User(said),
        Message::Assistant(called),
        Message::ToolResult(_),
    ] = &asked[..]
    else {
        panic!("{asked:?}")
    };
    assert_eq!(said.joined_text(), "pay the bill");
    assert_eq!(&*called.tool_calls[0].tool_name, "transfer_to_billing");
}

#[tokio::test]
async fn of_two_handoffs_in_one_response_the_first_is_carried_out_and_the_other_is_an_error() {
    let sales = agent("sales", vec![text("Sold.")], vec![]);
    let billing = agent("billing", vec![text("Paid.")], vec![]);
    let tools = vec![
        handoff::tool("billing", "Pays."),
        handoff::tool("sales", "Sells."),
    ];
    let turn = calls(&["transfer_to_sales", "transfer_to_billing"]);
    let runtime = fresh(vec![agent("desk", vec![turn], tools), sales, billing]);
    say(&runtime, "go").await;
    at_rest(&runtime, KEY).await;
    let document = document(&runtime, KEY).await;
    let results = results(&document);
    assert_eq!(results[0], "Transferred to sales.");
    assert!(results[1].contains("another transfer"), "{}", results[1]);
    assert_eq!(events(&document).len(), 1);
    let ran: Vec<String> = reactions(&transcript(&runtime, KEY).await)
        .iter()
        .map(agent_of)
        .collect();
    assert_eq!(ran, ["desk", "sales"]);
}

#[tokio::test]
async fn a_message_that_waits_is_answered_after_everyone_has_handed_over() {
    let runtime = fresh(desk());
    let slow = say(&runtime, "first").await;
    say(&runtime, "second").await;
    at_rest(&runtime, KEY).await;
    let transcript = transcript(&runtime, KEY).await;
    let order: Vec<String> = transcript
        .entries
        .iter()
        .map(|entry| match entry {
            Entry::Item(item) => format!("{:?}", item.item_type),
            Entry::Reaction(reaction) => agent_of(reaction),
        })
        .collect();
    let once = ["Message", "desk", "ItemReference", "billing"];
    assert_eq!(order, [once, once].concat());
    assert!(!slow.queued);
}

#[tokio::test]
async fn a_child_that_hands_over_answers_with_what_the_other_agent_says() {
    let desk = hands_over("desk", "billing");
    let billing = agent("billing", vec![text("Paid.")], vec![]);
    let lead = agent(
        "lead",
        vec![call("desk"), text("Done.")],
        vec![sub(desk.clone())],
    );
    let runtime = fresh(vec![lead, desk, billing]);
    say(&runtime, "go").await;
    at_rest(&runtime, KEY).await;
    assert_eq!(results(&document(&runtime, KEY).await), ["Paid."]);
    let child = document(&runtime, &children(&runtime).await[0]).await;
    assert_eq!(events(&child), ["data-tp-agent_handoff"]);
}

#[tokio::test]
async fn a_crash_after_any_write_hands_over_exactly_once() {
    let store = Arc::new(MemoryStore::new());
    let (runtime, _) = survive(&store, &[], desk).await;
    let undisturbed = content(&document(&runtime, KEY).await);
    for writes in 0.. {
        let mut any = false;
        for keeps_last in [false, true] {
            let store = Arc::new(MemoryStore::new());
            let lives = [(writes, keeps_last, false)];
            let (runtime, died) = survive(&store, &lives, desk).await;
            any |= died;
            let document = document(&runtime, KEY).await;
            assert_eq!(content(&document), undisturbed, "after {writes} writes");
        }
        if !any {
            assert!(writes > 2);
            break;
        }
    }
}

//! Two clients at once on one thread of the real server (EK-16): never two executions at a time,
//! and for each message what its policy says.

use crate::support::cli::{self, Home};
use crate::support::http::{self, Answer};
use crate::support::server::Server;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Read as _;
use std::sync::Barrier;
use timeline::{Event, ExecutionId, ExecutionStatus, ItemId, verify};

const SLOW: &str = "slow 5ms say 30 words";

/// Posts every message in the same moment, each by a client of its own.
fn at_once(server: &Server, messages: &[Value], headers: &[(&str, &str)]) -> Vec<Answer> {
    let start = Barrier::new(messages.len());
    std::thread::scope(|scope| {
        let post = |message: &Value| {
            let body = message.to_string();
            let start = &start;
            scope.spawn(move || {
                start.wait();
                http::post(server, "/api/v1/threads/t/messages", &body, headers)
            })
        };
        let clients: Vec<_> = messages.iter().map(post).collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect()
    })
}

fn messages(n: usize, policy: &str) -> Vec<Value> {
    let message = |n| json!({"content": format!("{SLOW} {n}"), "policy": policy});
    (0..n).map(message).collect()
}

fn statuses(answers: &[Answer]) -> Vec<u16> {
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    statuses
}

/// One execution as the log tells it.
#[derive(Debug)]
struct Told {
    trigger: ItemId,
    ended: ExecutionStatus,
    why: Option<String>,
}

/// The executions of the thread in order, once it is at rest. Panics where two overlap.
fn executions(server: &Server) -> Vec<Told> {
    server.rest("t");
    let log = cli::records(&server.log("t"));
    assert_eq!(verify(&log), Ok(()));
    let mut told = Vec::new();
    let mut running: Option<(ExecutionId, Told)> = None;
    for record in &log {
        match &record.event {
            Event::ExecutionCreated { execution } => {
                assert!(
                    running.is_none(),
                    "{:?} began while {running:?} ran",
                    execution.id
                );
                let trigger = execution.trigger_item_id.clone();
                let begun = Told {
                    trigger,
                    ended: ExecutionStatus::Executing,
                    why: None,
                };
                running = Some((execution.id.clone(), begun));
            }
            Event::StepCreated { step } => {
                assert_eq!(running.as_ref().map(|(id, _)| id), Some(&step.execution_id));
            }
            Event::ExecutionStatusChanged {
                execution_id,
                to,
                interruption,
                ..
            } => {
                let (id, mut begun) = running.take().unwrap();
                assert_eq!(id, *execution_id);
                begun.ended = *to;
                begun.why = interruption.as_ref().map(|why| why.reason.clone());
                told.push(begun);
            }
            _ => {}
        }
    }
    assert!(running.is_none(), "{running:?} never ended");
    told
}

fn triggers(told: &[Told]) -> BTreeSet<String> {
    told.iter().map(|told| told.trigger.to_string()).collect()
}

fn items(answers: &[Answer]) -> BTreeSet<String> {
    let accepted = answers.iter().filter(|answer| answer.status == 202);
    accepted
        .map(|answer| answer.json()["itemId"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn under_queue_every_message_is_answered_one_after_the_other() {
    let home = Home::new();
    let server = home.server();
    let answers = at_once(&server, &messages(6, "queue"), &[]);
    assert_eq!(statuses(&answers), [202; 6]);
    let told = executions(&server);
    assert_eq!(triggers(&told), items(&answers));
    assert!(
        told.iter()
            .all(|told| told.ended == ExecutionStatus::Completed),
        "{told:?}"
    );
    assert_eq!(told.len(), 6);
    let queued = answers
        .iter()
        .filter(|answer| answer.json()["queued"] == true);
    assert_eq!(queued.count(), 5);
}

#[test]
fn under_queue_messages_are_answered_in_the_order_they_were_kept() {
    let home = Home::new();
    let server = home.server();
    let answers = at_once(&server, &messages(5, "queue"), &[]);
    let mut kept: Vec<(u64, String)> = answers
        .iter()
        .map(Answer::json)
        .map(|it| {
            (
                it["after"].as_u64().unwrap(),
                it["itemId"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    kept.sort();
    let told: Vec<String> = executions(&server)
        .iter()
        .map(|told| told.trigger.to_string())
        .collect();
    assert_eq!(
        told,
        kept.into_iter().map(|(_, item)| item).collect::<Vec<_>>()
    );
}

#[test]
fn under_reject_one_message_is_answered_and_the_other_leaves_nothing() {
    let home = Home::new();
    let server = home.server();
    for round in 1..=5 {
        let answers = at_once(&server, &messages(2, "reject"), &[]);
        assert_eq!(statuses(&answers), [202, 409]);
        let refused = answers.iter().find(|answer| answer.status == 409).unwrap();
        assert_eq!(refused.json()["error"]["code"], "thread_busy");
        let told = executions(&server);
        assert_eq!(told.len(), round);
        assert!(
            told.iter()
                .all(|told| told.ended == ExecutionStatus::Completed),
            "{told:?}"
        );
        let said = server.get("/api/v1/threads/t/messages").unwrap();
        assert_eq!(said["messages"].as_array().unwrap().len(), 2 * round);
    }
}

#[test]
fn under_interrupt_the_last_message_is_answered_and_the_others_say_why_not() {
    let home = Home::new();
    let server = home.server();
    let answers = at_once(&server, &messages(5, "interrupt"), &[]);
    assert_eq!(statuses(&answers), [202; 5]);
    let told = executions(&server);
    assert_eq!(triggers(&told), items(&answers));
    let (last, others) = told.split_last().unwrap();
    assert_eq!((last.ended, &last.why), (ExecutionStatus::Completed, &None));
    for other in others {
        assert_eq!(other.ended, ExecutionStatus::Failed);
        assert_eq!(other.why.as_deref(), Some("user_cancelled"));
    }
    assert_eq!(server.get("/api/v1/threads/t").unwrap()["status"], "open");
}

#[test]
fn under_interrupt_what_was_complete_is_kept_and_the_document_says_it_was_interrupted() {
    let home = Home::new();
    let server = home.server();
    let slow = json!({"content": "slow 50ms compute 1+1 then say 500 words"});
    assert_eq!(statuses(&at_once(&server, &[slow], &[])), [202]);
    server.until("t", |event| event["type"] == "part.updated");
    let stop = json!({"content": "hello", "policy": "interrupt"});
    assert_eq!(statuses(&at_once(&server, &[stop], &[])), [202]);
    executions(&server);
    let document = server.get("/api/v1/threads/t/document").unwrap();
    let turn = &document["turns"][1];
    assert_eq!(turn["completion_status"], "interrupted");
    assert_eq!(turn["interruption"]["reason"], "user_cancelled");
    assert_eq!(turn["messages"][1]["parts"][0]["content"], 2);
    assert_eq!(document["turns"][3]["completion_status"], "complete");
}

#[test]
fn under_all_policies_at_once_there_is_still_one_execution_at_a_time() {
    let home = Home::new();
    let server = home.server();
    let mut accepted = BTreeSet::new();
    for _ in 0..4 {
        let mixed: Vec<Value> = ["queue", "reject", "interrupt"]
            .iter()
            .flat_map(|policy| messages(2, policy))
            .collect();
        let answers = at_once(&server, &mixed, &[]);
        assert!(
            answers
                .iter()
                .all(|answer| matches!(answer.status, 202 | 409))
        );
        accepted.extend(items(&answers));
    }
    let told = executions(&server);
    assert_eq!(triggers(&told), accepted);
    assert_eq!(told.len(), accepted.len());
}

#[test]
fn a_repeated_idempotency_key_runs_once_and_is_answered_alike() {
    let home = Home::new();
    let mut server = home.server();
    let token = [("idempotency-key", "order-66")];
    let message = &messages(1, "queue")[0];
    let answers = at_once(&server, &vec![message.clone(); 4], &token);
    let first = answers[0].json();
    assert!(
        answers.iter().all(|answer| answer.json() == first),
        "{answers:?}"
    );
    let replayed = answers
        .iter()
        .filter(|answer| answer.header("idempotent-replayed").is_some());
    assert_eq!(replayed.count(), 3);
    assert_eq!(executions(&server).len(), 1);
    server.kill();
    server = home.server();
    let again = &at_once(&server, std::slice::from_ref(message), &token)[0];
    assert_eq!(again.json(), first);
    assert_eq!(executions(&server).len(), 1);
}

#[test]
fn a_client_that_leaves_stops_nothing() {
    let home = Home::new();
    let server = home.server();
    let body = json!({"content": "slow 20ms say 30 words", "stream": true}).to_string();
    let request = ureq::post(server.url("/api/v1/threads/t/messages"));
    let request = request.header("content-type", "application/json");
    let mut answer = request.send(body).unwrap();
    let mut heard = [0; 1];
    answer
        .body_mut()
        .as_reader()
        .read_exact(&mut heard)
        .unwrap();
    drop(answer);
    let told = executions(&server);
    assert_eq!((told.len(), told[0].ended), (1, ExecutionStatus::Completed));
}

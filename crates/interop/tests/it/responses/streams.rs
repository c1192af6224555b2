//! The events of a response, and the response they come to.

use super::client::{Client, events_of, stream};
use super::rig::{answer, begun, handed_over, over, reset, run, transcript};
use super::schemas::Published;
use crate::log::Log;
use crate::native::conversation;
use crate::threads::logs;
use loomline_interop::responses::{
    Echo, EventFraming, ResponseObject, ResponseOf, ResponseStream, Status, response,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use timeline::{Event, ExecutionId, Record};

/// The log with its executions run as a request has asked for.
fn asked(mut records: Vec<Record>, echo: &Echo) -> Vec<Record> {
    for record in &mut records {
        if let Event::ExecutionCreated { execution } = &mut record.event {
            execution.run = Some(run(echo));
        }
    }
    records
}

fn echoes() -> Vec<Echo> {
    let plain = Echo::default();
    let mut all = vec![plain.clone()];
    all.push(Echo {
        summary: true,
        model: Some("asked".into()),
        ..plain.clone()
    });
    all.push(Echo {
        encrypted_reasoning: true,
        conversation: true,
        ..plain
    });
    all
}

fn executions(records: &[Record]) -> Vec<ExecutionId> {
    let ids = records.iter().filter_map(|record| {
        let Event::ExecutionCreated { execution } = &record.event else {
            return None;
        };
        Some(execution.id.clone())
    });
    ids.collect()
}

/// A response with its items in the order of their ids: items that were streamed come before the
/// others of their step.
fn by_id(response: &ResponseObject) -> (Value, Status) {
    let mut object: Value = serde_json::from_str(&response.json).unwrap();
    let items = object["output"].as_array_mut().unwrap();
    items.sort_by_key(|item| item["id"].to_string());
    (object, response.status)
}

proptest! {
    #[test]
    fn an_official_client_follows_any_stream_to_the_response_that_is_read_later(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        which in 0usize..3,
    ) {
        let records = asked(conversation(&bytes).records, &echoes()[which]);
        let transcript = transcript(&records);
        for execution in executions(&records) {
            let of = ResponseOf::Execution(execution.clone());
            let text = stream(&records, of.clone());
            let (events, is_done) = events_of(&text);
            prop_assert!(is_done);
            let client = Client::of(&events);
            let last = client.last.unwrap();
            let read = response(&transcript, &execution).unwrap().value;
            let read_json: Value = serde_json::from_str(&read.json).unwrap();
            prop_assert_eq!(&last, &read_json);
            prop_assert_eq!(read.status.word(), last["status"].as_str().unwrap());
            // What the response has was seen to come, with the same ids.
            for item in last["output"].as_array().unwrap() {
                prop_assert!(client.items.iter().any(|(seen, _)| seen == item), "{item}");
            }
            let mut quiet = ResponseStream::quiet(of);
            let mut out = String::new();
            for record in &records {
                quiet.apply(record, &mut out);
            }
            prop_assert_eq!(out, "");
            prop_assert_eq!(quiet.object().unwrap(), read);
        }
    }

    #[test]
    fn a_response_folded_live_equals_the_replayed_one(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        cut in 1usize..=100,
    ) {
        // With handoffs, answers to calls and dead attempts; cut anywhere.
        let mut records = logs::thread(&bytes).records;
        records.truncate((records.len() * cut).div_ceil(100));
        let transcript = transcript(&records);
        for execution in executions(&records) {
            let mut live = ResponseStream::quiet(ResponseOf::Execution(execution.clone()));
            for record in &records {
                live.apply(record, &mut String::new());
            }
            let replayed = response(&transcript, &execution).map(|it| it.value);
            prop_assert_eq!(live.object().as_ref().map(by_id), replayed.as_ref().map(by_id));
        }
    }

    #[test]
    fn a_stream_is_resumed_after_any_event(
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        after in 0u64..40,
    ) {
        let records = conversation(&bytes).records;
        for execution in executions(&records) {
            let of = ResponseOf::Execution(execution);
            let (all, _) = events_of(&stream(&records, of.clone()));
            let mut resumed = ResponseStream::new(of, EventFraming::Sse).starting_after(after);
            let mut out = String::new();
            for record in &records {
                resumed.apply(record, &mut out);
            }
            let rest = all.iter().filter(|event| event["sequence_number"].as_u64().unwrap() > after);
            prop_assert_eq!(events_of(&out).0, rest.cloned().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_socket_has_the_same_events_a_line_each(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let records = conversation(&bytes).records;
        for execution in executions(&records) {
            let of = ResponseOf::Execution(execution);
            let mut socket = ResponseStream::new(of.clone(), EventFraming::Lines);
            let mut out = String::new();
            for record in &records {
                socket.apply(record, &mut out);
            }
            let lines = out.lines().map(|line| serde_json::from_str(line).unwrap());
            prop_assert_eq!(lines.collect::<Vec<Value>>(), events_of(&stream(&records, of)).0);
        }
    }
}

#[test]
fn every_event_and_response_satisfies_the_published_schemas() {
    let (Some(mut open), Some(mut openai)) = (Published::open_responses(), Published::openai())
    else {
        return;
    };
    let seeds = (0..40u8).map(|seed| -> Vec<u8> {
        let byte = |n: u8| n.wrapping_mul(31).wrapping_add(seed) ^ (seed << 3);
        (0..150u8).map(byte).collect()
    });
    let mut logs: Vec<Vec<Record>> = seeds.map(|bytes| conversation(&bytes).records).collect();
    logs.extend([refused().records, handed_over().records, reset().records]);
    for (n, records) in logs.into_iter().enumerate() {
        let echo = &echoes()[n % 3];
        let records = asked(records, echo);
        for execution in executions(&records) {
            let (events, _) = events_of(&stream(&records, ResponseOf::Execution(execution)));
            for event in &events {
                open.check_event(event);
                openai.check_openai_event(event);
            }
        }
    }
}

fn refused() -> Log {
    let mut log = begun(None);
    answer(
        &mut log,
        vec![json!({"type": "refusal", "refusal": "No."})],
        "end_turn",
    );
    over(&mut log);
    log
}

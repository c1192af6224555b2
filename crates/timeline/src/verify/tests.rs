use super::*;
use crate::chunk::NewChunk;
use crate::command::{Command, Ending, NewItem, NewThread, Trigger};
use crate::state::State;
use jiff::Timestamp;
use serde_json::json;

/// A log of one run of two steps, with a reset and a tool.
fn log() -> Vec<Record> {
    let item = NewItem::user("ask", json!([{"type": "input_text", "text": "hi"}]).into());
    let call = |state: &str| json!({"type": "tool-add", "toolCallId": "c", "state": state});
    let emit = || Command::Emit {
        chunks: vec![NewChunk {
            chunk_type: "text-delta".into(),
            data: Some(json!({"id": "t0-0", "delta": "so"}).into()),
        }],
    };
    let respond = |part: serde_json::Value| Command::Respond {
        parts: vec![part.into()],
        response: json!({}).into(),
    };
    let complete = |next: Option<&str>| Command::ImportStep {
        outcome: crate::StepOutcome::default(),
        next: next.map(Into::into),
    };
    let commands = [
        Command::Create {
            thread: NewThread::new("t", Some("k")),
            context_id: "c".into(),
        },
        Command::Start {
            trigger: Trigger::New(item),
            run: None,
            execution_id: "run".into(),
            reaction_item_id: "answer".into(),
            step_id: "one".into(),
            workflow_run_id: None,
        },
        emit(),
        Command::ResetStep,
        emit(),
        respond(call("input-available")),
        Command::StartTool {
            tool_call_id: "c".into(),
        },
        Command::PutPart {
            idx: 0,
            part: call("output-error").into(),
        },
        complete(Some("two")),
        respond(json!({"type": "output_text", "text": "done"})),
        complete(None),
        Command::End {
            ending: Ending::Completed,
        },
    ];
    let mut state = State::default();
    let mut records = Vec::new();
    for command in commands {
        for event in state.decide(command, Timestamp::UNIX_EPOCH).unwrap() {
            state.apply(&event);
            let seq = Seq(records.len() as u64 + 1);
            records.push(Record {
                seq,
                at: Timestamp::UNIX_EPOCH,
                event,
            });
        }
    }
    records
}

/// The records with the numbers that their places give them.
fn numbered(records: Vec<Record>) -> Vec<Record> {
    let numbers = (1..).map(Seq);
    let numbered = records.into_iter().zip(numbers);
    numbered
        .map(|(record, seq)| Record { seq, ..record })
        .collect()
}

fn is_chunk(kind: &str) -> impl Fn(&Record) -> bool {
    move |record| matches!(&record.event, Event::ChunkEmitted { chunk_type, .. } if chunk_type == kind)
}

fn place(records: &[Record], is_it: impl Fn(&Record) -> bool) -> usize {
    records.iter().position(is_it).unwrap()
}

#[test]
fn no_event_can_be_missing_doubled_or_moved_unless_it_is_a_chunk() {
    let log = log();
    assert_eq!(verify(&log), Ok(()));
    for at in 0..log.len() {
        let mut without = log.clone();
        let record = without.remove(at);
        let is_last = at + 1 == log.len();
        // The number of the first event after the gap tells.
        assert_eq!(verify(&without).is_err(), !is_last, "without {record:?}");
        let mut doubled = log.clone();
        doubled.insert(at, record.clone());
        assert!(verify(&doubled).is_err(), "twice {record:?}");
        // With new numbers a chunk is neither missed nor too much, and resolving says nothing new.
        let is_free = |record: &Record| {
            matches!(
                record.event,
                Event::ChunkEmitted { .. }
                    | Event::ThreadResolved { .. }
                    | Event::ContextResolved { .. }
                    | Event::PartUpdated { .. }
                    | Event::ThreadFinished { .. }
            )
        };
        let is_response = is_chunk(chunk_type::STEP_RESPONSE)(&record);
        let twice = verify(&numbered(doubled));
        assert_eq!(
            twice.is_ok(),
            is_free(&record) && !is_response,
            "twice {record:?}"
        );
        let is_needless = is_free(&record)
            || is_last
            || matches!(&record.event, Event::ItemStatusChanged { to, .. } if to.name() == "completed")
            || matches!(&record.event, Event::ContextStatusChanged { to, .. } if to.name() == "open")
            || matches!(&record.event, Event::ThreadStatusChanged { to, .. } if to.name() == "open")
            || is_unused_part(&record);
        assert_eq!(
            verify(&numbered(without)).is_ok(),
            is_needless,
            "without {record:?}"
        );
    }
}

/// The last part of a step, to which nothing refers.
fn is_unused_part(record: &Record) -> bool {
    matches!(&record.event, Event::PartCreated { step_id, .. } if step_id.as_str() == "two")
}

#[test]
fn a_chunk_belongs_to_the_running_step() {
    let log = log();
    let chunk = place(&log, is_chunk("text-delta"));
    let step_ends = place(&log, |record| {
        matches!(record.event, Event::StepStatusChanged { .. })
    });
    let mut late = log.clone();
    let record = late.remove(chunk);
    late.insert(step_ends, record.clone());
    let not_running = |seq: usize, id: &str| {
        Err(Misfit::NotRunning {
            seq: Seq(seq as u64),
            id: id.to_owned(),
        })
    };
    assert_eq!(verify(&numbered(late)), not_running(step_ends + 1, "one"));
    let mut after_the_run = log.clone();
    after_the_run.push(record);
    let end = log.len() + 1;
    assert_eq!(verify(&numbered(after_the_run)), not_running(end, "run"));
}

#[test]
fn a_reset_voids_the_parts_of_its_step() {
    let mut log = log();
    let result = place(&log, |record| {
        matches!(record.event, Event::PartUpdated { .. })
    });
    let reset = place(&log, is_chunk(chunk_type::STEP_RESET));
    let record = log[reset].clone();
    log.insert(result, record);
    let expected = Misfit::Part {
        seq: Seq(result as u64 + 2),
        key: "one:0".into(),
        n_parts: 0,
    };
    assert_eq!(verify(&numbered(log)), Err(expected));
}

#[test]
fn a_marker_of_a_step_names_its_step() {
    for (kind, step) in [
        (chunk_type::STEP_RESET, None),
        (chunk_type::TOOL_STARTED, None),
        (chunk_type::THREAD_UPDATED, Some("one")),
        (chunk_type::THREAD_COMPACTED, Some("one")),
    ] {
        let mut log = log();
        let at = place(&log, is_chunk(chunk_type::STEP_RESET));
        if let Event::ChunkEmitted {
            chunk_type,
            step_id,
            ..
        } = &mut log[at].event
        {
            kind.clone_into(chunk_type);
            *step_id = step.map(Into::into);
        }
        let expected = Misfit::Marker {
            seq: log[at].seq,
            chunk_type: kind.to_owned(),
        };
        assert_eq!(verify(&log), Err(expected));
    }
}

#[test]
fn markers_of_the_thread_stand_between_and_in_runs() {
    for kind in chunk_type::OF_THREAD {
        let mut log = log();
        let reset = place(&log, is_chunk(chunk_type::STEP_RESET));
        let mut record = log[reset].clone();
        if let Event::ChunkEmitted {
            chunk_type,
            execution_id,
            step_id,
            ..
        } = &mut record.event
        {
            kind.clone_into(chunk_type);
            (*execution_id, *step_id) = (None, None);
        }
        log.insert(reset, record.clone());
        log.push(record);
        assert_eq!(verify(&numbered(log)), Ok(()), "{kind}");
    }
}

#[test]
fn a_result_is_the_status_of_its_execution() {
    let mut log = log();
    if let Some(Event::ThreadFinished { result, .. }) = log.last_mut().map(|it| &mut it.event) {
        *result = ExecutionResult::Failed;
    }
    let expected = Misfit::Result {
        seq: log.last().unwrap().seq,
        execution_id: "run".into(),
    };
    assert_eq!(verify(&log), Err(expected));
}

#[test]
fn chunks_with_provisional_ids_count_up_and_get_numbers_later() {
    let log = log();
    let chunk = place(&log, is_chunk("text-delta"));
    let event = &log[chunk].event;
    let mut verifier = Verifier::default();
    for record in &log[..chunk] {
        verifier.check(record).unwrap();
    }
    let last = verifier.last();
    let before = verifier.clone();
    // One number for three deltas, which became one event: the stream shows it no more.
    for count in 1..=3 {
        verifier.check_provisional(last, count, event).unwrap();
    }
    for record in &log[chunk + 1..] {
        verifier.check(record).unwrap();
    }
    let mut skips = before.clone();
    let refused = skips.check_provisional(last, 2, event);
    assert!(
        matches!(refused, Err(Misfit::Sequence { .. })),
        "{refused:?}"
    );
    let mut stale = before.clone();
    let refused = stale.check_provisional(Seq(last.0 - 1), 1, event);
    assert!(
        matches!(refused, Err(Misfit::Sequence { .. })),
        "{refused:?}"
    );
    let mut fact = before.clone();
    let refused = fact.check_provisional(last, 1, &log[0].event);
    assert_eq!(
        refused,
        Err(Misfit::NotAChunk {
            after: last,
            count: 1
        })
    );
    // Without provisional events no number is missing.
    let mut gap = before;
    let refused = gap.check(&log[chunk + 1]);
    assert!(
        matches!(refused, Err(Misfit::Sequence { .. })),
        "{refused:?}"
    );
}

//! Any events, one a line, in any order, can be folded: nothing panics, the running step is never
//! without its execution, and a sound log leaves a state that its checks accept.
#![no_main]

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use loomline_timeline::{Event, Record, Seq, State, Transcript, verify};

fuzz_target!(|text: &str| {
    let events = text.lines().filter_map(|line| Event::decode(line).ok());
    let records: Vec<Record> = (1..)
        .zip(events)
        .map(|(seq, event)| Record {
            seq: Seq(seq),
            at: Timestamp::UNIX_EPOCH,
            event,
        })
        .collect();
    let (mut state, mut transcript) = (State::default(), Transcript::default());
    for record in &records {
        state.apply(&record.event);
        transcript.apply(record);
    }
    if let Some(step) = state.active().and_then(|active| active.step.as_ref()) {
        assert!(records.iter().any(|record| matches!(
            &record.event,
            Event::StepCreated { step: made } if made.id == step.step.id
        )));
    }
    assert_eq!(
        transcript.seq,
        records.last().map_or(Seq::ZERO, |record| record.seq)
    );
    if verify(&records).is_ok() {
        // Each prefix of a sound log is a sound log.
        let half = &records[..records.len() / 2];
        assert!(verify(half).is_ok());
    }
});

//! Any bytes of a UI message stream are taken alike however they are cut, and what they make of a
//! message is the same whether or not someone looks at it meanwhile.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loomline_interop::ai_sdk::sse::Chunks;
use loomline_interop::ai_sdk::{Major, Reduced, Reducer, check_chunk};
use loomline_thread::Json;

fuzz_target!(|bytes: &[u8]| {
    let mut chunks = Vec::new();
    let taken = Chunks::with_limit(1 << 16).push(bytes, &mut chunks);
    let mut cut = Vec::new();
    let mut stream = Chunks::with_limit(1 << 16);
    let cut_taken = bytes
        .chunks(3)
        .try_for_each(|piece| stream.push(piece, &mut cut));
    assert_eq!((taken, &chunks), (cut_taken, &cut));
    for major in [Major::V5, Major::V6, Major::V7] {
        reduce(major, &chunks);
    }
});

fn reduce(major: Major, chunks: &[Json]) {
    let mut reducer = Reducer::new(major, None);
    let mut watched = Reducer::new(major, None);
    let mut shown = None;
    for chunk in chunks {
        let pushed = reducer.push(chunk);
        assert_eq!(pushed, watched.push(chunk));
        match pushed {
            Ok(pushed) if pushed.visible => shown = Some(watched.message()),
            Ok(_) => {}
            Err(_) => break,
        }
        // What a client's schema takes is what a reducer that checks takes.
        let mut strict = reducer.clone().checked();
        assert!(check_chunk(chunk, major).is_ok() || strict.push(chunk).is_err());
    }
    let Reduced { message, facts } = reducer.finish();
    assert_eq!(message, shown);
    let parts = message
        .as_ref()
        .and_then(|message| message.get("parts")?.as_array());
    let n_parts = parts.map_or(0, <[Json]>::len);
    assert!(
        facts
            .steps
            .iter()
            .all(|step| step.start < step.end && step.end <= n_parts)
    );
}

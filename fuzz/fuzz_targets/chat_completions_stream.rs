//! Any chunks, one a line, are refused, or give events that fold to what the response says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loomline_upp::chat_completions::Decoder;
use loomline_upp::{Aggregate, StreamEvent};

fuzz_target!(|text: &str| {
    for structured in [false, true] {
        decode(text, structured);
    }
});

fn decode(text: &str, structured: bool) {
    let mut decoder = Decoder::new("fuzz", "model", structured);
    let mut events = Vec::new();
    for line in text.lines() {
        let Ok(pushed) = decoder.push(line) else {
            return;
        };
        events.extend(pushed);
    }
    decoder.done();
    let Ok((last, response)) = decoder.finish() else {
        return;
    };
    events.extend(last);
    let mut starts = events
        .iter()
        .filter(|event| matches!(event, StreamEvent::MessageStart));
    assert!(starts.next().is_some() && starts.next().is_none());
    assert!(matches!(events.last(), Some(StreamEvent::MessageStop)));
    let mut aggregate = Aggregate::default();
    for event in &events {
        aggregate.push(event);
    }
    let (content, calls) = aggregate.finish();
    assert_eq!(content, response.message.content);
    assert_eq!(calls, response.message.tool_calls);
}

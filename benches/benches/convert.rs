//! A history of 10,000 messages read into an archive, written, and seen as a document, beside a copy
//! of its bytes and two parsers that build every value. `cargo bench -p loomline-benches --bench convert`
//!
//! The history is made here, or read from the file that `LOOMLINE_HISTORY` names, so that another
//! library can be given the same one: `scripts/bench-conversions`.
#![allow(missing_docs, clippy::unwrap_used, reason = "a bench")]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use interop::convert::ReadOptions;
use interop::pydantic_ai::{read, read_owned, write};
use loomline_benches as _;
use std::fmt::Write as _;
use thread::Json;

const MESSAGES: usize = 10_000;
const WORDS: [&str; 8] = [
    "granite",
    "velvet",
    "lagoon",
    "naïve",
    "日本語",
    "😀",
    "quote\\\"",
    "back\\\\slash",
];

fn words(n: usize, count: usize) -> String {
    let each = (0..count).map(|k| WORDS.get((n + k * 3) % WORDS.len()).copied().unwrap_or(""));
    each.collect::<Vec<_>>().join(" ")
}

/// When the n-th thing happened.
fn at(n: usize) -> String {
    let (h, m, s) = (n / 3600 % 24, n / 60 % 60, n % 60);
    format!(
        "2026-01-01T{h:02}:{m:02}:{s:02}.{:06}Z",
        n * 7919 % 1_000_000
    )
}

fn usage(n: usize) -> String {
    let (output, thought) = (n / 3, n % 17);
    format!(
        r#"{{"input_tokens":{n},"cache_write_tokens":0,"cache_write_1h_tokens":0,"cache_read_tokens":0,"output_tokens":{output},"output_reasoning_tokens":0,"input_audio_tokens":0,"cache_audio_read_tokens":0,"output_audio_tokens":0,"audio_seconds":0.0,"details":{{"reasoning_tokens":{thought}}},"cost":null}}"#
    )
}

/// A request of these parts, as version 2.68 writes it.
fn request(parts: &str) -> String {
    format!(
        r#"{{"parts":[{parts}],"timestamp":null,"instructions":"Be brief.","kind":"request","run_id":null,"conversation_id":null,"metadata":null,"state":"complete"}}"#
    )
}

fn response(n: usize, parts: &str, why: &str) -> String {
    let (usage, at) = (usage(n), at(n));
    format!(
        r#"{{"parts":[{parts}],"usage":{usage},"model_name":"m","model_id":null,"timestamp":"{at}","kind":"response","provider_name":"anthropic","provider_url":null,"canonical_system":null,"provider_details":null,"provider_response_id":"resp_{n}","finish_reason":"{why}","run_id":null,"conversation_id":null,"metadata":null,"workspace_ref":null,"history_digest":null,"failed_attempts":null,"state":"complete"}}"#
    )
}

fn text(content: &str) -> String {
    format!(
        r#"{{"content":"{content}","id":null,"provider_name":null,"provider_details":null,"citations":null,"part_kind":"text"}}"#
    )
}

fn returned(n: usize, tool: &str, id: &str, content: &str) -> String {
    let at = at(n);
    format!(
        r#"{{"tool_name":"{tool}","content":{content},"tool_call_id":"{id}","tool_kind":null,"metadata":null,"timestamp":"{at}","outcome":"success","retry":null,"part_kind":"tool-return"}}"#
    )
}

/// A prompt, a thought with text and two calls, their returns, an answer; over and over.
fn history() -> String {
    let mut messages = Vec::with_capacity(MESSAGES);
    for n in (0..MESSAGES).step_by(4) {
        let (prompt, at) = (words(n, 25), at(n));
        messages.push(request(&format!(
            r#"{{"content":"{prompt}","timestamp":"{at}","part_kind":"user-prompt"}}"#
        )));
        let (thought, signature) = (words(n, 40), "x".repeat(80));
        let (said, city, days, query) = (text(&words(n + 1, 12)), words(n, 2), n % 7, words(n, 2));
        let call = r#""tool_kind":null,"id":null,"provider_name":null,"provider_details":null,"part_kind":"tool-call""#;
        let query = query.replace('\\', r"\\").replace('"', r#"\""#);
        let parts = format!(
            r#"{{"content":"{thought}","id":null,"signature":"{signature}","provider_name":"anthropic","provider_details":null,"part_kind":"thinking"}},{said},{{"tool_name":"get_weather","args":{{"city":"{city}","days":{days},"opts":{{"u":"c","deep":[1,2.5,null,true]}}}},"tool_call_id":"call_{n}_a",{call}}},{{"tool_name":"search","args":"{{\"q\": \"{query}\"}}","tool_call_id":"call_{n}_b",{call}}}"#
        );
        messages.push(response(n + 1, &parts, "tool_call"));
        let mut rows = String::new();
        for hour in 0..12 {
            let comma = if hour > 0 { "," } else { "" };
            let _ = write!(rows, r#"{comma}{{"h":{hour},"t":{}.5}}"#, hour * 3 / 2);
        }
        let weather = format!(
            r#"{{"city":"X","temps":[{}.5,1.0,-3],"alerts":null,"rows":[{rows}]}}"#,
            n % 30
        );
        let found = format!(r#""{}""#, words(n, 60));
        let first = returned(n + 2, "get_weather", &format!("call_{n}_a"), &weather);
        let second = returned(n + 2, "search", &format!("call_{n}_b"), &found);
        messages.push(request(&format!("{first},{second}")));
        messages.push(response(n + 3, &text(&words(n + 2, 60)), "stop"));
    }
    format!("[{}]", messages.join(","))
}

fn conversions(criterion: &mut Criterion) {
    #[allow(clippy::disallowed_methods, reason = "a bench has no other arguments")]
    let text = match std::env::var("LOOMLINE_HISTORY") {
        Ok(file) => std::fs::read_to_string(file).unwrap(),
        Err(_) => history(),
    };
    let options = ReadOptions::default();
    let archive = read(&text, &options).unwrap();
    assert!(write(&archive).value == text);
    let bytes = Throughput::Bytes(text.len() as u64);

    let mut group = criterion.benchmark_group("read");
    group.throughput(bytes.clone()).sample_size(30);
    group.bench_function("archive", |bencher| {
        bencher.iter(|| read(&text, &options).unwrap());
    });
    group.bench_function("archive, of a text of one's own", |bencher| {
        let own = || text.clone();
        let read = |text| read_owned(text, &options).unwrap();
        bencher.iter_batched(own, read, BatchSize::PerIteration);
    });
    group.bench_function("baseline: a copy of the bytes", |bencher| {
        bencher.iter(|| text.clone());
    });
    group.bench_function("baseline: serde_json::Value", |bencher| {
        bencher.iter(|| serde_json::from_str::<serde_json::Value>(&text).unwrap());
    });
    group.bench_function("baseline: thread::Json", |bencher| {
        bencher.iter(|| Json::parse(&text).unwrap());
    });
    group.finish();

    let mut group = criterion.benchmark_group("write");
    group.throughput(bytes.clone()).sample_size(30);
    group.bench_function("history", |bencher| bencher.iter(|| write(&archive).value));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    group.bench_function("baseline: serde_json::Value", |bencher| {
        bencher.iter(|| value.to_string());
    });
    drop(value);
    let json = Json::parse(&text).unwrap();
    group.bench_function("baseline: thread::Json", |bencher| {
        bencher.iter(|| json.to_text());
    });
    drop(json);
    group.finish();

    let mut group = criterion.benchmark_group("to_thread");
    group.throughput(bytes).sample_size(10);
    group.bench_function("document", |bencher| bencher.iter(|| archive.to_thread()));
    group.bench_function("baseline: thread::Json parsed and written", |bencher| {
        bencher.iter(|| Json::parse(&text).unwrap().to_text());
    });
    group.finish();
}

criterion_group!(benches, conversions);
criterion_main!(benches);

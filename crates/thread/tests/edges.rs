//! Edges of documents: names that are missing, calls without ids, nulls, and long numbers.

#![allow(
    clippy::expect_used,
    reason = "a failed expectation is the test's failure"
)]

use loomline_thread::document::CompletionStatus;
use loomline_thread::render::{RenderOptions, render};
use loomline_thread::{CanonicalOptions, Json, Number, Thread, complete_cycles, hash};

const HEAD: &str = r#""threadprotocol_version":"0.0.4","thread_id":"0b6f7f0e-3d3e-4a57-9d0f-4b8e2f6f7a01","created_at":"2026-04-01T10:00:00Z""#;

fn thread(members: &str) -> Thread {
    Thread::decode(&format!("{{{HEAD},{members}}}")).expect("a document")
}

#[test]
fn text_of_nobody_known_is_shown_as_foreign() {
    let said = |author: &str| {
        format!(
            r#"{{"turn_type":"agent","started_at":"2026-04-01T10:00:00Z","completion_status":"complete"{author},
                "messages":[{{"message_type":"response","timestamp":"2026-04-01T10:00:00Z",
                "parts":[{{"part_kind":"text","content":"I said it."}}]}}]}}"#
        )
    };
    let shown = |author: &str| {
        let agents = r#""agents":{"a":{"agent_id":"a","agent_name":"Ada"}}"#;
        let document = thread(&format!(r#"{agents},"turns":[{}]"#, said(author)));
        let rendered = render(&document, &RenderOptions::new("a"));
        let content = rendered.messages[0].pointer("/parts/0/content");
        content.and_then(Json::as_str).expect("a text").to_owned()
    };
    assert_eq!(shown(r#","agent_id":"a""#), "I said it.");
    assert_eq!(shown(""), "{agent:unknown}: I said it.");
}

#[test]
fn a_call_without_an_id_completes_no_cycle() {
    let message = |text: &str| Json::parse(text).expect("JSON");
    let nameless = message(
        r#"{"message_type":"response","parts":[{"part_kind":"tool-call","tool_name":"f","args":{}}]}"#,
    );
    let said =
        message(r#"{"message_type":"response","parts":[{"part_kind":"text","content":"x"}]}"#);
    let all = vec![nameless, said.clone()];
    for ending in [CompletionStatus::Complete, CompletionStatus::Interrupted] {
        let kept = complete_cycles(all.clone(), ending);
        assert_eq!(kept, std::slice::from_ref(&said));
    }
}

#[test]
fn null_metadata_of_a_link_is_no_part_of_the_meaning() {
    let linked = |metadata: &str| {
        let link = format!(
            r#"{{"thread_id":"1c2f7f0e-3d3e-4a57-9d0f-4b8e2f6f7a02","relation":"spawned_from"{metadata}}}"#
        );
        let document = thread(&format!(
            r#""relationships":{{"links":[{link}]}},"turns":[]"#
        ));
        hash(&document, CanonicalOptions::default()).expect("a hash")
    };
    assert_eq!(linked(r#","metadata":null"#), linked(""));
    assert_ne!(linked(r#","metadata":{"n":null}"#), linked(""));
}

#[test]
fn a_double_carries_seventeen_digits_and_not_eighteen() {
    let is_i_json = |text: &str| Number::parse(text).expect("a number").is_i_json();
    for carried in [
        "3.1415926535897932",
        "0.00031415926535897932000",
        "31415926535897932e-1",
    ] {
        assert!(is_i_json(carried), "{carried}");
    }
    for lost in [
        "3.14159265358979323",
        "0.000314159265358979323",
        "314159265358979323e-2",
    ] {
        assert!(!is_i_json(lost), "{lost}");
    }
}

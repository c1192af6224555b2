//! `render`.

use crate::support::cli::Home;
use serde_json::{Value, json};

fn thread() -> String {
    let call =
        json!({"part_kind": "tool-call", "tool_name": "measure", "args": {}, "tool_call_id": "c"});
    let answer = json!({"part_kind": "tool-return", "tool_name": "measure", "content": "2 m", "tool_call_id": "c"});
    let message = |kind: &str, parts: Value| {
        json!({
            "message_type": kind, "timestamp": "2026-01-05T08:00:01Z", "agent_id": "a", "parts": parts,
        })
    };
    json!({
        "version": "0.0.4", "agents": {
            "a": {"agent_name": "Ada"}, "b": {"agent_name": "Bo"}, "c": {"agent_name": "Bo"},
        },
        "turns": [
            {"turn_type": "user", "submitted_at": "2026-01-05T08:00:00Z",
             "parts": [{"part_kind": "user-prompt", "content": "Hello?"}]},
            {"turn_type": "agent", "agent_id": "a", "completion_status": "complete", "messages": [
                message("response", json!([call])), message("request", json!([answer])),
                message("response", json!([{"part_kind": "text", "content": "Hi."}])),
            ]},
        ],
    })
    .to_string()
}

fn rendered(arguments: &[&str]) -> Value {
    let ran = Home::new().feed(&[&["render"], arguments].concat(), &thread());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    serde_json::from_str(&ran.out).unwrap()
}

/// What is rendered of a thread with these parts of Ada's, each in a response of its own, and the
/// report.
fn of_parts(parts: &[Value], arguments: &[&str]) -> (Value, String) {
    let mut thread: Value = serde_json::from_str(&thread()).unwrap();
    let messages = parts.iter().map(|part| {
        json!({
            "message_type": "response", "timestamp": "2026-01-05T08:00:01Z", "agent_id": "a",
            "usage": null, "parts": [part],
        })
    });
    thread["turns"][1]["messages"] = messages.collect();
    let ran = Home::new().feed(
        &[&["render", "--as", "a", "--report"], arguments].concat(),
        &thread.to_string(),
    );
    assert_eq!(ran.code, 0, "{ran:?}");
    (serde_json::from_str(&ran.out).unwrap(), ran.err)
}

fn last(messages: &Value) -> Value {
    messages.as_array().unwrap().last().unwrap()["parts"][0]["content"].clone()
}

#[test]
fn an_agent_sees_what_it_wrote_itself_as_it_was_and_by_name_or_id() {
    assert_eq!(last(&rendered(&["--as", "a"])), "Hi.");
    assert_eq!(rendered(&["--as", "Ada"]), rendered(&["--as", "a"]));
}

#[test]
fn what_others_wrote_is_attributed_as_asked() {
    assert_eq!(last(&rendered(&["--as", "b"])), "{agent:Ada}: Hi.");
    let named = rendered(&["--as", "b", "--attribution", "name"]);
    assert_eq!(last(&named), "Hi.");
    assert_eq!(named.as_array().unwrap().last().unwrap()["name"], "Ada");
    let quoted = rendered(&["--as", "b", "--attribution", "quoted"]);
    assert!(
        quoted
            .as_array()
            .unwrap()
            .iter()
            .all(|it| it["kind"] == "request"),
        "{quoted}"
    );
}

#[test]
fn the_tools_of_others_are_shown_summarised_or_hidden() {
    let seen = |how: &str| rendered(&["--as", "b", "--foreign-tools", how]).to_string();
    assert!(seen("show").contains("tool-call"));
    assert!(!seen("summarise").contains("tool-call") && seen("summarise").contains("measure"));
    assert!(!seen("hide").contains("measure"));
}

#[test]
fn a_report_says_what_was_altered() {
    let ran = Home::new().feed(&["render", "--as", "b", "--report"], &thread());
    assert_eq!(ran.code, 0);
    assert!(
        ran.err
            .contains("rendered  /turns/1/messages/2/parts/0  attributed\n"),
        "{ran:?}"
    );
}

#[test]
fn an_unknown_agent_is_exit_4_with_those_there_are() {
    let home = Home::new();
    let ran = home.feed(&["render", "--as", "Eve"], &thread());
    assert_eq!((ran.code, ran.out.as_str()), (4, ""));
    assert_eq!(
        ran.err,
        "error: standard input has no agent \"Eve\"; there are: Ada (a), Bo (b), Bo (c)\n"
    );
    let ran = home.feed(&["render", "--as", "Bo"], &thread());
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(ran.err.contains("give its id"), "{ran:?}");
}

#[test]
fn what_is_rendered_is_in_the_words_of_the_library_and_what_it_refuses_is_reported() {
    let (messages, report) = of_parts(
        &[
            json!({"part_kind": "thinking", "thinking_id": "t", "provider_name": "x"}),
            json!({"part_kind": "custom:mood", "mood": "fine"}),
            json!({"part_kind": "tool-call", "tool_name": "f", "args": [1], "tool_call_id": "q"}),
        ],
        &[],
    );
    let thought = &messages[1]["parts"][0];
    assert_eq!(
        (&thought["id"], &thought["content"]),
        (&json!("t"), &json!(""))
    );
    assert!(messages[1].get("usage").is_none(), "{messages}");
    assert_eq!(messages[2]["parts"][0]["args"], "[1]");
    assert_eq!(messages.as_array().unwrap().len(), 3, "{messages}");
    let kind = "not carried  /2/parts/0  a part of a kind that the library has not\n";
    assert!(report.contains(kind), "{report}");
    assert!(
        report.contains("not carried  /3/parts/0/args  "),
        "{report}"
    );
}

#[test]
fn a_failed_answer_has_an_outcome() {
    let failed = thread().replace(
        "\"content\":\"2 m\"",
        "\"content\":\"2 m\",\"status\":\"error\"",
    );
    let ran = Home::new().feed(&["render", "--as", "a"], &failed);
    let messages: Value = serde_json::from_str(&ran.out).unwrap();
    let answer = &messages[2]["parts"][0];
    assert_eq!(
        (&answer["outcome"], answer.get("status")),
        (&json!("failed"), None)
    );
}

#[test]
fn a_pending_call_is_left_open_and_reported() {
    let call = json!({"part_kind": "tool-call", "tool_name": "f", "args": {}, "tool_call_id": "q"});
    let (messages, report) = of_parts(&[call], &["--unanswered", "interrupted"]);
    assert_eq!(messages.as_array().unwrap().len(), 2, "{messages}");
    let line = "rendered  /turns/1/messages/0/parts/0  pending call left open\n";
    assert!(report.contains(line), "{report}");
}

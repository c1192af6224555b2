//! `upgrade` and `downgrade`.

use crate::support::cli::Home;
use serde_json::{Value, json};

const OLD: &str = r#"{"version":"2.0.0","thread_id":"t","x_cost":1.50,"agents":{"a":{"agent_id":"a"}},"turns":[{"turn_type":"agent","agent_id":"a","messages":[{"message_type":"system","event_type":"agent.handoff","event_data":{"to":"b"}}]}]}"#;
const NEW: &str = r#"{"version":"0.0.4","thread_id":"t","turns":[{"turn_type":"user","client_metadata":{"theme":"dark"},"parts":[],"x":1.0}]}"#;

fn said(text: &str) -> Vec<Value> {
    let read = |line| serde_json::from_str(line).unwrap();
    text.lines().map(read).collect()
}

#[test]
fn an_older_document_is_written_anew_and_the_report_says_what_changed() {
    let ran = Home::new().feed(&["upgrade"], OLD);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.out
            .starts_with(r#"{"version":"0.0.4","thread_id":"t","x_cost":1.50,"#),
        "{ran:?}"
    );
    assert!(ran.out.contains("data-tp-agent_handoff"));
    let told = |word, pointer| {
        ran.err
            .lines()
            .any(|line| line.starts_with(&format!("{word}  {pointer}  ")))
    };
    assert!(told("renamed", "/turns/0/messages/0/event_type"), "{ran:?}");
    let ran = Home::new().feed(&["upgrade", "--json"], OLD);
    let told = said(&ran.err);
    assert!(
        told.iter()
            .any(|it| it["kind"] == "renamed" && it["pointer"] == "/turns/0/messages/0/event_type"),
        "{told:?}"
    );
}

#[test]
fn a_document_can_be_upgraded_less_far() {
    let ran = Home::new().feed(&["upgrade", "--to", "0.0.3", "-"], OLD);
    assert_eq!(ran.code, 0);
    assert!(ran.out.starts_with(r#"{"version":"0.0.3""#), "{ran:?}");
}

#[test]
fn what_an_earlier_version_has_no_place_for_is_dropped_and_told() {
    let ran = Home::new().feed(&["downgrade", "--to", "2.0.0"], NEW);
    let rest = NEW
        .replace("0.0.4", "2.0.0")
        .replace(r#""client_metadata":{"theme":"dark"},"#, "");
    assert_eq!((ran.code, ran.out), (0, format!("{rest}\n")));
    assert!(
        ran.err.starts_with("dropped  /turns/0/client_metadata  "),
        "{}",
        ran.err
    );
}

#[test]
fn nothing_is_dropped_under_strict_and_no_file_is_written() {
    let home = Home::new();
    let file = home.file("out.json", "before");
    let name = file.to_str().unwrap();
    let ran = home.feed(&["downgrade", "--to", "2.0.0", "--strict", "-o", name], NEW);
    assert_eq!((ran.code, ran.out.as_str()), (3, ""));
    assert!(
        ran.err.ends_with(
            "error: standard input: 1 loss, and --strict allows none; it is not written\n"
        ),
        "{ran:?}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "before");
    let ran = home.feed(&["downgrade", "--to", "0.0.3", "--strict", "-o", name], NEW);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{ran:?}");
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        NEW.replace("0.0.4", "0.0.3")
    );
}

#[test]
fn a_file_can_take_the_place_of_its_older_self() {
    let home = Home::new();
    let file = home.file("thread.json", OLD);
    let name = file.to_str().unwrap();
    assert_eq!(home.run(&["upgrade", name, "-o", name]).code, 0);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with(r#"{"version":"0.0.4""#), "{text}");
    let beside: Vec<_> = std::fs::read_dir(file.parent().unwrap()).unwrap().collect();
    assert_eq!(beside.len(), 1, "{beside:?}");
}

#[test]
fn the_wrong_direction_is_refused_with_the_right_one() {
    let home = Home::new();
    let ran = home.feed(&["upgrade", "--to", "2.0.0"], NEW);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(ran.err.contains("downgrade"), "{ran:?}");
    let ran = home.feed(&["downgrade", "--to", "0.0.4"], OLD);
    assert!(ran.code == 1 && ran.err.contains("upgrade"), "{ran:?}");
    let ran = home.feed(&["upgrade"], r#"{"version":"9.9.9"}"#);
    assert!(ran.code == 1 && ran.err.contains("9.9.9"), "{ran:?}");
    assert_eq!(home.feed(&["upgrade", "--to", "1.0.0"], OLD).code, 2);
}

#[test]
fn each_line_is_a_document_and_the_report_says_which() {
    let ran = Home::new().feed(
        &["downgrade", "--to", "2.0.0", "--jsonl", "--json"],
        &format!("{{\"version\":\"0.0.4\"}}\n{NEW}\n"),
    );
    assert_eq!(ran.code, 0);
    assert_eq!(ran.out.lines().next(), Some(r#"{"version":"2.0.0"}"#));
    let dropped: Vec<_> = said(&ran.err);
    assert_eq!(dropped.len(), 1, "{dropped:?}");
    assert_eq!(
        (&dropped[0]["kind"], &dropped[0]["line"]),
        (&json!("dropped"), &json!(2))
    );
}

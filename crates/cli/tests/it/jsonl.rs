//! Files with a document a line.

use crate::support::cli::{Home, Ran};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// So many documents of many sizes, a line each; the larger are longer than what is read at once.
fn documents(n: u32) -> String {
    let mut text = String::new();
    for place in 0..n {
        let length = if place % 97 == 0 {
            400_000
        } else {
            place % 700
        };
        let said = "é".repeat(length as usize / 2);
        writeln!(
            text,
            r#"{{"version":"0.0.4","thread_id":"{place}","x":"{said}","agents":{{}},"turns":[]}}"#
        )
        .unwrap();
    }
    text
}

fn run(home: &Home, arguments: &[&str], file: &Path) -> Ran {
    home.run(&[arguments, &[file.to_str().unwrap()]].concat())
}

#[test]
fn documents_leave_in_the_order_in_which_they_came() {
    let home = Home::new();
    let text = documents(1500);
    let file = home.file("a.jsonl", &text);
    let ran = run(&home, &["upgrade"], &file);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out == text, "{} bytes of {}", ran.out.len(), text.len());
    let written = home.path("b.ndjson");
    let ran = run(&home, &["upgrade", "-o", written.to_str().unwrap()], &file);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
    assert!(std::fs::read_to_string(&written).unwrap() == text);
    let piped = home.feed(&["upgrade", "--jsonl"], &text);
    assert!(piped.out == text);
}

#[test]
fn lines_are_told_by_the_name_of_the_file_or_by_the_flag() {
    let home = Home::new();
    let line = "{\"version\":\"0.0.4\"}\n";
    for name in ["a.jsonl", "a.ndjson", "a.JSONL"] {
        let file = home.file(name, &line.repeat(2));
        assert_eq!(run(&home, &["hash"], &file).out.lines().count(), 2);
    }
    let file = home.file("a.json", &line.repeat(2));
    assert_eq!(run(&home, &["hash"], &file).code, 1);
    let ran = run(&home, &["hash", "--jsonl", "--json"], &file);
    let lines: Vec<_> = ran.json().iter().map(|it| it["line"].clone()).collect();
    assert_eq!(lines, [1, 2]);
}

#[test]
fn blank_lines_are_passed_over_and_counted_as_lines() {
    let text = "\n  \r\n{\"version\":\"0.0.4\"}\r\n\n{\"version\":\"0.0.4\"}";
    let ran = Home::new().feed(&["hash", "--jsonl", "--json"], text);
    let lines: Vec<_> = ran.json().iter().map(|it| it["line"].clone()).collect();
    assert_eq!((ran.code, lines), (0, vec![json!(3), json!(5)]));
}

#[test]
fn nothing_at_all_is_no_documents() {
    let ran = Home::new().feed(&["hash", "--jsonl"], "");
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
}

#[test]
fn the_first_bad_line_ends_the_work_and_is_named_with_its_place() {
    let good = "{\"version\":\"0.0.4\"}";
    let text = format!("{good}\n{good}\n{{\"turns\":[1,}}\n{good}\n");
    let home = Home::new();
    let file = home.file("a.jsonl", &text);
    let ran = run(&home, &["upgrade"], &file);
    assert_eq!((ran.code, ran.out), (1, format!("{good}\n{good}\n")));
    assert!(
        ran.err.starts_with(&format!(
            "error: {}, line 3 can't be read as a ThreadProtocol document\n",
            file.display()
        )),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("at line 3, column 13 (in \"/turns"),
        "{}",
        ran.err
    );
    let out = home.path("out.jsonl");
    let ran = run(&home, &["upgrade", "-o", out.to_str().unwrap()], &file);
    assert_eq!(ran.code, 1);
    let left: Vec<_> = std::fs::read_dir(file.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["a.jsonl"]);
}

#[test]
fn bad_lines_are_left_out_and_counted_when_told_to_go_on() {
    let good = "{\"version\":\"0.0.4\"}";
    let text = format!("{good}\n[]\n{good}\n{{\n{good}\n");
    let ran = Home::new().feed(&["upgrade", "--jsonl", "--keep-going"], &text);
    assert_eq!((ran.code, ran.out), (1, format!("{good}\n").repeat(3)));
    for told in [
        "error: standard input, line 2 can't be read",
        "error: standard input, line 4 can't be read",
        "error: of 5 lines, 2 can't be read and 0 are refused\n",
    ] {
        assert!(ran.err.contains(told), "{told}: {}", ran.err);
    }
    let home = Home::new();
    let out = home.path("out.jsonl");
    let arguments = [
        "upgrade",
        "--jsonl",
        "--keep-going",
        "-o",
        out.to_str().unwrap(),
    ];
    assert_eq!(home.feed(&arguments, &text).code, 1);
    assert_eq!(
        std::fs::read_to_string(out).unwrap(),
        format!("{good}\n").repeat(3)
    );
}

#[test]
fn lines_that_lose_something_are_refused_under_strict() {
    let whole = r#"{"version":"0.0.4","turns":[]}"#;
    let lossy =
        r#"{"version":"0.0.4","turns":[{"turn_type":"user","client_metadata":{},"parts":[]}]}"#;
    let text = format!("{whole}\n{lossy}\n{whole}\n");
    let home = Home::new();
    let downgrade = ["downgrade", "--to", "2.0.0", "--strict", "--jsonl"];
    let ran = home.feed(&downgrade, &text);
    assert_eq!((ran.code, ran.out.lines().count()), (3, 1), "{ran:?}");
    let ran = home.feed(&[&downgrade[..], &["--keep-going"]].concat(), &text);
    assert_eq!((ran.code, ran.out.lines().count()), (3, 2), "{ran:?}");
    assert!(
        ran.err
            .ends_with("error: of 3 lines, 0 can't be read and 1 are not carried whole\n"),
        "{}",
        ran.err
    );
}

#[test]
fn validation_reports_every_line() {
    let good = r#"{"version":"0.0.4","thread_id":"7c7e9d0a-5c1f-4f43-9a53-0c6f0a6b6f01","created_at":"2026-01-05T08:00:00Z","updated_at":"2026-01-05T08:00:00Z","agents":{},"turns":[]}"#;
    let bad = good.replace(r#""agents":{}"#, r#""agents":7"#);
    let warned = good.replace("7c7e9d0a-5c1f-4f43-9a53-0c6f0a6b6f01", "t");
    let home = Home::new();
    let ran = home.feed(&["validate", "--jsonl"], &format!("{good}\n{warned}\n"));
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (
            0,
            "line 2: warning /thread_id \"t\" is no UUID [tp-uuid]\n2 lines valid under lenient, 1 warning\n"
        )
    );
    let ran = home.feed(&["validate", "--jsonl"], &format!("{bad}\n{good}\n{bad}\n"));
    assert_eq!(ran.code, 3);
    let found: Vec<_> = ran.out.lines().collect();
    assert_eq!(found.len(), 2, "{ran:?}");
    assert!(
        found[0].starts_with("line 1: error /agents ")
            && found[1].starts_with("line 3: error /agents "),
        "{ran:?}"
    );
    assert_eq!(
        ran.err,
        "error: of 3 lines, 0 can't be read and 2 are not valid\n"
    );
    let ran = home.feed(
        &["validate", "--jsonl", "--json"],
        &format!("{bad}\n{{\n{bad}\n"),
    );
    assert_eq!(ran.code, 3);
    let mut found = ran.json();
    let verdict = found.pop().unwrap();
    assert_eq!(
        verdict,
        json!({"verdict": "invalid", "profile": "lenient", "documents": 3, "errors": 3, "warnings": 0})
    );
    let lines: Vec<_> = found.iter().map(|it| it["line"].clone()).collect();
    assert_eq!(lines, [1, 2, 3]);
    let told: Vec<Value> = ran
        .err
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        told[0]["error"],
        "of 3 lines, 0 can't be read and 3 are not valid"
    );
}

#[test]
fn limits_hold_for_each_line() {
    let home = Home::new();
    let deep = format!("{{\"x\":{}{}}}", "[".repeat(9), "]".repeat(9));
    let long = format!("{{\"x\":\"{}\"}}", "y".repeat(600_000));
    let text = format!("{{}}\n{long}\n{deep}\n{{}}\n");
    let ran = home.feed(
        &[
            "hash",
            "--jsonl",
            "--json",
            "--keep-going",
            "--max-bytes",
            "64K",
            "--max-depth",
            "8",
        ],
        &text,
    );
    let lines: Vec<_> = ran.json().iter().map(|it| it["line"].clone()).collect();
    assert_eq!(
        (ran.code, lines),
        (1, vec![json!(1), json!(4)]),
        "{}",
        ran.err
    );
    assert!(
        ran.err
            .contains("standard input, line 2 has more than 65536 bytes"),
        "{}",
        ran.err
    );
    assert!(
        ran.err
            .contains("nesting is deeper than 8 levels at line 3"),
        "{}",
        ran.err
    );
}

#[test]
fn a_line_that_is_no_text_is_named_with_its_byte() {
    let home = Home::new();
    let file = home.path("a.jsonl");
    std::fs::write(&file, b"{}\n{\"a\":\"\xff\"}\n").unwrap();
    let ran = run(&home, &["hash"], &file);
    assert_eq!((ran.code, ran.out.lines().count()), (1, 1));
    assert!(
        ran.err
            .ends_with(", line 2 is not UTF-8: byte 6, counted from 0, is wrong\n"),
        "{}",
        ran.err
    );
}

#[test]
fn a_document_is_one_line_however_its_source_was_spelled() {
    let text =
        "{\"archive\":\"1.0.0\",\"runs\":[{\"format\":\"thread\",\"records\":[{\"a\":\r\r1}]}]}\n";
    let ran = Home::new().feed(
        &["convert", "--from", "archive", "--to", "archive", "--jsonl"],
        text,
    );
    assert_eq!((ran.code, ran.err.as_str()), (0, "1 lines, 0 losses\n"));
    assert_eq!(ran.out, text.replace('\r', " "));
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let home = Home::new();
    let file = home.file("a.jsonl", &documents(2000));
    for command in ["upgrade", "hash", "validate"] {
        let mut running = home.spawn(&[command, file.to_str().unwrap()]);
        running.bytes::<1>();
        let ran = running.close();
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{command}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_of_many_times_the_memory_in_use_is_judged() {
    use std::io::{Read, Write as _};
    const LINES: usize = 300;
    const MEGABYTE: usize = 1 << 20;
    let line = format!(
        r#"{{"version":"0.0.4","thread_id":"7c7e9d0a-5c1f-4f43-9a53-0c6f0a6b6f01","created_at":"2026-01-05T08:00:00Z","updated_at":"2026-01-05T08:00:00Z","agents":{{}},"turns":[],"x":"{}"}}
"#,
        "x".repeat(MEGABYTE)
    );
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_loomline"))
        .args(["validate", "--jsonl"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for _ in 0..LINES {
        input.write_all(line.as_bytes()).unwrap();
    }
    // Its input is still open, so it is there to be asked.
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB"))
        .and_then(|kilobytes| kilobytes.trim().parse::<usize>().ok())
        .unwrap();
    drop(input);
    let mut told = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut told)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{told}");
    assert!(told.contains("300"), "{told}");
    assert!(peak * 1024 < LINES * MEGABYTE / 2, "{peak} kB");
}

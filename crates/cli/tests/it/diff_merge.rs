//! `diff`, `patch` and `merge`.

use crate::support::cli::{Home, Ran};
use serde_json::{Value, json};

/// A document with this title in which the user says these things.
fn thread(title: &str, said: &[&str]) -> String {
    let turns: Vec<_> = said
        .iter()
        .map(|said| {
            json!({
                "turn_type": "user", "submitted_at": "2026-01-05T08:00:00Z",
                "parts": [{"part_kind": "user-prompt", "content": said}],
            })
        })
        .collect();
    json!({
        "version": "0.0.4", "thread_id": "7c7e9d0a-5c1f-4f43-9a53-0c6f0a6b6f01",
        "created_at": "2026-01-05T08:00:00Z", "updated_at": "2026-01-05T08:00:09Z",
        "title": title, "agents": {}, "turns": turns,
    })
    .to_string()
}

fn told(ran: &Ran) -> (i32, &str, &str) {
    (ran.code, &ran.out, &ran.err)
}

/// Compares two texts.
fn diff(from: &str, to: &str, arguments: &[&str]) -> Ran {
    let home = Home::new();
    let (from, to) = (home.file("a.json", from), home.file("b.json", to));
    let files = [from.to_str().unwrap(), to.to_str().unwrap()];
    home.run(&[&["diff"], &files[..], arguments].concat())
}

#[test]
fn documents_that_are_the_same_have_no_diff() {
    let text = thread("Looms", &["Does it fit?"]);
    assert_eq!(told(&diff(&text, &text, &[])), (0, "", ""));
}

#[test]
fn documents_that_differ_are_exit_3_and_no_error() {
    let ran = diff(
        &thread("Looms", &["Does it fit?"]),
        &thread("Looms", &["Does it fit?", "When?"]),
        &[],
    );
    assert_eq!((ran.code, ran.err.as_str()), (3, ""), "{ran:?}");
    assert!(
        ran.out.contains("+ ") && ran.out.contains("When?"),
        "{ran:?}"
    );
    assert!(!ran.out.contains('\u{1b}'), "{ran:?}");
}

#[test]
fn a_difference_of_spelling_is_shown_and_is_exit_0() {
    let text = thread("Looms", &["Does it fit?"]);
    let spelled =
        |number: &str| text.replace("\"turns\"", &format!("\"x_cost\":{number},\"turns\""));
    let ran = diff(&spelled("1.0"), &spelled("1"), &[]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.contains("form"), "{ran:?}");
}

#[test]
fn telemetry_is_no_difference_when_it_is_left_out() {
    let with = |ms: u32| {
        let mut document: Value = serde_json::from_str(&thread("Looms", &["Hi"])).unwrap();
        let event = json!({"message_type": "system", "event_type": "data-sys-latency", "event_data": {"ms": ms}, "timestamp": "2026-01-05T08:00:09Z"});
        let turn = json!({"turn_type": "agent", "agent_id": "a", "started_at": "2026-01-05T08:00:09Z", "completion_status": "complete", "messages": [event]});
        document["turns"].as_array_mut().unwrap().push(turn);
        document.to_string()
    };
    assert_eq!(diff(&with(1), &with(2), &[]).code, 3);
    assert_eq!(diff(&with(1), &with(2), &["--without-sys"]).code, 0);
}

#[test]
fn a_diff_for_scripts_is_one_line_of_json() {
    let ran = diff(
        &thread("Looms", &["Hi"]),
        &thread("A loom", &["Hi"]),
        &["--json"],
    );
    let diff = &ran.json()[0];
    assert_eq!((ran.code, ran.json().len(), ran.err.as_str()), (3, 1, ""));
    assert_eq!(diff["changes"][0]["level"], "root");
    let edit = &diff["changes"][0]["members"][0];
    assert_eq!(
        (&edit["old"], &edit["new"]),
        (&json!("Looms"), &json!("A loom"))
    );
}

#[test]
fn a_diff_is_coloured_only_where_a_terminal_reads_and_never_by_documents() {
    let home = Home::new();
    let a = home.file("a.json", &thread("Looms", &["Hi"]));
    let b = home.file(
        "b.json",
        &thread("Looms", &["Hi", "evil \u{1b}[2J\u{9b}2J\u{7f}"]),
    );
    let ran = home.in_colour(&["diff", a.to_str().unwrap(), b.to_str().unwrap()]);
    assert!(ran.out.contains("\u{1b}[32m"), "{ran:?}");
    let mut shown = ran.out;
    for style in ["0", "1", "2", "31", "32", "36"] {
        shown = shown.replace(&format!("\u{1b}[{style}m"), "");
    }
    assert!(
        !shown.contains(|c: char| c.is_control() && c != '\n'),
        "{shown:?}"
    );
}

#[test]
fn one_of_two_documents_can_come_from_standard_input() {
    let home = Home::new();
    let text = thread("Looms", &["Hi"]);
    let file = home.file("a.json", &text);
    let ran = home.feed(&["diff", file.to_str().unwrap(), "-"], &text);
    assert_eq!(told(&ran), (0, "", ""));
    let ran = home.feed(&["diff", "-", "-"], &text);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("standard input"), "{ran:?}");
}

#[test]
fn other_formats_are_compared_as_documents_and_what_is_in_none_is_told() {
    let history = |said: &str| {
        json!([
            {"parts": [{"content": "Be brief.", "timestamp": "2026-01-05T08:00:00Z", "part_kind": "system-prompt"},
                {"content": "Hi", "timestamp": "2026-01-05T08:00:00Z", "part_kind": "user-prompt"}], "kind": "request"},
            {"parts": [{"content": said, "part_kind": "text"}], "timestamp": "2026-01-05T08:00:01Z", "kind": "response"},
        ])
        .to_string()
    };
    let format = ["--format", "pydantic-ai"];
    let ran = diff(&history("Hello."), &history("Hello."), &format);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
    assert!(ran.err.starts_with("not compared  /"), "{ran:?}");
    let ran = diff(&history("Hello."), &history("Good day."), &format);
    assert!(ran.code == 3 && ran.out.contains("Good day."), "{ran:?}");
}

#[test]
fn a_document_that_is_not_there_is_named() {
    let ran = Home::new().run(&["diff", "/nowhere/a.json", "b.json"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(
        ran.err.starts_with("error: can't read /nowhere/a.json\n"),
        "{ran:?}"
    );
}

struct Branches(Home);

impl Branches {
    fn new(base: &str, ours: &str, theirs: &str) -> Self {
        let home = Home::new();
        home.file("base.json", base);
        home.file("ours.json", ours);
        home.file("theirs.json", theirs);
        Self(home)
    }

    fn merge(&self, arguments: &[&str]) -> Ran {
        let files = ["base.json", "ours.json", "theirs.json"].map(|name| self.0.path(name));
        let files = files.each_ref().map(|file| file.to_str().unwrap());
        self.0.run(&[&["merge"], &files[..], arguments].concat())
    }
}

fn conflicting() -> Branches {
    let branch = |title| thread(title, &["Hi"]);
    Branches::new(&branch("Looms"), &branch("Our loom"), &branch("Their loom"))
}

#[test]
fn what_either_side_changed_is_in_the_merged_document() {
    let branches = Branches::new(
        &thread("Looms", &["Hi"]),
        &thread("Looms", &["Hi", "When?"]),
        &thread("A loom", &["Hi"]),
    );
    let merged = format!("{}\n", thread("A loom", &["Hi", "When?"]));
    assert_eq!(told(&branches.merge(&[])), (0, merged.as_str(), ""));
}

#[test]
fn a_conflict_is_exit_3_and_the_document_is_written_all_the_same() {
    let branches = conflicting();
    let ran = branches.merge(&[]);
    assert_eq!(ran.code, 3);
    assert_eq!(ran.out, format!("{}\n", thread("Our loom", &["Hi"])));
    assert_eq!(
        ran.err,
        "conflict  /title  both changed it; ours is kept\n  base \"Looms\"\n  ours \"Our loom\"\n  theirs \"Their loom\"\nerror: 1 conflict\n"
    );
    let file = branches.0.path("out.json");
    let ran = branches.merge(&["-o", file.to_str().unwrap()]);
    assert_eq!((ran.code, ran.out.as_str()), (3, ""));
    assert_eq!(
        std::fs::read_to_string(file).unwrap(),
        thread("Our loom", &["Hi"])
    );
}

#[test]
fn conflicts_go_to_a_file_or_to_scripts_as_data() {
    let conflict = json!({"kind": "both_changed", "pointer": "/title", "base": "Looms", "ours": "Our loom", "theirs": "Their loom"});
    let branches = conflicting();
    let file = branches.0.path("conflicts.json");
    let ran = branches.merge(&["--conflicts", file.to_str().unwrap()]);
    assert_eq!((ran.code, ran.err.as_str()), (3, "error: 1 conflict\n"));
    let text = std::fs::read_to_string(file).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap(),
        json!([conflict])
    );
    let ran = branches.merge(&["--json"]);
    let first = ran.err.lines().next().unwrap();
    assert_eq!(serde_json::from_str::<Value>(first).unwrap(), conflict);
}

#[test]
fn the_document_and_the_conflicts_are_not_written_to_one_file() {
    let branches = conflicting();
    let file = branches.0.path("both.json");
    let other = file.with_file_name(".").join("both.json");
    for conflicts in [&file, &other] {
        let arguments = [
            "-o",
            file.to_str().unwrap(),
            "--conflicts",
            conflicts.to_str().unwrap(),
        ];
        let ran = branches.merge(&arguments);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
        assert!(!file.exists());
    }
}

#[test]
fn a_patch_makes_the_second_document_of_the_first_and_back() {
    let home = Home::new();
    let (from, to) = (
        thread("Looms", &["Does it fit?"]),
        thread("A loom", &["Will it fit?"]),
    );
    let path = |name: &str, text: &str| home.file(name, text).to_str().unwrap().to_owned();
    let (a, b) = (path("a.json", &from), path("b.json", &to));
    let diff = path("d.json", &home.run(&["diff", &a, &b, "--json"]).out);
    let written = home.path("out.json");
    home.ok(&["patch", &a, &diff, "-o", written.to_str().unwrap()]);
    assert_eq!(std::fs::read_to_string(&written).unwrap(), to);
    assert_eq!(
        home.ok(&["patch", &b, &diff, "--reverse"]),
        format!("{from}\n")
    );
    let ran = home.feed(
        &["patch", &a, "-"],
        &std::fs::read_to_string(&diff).unwrap(),
    );
    assert_eq!((ran.code, ran.out), (0, format!("{to}\n")));
}

#[test]
fn a_patch_of_another_document_is_refused_with_its_place() {
    let home = Home::new();
    let path = |name: &str, text: &str| home.file(name, text).to_str().unwrap().to_owned();
    let a = path("a.json", &thread("Looms", &["Does it fit?"]));
    let b = path("b.json", &thread("A loom", &["Does it fit?"]));
    let diff = path("d.json", &home.run(&["diff", &a, &b, "--json"]).out);
    let ran = home.run(&["patch", &b, &diff]);
    assert_eq!((ran.code, ran.out.as_str()), (3, ""));
    assert!(
        ran.err.contains("the diff does not fit") && ran.err.contains("/title"),
        "{ran:?}"
    );
    let ran = home.run(&["patch", &a, &b]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(ran.err.contains("can't be read as a diff"), "{ran:?}");
}

#[test]
fn documents_of_other_threads_are_not_merged() {
    let (base, other) = (thread("Looms", &["Hi"]), thread("Looms", &["Ho"]));
    let other = other.replace("7c7e9d0a", "8c7e9d0a");
    let ran = Branches::new(&base, &base, &other).merge(&[]);
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{ran:?}");
    assert!(ran.err.contains("not branches of one thread"), "{ran:?}");
    let link = r#""relationships":{"links":[{"thread_id":"7c7e9d0a-5c1f-4f43-9a53-0c6f0a6b6f01","relation":"spawned_from"}]},"turns""#;
    let fork = other.replace("\"turns\"", link);
    assert_eq!(Branches::new(&base, &base, &fork).merge(&[]).code, 0);
}

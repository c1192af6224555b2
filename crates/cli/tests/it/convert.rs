//! `convert`, and what holds for every command that reads documents.

use crate::support::cli::{Home, Ran};
use serde_json::{Value, json};

const ARCHIVE: &str = r#"{"archive":"1.0.0","thread_id":"t","x":1.50,"agents":{},"runs":[{"format":"thread","records":[{"b" : 1e2},[]]}]}"#;

/// A history of two runs, the second with a call that was never answered.
const HISTORY: &str = r#"[{"parts":[{"content":"Be brief.","timestamp":"2026-01-05T08:00:00Z","part_kind":"system-prompt"},{"content":"Hi","timestamp":"2026-01-05T08:00:00Z","part_kind":"user-prompt"}],"kind":"request","run_id":"r1"},{"parts":[{"content":"Hello.","part_kind":"text"}],"timestamp":"2026-01-05T08:00:01Z","kind":"response","run_id":"r1"}]"#;

fn convert(home: &Home, from: &str, to: &str, arguments: &[&str], input: &str) -> Ran {
    let convert = ["convert", "--from", from, "--to", to];
    home.feed(&[&convert[..], arguments].concat(), input)
}

/// The history as an archive, in which Ada ran.
fn archived(home: &Home) -> Ran {
    let ada = ["--agent", "Ada"];
    convert(home, "pydantic-ai", "archive", &ada, HISTORY)
}

fn lines(text: &str) -> Vec<Value> {
    let read = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{text}"));
    text.lines().map(read).collect()
}

#[test]
fn an_archive_passes_through_as_it_was() {
    let home = Home::new();
    let ran = convert(&home, "archive", "archive", &[], ARCHIVE);
    assert_eq!((ran.code, ran.out), (0, format!("{ARCHIVE}\n")));
    assert_eq!(ran.err, "0 losses\n");
    let (source, target) = (home.file("in.json", ARCHIVE), home.path("out.json"));
    let (source, target) = (source.to_str().unwrap(), target.to_str().unwrap());
    let ran = convert(
        &home,
        "archive",
        "archive",
        &[source, "-o", target, "--json"],
        "",
    );
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
    assert_eq!(lines(&ran.err), [json!({"losses": 0})]);
    assert_eq!(std::fs::read_to_string(target).unwrap(), ARCHIVE);
}

#[test]
fn a_failure_leaves_the_file_that_was_there_and_no_other() {
    let home = Home::new();
    let target = home.file("out.json", "before");
    let ran = convert(
        &home,
        "archive",
        "archive",
        &["-o", target.to_str().unwrap()],
        "{",
    );
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "before");
    let left = std::fs::read_dir(target.parent().unwrap()).unwrap().count();
    assert_eq!(left, 1);
}

#[test]
fn what_is_no_json_is_told_with_its_place() {
    let ran = convert(
        &Home::new(),
        "archive",
        "archive",
        &[],
        "{\n\"runs\": [1,}\n",
    );
    assert_eq!(ran.code, 1);
    assert!(
        ran.err
            .starts_with("error: standard input can't be read as archive\n  because "),
        "{ran:?}"
    );
    let ran = convert(
        &Home::new(),
        "archive",
        "archive",
        &[],
        "{\"archive\":\"1.0.0\",\"runs\":[{\"format\":\"csv\"}]}",
    );
    assert!(
        ran.code == 1 && ran.err.contains("\"/runs/0/format\""),
        "{ran:?}"
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let home = Home::new();
    for command in [
        &["hash"][..],
        &["validate"],
        &["upgrade"],
        &["convert", "--from", "archive", "--to", "thread"],
    ] {
        let ran = home.run(&[command, &["/nowhere/a.json"]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (1, ""));
        assert!(
            ran.err.starts_with("error: can't read /nowhere/a.json\n"),
            "{ran:?}"
        );
    }
}

#[test]
fn a_file_that_can_not_be_written_is_named() {
    let arguments = ["-o", "/nowhere/out.json"];
    let ran = convert(&Home::new(), "archive", "archive", &arguments, ARCHIVE);
    assert_eq!(ran.code, 1);
    assert!(
        ran.err
            .starts_with("error: can't write /nowhere/out.json\n"),
        "{ran:?}"
    );
}

#[test]
fn a_device_is_written_to_and_not_replaced() {
    let arguments = ["-o", "/dev/stdout"];
    let ran = convert(&Home::new(), "archive", "archive", &arguments, ARCHIVE);
    assert_eq!((ran.code, ran.out.as_str()), (0, ARCHIVE), "{ran:?}");
}

#[test]
fn what_is_no_text_is_told_with_its_byte() {
    let home = Home::new();
    let file = home.path("a.json");
    std::fs::write(&file, b"{\"a\":\"\xff\"}").unwrap();
    let ran = home.run(&["hash", file.to_str().unwrap()]);
    assert_eq!(ran.code, 1);
    let told = format!(
        "error: {} is not UTF-8: byte 6, counted from 0, is wrong\n",
        file.display()
    );
    assert_eq!(ran.err, told);
}

#[test]
fn limits_can_be_set_and_are_told_with_their_place() {
    let home = Home::new();
    let deep = |levels: usize| format!("{{\"x\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(home.feed(&["hash"], &deep(127)).code, 0);
    let ran = home.feed(&["hash"], &deep(128));
    assert!(
        ran.code == 1
            && ran.err.contains("deeper than 128 levels")
            && ran.err.contains("(in \"/x/0/"),
        "{ran:?}"
    );
    assert_eq!(
        home.feed(&["hash", "--max-depth", "129"], &deep(128)).code,
        0
    );
    let ran = home.feed(&["hash", "--max-values", "3"], "{\"x\":[1,2,3]}");
    assert!(
        ran.code == 1 && ran.err.contains("more than 3 values") && ran.err.contains("/x/"),
        "{ran:?}"
    );
    let text = format!("{{\"x\":\"{}\"}}", "y".repeat(2000));
    let file = home.file("a.json", &text);
    for (input, name) in [
        ("-", "standard input"),
        (file.to_str().unwrap(), file.to_str().unwrap()),
    ] {
        let ran = home.feed(&["hash", "--max-bytes", "1K", input], &text);
        let told = format!("error: {name} has more than 1024 bytes; --max-bytes allows more\n");
        assert_eq!((ran.code, ran.err), (1, told));
    }
    for wrong in [
        ["--max-depth", "0"],
        ["--max-depth", "1025"],
        ["--max-bytes", "0"],
        ["--max-bytes", "1X"],
        ["--max-values", "-1"],
    ] {
        assert_eq!(
            home.feed(&["hash", wrong[0], wrong[1]], "{}").code,
            2,
            "{wrong:?}"
        );
    }
}

#[test]
fn options_that_make_no_sense_are_exit_2() {
    let home = Home::new();
    let onto = home.file("onto.json", ARCHIVE);
    let onto = onto.to_str().unwrap();
    for arguments in [
        &["--at", "yesterday"][..],
        &["--ai-sdk", "8"],
        &["--onto", onto, "--jsonl"],
    ] {
        let ran = convert(&home, "archive", "archive", arguments, ARCHIVE);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments:?}");
    }
    let file = home.file("in.jsonl", ARCHIVE);
    let file = file.to_str().unwrap();
    let ran = convert(&home, "pydantic-ai", "archive", &["--onto", onto, file], "");
    assert!(ran.code == 2 && ran.err.contains("--onto"), "{ran:?}");
    assert_eq!(convert(&home, "csv", "archive", &[], "").code, 2);
}

#[test]
fn who_ran_must_be_said_in_the_right_shape() {
    let home = Home::new();
    for (text, told) in [
        ("{}", "\"\": expected a list"),
        ("[7]", "\"/0\": expected an object"),
        ("[{}]", "\"/0/agent\": expected a name"),
        ("[{\"agent\":7}]", "\"/0/agent\": expected a string"),
        (
            "[{\"agent\":\"a\",\"n_new_messages\":-1}]",
            "\"/0/n_new_messages\": expected a count",
        ),
        ("[", "the text ends early"),
    ] {
        let file = home.file("runs.json", text);
        let arguments = ["--attribution", file.to_str().unwrap()];
        let ran = convert(&home, "archive", "archive", &arguments, ARCHIVE);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""));
        assert!(
            ran.err
                .contains("runs.json can't be read as a list of who ran")
                && ran.err.contains(told),
            "{ran:?}"
        );
    }
}

#[test]
fn formats_that_have_no_rules_are_valid_when_they_can_be_read() {
    let home = Home::new();
    let validate = ["validate", "--format", "archive"];
    let ran = home.feed(&validate, ARCHIVE);
    assert_eq!((ran.code, ran.out.as_str()), (0, "valid, 0 warnings\n"));
    let ran = home.feed(&validate, "{\"archive\":\"1.0.0\",\"runs\":7}");
    assert_eq!((ran.code, ran.err.as_str()), (3, "error: 1 error\n"));
    assert!(ran.out.starts_with("error \"/runs\": expected"), "{ran:?}");
    assert_eq!(home.feed(&validate, "{").code, 3);
}

#[test]
fn a_document_cannot_control_the_terminal_through_a_report() {
    let evil = "\u{9b}2J\u{7f}";
    let text =
        format!("{{\"archive\":\"1.0.0\",\"runs\":[{{\"format\":\"{evil}\",\"records\":[]}}]}}");
    for json in [&[][..], &["--json"]] {
        let ran = convert(&Home::new(), "archive", "archive", json, &text);
        let control = |c: char| c.is_control() && c != '\n';
        assert!(ran.code == 1 && !ran.err.contains(control), "{ran:?}");
    }
}

#[test]
fn a_history_comes_back_as_it_was_and_tells_no_loss() {
    let home = Home::new();
    let archive = archived(&home);
    assert_eq!((archive.code, archive.err.as_str()), (0, "0 losses\n"));
    assert!(archive.out.contains("Ada"), "{archive:?}");
    let back = convert(&home, "archive", "pydantic-ai", &["--strict"], &archive.out);
    assert_eq!((back.code, back.err.as_str()), (0, "0 losses\n"));
    assert_eq!(back.out, format!("{HISTORY}\n"));
}

#[test]
fn what_a_document_has_no_place_for_is_told_and_refused_under_strict() {
    let home = Home::new();
    let ran = convert(&home, "pydantic-ai", "thread", &["--agent", "Ada"], HISTORY);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.starts_with("not carried  /"), "{ran:?}");
    let n_losses = ran.err.lines().count() - 1;
    assert!(
        n_losses > 0 && ran.err.contains(&format!("\n{n_losses} loss")),
        "{ran:?}"
    );
    let told = convert(
        &home,
        "pydantic-ai",
        "thread",
        &["--agent", "Ada", "--json"],
        HISTORY,
    );
    let told = lines(&told.err);
    assert_eq!(told.last(), Some(&json!({"losses": n_losses})));
    assert_eq!(told[0]["kind"], "not carried");
    let file = home.path("out.json");
    let ran = convert(
        &home,
        "pydantic-ai",
        "thread",
        &["--strict", "-o", file.to_str().unwrap()],
        HISTORY,
    );
    assert_eq!((ran.code, ran.out.as_str(), file.exists()), (3, "", false));
    assert!(ran.err.contains("--strict allows none"), "{ran:?}");
}

#[test]
fn the_same_source_gives_the_same_document() {
    let home = Home::new();
    let thread = || convert(&home, "pydantic-ai", "thread", &["--agent", "Ada"], HISTORY).out;
    let first = thread();
    assert!(first.contains("Hello.") && first == thread(), "{first}");
    let named = ["--agent", "Ada", "--thread-id", "t-1", "--title", "Looms"];
    let ran = convert(&home, "pydantic-ai", "thread", &named, HISTORY);
    let document = &ran.json()[0];
    assert_eq!(
        (&document["thread_id"], &document["title"]),
        (&json!("t-1"), &json!("Looms"))
    );
}

#[test]
fn an_archive_goes_on_with_the_next_run_of_another_agent() {
    let home = Home::new();
    let archive = archived(&home);
    let onto = home.file("archive.json", &archive.out);
    let runs = home.file(
        "runs.json",
        r#"[{"agent":"Bo","run_id":"r2","n_new_messages":2,"new_messages":[]}]"#,
    );
    let next = HISTORY.replace("r1", "r2").replace("Hello.", "Good day.");
    // Said an hour later: what was said at the same time is the same.
    let next = next.replace("T08:", "T09:");
    let arguments = [
        "--onto",
        onto.to_str().unwrap(),
        "--attribution",
        runs.to_str().unwrap(),
    ];
    let ran = convert(&home, "pydantic-ai", "archive", &arguments, &next);
    assert_eq!((ran.code, ran.err.as_str()), (0, "0 losses\n"), "{ran:?}");
    let archive = &ran.json()[0];
    let agents: Vec<_> = archive["agents"]
        .as_object()
        .unwrap()
        .values()
        .map(|it| it["agent_name"].clone())
        .collect();
    assert_eq!(agents, ["Ada", "Bo"]);
    let back = convert(&home, "archive", "pydantic-ai", &[], &ran.out);
    assert!(
        back.out.contains("Hello.") && back.out.contains("Good day."),
        "{back:?}"
    );
}

#[test]
fn the_examples_of_the_documentation_work_in_their_order() {
    let home = Home::new();
    home.file("history.json", HISTORY);
    home.file("more.json", &HISTORY.replace("r1", "r2"));
    home.file("runs.json", r#"[{"agent":"Ada","run_id":"r1"}]"#);
    home.file("histories.jsonl", &format!("{HISTORY}\n{HISTORY}\n"));
    let text = include_str!("../../../../docs/reference/converting.md");
    let examples = text.split("```sh\n").skip(1);
    let commands = examples.flat_map(|block| block.split("```").next().unwrap().lines());
    let mut n = 0;
    for command in commands {
        let arguments: Vec<_> = command
            .split(' ')
            .skip(1)
            .map(|word| {
                let is_file = [".json", ".jsonl"].iter().any(|end| word.ends_with(end));
                let path = home.path(word).display().to_string();
                if is_file { path } else { word.to_owned() }
            })
            .collect();
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let ran = home.run(&arguments);
        assert_eq!(ran.code, 0, "{command}: {ran:?}");
        n += 1;
    }
    assert_eq!(n, 15);
    let read = |name| std::fs::read_to_string(home.path(name)).unwrap();
    assert_eq!(read("again.json"), HISTORY);
    assert_eq!(read("exact.json"), HISTORY);
    assert_eq!(read("threads.jsonl").lines().count(), 2);
}

#[test]
fn losses_point_into_the_file_that_was_read() {
    let home = Home::new();
    let history = r#"[{"kind":"request","parts":[{"part_kind":"user-prompt","content":"Q"}],"timestamp":"2026-01-05T08:00:00Z"},
        {"kind":"response","parts":[{"part_kind":"text","content":"A"}],"timestamp":"2026-01-05T08:00:01Z"},
        {"kind":"request","parts":[{"part_kind":"system-prompt","content":"S"},{"part_kind":"user-prompt","content":"Q"}],"timestamp":"2026-01-05T08:00:02Z"},
        {"kind":"response","parts":[{"part_kind":"text","content":"A"}],"timestamp":"2026-01-05T08:00:03Z"}]"#;
    let ran = convert(&home, "pydantic-ai", "thread", &["--json"], history);
    let told: Value = serde_json::from_str(ran.err.lines().next().unwrap()).unwrap();
    assert_eq!(told["pointer"], "/2/parts/0", "{ran:?}");
    assert!(
        ran.err.lines().all(|line| !line.contains("/runs/")),
        "{ran:?}"
    );
    let messages = r#"[{"id":"u","role":"user","parts":[{"type":"text","text":"Q"}]},
        {"id":"a","role":"assistant","parts":[{"type":"text","text":"On the ro","state":"streaming"}]}]"#;
    let ran = convert(&home, "ai-sdk-ui", "thread", &["--json"], messages);
    assert!(ran.err.contains(r#""pointer":"/1/parts/0""#), "{ran:?}");
}

//! What holds for every command, and the commands that touch no thread.

use crate::support::cli::Home;
use serde_json::json;
use std::io::{Seek, SeekFrom, Write};
use std::process::Command;

#[test]
fn the_help_of_each_command_says_what_it_needs() {
    let home = Home::new();
    let commands = [
        ("", "completions"),
        ("serve", "--listen <ADDR>"),
        ("run", "<PROMPT>"),
        ("run", "--thread <KEY>"),
        ("run", "- to read it from standard input"),
        ("run", "--server <URL>"),
        ("run", "--quiet"),
        ("run", "--color <WHEN>"),
        ("threads", "delete"),
        ("threads list", "--prefix <PREFIX>"),
        ("threads show", "<KEY>"),
        ("tail", "--no-follow"),
        ("threads tail", "--after <SEQ>"),
        ("serve", "--model <PROVIDER/MODEL>"),
        ("init", "--tenant <NAME>"),
        ("trace", "--run <ID>"),
        ("open", "loomline open support-42"),
        ("threads fork", "[NEW_KEY]"),
        ("threads tree", "<KEY>"),
        ("threads delete", "<KEY>"),
        ("threads delete", "--yes"),
        ("export", "--thread <KEY>"),
        ("import", "--from <FORMAT>"),
        ("import", "pydantic-ai"),
        ("validate", "- for standard input"),
        ("hash", "--without-sys"),
        ("convert", "--from <FORMAT>"),
        ("convert", "--onto <ARCHIVE>"),
        ("convert", "[default: 1970-01-01T00:00:00Z]"),
        ("convert", "--max-depth <N>"),
        ("diff", "<A> <B>"),
        ("diff", "Exits with 0 if it is equal, else with 3"),
        ("merge", "<BASE> <OURS> <THEIRS>"),
        ("upgrade", "--to <VERSION>"),
        ("downgrade", "--to <VERSION>"),
        ("render", "--as <AGENT>"),
        ("agents check", "Exits with 1 if the server can't use it"),
        ("agents list", "List the agents"),
        ("doctor", "--data <DIR>"),
        ("doctor", "loomline doctor --rebuild"),
        ("search", "--status <STATUS>"),
        ("search", "loomline search flight"),
        ("key", "its hash for the configuration"),
        ("key", "--store"),
        ("rekey", "--new-key-env <VARIABLE>"),
        ("rekey", "--decrypt"),
        ("backup", "--verify"),
        ("restore", "--at <INSTANT>"),
        ("tenant export", "-o acme.jsonl"),
        ("tenant import", "<FILE>"),
        ("completions", "<SHELL>"),
    ];
    for (command, needs) in commands {
        let arguments: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let help = home.ok(&arguments);
        assert!(help.contains(needs), "{command}: {help}");
        assert!(
            help.contains("--config <FILE>") && help.contains("--json"),
            "{command}"
        );
    }
}

#[test]
fn a_command_line_that_makes_no_sense_is_exit_2() {
    let home = Home::new();
    for arguments in [
        &["run"][..],
        &["weave"],
        &["rekey"],
        &["rekey", "--decrypt", "--new-key-env", "KEY"],
        &["restore", "backups"],
        &["backup", "backups", "--full", "--verify"],
        &["export"],
        &["import", "x.json"],
        &["completions", "ksh"],
        &["run", "x", "--max-steps", "0"],
        &[
            "run",
            "x",
            "--server",
            "http://127.0.0.1:1",
            "--tenant",
            "t",
        ],
        &["run", "x", "--color", "blue"],
        &["serve", "--listen", "localhost:port"],
        &["threads", "list", "--limit", "0"],
    ] {
        let ran = home.run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments:?}");
        assert!(ran.err.contains("--help"), "{ran:?}");
    }
}

#[test]
fn shells_are_given_completions() {
    let home = Home::new();
    for (shell, sign) in [
        ("bash", "complete -F _loomline"),
        ("zsh", "#compdef loomline"),
        ("fish", "complete -c loomline"),
    ] {
        let text = home.ok(&["completions", shell]);
        assert!(
            text.contains(sign) && text.contains("pydantic-ai"),
            "{shell}: {text}"
        );
    }
}

#[test]
fn a_new_key_opens_the_server_that_has_its_hash_and_no_other_does() {
    let mut home = Home::new();
    let made = &home.run(&["key", "--json"]).json()[0];
    let (key, hash) = (
        made["key"].as_str().unwrap(),
        made["hash"].as_str().unwrap(),
    );
    home.configure(&format!("[tenants.acme]\nkey_hashes = [\"{hash}\"]\n"));
    let server = home.server();
    let status = |key: Option<&str>| {
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .build();
        let request = ureq::Agent::from(agent).get(server.url("/api/v1/threads"));
        let request = match key {
            Some(key) => request.header("authorization", format!("Bearer {key}")),
            None => request,
        };
        request.call().unwrap().status().as_u16()
    };
    assert_eq!(status(None), 401);
    assert_eq!(status(Some(&key.replace("llk_", "llk_0"))), 401);
    assert_eq!(status(Some(key)), 200);
    let log = std::fs::read_to_string(home.data().join("server.log")).unwrap();
    assert!(!log.contains(key));
}

#[test]
fn the_lines_that_key_prints_are_a_configuration() {
    let mut home = Home::new();
    let text = home.ok(&["key"]);
    let (_, tenant) = text.split_once("[tenants.NAME]").unwrap();
    home.configure(&format!("[tenants.acme]{tenant}"));
    assert!(
        home.ok(&["doctor"])
            .contains("ok  configuration (configured)")
    );
    assert_ne!(home.ok(&["key"]), text);
}

#[test]
fn a_healthy_store_has_no_findings() {
    let home = Home::new();
    assert!(home.ok(&["doctor"]).contains("none yet"));
    home.ok(&["run", "compute 1+1", "--thread", "k"]);
    let checks = home.run(&["doctor", "--json"]).json();
    assert!(
        checks.len() >= 3 && checks.iter().all(|it| it["ok"] == true),
        "{checks:?}"
    );
}

fn damage(home: &Home, at: u64, n_bytes: usize) {
    let path = home.data().join("loomline.db");
    let mut file = std::fs::File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(&vec![0xa5; n_bytes]).unwrap();
}

#[test]
fn a_damaged_store_is_a_finding_and_exit_1() {
    let home = Home::new();
    home.ok(&["run", "say 20000 words", "--thread", "k"]);
    let size = std::fs::metadata(home.data().join("loomline.db"))
        .unwrap()
        .len();
    damage(&home, size / 2 / 4096 * 4096, 8192);
    let ran = home.run(&["doctor"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.out.contains("bad store is sound: ") && ran.err.contains("finding"),
        "{ran:?}"
    );
    assert!(ran.out.contains("put a backup in its place"), "{ran:?}");
    let last = home.run(&["doctor", "--json"]).json().pop().unwrap();
    let advice = last["advice"].as_str().unwrap();
    assert!(advice.contains("loomline export --thread KEY"), "{advice}");
}

#[test]
fn a_file_that_is_no_store_is_a_finding_and_is_left_alone() {
    let home = Home::new();
    home.ok(&["run", "hello", "--thread", "k"]);
    damage(&home, 0, 100);
    let before = std::fs::read(home.data().join("loomline.db")).unwrap();
    let ran = home.run(&["doctor"]);
    assert_eq!(ran.code, 1);
    assert!(ran.out.contains("bad store opens: "), "{ran:?}");
    assert!(!ran.out.contains("threads list"), "{ran:?}");
    let refused = home.run(&["run", "hello"]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.err.contains("the file is not a store of loomline"),
        "{refused:?}"
    );
    assert_eq!(
        std::fs::read(home.data().join("loomline.db")).unwrap(),
        before
    );
}

#[test]
fn a_store_that_can_not_be_read_is_a_finding_with_advice() {
    let home = Home::new();
    std::fs::create_dir(home.data().join("loomline.db")).unwrap();
    let ran = home.run(&["doctor"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let data = home.data().display().to_string();
    for words in [
        "bad store opens: ",
        "is a directory, and the store is a file: move it away",
        &data,
    ] {
        assert!(ran.out.contains(words), "{words}: {ran:?}");
    }
}

#[test]
fn a_configuration_that_is_wrong_is_a_finding_with_its_place() {
    let mut home = Home::new();
    home.configure("[server]\nlisten = \"127.0.0.1:0\"\nlisen = 1\n");
    let ran = home.run(&["doctor"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.out.contains("bad configuration: ") && ran.out.contains("line 3"),
        "{ran:?}"
    );
    let ran = home.run(&["run", "hello"]);
    assert!(ran.code == 1 && ran.err.contains("lisen"), "{ran:?}");
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let home = Home::new();
    home.ok(&["run", "say 3000 words", "--thread", "k"]);
    let commands: [&[&str]; 6] = [
        &["run", "slow 1ms say 200 words", "--thread", "other"],
        &["run", "slow 1ms say 200 words", "--json"],
        &["tail", "k", "-q"],
        &["threads", "show", "k"],
        &["export", "--thread", "k"],
        &["completions", "bash"],
    ];
    for command in commands {
        let mut running = home.spawn(command);
        running.bytes::<1>();
        let ran = running.close();
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{command:?}");
    }
}

#[test]
fn what_a_model_says_is_never_control_over_the_terminal() {
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}2J\u{8}\u{7f}\r";
    let turn = json!({
        "reasoning": format!("think {evil}"), "text": format!("say {evil}"),
        "tool_calls": [
            {"name": format!("tool{evil}"), "arguments": {evil: evil}},
            {"name": "compute", "arguments": {"expression": evil}},
        ],
    });
    let failure = json!({"error": {"code": "INVALID_REQUEST", "message": format!("no {evil}")}});
    let home = Home::scripted(&json!({"turns": [turn, failure]}));
    let commands: [&[&str]; 6] = [
        &["run", "go", "--thread", "k"],
        &["run", "go", "--thread", "k", "--json"],
        &["threads", "show", "k"],
        &["threads", "show", "k", "--json"],
        &["tail", "k", "--no-follow"],
        &["doctor"],
    ];
    for command in commands {
        let ran = home.in_colour(command);
        assert_eq!(ran.code, i32::from(command[0] == "run"), "{ran:?}");
        let mut shown = ran.out + &ran.err;
        for style in ["0", "1", "2", "31", "32", "36"] {
            shown = shown.replace(&format!("\u{1b}[{style}m"), "");
        }
        let raw = shown.find(|c: char| c.is_control() && c != '\n' && c != '\t');
        assert_eq!(raw.map(|at| &shown[at..]), None, "{command:?}");
    }
}

#[test]
fn output_has_colours_only_where_a_terminal_reads() {
    let home = Home::new();
    home.ok(&["run", "compute 1+1", "--thread", "k"]);
    assert!(
        home.in_colour(&["threads", "show", "k"])
            .out
            .contains("\u{1b}[1muser\u{1b}[0m")
    );
    assert!(!home.ok(&["threads", "show", "k"]).contains('\u{1b}'));
}

#[test]
fn a_variable_that_is_empty_is_as_good_as_none() {
    let mut home = Home::new();
    for name in ["DATA", "CONFIG", "LISTEN", "LOG_FORMAT", "LOG"] {
        home.set(&format!("LOOMLINE_{name}"), "");
    }
    assert!(home.ok(&["doctor"]).contains("development mode"));
    // The directory is then the user's.
    let user = home.path("user");
    let shown = Command::new(env!("CARGO_BIN_EXE_loomline"))
        .arg("doctor")
        .envs([("LOOMLINE_DATA", ""), ("LOOMLINE_CONFIG", "")])
        .env("XDG_DATA_HOME", &user)
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let expected = user.join("loomline").display().to_string();
    assert!(shown.contains(&expected), "{shown}");
    // What is logged is what is logged without a filter.
    home.server();
    let log = std::fs::read_to_string(home.data().join("server.log")).unwrap();
    assert!(log.contains(" INFO "), "{log}");
}

#[test]
fn doctor_shows_what_each_tenant_stores_beside_its_limits() {
    let mut home = Home::new();
    home.ok(&["run", "compute 1+1", "--thread", "k"]);
    let text = home.ok(&["doctor"]);
    assert!(
        text.contains("ok  tenant dev stores 1 of 1000000 threads, ")
            && text.contains(" of 68719476736 bytes, 0 of 100000 files"),
        "{text}"
    );
    home.configure("[limits.tenant]\nthreads = 1\n");
    let ran = home.run(&["doctor"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.out.contains("bad tenant dev stores 1 of 1 threads")
            && ran
                .out
                .contains("raise the limit in [limits.tenant] of the configuration"),
        "{ran:?}"
    );
}

/// A document of one message.
const DOCUMENT: &str = r#"{"thread_protocol_version":"0.0.4","thread_id":"t","messages":[{"type":"user","id":"m","content":[{"type":"text","text":"hello"}],"timestamp":"2026-01-05T08:00:00Z"}]}"#;

/// Runs the commands and checks their exit codes. A failure prints an error.
fn check_codes(home: &Home, cases: &[(&[&str], i32)]) {
    for (arguments, code) in cases {
        let ran = home.run(arguments);
        assert_eq!(ran.code, *code, "{arguments:?}: {ran:?}");
        let is_silent = *code == 0 || (arguments[0] == "diff" && *code == 3);
        assert_eq!(
            ran.err.contains("error"),
            !is_silent,
            "{arguments:?}: {ran:?}"
        );
    }
}

const MISSING: &str = "/nowhere/at/all.json";

#[test]
fn commands_on_threads_have_exit_codes_for_success_and_bad_input() {
    let home = Home::new();
    home.ok(&["run", "hello", "--thread", "k"]);
    check_codes(
        &home,
        &[
            (&["run", "again", "--thread", "k"], 0),
            (&["run"], 2),
            (&["run", "x", "--agent", "nobody"], 4),
            (&["run", "fail"], 1),
            (&["serve", "--listen", "no-such-host.invalid:80"], 1),
            (&["serve", "--listen", "a b"], 2),
            (&["threads", "list"], 0),
            (&["threads", "list", "--limit", "0"], 2),
            (&["threads", "show", "k"], 0),
            (&["threads", "show", "no"], 4),
            (&["threads", "tail", "k", "--no-follow"], 0),
            (&["threads", "tail", "no", "--no-follow"], 4),
            (&["tail", "k", "--after", "x"], 2),
            (&["threads", "fork", "k", "f"], 0),
            (&["threads", "fork", "k", "f"], 1),
            (&["threads", "fork", "no"], 4),
            (&["threads", "tree", "k"], 0),
            (&["threads", "tree", "no"], 4),
            (&["threads", "delete", "f"], 0),
            (&["threads", "delete", "f"], 4),
            (&["trace", "k"], 0),
            (&["trace", "no"], 4),
            (&["search", "hello"], 0),
            (&["search"], 2),
            (&["agents", "list"], 0),
            (&["agents", "check", "--config", MISSING], 1),
            (&["export", "--thread", "k"], 0),
            (&["export", "--thread", "no"], 4),
            (&["doctor"], 0),
            (&["doctor", "--config", MISSING], 1),
        ],
    );
}

#[test]
fn commands_on_documents_have_exit_codes_for_success_and_bad_input() {
    let home = Home::new();
    home.ok(&["run", "hello", "--thread", "k"]);
    let path = |name: &str| home.path(name).to_str().unwrap().to_owned();
    let (document, made) = (path("k.json"), path("made.json"));
    let (document, made) = (document.as_str(), made.as_str());
    home.ok(&["export", "--thread", "k", "-o", document]);
    let diff = home.run(&["diff", document, document, "--json"]).out;
    home.file("diff.json", &diff);
    home.file("broken.json", "{");
    home.file("other.json", DOCUMENT);
    let (diff, broken, other) = (path("diff.json"), path("broken.json"), path("other.json"));
    let (diff, broken, other) = (diff.as_str(), broken.as_str(), other.as_str());
    let convert = ["convert", "--from", "thread", "--to", "pydantic-ai"];
    let convert = |file| [&convert[..], &[file]].concat();
    check_codes(
        &home,
        &[
            (
                &["import", "--from", "thread", document, "--thread", "i"],
                0,
            ),
            (
                &["import", "--from", "thread", document, "--thread", "i"],
                1,
            ),
            (&["import", "--from", "nothing", document], 2),
            (&["import", "--from", "thread", broken], 1),
            (&convert(document), 0),
            (&convert(broken), 1),
            (&convert(MISSING), 1),
            (&["validate", document], 0),
            (&["validate", broken], 3),
            (&["validate", MISSING], 1),
            (&["hash", document], 0),
            (&["hash", broken], 1),
            (&["diff", document, document], 0),
            (&["diff", document, other], 3),
            (&["diff", document], 2),
            (&["patch", document, diff, "-o", made], 0),
            (&["patch", document, broken], 1),
            (&["merge", document, document, document, "-o", made], 0),
            (&["merge", document], 2),
            (&["render", "--as", "nobody", document], 4),
            (&["schema", "0.0.4"], 0),
            (&["schema", "9.9.9"], 2),
        ],
    );
}

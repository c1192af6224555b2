//! `export`, `import`, `validate` and `hash`.

use crate::support::cli::{self, Home, fixture};
use serde_json::{Value, json};

const THREAD: &str = r#"{"version":"0.0.4","thread_id":"7c7e9d0a-5c1f-4f43-9a53-0c6f0a6b6f01",
"created_at":"2026-01-05T08:00:00Z","updated_at":"2026-01-05T08:00:09Z","agents":{},"turns":[
{"turn_type":"user","submitted_at":"2026-01-05T08:00:09Z","parts":[{"part_kind":"user-prompt","content":"Hi"}]}]}"#;

fn exported(home: &Home, key: &str) -> Value {
    serde_json::from_str(&home.ok(&["export", "--thread", key])).unwrap()
}

fn imported(home: &Home, format: &str, file: &str, key: &str) -> cli::Ran {
    home.run(&["import", "--from", format, file, "--thread", key, "--json"])
}

#[test]
fn a_thread_leaves_as_the_same_document_by_file_and_by_pipe() {
    let home = Home::new();
    home.ok(&["run", "compute 2*21", "--thread", "k"]);
    let file = home.path("k.json");
    let name = file.to_str().unwrap();
    let told = home.ok(&["export", "--thread", "k", "-o", name]);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(home.ok(&["export", "--thread", "k"]), format!("{text}\n"));
    let hash = home.ok(&["hash", name]);
    assert_eq!(told, format!("{name}  {hash}"));
    assert_eq!(
        home.ok(&["validate", "--strict", name]),
        "valid under strict, 0 warnings\n"
    );
}

#[test]
fn an_export_takes_the_place_of_a_file_and_never_writes_into_it() {
    let home = Home::new();
    home.ok(&["run", "compute 2*21", "--thread", "k"]);
    let file = home.file("k.json", "before");
    let other = home.path("other.json");
    std::fs::hard_link(&file, &other).unwrap();
    home.ok(&["export", "--thread", "k", "-o", file.to_str().unwrap()]);
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "before");
    let text = std::fs::read_to_string(&file).unwrap();
    let piped = home.ok(&["export", "--thread", "k", "-o", "-"]);
    assert_eq!(piped, format!("{text}\n"));
}

#[test]
fn a_document_keeps_every_character_through_a_pipe() {
    let text = "a\u{7f}b \u{9b}2J c\u{1b}[31md \u{2028} \u{85}e";
    let home = Home::scripted(&json!({"turns": [{"text": text}]}));
    home.ok(&["run", "go", "--thread", "k"]);
    let document = exported(&home, "k");
    assert_eq!(
        document["turns"][1]["messages"][0]["parts"][0]["content"],
        text
    );
}

#[test]
fn a_document_comes_back_as_it_left() {
    let home = Home::new();
    for prompt in ["compute 1+1", "fail after 2", "think hard"] {
        home.run(&["run", prompt, "--thread", "k"]);
    }
    let mut left = exported(&home, "k");
    let file = home.file("k.json", &left.to_string());
    let ran = imported(&home, "thread", file.to_str().unwrap(), "copy");
    assert_eq!((ran.code, &ran.json()[0]["losses"]), (0, &json!([])));
    let back = exported(&home, "copy");
    left["thread_id"] = back["thread_id"].clone();
    assert_eq!(back, left);
}

#[test]
fn a_history_of_pydantic_ai_is_taken_in_and_says_what_it_lost() {
    let home = Home::new();
    let history = fixture("history.json");
    let arguments = [
        "import",
        "--from",
        "pydantic-ai",
        history.to_str().unwrap(),
        "--thread",
        "k",
    ];
    let ran = home.run(&arguments);
    assert_eq!((ran.code, ran.out.as_str()), (0, "k  44 events\n"));
    assert_eq!(
        ran.err,
        "not carried /0: the source names no agent, so the run is attributed to \"agent\"\n\
         not carried /4: the source names no agent, so the run is attributed to \"agent\"\n\
         not carried /0/parts/0: a system prompt\n\
         not carried /0/instructions: instructions\n"
    );
    assert_eq!(
        home.ok(&["threads", "show", "k"]),
        "user  How far is it from Aru to Bel and from Bel to Cas?\n\
         agent  Two legs, two calls.\n\
         agent  distance {\"from\":\"Aru\",\"to\":\"Bel\"} → {\"km\":12.5,\"via\":[\"Fen\"]}\n\
         agent  distance {\"from\":\"Bel\",\"to\":\"Cas\",\"by\":null} → \"no road\"\n\
         agent  12.5 km to Bel; no road leads to Cas.\n\
         user  And on foot? [input_image]\n\
         agent  Three hours to Bel.\n"
    );
}

#[test]
fn an_attribution_file_keeps_the_agents_of_an_imported_history() {
    let home = Home::new();
    let who = json!([{"agent": "ada", "n_messages": 4}, {"agent": "bo", "n_messages": 2}]);
    let who = home.file("who.json", &who.to_string());
    let history = fixture("history.json");
    let arguments = [
        "import",
        "--from",
        "pydantic-ai",
        history.to_str().unwrap(),
        "--thread",
        "k",
        "--attribution",
        who.to_str().unwrap(),
    ];
    let ran = home.run(&arguments);
    assert!(
        ran.code == 0 && !ran.err.contains("who ran here"),
        "{ran:?}"
    );
    let shown = home.ok(&["threads", "show", "k"]);
    assert!(
        shown.contains("\nada  Two legs") && shown.contains("\nbo  Three hours"),
        "{shown}"
    );
}

#[test]
fn an_imported_history_is_exported_in_every_form_and_in_its_own_as_it_was() {
    let home = Home::new();
    let history = fixture("history.json");
    imported(&home, "pydantic-ai", history.to_str().unwrap(), "k");
    let back = home.ok(&["export", "--thread", "k", "--to", "pydantic-ai"]);
    let text = std::fs::read_to_string(history).unwrap();
    let json = |text: &str| thread::Json::parse(text).unwrap();
    assert_eq!(json(&back), json(&text));
    for form in ["archive", "ai-sdk-ui", "pydantic-ai", "thread"] {
        let out = home.path(form);
        let out = out.to_str().unwrap();
        home.ok(&["export", "--thread", "k", "--to", form, "-o", out]);
        let ran = imported(&home, form, out, &format!("copy-{form}"));
        assert_eq!(ran.code, 0, "{form}: {ran:?}");
    }
}

#[test]
fn an_imported_history_keeps_ids_spellings_and_answers() {
    let home = Home::new();
    imported(
        &home,
        "pydantic-ai",
        fixture("history.json").to_str().unwrap(),
        "k",
    );
    let document = exported(&home, "k");
    let messages = &document["turns"][1]["messages"];
    let call = &messages[0]["parts"][1];
    assert_eq!(
        (&call["args"], &call["tool_call_id"]),
        (
            &json!("{\"from\": \"Aru\", \"to\": \"Bel\"}"),
            &json!("leg-1")
        )
    );
    let statuses: Vec<_> = messages[1]["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["status"])
        .collect();
    assert_eq!(statuses, ["success", "error"]);
    let text = document.to_string();
    let ran = home.feed(&["validate", "--strict", "-"], &text);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "valid under strict, 0 warnings\n")
    );
    let text = home.ok(&["export", "--thread", "k"]);
    assert!(text.contains("\"km\":12.50"), "{text}");
}

#[test]
fn an_import_goes_into_a_new_key_only() {
    let home = Home::new();
    home.ok(&["run", "x", "--thread", "k"]);
    let ran = home.feed(
        &["import", "--from", "thread", "-", "--thread", "k"],
        THREAD,
    );
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (
            1,
            "error: the thread has content already; import into a new key\n"
        )
    );
    assert_eq!(
        home.ok(&["threads", "show", "k"]),
        "user  x\ndemo  You said: x\n"
    );
}

#[test]
fn what_is_no_history_is_refused_with_its_place_and_makes_no_thread() {
    let home = Home::new();
    let cases = [
        ("pydantic-ai", "[{]", "line 1, column 3"),
        (
            "pydantic-ai",
            "{}",
            "a history is a list of messages, not object",
        ),
        (
            "pydantic-ai",
            "[{\"kind\":\"x\"}]",
            "/0: a message is a request or a response",
        ),
        ("thread", "[]", "expected an object"),
    ];
    for (format, text, expected) in cases {
        let ran = home.feed(&["import", "--from", format, "-", "--thread", "k"], text);
        assert_eq!(ran.code, 1);
        assert!(ran.err.contains(expected), "{ran:?}");
        assert_eq!(home.run(&["threads", "show", "k"]).code, 4);
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let ran = Home::new().run(&["import", "--from", "thread", "/no/such/file.json"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.err
            .starts_with("error: can't read /no/such/file.json\n  because "),
        "{ran:?}"
    );
}

#[test]
fn a_valid_document_is_exit_0() {
    let ran = Home::new().feed(&["validate", "--strict", "-"], THREAD);
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (0, "valid under strict, 0 warnings\n", "")
    );
}

#[test]
fn a_warning_is_shown_and_is_exit_0() {
    let text = THREAD.replace("7c7e9d0a-5c1f-4f43-9a53-0c6f0a6b6f01", "thread-1");
    let ran = Home::new().feed(&["validate", "-"], &text);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (
            0,
            "warning /thread_id \"thread-1\" is no UUID [tp-uuid]\nvalid under lenient, 1 warning\n"
        )
    );
}

#[test]
fn what_readers_can_live_with_writers_must_not_write() {
    let text = THREAD.replace("08:00:09Z\",\"parts", "08:00:09\",\"parts");
    let home = Home::new();
    assert_eq!(home.feed(&["validate", "-"], &text).code, 0);
    let ran = home.feed(&["validate", "--strict", "-"], &text);
    assert_eq!((ran.code, ran.err.as_str()), (3, "error: 1 error\n"));
    assert!(
        ran.out.starts_with("error /turns/0/submitted_at "),
        "{ran:?}"
    );
}

#[test]
fn timestamps_out_of_order_are_errors_only_when_denied() {
    let turn = r#"{"turn_type":"user","submitted_at":"2026-01-05T08:00:01Z","parts":[]}"#;
    let text = THREAD.replace("\"Hi\"}]}]}", &format!("\"Hi\"}}]}},{turn}]}}"));
    let home = Home::new();
    let ran = home.feed(&["validate", "--strict", "-"], &text);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("warning /turns/1/submitted_at"), "{ran:?}");
    assert_eq!(
        home.feed(&["validate", "--deny-timestamps", "-"], &text)
            .code,
        3
    );
}

#[test]
fn an_invalid_document_is_exit_3_and_every_breach_has_its_pointer() {
    let text = THREAD.replace("\"Hi\"", "7").replace(",\"agents\":{}", "");
    let ran = Home::new().feed(&["validate", "-", "--json"], &text);
    let (verdict, lines) = verdict(&ran);
    let found: Vec<_> = lines
        .iter()
        .map(|it| format!("{} {} {}", it["severity"], it["pointer"], it["rule"]))
        .collect();
    assert_eq!(ran.code, 3);
    assert_eq!(
        found,
        [
            "\"error\" \"\" \"tp-required\"",
            "\"error\" \"/turns/0/parts/0/content\" \"tp-shape\"",
        ]
    );
    let expected = json!({"verdict": "invalid", "profile": "lenient", "documents": 1,
        "errors": 2, "warnings": 0});
    assert_eq!(verdict, expected);
    let error: Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!(error, json!({"error": "2 errors", "causes": []}));
}

/// The verdict, which is the last line, and the lines before it.
fn verdict(ran: &cli::Ran) -> (Value, Vec<Value>) {
    let mut lines = ran.json();
    (lines.pop().unwrap(), lines)
}

#[test]
fn validation_for_scripts_ends_with_a_verdict_whatever_it_is_given() {
    let home = Home::new();
    let validate = |arguments: &[&str], text: &[u8]| {
        let file = home.path("a.json");
        std::fs::write(&file, text).unwrap();
        let name = file.to_str().unwrap();
        home.run(&[&["validate", name, "--json"], arguments].concat())
    };
    let lone = br#"{"a":"\ud800"}"#;
    let cases: [(&[u8], &str, i32); 6] = [
        (THREAD.as_bytes(), "valid", 0),
        (b"{", "invalid", 3),
        (b"[]", "invalid", 3),
        (b"{\"a\":1,\"a\":2}", "invalid", 3),
        (lone, "invalid", 3),
        (b"{\"a\":\"\xff\"}", "invalid", 3),
    ];
    for (text, expected, code) in cases {
        let ran = validate(&[], text);
        let (verdict, lines) = verdict(&ran);
        assert_eq!(
            (ran.code, &verdict["verdict"]),
            (code, &json!(expected)),
            "{ran:?}"
        );
        assert_eq!(verdict["errors"], u32::from(code == 3), "{ran:?}");
        let rules: Vec<_> = lines.iter().map(|it| &it["rule"]).collect();
        let broken = [&json!("tp-json")];
        assert_eq!(rules, &broken[..usize::from(code == 3)], "{ran:?}");
    }
    for text in [&b"{"[..], b"{}", b"{\"a\":\"\xff\"}"] {
        let ran = validate(&["--format", "archive"], text);
        assert_eq!(
            (ran.code, &verdict(&ran).0["verdict"]),
            (3, &json!("invalid"))
        );
    }
    let ran = home.run(&["validate", "/nowhere/a.json", "--json"]);
    let expected = json!({"verdict": "not judged", "profile": "lenient", "documents": 0,
        "errors": 0, "warnings": 0});
    assert_eq!((ran.code, ran.json()), (1, vec![expected]));
}

#[test]
fn what_is_no_json_is_exit_3_with_line_and_column() {
    let ran = Home::new().feed(
        &["validate", "-"],
        "{\n  \"version\": \"0.0.4\",\n  \"turns\": [1,}\n",
    );
    assert_eq!((ran.code, ran.err.as_str()), (3, "error: 1 error\n"));
    assert!(
        ran.out.contains("line 3, column 15") && ran.out.ends_with(" [tp-json]\n"),
        "{ran:?}"
    );
}

#[test]
fn the_hash_is_that_of_the_meaning_not_of_the_text() {
    let home = Home::new();
    let hash = |text: &str| home.feed(&["hash", "-"], text).out;
    let spaced = THREAD
        .replace("\"agents\":{},", "")
        .replace("{\"version\"", "{ \"agents\" : {} ,\n \"version\"");
    assert_eq!(hash(&spaced), hash(THREAD));
    assert_ne!(hash(&THREAD.replace("Hi", "Ho")), hash(THREAD));
    assert!(hash(THREAD).starts_with("sha256:"));
    let json = home.feed(&["hash", "-", "--json"], THREAD).json();
    assert_eq!(json, [json!({"hash": hash(THREAD).trim()})]);
}

const BIG: &str = r#""metadata":{"n":[9007199254740993]},"turns""#;

#[test]
fn a_hash_of_integers_beyond_2_to_the_53_warns() {
    let home = Home::new();
    let big = THREAD.replace("\"turns\"", BIG);
    let warning = "the hash is not exact: the canonical form rounds 1 number, such as \
         9007199254740993 at \"/metadata/n/0\"";
    let ran = home.feed(&["hash", "-"], &big);
    assert_eq!((ran.code, ran.err), (0, format!("warning {warning}\n")));
    let ran = home.feed(&["hash", "-", "--json"], &big);
    assert_eq!(ran.json()[0]["warning"], warning);
    assert_eq!(home.feed(&["hash", "-"], THREAD).err, "");
}

#[test]
fn an_export_of_integers_beyond_2_to_the_53_warns() {
    let home = Home::new();
    let big = THREAD.replace("\"turns\"", BIG);
    home.feed(&["import", "--from", "thread", "-", "--thread", "k"], &big);
    let ran = home.run(&["export", "--thread", "k"]);
    assert!(
        ran.err.starts_with("warning the hash is not exact"),
        "{ran:?}"
    );
    let file = home.path("k.json");
    let arguments = ["export", "--thread", "k", "-o", file.to_str().unwrap()];
    let ran = home.run(&[&arguments[..], &["--json"]].concat());
    let warning = ran.json()[0]["warning"].clone();
    assert!(
        warning.as_str().unwrap().contains("9007199254740993"),
        "{ran:?}"
    );
}

#[test]
fn the_hash_sees_telemetry_unless_told_not_to() {
    let home = Home::new();
    let event = |ms: u32| json!({"message_type": "system", "event_type": "data-sys-latency", "event_data": {"ms": ms}, "timestamp": "2026-01-05T08:00:09Z"});
    let hash = |ms: u32, arguments: &[&str]| {
        let mut document: Value = serde_json::from_str(THREAD).unwrap();
        let turn = json!({"turn_type": "agent", "agent_id": "a", "started_at": "2026-01-05T08:00:09Z", "completion_status": "complete", "messages": [event(ms)]});
        document["turns"].as_array_mut().unwrap().push(turn);
        home.feed(&[&["hash", "-"], arguments].concat(), &document.to_string())
            .out
    };
    assert_ne!(hash(1, &[]), hash(2, &[]));
    assert_eq!(hash(1, &["--without-sys"]), hash(2, &["--without-sys"]));
}

/// The most memory that a command had, in bytes, as far as it was seen while it ran.
#[cfg(target_os = "linux")]
fn peak_of(arguments: &[&str]) -> usize {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_loomline"))
        .args(arguments)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut peak = 0;
    loop {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
        let seen = status.ok().and_then(|status| {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("VmHWM:"))?;
            line.trim().strip_suffix(" kB")?.parse::<usize>().ok()
        });
        peak = peak.max(seen.unwrap_or_default() * 1024);
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{arguments:?}");
            return peak;
        }
        std::thread::yield_now();
    }
}

#[test]
#[cfg(target_os = "linux")]
fn hash_and_upgrade_of_a_large_document_need_less_than_three_times_its_size() {
    let text = "Does the loom fit through the door? ".repeat(10);
    let turn = format!(
        r#"{{"turn_type":"user","submitted_at":"2026-01-05T08:00:09Z","parts":[{{"part_kind":"user-prompt","content":"{text}"}}]}}"#
    );
    let text = THREAD.replace(
        "\"turns\":[",
        &format!("\"turns\":[{}", format!("{turn},").repeat(100_000)),
    );
    let text = text.replace("0.0.4", "2.0.0");
    let home = Home::new();
    let file = home.file("large.json", &text);
    for command in ["hash", "upgrade"] {
        let peak = peak_of(&[command, file.to_str().unwrap()]);
        assert!(
            peak > text.len() && peak < 3 * text.len(),
            "{command}: {peak} of {}",
            text.len()
        );
    }
}

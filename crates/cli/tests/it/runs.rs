//! `run`: one prompt on a durable thread, streamed to people or to scripts.

use crate::support::cli::{self, Home};
use serde_json::{Value, json};
use timeline::{Event, ExecutionStatus, Record, verify};

fn ended(log: &[Record]) -> Vec<ExecutionStatus> {
    log.iter()
        .filter_map(|record| match &record.event {
            Event::ExecutionStatusChanged { to, .. } => Some(*to),
            _ => None,
        })
        .collect()
}

/// Begins a slow answer on a thread and ends the process in the middle of it.
fn killed_while_it_spoke(home: &Home, key: &str) {
    let mut run = home.spawn(&["run", "slow 30ms say 40 words", "--thread", key]);
    run.bytes::<30>();
    drop(run);
}

#[test]
fn a_prompt_is_answered_with_its_tools_and_the_thread_is_named() {
    let ran = Home::new().run(&["run", "compute 2+3*4", "--thread", "sums"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(
        ran.out,
        "→ compute {\"expression\":\"2+3*4\"}\n← compute 14\ncompute gave 14.\n"
    );
    assert_eq!(
        ran.err,
        "thread sums · continue with: loomline run --thread sums …\n"
    );
}

#[test]
fn calls_of_one_answer_all_have_their_results() {
    let call = |name: &str, of: &str| json!({"name": name, "arguments": {"expression": of}});
    let calls = [
        call("compute", "1+1"),
        call("weave", "x"),
        call("compute", "2+2"),
    ];
    let script = json!({"turns": [{"tool_calls": calls}, {"text": "done"}]});
    let home = Home::scripted(&script);
    home.ok(&["run", "go", "--thread", "k"]);
    let shown = home.ok(&["threads", "show", "k"]);
    assert_eq!(
        shown,
        "user  go\nx  compute {\"expression\":\"1+1\"} → 2\n\
         x  weave {\"expression\":\"x\"} → \"Tool 'weave' not found\"\n\
         x  compute {\"expression\":\"2+2\"} → 4\nx  done\n"
    );
}

#[test]
fn a_thread_is_made_when_none_is_named_and_gone_on_with_by_its_key() {
    let home = Home::new();
    let first = home.run(&["run", "hello"]);
    let words: Vec<&str> = first.err.split_whitespace().collect();
    let key = words[1].to_owned();
    home.ok(&["run", "again", "--thread", &key]);
    assert_eq!(
        home.ok(&["threads", "show", &key]),
        "user  hello\ndemo  You said: hello\nuser  again\ndemo  You said: again\n"
    );
}

#[test]
fn scripts_get_the_events_of_the_run_one_a_line() {
    let home = Home::new();
    let ran = home.run(&["run", "compute 1+1", "--thread", "k", "--json"]);
    let events = ran.json();
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let seqs: Vec<u64> = events
        .iter()
        .map(|it| it["seq"].as_u64().unwrap())
        .collect();
    let expected: Vec<u64> = (seqs[0]..).take(seqs.len()).collect();
    assert_eq!(seqs, expected);
    let last = events.last().unwrap();
    assert_eq!(
        (&last["type"], &last["result"]),
        (&json!("thread.finished"), &json!("completed"))
    );
    assert_eq!(verify(&home.log("k")), Ok(()));
}

#[test]
fn a_model_that_fails_is_told_with_its_reason_and_exit_1() {
    let home = Home::new();
    let ran = home.run(&["run", "fail rate_limited", "--thread", "k"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(
        ran.err
            .contains("error: the run ended early: the model call failed: ")
            && ran.err.contains("RateLimited"),
        "{ran:?}"
    );
    let ran = home.run(&["run", "fail", "--thread", "k", "--json"]);
    let error: Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!(ran.code, 1);
    assert!(
        error["error"]
            .as_str()
            .unwrap()
            .starts_with("the run ended early")
    );
    assert_eq!(home.run(&["run", "hello", "--thread", "k"]).code, 0);
}

#[test]
fn a_limit_of_steps_keeps_what_was_complete() {
    let home = Home::new();
    let prompt = "compute 1+1 then compute 2+2";
    let ran = home.run(&["run", prompt, "--max-steps", "1", "--thread", "k"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("the limit of 1 step is reached"),
        "{ran:?}"
    );
    assert!(home.ok(&["threads", "show", "k"]).contains("→ 2\n"));
}

#[test]
fn an_agent_that_is_not_there_makes_no_thread() {
    let home = Home::new();
    let ran = home.run(&["run", "hello", "--agent", "nobody", "--thread", "k"]);
    assert_eq!((ran.code, ran.out.as_str()), (4, ""));
    assert_eq!(
        ran.err,
        "error: there is no agent \"nobody\"; `loomline agents list` shows what there is\n"
    );
    assert_eq!(home.run(&["threads", "show", "k"]).code, 4);
}

#[test]
fn a_killed_run_goes_on_before_the_next_one_which_shows_only_its_own() {
    let home = Home::new();
    killed_while_it_spoke(&home, "k");
    assert_eq!(ended(&home.log("k")), []);
    let ran = home.run(&["run", "compute 1+1", "--thread", "k"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (
            0,
            "→ compute {\"expression\":\"1+1\"}\n← compute 2\ncompute gave 2.\n"
        )
    );
    assert!(
        ran.err.contains("an unfinished run continues first"),
        "{ran:?}"
    );
    let log = home.log("k");
    assert_eq!(verify(&log), Ok(()));
    assert_eq!(ended(&log), [ExecutionStatus::Completed; 2]);
}

#[test]
fn a_run_that_fails_after_it_waited_is_exit_1_too() {
    let home = Home::new();
    killed_while_it_spoke(&home, "k");
    let ran = home.run(&["run", "fail", "--thread", "k"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("the run ended early"), "{ran:?}");
}

#[test]
fn a_killed_run_is_finished_by_the_server() {
    let home = Home::new();
    killed_while_it_spoke(&home, "k");
    let server = home.server();
    server.rest("k");
    let log = cli::records(&server.log("k"));
    assert_eq!(verify(&log), Ok(()));
    assert_eq!(ended(&log), [ExecutionStatus::Completed]);
    let shown = home.ok(&["threads", "show", "k"]);
    let answer = shown.lines().nth(1).unwrap();
    assert_eq!(answer.split_whitespace().skip(1).count(), 40, "{shown}");
}

#[test]
fn a_store_that_another_run_has_open_is_not_written_to() {
    let home = Home::new();
    let mut first = home.spawn(&["run", "slow 30ms say 40 words"]);
    first.bytes::<10>();
    let ran = home.run(&["run", "hello"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(
        ran.err.contains("another process serves this store"),
        "{ran:?}"
    );
}

#[test]
fn spans_of_a_run_go_to_the_collector_that_the_configuration_names() {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let collector = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut seen = [0_u8; 4096];
        let n = stream.read(&mut seen).unwrap();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            .unwrap();
        String::from_utf8_lossy(&seen[..n]).into_owned()
    });
    let mut home = Home::new();
    home.configure(&format!("[telemetry]\nendpoint = \"http://{address}\"\n"));
    home.ok(&["run", "hello"]);
    let request = collector.join().unwrap();
    assert!(request.starts_with("POST /v1/traces "), "{request}");
}

#[test]
fn what_happens_inside_a_sub_agent_is_shown_indented() {
    let mut home = Home::new();
    let script = json!({"turns": [
        {"tool_calls": [{"name": "explore", "arguments": {"query": "compute 1+1"}}]},
        {"text": "found"}
    ]});
    let script = home.file("script.json", &script.to_string());
    home.configure(&format!(
        r#"
        default_agent = "coder"
        [models.s]
        provider = "scripted"
        script = "{}"
        [models.plain]
        provider = "scripted"
        [agents.coder]
        model = "s"
        [[agents.coder.subagents]]
        agent = "explorer"
        name = "explore"
        description = "Finds things."
        prompt = "{{query}}"
        parameters = {{ type = "object", properties = {{ query = {{ type = "string" }} }}, required = ["query"] }}
        [agents.explorer]
        model = "plain"
        tools = ["compute"]
        "#,
        script.display()
    ));
    let ran = home.run(&["run", "go", "--thread", "k"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(
        ran.out,
        "→ explore {\"query\":\"compute 1+1\"}\n  ┌ explore: compute 1+1\n    ← compute 2\n  \
         └ explore: compute gave 2.\n← explore compute gave 2.\nfound\n"
    );
}

#[test]
fn a_run_goes_on_with_the_agent_that_it_was_handed_over_to() {
    let mut home = Home::new();
    let script =
        json!({"turns": [{"tool_calls": [{"name": "transfer_to_writer", "arguments": {}}]}]});
    let script = home.file("script.json", &script.to_string());
    home.configure(&format!(
        r#"
        default_agent = "clerk"
        [models.s]
        provider = "scripted"
        script = "{}"
        [models.plain]
        provider = "scripted"
        [agents.clerk]
        model = "s"
        handoffs = ["writer"]
        [agents.writer]
        model = "plain"
        "#,
        script.display()
    ));
    let ran = home.run(&["run", "hello", "--thread", "k"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(
        ran.out,
        "→ transfer_to_writer {}\n← transfer_to_writer Transferred to writer.\n\
         transfer_to_writer gave Transferred to writer.\n"
    );
}

#[cfg(unix)]
#[test]
fn a_run_that_is_interrupted_says_how_to_go_on() {
    let home = Home::new();
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let mut run = home.spawn(&["run", "slow 30ms say 40 words"]);
        run.bytes::<10>();
        run.signal(signal);
        let told = run.told("continue with --thread ");
        assert_eq!(run.close().code, code);
        let key = told.trim().rsplit(' ').next().unwrap();
        let next = home.run(&["run", "again", "--thread", key]);
        assert_eq!(next.code, 0, "{next:?}");
        assert!(next.out.ends_with("You said: again\n"), "{next:?}");
        let ends = ended(&home.log(key));
        let done = ends.iter().filter(|it| **it == ExecutionStatus::Completed);
        assert_eq!(done.count(), 2, "{ends:?}");
    }
}

//! `threads`: list, show, tail, fork, compact, tree and delete, alone and beside a server.

use crate::support::cli::{self, Home};
use crate::support::server;
use serde_json::{Value, json};
use timeline::verify;

fn said(home: &Home, threads: &[(&str, &str)]) {
    for (key, text) in threads {
        home.ok(&["run", text, "--thread", key]);
    }
}

fn keys(home: &Home, arguments: &[&str]) -> Vec<String> {
    let ran = home.run(&[&["threads", "list", "--json"], arguments].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let key = |row: &Value| row["key"].as_str().unwrap().to_owned();
    ran.json().iter().map(key).collect()
}

#[test]
fn threads_are_listed_the_last_changed_first_by_prefix_and_number() {
    let home = Home::new();
    said(&home, &[("a1", "x"), ("a2", "x"), ("b1", "x"), ("a1", "y")]);
    assert_eq!(keys(&home, &[]), ["a1", "b1", "a2"]);
    assert_eq!(keys(&home, &["--prefix", "a"]), ["a1", "a2"]);
    assert_eq!(keys(&home, &["--limit", "2"]), ["a1", "b1"]);
    let text = home.ok(&["threads", "list", "--prefix", "b"]);
    assert!(
        text.starts_with("b1  open  ") && text.ends_with(" events\n"),
        "{text}"
    );
}

#[test]
fn a_listed_thread_says_where_it_stands() {
    let home = Home::new();
    said(&home, &[("ok", "x")]);
    home.run(&["run", "fail", "--thread", "bad"]);
    let rows = home.run(&["threads", "list", "--json"]).json();
    let seen: Vec<_> = rows
        .iter()
        .map(|row| (&row["key"], &row["status"]))
        .collect();
    assert_eq!(
        seen,
        [
            (&json!("bad"), &json!("failed")),
            (&json!("ok"), &json!("open"))
        ]
    );
    assert_eq!(rows[1]["seq"], home.log("ok").len());
}

#[test]
fn an_empty_place_says_how_to_make_a_thread() {
    let home = Home::new();
    let ran = home.run(&["threads", "list"]);
    assert_eq!(ran.code, 4);
    assert!(
        ran.err.contains("`loomline run \"hello\"` makes one"),
        "{ran:?}"
    );
    said(&home, &[("k", "x")]);
    home.ok(&["threads", "delete", "k"]);
    assert_eq!(
        home.ok(&["threads", "list"]),
        "no threads yet; `loomline run \"hello\"` makes one\n"
    );
}

#[test]
fn a_prefix_that_no_key_begins_with_is_told_so() {
    let home = Home::new();
    said(&home, &[("k", "x")]);
    assert_eq!(
        home.ok(&["threads", "list", "--prefix", "x"]),
        "no thread has a key that begins with \"x\"\n"
    );
}

#[test]
fn commands_work_on_the_threads_of_the_tenant_that_is_meant() {
    let mut home = Home::new();
    let tenant = |name: &str, digit: &str| {
        let hash = digit.repeat(64);
        format!("[tenants.{name}]\nkey_hashes = [\"sha256:{hash}\"]\n")
    };
    home.configure(&tenant("acme", "a"));
    said(&home, &[("k", "one tenant is meant")]);
    assert_eq!(keys(&home, &["--tenant", "acme"]), ["k"]);
    assert!(keys(&home, &["--tenant", "dev"]).is_empty());
    let two = [tenant("acme", "a"), tenant("other", "b")].concat();
    home.configure(&two);
    for wrong in [&["run", "hi"][..], &["run", "hi", "--tenant", "nobody"]] {
        let refused = home.run(wrong);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(
            refused.err.contains("there are: acme, other"),
            "{refused:?}"
        );
    }
    let document = home.ok(&["export", "--thread", "k", "--tenant", "acme"]);
    assert!(document.contains("one tenant is meant"));
    let file = home.file("k.json", &document);
    let into = ["--thread", "l", "--tenant", "other", file.to_str().unwrap()];
    home.ok(&[&["import", "--from", "thread"], &into[..]].concat());
    assert_eq!(keys(&home, &["--tenant", "other"]), ["l"]);
}

#[test]
fn a_key_that_the_server_would_not_take_is_refused() {
    let home = Home::new();
    said(&home, &[("k", "x")]);
    for key in ["", "..", "a\nb", &"k".repeat(513)] {
        for command in [
            &["run", "x", "--thread", key][..],
            &["threads", "fork", "k", key],
        ] {
            let refused = home.run(command);
            assert_eq!(refused.code, 2, "{refused:?}");
            assert!(refused.err.contains("a key"), "{refused:?}");
        }
    }
    assert_eq!(keys(&home, &[]), ["k"]);
}

#[test]
fn a_tenant_has_a_name() {
    let refused = Home::new().run(&["run", "hi", "--tenant", ""]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("a tenant has a name"), "{refused:?}");
}

#[test]
fn a_place_beyond_the_end_is_not_forked_at() {
    let home = Home::new();
    said(&home, &[("k", "x")]);
    let refused = home.run(&["threads", "fork", "k", "f", "--at", "1000"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    let words = format!("no event 1000: it ends at {}", home.log("k").len());
    assert!(refused.err.contains(&words), "{refused:?}");
    assert_eq!(keys(&home, &[]), ["k"]);
}

#[test]
fn a_key_that_is_not_there_is_exit_4_and_a_hint() {
    let home = Home::new();
    said(&home, &[("k", "x")]);
    let commands: [&[&str]; 6] = [
        &["threads", "show", "no"],
        &["threads", "tree", "no"],
        &["tail", "no"],
        &["threads", "fork", "no"],
        &["threads", "delete", "no"],
        &["export", "--thread", "no"],
    ];
    let hint =
        "error: there is no thread with key \"no\"; `loomline threads list` shows what there is\n";
    for command in commands {
        let ran = home.run(command);
        assert_eq!(
            (ran.code, ran.out.as_str(), ran.err.as_str()),
            (4, "", hint)
        );
    }
}

#[test]
fn the_threads_of_another_tenant_are_not_there() {
    let home = Home::new();
    said(&home, &[("k", "x")]);
    assert_eq!(
        home.run(&["threads", "show", "k", "--tenant", "acme"]).code,
        4
    );
    assert_eq!(keys(&home, &["--tenant", "acme"]), [""; 0]);
}

#[test]
fn a_conversation_is_shown_with_its_tools_and_its_failures() {
    let home = Home::new();
    said(&home, &[("k", "compute 1+1")]);
    home.run(&["run", "fail", "--thread", "k"]);
    let shown = home.ok(&["threads", "show", "k"]);
    assert_eq!(
        shown,
        "user  compute 1+1\n\
         demo  compute {\"expression\":\"1+1\"} → 2\n\
         demo  compute gave 2.\n\
         user  fail\n\
         ended early, error: the model call failed: the prompt asked to fail (scripted, ProviderError)\n"
    );
    let parts = home.run(&["threads", "show", "k", "--json"]).json();
    assert_eq!(parts[0]["content"][0]["text"], "compute 1+1");
    assert_eq!(parts[1]["part"]["type"], "tool-compute");
}

#[test]
fn the_log_is_printed_from_any_event() {
    let home = Home::new();
    said(&home, &[("k", "compute 1+1")]);
    let log = home.log("k");
    assert_eq!(verify(&log), Ok(()));
    let rest = home.run(&["tail", "k", "--no-follow", "--after", "7"]);
    assert_eq!(cli::records(&rest.json()), log[7..]);
}

#[test]
fn an_event_is_one_line_whatever_line_breaks_its_json_has() {
    let home = Home::new();
    let server = home.server();
    let body = "{\"content\": [{\"type\":\n\"input_text\",\r\n \"text\": \"one\\ntwo\"}]}";
    server::agent()
        .post(server.url("/api/v1/threads/k/messages"))
        .header("content-type", "application/json")
        .send(body)
        .unwrap();
    server.rest("k");
    let events = home.run(&["tail", "k", "--no-follow"]).json();
    let item = events
        .iter()
        .find(|it| it["type"] == "item.created")
        .unwrap();
    assert_eq!(item["item"]["content"][0]["text"], "one\ntwo");
}

#[test]
fn what_a_server_writes_is_shown_as_it_comes() {
    let home = Home::new();
    let server = home.server();
    server
        .post("/api/v1/threads", &json!({"key": "k"}))
        .unwrap();
    let mut tail = home.spawn(&["tail", "k"]);
    let message = json!({"content": "slow 20ms say 10 words"});
    server.post("/api/v1/threads/k/messages", &message).unwrap();
    let mut events = Vec::new();
    while events
        .last()
        .is_none_or(|it: &Value| it["type"] != "thread.finished")
    {
        events.push(serde_json::from_str(&tail.line()).unwrap());
    }
    assert_eq!(events, server.log("k"));
}

#[test]
fn a_tail_with_nothing_to_tell_ends_when_its_reader_leaves() {
    let home = Home::new();
    said(&home, &[("k", "x")]);
    let mut tail = home.spawn(&["tail", "k", "-q"]);
    for _ in 0..home.log("k").len() {
        tail.line();
    }
    let ran = tail.close();
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

#[test]
fn a_fork_goes_its_own_way() {
    let home = Home::new();
    said(&home, &[("k", "one")]);
    assert_eq!(
        home.ok(&["threads", "fork", "k", "f"]),
        "f is a fork of k\n"
    );
    said(&home, &[("k", "two"), ("f", "three")]);
    let users = |key: &str| -> Vec<String> {
        let shown = home.ok(&["threads", "show", key]);
        let users = shown.lines().filter_map(|line| line.strip_prefix("user  "));
        users.map(str::to_owned).collect()
    };
    assert_eq!(users("k"), ["one", "two"]);
    assert_eq!(users("f"), ["one", "three"]);
}

#[test]
fn a_fork_begins_where_it_is_told_and_only_at_rest() {
    let home = Home::new();
    said(&home, &[("k", "one")]);
    let at = home.log("k").len().to_string();
    said(&home, &[("k", "two")]);
    let made = home.run(&["threads", "fork", "k", "f", "--at", &at, "--json"]);
    assert_eq!(made.json(), [json!({"key": "f", "forkedFrom": "k"})]);
    assert_eq!(
        home.ok(&["threads", "show", "f"]),
        "user  one\ndemo  You said: one\n"
    );
    let middle = home.run(&["threads", "fork", "k", "g", "--at", "9"]);
    assert_eq!(middle.code, 1);
    assert!(
        middle
            .err
            .contains("fork at an event where no execution runs"),
        "{middle:?}"
    );
}

#[test]
fn a_fork_never_takes_the_place_of_a_thread() {
    let home = Home::new();
    said(&home, &[("k", "one"), ("f", "other")]);
    let ran = home.run(&["threads", "fork", "k", "f"]);
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (1, "error: a thread with key \"f\" exists already\n")
    );
    assert!(
        home.ok(&["threads", "show", "f"])
            .starts_with("user  other\n")
    );
}

#[test]
fn the_branches_of_a_conversation_are_drawn_from_any_of_them() {
    let home = Home::new();
    said(&home, &[("k", "one")]);
    for (from, to) in [
        ("k", "a"),
        ("a", "a1"),
        ("a", "a2"),
        ("k", "b"),
        ("b", "b1"),
    ] {
        home.ok(&["threads", "fork", from, to]);
    }
    let n = home.log("k").len();
    let drawn = |current: &str| {
        let mark = |key: &str| if key == current { "  *" } else { "" };
        let line =
            |lead: &str, key: &str, events| format!("{lead}{key}  {events} events{}\n", mark(key));
        [
            line("", "k", n),
            line("├─ ", "a", 2),
            line("│  ├─ ", "a1", 2),
            line("│  └─ ", "a2", 2),
            line("└─ ", "b", 2),
            line("   └─ ", "b1", 2),
        ]
        .concat()
    };
    for key in ["k", "a2", "b1"] {
        assert_eq!(home.ok(&["threads", "tree", key]), drawn(key));
    }
    let told = home.run(&["threads", "tree", "a", "--json"]).json();
    let told = told
        .iter()
        .map(|it| [&it["key"], &it["parent"], &it["forkedAt"], &it["current"]]);
    let told: Vec<Value> = told.map(|it| json!(it)).collect();
    assert_eq!(
        told,
        [
            json!(["k", null, null, false]),
            json!(["a", "k", n, true]),
            json!(["a1", "a", 2, false]),
            json!(["a2", "a", 2, false]),
            json!(["b", "k", n, false]),
            json!(["b1", "b", 2, false]),
        ]
    );
}

#[test]
fn a_thread_is_deleted_unless_forks_go_on_from_it() {
    let home = Home::new();
    said(&home, &[("k", "one")]);
    home.ok(&["threads", "fork", "k", "f"]);
    let ran = home.run(&["threads", "delete", "k"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("has forks; delete them first"), "{ran:?}");
    assert_eq!(home.ok(&["threads", "delete", "f"]), "f is deleted\n");
    assert_eq!(home.ok(&["threads", "delete", "k"]), "k is deleted\n");
    assert_eq!(home.run(&["threads", "show", "k"]).code, 4);
}

#[test]
fn a_pending_call_is_shown_until_a_new_message_withdraws_it() {
    let home = Home::new();
    home.ok(&["run", "compute 1+1", "--agent", "careful", "--thread", "k"]);
    let waits = home.ok(&["threads", "show", "k"]);
    assert!(waits.contains("→ waits for an approval\n"), "{waits}");
    home.ok(&["run", "hello", "--thread", "k"]);
    let withdrawn = home.ok(&["threads", "show", "k"]);
    assert!(withdrawn.contains("→ withdrawn\n"), "{withdrawn}");
}

#[test]
fn calls_of_several_runs_with_one_id_are_all_shown() {
    let home = Home::new();
    let message = |text: &str, city: &str| {
        json!([
            {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text, "timestamp": "2026-01-05T08:00:00Z"}]},
            {"kind": "response", "timestamp": "2026-01-05T08:00:01Z", "parts": [
                {"part_kind": "tool-call", "tool_name": "weather", "args": {"city": city}, "tool_call_id": "call_0"}]},
            {"kind": "request", "parts": [{"part_kind": "tool-return", "tool_name": "weather", "content": "sun", "tool_call_id": "call_0", "timestamp": "2026-01-05T08:00:02Z"}]},
            {"kind": "response", "timestamp": "2026-01-05T08:00:03Z", "parts": [{"part_kind": "text", "content": "Sun."}]},
        ])
    };
    let both = [message("Lima?", "Lima"), message("Bonn?", "Bonn")];
    let all: Vec<_> = both.iter().flat_map(|it| it.as_array().unwrap()).collect();
    let file = home.file("history.json", &json!(all).to_string());
    home.ok(&[
        "import",
        "--from",
        "pydantic-ai",
        file.to_str().unwrap(),
        "--thread",
        "k",
    ]);
    let shown = home.ok(&["threads", "show", "k"]);
    for city in ["Lima", "Bonn"] {
        let call = format!("weather {{\"city\":\"{city}\"}} → \"sun\"");
        assert!(shown.contains(&call), "{call}: {shown}");
    }
}

#[test]
fn the_text_of_a_stopped_answer_is_shown() {
    let home = Home::new();
    let server = home.server();
    let body = json!({"content": "slow 20ms say 500 words"});
    server.post("/api/v1/threads/k/messages", &body).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1));
    server.post("/api/v1/threads/k/cancel", &json!({})).unwrap();
    server.rest("k");
    let shown = home.ok(&["threads", "show", "k"]);
    let answer = shown.lines().nth(1).unwrap_or_default();
    assert!(answer.starts_with("demo  ") && answer.len() > 20, "{shown}");
    assert!(shown.contains("ended early, user_cancelled"), "{shown}");
}

#[test]
fn a_thread_is_compacted_listed_and_taken_back() {
    let home = Home::new();
    said(&home, &[("k", "one"), ("k", "two"), ("k", "three")]);
    let compact =
        |more: &[&str]| home.run(&[&["threads", "compact", "k", "--json"], more].concat());
    let made = compact(&["--summary", "They count.", "--keep-runs", "1"]);
    assert_eq!(made.code, 0, "{made:?}");
    let made = made.json().remove(0);
    assert_eq!(
        (&made["counts"], &made["replaced"]["executions"]),
        (&json!(true), &json!(2))
    );
    assert_eq!(compact(&[]).json(), std::slice::from_ref(&made));
    let text = home.ok(&["threads", "compact", "k"]);
    assert!(
        text.contains("counts") && text.ends_with("They count.\n"),
        "{text}"
    );
    let refused = compact(&["--summary", "s", "--event", "3"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("next possible end"), "{refused:?}");
    let undone = compact(&["--undo"]);
    assert_eq!(undone.json(), [json!({"withdrawn": made["id"]})]);
    assert_eq!(compact(&[]).json()[0]["withdrawn"], true);
    assert_eq!(compact(&["--undo"]).code, 2);
    assert_eq!(compact(&["--keep-runs", "1"]).code, 2);
    assert_eq!(compact(&["--summary", " "]).code, 2);
    assert!(home.ok(&["threads", "show", "k"]).contains("one"));
}

#[test]
fn a_thread_is_compacted_beside_a_server() {
    let home = Home::new();
    said(&home, &[("k", "one"), ("k", "two")]);
    let _server = home.server();
    let made = home.run(&[
        "threads",
        "compact",
        "k",
        "--json",
        "--summary",
        "s",
        "--keep-runs",
        "1",
    ]);
    assert_eq!(made.code, 0, "{made:?}");
    let made = made.json().remove(0);
    let listed = home.run(&["threads", "compact", "k", "--json"]).json();
    assert_eq!(listed, std::slice::from_ref(&made));
    let refused = home.run(&["threads", "compact", "k", "--summary", "s", "--event", "3"]);
    assert!(refused.err.contains("next possible end"), "{refused:?}");
    let undone = home
        .run(&["threads", "compact", "k", "--json", "--undo"])
        .json();
    assert_eq!(undone, [json!({"withdrawn": made["id"]})]);
}

//! Commands while a server runs: what they give is what they give alone.

use crate::support::cli::{Home, Ran};
use serde_json::{Value, json};
use timeline::verify;

/// What a command gave alone, and what it gives beside a server that has the same threads.
fn both(prepare: impl Fn(&Home), arguments: &[&str]) -> (Ran, Ran) {
    let (alone, beside) = (Home::new(), Home::new());
    prepare(&alone);
    prepare(&beside);
    let _server = beside.server();
    (alone.run(arguments), beside.run(arguments))
}

fn no_thread(_: &Home) {}

/// A thread `k` with two forks, one of them below the other.
fn forks(home: &Home) {
    home.ok(&["run", "compute 1+1", "--thread", "k"]);
    home.ok(&["threads", "fork", "k", "f"]);
    home.ok(&["run", "two", "--thread", "f"]);
    home.ok(&["threads", "fork", "f", "g"]);
    home.ok(&["run", "three", "--thread", "g"]);
    home.run(&["run", "fail", "--thread", "k"]);
}

/// Without what no two runs have in common.
fn shapes(ran: &Ran) -> Vec<Value> {
    let shape =
        |event: Value| json!([event["seq"], event["type"], event["chunkType"], event["to"]]);
    ran.json().into_iter().map(shape).collect()
}

#[test]
fn a_run_beside_a_server_gives_what_it_gives_alone() {
    for (prompt, code) in [("compute 2+3*4", 0), ("think about it", 0), ("fail", 1)] {
        let arguments = ["run", prompt, "--thread", "sums"];
        let (alone, beside) = both(no_thread, &arguments);
        assert_eq!((&alone, alone.code), (&beside, code));
    }
}

#[test]
fn a_run_beside_a_server_gives_scripts_the_same_events() {
    let arguments = ["run", "compute 1+1", "--thread", "k", "--json"];
    let (alone, beside) = both(no_thread, &arguments);
    assert_eq!(shapes(&alone), shapes(&beside));
}

#[test]
fn limits_and_agents_of_a_run_hold_beside_a_server() {
    let prompt = "compute 1+1 then compute 2+2";
    let (alone, beside) = both(
        no_thread,
        &["run", prompt, "--max-steps", "1", "--thread", "k"],
    );
    assert_eq!((&alone, alone.code), (&beside, 1));
    let (alone, beside) = both(no_thread, &["run", "x", "--agent", "nobody"]);
    assert_eq!((&alone, alone.code), (&beside, 4));
}

#[test]
fn sub_agents_are_shown_indented_beside_a_server() {
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
    let _server = home.server();
    let ran = home.run(&["run", "go", "--thread", "k"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (
            0,
            "→ explore {\"query\":\"compute 1+1\"}\n  ┌ explore: compute 1+1\n    ← compute 2\n  \
             └ explore: compute gave 2.\n← explore compute gave 2.\nfound\n"
        )
    );
}

#[test]
fn reading_commands_give_the_same_before_a_server_and_beside_it() {
    let home = Home::new();
    forks(&home);
    let commands: [&[&str]; 17] = [
        &["search", "hello", "--agent", "demo"],
        &["search", "he", "--json", "--status", "open", "--limit", "2"],
        &["search", "nowhere"],
        &["threads", "list"],
        &["threads", "list", "--json", "--prefix", "f"],
        &["threads", "list", "--prefix", "none"],
        &["threads", "show", "k"],
        &["threads", "show", "g"],
        &["threads", "show", "g", "--json"],
        &["threads", "show", "none"],
        &["tail", "k", "--no-follow"],
        &["tail", "k", "--no-follow", "--after", "5"],
        &["threads", "tree", "f"],
        &["threads", "tree", "f", "--json"],
        &["export", "--thread", "k"],
        &["export", "--thread", "none"],
        &["tail", "none", "--no-follow"],
    ];
    let before: Vec<Ran> = commands.iter().map(|it| home.run(it)).collect();
    let _server = home.server();
    for (command, before) in commands.iter().zip(before) {
        assert_eq!(home.run(command), before, "{command:?}");
    }
}

#[test]
fn writing_commands_give_the_same_alone_and_beside_a_server() {
    let history = crate::support::cli::fixture("history.json");
    let history = history.to_str().unwrap();
    let commands: [&[&str]; 8] = [
        &["threads", "fork", "k", "new"],
        &["threads", "fork", "k", "f"],
        &["threads", "fork", "k", "new", "--at", "1000"],
        &["threads", "delete", "g"],
        &["threads", "delete", "g", "--yes", "--json"],
        &["threads", "delete", "none"],
        &["import", "--from", "pydantic-ai", history, "--thread", "i"],
        &["import", "--from", "pydantic-ai", history, "--thread", "k"],
    ];
    for command in commands {
        let (alone, beside) = both(forks, command);
        assert_eq!(
            (alone.code, alone.out),
            (beside.code, beside.out),
            "{command:?}"
        );
        assert_eq!(alone.err.is_empty(), beside.err.is_empty(), "{command:?}");
    }
}

#[test]
fn an_import_beside_a_server_is_the_operators_and_not_judged() {
    let history = json!([{"kind": "request", "parts": [{
        "part_kind": "user-prompt", "timestamp": "2026-01-05T08:00:00Z",
        "content": ["look", {"kind": "image-url", "url": "http://127.0.0.1/private.png"}],
    }]}]);
    let home = Home::new();
    let file = home.file("history.json", &history.to_string());
    let file = file.to_str().unwrap();
    let import = |home: &Home| {
        let ran = home.run(&["import", "--from", "pydantic-ai", file, "--thread", "k"]);
        (ran.code, ran.out, ran.err)
    };
    let _server = home.server();
    assert_eq!(import(&home), import(&Home::new()));
}

#[test]
fn a_run_that_is_left_goes_on_in_the_server() {
    let home = Home::new();
    let server = home.server();
    let mut run = home.spawn(&["run", "slow 20ms say 40 words", "--thread", "k"]);
    run.bytes::<10>();
    run.signal("INT");
    run.told("continue with --thread k");
    assert_eq!(run.close().code, 130);
    server.rest("k");
    let shown = home.ok(&["threads", "show", "k"]);
    let answer = shown.lines().nth(1).unwrap();
    assert_eq!(answer.split_whitespace().skip(1).count(), 40, "{shown}");
    assert_eq!(verify(&home.log("k")), Ok(()));
}

#[test]
fn a_server_that_stops_in_the_middle_of_a_run_is_no_end_of_the_run() {
    let home = Home::new();
    let mut server = home.server();
    let mut run = home.spawn(&["run", "slow 50ms say 200 words", "--thread", "k"]);
    run.bytes::<10>();
    server.stop();
    let ran = run.close();
    assert_eq!(ran.code, 1, "{ran:?}");
}

#[test]
fn a_thread_that_is_too_large_for_the_server_is_exported_all_the_same() {
    let mut home = Home::new();
    home.ok(&["run", "say 30000 words", "--thread", "k"]);
    let alone = home.ok(&["export", "--thread", "k"]);
    home.configure("[limits]\nthread_view_bytes = 65536\n");
    let server = home.server();
    assert!(server.get("/api/v1/threads/k/document").is_err());
    assert_eq!(home.ok(&["export", "--thread", "k"]), alone);
}

#[test]
fn an_import_that_is_too_large_for_the_server_says_what_to_do() {
    let mut home = Home::new();
    home.configure("[server]\nmax_body_bytes = 10\n");
    let _server = home.server();
    let file = home.file("k.json", "[                    ]");
    let ran = home.run(&["import", "--from", "pydantic-ai", file.to_str().unwrap()]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("raise max_body_bytes of the server"),
        "{ran:?}"
    );
}

fn published(home: &Home) -> Value {
    let text = std::fs::read_to_string(home.data().join("server.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_published_address_is_there_only_while_the_server_runs() {
    let home = Home::new();
    let mut server = home.server();
    assert!(
        published(&home)["url"]
            .as_str()
            .unwrap()
            .starts_with("http://127.0.0.1:")
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let file = std::fs::metadata(home.data().join("server.json")).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
    }
    server.stop();
    assert!(!home.data().join("server.json").exists());
}

#[test]
fn the_address_that_a_killed_server_left_is_not_used() {
    let home = Home::new();
    let mut server = home.server();
    server.kill();
    let file = home.data().join("server.json");
    assert!(file.exists());
    // Whoever listens there now gets nothing to see.
    let stranger = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", stranger.local_addr().unwrap());
    let left = json!({"url": url, "key": "llk_old", "pid": 1});
    std::fs::write(&file, left.to_string()).unwrap();
    assert_eq!(home.ok(&["run", "hello"]), "You said: hello\n");
    assert!(!file.exists());
    stranger.set_nonblocking(true).unwrap();
    assert!(stranger.accept().is_err());
}

fn status(url: &str, key: Option<&str>) -> u16 {
    let agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .build();
    let request = ureq::Agent::from(agent).get(format!("{url}/api/v1/threads"));
    let request = match key {
        Some(key) => request.header("authorization", format!("Bearer {key}")),
        None => request,
    };
    request.call().unwrap().status().as_u16()
}

/// A home whose server has these tenants, with the key `llk_NAME` each.
fn tenants(names: &[&str]) -> Home {
    let mut home = Home::new();
    let table = |name: &&str| {
        let hash = server::auth::hash_text(&format!("llk_{name}"));
        format!("[tenants.{name}]\nkey_hashes = [\"{hash}\"]\n")
    };
    home.configure(&names.iter().map(table).collect::<String>());
    home
}

#[test]
fn the_local_key_opens_the_local_listener_alone() {
    for home in [Home::new(), tenants(&["acme"])] {
        let server = home.server();
        let published = published(&home);
        let (url, key) = (
            published["url"].as_str().unwrap(),
            published["key"].as_str().unwrap(),
        );
        assert_eq!(status(url, Some(key)), 200);
        for other in [None, Some("llk_acme"), Some("")] {
            assert_eq!(status(url, other), 401, "{other:?}");
        }
        if server.get("/api/v1/threads").is_err() {
            assert_eq!(status(&server.base, Some(key)), 401);
            assert_eq!(status(&server.base, Some("llk_acme")), 200);
        }
        let log = std::fs::read_to_string(home.data().join("server.log")).unwrap();
        assert!(!log.contains(key));
    }
}

#[test]
fn a_command_without_a_configuration_means_the_only_tenant_of_the_server() {
    let mut home = tenants(&["acme"]);
    let _server = home.server_of_its_own();
    home.ok(&["run", "hello", "--thread", "k"]);
    assert!(
        home.ok(&["threads", "list", "--tenant", "acme"])
            .starts_with("k  open")
    );
    let none = home.ok(&["threads", "list", "--tenant", "dev"]);
    assert!(none.starts_with("no threads yet"), "{none}");
}

#[test]
fn a_command_beside_a_server_names_one_of_several_tenants() {
    let mut home = tenants(&["acme", "other"]);
    let _server = home.server_of_its_own();
    for wrong in [&["run", "hi"][..], &["run", "hi", "--tenant", "nobody"]] {
        let refused = home.run(wrong);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(
            refused.err.contains("there are: acme, other"),
            "{refused:?}"
        );
    }
    home.ok(&["run", "hi", "--thread", "k", "--tenant", "acme"]);
    assert_eq!(
        home.run(&["threads", "show", "k", "--tenant", "other"])
            .code,
        4
    );
}

#[test]
fn a_named_server_is_asked_with_the_key_of_the_environment() {
    let there = tenants(&["acme"]);
    let server = there.server();
    let mut home = Home::new();
    let run = |home: &Home, arguments: &[&str]| {
        let elsewhere = ["--server", server.base.as_str()];
        home.run(&[arguments, &elsewhere].concat())
    };
    let refused = run(&home, &["threads", "list"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("LOOMLINE_KEY"), "{refused:?}");
    home.set("LOOMLINE_KEY", "llk_acme");
    let ran = run(&home, &["run", "compute 1+1", "--thread", "k"]);
    assert_eq!(
        ran.out,
        "→ compute {\"expression\":\"1+1\"}\n← compute 2\ncompute gave 2.\n"
    );
    let exported = run(&home, &["export", "--thread", "k"]);
    let file = home.file("k.json", &exported.out);
    let file = file.to_str().unwrap();
    assert_eq!(
        run(
            &home,
            &["import", "--from", "thread", file, "--thread", "l"]
        )
        .code,
        0
    );
    let listed = run(&home, &["threads", "list", "--json"]).json();
    let keys: Vec<&Value> = listed.iter().map(|it| &it["key"]).collect();
    assert_eq!(keys, [&json!("l"), &json!("k")]);
    assert_eq!(
        there.ok(&["threads", "show", "k"]),
        run(&home, &["threads", "show", "k"]).out
    );
    assert!(!home.path("data").exists());
}

#[test]
fn a_named_server_that_is_not_there_is_exit_1() {
    let home = Home::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{free}");
    let ran = home.run(&["run", "hello", "--server", &url]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.err
            .contains(&format!("the request to the server at {url}/ failed")),
        "{ran:?}"
    );
    let wrong = home.run(&["run", "hello", "--server", "ftp://x"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
}

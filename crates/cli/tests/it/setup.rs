//! `init`, `open` and `trace`.

use crate::support::cli::Home;
use serde_json::json;

#[test]
fn an_initial_configuration_is_valid_and_answers() {
    let mut home = Home::new();
    let file = home.path("made.toml");
    let name = file.to_str().unwrap().to_owned();
    let made = home.run(&["init", "--output", &name]);
    assert_eq!(made.code, 0, "{made:?}");
    assert!(
        made.out.contains("agent assistant with scripted"),
        "{made:?}"
    );
    home.configure(&std::fs::read_to_string(&file).unwrap());
    let checked = home.ok(&["agents", "check"]);
    assert!(checked.contains("assistant (default)"), "{checked}");
    let ran = home.run(&["run", "compute 2*3", "-q"]);
    assert!(ran.out.ends_with("compute gave 6.\n"), "{ran:?}");
}

#[test]
fn an_initial_configuration_has_the_chosen_model() {
    let home = Home::new();
    let made = home.run(&[
        "init",
        "--output",
        "-",
        "--model",
        "anthropic/claude-x",
        "--api-key-env",
        "MY_KEY",
        "--system",
        "Say \"yes\".",
    ]);
    assert_eq!(made.code, 0, "{made:?}");
    for line in [
        "provider = \"anthropic\"",
        "model = \"claude-x\"",
        "api_key_env = \"MY_KEY\"",
        "default_max_tokens = 8192",
        r#"system = "Say \"yes\".""#,
    ] {
        assert!(made.out.contains(line), "{line}: {made:?}");
    }
}

#[cfg(unix)]
#[test]
fn an_initial_tenant_opens_its_server_with_the_shown_key() {
    let mut home = Home::new();
    let file = home.path("made.toml");
    let name = file.to_str().unwrap().to_owned();
    let made = home.run(&["init", "--output", &name, "--tenant", "acme", "--json"]);
    let key = made.json()[0]["key"].as_str().unwrap().to_owned();
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains(&key), "{text}");
    home.configure(&text);
    let server = home.server();
    home.set("LOOMLINE_KEY", &key);
    let ran = home.run(&["run", "hello", "-q", "--server", &server.url("")]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "You said: hello\n"),
        "{ran:?}"
    );
    home.set("LOOMLINE_KEY", "wrong");
    let ran = home.run(&["run", "hello", "-q", "--server", &server.url("")]);
    assert_eq!(ran.code, 1, "{ran:?}");
}

#[test]
fn an_existing_configuration_is_replaced_by_force_alone() {
    let home = Home::new();
    let file = home.file("there.toml", "# mine\n");
    let name = file.to_str().unwrap();
    let refused = home.run(&["init", "--output", name]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("--force"), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "# mine\n");
    assert_eq!(home.run(&["init", "--output", name, "--force"]).code, 0);
    assert!(
        std::fs::read_to_string(&file)
            .unwrap()
            .contains("[agents.assistant]")
    );
}

#[test]
fn an_initial_tenant_with_a_wrong_name_writes_nothing() {
    let home = Home::new();
    let file = home.path("made.toml");
    let refused = home.run(&["init", "--output", file.to_str().unwrap(), "--tenant", ""]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(!file.exists());
}

#[test]
fn a_page_is_opened_only_beside_a_server() {
    let mut home = Home::new();
    // No program that opens a browser is found.
    home.set("PATH", "");
    let refused = home.run(&["open", "k"]);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(
        refused.err.contains("`loomline serve` starts one"),
        "{refused:?}"
    );
    let server = home.server();
    let opened = home.run(&["open", "a key/2", "--json"]);
    let url = server.url("/chat/a%20key%2F2");
    assert_eq!(opened.json()[0], json!({"url": url}), "{opened:?}");
    let wrong = home.run(&["open", ""]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
}

#[test]
fn a_trace_draws_steps_and_calls_alone_and_beside_a_server() {
    let home = Home::new();
    home.ok(&["run", "hello", "--thread", "k"]);
    home.ok(&["run", "compute 2*3", "--thread", "k"]);
    let rows = |arguments: &[&str]| home.ok(arguments);
    let last = rows(&["trace", "k"]);
    for part in [
        "run of demo",
        "step 0 scripted-1",
        "compute {\"expression\":\"2*3\"}",
        "step 1",
        "█",
        "completed",
        " ms  ok\n",
    ] {
        assert!(last.contains(part), "{part}: {last}");
    }
    assert_eq!(last.lines().count(), 4, "{last}");
    let all = rows(&["trace", "k", "--all"]);
    assert_eq!(all.matches("run of demo").count(), 2, "{all}");
    let json = home.run(&["trace", "k", "--json"]).json();
    assert_eq!(json[0]["label"], "run of demo");
    let id = json[0]["executionId"].as_str().unwrap();
    assert_eq!(rows(&["trace", "k", "--run", id]), last);
    let server = home.server();
    assert_eq!(rows(&["trace", "k"]), last);
    drop(server);
}

#[test]
fn a_trace_of_an_unknown_thread_or_run_is_exit_4() {
    let home = Home::new();
    home.ok(&["run", "hello", "--thread", "k"]);
    let thread = home.run(&["trace", "no"]);
    assert!(
        thread.code == 4 && thread.err.contains("no thread with key"),
        "{thread:?}"
    );
    let run = home.run(&["trace", "k", "--run", "no"]);
    assert!(
        run.code == 4 && run.err.contains("has no run \"no\""),
        "{run:?}"
    );
    assert_eq!(home.run(&["trace"]).code, 2);
}

#[test]
fn a_trace_shows_sub_agents_below_their_calls() {
    let home = Home::new();
    let prompt = "delegate \"compute 17*3\"";
    home.ok(&["run", prompt, "--agent", "lead", "--thread", "k"]);
    let trace = home.ok(&["trace", "k"]);
    let mut below = trace
        .lines()
        .skip_while(|line| !line.contains("delegate {"));
    let row = below.nth(1).unwrap_or_default();
    assert!(
        row.contains("sub-agent delegate") && row.ends_with("ended"),
        "{trace}"
    );
}

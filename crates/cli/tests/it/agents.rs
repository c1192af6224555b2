//! `agents check` and `agents list`.

use crate::support::cli::Home;
use serde_json::json;

const TEAM: &str = r#"
default_agent = "lead"
[models.large]
provider = "chat-completions"
model = "gpt-x"
base_url = "http://127.0.0.1:9/v1"
retry = "exponential-backoff"
[models.small]
provider = "scripted"
[mcp.files]
command = "/bin/sh"
args = ["-c", "touch STARTED"]
prefix = "f_"
effects = { read = "pure" }
[agents.lead]
model = "large"
description = "Leads."
tools = ["compute", "mcp:files/read", "mcp:files/write"]
requires_approval = ["mcp:files/write"]
strategy = { kind = "react", max_steps = 8 }
handoffs = ["finder"]
middleware = ["logging", { kind = "sliding-window", max_messages = 40 }]
[[agents.lead.subagents]]
agent = "finder"
name = "find"
description = "Finds something."
parameters = { type = "object", properties = { query = { type = "string" } }, required = ["query"] }
prompt = "Find: {query}"
[agents.finder]
model = "small"
[[agents.finder.subagents]]
agent = "digger"
name = "dig"
description = "Digs."
parameters = { type = "object" }
prompt = "Dig."
[agents.digger]
model = "small"
"#;

fn team() -> Home {
    let mut home = Home::new();
    let started = home.path("started").display().to_string();
    home.configure(&TEAM.replace("STARTED", &started));
    home
}

#[test]
fn a_check_shows_what_each_agent_is() {
    let text = team().ok(&["agents", "check"]);
    for words in [
        "lead (default)  gpt-x by chat-completions  Leads.",
        "model       large, no key, retries: exponential-backoff",
        "strategy    react, at most 8 steps",
        "tools       compute  built-in, pure",
        "f_read   mcp, pure",
        "f_write  mcp, effect, needs approval",
        "find     subagent, idempotent",
        "sub-agents  find → finder",
        "              dig → digger",
        "hands over  to finder",
        "middleware  logging, sliding-window of 40 messages",
        "3 agents, 0 warnings; no model was called",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_check_starts_nothing_and_writes_nothing() {
    let home = team();
    home.ok(&["agents", "check"]);
    home.ok(&["agents", "list"]);
    assert!(!home.path("started").exists());
    assert!(!home.path("data").exists());
}

#[test]
fn a_check_is_json_for_scripts() {
    let lines = team().run(&["agents", "check", "--json"]).json();
    let names: Vec<_> = lines.iter().map(|line| &line["agent"]["name"]).collect();
    assert_eq!(names, ["digger", "finder", "lead"]);
    let lead = &lines[2]["agent"];
    assert_eq!(lead["model"]["provider"], "chat-completions");
    assert_eq!(
        lead["tools"][2],
        json!({"name": "f_write", "kind": "mcp", "effect": "effect", "requiresApproval": true})
    );
    assert_eq!(lead["subagents"][0]["subagents"][0]["agent"], "digger");
}

#[test]
fn a_key_that_is_missing_is_an_error_and_the_rest_is_shown() {
    let mut home = Home::new();
    let text = "[models.m]\nprovider = \"openai\"\nmodel = \"x\"\napi_key_env = \"LOOMLINE_TEST_NO_SUCH_KEY\"\n[agents.a]\nmodel = \"m\"\n";
    home.configure(text);
    let ran = home.run(&["agents", "check"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let expected = "error line 4, column 15: the environment has no LOOMLINE_TEST_NO_SUCH_KEY, expected a key in it";
    assert!(ran.out.contains(expected), "{ran:?}");
    assert!(ran.out.contains("a (default)  x by openai"), "{ran:?}");
    assert!(ran.err.contains("1 finding"), "{ran:?}");
    let lines = home.run(&["agents", "check", "--json"]).json();
    assert_eq!(lines[1]["finding"]["severity"], "error");
    assert_eq!(lines[1]["finding"]["line"], 4);
    // Nothing else takes such a configuration.
    assert_eq!(home.run(&["run", "hello"]).code, 1);
}

#[test]
fn a_mistake_is_told_with_its_place_and_exit_1() {
    let mut home = Home::new();
    home.configure(
        "[models.m]\nprovider = \"scripted\"\n[agents.a]\nmodel = \"m\"\ntools = [\"telepathy\"]\n",
    );
    let ran = home.run(&["agents", "check"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.out
            .contains("error line 5, column 10: there is no tool \"telepathy\""),
        "{ran:?}"
    );
    assert_eq!(home.run(&["agents", "list"]).code, 1);
}

#[test]
fn agents_are_listed() {
    let home = team();
    let text = home.ok(&["agents", "list"]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "digger  scripted",
            "finder  scripted",
            "lead (default)  gpt-x by chat-completions  Leads."
        ]
    );
    let lines = home.run(&["agents", "list", "--json"]).json();
    assert_eq!(lines[2]["name"], "lead");
    assert_eq!(lines[2]["isDefault"], true);
    // Without a configuration there are those of development mode.
    let text = Home::new().ok(&["agents", "list"]);
    let is_demo = |line: &str| line.starts_with("demo (default)  scripted");
    assert!(text.lines().any(is_demo), "{text}");
}

#[test]
fn what_would_not_be_served_is_an_error_of_the_check() {
    let tenant = "[tenants.acme]\nkey_hashes = [\"sha256:1111111111111111111111111111111111111111111111111111111111111111\"]\n";
    let issuer = "[auth.jwt]\nissuer = \"https://id.example\"\naudience = [\"a\"]\njwks_file = \"no.json\"\n";
    let token = [issuer, tenant].concat();
    for (text, words) in [
        (
            "[server]\ntls = { cert = \"no.pem\", key = \"no.key\" }\n",
            "no.pem can't be read",
        ),
        (
            "[server]\nlisten = \"0.0.0.0:0\"\n",
            "0.0.0.0:0 can be reached by others, and no tenant is configured",
        ),
        (&token, "[auth.jwt] can't be used"),
    ] {
        let mut home = Home::new();
        home.configure(text);
        let checked = home.run(&["agents", "check"]);
        assert_eq!(checked.code, 1, "{checked:?}");
        assert!(checked.out.contains(words), "{checked:?}");
        // Which is what the server says.
        let served = home.run(&["serve"]);
        assert_eq!(served.code, 1, "{served:?}");
        assert!(served.err.contains(words), "{served:?}");
    }
}

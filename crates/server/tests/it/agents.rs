//! Agents as a configuration makes them.

use crate::harness::Server;
use loomline_server::config::ProviderKind;
use loomline_server::{App, Config, OpenMode, inspect};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

#[tokio::test]
async fn every_provider_makes_its_agent_without_the_network() {
    let mut text = String::new();
    for kind in ProviderKind::ALL {
        let name = kind.as_str();
        write!(
            text,
            "[models.{name}]\nprovider = \"{name}\"\nmodel = \"x-1\"\nretry = \"exponential-backoff\"\n"
        )
        .unwrap();
        if matches!(
            kind,
            ProviderKind::ChatCompletions | ProviderKind::OpenResponses
        ) {
            text += "base_url = \"http://127.0.0.1:9/v1\"\n";
        }
        if kind.needs_max_tokens() {
            text += "default_max_tokens = 100\n";
        }
        write!(
            text,
            "[agents.{name}]\nmodel = \"{name}\"\ntools = [\"compute\"]\n"
        )
        .unwrap();
    }
    let env = |name: &str| name.ends_with("_API_KEY").then(|| "k".to_owned());
    let inspection = inspect(Config::check(&text, &env).unwrap());
    assert_eq!(inspection.findings, []);
    let config = Config::parse(&text, &env).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let app = App::open(config, directory.path(), OpenMode::ReadWrite)
        .await
        .unwrap();
    let agents = app.agents();
    assert_eq!(agents.len(), ProviderKind::ALL.len());
    for agent in agents {
        let vendor = match agent.name.as_str() {
            "openai-chat" => "openai",
            "openrouter-responses" => "openrouter",
            "xai-responses" | "xai-messages" => "xai",
            name => name,
        };
        assert_eq!(
            (agent.provider.as_str(), agent.model.as_str()),
            (vendor, "x-1")
        );
    }
    app.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_vendors_model_without_a_key_fails_before_anything_is_sent() {
    let server =
        Server::new("[models.m]\nprovider = \"groq\"\nmodel = \"x\"\n[agents.a]\nmodel = \"m\"\n")
            .await;
    let answer = server.say("k", "hello").await;
    assert!(
        answer.text.contains("there is no API key"),
        "{}",
        answer.text
    );
}

const TEAM: &str = r#"
default_agent = "lead"
[models.m]
provider = "scripted"
[agents.lead]
model = "m"
[[agents.lead.subagents]]
agent = "finder"
name = "find"
description = "Finds something."
parameters = { type = "object", properties = { query = { type = "string" } }, required = ["query"] }
prompt = "Find: {query}"
[agents.finder]
model = "m"
tools = ["compute"]
"#;

#[tokio::test]
async fn an_agent_calls_another_one_as_its_tool() {
    let server = Server::new(TEAM).await;
    let answer = server.say("k", "find gold").await;
    assert!(
        answer.text.contains("\"output\":\"You said: Find: gold\""),
        "{}",
        answer.text
    );
    // The sub-agent has tools of its own.
    let answer = server.say("l", "find \"compute 2+3*4\"").await;
    assert!(answer.text.contains("14"), "{}", answer.text);
    // It can be asked itself, too.
    let names: Vec<String> = server.app.agents().into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["finder", "lead"]);
}

/// The server that cargo builds beside the tests.
fn toys() -> String {
    let tests: PathBuf = std::env::current_exe().unwrap();
    let target = tests.parent().unwrap().parent().unwrap();
    target.join("examples/mcp_toys").display().to_string()
}

fn with_toys(command: &str, argument: &str) -> String {
    format!(
        "default_agent = \"a\"\n[models.m]\nprovider = \"scripted\"\n\
         [mcp.toys]\ncommand = \"{command}\"\nargs = [\"{argument}\"]\nprefix = \"toys_\"\ntrust_annotations = true\n\
         [agents.a]\nmodel = \"m\"\ntools = [\"mcp:toys\"]\n\
         [agents.b]\nmodel = \"m\"\ntools = [\"mcp:toys/echo\"]\n"
    )
}

fn tools_of(server: &Server, name: &str) -> Vec<String> {
    let agents = server.app.agents();
    agents.into_iter().find(|it| it.name == name).unwrap().tools
}

#[tokio::test]
async fn an_agent_has_the_tools_of_an_mcp_server_until_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let ended = directory.path().join("ended");
    let server = Server::new(&with_toys(&toys(), &ended.display().to_string())).await;
    assert_eq!(tools_of(&server, "a"), ["toys_echo"]);
    assert_eq!(tools_of(&server, "b"), ["toys_echo"]);
    let answer = server.say("k", "toys_echo hello").await;
    assert!(
        answer.text.contains("\"output\":\"echo of hello\""),
        "{}",
        answer.text
    );
    assert!(!ended.exists());
    server.app.shutdown().await.unwrap();
    assert!(ended.exists());
}

#[tokio::test]
async fn an_mcp_server_that_is_down_keeps_nobody_from_starting() {
    let server = Server::new(&with_toys("/nowhere/at-all", "x")).await;
    // Of its tools only the one is known that the configuration names.
    assert_eq!(tools_of(&server, "a"), ["toys_echo"]);
    assert_eq!(tools_of(&server, "b"), ["toys_echo"]);
    let said = server
        .post(
            "/api/v1/threads/k/messages",
            serde_json::json!({"content": "toys_echo {\"text\": \"x\"}", "agent": "b", "stream": true}),
        )
        .await;
    assert!(
        said.text.contains("the MCP server 'toys' can't be used"),
        "{}",
        said.text
    );
    assert!(server.say("l", "hello").await.text.contains("hello"));
}

#[tokio::test]
async fn the_tools_of_a_server_that_is_down_are_those_of_the_last_time() {
    let server = Server::new(&with_toys(&toys(), "")).await;
    server.app.shutdown().await.unwrap();
    let Server {
        app,
        directory,
        router,
        ..
    } = server;
    drop((app, router));
    let again = Server::at(directory, &with_toys("/nowhere/at-all", "x")).await;
    assert_eq!(tools_of(&again, "a"), ["toys_echo"]);
    let answer = again.say("k", "toys_echo hello").await;
    assert!(answer.text.contains("toys_echo"), "{}", answer.text);
    assert!(answer.text.contains("can't be used"), "{}", answer.text);
}

#[test]
fn what_an_agent_lacks_is_a_warning() {
    let text = "[models.m]\nprovider = \"ollama\"\nmodel = \"x\"\ncapabilities = { structured_output = false }\n\
        [mcp.s]\ncommand = \"./not/here\"\n\
        [agents.b]\nmodel = \"m\"\ntools = [\"compute\"]\nrequires_approval = [\"compute\"]\n\
        [agents.a]\nmodel = \"m\"\nstrategy = \"plan\"\n\
        [[agents.a.subagents]]\nagent = \"b\"\nname = \"b\"\ndescription = \"d\"\nparameters = { type = \"object\" }\nprompt = \"go\"\n\
        [tools]\nread_file_root = \"./not/here\"\n";
    let inspection = inspect(Config::check(text, &|_| None).unwrap());
    assert_eq!(inspection.n_errors(), 0);
    let found: Vec<&str> = inspection
        .findings
        .iter()
        .map(|it| it.message.as_str())
        .collect();
    for words in [
        "the agent \"a\" plans, and its model \"m\" has no structured output",
        "read_file_root of [tools] is not there: ./not/here",
        "the command of the MCP server \"s\" is not there: ./not/here",
    ] {
        assert!(
            found.iter().any(|it| it.contains(words)),
            "{words}: {found:?}"
        );
    }
}

#[test]
fn what_a_model_can_never_be_asked_is_an_error() {
    let model = "[models.m]\nprovider = \"ollama\"\nmodel = \"x\"\ncapabilities = { structured_output = false, tools = false }\n";
    for (wants, told) in [
        ("tools = [\"compute\"]", "the model \"x\" can't call tools"),
        (
            "structure = { type = \"object\" }",
            "the model \"x\" can't answer in a given structure",
        ),
    ] {
        let text = format!("{model}[agents.a]\nmodel = \"m\"\n{wants}\n");
        let inspection = inspect(Config::check(&text, &|_| None).unwrap());
        assert_eq!(inspection.n_errors(), 1);
        let message = &inspection.findings[0].message;
        assert!(
            message.contains("\"a\"") && message.contains(told),
            "{message}"
        );
    }
}

#[test]
fn a_file_that_is_missing_is_an_error() {
    let text = "[models.m]\nprovider = \"scripted\"\nscript = \"not/here.json\"\n[agents.a]\nmodel = \"m\"\n";
    let inspection = inspect(Config::check(text, &|_| None).unwrap());
    assert_eq!(inspection.n_errors(), 1);
    assert!(inspection.findings[0].message.contains("not/here.json"));
    // What the agents are is shown all the same.
    assert_eq!(inspection.agents.len(), 1);
}

/// The parts of the page that are TOML.
fn blocks() -> Vec<String> {
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/configuration.md"
    );
    let page = std::fs::read_to_string(page).unwrap();
    let parts: Vec<&str> = page.split("```toml\n").collect();
    let pairs = parts.windows(2);
    // A wrong file shows an error.
    let right = pairs.filter(|pair| !pair[0].ends_with("<!-- docs: file wrong.toml -->\n"));
    let blocks = right.map(|pair| pair[1].split("```").next().unwrap().to_owned());
    blocks.collect()
}

#[test]
fn the_documented_configuration_is_one() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    std::fs::create_dir(home.join("handbook")).unwrap();
    std::fs::write(home.join("editor.md"), "You edit.").unwrap();
    std::fs::write(home.join("verdict.json"), "{\"type\": \"object\"}").unwrap();
    let blocks = blocks();
    for block in &blocks {
        let text = block.replace("/srv/loomline", &home.display().to_string());
        // There is no certificate here.
        let text = text.replace("\ntls = ", "\n# tls = ");
        let env = |name: &str| {
            Some(match name {
                "LOOMLINE_STORE_KEY" => "0".repeat(64),
                "LOOMLINE_DATABASE" | "LOOMLINE_EAST" => format!("postgres://user@{name}/threads"),
                _ => format!("the {name}"),
            })
        };
        let checked = Config::check(&text, &env).unwrap_or_else(|error| panic!("{error}: {text}"));
        let inspection = inspect(checked);
        assert_eq!(inspection.findings, [], "{text}");
    }
    let whole = blocks.concat();
    for table in [
        "[server]",
        "[models.",
        "[agents.",
        "[mcp.",
        "[tools]",
        "[telemetry]",
        "[tenants.",
        ".subagents]]",
        ".external]]",
    ] {
        assert!(whole.contains(table), "{table}");
    }
}

#[test]
fn the_page_names_every_provider_and_its_variable() {
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/configuration.md"
    );
    let page = std::fs::read_to_string(page).unwrap();
    for kind in ProviderKind::ALL {
        assert!(page.contains(&format!("`{}`", kind.as_str())), "{kind:?}");
        for name in kind.key_envs() {
            assert!(page.contains(name), "{name}");
        }
    }
}

/// The fields that a table of the file has, as the error about an unknown one lists them.
fn fields_of(table: &str) -> BTreeSet<String> {
    let error = Config::parse(&format!("{table}\nunknown_field = 1"), &|_| None).unwrap_err();
    let (_, expected) = error.message.split_once("expected ").unwrap_or_default();
    let (expected, _) = expected.split_once(": [").unwrap_or((expected, ""));
    let names = expected.split('`').skip(1).step_by(2);
    names.map(str::to_owned).collect()
}

#[test]
fn the_page_has_exactly_the_fields_of_each_table() {
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/configuration.md"
    );
    let page = std::fs::read_to_string(page).unwrap();
    let mut n_tables = 0;
    for section in page.split("\n## ").skip(1) {
        let (heading, text) = section.split_once('\n').unwrap();
        let Some(table) = heading.split('`').nth(1).filter(|it| it.starts_with('[')) else {
            continue;
        };
        let rows = text
            .lines()
            .skip_while(|line| !line.starts_with("| field |"));
        let rows = rows.skip(2).take_while(|line| line.starts_with("| `"));
        let documented: BTreeSet<String> = rows
            .map(|row| row.split('`').nth(1).unwrap().to_owned())
            .collect();
        assert_eq!(documented, fields_of(table), "{table}");
        n_tables += 1;
    }
    assert!(n_tables > 20, "{n_tables}");
}

#[test]
fn a_report_is_json_for_scripts() {
    let inspection = inspect(Config::check(TEAM, &|_| None).unwrap());
    let json: Value = serde_json::to_value(&inspection).unwrap();
    let lead = &json["agents"][1];
    assert_eq!(lead["name"], "lead");
    assert_eq!(lead["isDefault"], true);
    assert_eq!(lead["subagents"][0]["agent"], "finder");
    assert_eq!(lead["tools"][0]["kind"], "subagent");
    assert_eq!(json["agents"][0]["tools"][0]["effect"], "pure");
}

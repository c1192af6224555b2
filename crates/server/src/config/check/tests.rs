mod agents;
mod auth;
mod mcp;
mod models;
mod remote;
mod subagents;

use super::*;
use crate::config::{Checked, OutboundConfig};
use secrecy::ExposeSecret as _;

fn env(name: &str) -> Option<String> {
    match name {
        "KEY" => Some("secret".to_owned()),
        "KEY2" => Some("secret2".to_owned()),
        "STORE_KEY" => Some("5a".repeat(32)),
        "LISTEN_URL" => Some("postgres://a:secret@db/x".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, &env)
}

fn checked(text: &str) -> Checked {
    Config::check(text, &env).unwrap()
}

/// What is wrong, with its place.
fn said(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

/// Checks that each line of `lines`, put below `before`, is refused at this column with these words.
fn refused(before: &str, lines: &[(&str, usize, &str)]) {
    let line = before.lines().count() + 1;
    for (text, column, words) in lines {
        let error = parse(&format!("{before}{text}\n")).unwrap_err();
        assert_eq!(
            (error.line, error.column),
            (line, *column),
            "{text}: {error}"
        );
        assert!(error.message.contains(words), "{text}: {error}");
    }
}

#[test]
fn an_empty_file_is_development_mode() {
    let config = parse("").unwrap();
    assert!(config.is_development());
    assert_eq!(config.default_agent, "demo");
    assert_eq!(config.server, ServerConfig::default());
    assert!(config.mcp.is_empty() && config.telemetry.is_none());
}

#[test]
fn a_stores_key_is_in_a_variable_and_is_one() {
    let config = parse("[store]\nkey_env = \"STORE_KEY\"").unwrap();
    assert!(config.store.key.is_some());
    assert!(!format!("{config:?}").contains("5a5a"), "{config:?}");
    assert!(parse("").unwrap().store.key.is_none());
    refused(
        "[store]\n",
        &[
            (
                "key_env = \"KEY\"",
                11,
                "KEY: this is no key of a store, expected 64",
            ),
            ("key_env = \"EMPTY\"", 11, "the environment has no EMPTY"),
            ("key_env = \"NONE\"", 11, "the environment has no NONE"),
            ("key = \"5a\"", 1, "unknown field `key`"),
        ],
    );
    assert!(!said("[store]\nkey_env = \"KEY\"").contains("secret"));
}

#[test]
fn a_database_is_named_with_its_connections() {
    let config = parse(
        "[server]\nnode = \"a\"\n[store]\nurl = \"postgres://loomline@db1:5432,db2/loomline?sslmode=require\"\n\
         prepared = false\nwriters = 3\nca = \"ca.pem\"\nlisten_url_env = \"LISTEN_URL\"",
    )
    .unwrap();
    let database = config.store.postgres.as_ref().unwrap();
    assert!(!database.prepared);
    assert_eq!((database.writers.get(), database.readers.get()), (3, 8));
    assert_eq!(
        database.listen_url.as_ref().unwrap().expose_secret(),
        "postgres://a:secret@db/x"
    );
    assert_eq!(config.server.node.as_deref(), Some("a"));
    assert!(!format!("{config:?}").contains("secret"), "{config:?}");
    assert!(parse("").unwrap().store.postgres.is_none());
}

#[test]
fn a_tenant_names_the_further_database_of_its_data() {
    let config = parse(
        "[store]\nurl = \"postgres://a@db/x\"\n[store.shards.east]\nurl_env = \"LISTEN_URL\"\nwriters = 3\n\
         [tenants.acme]\nshard = \"east\"\npaused = true\n[tenants.globex]\nshard = \"default\"",
    )
    .unwrap();
    let shard = &config.store.shards["east"];
    assert_eq!(shard.url.expose_secret(), "postgres://a:secret@db/x");
    assert_eq!(shard.writers.get(), 3);
    let (acme, globex) = (&config.tenants["acme"], &config.tenants["globex"]);
    assert_eq!(
        (acme.shard.as_deref(), acme.is_paused),
        (Some("east"), true)
    );
    assert_eq!((globex.shard.as_deref(), globex.is_paused), (None, false));
    assert!(!format!("{config:?}").contains("secret"), "{config:?}");
}

#[test]
fn a_wrong_shard_is_refused() {
    let alone = "[store.shards.east]\nurl = \"postgres://a@db/x\"\n";
    assert!(said(alone).contains("and [store] names none"));
    let store = "[store]\nurl = \"postgres://a@db/x\"\n";
    for (text, message) in [
        (
            "[store.shards.east]\n",
            "names no database, expected url or url_env",
        ),
        (
            "[store.shards.east]\nprepared = true\n",
            "names no database",
        ),
        (
            "[store.shards.default]\nurl = \"postgres://a@db/y\"\n",
            "is the database of [store]",
        ),
        (
            "[store.shards.\"a b\"]\nurl = \"postgres://a@db/y\"\n",
            "is no name of a shard",
        ),
        (
            "[store.shards.east]\nurl = \"postgres://a@db/x\"\n",
            "expected each database once",
        ),
        (
            "[store.shards.east]\nurl = \"mysql://db\"\n",
            "expected a URL such as",
        ),
        (
            "[store.shards.east]\nkey_env = \"KEY\"\n",
            "unknown field `key_env`",
        ),
        (
            "[store.shards.east]\nurl = \"postgres://a@db/y\"\n[tenants.acme]\nshard = \"west\"\n",
            "there is no shard \"west\", expected one of: east",
        ),
        (
            "[tenants.acme]\nshard = \"west\"\n",
            "there is no shard \"west\", and there is none at all",
        ),
    ] {
        let found = said(&format!("{store}{text}"));
        assert!(found.contains(message), "{text}: {found}");
    }
}

#[test]
fn a_wrong_database_is_refused() {
    refused(
        "[store]\n",
        &[
            ("url = \"mysql://db/x\"", 7, "expected a URL such as"),
            ("url = \"postgres://\"", 7, "expected a URL such as"),
            (
                "url = \"postgres://a:secret@db/x\"",
                7,
                "put the URL into a variable, and name it in url_env",
            ),
            (
                "url = \"postgres://a@db/x?password=secret\"",
                7,
                "put the URL into a variable",
            ),
            ("url_env = \"KEY\"", 11, "expected a URL such as"),
            ("url_env = \"NONE\"", 11, "the environment has no NONE"),
            ("writers = 3", 11, "[store] names none"),
        ],
    );
    refused(
        "[store]\nurl_env = \"LISTEN_URL\"\n",
        &[
            (
                "url = \"postgres://db/x\"",
                7,
                "there are both url and url_env",
            ),
            ("readers = 300", 11, "expected at most 256"),
            (
                "key_env = \"STORE_KEY\"",
                11,
                "can't be encrypted by this program",
            ),
        ],
    );
    let said = said("[store]\nurl = \"postgres://a:hunter2@db/x\"");
    assert!(!said.contains("hunter2"), "{said}");
}

#[test]
fn every_setting_is_read() {
    let config = parse(
        r#"
        default_agent = "b"
        [server]
        listen = "127.0.0.1:9"
        data = "d"
        max_body_bytes = 10
        max_file_bytes = 20
        max_depth = 5
        run_timeout_s = 3
        cors_origins = ["https://a.example"]
        public_url = "https://b.example/looms/"
        [limits]
        streams = 2
        trusted_proxies = ["10.0.0.0/8"]
        [limits.tenant]
        threads = 7
        files = 8
        [models.m]
        provider = "chat-completions"
        model = "gpt"
        base_url = "https://api.example/v1"
        api_key_env = "KEY"
        [models.s]
        provider = "scripted"
        delay_ms = 5
        [agents.a]
        model = "s"
        tools = ["compute", "record"]
        [agents.b]
        model = "m"
        system = "Be kind."
        max_tool_rounds = 4
        params = { temperature = 0.5 }
        [tools]
        ledger = "l.txt"
        ledger_effect = "idempotent"
        [telemetry]
        endpoint = "https://traces.example:4318"
        headers_env = { authorization = "KEY" }
        service_name = "looms"
        sample_ratio = 0.25
        capture_content = true
        [tenants.acme]
        key_hashes = ["sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"]
        [tenants.acme.limits]
        files = 9
        "#,
    )
    .unwrap();
    assert_eq!(config.default_agent, "b");
    assert_eq!(config.server.max_body_bytes, 10);
    assert_eq!(config.server.max_file_bytes, 20);
    let url = config.server.public_url.as_deref();
    assert_eq!(url, Some("https://b.example/looms"));
    assert_eq!(config.server.run_timeout, Some(Duration::from_secs(3)));
    let rounds = config.agents["b"].max_tool_rounds.unwrap();
    assert_eq!(rounds.get(), 4);
    assert_eq!(config.tools.ledger_effect, Effect::Idempotent);
    assert_eq!(config.tenants["acme"].keys.len(), 1);
    assert_eq!(config.limits.streams, 2);
    let limits = config.tenants["acme"].limits;
    assert_eq!((limits.threads, limits.files), (7, 9));
    assert!(!format!("{config:?}").contains("secret"));
    let telemetry = config.telemetry.unwrap();
    assert_eq!(telemetry.endpoint, "https://traces.example:4318");
    assert_eq!(telemetry.service_name, "looms");
    assert!(telemetry.capture_content && telemetry.headers.contains_key("authorization"));
    assert!((telemetry.sample_ratio - 0.25).abs() < f64::EPSILON);
}

#[test]
fn traces_are_whole_and_without_content_unless_it_is_said() {
    let config = parse("[telemetry]\nendpoint = \"http://localhost:4318\"").unwrap();
    let telemetry = config.telemetry.unwrap();
    assert_eq!(telemetry.service_name, "loomline");
    assert!(!telemetry.capture_content && telemetry.headers.is_empty());
    assert!((telemetry.sample_ratio - 1.0).abs() < f64::EPSILON);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    assert_eq!(
        said("[server]\nlisten = \"127.0.0.1:80\"\nlissen = 1"),
        "line 3, column 1: unknown field `lissen`, expected one of `listen`, `metrics_listen`, `data`, `node`, `max_body_bytes`, \
         `max_file_bytes`, \
         `max_depth`, `run_timeout_s`, `cors_origins`, `public_url`, `tls`"
    );
    for url in [
        "agents.example",
        "ftp://a",
        "https://",
        "http:///a",
        "http://a?b",
    ] {
        let text = format!("[server]\npublic_url = {url:?}");
        assert!(said(&text).starts_with("line 2, column 14: "), "{url}");
    }
    assert_eq!(
        said("[models.m]\nprovider = \"scripted\"\n[agents.a]\nmodel = \"n\""),
        "line 4, column 9: there is no model \"n\", expected one of: m"
    );
    assert_eq!(
        said("[agents.a]\nmodel = \"n\""),
        "line 2, column 9: there is no model \"n\", and there is none at all"
    );
    assert_eq!(
        said(
            "[models.m]\nprovider = \"chat-completions\"\nmodel=\"x\"\nbase_url=\"http://y\"\napi_key_env = \"NONE\""
        ),
        "line 5, column 15: the environment has no NONE, expected a key in it"
    );
    assert!(
        said("[tenants.t]\nkey_hashes = [\"md5:00\"]")
            .starts_with("line 2, column 15: this is no key hash")
    );
    assert!(said("[server]\nmax_depth = 1000").starts_with("line 2, column 13"));
    assert!(said("default_agent = \"x\"").starts_with("line 1, column 17: there is no agent"));
    refused(
        "[tools]\n",
        &[(
            "ledger_effect = \"reconcilable\"",
            17,
            "what became of a call",
        )],
    );
    refused(
        "[telemetry]\nendpoint = \"http://x\"\n",
        &[
            ("sample_ratio = 1.5", 16, "a number from 0 to 1"),
            ("sample_ratio = nan", 16, "a number from 0 to 1"),
            ("service_name = \" \"", 16, "empty"),
            ("headers_env = { x = \"NONE\" }", 21, "has no NONE"),
            (
                "headers_env = { \"a b\" = \"KEY\" }",
                25,
                "no name of a header",
            ),
            ("sampling = 1", 1, "unknown field `sampling`"),
        ],
    );
    assert!(
        said("[telemetry]\nendpoint = \"x:1\"").starts_with("line 2, column 12: this is no HTTP")
    );
}

#[test]
fn a_missing_variable_is_a_finding_and_the_rest_is_checked() {
    let text = "[models.m]\nprovider = \"openai\"\nmodel = \"x\"\napi_key_env = \"NONE\"\n\
                [models.n]\nprovider = \"groq\"\nmodel = \"y\"\n[agents.a]\nmodel = \"m\"\n";
    let checked = checked(text);
    assert_eq!(checked.config.agents.len(), 1);
    let found = checked.findings.iter();
    let found: Vec<_> = found
        .map(|it| (it.severity, it.error.line, it.error.message.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            (
                FindingSeverity::Error,
                4,
                "the environment has no NONE, expected a key in it"
            ),
            (
                FindingSeverity::Warning,
                5,
                "the environment has no GROQ_API_KEY, so every call of this model will fail with AUTHENTICATION_FAILED"
            ),
        ]
    );
    assert!(parse(text).is_err());
    // What is wrong with the rest is an error all the same.
    let worse = format!("{text}tools = [\"x\"]\n");
    assert!(Config::check(&worse, &env).is_err());
}

#[test]
fn a_key_that_stands_in_the_file_twice_is_refused_with_both_places() {
    let hash = |digit: &str| format!("\"sha256:{}\"", digit.repeat(64));
    let (one, two) = (hash("1"), hash("2"));
    let text =
        format!("[tenants.b]\nkey_hashes = [{two}, {one}]\n[tenants.a.keys.desk]\nhash = {one}\n");
    assert_eq!(
        said(&text),
        "line 4, column 8: this is the key of tenants.b.key_hashes[1], too (line 2, column 90), expected each key once"
    );
    let twice = format!("[tenants.a]\nkey_hashes = [{one}, {one}]\n");
    assert!(said(&twice).contains("this is the key of tenants.a.key_hashes[0], too"));
    parse(&text.replacen(&one, &hash("3"), 1)).unwrap();
}

#[test]
fn what_requests_may_reach_is_public_unless_the_file_allows_more() {
    assert_eq!(parse("").unwrap().outbound, OutboundConfig::default());
    let text = "[outbound]\nallow = [\"10.0.0.0/8\", \"hooks.internal:8443\"]\nhttp = true\n";
    let outbound = parse(text).unwrap().outbound;
    assert!(outbound.http && outbound.allow.len() == 2);
    refused(
        "[outbound]\n",
        &[
            (
                "allow = [\"hooks.internal\"]",
                10,
                "expected a network or a port of a host",
            ),
            (
                "allow = [\"10.0.0.0/8\", \"10.0.0.0/99\"]",
                24,
                "this can't be allowed",
            ),
            (
                "http = 1",
                8,
                "this is the number 1, expected true or false",
            ),
            ("https = true", 1, "unknown field"),
        ],
    );
}

#[test]
fn what_has_another_shape_is_told_without_names_of_types() {
    for (text, told) in [
        (
            "server = [\"127.0.0.1:1\"]",
            "line 1, column 10: this is a list, expected a table",
        ),
        (
            "[server]\ntls = \"cert.pem\"",
            "line 2, column 7: this is the text \"cert.pem\", expected a table",
        ),
        (
            "[server]\nlisten = \"localhost\"",
            "line 2, column 10: \"localhost\" is no address, expected an IP address and a port, such as \"127.0.0.1:8787\"",
        ),
        (
            "[limits]\nstreams = 0",
            "line 2, column 11: this is the number 0, expected a whole number, 1 or more",
        ),
        (
            "[server]\ncors_origins = \"*\"",
            "line 2, column 16: this is the text \"*\", expected a list",
        ),
        (
            "[models.m]\nprovider = \"openai\"\nmodel = \"x\"\nretry = 5",
            "line 4, column 9: this is the number 5, expected a table",
        ),
        (
            "[tenants]\nacme = 5",
            "line 2, column 8: this is the number 5, expected a table",
        ),
    ] {
        assert_eq!(said(text), told);
    }
}

#[test]
fn the_web_interface_is_on_unless_the_file_says_otherwise() {
    let web = parse("").unwrap().web;
    assert!(web.is_enabled && web.has_console && !web.starters.is_empty());
    assert_eq!(web.session_lifetime, Duration::from_hours(12));
    let web = parse(
        "[web]\nenabled = false\nconsole = false\nname = \"Looms\"\nsession_hours = 2\n\
         starters = [\"Hello\", { text = \"compute 1+1\", label = \"Compute\", agent = \"careful\" }]",
    );
    let web = web.unwrap().web;
    assert!(!web.is_enabled && !web.has_console);
    assert_eq!(web.session_lifetime, Duration::from_hours(2));
    let starters = web.starters.iter();
    let starters: Vec<_> = starters
        .map(|it| (it.label.as_str(), it.text.as_str(), it.agent.as_str()))
        .collect();
    assert_eq!(
        starters,
        [
            ("Hello", "Hello", "demo"),
            ("Compute", "compute 1+1", "careful")
        ]
    );
    refused(
        "[web]\n",
        &[
            ("colour = \"red\"", 1, "unknown field `colour`"),
            ("name = \" \"", 8, "the name is empty"),
            (
                "session_hours = 0",
                17,
                "expected a whole number, 1 or more",
            ),
            ("session_hours = 9000", 17, "at most 8760 hours"),
            ("starters = [\"\"]", 13, "the text is empty"),
            ("embed_origins = [\"*\"]", 18, "is no origin"),
            ("embed_origins = [\"https://a/b\"]", 18, "is no origin"),
            ("embed_origins = [\"https://a; b\"]", 18, "is no origin"),
            (
                "starters = [{ text = \"x\", agent = \"none\" }]",
                13,
                "there is no agent \"none\"",
            ),
            (
                "starters = [{ text = \"x\", icon = \"y\" }]",
                13,
                "unknown field `icon`",
            ),
        ],
    );
}

#[test]
fn a_tenant_has_a_name() {
    assert_eq!(
        said("[tenants.\"\"]"),
        "line 1, column 10: the name of the tenant is empty, expected one"
    );
}

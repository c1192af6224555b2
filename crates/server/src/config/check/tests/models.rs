use super::{env, parse, refused, said};
use crate::config::{Config, ModelConfig, ProviderKind, RemoteModel};
use secrecy::ExposeSecret;
use std::time::Duration;
use upp::RetryConfig;

fn remote(text: &str) -> RemoteModel {
    let config = parse(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    match config.models.into_values().find(is_remote) {
        Some(ModelConfig::Remote(model)) => *model,
        _ => panic!("{text}"),
    }
}

fn is_remote(model: &ModelConfig) -> bool {
    matches!(model, ModelConfig::Remote(_))
}

#[test]
fn every_setting_of_a_model_is_read() {
    let model = remote(
        r#"
        [models.m]
        provider = "anthropic"
        model = "claude"
        base_url = "http://localhost:1/v1"
        api_key_envs = ["KEY", "KEY2"]
        headers = { x-team = "looms" }
        headers_env = { x-other = "KEY" }
        params = { temperature = 0.1, thinking = { type = "enabled" } }
        betas = ["b1", "b2"]
        default_max_tokens = 1000
        connect_timeout_s = 1
        headers_timeout_s = 2
        idle_timeout_s = 3
        retry = { strategy = "exponential-backoff", max_attempts = 5, initial_delay_ms = 10, max_delay_ms = 20, jitter = false }
        retry_after_max_s = 60
        capabilities = { image_input = false, audio_input = true }
        "#,
    );
    assert_eq!(model.provider, ProviderKind::Anthropic);
    assert_eq!(model.model, "claude");
    assert_eq!(model.base_url.as_deref(), Some("http://localhost:1/v1"));
    let keys: Vec<_> = model.keys.iter().map(ExposeSecret::expose_secret).collect();
    assert_eq!(keys, ["secret", "secret2"]);
    assert_eq!(model.key_envs, ["KEY", "KEY2"]);
    let headers = model.headers.iter();
    let headers: Vec<_> = headers
        .map(|(name, value)| (name.as_str(), value.expose_secret()))
        .collect();
    assert_eq!(headers, [("x-other", "secret"), ("x-team", "looms")]);
    assert_eq!(model.params["thinking"]["type"], "enabled");
    assert_eq!(model.betas, ["b1", "b2"]);
    assert_eq!(model.default_max_tokens, Some(1000));
    let seconds = [
        model.timeouts.connect,
        model.timeouts.headers,
        model.timeouts.idle,
    ];
    assert_eq!(seconds.map(|it| it.as_secs()), [1, 2, 3]);
    assert_eq!(
        model.retry,
        Some(RetryConfig::ExponentialBackoff {
            max_attempts: 5,
            initial_delay: 10,
            max_delay: 20,
            jitter: false
        })
    );
    assert_eq!(model.retry_after_max, Some(Duration::from_mins(1)));
    let usual = upp::Capabilities {
        image_input: true,
        tools: true,
        ..upp::Capabilities::default()
    };
    let can = model.capabilities.over(usual);
    assert!(!can.image_input && can.audio_input && can.tools && !can.streaming);
}

#[test]
fn a_retry_strategy_is_a_name_or_a_table() {
    let retry = |text: &str| {
        let text = format!("[models.m]\nprovider = \"ollama\"\nmodel = \"x\"\nretry = {text}\n");
        remote(&text).retry
    };
    assert_eq!(retry("\"none\""), None);
    assert_eq!(retry("{ strategy = \"none\" }"), None);
    assert_eq!(
        retry("\"linear-backoff\""),
        Some(RetryConfig::LinearBackoff {
            max_attempts: 3,
            delay: 1_000
        })
    );
    assert_eq!(
        retry("{ strategy = \"linear-backoff\", delay_ms = 7 }"),
        Some(RetryConfig::LinearBackoff {
            max_attempts: 3,
            delay: 7
        })
    );
    assert_eq!(
        retry("{ strategy = \"token-bucket\", capacity = 2, refill_rate = 0.5 }"),
        Some(RetryConfig::TokenBucket {
            capacity: 2,
            refill_rate: 0.5,
            max_attempts: 3
        })
    );
    assert_eq!(
        retry("{ strategy = \"retry-after\", fallback_delay_ms = 1 }"),
        Some(RetryConfig::RetryAfter {
            max_attempts: 3,
            fallback_delay: 1
        })
    );
}

#[test]
fn a_key_is_looked_for_where_its_provider_usually_has_it() {
    let keys = |provider: &str, set: &'static str| {
        let text = format!(
            "[models.m]\nprovider = \"{provider}\"\nmodel = \"x\"\nbase_url = \"http://x\"\n"
        );
        let config = Config::parse(&text, &|name| (name == set).then(|| "k".to_owned())).unwrap();
        match config.models.into_values().find(is_remote) {
            Some(ModelConfig::Remote(model)) => model.keys.len(),
            _ => panic!("{provider}"),
        }
    };
    for kind in ProviderKind::ALL {
        assert_eq!(keys(kind.as_str(), "OTHER"), 0, "{kind:?}");
        for name in kind.key_envs() {
            assert_eq!(keys(kind.as_str(), name), 1, "{kind:?}");
        }
    }
    assert_eq!(keys("moonshot", "KIMI_API_KEY"), 1);
    assert_eq!(keys("chat-completions", "OPENAI_API_KEY"), 0);
}

#[test]
fn what_is_wrong_with_a_model_is_said_with_its_place() {
    assert!(
        said("[models.m]\nprovider = \"opnai\"\nmodel = \"x\"")
            .starts_with("line 2, column 12: there is no provider \"opnai\", expected one of: scripted, chat-completions, openai,")
    );
    assert_eq!(
        said("[models.m]\nprovider = \"openai\""),
        "line 1, column 1: the model \"m\" needs a model, expected for provider \"openai\""
    );
    for provider in ["chat-completions", "open-responses"] {
        let text = format!("[models.m]\nprovider = \"{provider}\"\nmodel = \"x\"");
        assert!(said(&text).contains("needs a base_url"));
    }
    refused(
        "[models.m]\nprovider = \"openai\"\nmodel = \"x\"\n",
        &[
            ("modle = 1", 1, "unknown field `modle`"),
            ("base_url = \"localhost:1\"", 12, "no HTTP address"),
            ("base_url = \"ftp://x\"", 12, "no HTTP address"),
            ("api_key_env = \"NONE\"", 15, "has no NONE"),
            ("api_key_env = \"EMPTY\"", 15, "has no EMPTY"),
            ("api_key_envs = []", 16, "the list is empty"),
            ("api_key_envs = [\"KEY\", \"NONE\"]", 24, "has no NONE"),
            ("headers = { \"a b\" = \"1\" }", 21, "no name of a header"),
            ("headers = { a = \"1\\n2\" }", 17, "the value of a header"),
            ("headers_env = { a = \"NONE\" }", 21, "has no NONE"),
            ("betas = [\"b\"]", 9, "only the providers \"anthropic\""),
            (
                "default_max_tokens = 5",
                22,
                "only the providers \"anthropic\"",
            ),
            ("connect_timeout_s = 0", 21, "expected a whole number"),
            ("retry = \"hope\"", 9, "unknown variant `hope`"),
            (
                "retry = { strategy = \"none\", max_attempts = 1 }",
                9,
                "unknown field `max_attempts`",
            ),
            (
                "retry = { max_attempts = 1 }",
                9,
                "missing field `strategy`",
            ),
            (
                "retry = { strategy = \"token-bucket\", capacity = 0 }",
                9,
                "capacity is 0",
            ),
            (
                "retry = { strategy = \"token-bucket\", refill_rate = 0.0 }",
                9,
                "refill_rate is 0",
            ),
            (
                "capabilities = { telepathy = true }",
                18,
                "unknown field `telepathy`",
            ),
            ("delay_ms = 1", 12, "only the scripted model"),
            ("script = \"s\"", 10, "only the scripted model"),
        ],
    );
    refused(
        "[models.m]\nprovider = \"openai\"\nmodel = \"x\"\napi_key_envs = [\"KEY\"]\n",
        &[(
            "api_key_env = \"KEY\"",
            15,
            "both api_key_env and api_key_envs",
        )],
    );
    refused(
        "[models.m]\nprovider = \"openai\"\nmodel = \"x\"\nheaders = { a = \"1\" }\n",
        &[("headers_env = { a = \"KEY\" }", 21, "is in headers, too")],
    );
    refused(
        "[models.m]\nprovider = \"scripted\"\n",
        &[
            ("base_url = \"http://x\"", 12, "no address and no key"),
            ("api_key_env = \"KEY\"", 15, "no address and no key"),
            ("api_key_envs = [\"KEY\"]", 16, "no address and no key"),
            ("headers = { a = \"1\" }", 17, "no address and no key"),
            ("retry = \"none\"", 9, "sends no requests"),
            ("idle_timeout_s = 1", 18, "sends no requests"),
        ],
    );
}

#[test]
fn no_secret_is_shown() {
    let text = "[models.m]\nprovider = \"openai\"\nmodel = \"x\"\napi_key_env = \"KEY\"\nheaders_env = { a = \"KEY\" }";
    let config = Config::parse(text, &env).unwrap();
    assert!(!format!("{config:?}").contains("secret\""), "{config:?}");
    // An address may hold a key, so it is not quoted either.
    assert!(
        !said("[models.m]\nprovider = \"openai\"\nmodel = \"x\"\nbase_url = \"x?key=hidden\"")
            .contains("hidden")
    );
}

#[test]
fn a_model_that_requires_a_limit_of_tokens_warns_without_one() {
    let file = |model: &str, agent: &str| {
        let text = format!(
            "[models.m]\nprovider = \"anthropic\"\nmodel = \"x\"\n{model}\n[agents.a]\nmodel = \"m\"\n{agent}\n"
        );
        let checked = Config::check(&text, &|_| Some("key".to_owned())).unwrap();
        let findings = checked.findings.iter();
        findings
            .filter(|it| it.error.message.contains("requires a limit of tokens"))
            .count()
    };
    assert_eq!(file("", ""), 1);
    assert_eq!(file("default_max_tokens = 10", ""), 0);
    assert_eq!(file("params = { max_tokens = 10 }", ""), 0);
    assert_eq!(file("", "params = { max_tokens = 10 }"), 0);
}

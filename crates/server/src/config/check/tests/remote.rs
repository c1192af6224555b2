use super::{parse, refused, said};
use crate::config::RemoteProtocol;
use std::time::Duration;

#[test]
fn every_setting_of_an_agent_elsewhere_is_read() {
    let config = parse(
        r#"
        [agents.far]
        description = "Far."
        params = { temperature = 0.5 }
        [agents.far.remote]
        protocol = "responses"
        url = "https://a.example.org/v1/"
        agent = "orders"
        key_env = "KEY"
        headers = { x-a = "1" }
        headers_env = { x-b = "KEY2" }
        repeatable = false
        background = false
        headers_timeout_s = 5
        idle_timeout_s = 6
        max_bytes = 700
        "#,
    )
    .unwrap();
    let agent = &config.agents["far"];
    assert_eq!(agent.description.as_deref(), Some("Far."));
    assert_eq!(agent.params["temperature"], 0.5);
    let remote = agent.remote.as_ref().unwrap();
    assert_eq!(remote.protocol, RemoteProtocol::Responses);
    assert_eq!(remote.url, "https://a.example.org/v1");
    assert_eq!(remote.agent.as_deref(), Some("orders"));
    assert!(remote.key.is_some());
    assert_eq!(remote.headers.len(), 2);
    assert!(!remote.repeatable && !remote.background);
    let limits = (
        remote.headers_timeout,
        remote.idle_timeout,
        remote.max_bytes,
    );
    assert_eq!(
        limits,
        (Duration::from_secs(5), Duration::from_secs(6), 700)
    );
    // It may be the only agent, and so the default one.
    assert_eq!(config.default_agent, "far");
    assert!(!format!("{config:?}").contains("secret"));
}

#[test]
fn what_is_wrong_with_an_agent_elsewhere_is_said_with_its_place() {
    let remote = |text: &str| format!("remote = {{ {text} }}");
    let a2a = "protocol = \"a2a\", url = \"https://a.b/a2a\"";
    let threads = "protocol = \"threads\", url = \"https://a.b/v1\"";
    let of_a2a = |text: &str| remote(&format!("{a2a}, {text}"));
    let http = remote("protocol = \"a2a\", url = \"http://a.b\"");
    let lines = [
        (
            remote("protocol = \"a2a\", url = \"a.b\""),
            "no HTTP address",
        ),
        (
            remote("protocol = \"a2a\", url = \"https://me:pw@a.b\""),
            "no user",
        ),
        (
            remote("protocol = \"a2a\", url = \"https://a.b/?key=1\""),
            "no query",
        ),
        (
            remote("protocol = \"soap\", url = \"https://a.b\""),
            "unknown variant",
        ),
        (http, "http = true"),
        (of_a2a("agent = \"x\""), "an address of its own"),
        (of_a2a("background = true"), "in the background"),
        (remote(threads), "expected its id as agent"),
        (of_a2a("key_env = \"NONE\""), "the environment has no NONE"),
        (
            of_a2a("key_env = \"KEY\", headers = { Authorization = \"x\" }"),
            "set by the client",
        ),
        (
            of_a2a("headers = { A2A-Version = \"x\" }"),
            "set by the client",
        ),
        (of_a2a("headers = { Accept = \"x\" }"), "set by the client"),
    ];
    for (line, words) in lines {
        let error = said(&format!("[agents.far]\n{line}\n"));
        assert!(
            error.starts_with("line 2") && error.contains(words),
            "{line}: {error}"
        );
    }
    let of = format!("[agents.far]\nremote = {{ {a2a} }}\n");
    let own = "an agent elsewhere has its own";
    refused(
        &of,
        &[
            ("model = \"m\"", 9, own),
            ("system = \"s\"", 10, own),
            ("tools = [\"compute\"]", 10, own),
            ("handoffs = [\"far\"]", 13, own),
            ("strategy = \"react\"", 12, own),
            ("structure = { type = \"object\" }", 13, own),
        ],
    );
    assert!(
        said("[agents.near]\ndescription = \"x\"\n")
            .contains("needs a model or a worker, or is remote")
    );
}

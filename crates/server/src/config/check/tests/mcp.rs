use super::{parse, refused, said};
use agents::mcp::{McpLifecycle, McpTransport};
use secrecy::ExposeSecret;
use std::path::Path;
use std::time::Duration;
use upp::Effect;

#[test]
fn every_setting_of_an_mcp_server_is_read() {
    let config = parse(
        r#"
        [mcp.files]
        command = "files"
        args = ["-v"]
        env = { A = "1" }
        env_from = { B = "KEY" }
        cwd = "/srv"
        prefix = "f_"
        allow = ["read", "write"]
        deny = ["wipe"]
        effects = { read = "pure" }
        default_effect = "idempotent"
        trust_annotations = true
        lifecycle = "initialize"
        connect_timeout_s = 1
        call_timeout_s = 2
        max_tools = 3
        [mcp.site]
        url = "https://mcp.example/mcp"
        headers = { x-a = "1" }
        headers_env = { x-b = "KEY" }
        bearer_env = "KEY2"
        "#,
    )
    .unwrap();
    let files = &config.mcp["files"];
    let McpTransport::Stdio(stdio) = &files.transport else {
        panic!("{files:?}")
    };
    assert_eq!(
        (stdio.command.as_str(), stdio.args.as_slice()),
        ("files", &["-v".to_owned()][..])
    );
    let env = stdio.env.iter();
    let env: Vec<_> = env
        .map(|(name, value)| (name.as_str(), value.expose_secret()))
        .collect();
    assert_eq!(env, [("A", "1"), ("B", "secret")]);
    assert_eq!(stdio.cwd.as_deref(), Some(Path::new("/srv")));
    assert_eq!(files.prefix, "f_");
    assert_eq!(files.allow.as_ref().unwrap().len(), 2);
    assert!(files.deny.contains("wipe") && files.trust_annotations);
    assert_eq!(files.effects["read"], Effect::Pure);
    assert_eq!(files.default_effect, Effect::Idempotent);
    assert_eq!(files.lifecycle, McpLifecycle::Initialize);
    assert_eq!(files.limits.connect, Duration::from_secs(1));
    assert_eq!(files.limits.call, Duration::from_secs(2));
    assert_eq!(files.limits.max_tools, 3);
    let site = &config.mcp["site"];
    let McpTransport::Http(http) = &site.transport else {
        panic!("{site:?}")
    };
    assert_eq!(http.url, "https://mcp.example/mcp");
    assert_eq!(http.headers["x-b"].expose_secret(), "secret");
    assert_eq!(http.bearer.as_ref().unwrap().expose_secret(), "secret2");
    assert_eq!(site.lifecycle, McpLifecycle::Auto);
    assert_eq!(site.default_effect, Effect::Effect);
}

#[test]
fn what_is_wrong_with_an_mcp_server_is_said_with_its_place() {
    assert!(
        said("[mcp.x]\nprefix = \"p\"")
            .starts_with("line 1, column 1: the server \"x\" needs a command or a url")
    );
    assert!(said("[mcp.\"../x\"]\ncommand = \"p\"").contains("no name of a server"));
    assert!(said("[mcp.x]\nurl = \"nonsense\"").starts_with("line 2, column 7: this is no HTTP"));
    assert!(
        said("[mcp.x]\ncommand = \" \"").starts_with("line 2, column 11: the command is empty")
    );
    refused(
        "[mcp.x]\nurl = \"http://x/mcp\"\n",
        &[
            ("command = \"c\"", 11, "both a command and a url"),
            ("args = [\"c\"]", 8, "only a server with a command"),
            ("cwd = \"c\"", 7, "only a server with a command"),
            (
                "env_from = { A = \"KEY\" }",
                12,
                "only a server with a command",
            ),
            ("bearer_env = \"NONE\"", 14, "has no NONE, expected a token"),
            (
                "headers = { mcp-session-id = \"1\" }",
                30,
                "set by the client",
            ),
            ("headers = { Accept = \"1\" }", 22, "set by the client"),
            ("headers = { \"a b\" = \"1\" }", 21, "no name of a header"),
        ],
    );
    refused(
        "[mcp.x]\ncommand = \"c\"\n",
        &[
            ("comand = \"c\"", 1, "unknown field `comand`"),
            ("headers = { a = \"1\" }", 11, "only a server with a url"),
            ("bearer_env = \"KEY\"", 14, "only a server with a url"),
            ("env_from = { A = \"NONE\" }", 18, "has no NONE"),
            ("prefix = \"a b\"", 10, "this is no prefix"),
            (
                "effects = { a = \"reconcilable\" }",
                17,
                "what became of a call",
            ),
            (
                "effects = { a = \"harmless\" }",
                17,
                "unknown variant `harmless`",
            ),
            (
                "default_effect = \"reconcilable\"",
                18,
                "what became of a call",
            ),
            ("lifecycle = \"never\"", 13, "unknown variant `never`"),
            ("connect_timeout_s = 0", 21, "expected a whole number"),
            ("max_tools = 0", 13, "expected a whole number"),
        ],
    );
    refused(
        "[mcp.x]\ncommand = \"c\"\nenv = { A = \"1\" }\n",
        &[("env_from = { A = \"KEY\" }", 18, "is in env, too")],
    );
}

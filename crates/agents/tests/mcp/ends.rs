//! Servers that go away, and clients that do.

use crate::support::{call, connected, failed, said, stdio, tool};
use loomline_agents::mcp::{McpClient, McpError, McpLifecycle, McpTransport};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use upp::Effect;

/// Whether there is such a process; one that ended and was not reaped counts.
fn exists(pid: &str) -> bool {
    let mut command = std::process::Command::new("kill");
    command
        .args(["-0", pid])
        .stderr(std::process::Stdio::null());
    command.status().unwrap().success()
}

async fn gone(pid: &str) {
    while exists(pid) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_leaves_its_outcome_unknown_and_is_started_again() {
    let client = connected(stdio("toys")).await;
    let first = said(&client, "pid").await;
    let (died, other) = tokio::join!(
        failed(&client, "die", json!({})),
        failed(&client, "steps", json!({}))
    );
    for failure in [died, other] {
        assert_eq!(
            failure,
            "The MCP server 'toys' went away during this call; its outcome is unknown (its process \
             ended, exit status: 3)."
        );
    }
    let changes = *client.changes().borrow();
    assert_ne!(said(&client, "pid").await, first);
    assert_eq!(*client.changes().borrow(), changes + 1);
}

#[tokio::test]
async fn only_a_call_that_may_run_again_is_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let marker = |name: &str| json!({"marker": folder.path().join(name)});
    for effect in [Effect::Pure, Effect::Idempotent] {
        let mut server = stdio("toys");
        server.default_effect = effect;
        let client = connected(server).await;
        let answer = call(&client, "die_once", marker(&format!("{effect:?}"))).await;
        assert_eq!(answer.unwrap(), json!("alive again"));
        let failure = failed(&client, "die", json!({})).await;
        assert!(failure.contains("outcome is unknown"), "{failure}");
    }
    let client = connected(stdio("toys")).await;
    let failure = failed(&client, "die_once", marker("effect")).await;
    assert!(failure.contains("outcome is unknown"), "{failure}");
    let answer = call(&client, "die_once", marker("effect")).await;
    assert_eq!(answer.unwrap(), json!("alive again"));
}

#[tokio::test]
async fn a_server_that_can_not_be_started_is_named_with_the_cause() {
    let mut server = stdio("toys");
    if let McpTransport::Stdio(stdio) = &mut server.transport {
        stdio.command = "/nowhere/at-all".to_owned();
    }
    let error = McpClient::connect(server, CancellationToken::new()).await;
    let text = error.unwrap_err().to_string();
    assert!(
        text.starts_with("the MCP server 'toys' can't be used: it can't be started: No such file"),
        "{text}"
    );
    let error = McpClient::connect(stdio("broken"), CancellationToken::new()).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "the MCP server 'toys' can't be used: its process ended, exit status: 7"
    );
}

#[tokio::test]
async fn calls_fail_at_once_until_the_wait_after_a_vain_attempt_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("server");
    let link = || std::os::unix::fs::symlink(crate::support::program(), &program).unwrap();
    link();
    let mut server = stdio("toys");
    if let McpTransport::Stdio(stdio) = &mut server.transport {
        stdio.command = program.to_str().unwrap().to_owned();
    }
    server.limits.first_backoff = Duration::from_hours(1);
    let client = connected(server).await;
    std::fs::remove_file(&program).unwrap();
    failed(&client, "die", json!({})).await;
    let vain = failed(&client, "pid", json!({})).await;
    assert!(vain.contains("can't be started"), "{vain}");
    link();
    assert_eq!(failed(&client, "pid", json!({})).await, vain);
    tokio::time::pause();
    tokio::time::advance(Duration::from_hours(2)).await;
    tokio::time::resume();
    assert!(!said(&client, "pid").await.is_empty());
}

#[tokio::test]
async fn the_process_ends_with_the_last_of_client_and_tools() {
    let client = connected(stdio("toys")).await;
    let pid = said(&client, "pid").await;
    let echo = tool(&client, "echo");
    drop(client);
    assert!(exists(&pid), "a tool still needs it");
    drop(echo);
    gone(&pid).await;
}

#[tokio::test]
async fn closing_waits_for_the_process_and_ends_the_client() {
    let client = connected(stdio("toys")).await;
    let pid = said(&client, "pid").await;
    let closing = async {
        said(&client, "echo").await;
        client.close().await;
    };
    let (failure, ()) = tokio::join!(failed(&client, "slow", json!({})), closing);
    assert!(failure.contains("outcome is unknown"), "{failure}");
    assert!(!exists(&pid));
    let later = failed(&client, "echo", json!({"text": "a"})).await;
    assert_eq!(
        later,
        "The tool 'echo' was not run: the client of the MCP server 'toys' was closed."
    );
}

#[tokio::test]
async fn a_process_that_will_not_end_is_killed_with_its_children() {
    let mut server = stdio("toys");
    if let McpTransport::Stdio(stdio) = &mut server.transport {
        let script = "trap '' TERM; \"$0\" toys; while :; do sleep 1; done";
        stdio.command = "sh".to_owned();
        stdio.args = ["-c", script, &crate::support::program()]
            .map(String::from)
            .into();
    }
    let client = connected(server).await;
    let pid = said(&client, "pid").await;
    // Nobody waits in earnest: each grace is over as soon as nothing else is to do.
    tokio::time::pause();
    client.close().await;
    tokio::time::resume();
    gone(&pid).await;
}

#[tokio::test]
async fn what_a_process_started_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let mut server = stdio("toys");
    server.lifecycle = McpLifecycle::Initialize;
    if let McpTransport::Stdio(stdio) = &mut server.transport {
        let script = "sleep 3600 & echo $! > \"$1\"; exec \"$0\" toys";
        let program = crate::support::program();
        stdio.command = "sh".to_owned();
        stdio.args = ["-c", script, &program, file.to_str().unwrap()]
            .map(String::from)
            .into();
    }
    let client = connected(server).await;
    let left = std::fs::read_to_string(file).unwrap();
    assert!(exists(left.trim()));
    client.close().await;
    gone(left.trim()).await;
}

#[tokio::test]
async fn what_a_process_says_on_standard_error_is_logged() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_writer(log.clone())
        .with_ansi(false)
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    let error = McpClient::connect(stdio("broken"), CancellationToken::new()).await;
    assert!(matches!(error.unwrap_err(), McpError::Connect { .. }));
    drop(guard);
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for what in [
        "an MCP server's standard error server=toys line=\"no module named toys\"",
        "an MCP server did not start server=toys stderr=\"no module named toys\"",
    ] {
        assert!(log.contains(what), "{log}");
    }
}

/// What is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl tracing_subscriber::fmt::MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn cancelling_the_signal_ends_the_client() {
    let signal = CancellationToken::new();
    let client = McpClient::connect(stdio("toys"), signal.clone())
        .await
        .unwrap();
    let pid = said(&client, "pid").await;
    signal.cancel();
    gone(&pid).await;
    let later = failed(&client, "pid", json!({})).await;
    assert!(later.contains("was closed"), "{later}");
    let error = McpClient::connect(stdio("silent"), signal).await;
    let closed = McpError::Closed {
        server: "toys".into(),
    };
    assert_eq!(error.unwrap_err(), closed);
}

#[tokio::test]
async fn a_child_sees_only_what_it_is_given_of_the_environment() {
    let hidden = "CARGO_MANIFEST_DIR";
    assert!(std::env::vars_os().any(|(name, _)| name == hidden));
    let mut server = stdio("toys");
    if let McpTransport::Stdio(stdio) = &mut server.transport {
        let key = secrecy::SecretString::from("k");
        stdio.env.insert("TOYS_KEY".to_owned(), key);
    }
    let shown = format!("{server:?}");
    let client = connected(server).await;
    let names = call(&client, "environment", json!({})).await.unwrap();
    let allowed = [
        "HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER", "TOYS_KEY",
    ];
    let names = names["names"].as_array().unwrap();
    assert!(names.contains(&json!("TOYS_KEY")));
    for name in names {
        assert!(allowed.contains(&name.as_str().unwrap()), "{name}");
    }
    assert!(shown.contains("REDACTED"), "{shown}");
}

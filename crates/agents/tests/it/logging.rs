//! The logging middleware (UAP §9.3).

use crate::strategies::{approve_all, gate};
use crate::support::*;
use loomline_agents::middleware::{LogLevel, LoggingOptions, logging};
use loomline_agents::{AgentOptions, AgentState};
use serde_json::json;
use std::sync::Arc;
use upp::ScriptTurn;

fn logged(mut options: AgentOptions, change: impl Fn(&mut LoggingOptions)) -> (AgentOptions, Log) {
    let log = Log::default();
    let lines = log.clone();
    let mut logging_options = LoggingOptions {
        logger: Some(Arc::new(move |level, line: &str| {
            lines.add(format!("{level:?} {line}"));
        })),
        ..LoggingOptions::default()
    };
    change(&mut logging_options);
    options.id = Some("agent-1".into());
    options.middleware = vec![Arc::new(logging(logging_options))];
    (options, log)
}

fn failing() -> AgentOptions {
    let turn = ScriptTurn {
        error: serde_json::from_value(json!({"message": "the key sk-secret is wrong"})).unwrap(),
        ..ScriptTurn::default()
    };
    scripted(vec![turn])
}

/// The line with every number of milliseconds replaced.
fn untimed(line: &str) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    for at in 1..words.len() {
        if words[at].starts_with("ms") && words[at - 1].parse::<u64>().is_ok() {
            words[at - 1] = "N";
        }
    }
    words.join(" ")
}

#[test]
fn the_defaults_are_those_of_section_9_3() {
    let options = LoggingOptions::default();
    assert_eq!(options.level, LogLevel::Info);
    assert!(options.logger.is_none() && !options.include_messages && options.include_timing);
    assert_eq!(
        loomline_agents::Middleware::name(&logging(options)),
        "logging"
    );
}

#[tokio::test]
async fn a_run_is_logged_when_it_begins_and_when_it_ends() {
    let (options, log) = logged(adding(), |_| {});
    let state = AgentState::initial()
        .with_message("before")
        .with_message(said("yes"))
        .with_step(1);
    let result = agent(options).ask("the input", state).await.unwrap();
    let total = result.turn.usage.total_tokens;
    let lines: Vec<String> = log.lines().iter().map(|line| untimed(line)).collect();
    assert_eq!(
        lines,
        [
            "Info run started: agent=agent-1 step=1 messages=2".to_owned(),
            format!(
                "Info run completed after N ms: agent=agent-1 cycles=4 tool_calls=3 tokens={total}"
            ),
        ]
    );
    assert!(
        result.state.metadata().is_empty(),
        "nothing is left in the state"
    );
}

#[tokio::test]
async fn a_run_that_waits_is_not_logged_as_completed() {
    let mut waiting = options(Canned::calls(vec![call("1", "gate", &[])]));
    waiting.tools = vec![gate()];
    let (options, log) = logged(waiting, |options| options.include_timing = false);
    let agent = agent(options);
    let waiting = agent.generate("go", AgentState::initial()).await.unwrap();
    agent
        .resume(approve_all(&waiting), waiting.state)
        .await
        .unwrap();
    let lines = log.lines();
    assert!(lines[1].starts_with("Info run waits: agent=agent-1 cycles=1"));
    assert!(lines[3].starts_with("Info run completed: agent=agent-1 cycles=1"));
}

#[tokio::test]
async fn timing_can_be_left_out() {
    let (options, log) = logged(adding(), |options| options.include_timing = false);
    generate(options).await;
    assert!(log.lines()[1].starts_with("Info run completed: agent=agent-1 "));
}

#[tokio::test]
async fn what_was_said_is_logged_only_when_asked_for() {
    let (options, log) = logged(adding(), |_| {});
    agent(options).query("my secret").await.unwrap();
    let all = log.lines().concat();
    assert!(!all.contains("my secret") && !all.contains("done"));

    let (options, log) = logged(adding(), |options| options.include_messages = true);
    agent(options).query("my secret").await.unwrap();
    let lines = log.lines();
    assert_eq!(lines.len(), 4);
    assert!(lines[1].starts_with("Info input: {") && lines[1].contains("my secret"));
    assert!(lines[3].starts_with("Info response: {") && lines[3].contains("done"));
}

#[tokio::test]
async fn a_failure_is_an_error_without_what_the_provider_said() {
    let (options, log) = logged(failing(), |_| {});
    agent(options).query("go").await.unwrap_err();
    let lines = log.lines();
    assert_eq!(lines.len(), 2);
    assert!(
        untimed(&lines[1])
            .starts_with("Error run failed after N ms: agent=agent-1: the model call failed ("),
        "{}",
        lines[1]
    );
    assert!(!lines.concat().contains("sk-secret"));

    let (options, log) = logged(failing(), |options| options.include_messages = true);
    agent(options).query("go").await.unwrap_err();
    assert!(
        log.lines().concat().contains("sk-secret"),
        "the causes, when asked for"
    );
}

#[tokio::test]
async fn an_aborted_run_is_a_warning() {
    let (options, log) = logged(options(Canned::new(|_| None)), |_| {});
    let mut stream = agent(options).stream("go", AgentState::initial());
    futures_util::StreamExt::next(&mut stream).await.unwrap();
    stream.abort();
    stream.result().await.unwrap_err();
    let last = log.lines().pop().unwrap();
    assert!(
        last.starts_with("Warn run failed") && last.contains("the run was cancelled"),
        "{last}"
    );
}

#[tokio::test]
async fn lines_below_the_level_are_not_logged() {
    for (level, n_lines) in [
        (LogLevel::Debug, 2),
        (LogLevel::Info, 2),
        (LogLevel::Warn, 1),
        (LogLevel::Error, 1),
    ] {
        let (options, log) = logged(failing(), |options| options.level = level);
        agent(options).query("go").await.unwrap_err();
        assert_eq!(log.lines().len(), n_lines, "{level:?}");
    }
}

#[tokio::test]
async fn a_run_is_the_same_with_and_without_logging() {
    let (options, _) = logged(adding(), |_| {});
    let (logged, plain) = (generate(options).await, generate(adding()).await);
    assert_eq!(content(&logged.turn), content(&plain.turn));
    assert_eq!(content(&logged.state), content(&plain.state));
}

#[tokio::test]
async fn lines_go_to_tracing_unless_a_logger_is_given() {
    let (log, _guard) = traced();
    let (options, _) = logged(failing(), |options| options.logger = None);
    agent(options).query("go").await.unwrap_err();
    let lines = log.lines();
    assert!(
        lines[0].starts_with("INFO")
            && lines[0].contains("loomline_agents")
            && lines[0].contains("run started")
    );
    assert!(
        lines[1].starts_with("ERROR")
            && lines[1].contains("loomline_agents")
            && lines[1].contains("run failed")
    );
}

//! `tail --check`: events are checked as they are read (EK-10).

use crate::support::cli::Home;
use server::{App, Config, OpenMode};
use store::{Append, NewRecord, Ownership};
use timeline::{Event, Record};

const ALL: [&str; 4] = ["tail", "k", "--no-follow", "--check"];

/// A thread with a plain run, one with a tool, and one whose model failed.
fn written(home: &Home) {
    for text in ["hello", "compute 2+3*4", "fail"] {
        home.run(&["run", text, "--thread", "k"]);
    }
}

/// Appends a copy of an event that its log has, whatever the state of its thread is.
fn append_again(home: &Home, is_it: impl Fn(&Event) -> bool) -> u64 {
    let log = home.log("k");
    let again = log.iter().map(|record: &Record| &record.event);
    let again = again.filter(|event| is_it(event)).last().unwrap().clone();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let config = Config::parse("", &|_| None).unwrap();
        let app = App::open(config, &home.data(), OpenMode::ReadWrite)
            .await
            .unwrap();
        let tenant = server::auth::DEV_TENANT.into();
        let thread = app
            .default_store()
            .find(&tenant, "k")
            .await
            .unwrap()
            .thread
            .id;
        let head = app.default_store().head(&thread).await.unwrap();
        let append = Append {
            thread,
            epoch: head.epoch,
            tail: head.tail,
            records: vec![NewRecord::new(jiff::Timestamp::UNIX_EPOCH, again).unwrap()],
            token: None,
            is_limited: true,
            ownership: Ownership::Keep,
            unmoved: Vec::new(),
        };
        app.default_store().append(append).await.unwrap().tail.0
    })
}

fn is_chunk(event: &Event) -> bool {
    matches!(event, Event::ChunkEmitted { chunk_type, .. } if chunk_type == "text-delta")
}

#[test]
fn a_correct_log_passes_the_check_alone_and_beside_a_server() {
    let home = Home::new();
    written(&home);
    let n_events = home.log("k").len();
    let alone = home.run(&ALL);
    assert_eq!(alone.code, 0, "{alone:?}");
    assert_eq!(alone.out.lines().count(), n_events);
    let expected = format!("all {n_events} events are correct");
    assert!(alone.err.contains(&expected), "{alone:?}");
    let rest = home.run(&["tail", "k", "--no-follow", "--check", "--after", "5"]);
    assert_eq!((rest.code, rest.out.lines().count()), (0, n_events - 5));
    assert!(rest.err.contains(&expected), "{rest:?}");
    let _server = home.server();
    assert_eq!(home.run(&ALL), alone);
}

#[test]
fn a_check_stops_at_the_first_wrong_event_alone_and_beside_a_server() {
    let home = Home::new();
    written(&home);
    let n_events = home.log("k").len();
    let wrong = append_again(&home, is_chunk);
    let alone = home.run(&ALL);
    assert_eq!(
        (alone.code, alone.out.lines().count()),
        (1, n_events),
        "{alone:?}"
    );
    let expected = format!("event {wrong}: ");
    assert!(
        alone.err.contains(&expected) && alone.err.contains("is not running"),
        "{alone:?}"
    );
    let _server = home.server();
    assert_eq!(home.run(&ALL), alone);
    // Without the check the event is printed.
    assert_eq!(home.log("k").len(), n_events + 1);
}

#[test]
fn a_thread_at_work_is_checked_while_it_is_followed() {
    let mut home = Home::new();
    home.ok(&["run", "hello", "--thread", "k"]);
    let _server = home.server_of_its_own();
    let n_events = home.log("k").len();
    let mut tail = home.spawn(&["tail", "k", "--check"]);
    for _ in 0..n_events {
        assert!(!tail.line().is_empty());
    }
    home.ok(&[
        "run",
        "slow 5ms compute 1+1 then say 30 words",
        "--thread",
        "k",
    ]);
    loop {
        let line = tail.line();
        assert!(!line.is_empty(), "the command has ended");
        if line.contains("thread.finished") {
            break;
        }
    }
    assert_eq!(home.run(&ALL).code, 0);
    // A reader that leaves is no error; one that was wrong would have ended the command before.
    let ended = tail.close();
    assert_eq!(ended.code, 0, "{ended:?}");
}

#[test]
fn a_wrong_event_ends_a_check_that_follows_the_store() {
    let home = Home::new();
    written(&home);
    let n_events = home.log("k").len();
    let mut tail = home.spawn(&["tail", "k", "--check"]);
    for _ in 0..n_events {
        assert!(!tail.line().is_empty());
    }
    let wrong = append_again(&home, |event| matches!(event, Event::ThreadCreated { .. }));
    let error = tail.told("was created before");
    assert!(error.contains(&format!("event {wrong}: ")), "{error}");
    assert_eq!(tail.close().code, 1);
}

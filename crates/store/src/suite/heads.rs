//! The ends of logs: taking runs, recovering, opening again.

use super::Subject;
use super::script::{
    Author, answer, complete_step, emit, end, enqueue, item, keep, leave_open, respond, script,
    script_of_answers, start, tenant, tool_result, tool_started,
};
use crate::{Append, Filter, NodeId, Ownership, StoreError, Token};
use jiff::Timestamp;
use serde_json::json;
use std::ops::Range;
use timeline::{
    Command, Ending, Interruption, NewThread, Payload, Removed, Seq, State, ThreadId, Trigger,
};
use tokio::task::JoinSet;

/// Of two nodes that take a run, the second one owns it. Each has a higher epoch than the one before.
pub async fn the_newer_of_two_takeovers_wins(subject: impl Subject) {
    let store = subject.store();
    let mut older = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    let first = older.epoch;
    older.take(NodeId(1), keep("i1")).await;
    let mut newer = Author::of(&store, older.thread.clone(), Timestamp::UNIX_EPOCH).await;
    assert_eq!(newer.epoch, older.epoch);
    newer.take(NodeId(2), keep("i2")).await;
    assert!(first < older.epoch && older.epoch < newer.epoch);

    let append = older.append_of(keep("i3"));
    assert!(matches!(
        older.append(append).await,
        Err(StoreError::Fenced { .. })
    ));
    newer.commit(keep("i3")).await;
}

/// Of 32 nodes that take a run at one tail, one gets it.
pub async fn of_32_takeovers_at_one_tail_one_lands(subject: impl Subject) {
    let store = subject.store();
    let author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    let mut appends = Vec::new();
    for n in 0..32 {
        let mut node = Author::of(&store, author.thread.clone(), Timestamp::UNIX_EPOCH).await;
        appends.push(Append {
            ownership: Ownership::Take(NodeId(n)),
            ..node.append_of(keep(&format!("i{n}")))
        });
    }
    let mut nodes = JoinSet::new();
    for append in appends {
        let store = store.clone();
        nodes.spawn(async move { store.append(append).await });
    }
    let done = nodes.join_all().await;
    assert_eq!(done.iter().filter(|it| it.is_ok()).count(), 1, "{done:?}");
    let head = store.head(&author.thread).await.unwrap();
    assert!(head.epoch > author.epoch);
}

/// A node that does not own the run appends at the right tail. The epoch stays, and the owner must look again.
pub async fn an_append_of_another_node_leaves_the_run_to_its_owner(subject: impl Subject) {
    let store = subject.store();
    let mut owner = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    owner.take(NodeId(1), keep("i1")).await;
    let mut other = Author::of(&store, owner.thread.clone(), Timestamp::UNIX_EPOCH).await;
    other.commit(keep("i2")).await;
    assert_eq!(other.epoch, owner.epoch);

    let append = owner.append_of(keep("i3"));
    let refused = owner.append(append).await;
    assert!(
        matches!(refused, Err(StoreError::Conflict { .. })),
        "{refused:?}"
    );
    owner.tail = other.tail;
    owner.commit(keep("i3")).await;
}

/// A head's state equals a fold of the whole log: parts, response, started calls, the queue.
pub async fn a_head_restores_the_state_after_every_command(mut subject: impl Subject) {
    let mut author = Author::new(&subject.store(), "acme", NewThread::new("t", Some("k"))).await;
    let commands = script_of_answers().into_iter().chain(script());
    for (n, command) in commands.enumerate() {
        author.commit(command).await;
        if n % 8 == 0 {
            subject.reopen().await;
            author.store = subject.store();
        }
        let head = author.store.head(&author.thread).await.unwrap();
        assert_eq!(head.tail, author.tail);
        assert_eq!(head.tenant, tenant());
        assert_eq!(head.state, author.state, "after command {n}");
    }
    let log = author
        .store
        .read(&author.thread, Seq::ZERO, 10_000, Filter::All)
        .await
        .unwrap();
    let mut folded = State::default();
    for logged in &log {
        folded.apply(&logged.record.event);
    }
    assert_eq!(folded, author.state);
}

/// A head knows how many processes have started the running step and have not stopped in order.
pub async fn a_head_restores_how_often_a_step_was_started(mut subject: impl Subject) {
    let mut author = Author::new(&subject.store(), "acme", NewThread::new("t", Some("k"))).await;
    let begun = vec![
        start("one", Trigger::New(item("ask"))),
        emit(&["text-delta"]),
    ];
    let lives = [
        (begun, 1),
        (vec![Command::Resume], 2),
        (vec![Command::Resume, Command::Park], 2),
        (vec![Command::Resume, respond()], 3),
        (vec![complete_step(Some("one-step-1"))], 1),
        (vec![Command::Park], 0),
        (vec![Command::Resume], 1),
    ];
    for (n, (commands, n_starts)) in lives.into_iter().enumerate() {
        author.commit_all(commands).await;
        subject.reopen().await;
        author.store = subject.store();
        let head = author.store.head(&author.thread).await.unwrap();
        let active = head.state.active().unwrap();
        assert_eq!(active.n_starts, n_starts, "life {n}");
    }
}

/// A head restores the open calls of a thread until the next message.
pub async fn a_head_restores_the_calls_that_wait(mut subject: impl Subject) {
    let mut author = Author::new(&subject.store(), "acme", NewThread::new("t", Some("k"))).await;
    author
        .commit_all([
            start("one", Trigger::New(item("ask"))),
            respond(),
            leave_open(),
            end(),
        ])
        .await;
    subject.reopen().await;
    author.store = subject.store();
    let head = author.store.head(&author.thread).await.unwrap();
    let open = head.state.open().unwrap();
    assert_eq!(open.calls[0].tool_call_id, "c1");
    assert_eq!(open.execution.id.as_str(), "one-execution");
    author.commit(keep("aside")).await;
    let head = author.store.head(&author.thread).await.unwrap();
    assert!(head.state.open().is_none());
}

/// So it does after any commands that a thread accepts, in any order.
pub async fn a_head_restores_the_state_after_any_commands(subject: impl Subject) {
    let store = subject.store();
    for seed in 1..=6u64 {
        let id = format!("t{seed}");
        let mut author = Author::new(&store, "acme", NewThread::new(id.as_str(), Some(&id))).await;
        for (n, command) in rolled(seed, 0..250).into_iter().enumerate() {
            if author
                .state
                .decide(command.clone(), Timestamp::UNIX_EPOCH)
                .is_err()
            {
                continue;
            }
            author.commit(command).await;
            let head = store.head(&author.thread).await.unwrap();
            assert_eq!(head.state, author.state, "seed {seed}, command {n}");
            let mut stands = author.state.thread().unwrap().clone();
            let row = store.row(&author.thread).await.unwrap().thread;
            stands.updated_at = row.updated_at;
            assert_eq!(row, stands, "seed {seed}, command {n}");
        }
        assert!(
            author.tail > Seq(100),
            "seed {seed} accepts too little: {}",
            author.tail
        );
    }
}

/// A reproducible random sequence of commands, which a thread may refuse. The numbers determine the ids.
pub fn rolled(seed: u64, numbers: Range<u32>) -> Vec<Command> {
    let mut dice = seed;
    let roll = |n| {
        // Xorshift.
        for (left, right) in [(13, 7), (17, 43)] {
            dice ^= dice << left;
            dice ^= dice >> right;
        }
        any_command(dice % 23, n)
    };
    numbers.map(roll).collect()
}

fn any_command(face: u64, n: u32) -> Command {
    let why = || Interruption {
        reason: "error".into(),
        detail: None,
    };
    match face {
        0 => keep(&format!("kept-{n}")),
        1 | 2 => enqueue(&format!("ask-{n}")),
        3 | 4 => start(&format!("run-{n}"), Trigger::New(item(&format!("ask-{n}")))),
        5 => start(&format!("run-{n}"), Trigger::Waiting),
        6 => emit(&["text-delta"]),
        7 | 8 => respond(),
        9 => tool_started(),
        10 => tool_result(),
        11 => Command::ResetStep,
        12 | 13 => complete_step(Some(&format!("step-{n}"))),
        14 => complete_step(None),
        15 | 16 => leave_open(),
        17 => start(
            &format!("run-{n}"),
            Trigger::New(answer(&format!("yes-{n}"))),
        ),
        18 => Command::Enqueue {
            item: answer(&format!("yes-{n}")),
            run: json!({"agent": "demo"}).into(),
        },
        19 => update(n),
        20 => Command::Remove {
            what: Removed::Item(format!("ask-{}", n / 2).into()),
        },
        _ if n.is_multiple_of(3) => Command::End {
            ending: Ending::Stopped(why()),
        },
        _ => end(),
    }
}

/// An update that sets or removes the title, metadata fields, or both.
fn update(n: u32) -> Command {
    let set = |of: u32| !n.is_multiple_of(of);
    let metadata = || Payload::from_text(format!(r#"{{"z": {n}.0,"a":null}}"#)).ok();
    Command::Update {
        title: set(3).then(|| set(5).then(|| format!("title {n}"))),
        metadata: set(4).then(|| metadata().filter(|_| set(7))),
    }
}

/// The list has exactly the threads that recovery must look at.
pub async fn unfinished_lists_executing_and_waiting_threads_and_nothing_else(
    subject: impl Subject,
) {
    let store = subject.store();
    let begin = |name: &str, command: Vec<Command>| {
        let thread = NewThread::new(name, Some(name));
        let store = store.clone();
        async move {
            let mut author = Author::new(&store, "acme", thread).await;
            author.commit_all(command).await;
            author
        }
    };
    let run = || start("x", Trigger::New(item("ask")));
    begin("idle", vec![keep("i")]).await;
    begin("done", vec![run(), complete_step(None), end()]).await;
    begin("closed", vec![Command::Close]).await;
    begin("closed with a trigger", vec![enqueue("i"), Command::Close]).await;
    let mut executing = begin("executing", vec![run(), complete_step(None)]).await;
    let mut waiting = begin("waiting", vec![enqueue("i")]).await;
    begin("both", vec![run(), enqueue("i")]).await;

    let listed = || async {
        let mut threads = store.unfinished().await.unwrap();
        threads.sort();
        threads
    };
    assert_eq!(
        listed().await,
        ["both", "executing", "waiting"].map(ThreadId::from)
    );
    executing.commit(end()).await;
    waiting.commit(start("x", Trigger::Waiting)).await;
    waiting.commit_all([complete_step(None), end()]).await;
    assert_eq!(listed().await, ["both"].map(ThreadId::from));
}

/// A reopened store has exactly the acknowledged records.
pub async fn a_reopened_store_reads_what_it_acknowledged(mut subject: impl Subject) {
    let store = subject.store();
    let mut author = Author::new(&store, "acme", NewThread::new("t", Some("k"))).await;
    author.commit_all(script()).await;
    let log = store
        .read(&author.thread, Seq::ZERO, 10_000, Filter::All)
        .await
        .unwrap();
    let row = store.find(&tenant(), "k").await.unwrap();
    drop(store);
    let Author {
        thread,
        state,
        tail,
        ..
    } = author;

    subject.reopen().await;

    let store = subject.store();
    assert_eq!(
        store
            .read(&thread, Seq::ZERO, 10_000, Filter::All)
            .await
            .unwrap(),
        log
    );
    assert_eq!(store.find(&tenant(), "k").await.unwrap(), row);
    let head = store.head(&thread).await.unwrap();
    assert_eq!((head.tail, head.state), (tail, state));
}

/// A request repeated after a restart gets the first answer.
pub async fn a_reopened_store_knows_its_tokens(mut subject: impl Subject) {
    let mut author = Author::new(&subject.store(), "acme", NewThread::new("t", Some("k"))).await;
    let mut append = author.append_of(keep("i1"));
    append.token = Some(Token {
        token: "once".into(),
        answer: "a".into(),
    });
    author.append(append.clone()).await.unwrap();
    drop(author);

    subject.reopen().await;

    let repeated = subject.store().append(append).await;
    assert!(
        matches!(&repeated, Err(StoreError::Repeated { answer }) if answer == "a"),
        "{repeated:?}"
    );
}

/// Epochs survive the process that issued them.
pub async fn a_takeover_after_reopening_voids_the_ones_before(mut subject: impl Subject) {
    let mut author = Author::new(&subject.store(), "acme", NewThread::new("t", Some("k"))).await;
    author.take(NodeId(1), keep("i1")).await;
    let append = author.append_of(keep("i2"));
    let thread = author.thread.clone();
    drop(author.store);

    subject.reopen().await;

    let store = subject.store();
    let mut newer = Author::of(&store, thread, Timestamp::UNIX_EPOCH).await;
    assert_eq!(newer.epoch, author.epoch);
    newer.take(NodeId(2), keep("i3")).await;
    assert!(newer.epoch > author.epoch);
    assert!(matches!(
        store.append(append).await,
        Err(StoreError::Fenced { .. })
    ));
}

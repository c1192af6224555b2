//! `loomline purge` and `loomline storage`: what is purged is in no file any more.

use crate::support::cli::Home;
use crate::support::server::Server;
use crate::support::soak_repeats;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

/// A word that nothing else has. The full-text index has it in small letters.
fn secret(n: usize) -> String {
    format!("SKLIVE{n:04}QWXZVJKPYHGF")
}

/// The files of the store have these bytes, in either spelling.
fn has(data: &Path, secret: &str) -> bool {
    let has = |name: &str| {
        let bytes = std::fs::read(data.join(name)).unwrap_or_default();
        let small = secret.to_ascii_lowercase();
        [secret, &small].iter().any(|secret| {
            let mut windows = bytes.windows(secret.len());
            windows.any(|window| window == secret.as_bytes())
        })
    };
    has("loomline.db") || has("loomline.db-wal")
}

fn say(home: &Home, n: usize) {
    let text = format!("the code is {} and nothing else", secret(n));
    home.ok(&["run", &text, "--thread", &format!("t{n}")]);
}

fn one(home: &Home, args: &[&str]) -> Value {
    let ran = home.run(args);
    let mut lines = ran.json();
    assert_eq!(lines.len(), 1, "{ran:?}");
    lines.remove(0)
}

#[test]
fn purge_deletes_threads_and_proves_that_their_bytes_are_gone() {
    let home = Home::new();
    for n in 0..3 {
        say(&home, n);
    }
    let data = home.data();
    assert!((0..3).all(|n| has(&data, &secret(n))));
    let planned = one(&home, &["purge", "t0", "t1", "--dry-run", "--json"]);
    assert_eq!(planned["threads"].as_array().unwrap().len(), 2);
    assert!(has(&data, &secret(0)));

    let purged = one(&home, &["purge", "t0", "t1", "--json"]);

    assert_eq!(purged["threads"].as_array().unwrap().len(), 2);
    let proof = &purged["proof"];
    assert_eq!(
        (&proof["left"], &proof["files_read"]),
        (&json!(0), &json!(true)),
        "{purged}"
    );
    assert!(proof["samples"].as_u64().unwrap() > 4, "{purged}");
    assert_eq!(purged["log_empty"], true);
    let found: Vec<_> = (0..3).filter(|n| has(&data, &secret(*n))).collect();
    assert_eq!(found, [2]);
    assert!(home.ok(&["doctor"]).contains("store is sound"));
    let again = home.run(&["purge", "t0"]);
    assert_eq!(again.code, 1, "{again:?}");
    assert!(again.out.contains("there is no such thread"), "{again:?}");
}

#[test]
fn purge_of_a_tenant_leaves_nothing_of_it() {
    let home = Home::new();
    say(&home, 1);
    home.ok(&["threads", "fork", "t1", "fork"]);
    let purged = one(&home, &["purge", "--all", "--yes", "--json"]);
    assert_eq!(purged["threads"].as_array().unwrap().len(), 2, "{purged}");
    assert_eq!(purged["remaining"], json!([]));
    assert!(!has(&home.data(), &secret(1)));
    let storage = one(&home, &["storage", "--json"]);
    assert_eq!(storage["tenants"], json!([]));
}

#[test]
fn a_thread_with_forks_stays_and_the_purge_says_so() {
    let home = Home::new();
    say(&home, 1);
    home.ok(&["threads", "fork", "t1", "fork"]);
    let ran = home.run(&["purge", "t1"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.contains("it has forks"), "{ran:?}");
    let purged = one(&home, &["purge", "t1", "fork", "--json"]);
    assert_eq!(purged["threads"].as_array().unwrap().len(), 2, "{purged}");
}

#[test]
fn purge_requires_a_selection_and_confirmation() {
    let home = Home::new();
    assert_eq!(home.run(&["purge"]).code, 2);
    assert_eq!(home.run(&["purge", "--all"]).code, 2);
    assert_eq!(home.run(&["purge", "--unchanged-days", "4400000"]).code, 2);
    assert_eq!(home.run(&["purge", "--all", "t1"]).code, 2);
}

#[test]
fn purge_by_age_leaves_newer_threads() {
    let home = Home::new();
    say(&home, 1);
    let purged = one(
        &home,
        &["purge", "--unchanged-days", "1", "--yes", "--json"],
    );
    assert_eq!(purged["threads"], json!([]));
    let purged = one(
        &home,
        &["purge", "--unchanged-days", "0", "--yes", "--json"],
    );
    assert_eq!(purged["threads"].as_array().unwrap().len(), 1);
}

/// Says something on a thread, and waits for the answer.
fn post(server: &Server, key: &str, n: usize) {
    post_text(server, key, &format!("the code is {}", secret(n)));
}

fn post_text(server: &Server, key: &str, text: &str) {
    let body = json!({ "content": text });
    let path = format!("/api/v1/threads/{key}/messages");
    server.post(&path, &body).unwrap();
    server.rest(key);
}

/// Replaces the first message of a thread.
fn replace_first(server: &Server, key: &str, n: usize) {
    let messages = server
        .get(&format!("/api/v1/threads/{key}/messages"))
        .unwrap();
    let id = messages["messages"][0]["id"].as_str().unwrap();
    let body = json!({"content": format!("the code is {}", secret(n))});
    let path = format!("/api/v1/threads/{key}/messages/{id}/replace");
    server.post(&path, &body).unwrap();
    server.rest(key);
}

#[test]
fn purge_beside_a_server_erases_removed_messages_while_others_run() {
    let home = Home::new();
    let mut server = home.server();
    let data = home.data();
    post(&server, "chat", 0);
    replace_first(&server, "chat", 1);
    assert!(has(&data, &secret(0)));
    let shown = |server: &Server| {
        let document = server.get("/api/v1/threads/chat/document").unwrap();
        (
            document,
            server.get("/api/v1/threads/chat/messages").unwrap(),
        )
    };
    let (before, n_events) = (shown(&server), server.log("chat").len());
    let purged = std::thread::scope(|scope| {
        let busy = scope.spawn(|| {
            for n in 10..30 {
                post(&server, &format!("busy-{n}"), n);
            }
        });
        let purged = one(&home, &["purge", "--removed", "--yes", "--json"]);
        busy.join().unwrap();
        purged
    });
    assert_eq!(purged["entries"], 2, "{purged}");
    assert_eq!(purged["proof"]["left"], 0, "{purged}");
    assert_eq!(shown(&server), before);
    assert_eq!(server.log("chat").len(), n_events);
    for n in 10..30 {
        let messages = server
            .get(&format!("/api/v1/threads/busy-{n}/messages"))
            .unwrap();
        assert_eq!(
            messages["messages"].as_array().unwrap().len(),
            2,
            "{messages}"
        );
    }
    post(&server, "chat", 2);
    server.stop();
    let left: Vec<_> = (0..3).filter(|n| has(&data, &secret(*n))).collect();
    assert_eq!(left, [1, 2]);
    let proved = home.ok(&["prove", "chat"]);
    assert!(
        proved.contains("the chain holds") && proved.contains("  erased"),
        "{proved}"
    );
    assert!(home.ok(&["doctor"]).contains("store is sound"));
}

#[test]
fn purge_compacts_a_file_without_a_map_of_pages() {
    let home = Home::new();
    say(&home, 1);
    say(&home, 2);
    let file = home.data().join("loomline.db");
    let mut bytes = std::fs::read(&file).unwrap();
    // The header as a store of before version 11 has it.
    for map in [52..56, 64..68] {
        bytes[map].fill(0);
    }
    std::fs::write(&file, bytes).unwrap();
    let purged = one(&home, &["purge", "t1", "--json"]);
    assert_eq!(
        (&purged["compacted"], &purged["proof"]["left"]),
        (&json!(true), &json!(0)),
        "{purged}"
    );
    assert_ne!(std::fs::read(&file).unwrap()[52..56], [0; 4]);
    assert!(home.ok(&["doctor"]).contains("store is sound"));
}

#[test]
fn purge_reports_messages_that_only_a_fork_has_removed() {
    let home = Home::new();
    let mut server = home.server();
    post(&server, "chat", 0);
    home.ok(&["threads", "fork", "chat", "fork"]);
    replace_first(&server, "fork", 1);
    let args = ["purge", "fork", "--removed", "--yes"];
    let purged = one(&home, &[&args[..], &["--json"]].concat());
    assert_eq!(
        (&purged["entries"], &purged["in_parents"]),
        (&json!(0), &json!(2)),
        "{purged}"
    );
    let shown = home.ok(&args);
    assert!(
        shown.contains(
            "2 messages, answers and summaries stay, because only forks have removed them"
        ),
        "{shown}"
    );
    server.stop();
    assert!(has(&home.data(), &secret(0)));
}

#[test]
fn purge_beside_a_server_deletes_threads() {
    let home = Home::new();
    let mut server = home.server();
    post(&server, "gone", 0);
    post(&server, "stays", 1);
    let purged = one(&home, &["purge", "gone", "--json"]);
    assert_eq!(purged["proof"]["left"], 0, "{purged}");
    assert!(server.get("/api/v1/threads/gone").is_err());
    assert!(!has(&home.data(), &secret(0)));
    post(&server, "stays", 2);
    server.stop();
    assert!(home.ok(&["doctor"]).contains("store is sound"));
}

/// Copies the files of a stopped store.
fn copied(from: &Home) -> Home {
    let copy = Home::new();
    for file in std::fs::read_dir(from.data()).unwrap() {
        let file = file.unwrap();
        if file.file_type().unwrap().is_file() {
            std::fs::copy(file.path(), copy.data().join(file.file_name())).unwrap();
        }
    }
    copy
}

/// A stopped store with threads of 12 KiB, whose words are deleted in bulk, and one with short messages.
fn stopped_store(n_threads: usize, n_short: usize) -> Home {
    let home = Home::new();
    let mut server = home.server();
    for n in 0..n_threads {
        let more = "and some other words ".repeat(600);
        let text = format!("the code is {} {more}", secret(n));
        post_text(&server, &format!("t{n}"), &text);
    }
    replace_first(&server, "t0", 100);
    for n in 0..n_short {
        post_text(&server, "stays", &format!("short {n}"));
    }
    server.stop();
    home
}

/// Kills purges of copies of a store, from their beginning to their end. Returns how many had deleted some threads.
fn kill_purges(home: &Home, n_threads: usize, purge: &[&str]) -> usize {
    const KILLS: u32 = 8;
    let begun = Instant::now();
    copied(home).ok(purge);
    let whole = begun.elapsed();
    let mut n_met = 0;
    for n in 0..KILLS {
        let home = copied(home);
        let command = home.spawn(purge);
        std::thread::sleep(whole.mul_f64(f64::from(n) / f64::from(KILLS)));
        command.signal("KILL");
        drop(command);
        assert!(home.ok(&["doctor"]).contains("store is sound"));
        let purged = one(&home, purge);
        assert_eq!(purged["proof"]["left"], 0, "{purged}");
        let n_left = purged["threads"].as_array().unwrap().len();
        n_met += usize::from((1..n_threads).contains(&n_left));
        let mut secrets = (0..n_threads).chain([100]);
        assert!(!secrets.any(|n| has(&home.data(), &secret(n))));
        assert!(home.ok(&["doctor"]).contains("store is sound"));
    }
    n_met
}

#[test]
fn a_purge_of_a_tenant_that_is_killed_is_completed_by_the_next_one() {
    let kill = || {
        kill_purges(
            &stopped_store(24, 0),
            24,
            &["purge", "--all", "--yes", "--json"],
        )
    };
    let n_met: usize = (0..soak_repeats()).map(|_| kill()).sum();
    assert!(n_met > 0, "no kill met a purge");
}

#[test]
fn a_purge_of_threads_that_is_killed_leaves_the_words_of_the_others() {
    let keys: Vec<String> = (0..24).map(|n| format!("t{n}")).collect();
    let keys = keys.iter().map(String::as_str);
    let purge: Vec<&str> = ["purge", "--yes", "--json"]
        .into_iter()
        .chain(keys)
        .collect();
    // More texts than an index has that is made anew in place of a merge.
    let home = stopped_store(24, 140);
    let n_met: usize = (0..soak_repeats())
        .map(|_| kill_purges(&home, 24, &purge))
        .sum();
    assert!(n_met > 0, "no kill met a purge");
}

#[test]
fn a_deletion_without_a_server_leaves_no_words() {
    let home = Home::new();
    let mut server = home.server();
    let more = "and some other words ".repeat(15_000);
    let text = format!("the code is {} {more}", secret(0));
    post_text(&server, "large", &text);
    post(&server, "stays", 1);
    server.stop();
    home.ok(&["threads", "delete", "large", "--yes"]);
    assert!(!has(&home.data(), &secret(0)));
    assert!(has(&home.data(), &secret(1)));
    assert!(home.ok(&["doctor"]).contains("store is sound"));
}

#[test]
fn only_commands_on_this_machine_may_purge() {
    let home = Home::new();
    let server = home.server();
    post(&server, "stays", 1);
    let refused = server.post("/local/purge", &json!({"whole_tenant": true}));
    assert!(
        matches!(refused, Err(ureq::Error::StatusCode(404))),
        "{refused:?}"
    );
    assert!(server.get("/api/v1/threads/stays").is_ok());
}

#[test]
fn storage_shows_the_bytes_of_a_thread_by_kind() {
    let home = Home::new();
    say(&home, 1);
    let thread = one(&home, &["storage", "--thread", "t1", "--json"]);
    assert!(thread["blocks"].as_u64().unwrap() > 200, "{thread}");
    assert!(
        thread["texts"]["chunks"].as_u64().unwrap() > 100,
        "{thread}"
    );
    let shown = home.ok(&["storage"]);
    for what in [
        "events",
        "search index",
        "free pages",
        "write-ahead log",
        "t1",
    ] {
        assert!(shown.contains(what), "{what}: {shown}");
    }
    assert_eq!(home.run(&["storage", "--thread", "other"]).code, 4);
}

//! Backups and restores, as an operator meets them, and what a kill leaves of them.

use crate::support::cli::Home;
use crate::support::soak_repeats;
use std::path::Path;
use std::time::{Duration, Instant};

const KILLS: usize = 10;

/// A home with threads that take some time to copy.
fn filled() -> Home {
    let home = Home::new();
    let long = "word ".repeat(40_000);
    for key in ["a", "b", "c"] {
        home.feed(&["run", "-", "--thread", key], &long);
    }
    home.ok(&["run", "compute 6*7", "--thread", "answer"]);
    home
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// The events of a thread of a data directory.
fn events(home: &Home, data: &Path, key: &str) -> String {
    home.ok_at(data, &["tail", key, "--no-follow"])
}

#[test]
fn a_backup_beside_a_server_is_restored_and_sound() {
    let home = filled();
    let (backups, to) = (text(&home.path("backups")), home.path("restored"));
    {
        let _server = home.server();
        home.ok(&["backup", &backups]);
        home.ok(&["run", "compute 1+1", "--thread", "answer"]);
        let second = &home.run(&["backup", &backups, "--json"]).json()[0];
        assert_eq!(
            (&second["kind"], &second["number"]),
            (&"increment".into(), &2.into())
        );
        let verified = home.ok(&["backup", "--verify", &backups]);
        assert!(verified.contains("ok  backup 2 (increment)"), "{verified}");
    }
    home.ok(&["restore", &backups, "--to", &text(&to)]);
    assert_eq!(
        events(&home, &to, "answer"),
        events(&home, &home.data(), "answer")
    );
    home.ok_at(&to, &["doctor"]);
    let again = home.run(&["restore", &backups, "--to", &text(&to)]);
    assert_eq!(again.code, 1, "{again:?}");
    assert!(again.err.contains("is not empty"), "{again:?}");
    let none = text(&home.path("none"));
    std::fs::create_dir(&none).unwrap();
    assert_eq!(
        home.run(&["restore", &none, "--to", &text(&home.path("x"))])
            .code,
        4
    );
}

#[test]
fn a_tenant_moves_to_another_store_with_the_same_documents() {
    let home = filled();
    let (file, to) = (text(&home.path("dev.jsonl")), home.path("moved"));
    home.ok(&["tenant", "export", "dev", "-o", &file]);
    home.ok_at(&to, &["tenant", "import", &file]);
    let document = |data: &Path| home.ok_at(data, &["export", "--thread", "answer"]);
    assert_eq!(document(&to), document(&home.data()));
    assert_eq!(
        events(&home, &to, "answer"),
        events(&home, &home.data(), "answer")
    );
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let cut = home.run(&["tenant", "import", &file, "--data", &text(&home.path("y"))]);
    assert_eq!(cut.code, 3, "{cut:?}");
    assert!(!home.path("y").exists());
    assert_eq!(home.run(&["tenant", "export", "nobody"]).code, 4);
}

#[test]
fn a_tenant_moves_with_its_compactions() {
    let home = filled();
    let compact = ["threads", "compact", "answer", "--json"];
    let made = [
        &compact[..],
        &["--summary", "They computed.", "--keep-runs", "0"],
    ]
    .concat();
    home.ok(&made);
    let (file, to) = (text(&home.path("dev.jsonl")), home.path("moved"));
    home.ok(&["tenant", "export", "dev", "-o", &file]);
    home.ok_at(&to, &["tenant", "import", &file]);
    let list = |data: &Path| home.ok_at(data, &compact);
    assert!(list(&to).contains("\"counts\":true"));
    assert_eq!(list(&to), list(&home.data()));
    let doctor = home.ok_at(&to, &["doctor"]);
    assert!(!doctor.contains("finding"), "{doctor}");
}

#[test]
fn killed_backups_and_restores_leave_what_was_there_usable() {
    for n in 0..soak_repeats() {
        kill_backups_and_restores(48 + u64::from(n));
    }
}

fn kill_backups_and_restores(seed: u64) {
    let home = filled();
    let backups = text(&home.path("backups"));
    home.ok(&["backup", &backups]);
    let begun = Instant::now();
    home.ok(&["backup", &backups, "--full"]);
    let whole = begun.elapsed();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut moment = || whole.mul_f64(random.f64() * 1.2);
    for n in 0..KILLS {
        let how: &[&str] = if n % 2 == 0 { &["--full"] } else { &[] };
        kill(&home, &[&["backup", &backups], how].concat(), moment());
        home.ok(&["backup", "--verify", &backups]);
        home.ok(&["run", "compute 1+1", "--thread", "answer"]);
    }
    home.ok(&["backup", &backups]);
    let expected = events(&home, &home.data(), "answer");
    for n in 0..KILLS {
        let to = home.path(&format!("restored-{n}"));
        let restore = ["restore", &*backups, "--to", &*text(&to)];
        kill(&home, &restore, moment());
        if !to.join("loomline.db").exists() {
            home.ok(&restore);
        }
        assert_eq!(events(&home, &to, "answer"), expected, "seed {seed}, {n}");
    }
}

fn kill(home: &Home, arguments: &[&str], after: Duration) {
    let running = home.spawn(arguments);
    std::thread::sleep(after);
    drop(running);
}

#[test]
fn commands_on_a_store_in_a_file_refuse_a_database() {
    let mut home = Home::new();
    home.ok(&["run", "hello", "--thread", "t"]);
    let backups = text(&home.path("backups"));
    let to = home.path("to");
    home.ok(&["backup", &backups]);
    let n_files = || std::fs::read_dir(&backups).unwrap().count();
    let before = n_files();
    // The second one names a variable that is not set: the store in the file must not be taken for it.
    for store in [
        "url = \"postgres://a@127.0.0.1:1/b\"",
        "url_env = \"NOT_SET\"",
    ] {
        home.configure(&format!("[store]\n{store}\n"));
        let commands: [&[&str]; 3] = [
            &["backup", &backups],
            &["restore", &backups, "--to", &text(&to)],
            &["rekey", "--decrypt"],
        ];
        for command in commands {
            let ran = home.run(command);
            assert_eq!(ran.code, 1, "{command:?}: {ran:?}");
            let expected = "[store] names a PostgreSQL database";
            assert!(ran.err.contains(expected), "{command:?}: {}", ran.err);
        }
        let advice = home.run(&["backup", &backups]).err;
        assert!(advice.contains("pg_dump"), "{advice}");
    }
    assert_eq!(n_files(), before);
    assert!(!to.exists());
}

//! Stores that earlier versions wrote. `fixtures/stores/README.md` says how they were made.

#![allow(clippy::print_stdout, reason = "counts")]

use crate::support::cli::{Home, fixture, records};
use crate::support::server::Server;
use crate::support::soak_repeats;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Everything that is recorded of a thread but its events and its document.
const VIEWS: [(&str, &str, Option<&str>); 8] = [
    ("thread", "", None),
    ("messages", "/messages", Some("messages")),
    ("runs", "/runs", Some("runs")),
    ("pending", "/pending", Some("calls")),
    ("requests", "/requests?state=all", Some("requests")),
    ("actors", "/actors", Some("actors")),
    ("tree", "/tree", Some("threads")),
    ("objects", "/objects/checkpoint", Some("objects")),
];

/// A store of an earlier version in a directory of its own, and what that version showed of it.
struct OldStore {
    home: Home,
    truth: Value,
}

/// What a tenant of a server sees.
struct View<'a> {
    server: &'a Server,
    tenant: &'a str,
}

fn unpacked(packed: &Path) -> Vec<u8> {
    let unpacked = Command::new("gzip").arg("-dc").arg(packed).output();
    let unpacked = unpacked.unwrap();
    assert!(unpacked.status.success(), "{}", packed.display());
    unpacked.stdout
}

/// Writes a file that nobody else may read, as the server does.
fn write_private(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

impl OldStore {
    /// The store of a version, which a server left as its name says: `stopped` or `killed`.
    fn of(version: &str, left: &str) -> Self {
        let directory = fixture("stores").join(version).join(left);
        let mut home = Home::new();
        let config = std::fs::read_to_string(fixture("stores/loomline.toml"));
        home.configure(&config.unwrap());
        let data = home.data();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o700)).unwrap();
        }
        for name in ["loomline.db", "loomline.db-wal"] {
            let packed = directory.join(format!("{name}.gz"));
            if packed.exists() {
                write_private(&data.join(name), &unpacked(&packed));
            }
        }
        let truth = unpacked(&directory.join("truth.json.gz"));
        let truth = serde_json::from_slice(&truth).unwrap();
        Self { home, truth }
    }

    /// Asserts that the program shows the store as the version that wrote it did, now and after a restart.
    fn assert_migrates(&self) {
        let mut server = self.home.server();
        self.assert_runs_end(&server);
        self.assert_shown(&server);
        server.stop();
        self.assert_sound();
        self.assert_backed_up();
        let mut server = self.home.server();
        self.assert_shown(&server);
        server.stop();
    }

    /// Runs that the end of the server interrupted continue after their last event, and end.
    fn assert_runs_end(&self, server: &Server) {
        let view = View::of(server, "acme");
        let unfinished = self.truth["unfinished"].as_object().unwrap();
        assert!(!unfinished.is_empty());
        for (key, before) in unfinished {
            let events = view.events(key);
            let before = texts(before);
            assert!(events.len() > before.len(), "{key} has nothing new");
            assert_texts(key, &events[..before.len()], &before);
            let parsed: Vec<Value> = events.iter().map(|text| parsed(text)).collect();
            assert_eq!(timeline::verify(&records(&parsed)), Ok(()), "{key}");
            let last = parsed.last().unwrap();
            assert_eq!(last["type"], "thread.finished", "{key}: {last}");
            let runs = view.json(&format!("{}/runs", place(key)));
            let runs = runs["runs"].as_array().unwrap();
            assert!(
                runs.iter().all(|run| run["status"] == "completed"),
                "{key}: {runs:?}"
            );
        }
    }

    fn assert_shown(&self, server: &Server) {
        for (tenant, recorded) in self.truth["tenants"].as_object().unwrap() {
            let view = View::of(server, tenant);
            let threads = recorded["threads"].as_array().unwrap();
            assert!(!threads.is_empty());
            for thread in threads {
                view.assert_thread(thread);
            }
            view.assert_files(recorded);
            view.assert_lists(recorded);
        }
    }

    /// `doctor` reads all of the store and finds nothing.
    fn assert_sound(&self) {
        let ran = self.home.run(&["doctor"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let found = |line: &&str| !line.starts_with("ok") && !line.starts_with("data in ");
        let found: Vec<&str> = ran.out.lines().filter(found).collect();
        assert!(found.is_empty(), "{found:?}");
    }

    /// The store as it was lies beside the one that was migrated, if it was.
    fn assert_backed_up(&self) {
        let version = self.truth["schemaVersion"].as_u64().unwrap();
        let copy = self.file(&format!("loomline.db.backup-v{version}"));
        if schema_version(&self.file("loomline.db")) == version {
            assert!(!copy.exists(), "nothing was migrated");
        } else {
            assert_eq!(schema_version(&copy), version);
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.home.data().join(name)
    }
}

/// The `user_version` in the header of a SQLite file.
fn schema_version(path: &Path) -> u64 {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(
        bytes.starts_with(b"SQLite format 3\0"),
        "{}",
        path.display()
    );
    u64::from(u32::from_be_bytes(bytes[60..64].try_into().unwrap()))
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn texts(list: &Value) -> Vec<String> {
    let text = |it: &Value| it.as_str().unwrap().to_owned();
    list.as_array().unwrap().iter().map(text).collect()
}

/// Asserts that texts are equal. The message has the first difference only, because the lists are long.
fn assert_texts(key: &str, found: &[String], recorded: &[String]) {
    let differs = found.iter().zip(recorded).position(|(a, b)| a != b);
    if let Some(at) = differs {
        assert_eq!(found[at], recorded[at], "event {} of {key}", at + 1);
    }
    assert_eq!(found.len(), recorded.len(), "number of events of {key}");
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}

fn place(key: &str) -> String {
    format!("/api/v1/threads/{}", key.replace('/', "%2F"))
}

/// The recorded value of a view. A later version may have changed the view; then the record has its value too.
fn recorded<'a>(record: &'a Value, field: &str) -> &'a Value {
    let later = &record["later"][field];
    if later.is_null() {
        &record[field]
    } else {
        later
    }
}

impl<'a> View<'a> {
    fn of(server: &'a Server, tenant: &'a str) -> Self {
        Self { server, tenant }
    }

    fn response(&self, path: &str, accept: &str) -> ureq::http::Response<ureq::Body> {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .timeout_global(Some(Duration::from_mins(1)))
            .build()
            .into();
        let key = format!("Bearer llk_fixture_{}", self.tenant);
        let request = agent.get(self.server.url(path)).header("accept", accept);
        let response = request.header("authorization", key).call();
        response.unwrap_or_else(|error| panic!("{} {path}: {error}", self.tenant))
    }

    fn text(&self, path: &str, accept: &str) -> String {
        let mut response = self.response(path, accept);
        response.body_mut().read_to_string().unwrap()
    }

    fn json(&self, path: &str) -> Value {
        parsed(&self.text(path, "application/json"))
    }

    /// The text of each event, byte for byte, when no run executes.
    fn events(&self, key: &str) -> Vec<String> {
        let path = format!("{}/events?until=rest", place(key));
        let text = self.text(&path, "text/event-stream");
        let events = text.split('\n').filter_map(|it| it.strip_prefix("data: "));
        events.map(str::to_owned).collect()
    }

    fn assert_thread(&self, record: &Value) {
        let key = record["key"].as_str().unwrap();
        let what = format!("{} {key}", self.tenant);
        assert_texts(&what, &self.events(key), &texts(&record["events"]));

        let mut response = self.response(&format!("{}/document", place(key)), "application/json");
        let document = response.body_mut().read_to_string().unwrap();
        assert_eq!(document, record["document"], "{what}");
        let hash = response.headers()["loomline-content-hash"].to_str();
        assert_eq!(hash.unwrap(), record["hash"], "{what}");

        for (field, path, list) in VIEWS {
            let mut found = self.json(&format!("{}{path}", place(key)));
            let found = match list {
                Some(list) => found[list].take(),
                // How many bytes a log takes is the store's own affair.
                None => without(found, "bytes"),
            };
            let found = if field == "tree" {
                relations(&found)
            } else {
                found
            };
            assert_eq!(found, *recorded(record, field), "{field} of {what}");
        }
    }

    fn assert_files(&self, record: &Value) {
        let files = self.json("/v1/files?limit=100&order=asc");
        let files = files["data"].as_array().unwrap();
        let expected = recorded(record, "files").as_array().unwrap();
        assert_eq!(files.len(), expected.len());
        for (file, expected) in files.iter().zip(expected) {
            assert_eq!(*file, expected["about"]);
            let path = format!("/v1/files/{}/content", file["id"].as_str().unwrap());
            let content = self.response(&path, "*/*").body_mut().read_to_vec();
            assert_eq!(hex(&content.unwrap()), expected["content"], "{file}");
        }
        let assistants = self.json("/v1/assistants?limit=100&order=asc");
        assert_eq!(assistants["data"], *recorded(record, "assistants"));
    }

    fn assert_lists(&self, record: &Value) {
        let listed = self.json("/api/v1/threads?limit=500");
        let listed = listed["threads"].as_array().unwrap().iter();
        let keys: Value = listed
            .map(|thread| thread["key"].clone())
            .filter(|key| !key.as_str().unwrap().starts_with("unfinished"))
            .collect();
        assert_eq!(keys, *recorded(record, "listed"));
        for (words, expected) in record["search"].as_object().unwrap() {
            let words = words.replace(' ', "+").replace('ö', "%C3%B6");
            let found = self.json(&format!("/api/v1/threads?limit=100&q={words}"));
            let found = found["threads"].as_array().unwrap();
            let hits: Vec<_> = found
                .iter()
                .map(|it| [&it["key"], &it["snippets"]])
                .collect();
            let expected = expected.as_array().unwrap();
            let expected: Vec<_> = expected
                .iter()
                .map(|it| [&it["key"], &it["snippets"]])
                .collect();
            assert_eq!(hits, expected, "search for {words}");
        }
        let waiting = self.json("/api/v1/waiting?limit=200");
        assert_eq!(waiting["entries"], record["waiting"]);
    }
}

fn without(mut object: Value, field: &str) -> Value {
    object.as_object_mut().unwrap().shift_remove(field);
    object
}

/// Whose fork and whose child each thread of a tree is.
fn relations(tree: &Value) -> Value {
    let relation = |thread: &Value| -> Value {
        let names = ["key", "parent", "forkedAt", "toolCallId"];
        let fields = names.into_iter().filter_map(|name| {
            let value = thread.get(name)?;
            Some((name.to_owned(), value.clone()))
        });
        Value::Object(fields.collect())
    };
    tree.as_array().unwrap().iter().map(relation).collect()
}

#[test]
fn a_store_of_27bb77e_migrates_with_equal_events_documents_and_hashes() {
    OldStore::of("27bb77e", "stopped").assert_migrates();
}

#[test]
fn a_killed_store_of_27bb77e_migrates_with_equal_events_documents_and_hashes() {
    OldStore::of("27bb77e", "killed").assert_migrates();
}

#[test]
fn a_store_of_version_9_migrates_with_equal_events_documents_and_hashes() {
    OldStore::of("main-v9", "stopped").assert_migrates();
}

#[test]
fn a_killed_store_of_version_9_migrates_with_equal_events_documents_and_hashes() {
    OldStore::of("main-v9", "killed").assert_migrates();
}

/// Starts the server and kills it after some time. Returns whether the migration had begun.
fn kill_a_start(store: &OldStore, after: Duration) -> bool {
    let server = store.home.spawn(&["serve", "--listen", "127.0.0.1:0"]);
    std::thread::sleep(after);
    drop(server);
    let mut files = std::fs::read_dir(store.home.data()).unwrap();
    files.any(|file| {
        let name = file.unwrap().file_name();
        name.to_str().unwrap().contains("backup-v9")
    })
}

#[test]
fn kills_during_a_migration_leave_a_store_that_migrates() {
    const KILLS: u32 = 4;
    let store = OldStore::of("main-v9", "stopped");
    let begun = Instant::now();
    let mut server = store.home.server();
    let start = begun.elapsed();
    server.stop();
    let mut random = fastrand::Rng::with_seed(9);
    let mut n_begun = 0;
    for n in 0..KILLS * soak_repeats() {
        let store = OldStore::of("main-v9", "stopped");
        // The moments are spread over the whole start, whatever it takes on this machine.
        let share = (f64::from(n % KILLS) + random.f64()) / f64::from(KILLS);
        n_begun += u32::from(kill_a_start(&store, start.mul_f64(share)));
        let mut server = store.home.server();
        store.assert_runs_end(&server);
        store.assert_shown(&server);
        server.stop();
        store.assert_sound();
        store.assert_backed_up();
    }
    println!("{n_begun} kills met a migration that had begun");
    assert!(n_begun > 0, "no kill met a migration");
}

#[test]
fn a_store_of_version_10_migrates_with_equal_events_documents_and_hashes() {
    OldStore::of("main-v10", "stopped").assert_migrates();
}

#[test]
fn a_killed_store_of_version_10_migrates_with_equal_events_documents_and_hashes() {
    OldStore::of("main-v10", "killed").assert_migrates();
}

#[test]
fn a_store_of_version_11_migrates_with_equal_events_documents_and_hashes() {
    OldStore::of("main-v11", "stopped").assert_migrates();
}

#[test]
fn a_killed_store_of_version_11_migrates_with_equal_events_documents_and_hashes() {
    OldStore::of("main-v11", "killed").assert_migrates();
}

#[test]
fn backups_of_schema_10_are_restored_with_their_increments() {
    let home = Home::new();
    let packed = fixture("stores/backups-v10");
    let backups = home.path("backups");
    std::fs::create_dir(&backups).unwrap();
    for name in ["000001.db", "000001.json", "000002.db", "000002.json"] {
        let bytes = unpacked(&packed.join(format!("{name}.gz")));
        write_private(&backups.join(name), &bytes);
    }
    let to = home.path("restored");
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    home.ok(&["backup", "--verify", &text(&backups)]);
    home.ok(&["restore", &text(&backups), "--to", &text(&to)]);
    home.ok_at(&to, &["doctor"]);
    // Thread `b` had no event after the full backup.
    for key in ["a", "b"] {
        let events = unpacked(&packed.join(format!("{key}.jsonl.gz")));
        let restored = home.ok_at(&to, &["tail", key, "--no-follow"]);
        assert_eq!(restored.as_bytes(), events, "{key}");
    }
}

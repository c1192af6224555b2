//! The attacked server, and what its process takes.

use crate::environment;
use crate::wire::{self, Answer};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The number of keys that the attacking tenant has.
pub(crate) const N_KEYS: usize = 12;

/// A running `loomline serve` with two tenants: one attacks, one goes about its work.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// The attacker's keys.
    pub(crate) keys: Vec<String>,
    /// The other tenant's key.
    pub(crate) other: String,
    directory: TempDir,
}

fn program() -> String {
    environment("LOOMLINE_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_loomline").to_owned())
}

/// A new key with its hash.
fn key() -> (String, String) {
    let made = Command::new(program()).args(["key", "--json"]).output();
    let made: Value = serde_json::from_slice(&made.unwrap().stdout).unwrap();
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("key"), text("hash"))
}

/// The limits that the suite sets; all others are the defaults.
const LIMITS: &str = "
[limits]
header_timeout_s = 5
idle_timeout_s = 20
stalled_reader_s = 5
streams = 12000
connections = 14000
connections_per_address = 3500
concurrent_runs = 300
[limits.tenant]
streams = 11000
concurrent_runs = 200
";

impl Server {
    pub(crate) fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (keys, hashes): (Vec<_>, Vec<_>) = (0..N_KEYS).map(|_| key()).unzip();
        let (other, other_hash) = key();
        // A server from before there were limits knows no such table.
        let limits = match environment("LOOMLINE_WITHOUT_LIMITS") {
            None => LIMITS,
            Some(_) => "",
        };
        let config = format!(
            "{limits}[models.m]\nprovider = \"scripted\"\n[agents.demo]\nmodel = \"m\"\n\
             [tenants.attacker]\nkey_hashes = {}\n[tenants.other]\nkey_hashes = [\"{other_hash}\"]\n",
            json!(hashes)
        );
        let file = directory.path().join("loomline.toml");
        std::fs::write(&file, config).unwrap();
        let data = directory.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let log = std::fs::File::create(directory.path().join("server.log")).unwrap();
        let mut child = Command::new(program())
            .arg("--data")
            .arg(&data)
            .args(["serve", "--listen", "127.0.0.1:0", "--config"])
            .arg(&file)
            .env("LOOMLINE_LOG", "warn,audit=off")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines
            .find_map(|line| {
                let line = line.unwrap();
                Some(line.strip_prefix("listening on http://")?.parse().unwrap())
            })
            .expect("the server ended before it listened");
        std::thread::spawn(move || for _ in lines {});
        Self {
            child,
            address,
            keys,
            other,
            directory,
        }
    }

    /// What the process takes.
    pub(crate) fn probe(&self) -> Probe {
        Probe {
            process: Path::new("/proc").join(self.child.id().to_string()),
            log: self.directory.path().join("server.log"),
        }
    }

    /// The resident memory, in MiB.
    pub(crate) fn rss(&self) -> u64 {
        self.probe().rss()
    }

    /// The number of open descriptors.
    pub(crate) fn descriptors(&self) -> usize {
        self.probe().descriptors()
    }

    /// Whether no event stream is open and no run executes, as `/metrics` has it.
    pub(crate) fn is_at_rest(&self) -> bool {
        let answer = wire::ask(self.address, "GET", "/metrics", &self.other, None);
        let is_zero = |name: &str| {
            let figure = answer.body.lines().find_map(|line| line.strip_prefix(name));
            figure.is_some_and(|value| value.trim() == "0")
        };
        is_zero("loomline_open_streams ") && is_zero("loomline_running_executions ")
    }

    /// A request of the attacker.
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let text = body.map(Value::to_string);
        wire::ask(self.address, method, path, &self.keys[0], text.as_deref())
    }

    /// A request of the attacker that must succeed.
    pub(crate) fn ok(&self, method: &str, path: &str, body: Option<&Value>) -> String {
        let answer = self.ask(method, path, body);
        let status = answer.status;
        assert!((200..300).contains(&status), "{method} {path}: {answer:?}");
        answer.body
    }
}

/// Reads what a process takes.
pub(crate) struct Probe {
    process: PathBuf,
    log: PathBuf,
}

impl Probe {
    /// The resident memory, in MiB.
    pub(crate) fn rss(&self) -> u64 {
        let status = std::fs::read_to_string(self.process.join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let Some(line) = line else {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            panic!("the server is gone: {log}");
        };
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        kib / 1024
    }

    /// The number of open descriptors.
    pub(crate) fn descriptors(&self) -> usize {
        let open = std::fs::read_dir(self.process.join("fd"));
        open.map_or(0, Iterator::count)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! The real binary, started and killed as a user's machine would.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running `loomline serve`.
pub(crate) struct Server {
    child: Child,
    pub(crate) base: String,
}

impl Server {
    /// Starts the server over a data directory and waits until it listens.
    pub(crate) fn start(
        data: &Path,
        config: Option<&Path>,
        variables: &[(String, String)],
    ) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loomline"));
        command.args(Self::arguments(data));
        if let Some(config) = config {
            command.arg("--config").arg(config);
        }
        command.envs(variables.iter().cloned());
        Self::spawn(command, data)
    }

    /// Starts a program that may be of another version.
    #[cfg(feature = "postgres")]
    pub(crate) fn start_program(program: &Path, data: &Path, config: &Path) -> Self {
        let mut command = Command::new(program);
        command.args(Self::arguments(data));
        command.arg("--config").arg(config);
        Self::spawn(command, data)
    }

    /// Starts a server that a write beyond the largest size of a file does not end.
    #[cfg(target_os = "linux")]
    pub(crate) fn ignoring_size_signals(data: &Path) -> Self {
        let mut command = Command::new("sh");
        command
            .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
            .arg(env!("CARGO_BIN_EXE_loomline"))
            .args(Self::arguments(data));
        Self::spawn(command, data)
    }

    /// Starts a server with limits that a line of the shell sets.
    #[cfg(target_os = "linux")]
    pub(crate) fn with_limits(data: &Path, limits: &str) -> Self {
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("{limits}; exec \"$@\""), "sh"])
            .arg(env!("CARGO_BIN_EXE_loomline"))
            .args(Self::arguments(data));
        Self::spawn(command, data)
    }

    fn arguments(data: &Path) -> [&std::ffi::OsStr; 5] {
        let [flag, serve, listen, address] =
            ["--data", "serve", "--listen", "127.0.0.1:0"].map(AsRef::as_ref);
        [flag, data.as_os_str(), serve, listen, address]
    }

    fn spawn(mut command: Command, data: &Path) -> Self {
        // Its log goes beside its data, to be read when a test fails.
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(data.join("server.log"))
            .unwrap();
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(log)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let base = loop {
            let line = lines
                .next()
                .expect("the server ended before it listened")
                .unwrap();
            if let Some(base) = line.strip_prefix("listening on ") {
                break base.to_owned();
            }
        };
        std::thread::spawn(move || for _ in lines {});
        Self { child, base }
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the process with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends the process as an operator does: with SIGTERM, and waits.
    pub(crate) fn stop(&mut self) {
        let pid = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "the server stopped with {status}");
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let signal = format!("-{name}");
        Command::new("kill").args([&signal, &pid]).status().unwrap();
    }

    /// Waits at most a minute until the process ends.
    pub(crate) fn ended(&mut self) -> std::process::ExitStatus {
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "the server does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Number of file descriptors that it has open.
    #[cfg(target_os = "linux")]
    pub(crate) fn open_descriptors(&self) -> usize {
        let directory = format!("/proc/{}/fd", self.pid());
        std::fs::read_dir(directory).unwrap().count()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub(crate) fn get(&self, path: &str) -> Result<Value, ureq::Error> {
        let mut response = agent()
            .get(self.url(path))
            .header("accept", "application/json")
            .call()?;
        let text = response
            .body_mut()
            .with_config()
            .limit(1 << 30)
            .read_to_string()?;
        Ok(serde_json::from_str(&text).unwrap())
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value, ureq::Error> {
        let mut response = agent()
            .post(self.url(path))
            .header("content-type", "application/json")
            .send(body.to_string())?;
        Ok(serde_json::from_str(&response.body_mut().read_to_string()?).unwrap_or_default())
    }

    /// Waits until no execution of the thread runs.
    pub(crate) fn rest(&self, key: &str) {
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            let thread = self.get(&format!("/api/v1/threads/{key}")).unwrap();
            if thread["status"] != "streaming" {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "thread {key} is still running: {thread}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until the log of a thread has such an event.
    pub(crate) fn until(&self, key: &str, is_it: impl Fn(&Value) -> bool) {
        let deadline = Instant::now() + Duration::from_mins(1);
        while !self.log(key).iter().any(&is_it) {
            assert!(
                Instant::now() < deadline,
                "the event does not come to thread {key}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The whole log of a thread.
    pub(crate) fn log(&self, key: &str) -> Vec<Value> {
        let mut all: Vec<Value> = Vec::new();
        loop {
            let after = all
                .last()
                .and_then(|event| event["seq"].as_u64())
                .unwrap_or(0);
            let page = self
                .get(&format!(
                    "/api/v1/threads/{key}/events?after={after}&limit=1000"
                ))
                .unwrap();
            let events = page["events"].as_array().cloned().unwrap();
            if events.is_empty() {
                return all;
            }
            all.extend(events);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How long a request may take.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) fn agent() -> ureq::Agent {
    agent_for(PATIENCE)
}

/// An agent whose requests take at most this time.
pub(crate) fn agent_for(time: Duration) -> ureq::Agent {
    ureq::Agent::config_builder()
        .timeout_global(Some(time))
        .build()
        .into()
}

/// The parts of an event id: the last stored event, and the number of chunks after it.
pub(crate) fn position(id: &str) -> (u64, u64) {
    let mut parts = id.split('.');
    let seq = parts.next().unwrap().parse().unwrap();
    let n_ahead = parts.nth(1).map_or(0, |part| part.parse().unwrap());
    (seq, n_ahead)
}

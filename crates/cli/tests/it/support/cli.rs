//! The binary, run as a user runs it.

use super::server::Server;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use timeline::{Event, Record, Seq};

/// A directory of one's own, with the data in it.
pub(crate) struct Home {
    directory: tempfile::TempDir,
    config: Option<PathBuf>,
    variables: Vec<(String, String)>,
}

/// What a command did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Each line of the output, which is JSON.
    pub(crate) fn json(&self) -> Vec<Value> {
        let read = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
        };
        self.out.lines().map(read).collect()
    }
}

impl Home {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            config: None,
            variables: Vec::new(),
        }
    }

    /// A home whose model says what the script says.
    pub(crate) fn scripted(script: &Value) -> Self {
        let mut home = Self::new();
        let script = home.file("script.json", &script.to_string());
        let script = script.display();
        home.configure(&format!(
            "[models.m]\nprovider = \"scripted\"\nscript = \"{script}\"\n[agents.x]\nmodel = \"m\"\ntools = [\"compute\"]\n"
        ));
        home
    }

    /// Gives the commands and servers that follow a configuration.
    pub(crate) fn configure(&mut self, text: &str) {
        self.config = Some(self.file("loomline.toml", text));
    }

    /// Gives the commands and servers that follow a variable.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.into(), value.into()));
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file beside the data.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn data(&self) -> PathBuf {
        let data = self.path("data");
        std::fs::create_dir_all(&data).unwrap();
        data
    }

    pub(crate) fn server(&self) -> Server {
        Server::start(&self.data(), self.config.as_deref(), &self.variables)
    }

    /// Starts a server, and forgets the configuration: the commands that follow have none.
    pub(crate) fn server_of_its_own(&mut self) -> Server {
        let server = self.server();
        self.config = None;
        server
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.command_at(&self.path("data"), arguments)
    }

    fn command_at(&self, data: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loomline"));
        for name in [
            "CONFIG",
            "DATA",
            "KEY",
            "LISTEN",
            "LOG",
            "LOG_FORMAT",
            "SERVER",
        ] {
            command.env_remove(format!("LOOMLINE_{name}"));
        }
        command.arg("--data").arg(data).args(arguments);
        if let Some(config) = &self.config {
            command.arg("--config").arg(config);
        }
        command.envs(self.variables.iter().cloned());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        ran(self.command(arguments).spawn().unwrap())
    }

    /// Runs a command on other data, which is to succeed; gives its output.
    #[cfg(unix)]
    pub(crate) fn ok_at(&self, data: &Path, arguments: &[&str]) -> String {
        let ran = ran(self.command_at(data, arguments).spawn().unwrap());
        assert_eq!(ran.code, 0, "{arguments:?}: {ran:?}");
        ran.out
    }

    /// Runs a command that is to succeed; gives its output.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {ran:?}");
        ran.out
    }

    /// Runs a command that reads what it is given.
    pub(crate) fn feed(&self, arguments: &[&str], input: &str) -> Ran {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            // A command may end before it has read everything.
            scope.spawn(move || stdin.write_all(input.as_bytes()));
            ran(child)
        })
    }

    /// Runs a command as if a terminal with colours read it.
    pub(crate) fn in_colour(&self, arguments: &[&str]) -> Ran {
        let mut command = self.command(arguments);
        ran(command.env("CLICOLOR_FORCE", "1").spawn().unwrap())
    }

    /// Starts a command whose output is read line by line.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Running {
        let mut child = self.command(arguments).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let err = BufReader::new(child.stderr.take().unwrap());
        Running {
            child,
            out: Some(out),
            err: Some(err),
        }
    }

    /// The log of a thread, checked to be one.
    pub(crate) fn log(&self, key: &str) -> Vec<Record> {
        let ran = self.run(&["tail", key, "--no-follow"]);
        records(&ran.json())
    }
}

/// A command that has not ended.
pub(crate) struct Running {
    child: Child,
    out: Option<BufReader<std::process::ChildStdout>>,
    err: Option<BufReader<std::process::ChildStderr>>,
}

impl Running {
    /// The next line of the output.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.as_mut().unwrap().read_line(&mut line).unwrap();
        line
    }

    /// The next line on standard error that has these words.
    pub(crate) fn told(&mut self, words: &str) -> String {
        let mut all = String::new();
        loop {
            let start = all.len();
            let n_read = self.err.as_mut().unwrap().read_line(&mut all).unwrap();
            assert!(n_read > 0, "the command has ended; it said {all:?}");
            if all[start..].contains(words) {
                return all.split_off(start);
            }
        }
    }

    /// Waits until a signal no longer ends the process at once.
    #[cfg(target_os = "linux")]
    pub(crate) fn handles(&self, signal: u32) {
        let status = format!("/proc/{}/status", self.child.id());
        let handled = || {
            let text = std::fs::read_to_string(&status).unwrap();
            let mask = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            u64::from_str_radix(mask.unwrap().trim(), 16).unwrap()
        };
        let deadline = Instant::now() + Duration::from_mins(1);
        while handled() & (1 << (signal - 1)) == 0 {
            assert!(Instant::now() < deadline, "the signal is not handled");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends a signal, by its name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &pid])
            .status();
        assert!(sent.unwrap().success());
    }

    /// The next bytes of the output.
    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.out.as_mut().unwrap().read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Closes the output's other end and waits.
    pub(crate) fn close(mut self) -> Ran {
        self.out = None;
        let err = reading(self.err.take().unwrap());
        let code = ended(&mut self.child).unwrap_or_else(|| panic!("the command does not end"));
        let (out, err) = (String::new(), err.join().unwrap());
        Ran { code, out, err }
    }
}

impl Drop for Running {
    /// SIGKILL, if it still runs.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ran(mut child: Child) -> Ran {
    let out = reading(child.stdout.take().unwrap());
    let err = reading(child.stderr.take().unwrap());
    let code = ended(&mut child);
    let (out, err) = (out.join().unwrap(), err.join().unwrap());
    let code = code.unwrap_or_else(|| panic!("the command does not end; it said {out:?}"));
    Ran { code, out, err }
}

/// Waits for the end of a command, but not for ever: then it is killed.
fn ended(child: &mut Child) -> Option<i32> {
    let deadline = Instant::now() + Duration::from_mins(1);
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status.code().unwrap_or(-1));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    None
}

fn reading(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    })
}

/// Events as the binary shows them, as records.
pub(crate) fn records(events: &[Value]) -> Vec<Record> {
    let read = |event: &Value| Record {
        seq: Seq(event["seq"].as_u64().unwrap()),
        at: event["at"].as_str().unwrap().parse().unwrap(),
        event: Event::decode(&event.to_string()).unwrap(),
    };
    events.iter().map(read).collect()
}

/// A file beside the tests.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

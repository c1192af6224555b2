//! Servers that run as child processes.

use super::config::{McpLimits, McpStdio};
use super::text::clipped;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use secrecy::ExposeSecret;
use std::io;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader, ReadBuf};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The environment variables that the child inherits. Programs need them to find others and the
/// user's files; none is secret.
const INHERITED: [&str; 8] = [
    "HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER",
];

/// The time that a child may take to end after each request to end.
const GRACE: Duration = Duration::from_secs(2);

/// Maximum length of a line of a child's standard error that is logged in one piece, in bytes.
const STDERR_LINE_BYTES: usize = 1024;

/// The number of SIGTERM on all POSIX systems.
#[cfg(unix)]
const SIGTERM: i32 = 15;

/// Why a connection ended, if the transport knows a reason.
pub(super) type Ending = Arc<OnceLock<String>>;

/// A child process that uses the protocol on its standard input and output.
pub(super) struct StdioTransport {
    inner: AsyncRwTransport<RoleClient, BoundedLines, ChildStdin>,
    leash: Leash,
    /// The task that waits for the child. If it is aborted, the child is killed.
    _keeper: JoinSet<()>,
}

/// The signals between the transport and the task that owns the child.
#[derive(Clone, Default)]
struct Leash {
    /// Requests the end of the child.
    end: CancellationToken,
    /// Requests its immediate end.
    kill: CancellationToken,
    /// It has ended.
    ended: CancellationToken,
}

impl StdioTransport {
    /// Starts the child; also returns its standard error.
    pub(super) fn spawn(
        config: &McpStdio,
        limits: &McpLimits,
        ending: Ending,
    ) -> io::Result<(Self, ChildStderr)> {
        let mut command = CommandWrap::with_new(&config.command, |command| {
            command
                .args(&config.args)
                .env_clear()
                .envs(inherited())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            for (name, value) in &config.env {
                command.env(name, value.expose_secret());
            }
            if let Some(cwd) = &config.cwd {
                command.current_dir(cwd);
            }
        });
        command.wrap(KillOnDrop);
        #[cfg(unix)]
        command.wrap(process_wrap::tokio::ProcessGroup::leader());
        let mut child = command.spawn()?;
        let (Some(input), Some(output), Some(stderr)) = (
            child.stdin().take(),
            child.stdout().take(),
            child.stderr().take(),
        ) else {
            return Err(io::Error::other("the child has no pipes"));
        };
        let leash = Leash::default();
        let lines = BoundedLines {
            output,
            n_open: 0,
            limit: limits.max_message_bytes,
            ending: Arc::clone(&ending),
            kill: leash.kill.clone(),
        };
        let inner =
            AsyncRwTransport::new(lines, input).with_max_line_length(limits.max_message_bytes);
        let mut keeper = JoinSet::new();
        keeper.spawn(Child(Some(child)).keep(leash.clone(), ending));
        let transport = Self {
            inner,
            leash,
            _keeper: keeper,
        };
        Ok((transport, stderr))
    }
}

/// Waits briefly for the child to end by itself, to learn its exit status.
async fn a_little(ended: &CancellationToken) {
    // If it does not end, it is ended when the transport is closed.
    let _ = tokio::time::timeout(GRACE, ended.cancelled()).await;
}

/// A child that is killed with its process group when this is dropped.
struct Child(Option<Box<dyn ChildWrapper>>);

impl Child {
    /// Waits for the child, and ends it on request.
    async fn keep(mut self, leash: Leash, ending: Ending) {
        if let Some(child) = &mut self.0 {
            let status = tokio::select! {
                status = child.wait() => Some(status),
                () = leash.kill.cancelled() => None,
                () = leash.end.cancelled() => None,
            };
            let status = match status {
                Some(status) => status,
                None if leash.kill.is_cancelled() => killed(child).await,
                None => ended(child).await,
            };
            if let Ok(status) = status {
                // What it started and left behind would hold its pipes for ever.
                let _ = child.start_kill();
                // The first to know keeps the word: a broken limit comes before its consequence.
                let _ = ending.set(format!("its process ended, {status}"));
                self.0 = None;
            }
        }
        leash.ended.cancel();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // It may have ended by itself just now. Who reaps it is tokio.
            let _ = child.start_kill();
        }
    }
}

/// Ends a child whose input was closed: waits first, then sends `SIGTERM`, then kills it.
async fn ended(child: &mut Box<dyn ChildWrapper>) -> io::Result<ExitStatus> {
    if let Ok(status) = tokio::time::timeout(GRACE, child.wait()).await {
        return status;
    }
    #[cfg(unix)]
    if child.signal(SIGTERM).is_ok()
        && let Ok(status) = tokio::time::timeout(GRACE, child.wait()).await
    {
        return status;
    }
    killed(child).await
}

async fn killed(child: &mut Box<dyn ChildWrapper>) -> io::Result<ExitStatus> {
    child.start_kill()?;
    child.wait().await
}

#[expect(
    clippy::disallowed_methods,
    reason = "a child gets these few variables and no others; nothing here depends on them"
)]
fn inherited() -> impl Iterator<Item = (&'static str, std::ffi::OsString)> {
    let values = INHERITED
        .into_iter()
        .map(|name| (name, std::env::var_os(name)));
    values.filter_map(|(name, value)| Some((name, value?)))
}

impl Transport<RoleClient> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sent = self.inner.send(item);
        let ended = self.leash.ended.clone();
        async move {
            let sent = sent.await;
            if sent.is_err() {
                a_little(&ended).await;
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.inner.receive().await;
        if message.is_none() {
            a_little(&self.leash.ended).await;
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        let closed = self.inner.close().await;
        self.leash.end.cancel();
        self.leash.ended.cancelled().await;
        closed
    }
}

/// A child's standard output, which fails when a line is too long.
struct BoundedLines {
    output: ChildStdout,
    /// Bytes since the last newline.
    n_open: usize,
    limit: usize,
    ending: Ending,
    kill: CancellationToken,
}

impl AsyncRead for BoundedLines {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.output).poll_read(cx, buffer);
        if !matches!(read, Poll::Ready(Ok(()))) {
            return read;
        }
        let new = buffer.filled().get(before..).unwrap_or_default();
        for piece in new.split_inclusive(|byte| *byte == b'\n') {
            self.n_open += piece.len();
            if self.n_open > self.limit {
                let limit = self.limit;
                let _ = self.ending.set(format!(
                    "it sent a message of more than {limit} bytes and was disconnected"
                ));
                self.kill.cancel();
                return Poll::Ready(Err(io::Error::other("a line is too long")));
            }
            if piece.ends_with(b"\n") {
                self.n_open = 0;
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// Logs a child's standard error line by line, until it is closed. A line that is too long is
/// logged in pieces.
pub(super) async fn log_stderr(server: Arc<str>, stderr: ChildStderr, last: Arc<LastLine>) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    let most = u64::try_from(STDERR_LINE_BYTES).unwrap_or(u64::MAX);
    loop {
        line.clear();
        match (&mut reader).take(most).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if !text.is_empty() {
            tracing::debug!(%server, line = text, "an MCP server's standard error");
            last.set(text);
        }
    }
}

/// The last line of a child's standard error, which usually has the reason of its failure.
#[derive(Default)]
pub(super) struct LastLine(std::sync::Mutex<String>);

impl LastLine {
    fn set(&self, text: &str) {
        let mut last = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *last = clipped(text, 256);
    }

    pub(super) fn get(&self) -> String {
        let last = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        last.clone()
    }
}

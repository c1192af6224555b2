//! Why a command failed, and what to do.

use crate::signal::Signal;
use crate::work::Totals;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// A file or stream failed.
    #[error("can't {what}")]
    Io {
        /// The failed operation.
        what: String,
        #[source]
        source: std::io::Error,
    },
    /// The reader of the output has gone. That is no failure.
    #[error("the reader of the output has gone")]
    BrokenPipe,
    /// The configuration is wrong.
    #[error("the configuration {0} is not valid")]
    Config(String, #[source] server::ConfigError),
    /// The configuration was to be read again.
    #[error("the keys stay as they are")]
    Reload(#[source] Box<Self>),
    /// A changed configuration of tenants is refused.
    #[error(transparent)]
    Tenants(server::TenantsRefused),
    /// The new key of a store is none.
    #[error("{variable} has no key")]
    NewKey {
        /// The environment variable.
        variable: String,
        #[source]
        source: server::config::NoStoreKey,
    },
    /// The store can't be opened.
    #[error("can't open the store")]
    Open(#[source] server::OpenError),
    /// There is no store to look at.
    #[error("there are no threads in {directory} yet; `loomline run \"hello\"` makes one")]
    NoStore {
        /// The data directory.
        directory: PathBuf,
    },
    /// The command works on a store in a file, and the store is a database.
    #[error(
        "[store] names a PostgreSQL database, and this command works on a store in a file; {instead}"
    )]
    StoreIsDatabase {
        /// The way for a database.
        instead: &'static str,
    },
    /// A backup or a restore failed.
    #[error(transparent)]
    Backup(#[from] server::backup::BackupError),
    /// The export or import of a tenant failed.
    #[error(transparent)]
    Transfer(#[from] server::transfer::TransferError),
    /// The runtime refused.
    #[error(transparent)]
    Runtime(#[from] runtime::RuntimeError),
    /// The events of a thread break a rule of the log.
    #[error("the log of the thread {key:?} is wrong; `loomline doctor` checks the store")]
    Misfit {
        /// The key of the thread.
        key: String,
        #[source]
        source: timeline::Misfit,
    },
    /// An export or import failed.
    #[error(transparent)]
    Exchange(#[from] server::ExchangeError),
    /// The server failed.
    #[error("the server stopped")]
    Serve(#[source] server::ServeError),
    /// Spans can't be sent.
    #[error(transparent)]
    Telemetry(#[from] server::telemetry::TelemetryError),
    /// The command line asks for what doesn't go together.
    #[error("{what}")]
    Usage {
        /// The conflict.
        what: String,
    },
    /// A document is not what it should be.
    #[error("{spot} can't be read as {what}")]
    Unreadable {
        /// The file, and the line where each is a document.
        spot: String,
        /// The expected format.
        what: &'static str,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A text is larger than allowed.
    #[error("{spot} has more than {limit} bytes; --max-bytes allows more")]
    TooLarge {
        /// The file, and the line where each is a document.
        spot: String,
        /// How many are allowed.
        limit: usize,
    },
    /// A text is no text.
    #[error("{spot} is not UTF-8: byte {at}, counted from 0, is wrong")]
    NotUtf8 {
        /// The file, and the line where each is a document.
        spot: String,
        /// The first byte that is wrong.
        at: usize,
    },
    /// A document has no canonical form.
    #[error("{spot} has no canonical form")]
    Canonical {
        /// The file, and the line where each is a document.
        spot: String,
        #[source]
        source: thread::canonical::CanonicalError,
    },
    /// The target has no place for something, and that was not to be.
    #[error("{spot}: {n_losses} loss{}, and --strict allows none; it is not written", if *n_losses == 1 { "" } else { "es" })]
    Lossy {
        /// The file, and the line where each is a document.
        spot: String,
        /// How much.
        n_losses: usize,
    },
    /// A document can't be converted to the requested version.
    #[error("{spot} can't be converted to this version")]
    Untranslated {
        /// The file, and the line where each is a document.
        spot: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A diff is not one of this document.
    #[error("the diff does not fit {spot}")]
    Unpatched {
        /// The file of the document.
        spot: String,
        #[source]
        source: thread::PatchError,
    },
    /// The documents to be merged are not of one thread.
    #[error("these documents are not branches of one thread")]
    Unrelated(#[from] thread::merge::Unrelated),
    /// The two branches don't agree.
    #[error("{n_conflicts} conflict{}", if *n_conflicts == 1 { "" } else { "s" })]
    Conflicts {
        /// How often.
        n_conflicts: usize,
    },
    /// A document has no such agent.
    #[error("{spot} has no agent {agent:?}; there are: {known}")]
    NoAgent {
        /// The file, and the line where each is a document.
        spot: String,
        /// The id or name.
        agent: String,
        /// The agents that it has.
        known: String,
    },
    /// More than one agent of a document has this name.
    #[error("{spot} has more than one agent of the name {agent:?}; give its id")]
    AgentUnclear {
        /// The file, and the line where each is a document.
        spot: String,
        /// The name.
        agent: String,
    },
    /// Some lines are bad.
    #[error("of {} lines, {} can't be read and {} are {refused}", totals.documents, totals.failed, totals.refused)]
    Lines {
        /// How many.
        totals: Totals,
        /// The word for readable lines that were refused.
        refused: &'static str,
    },
    /// A thread of the program ended early.
    #[error("a worker stopped; this is a fault of loomline")]
    WorkerStopped,
    /// Two documents don't mean the same; they were printed already.
    #[error("the documents differ")]
    Differ,
    /// A document is not valid.
    #[error("{n_errors} error{}", if *n_errors == 1 { "" } else { "s" })]
    Invalid {
        /// How many.
        n_errors: usize,
    },
    /// There is no such thread.
    #[error("there is no thread with key {key:?}; `loomline threads list` shows what there is")]
    NotFound {
        /// The key.
        key: String,
    },
    /// A thread has no such run.
    #[error("thread {key:?} has no run {id:?}; `loomline trace {key} --all` lists its runs")]
    NoRun {
        /// The key of the thread.
        key: String,
        /// The id.
        id: String,
    },
    /// No server uses the data directory.
    #[error("no server uses {directory}; `loomline serve` starts one")]
    NoServer {
        /// The data directory.
        directory: PathBuf,
    },
    /// The server has no pages.
    #[error(
        "the running server has no web interface: `[web]` turns it off, or the server is of an earlier version"
    )]
    NoPages,
    /// The browser can't be opened.
    #[error("can't open a browser; open {url} yourself")]
    NoBrowser {
        /// The address of the page.
        url: String,
        #[source]
        source: std::io::Error,
    },
    /// No agent of the configuration has this name.
    #[error("there is no agent {agent:?}; `loomline agents list` shows what there is")]
    UnknownAgent {
        /// The name.
        agent: String,
    },
    /// The run was left before it ended.
    #[error("interrupted before the answer was complete; continue with --thread {key}")]
    Interrupted {
        /// The thread's key.
        key: String,
        /// The signal that ended it.
        signal: Signal,
    },
    /// The user did not confirm.
    #[error("{what}")]
    NotConfirmed {
        /// The refused action, and the option that confirms it.
        what: String,
    },
    /// A server gives no answer.
    #[error("the request to the server at {server} failed")]
    Unreached {
        /// Its URL.
        server: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A server asks for a key.
    #[error("the server asks for a valid key; put it into the variable LOOMLINE_KEY")]
    NoKey,
    /// A server refuses.
    #[error("the server refuses: {message}")]
    Refused {
        /// Its stable code.
        code: String,
        /// Why.
        message: String,
    },
    /// A server has ended a stream that was not over.
    #[error(
        "the server has stopped sending; `loomline tail {key}` shows the rest once it runs again"
    )]
    StreamEnded {
        /// The thread's key.
        key: String,
    },
    /// The HTTP client can't be set up.
    #[error("the client for servers can't be set up")]
    Client {
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Someone else listens there.
    #[error(
        "{address} is in use by another program; stop it, or give another address with --listen"
    )]
    AddressInUse {
        /// The address.
        address: SocketAddr,
    },
    /// A text begins with what JSON does not allow.
    #[error(
        "{spot} begins with a byte order mark, which JSON does not allow; save it as UTF-8 without one"
    )]
    ByteOrderMark {
        /// The file.
        spot: String,
    },
    /// A key can't be made.
    #[error("can't make a key")]
    Key(#[from] server::auth::NoRandomness),
    /// The agent did not finish.
    #[error("the run ended early: {reason}")]
    RunFailed {
        /// Why.
        reason: String,
    },
    /// The chain of a log is broken.
    #[error("the chain of thread {thread} does not hold; restore a backup")]
    BrokenChain {
        /// The thread.
        thread: String,
    },
    /// Something that was to be purged is still there.
    #[error("the purge is not complete: {why}")]
    NotPurged {
        /// Why.
        why: String,
    },
    /// The data of a tenant is not in another database.
    #[cfg(feature = "postgres")]
    #[error("the tenant is not moved: {why}")]
    NotMoved {
        /// Why.
        why: String,
    },
    /// A file is no seal, or a key can't sign one.
    #[error("can't use {file}: {why}")]
    Seal {
        /// The file.
        file: String,
        /// Why.
        why: String,
    },
    /// The doctor found something.
    #[error("{n_findings} finding{}", if *n_findings == 1 { "" } else { "s" })]
    Unhealthy {
        /// How many.
        n_findings: usize,
    },
}

impl CliError {
    /// An error of a file or stream.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        move |source| {
            if source.kind() == std::io::ErrorKind::BrokenPipe {
                return Self::BrokenPipe;
            }
            Self::Io {
                what: what.into(),
                source,
            }
        }
    }
}

//! Why a command failed, and what to do.

use std::path::PathBuf;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// A file or stream failed.
    #[error("can't {what}")]
    Io {
        /// What was to be done.
        what: String,
        #[source]
        source: std::io::Error,
    },
    /// Whoever read our output has gone; nothing is wrong.
    #[error("the reader of the output has gone")]
    BrokenPipe,
    /// The configuration is wrong.
    #[error("the configuration {0} is not valid")]
    Config(String, #[source] server::ConfigError),
    /// The store can't be opened.
    #[error("can't open the store")]
    Open(#[source] server::OpenError),
    /// There is no store to look at.
    #[error("there are no threads in {directory} yet; `loomline run \"hello\"` makes one")]
    NoStore {
        /// The data directory.
        directory: PathBuf,
    },
    /// The runtime refused.
    #[error(transparent)]
    Runtime(#[from] runtime::RuntimeError),
    /// An export or import failed.
    #[error(transparent)]
    Exchange(#[from] server::ExchangeError),
    /// The server failed.
    #[error("the server stopped")]
    Serve(#[source] server::ServeError),
    /// A file is no document.
    #[error("{file} is no ThreadProtocol document")]
    Decode {
        /// The file.
        file: PathBuf,
        #[source]
        source: thread::DecodeError,
    },
    /// A document has no canonical form.
    #[error("the document has no canonical form")]
    Canonical(#[source] thread::canonical::CanonicalError),
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
    /// A key can't be made.
    #[error("can't make a key")]
    Key(#[from] server::auth::NoRandomness),
    /// The agent did not finish.
    #[error("the run ended early: {reason}")]
    RunFailed {
        /// Why.
        reason: String,
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

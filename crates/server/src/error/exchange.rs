//! Errors of importing and exporting threads.

use interop::convert::ConvertError;
use interop::document::ImportError;
use runtime::RuntimeError;
use thread::DecodeError;
use tokio::task::JoinError;

/// Why a thread could not be imported or exported.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The runtime refused or failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The text is not JSON, or not a document.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The text does not have the named format.
    #[error(transparent)]
    Read(#[from] ConvertError),
    /// The document can't become a thread.
    #[error("the document can't become a thread")]
    Import(#[from] ImportError),
    /// The conversion broke off.
    #[error("the conversion broke off")]
    Broken(#[from] JoinError),
}

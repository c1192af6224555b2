//! Why threads can't be imported or exported.

use interop::convert::ConvertError;
use interop::document::ImportError;
use runtime::RuntimeError;
use thread::DecodeError;
use tokio::task::JoinError;

/// Why a thread could not be taken in or given out.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The runtime refused or failed.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The text is no JSON, or no document.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The text is not in the form that it is said to be in.
    #[error(transparent)]
    Read(#[from] ConvertError),
    /// The document can't become a thread.
    #[error("the document can't become a thread")]
    Import(#[from] ImportError),
    /// The conversion broke off.
    #[error("the conversion broke off")]
    Broken(#[from] JoinError),
}

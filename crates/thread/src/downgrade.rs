//! Conversion of documents to an earlier version (0.0.4 "Backward Compatibility").
//!
//! Data without a place in the earlier version is dropped and reported: for 0.0.3 interrupted turns
//! and `completion_status`, for 2.0.0 also `relationships`, `client_metadata` and `content_ref`.
//! Events get their former names back. Unknown members stay. A document that is upgraded again
//! differs from the original only in what the report lists.

mod steps;

use crate::document::{Thread, Version};
use crate::versioned::{Changes, UnknownVersion, Versioned, known, version_of};

/// The reason why a document can't be downgraded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DowngradeError {
    /// The document's version or the requested version is unknown.
    #[error(transparent)]
    UnknownVersion(#[from] UnknownVersion),
    /// 1.0.0 is read and never written.
    #[error("version 1.0.0 is not written; the earliest that is, is 2.0.0")]
    ReadOnly,
    /// The document's version is earlier than the requested one.
    #[error("version {from} is earlier than {to}; upgrade the document instead")]
    Forward {
        /// The document's version.
        from: Version,
        /// The requested version.
        to: Version,
    },
}

/// Converts the document to the version `to`, which is its own or an earlier one, and lists the
/// changes.
///
/// ```
/// use loomline_thread::{ChangeKind, Thread, Version, downgrade, upgrade};
///
/// let thread = Thread::decode(r#"{"version":"0.0.4","turns":[
///   {"turn_type":"agent","completion_status":"interrupted","messages":[]},
///   {"turn_type":"user","client_metadata":{"ui:theme":"dark"},"parts":[],"x":1.0}]}"#)?;
/// let old = downgrade(&thread, &Version::V2_0_0)?;
/// assert_eq!(old.thread.encode(),
///     r#"{"version":"2.0.0","turns":[{"turn_type":"user","parts":[],"x":1.0}]}"#);
/// let dropped: Vec<_> = old.losses().map(|change| change.pointer.as_str()).collect();
/// assert_eq!(dropped, ["/turns/0", "/turns/1/client_metadata"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn downgrade(thread: &Thread, to: &Version) -> Result<Versioned, DowngradeError> {
    let from = version_of(thread)?;
    let to = known(to.clone())?;
    if to == Version::V1_0_0 {
        return Err(DowngradeError::ReadOnly);
    }
    if from < to {
        return Err(DowngradeError::Forward { from, to });
    }
    let mut thread = thread.clone();
    let mut changes = Changes::default();
    let passes = |step: Version| to <= step && step < from;
    let turns = thread.turns().len();
    let mut places: Vec<usize> = (0..turns).collect();
    if passes(Version::V0_0_3) {
        places = steps::to_0_0_3(&mut thread, &mut changes);
    }
    if passes(Version::V2_0_0) {
        steps::to_2_0_0(&mut thread, &mut changes, &places);
    }
    if from != to {
        thread.root_mut().insert("version", to.as_str());
    }
    Ok(Versioned {
        thread,
        changes: changes.0,
    })
}

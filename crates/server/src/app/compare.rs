//! Compares and checks the documents of threads.

use super::App;
use crate::error::ExchangeError;
use interop::document;
use interop::{Converted, Loss};
use runtime::TenantId;
use thread::canonical::{CanonicalError, ContentHash, InexactNumbers, inexact_numbers};
use thread::diff::Diff;
use thread::{CanonicalOptions, Change, DowngradeError, Profile, Thread, Version, Violation};
use tokio::task::spawn_blocking;

/// A thread's document in a version, and the result of its check.
#[derive(Debug)]
pub(crate) struct CheckedDocument {
    pub(crate) document: Thread,
    /// The data that the document or its version can't hold.
    pub(crate) losses: Vec<Loss>,
    /// The breaches of the rules; `None` without a check.
    pub(crate) violations: Option<Vec<Violation>>,
    pub(crate) hash: Result<ContentHash, CanonicalError>,
    pub(crate) inexact: Option<InexactNumbers>,
}

impl App {
    /// The differences between the documents of two threads.
    pub(crate) async fn diff(
        &self,
        tenant: &TenantId,
        (from, to): (&str, &str),
    ) -> Result<Diff, ExchangeError> {
        let from = self.whole(tenant, from).await?;
        let to = self.whole(tenant, to).await?;
        let diff = move || {
            let document = |transcript| document::to_strict_document(transcript).value;
            thread::diff::diff(&document(&from), &document(&to))
        };
        Ok(spawn_blocking(diff).await?)
    }

    /// The document of a thread in a version, with the result of its check.
    pub(crate) async fn checked(
        &self,
        tenant: &TenantId,
        key: &str,
        (to, profile): (Option<Version>, Option<Profile>),
    ) -> Result<Result<CheckedDocument, DowngradeError>, ExchangeError> {
        let transcript = self.whole(tenant, key).await?;
        let check = move || {
            let Converted { value, mut losses } = document::to_strict_document(&transcript);
            let mut document = value;
            if let Some(to) = to {
                let versioned = thread::downgrade(&document, &to)?;
                let dropped = versioned.losses().cloned();
                losses.extend(dropped.map(|Change { pointer, what, .. }| Loss { pointer, what }));
                document = versioned.thread;
            }
            let violations = profile.map(|profile| thread::validate(&document, profile));
            Ok(CheckedDocument {
                hash: thread::hash(&document, CanonicalOptions::default()),
                inexact: inexact_numbers(&document),
                document,
                losses,
                violations,
            })
        };
        Ok(spawn_blocking(check).await?)
    }
}

//! The documents behind the `json_url` of forms. Users choose these URLs, so the outbound guard fetches
//! them. The configuration must allow it.

use super::states::AitpStates;
use crate::config::Config;
use crate::error::render_error;
use crate::outbound::{Outbound, OutboundRequest};
use interop::aitp::{Field, Key, read_form_document};
use jiff::{SignedDuration, Timestamp};
use runtime::{RuntimeError, ThreadRow};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use timeline::ThreadId;

/// The longest document, in bytes.
const MAX_BYTES: usize = 256 * 1024;
/// Time limit for fetching one document.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How many redirects are followed.
const MAX_REDIRECTS: usize = 3;
/// Maximum number of documents fetched at once.
const MAX_AT_ONCE: usize = 4;
/// Time until a failed fetch is tried again.
const AGAIN_AFTER: SignedDuration = SignedDuration::from_mins(1);
/// Maximum number of failed documents to remember.
const MAX_FAILED: usize = 1_000;

/// The thread, the request and the URL of a document.
type Wanted = (ThreadId, Key, String);

/// Fetches the documents of forms.
pub(crate) struct Forms {
    outbound: Option<Outbound>,
    failed: Mutex<BTreeMap<Wanted, Timestamp>>,
}

impl Forms {
    /// Fetches forms if the configuration allows it.
    pub(crate) fn new(config: &Config) -> Self {
        let outbound = config.aitp.fetch_forms.then(|| {
            Outbound::new(config.outbound.clone())
                .inspect_err(|error| {
                    tracing::error!(
                        error = render_error(error),
                        "no documents of forms can be fetched"
                    );
                })
                .ok()
        });
        Self {
            outbound: outbound.flatten(),
            failed: Mutex::default(),
        }
    }

    /// Fetches the documents of a thread's open forms. If a fetch fails, the request remains as it is
    /// and accepts any fields.
    pub(crate) async fn fetch(
        &self,
        desks: &AitpStates,
        row: &ThreadRow,
        now: Timestamp,
    ) -> Result<(), RuntimeError> {
        let Some(outbound) = &self.outbound else {
            return Ok(());
        };
        let thread = &row.thread.id;
        let held = desks.at(thread, row.tail).await?;
        let wanted = held.get().map(|desk| desk.to_fetch(now));
        // Nobody waits for somebody else's server.
        drop(held);
        let wanted = wanted.unwrap_or_default().into_iter();
        let wanted = wanted.map(|(key, url)| (thread.clone(), key, url));
        let wanted = wanted.filter(|wanted| !self.has_failed(wanted, now));
        for wanted in wanted.take(MAX_AT_ONCE) {
            match document(outbound, &wanted.2).await {
                Ok(fields) => {
                    let mut held = desks.at(thread, row.tail).await?;
                    if let Some(desk) = held.get_mut() {
                        desk.fetched(&wanted.1, fields);
                    }
                }
                Err(why) => {
                    tracing::info!(%thread, request = %wanted.1, why, "a form has no document");
                    self.note(wanted, now);
                }
            }
        }
        Ok(())
    }

    fn has_failed(&self, wanted: &Wanted, now: Timestamp) -> bool {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let at = failed.get(wanted);
        at.is_some_and(|at| now.duration_since(*at) < AGAIN_AFTER)
    }

    fn note(&self, wanted: Wanted, now: Timestamp) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.len() >= MAX_FAILED {
            failed.clear();
        }
        failed.insert(wanted, now);
    }
}

/// The fields of a document, or the reason why there are none.
async fn document(outbound: &Outbound, url: &str) -> Result<Vec<Field>, String> {
    let request = OutboundRequest {
        max_bytes: MAX_BYTES,
        timeout: TIMEOUT,
        max_redirects: MAX_REDIRECTS,
        ..OutboundRequest::get(url)
    };
    let answer = outbound.send(request).await;
    let answer = answer.map_err(|error| render_error(&error))?;
    if !answer.status.is_success() {
        return Err(format!(
            "the answer has the status {}",
            answer.status.as_u16()
        ));
    }
    let document: Value =
        serde_json::from_slice(&answer.body).map_err(|_| "the answer is no JSON".to_owned())?;
    read_form_document(&document).map_err(|wrong| match wrong.first() {
        Some(first) => first.to_string(),
        None => "the document has no fields".to_owned(),
    })
}

//! The documents that forms lead to by their `json_url`. Whoever asks chose the address, so it is
//! fetched only through the outbound guard, and only where the configuration says so.

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
/// How long a document may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How many redirects are followed.
const MAX_REDIRECTS: usize = 3;
/// How many documents are fetched for one request.
const MAX_AT_ONCE: usize = 4;
/// A document that could not be had is not asked for again so soon.
const AGAIN_AFTER: SignedDuration = SignedDuration::from_mins(1);
/// How many documents that could not be had are remembered.
const MAX_FAILED: usize = 1_000;

/// Which document it is: of which request, and where.
type Wanted = (ThreadId, Key, String);

/// Fetches the documents of forms.
pub(crate) struct Forms {
    outbound: Option<Outbound>,
    failed: Mutex<BTreeMap<Wanted, Timestamp>>,
}

impl Forms {
    /// Fetches them where the configuration says so.
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

    /// Fetches what pending forms of a thread lead to. One that can't be had leaves its request as it
    /// is: it can be answered with any fields.
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

/// The fields of a document, or why there are none.
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

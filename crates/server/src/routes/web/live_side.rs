//! The parts of an open page other than its thread: the list of threads, the number of entries that wait, and
//! the inbox.

use super::inbox::{AllEntries, all_entries};
use super::pages::{read_rail, read_waiting};
use crate::auth::Caller;
use crate::error::ApiError;
use crate::routes::waiting::WaitingReader;
use crate::state::Api;
use futures_util::stream::BoxStream;
use runtime::ThreadChanges;
use std::collections::BTreeSet;
use std::time::Duration;
use web::{InboxFilter, Patch, RailThread};

/// Time in which changes are gathered.
const GATHERED: Duration = Duration::from_millis(250);
/// Time after which the page is brought up to date without a change: requests expire.
const EXPIRY: Duration = Duration::from_secs(20);
/// Maximum number of entries that a page says it shows.
const MAX_SHOWN: usize = 500;

/// The inbox that an open page shows.
pub(super) struct OpenInbox {
    filter: InboxFilter,
    /// The ids of the entries on the page.
    shown: BTreeSet<String>,
}

impl OpenInbox {
    /// The inbox of a page that shows these entries.
    pub(super) fn new(filter: InboxFilter, shown: &str) -> Self {
        let shown = shown.split_whitespace().take(MAX_SHOWN);
        Self {
            filter,
            shown: shown.map(str::to_owned).collect(),
        }
    }

    /// Shows these entries, and adds the patches that do it. If some may be missing, none is removed.
    fn show(&mut self, all: &AllEntries, patches: &mut Vec<Patch>) {
        let entries = &all.entries;
        let mut now: BTreeSet<String> = entries.iter().map(|entry| entry.id.clone()).collect();
        if all.is_partial {
            now.extend(self.shown.iter().cloned());
        }
        if now == self.shown {
            return;
        }
        for id in self.shown.difference(&now) {
            patches.extend(web::answered(id));
        }
        // From the end, so that the entry behind a new one is on the page.
        let mut behind = None;
        for entry in entries.iter().rev() {
            if !self.shown.contains(&entry.id) {
                patches.extend(entry.added(&self.filter, behind));
            }
            behind = Some(entry);
        }
        patches.push(web::inbox_state(now.len(), &self.filter));
        self.shown = now;
    }
}

/// An open page, without its thread.
pub(super) struct PageSide {
    pub(super) api: Api,
    pub(super) caller: Caller,
    /// The key of the thread that the page shows.
    pub(super) current: Option<String>,
    pub(super) inbox: Option<OpenInbox>,
}

/// The last state that a page was sent.
#[derive(Default)]
struct SentState {
    rail: Option<Vec<RailThread>>,
    waiting: Option<usize>,
}

impl PageSide {
    /// The patches of the page, from now on.
    pub(super) fn patches(mut self) -> BoxStream<'static, Result<Vec<Patch>, ApiError>> {
        // The subscription comes first, so no change falls between it and what is read.
        let mut changes: ThreadChanges = self
            .api
            .runtime(&self.caller.tenant)
            .thread_changes(&self.caller.tenant);
        Box::pin(async_stream::try_stream! {
            let mut reader = WaitingReader::new(&self.api, &self.caller);
            let mut sent = SentState::default();
            let mut is_changed = true;
            loop {
                let mut patches = Vec::new();
                let read = self.changed(&mut reader, &mut sent, (is_changed, &mut patches)).await;
                if !patches.is_empty() {
                    yield patches;
                }
                // The conversation of the page continues after an error; the next time tries again.
                let has_failed = read.is_err();
                if let Err(error) = read {
                    tracing::warn!(%error, "the list at the side can't be read");
                }
                is_changed = has_failed | tokio::select! {
                    is_open = changes.changed() => {
                        if !is_open {
                            return;
                        }
                        true
                    }
                    () = tokio::time::sleep(EXPIRY) => false,
                };
                tokio::time::sleep(GATHERED).await;
            }
        })
    }

    /// Adds the patches after a change of a thread, or after a time in which requests may have expired.
    async fn changed(
        &mut self,
        reader: &mut WaitingReader,
        sent: &mut SentState,
        (is_changed, patches): (bool, &mut Vec<Patch>),
    ) -> Result<(), ApiError> {
        if is_changed {
            let rail = read_rail(&self.api, &self.caller).await?;
            if sent.rail.as_ref() != Some(&rail) {
                patches.push(web::rail_patch(&rail, self.current.as_deref()));
                sent.rail = Some(rail);
            }
        }
        let waiting = read_waiting(reader).await?;
        if sent.waiting != Some(waiting) {
            patches.push(web::waiting_patch(waiting));
            sent.waiting = Some(waiting);
        }
        if let Some(inbox) = &mut self.inbox {
            match all_entries(reader, &inbox.filter).await? {
                Some(all) => inbox.show(&all, patches),
                // A page with later ones does not change by itself.
                None => patches.push(Patch::Reload),
            }
        }
        Ok(())
    }
}

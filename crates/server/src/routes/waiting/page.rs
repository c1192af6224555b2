//! Pages of pending calls and open requests.

use super::view::{WaitingKind, WaitingView};
use crate::auth::Caller;
use crate::error::ApiError;
use crate::state::Api;
use crate::threads::{key_of, listing};
use jiff::Timestamp;
use runtime::{KeyPattern, ThreadRow, WaitingRow, WaitingRows};
use std::collections::BTreeMap;
use std::fmt;
use timeline::{Seq, ThreadId, ThreadStatus};

/// Number of threads that are read at once.
const BATCH: usize = 64;
/// Maximum number of threads that are examined for one page.
const EXAMINED: usize = 512;

/// Which entries are listed. The default is all of them.
#[derive(Clone, Debug, Default)]
pub(in crate::routes) struct WaitingFilter {
    pub(in crate::routes) kind: Option<WaitingKind>,
    pub(in crate::routes) agent: Option<String>,
    pub(in crate::routes) prefix: Option<String>,
    pub(in crate::routes) since: Option<Timestamp>,
    pub(in crate::routes) until: Option<Timestamp>,
}

impl WaitingFilter {
    fn accepts(&self, entry: &WaitingView) -> bool {
        self.kind.is_none_or(|kind| entry.kind == kind)
            && (self.agent.is_none() || self.agent == entry.agent)
            && self.since.is_none_or(|since| entry.since >= since)
            && self.until.is_none_or(|until| entry.since <= until)
    }
}

/// The beginning of a page: a thread by its number in the list, and the first of its entries. If that entry
/// waits no longer, the page begins with the first entry of the thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::routes) struct WaitingCursor {
    number: u64,
    entry: String,
}

impl WaitingCursor {
    /// Reads the `next` of a page.
    pub(in crate::routes) fn read(text: &str) -> Result<Self, ApiError> {
        let read = || {
            let (number, entry) = text.split_once('-')?;
            let is_id = entry.bytes().all(|byte| byte.is_ascii_hexdigit());
            Some(Self {
                number: number.parse().ok()?,
                entry: is_id.then(|| entry.to_owned())?,
            })
        };
        read().ok_or_else(|| ApiError::InvalidQuery {
            what: "cursor is not the \"next\" of a page".into(),
        })
    }
}

impl fmt::Display for WaitingCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.number, self.entry)
    }
}

/// A page of pending calls and open requests.
#[derive(Debug, Default)]
pub(in crate::routes) struct WaitingPage {
    pub(in crate::routes) entries: Vec<WaitingView>,
    pub(in crate::routes) next: Option<WaitingCursor>,
    /// Whether a thread could not be read: some entries may be missing.
    pub(in crate::routes) is_partial: bool,
}

/// Reads the pending calls and open requests of the threads that a caller may see. A reader that is used
/// again reads only the threads that have changed.
pub(in crate::routes) struct WaitingReader {
    pub(super) api: Api,
    pub(super) caller: Caller,
    /// The entries of the threads that it has read, each with the last event then.
    seen: BTreeMap<ThreadId, (Seq, Vec<WaitingView>)>,
}

impl WaitingReader {
    pub(in crate::routes) fn new(api: &Api, caller: &Caller) -> Self {
        Self {
            api: api.clone(),
            caller: caller.clone(),
            seen: BTreeMap::new(),
        }
    }

    /// A page of the entries that a filter accepts.
    pub(in crate::routes) async fn page(
        &mut self,
        filter: &WaitingFilter,
        cursor: Option<WaitingCursor>,
        limit: usize,
    ) -> Result<WaitingPage, ApiError> {
        let mut page = WaitingPage::default();
        if self.seen.len() > 2 * EXAMINED {
            self.seen.clear();
        }
        let start = cursor.as_ref();
        let mut after = start.and_then(|start| start.number.checked_sub(1));
        let mut n_examined = 0;
        'pages: loop {
            let rows = WaitingRows {
                after,
                key: filter.prefix.clone().map(KeyPattern::Prefix),
                limit: BATCH,
            };
            let rows = listing::waiting(&self.api, &self.caller, rows).await?;
            let is_end = rows.len() < BATCH;
            for row in rows {
                if n_examined == EXAMINED {
                    page.next = Some(WaitingCursor {
                        number: row.number,
                        entry: String::new(),
                    });
                    break 'pages;
                }
                n_examined += 1;
                after = Some(row.number);
                let Some(entries) = self.entries(&row).await? else {
                    page.is_partial = true;
                    continue;
                };
                let start = start.filter(|start| start.number == row.number);
                let first = start.and_then(|start| {
                    let mut ids = entries.iter().map(|entry| &entry.id);
                    ids.position(|id| *id == start.entry)
                });
                for entry in entries.iter().skip(first.unwrap_or_default()) {
                    if !filter.accepts(entry) {
                        continue;
                    }
                    if page.entries.len() == limit {
                        page.next = Some(WaitingCursor {
                            number: row.number,
                            entry: entry.id.clone(),
                        });
                        break 'pages;
                    }
                    page.entries.push(entry.clone());
                }
                // The calls of a sub-agent's thread depend on the thread that led to it, too.
                if !runtime::is_subagent(&row.row) {
                    self.seen.insert(row.row.thread.id, (row.row.tail, entries));
                }
            }
            if is_end {
                break;
            }
        }
        Ok(page)
    }

    /// Whether something of its own waits in a thread.
    pub(in crate::routes) async fn waits(&self, row: &ThreadRow) -> Result<bool, ApiError> {
        let page = WaitingRows {
            key: Some(KeyPattern::Key(key_of(row).to_owned())),
            limit: 1,
            ..WaitingRows::default()
        };
        for waiting in listing::waiting(&self.api, &self.caller, page).await? {
            let entries = self.entries(&waiting).await?;
            if entries.is_some_and(|entries| !entries.is_empty()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The entries of a thread, the oldest first; none if the thread can't be read.
    async fn entries(&self, row: &WaitingRow) -> Result<Option<Vec<WaitingView>>, ApiError> {
        if row.row.thread.status == ThreadStatus::Closed {
            if row.may_ask {
                self.settle(&row.row).await;
            }
            return Ok(Some(Vec::new()));
        }
        let now = Timestamp::now();
        if let Some((tail, entries)) = self.seen.get(&row.row.thread.id)
            && *tail == row.row.tail
        {
            let entries = entries.iter();
            let open = entries.filter(|entry| entry.expires_at.is_none_or(|end| end >= now));
            return Ok(Some(open.cloned().collect()));
        }
        let entries = self.read(row, now).await?;
        Ok(entries.map(|mut entries| {
            entries.sort_by_key(|entry| entry.since);
            entries
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let cursor = WaitingCursor {
            number: 12,
            entry: "0f".to_owned(),
        };
        assert_eq!(WaitingCursor::read(&cursor.to_string()).unwrap(), cursor);
        for wrong in ["", "12", "-1-2", "a-1", "1-x"] {
            assert!(WaitingCursor::read(wrong).is_err(), "{wrong}");
        }
    }
}

//! Pages of what waits.

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

/// The place of a page in the list: a thread by its number, and how many of its entries were shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::routes) struct WaitingCursor {
    number: u64,
    n_shown: usize,
}

impl WaitingCursor {
    /// Reads the `next` of a page.
    pub(in crate::routes) fn read(text: &str) -> Result<Self, ApiError> {
        let read = || {
            let (number, n_shown) = text.split_once('-')?;
            Some(Self {
                number: number.parse().ok()?,
                n_shown: n_shown.parse().ok()?,
            })
        };
        read().ok_or_else(|| ApiError::InvalidQuery {
            what: "cursor is not the \"next\" of a page".into(),
        })
    }
}

impl fmt::Display for WaitingCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.number, self.n_shown)
    }
}

/// A page of what waits.
#[derive(Debug, Default)]
pub(in crate::routes) struct WaitingPage {
    pub(in crate::routes) entries: Vec<WaitingView>,
    pub(in crate::routes) next: Option<WaitingCursor>,
}

/// Reads what waits in the threads that a caller may see. A reader that is used again reads only the
/// threads that have changed.
pub(in crate::routes) struct WaitingReader {
    pub(super) api: Api,
    pub(super) caller: Caller,
    known: BTreeMap<ThreadId, (Seq, Vec<WaitingView>)>,
}

impl WaitingReader {
    pub(in crate::routes) fn new(api: &Api, caller: &Caller) -> Self {
        Self {
            api: api.clone(),
            caller: caller.clone(),
            known: BTreeMap::new(),
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
        let mut seen = BTreeMap::new();
        let mut after = cursor.and_then(|cursor| cursor.number.checked_sub(1));
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
                        n_shown: 0,
                    });
                    break 'pages;
                }
                n_examined += 1;
                after = Some(row.number);
                let entries = self.entries(&row).await?;
                let shown = cursor.filter(|cursor| cursor.number == row.number);
                let n_shown = shown.map_or(0, |cursor| cursor.n_shown);
                for (place, entry) in entries.iter().enumerate().skip(n_shown) {
                    if !filter.accepts(entry) {
                        continue;
                    }
                    if page.entries.len() == limit {
                        page.next = Some(WaitingCursor {
                            number: row.number,
                            n_shown: place,
                        });
                        break 'pages;
                    }
                    page.entries.push(entry.clone());
                }
                if !entries.is_empty() {
                    seen.insert(row.row.thread.id, (row.row.tail, entries));
                }
            }
            if is_end {
                break;
            }
        }
        self.known = seen;
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
            if !self.entries(&waiting).await?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The entries of a thread, the oldest first.
    pub(in crate::routes) async fn entries(
        &self,
        row: &WaitingRow,
    ) -> Result<Vec<WaitingView>, ApiError> {
        if row.row.thread.status == ThreadStatus::Closed {
            return Ok(Vec::new());
        }
        let now = Timestamp::now();
        if let Some((tail, entries)) = self.known.get(&row.row.thread.id)
            && *tail == row.row.tail
        {
            let entries = entries.iter();
            let open = entries.filter(|entry| entry.expires_at.is_none_or(|end| end >= now));
            return Ok(open.cloned().collect());
        }
        let mut entries = self.read(row, now).await?;
        entries.sort_by_key(|entry| entry.since);
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let cursor = WaitingCursor {
            number: 12,
            n_shown: 3,
        };
        assert_eq!(WaitingCursor::read(&cursor.to_string()).unwrap(), cursor);
        for wrong in ["", "12", "-1-2", "a-1", "1-"] {
            assert!(WaitingCursor::read(wrong).is_err(), "{wrong}");
        }
    }
}

//! Finds threads by words, and what lists show of threads.

use super::blocks::{block_of, event_with_number};
use super::error::statement;
use super::rows::{AGENT, thread_of};
use super::sums::changed;
use super::value::{count, int};
use super::waits;
use super::words::{TITLES, tenant_word, thread_word};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeMap;
use store::search::{
    FoundThread, FoundThreads, HITS_PER_THREAD, PREVIEW_CHARS, Search, SearchHit, SearchWords,
    ThreadPreview, text_of_content, text_of_part,
};
use store::{KeyPattern, StoreError, TenantId, ThreadFilter, ThreadRow};
use timeline::{Event, ItemType, Role, ThreadId};

/// Maximum number of hits that are examined for one page.
const EXAMINED: usize = 10_000;

/// Maximum number of threads that a query of FTS5 names. If the caller may see more threads than that, all
/// hits of the tenant are examined.
const NAMED: usize = 500;

/// Maximum size of a block with a text that is previewed, in bytes.
const PREVIEWED: i64 = 256 << 10;

/// A page of threads that have the words.
pub(super) fn search(
    conn: &Connection,
    tenant: &TenantId,
    search: &Search,
) -> Result<FoundThreads, StoreError> {
    if search.words.is_empty() || search.limit == 0 {
        return Ok(FoundThreads::default());
    }
    let tx = conn.unchecked_transaction().map_err(statement)?;
    let Some(scope) = scope(&tx, tenant, search.keys.as_deref())? else {
        return Ok(FoundThreads::default());
    };
    let page = Page {
        conn: &tx,
        tenant,
        search,
        words: words(&search.words),
    };
    page.read(&scope)
}

/// The words in the language of FTS5. They are letters and digits, so quotes make them plain text.
fn words(words: &SearchWords) -> String {
    let phrases = words.phrases().iter();
    let phrases: Vec<_> = phrases
        .map(|phrase| format!("text : \"{}\"", phrase.join(" ")))
        .collect();
    format!("{} *", phrases.join(" AND "))
}

/// Where to search, in the language of FTS5: in the tenant, or in its threads with these keys if they are few.
/// `None` if there are none.
fn scope(
    conn: &Connection,
    tenant: &TenantId,
    keys: Option<&[KeyPattern]>,
) -> Result<Option<String>, StoreError> {
    let whole = Ok(Some(format!("scope : {}", tenant_word(tenant))));
    let Some(keys) = keys else {
        return whole;
    };
    let sql = "SELECT no, key FROM thread_threads WHERE tenant = ?1 AND key >= ?2 ORDER BY key";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let mut named = Vec::new();
    for pattern in keys {
        let (KeyPattern::Key(first) | KeyPattern::Prefix(first)) = pattern;
        let mut rows = select.query([tenant.as_str(), first]).map_err(statement)?;
        // Keys that begin alike follow each other.
        while let Some(row) = rows.next().map_err(statement)? {
            let key = row.get_ref(1).map_err(statement)?.as_str();
            if !key.is_ok_and(|key| pattern.covers(key)) {
                break;
            }
            named.push(thread_word(row.get(0).map_err(statement)?));
            if named.len() > NAMED {
                return whole;
            }
        }
    }
    Ok((!named.is_empty()).then(|| format!("scope : ({})", named.join(" OR "))))
}

struct Page<'a> {
    conn: &'a Connection,
    tenant: &'a TenantId,
    search: &'a Search,
    words: String,
}

impl Page<'_> {
    fn read(&self, scope: &str) -> Result<FoundThreads, StoreError> {
        let sql = "SELECT w.rowid, coalesce(b.thread_no, w.rowid - ?3)
                   FROM thread_words w LEFT JOIN thread_blocks b ON b.id = w.rowid >> 20
                   WHERE w.thread_words MATCH ?1 AND w.rowid < ?2 ORDER BY w.rowid DESC";
        let mut select = self.conn.prepare_cached(sql).map_err(statement)?;
        let after = self.search.after.map_or(i64::MAX, int);
        let query = format!("{scope} AND {}", self.words);
        let mut rows = select
            .query(params![query, after, TITLES])
            .map_err(statement)?;
        let (mut found, mut places) = (FoundThreads::default(), BTreeMap::new());
        let (mut last, mut n_examined) = (None, 0);
        while let Some(row) = rows.next().map_err(statement)? {
            if n_examined == EXAMINED {
                found.next = last;
                break;
            }
            n_examined += 1;
            let id: i64 = row.get(0).map_err(statement)?;
            let no: i64 = row.get(1).map_err(statement)?;
            let place = if let Some(place) = places.get(&no) {
                *place
            } else {
                let meant = self.meant(no)?;
                let place = meant.is_some().then_some(found.threads.len());
                found.threads.extend(meant.map(|row| FoundThread {
                    row,
                    hits: Vec::new(),
                }));
                places.insert(no, place);
                place
            };
            if place == Some(self.search.limit) {
                found.threads.pop();
                found.next = last;
                break;
            }
            if let Some(thread) = place.and_then(|place| found.threads.get_mut(place))
                && thread.hits.len() < HITS_PER_THREAD
            {
                thread.hits.push(self.hit(id, no)?);
            }
            last = Some(count(id));
        }
        Ok(found)
    }

    /// The thread with this number, if the page may have it.
    fn meant(&self, no: i64) -> Result<Option<ThreadRow>, StoreError> {
        // An index that is damaged may have more than the log.
        let Some(row) = thread_of(self.conn, no)? else {
            return Ok(None);
        };
        let key = row.thread.key.as_deref();
        let covers = |pattern: &KeyPattern| key.is_some_and(|key| pattern.covers(key));
        let keys = self.search.keys.as_ref();
        let is_meant = row.tenant == *self.tenant
            && keys.is_none_or(|keys| keys.iter().any(covers))
            && passes(self.conn, &self.search.filter, &row, no)?
            && !self.was_found(no)?;
        Ok(Some(row).filter(|_| is_meant))
    }

    /// Whether an earlier page has the thread: it has a newer hit.
    fn was_found(&self, no: i64) -> Result<bool, StoreError> {
        let Some(after) = self.search.after else {
            return Ok(false);
        };
        let query = format!("scope : {} AND {}", thread_word(no), self.words);
        let sql = "SELECT 1 FROM thread_words WHERE thread_words MATCH ?1 AND rowid >= ?2 LIMIT 1";
        let mut select = self.conn.prepare_cached(sql).map_err(statement)?;
        let found = select.exists(params![query, int(after)]);
        found.map_err(statement)
    }

    /// The hit with this number, in the thread with that one.
    fn hit(&self, id: i64, no: i64) -> Result<SearchHit, StoreError> {
        let (seq, role, text) = if id < TITLES {
            match event_with_number(self.conn, id)? {
                Some((thread, seq, event)) if thread == no => {
                    let (role, text) = text_of(event);
                    (Some(seq), role, text)
                }
                _ => return Err(changed(&format!("the full-text index at {id}"))),
            }
        } else {
            let row = thread_of(self.conn, no)?;
            (None, None, row.and_then(|row| row.thread.title))
        };
        Ok(SearchHit {
            seq,
            role,
            excerpt: self.search.words.excerpt(&text.unwrap_or_default()),
        })
    }
}

/// Whether a filter accepts a thread.
fn passes(
    conn: &Connection,
    filter: &ThreadFilter,
    row: &ThreadRow,
    no: i64,
) -> Result<bool, StoreError> {
    let agent = match &filter.agent {
        Some(_) => {
            let sql = format!("SELECT {AGENT} FROM thread_threads t WHERE t.no = ?1");
            let mut select = conn.prepare_cached(&sql).map_err(statement)?;
            select
                .query_row([no], |row| row.get::<_, Option<String>>(0))
                .map_err(statement)?
        }
        None => None,
    };
    let may_wait = filter.may_wait && waits::may_wait(conn, no)?;
    Ok(filter.accepts(&row.thread, agent.as_deref(), may_wait))
}

/// The role of an event's author, and its text.
pub(super) fn text_of(event: Event) -> (Option<Role>, Option<String>) {
    if let Event::ItemCreated { item } = event {
        let content = item.content.filter(|_| item.item_type == ItemType::Message);
        let text = content.and_then(|content| text_of_content(content.text()));
        return (item.role, text);
    }
    let (Event::PartCreated { part, .. } | Event::PartUpdated { part, .. }) = event else {
        return (None, None);
    };
    (Some(Role::Assistant), text_of_part(part.text()))
}

/// The previews of threads.
pub(super) fn previews(
    conn: &Connection,
    threads: &[ThreadId],
) -> Result<Vec<ThreadPreview>, StoreError> {
    let tx = conn.unchecked_transaction().map_err(statement)?;
    threads.iter().map(|id| preview(&tx, id)).collect()
}

fn preview(conn: &Connection, thread: &ThreadId) -> Result<ThreadPreview, StoreError> {
    let sql = format!(
        "SELECT t.no, {AGENT}, (SELECT p.key FROM thread_threads p WHERE p.no = t.fork_no)
         FROM thread_threads t WHERE t.id = ?1"
    );
    let mut select = conn.prepare_cached(&sql).map_err(statement)?;
    let found = select.query_row([thread.as_str()], |row| {
        Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?))
    });
    let Some((no, agent, forked_from)) = found.optional().map_err(statement)? else {
        return Ok(ThreadPreview::default());
    };
    let sql = "SELECT rowid FROM thread_words WHERE thread_words MATCH ?1 AND rowid < ?2
               ORDER BY rowid DESC LIMIT 1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let values = params![format!("scope : {}", thread_word(no)), TITLES];
    let number = select.query_row(values, |row| row.get::<_, i64>(0));
    let text = match number.optional().map_err(statement)? {
        Some(number) if is_short(conn, number)? => {
            event_with_number(conn, number)?.and_then(|(.., event)| text_of(event).1)
        }
        _ => None,
    };
    Ok(ThreadPreview {
        agent,
        forked_from,
        last_text: text.map(|text| text.chars().take(PREVIEW_CHARS).collect()),
        may_wait: waits::may_wait(conn, no)?,
    })
}

/// Whether the block of the event with this number is small enough to be read for a preview.
fn is_short(conn: &Connection, number: i64) -> Result<bool, StoreError> {
    let sql = "SELECT octet_length(body) <= ?2 FROM thread_blocks WHERE id = ?1";
    let mut select = conn.prepare_cached(sql).map_err(statement)?;
    let is_short = select.query_row([block_of(number), PREVIEWED], |row| row.get(0));
    Ok(is_short.optional().map_err(statement)?.unwrap_or(false))
}
